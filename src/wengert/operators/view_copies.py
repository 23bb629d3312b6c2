"""Copies of views, parts that are no views, and a tensor with a strided part replaced.

What a copy shows is what the view of the same name shows; its elements follow each other in memory.
"""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..backends.geometry import may_overlap, seen_from, span, strided
from ..core import dtypes
from ..core.errors import shape_text
from ..core.layouts import contiguous_format
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching.moving import batch_size, with_batch
from ..transforms.batching.rules import each_example
from . import joining, views
from .complex import view_as_complex, view_as_real
from .declare import composite, primitive
from .getitem import tangent_of
from .pointwise import zeros_like
from .strides import as_strided, as_strided_relative, laid_out, unfold

__all__ = [
    "alias_copy", "as_strided_copy", "as_strided_scatter", "detach_copy", "expand_copy",
    "narrow_copy", "permute_copy", "select_copy", "slice_copy", "split_copy",
    "split_with_sizes_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy",
    "unfold_copy", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze_copy",
    "view_as_complex_copy", "view_as_real_copy", "view_copy",
]  # fmt: skip

_function = composite(public="function")


def _copied(name: str, view: Tensor, out: Tensor | None) -> Tensor:
    copy = view.clone(memory_format=contiguous_format)
    return copy if out is None else copy_to_out(name, copy, out, (), True)


def _each_copied(name: str, parts: tuple, out: Any) -> tuple[Tensor, ...] | None:
    """Copies of several views; written into the tensors of `out` if it is given."""
    copies = tuple([part.clone(memory_format=contiguous_format) for part in parts])
    if out is None:
        return copies
    if len(out) != len(copies):
        raise RuntimeError(f"{name}(): out has {len(out)} tensors, expected {len(copies)}")
    for copy, target in zip(copies, out, strict=True):
        copy_to_out(name, copy, target, (), True)
    return None


# Copies -------------------------------------------------------------------------------------------


@_function
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor."""
    return _copied("alias_copy", input, out)


@_function
def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor without its history."""
    return _copied("detach_copy", input.detach(), out)


@_function
def view_copy(input: Tensor, size: Any = None, dtype: Any = None, *, out: Any = None) -> Tensor:
    """A copy of the tensor in another shape, or of its memory read as another type."""
    if isinstance(size, dtypes.dtype):
        size, dtype = None, size
    if dtype is None:
        return _copied("view_copy", views.reshape(input, size), out)
    return _copied("view_copy", views.view(input, dtype=dtype), out)


@_function
def expand_copy(
    input: Tensor, size: Any, *, implicit: bool = False, out: Tensor | None = None
) -> Tensor:
    """A copy of the tensor with dimensions of length one repeated up to `size`."""
    return _copied("expand_copy", views.expand(input, size, implicit=implicit), out)


