"""Views: other shapes of the same memory, other orders of its dimensions, parts of it."""

from __future__ import annotations

import operator as python_operator
from typing import Any

from ..backends.geometry import (
    at,
    inferred,
    int_sequence,
    offset_of,
    overload_number,
    sliced,
    strided,
    view_shape,
    wrap_dim,
    wrap_dims,
)
from ..core import dtypes
from ..core.errors import shape_text, warn_user
from ..core.registry import operator_named
from ..core.tensor import Tensor, set_fields
from ..dispatch.operator import Operator
from ..transforms.batching import views as batched
from ..transforms.batching.rules import sized
from . import shapes
from .copying import pack
from .declare import composite, linear, nondifferentiable

__all__ = [
    "adjoint", "broadcast_to", "expand", "expand_as", "flatten", "moveaxis", "movedim", "narrow",
    "permute", "ravel", "reshape", "reshape_as", "select", "squeeze", "swapaxes", "swapdims", "t",
    "transpose", "unflatten", "unsqueeze", "view", "view_as",
]  # fmt: skip

# Other shapes ------------------------------------------------------------------------------------


def _view(xp: Any, x: Any, size: tuple[int, ...]) -> Any:
    out = view_shape(x, inferred(size, x.size))
    if out is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            f"dimension spans across two contiguous subspaces): {shape_text(x.shape)} cannot be "
            f"seen as {shape_text(size)} without a copy. Use .reshape(...) instead."
        )
    return out


view_ = linear(
    "view(Tensor(a) self, int[] size) -> Tensor(a)",
    _view,
    lambda g, self_shape: reshape(g, self_shape),
    view=True,
    batch=batched.to_size,
    doc="A view of this memory in another shape.",
)
reshape_alias = linear(
    "_reshape_alias(Tensor(a) self, int[] size) -> Tensor(a)",
    _view,
    lambda g, self_shape: reshape(g, self_shape),
    view=True,
    batch=batched.to_size,
    doc="A view in another shape, of a tensor that is not contiguous.",
)
unsafe_view = linear(
    "_unsafe_view(Tensor self, int[] size) -> Tensor",
    _view,
    lambda g, self_shape: reshape(g, self_shape),
    meta=shapes.sized,
    batch=batched.to_size,
    doc="Another shape for memory that no other tensor knows of, and so not counted as a view.",
)


def _view_dtype(xp: Any, x: Any, dtype: dtypes.dtype) -> Any:
    old, new = x.dtype.itemsize, dtype.numpy.itemsize
    if old == new:
        return x.view(dtype.numpy)
    words = f"{dtypes.from_numpy(x.dtype).scalar_name} as {dtype.scalar_name}"
    words = f"to view {words} (different element sizes)"
    if x.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 {words}")
    if x.strides[-1] != old and x.shape[-1] != 1 and x.size:
        raise RuntimeError(f"self.stride(-1) must be 1 {words}, but got {x.strides[-1] // old}")
    ratio = new // old
    if ratio > 1:
        if x.shape[-1] % ratio:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {ratio} {words}, but got {x.shape[-1]}"
            )
        for dim, stride in enumerate(x.strides[:-1]):
            if stride % new:
                raise RuntimeError(
                    f"self.stride({dim}) must be divisible by {ratio} {words}, "
                    f"but got {stride // old}"
                )
        if offset_of(x) % ratio:
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {ratio} {words}, "
                f"but got {offset_of(x)}"
            )
    return x.view(dtype.numpy)


view_dtype_ = nondifferentiable(
    "view.dtype(Tensor(a) self, dtype dtype) -> Tensor(a)",
    _view_dtype,
    meta=lambda x, dtype: _view_dtype(None, x, dtype),
    batch=batched.reinterpreted,
    doc="A view of this memory as elements of another type.",
)


@composite(public="method")
def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """A view of this memory in another shape, or as elements of another dtype."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        dtype = shape[0]
    if dtype is not None:
        out = view_dtype_.call((input, dtypes.as_dtype(dtype)))
        # The memory is shared but nothing is recorded: for autograd, this is no view.
        set_fields(out, counter=input.shared_counter())
        return out
    return view_.call((input, int_sequence("view", "size", shape, size)))


def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """These elements in another shape, as a view where the memory allows it."""
    array = input.array
    size = inferred(int_sequence("reshape", "shape", sizes, shape), array.size)
    if array.flags.c_contiguous:
        return view_.call((input, size))
    if view_shape(array, size) is not None:
        return reshape_alias.call((input, size))
    return unsafe_view.call((pack.call1(input), size))


def as_own(result: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A new result, of whose memory no other tensor knows, in another shape; it is no view."""
    array = result.array
    if not array.flags.c_contiguous and view_shape(array, shape) is None:
        result = pack.call1(result)
    return unsafe_view.call((result, shape))


@composite(public="method")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """A view of this memory in the shape of `other`."""
    return view_.call((input, other.array.shape))


@composite(public="method")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """These elements in the shape of `other`, as a view where the memory allows it."""
    return reshape(input, other.array.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one."""
    shape = input.array.shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, (1,))
    if start == end:
        return input
    size = 1
    for n in shape[start : end + 1]:
        size *= n
    return reshape(input, (*shape[:start], size, *shape[end + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension, as a view where the tensor is contiguous."""
    whole = input if input.array.flags.c_contiguous else pack.call1(input)
    return view_.call((whole, (-1,)))


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several."""
    shape = input.array.shape
    dim = wrap_dim(dim, len(shape))
    parts = int_sequence("unflatten", "sizes", (sizes,))
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        parts = inferred(parts, shape[dim])
    except (RuntimeError, IndexError):
        raise RuntimeError(
            f"unflatten: Provided sizes {shape_text(parts)} don't multiply up to the size of dim "
            f"{dim} ({shape[dim] if shape else 1}) in the input tensor of shape {shape_text(shape)}"
        ) from None
    return view_.call((input, (*shape[:dim], *parts, *shape[dim + 1 :])))


def _expand(xp: Any, x: Any, size: tuple[int, ...], implicit: bool) -> Any:
    shape = x.shape
    extra = len(size) - len(shape)
    if extra < 0:
        raise RuntimeError(
            f"expand(): the number of sizes provided ({len(size)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(shape)})"
        )
    target = list(size)
    strides = [0] * len(size)
    for i, n in enumerate(size):
        if i < extra:
            if n < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
            continue
        old = shape[i - extra]
        if n in (-1, old):
            target[i] = old
            strides[i] = x.strides[i - extra]
        elif old != 1 or n < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({old}) at "
                f"non-singleton dimension {i}. Target sizes: {shape_text(size)}. "
                f"Tensor sizes: {shape_text(shape)}"
            )
    for i in reversed(range(extra if shape else 0)):
        if target[i] == 1:  # nothing is repeated: the stride is that of a contiguous tensor
            strides[i] = target[i + 1] * strides[i + 1]
    return strided(x, tuple(target), tuple(strides))


expand = linear(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    _expand,
    lambda g, self_shape: g.sum_to_size(self_shape),
    view=True,
    batch=batched.expand,
    overlaps=True,
    doc="A view in which dimensions of size one are repeated without copying.",
    public="method",
)


@composite(public="method")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor expanded to the shape of `other`."""
    return expand.call((input, other.array.shape, False))


def broadcast_to(input: Tensor, *shape: Any, size: Any = None) -> Tensor:
    """The tensor expanded to a shape."""
    return expand.call((input, int_sequence("broadcast_to", "size", shape, size), False))


def _squeeze(xp: Any, x: Any, dim: tuple[int, ...] | None) -> Any:
    if dim is None:
        return x.squeeze()
    return x.squeeze(tuple([d for d in wrap_dims(dim, x.ndim) if x.ndim and x.shape[d] == 1]))


squeeze = linear(
    "squeeze(Tensor(a) self, int[]? dim=None) -> Tensor(a)",
    _squeeze,
    lambda g, self_shape: g if g.array.shape == self_shape else reshape(g, self_shape),
    view=True,
    name=lambda self, dim: f"SqueezeBackward{overload_number(dim)}",
    batch=batched.squeeze,
    doc="The tensor without its dimensions of size one, or without those of them that are given.",
)


def _unsqueeze(xp: Any, x: Any, dim: int) -> Any:
    dim = wrap_dim(dim, x.ndim + 1)
    shape, strides = x.shape, x.strides
    if x.flags.c_contiguous and x.size:
        return x.reshape(shape[:dim] + (1,) + shape[dim:])
    step = shape[dim] * strides[dim] if dim < x.ndim else x.dtype.itemsize
    return strided(x, (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]))