@_function
def squeeze_copy(input: Tensor, dim: Any = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor without dimensions of length one, all or those in `dim`."""
    found = input.squeeze() if dim is None else input.squeeze(dim)
    return _copied("squeeze_copy", found, out)


@_function
def unsqueeze_copy(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor with a dimension of length one more."""
    return _copied("unsqueeze_copy", views.unsqueeze(input, dim), out)


@_function
def permute_copy(input: Tensor, dims: Any, *, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor with its dimensions in another order."""
    return _copied("permute_copy", views.permute(input, dims), out)


@_function
def transpose_copy(
    input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None
) -> Tensor:
    """A copy of the tensor with two dimensions exchanged."""
    return _copied("transpose_copy", views.transpose(input, dim0, dim1), out)


@_function
def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the transpose of a matrix."""
    return _copied("t_copy", views.t(input), out)


@_function
def select_copy(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor:
    """A copy of the part at one index of a dimension."""
    return _copied("select_copy", views.select(input, dim, index), out)


@_function
def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of a range of a dimension."""
    return _copied("slice_copy", views.slice_.call((input, dim, start, end, step)), out)


def narrow_copy(
    input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None
) -> Tensor:
    """A copy of `length` indices of a dimension from `start` on."""
    shape = input.array.shape
    if dim >= len(shape) > 0:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false. "
            f"narrow_copy() got dim {dim} for a tensor of shape {shape_text(shape)}"
        )
    if length < 0 and shape:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({shape[dim]}). "
            "narrow_copy(): length must be non-negative."
        )
    return _copied("narrow_copy", views.narrow(input, dim, start, length), out)


@_function
def unfold_copy(
    input: Tensor, dimension: int, size: int, step: int, *, out: Tensor | None = None
) -> Tensor:
    """A copy of all windows of `size` indices of a dimension, `step` apart."""
    return _copied("unfold_copy", unfold.call((input, dimension, size, step)), out)


@_function
def as_strided_copy(
    input: Tensor,
    size: Any,
    stride: Any,
    storage_offset: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of what the memory of the tensor shows with another size and other strides."""
    return _copied("as_strided_copy", as_strided(input, size, stride, storage_offset), out)


@_function
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Real and imaginary parts of complex numbers as a last dimension, copied."""
    return _copied("view_as_real_copy", view_as_real(input), out)


@_function
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers made of pairs in the last dimension, copied."""
    return _copied("view_as_complex_copy", view_as_complex(input.contiguous()), out)


@_function
def unbind_copy(input: Tensor, dim: int = 0, *, out: Any = None) -> tuple[Tensor, ...] | None:
    """Copies of the parts at every index of a dimension."""
    return _each_copied("unbind_copy", joining.unbind(input, dim), out)


@_function
def split_copy(
    input: Tensor, split_size: int, dim: int = 0, *, out: Any = None
) -> tuple[Tensor, ...] | None:
    """Copies of the parts of `split_size` indices of a dimension."""
    return _each_copied("split_copy", joining.split(input, split_size, dim), out)


@_function
def split_with_sizes_copy(
    input: Tensor, split_sizes: Any, dim: int = 0, *, out: Any = None
) -> tuple[Tensor, ...] | None:
    """Copies of parts of a dimension, of the given sizes."""
    found = joining.split_with_sizes(input, split_sizes, dim)
    return _each_copied("split_with_sizes_copy", found, out)


# Parts that are no views --------------------------------------------------------------------------


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` equal parts of a dimension, which may be changed each on its own."""
    return _each_copied("unsafe_chunk", joining.chunk(input, chunks, dim), None) or ()


def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of `split_size` indices of a dimension, which may be changed each on its own."""
    return _each_copied("unsafe_split", joining.split(input, split_size, dim), None) or ()


def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Any, dim: int = 0
) -> tuple[Tensor, ...]:
    """Parts of a dimension of the given sizes, which may be changed each on its own."""
    found = joining.split_with_sizes(input, split_sizes, dim)
    return _each_copied("unsafe_split_with_sizes", found, None) or ()


# A part replaced ----------------------------------------------------------------------------------


def _write_strided(
    xp: Any,
    x: Any,
    src: Any,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    layout: tuple[int, ...],
) -> Any:
    if tuple(size) != src.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{shape_text(src.shape)}, slice size = {shape_text(size)}"
        )
    reach = span(x.shape, layout)
    if offset < 0 or (offset + span(size, stride) > reach and src.size):
        raise RuntimeError(
            f"setStorage: sizes {shape_text(size)}, strides {shape_text(stride)}, storage offset "
            f"{offset}, and itemsize {x.dtype.itemsize} requiring a storage size of "
            f"{(offset + span(size, stride)) * x.dtype.itemsize} are out of bounds for storage of "
            f"size {reach * x.dtype.itemsize}: as_strided_scatter() writes into what a tensor shows"
        )
    out = laid_out(xp, x, layout)
    item = x.dtype.itemsize
    strided(out, size, tuple([s * item for s in stride]), offset * item)[...] = src
    return out


def _written_meta(x: Any, src: Any, size: Any, stride: Any, offset: int, layout: Any) -> Any:
    item = x.dtype.itemsize
    return meta.of_strides(x.shape, tuple([s * item for s in layout]), x.dtype)


def _without(g: Tensor, *place: Any) -> Tensor:
    """The gradient with zeros in the part that was replaced."""
    return _scatter.call((g, zeros_like(as_strided_relative.call((g, *place))), *place))


def _written_in_batch(operator: Any, args: tuple, dims: tuple) -> tuple[Any, Any]:
    """Every example has memory of its own; where there is none, nothing is written."""
    size = batch_size(args, dims)
    if size:
        return each_example(operator, args, dims)
    return with_batch(args[0], dims[0], size).clone(), 0


_scatter: Operator = primitive(
    "_as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int offset, "
    "int[] layout) -> Tensor",
    _write_strided,
    {
        "self": lambda g, size, stride, offset, layout: _without(
            g, size, stride, offset, layout
        ),
        "src": lambda g, size, stride, offset, layout: as_strided_relative.call(
            (g, size, stride, offset, layout)
        ),
    },
    lambda tangents, self, src, size, stride, offset, layout: _scatter.call(
        (
            tangent_of(tangents, "self", self), tangent_of(tangents, "src", src),
            size, stride, offset, layout,
        )
    ),
    widens=False,
    meta=_written_meta,
    batch=_written_in_batch,
    name="AsStridedScatterBackward0",
    doc="A tensor with a strided part of its memory replaced.",
)  # fmt: skip


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """The tensor with what as_strided() would show of it replaced by `src`."""
    steps = tuple([s // input.array.itemsize for s in input.array.strides])
    if may_overlap(input.array.shape, steps):  # elements that are one in memory become several
        input = input.contiguous()
    return _scatter.call((input, src, *seen_from(input.array, size, stride, storage_offset)))