unsqueeze = linear(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    _unsqueeze,
    lambda g, dim: squeeze.call((g, (dim,))),
    view=True,
    batch=batched.unsqueeze,
    doc="The tensor with a dimension of size one inserted.",
)


# Other orders of the dimensions ------------------------------------------------------------------


def _permute(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    if len(dims) != x.ndim:
        raise RuntimeError(
            "permute(): number of dimensions in the tensor input does not match the length of the "
            f"desired ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to "
            f"len(dims) = {len(dims)}"
        )
    order = [wrap_dim(dim, x.ndim) for dim in dims]
    if len(set(order)) < len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return x.transpose(order)


def _inverse_permute(g: Tensor, dims: tuple[int, ...]) -> Tensor:
    inverse = [0] * len(dims)
    for i, dim in enumerate(dims):
        inverse[dim] = i
    return permute.call((g, tuple(inverse)))


permute = linear(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    _permute,
    lambda g, dims: _inverse_permute(g, dims),
    view=True,
    batch=batched.permute,
    doc="The dimensions in another order.",
)


def _transpose(xp: Any, x: Any, dim0: int, dim1: int) -> Any:
    first, second = wrap_dim(dim0, x.ndim), wrap_dim(dim1, x.ndim)
    return x.swapaxes(first, second) if x.ndim else x.view()


transpose: Operator = linear(
    "transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    _transpose,
    lambda g, dim0, dim1: transpose.call((g, dim0, dim1)),
    view=True,
    batch=batched.transpose,
    doc="Two dimensions exchanged.",
    overload="int",
)


def _t(xp: Any, x: Any) -> Any:
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return x.T if x.ndim == 2 else x.view()


t: Operator = linear(
    "t(Tensor(a) self) -> Tensor(a)",
    _t,
    lambda g: t.call((g,)),
    view=True,
    batch=batched.matrix_transpose,
    involution=True,
    doc="A matrix transposed; tensors with fewer dimensions as they are.",
)


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dimensions exchanged."""
    return transpose(input, axis0, axis1)


def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged: another name of transpose()."""
    return transpose(input, dim0, dim1)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """The dimensions `source` at the places `destination`, the others in their old order."""
    old = int_sequence("movedim", "source", (source,))
    new = int_sequence("movedim", "destination", (destination,))
    if len(old) != len(new):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({shape_text(old)} dims) should "
            f"contain the same number of dims as destination ({shape_text(new)} dims)"
        )
    ndim = input.array.ndim
    for name, given in (("source", old), ("destination", new)):
        if len({wrap_dim(dim, ndim) for dim in given}) < len(given):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({shape_text(given)})")
    if not ndim:
        return operator_named("alias").call((input,))
    places = {wrap_dim(n, ndim): wrap_dim(o, ndim) for o, n in zip(old, new, strict=True)}
    others = iter([dim for dim in range(ndim) if dim not in places.values()])
    order = [places[dim] if dim in places else next(others) for dim in range(ndim)]
    return permute.call((input, tuple(order)))


moveaxis = movedim


def reverse_dims(input: Tensor) -> Tensor:
    """The dimensions in reverse order: ``x.T``."""
    ndim = input.array.ndim
    if ndim == 0:
        warn_user("Tensor.T is deprecated on 0-D tensors. This function is the identity there.")
    elif ndim != 2:
        warn_user(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated. Use `x.mT` to transpose batches of matrices or `x.permute(...)`."
        )
    return permute.call((input, tuple(range(ndim - 1, -1, -1))))


def matrix_transpose(input: Tensor) -> Tensor:
    """The last two dimensions exchanged: ``x.mT``."""
    return _matrices(input, "tensor.mT")


def matrix_adjoint(input: Tensor) -> Tensor:
    """A matrix transposed and conjugated: ``x.H``."""
    ndim = input.array.ndim
    if ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
        )
    return _matrices(input, "tensor.H").conj()


def batch_adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged and the elements conjugated: ``x.mH``."""
    return _matrices(input, "tensor.mH").conj()


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged and the elements conjugated."""
    return _matrices(input, "tensor.adjoint()").conj()


def _matrices(input: Tensor, name: str) -> Tensor:
    ndim = input.array.ndim
    if ndim == 1:
        raise RuntimeError(
            f"{name} is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    if ndim == 0:
        warn_user(f"{name} is deprecated on 0-D tensors, where transposing changes nothing.")
        return input
    return transpose.call((input, -2, -1))


# Parts -------------------------------------------------------------------------------------------


def _select(xp: Any, x: Any, dim: int, index: int) -> Any:
    if not x.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, x.ndim)
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {shape_text(x.shape)} at "
            f"dimension {dim}"
        )
    return x[at(dim, index)]


def _select_into_zeros(xp: Any, g: Any, input_sizes: tuple, dim: int, index: int) -> Any:
    out = xp.zeros(input_sizes, g.dtype)
    out[at(wrap_dim(dim, out.ndim), index)] = g
    return out


select = linear(
    "select(Tensor(a) self, int dim, int index) -> Tensor(a)",
    _select,
    lambda g, self_shape, dim, index: _select_backward.call((g, self_shape, dim, index)),
    view=True,
    batch=batched.parts(removes=True),
    doc="The part at one index of a dimension, without that dimension.",
    overload="int",
)
_select_backward: Operator = linear(
    "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    _select_into_zeros,
    lambda g, dim, index: select.call((g, dim, index)),
    meta=shapes.sized,
    batch=sized("input_sizes", "dim"),
    doc="Zeros with a gradient at one index of a dimension.",
)


def _slice(xp: Any, x: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    if not x.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return sliced(x, wrap_dim(dim, x.ndim), start, end, step)


def _slice_into_zeros(
    xp: Any, g: Any, input_sizes: tuple, dim: int, start: Any, end: Any, step: int
) -> Any:
    out = xp.zeros(input_sizes, g.dtype)
    _slice(xp, out, dim, start, end, step)[...] = g
    return out


slice_ = linear(
    "slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    _slice,
    lambda g, self_shape, dim, start, end, step: _slice_backward.call(
        (g, self_shape, dim, start, end, step)
    ),
    view=True,
    batch=batched.parts(removes=False),
    doc="A range of one dimension.",
    overload="Tensor",
)
_slice_backward: Operator = linear(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int? end, "
    "int step) -> Tensor",
    _slice_into_zeros,
    lambda g, dim, start, end, step: slice_.call((g, dim, start, end, step)),
    meta=shapes.sized,
    batch=sized("input_sizes", "dim"),
    doc="Zeros with a gradient in a range of one dimension.",
)


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` indices of a dimension, from `start` on."""
    shape = input.array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, len(shape))
    if isinstance(start, Tensor) and (start.array.ndim or start.array.dtype.kind not in "iu"):
        raise RuntimeError(
            "start must be an 0-dim integral Tensor. narrow() got one of shape "
            f"{shape_text(start.array.shape)} and {start.dtype}"
        )
    begin = python_operator.index(start)
    size = shape[dim]
    if not -size <= begin <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {begin})"
        )
    begin += size if begin < 0 else 0
    if begin + length > size:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({size}).")
    return slice_.call((input, dim, begin, begin + length, 1))
