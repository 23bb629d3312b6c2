"""Joining tensors and taking them apart: cat, stack, split, chunk, unbind and their relatives."""

from __future__ import annotations

import operator as python_operator
from typing import Any

from ..backends import meta
from ..backends.geometry import at, broadcast_shape, sliced, wrap_dim
from ..core.dtypes import can_cast, result_dtype
from ..core.errors import shape_text, warn_user
from ..core.ndarrays import ndarrays
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap_as
from ..creation.factories import zeros
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..transforms.batching import joining as batched
from ..transforms.batching.views import parts as parts_rule
from .declare import composite, linear
from .pointwise import new_zeros
from .views import expand, reshape, slice_, unsqueeze, view_

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod",
    "cat", "chunk", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack",
    "meshgrid", "row_stack", "split", "split_with_sizes", "stack", "tensor_split", "unbind",
    "vsplit", "vstack",
]  # fmt: skip


def _tensor_list(function: str, tensors: Any) -> list[Tensor]:
    """The argument `tensors` of a function, after checking that it is a sequence of tensors."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    for i, item in enumerate(tensors):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"{function}(): expected Tensor as element {i} in argument 0, but got "
                f"{type(item).__name__}"
            )
    return list(tensors)


def _several(args: tuple) -> list:
    """Tensors given one by one or as one sequence."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)


# Joining -----------------------------------------------------------------------------------------


def _is_legacy_empty(shape: tuple[int, ...]) -> bool:
    """Whether `cat` passes over a tensor of this shape, whatever the shape of the others."""
    return shape == (0,)


def _cat(xp: Any, arrays: list, dim: int, sizes: tuple[int, ...]) -> Any:
    dtype = arrays[0].dtype
    if -1 not in sizes and all(a.dtype is dtype for a in arrays):
        return xp.asarray(xp.concatenate(arrays, dim), order="C")
    out = xp.empty(_cat_shape(arrays, dim, sizes), result_dtype(arrays))
    used = [a for a in arrays if not _is_legacy_empty(a.shape)] or arrays
    xp.concatenate(used, dim, out=out, casting="unsafe")
    return out


def _cat_shape(arrays: list, dim: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    shapes = [a.shape for a in arrays]
    shape = next((s for s in shapes if not _is_legacy_empty(s)), shapes[0])
    return (*shape[:dim], sum([n for n in sizes if n > 0]), *shape[dim + 1 :])


def _cat_parts(g: Tensor, dim: int, sizes: tuple[int, ...]) -> list[Tensor]:
    state = thread_state()
    if not state.grad_enabled and not state.layers and -1 not in sizes:
        arrays = ndarrays.cut(g.array, dim, list(sizes))
        if arrays is not None:  # views without a base, which nobody asks for
            return [wrap_as(array, state.inference) for array in arrays]
    parts = []
    start = 0
    for n in sizes:
        if n < 0:
            parts.append(new_zeros.call((g, (0,))))
        else:
            parts.append(slice_.call((g, dim, start, start + n, 1)))
            start += n
    return parts


cat_ = linear(
    "_cat(Tensor[] tensors, int dim, int[] sizes) -> Tensor",
    _cat,
    lambda g, dim, sizes: _cat_parts(g, dim, sizes),
    guarded=False,
    meta=lambda arrays, *args: meta.empty(_cat_shape(arrays, *args), result_dtype(arrays)),
    batch=batched.cat,
    doc="Tensors joined along `dim`, where they have the given sizes, -1 for one to pass over.",
)


@composite(public="function")
def cat(
    tensors: Any, dim: int = 0, *, axis: int | None = None, out: Tensor | None = None
) -> Tensor:
    """Tensors joined along an existing dimension."""
    items = _tensor_list("cat", tensors)
    if not items:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    dim, sizes = _cat_sizes([item.array.shape for item in items], dim if axis is None else axis)
    result = cat_.call((items, dim, sizes))
    if out is None:
        return result
    if isinstance(out, Tensor) and not can_cast(result.dtype, out.dtype):
        raise TypeError(
            "torch.cat(): input types can't be cast to the desired output type "
            f"{out.dtype.scalar_name}: they give {result.dtype}"
        )
    return copy_to_out("cat", result, out, items)


def _cat_sizes(shapes: list[tuple], dim: int) -> tuple[int, tuple[int, ...]]:
    """The dimension to join along, and each tensor's size there, -1 for one to pass over."""
    for i, shape in enumerate(shapes):
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    first = next((shape for shape in shapes if not _is_legacy_empty(shape)), (0,))
    dim = wrap_dim(dim, len(first))
    if shapes.count(first) == len(shapes):
        return dim, (first[dim],) * len(shapes)
    sizes = []
    for i, shape in enumerate(shapes):
        if _is_legacy_empty(shape):
            sizes.append(0 if len(first) == 1 else -1)
            continue
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
            )
        for k, (n, other) in enumerate(zip(shape, first, strict=True)):
            if n != other and k != dim:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {other} "
                    f"but got size {n} for tensor number {i} in the list."
                )
        sizes.append(shape[dim])
    return dim, tuple(sizes)


@composite(public="function")
def concat(
    tensors: Any, dim: int = 0, *, axis: int | None = None, out: Tensor | None = None
) -> Tensor:
    """Tensors joined along an existing dimension: another name of cat()."""
    return cat(tensors, dim, axis=axis, out=out)


concatenate = concat


def _stack_shape(arrays: list, dim: int) -> tuple[int, ...]:
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = arrays[0].shape
    for i, array in enumerate(arrays):
        if array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {shape_text(first)} at entry "
                f"0 and {shape_text(array.shape)} at entry {i}"
            )
    dim = wrap_dim(dim, len(first) + 1)
    return (*first[:dim], len(arrays), *first[dim:])


def _stack(xp: Any, arrays: list, dim: int) -> Any:
    out = xp.empty(_stack_shape(arrays, dim), result_dtype(arrays))
    dim = wrap_dim(dim, out.ndim)
    for i, array in enumerate(arrays):
        out[at(dim, i)] = array
    return out


stack = linear(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    _stack,
    lambda g, dim: unbind.call((g, dim)),
    meta=lambda arrays, dim: meta.empty(_stack_shape(arrays, dim), result_dtype(arrays)),
    batch=batched.stack,
    doc="Tensors of one shape joined along a new dimension.",
    out="casts",
    public="function",
)


@composite(public="function")
def atleast_1d(*tensors: Any) -> Any:
    """Tensors with at least one dimension; one tensor for one, a tuple for several."""
    return _each(tensors, lambda x: x if x.array.ndim else reshape(x, (1,)))


@composite(public="function")
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least two dimensions, new ones in front."""
    return _each(tensors, _two_dims)


@composite(public="function")
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least three dimensions; the last is new in a matrix, both in a vector."""
    return _each(tensors, _three_dims)


def _each(args: tuple, function: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Tensor):
        return function(args[0])
    return tuple([function(item) for item in _several(args)])


def _two_dims(x: Tensor) -> Tensor:
    if x.array.ndim == 0:
        return reshape(x, (1, 1))
    return unsqueeze.call((x, 0)) if x.array.ndim == 1 else x


def _three_dims(x: Tensor) -> Tensor:
    if x.array.ndim == 0:
        return reshape(x, (1, 1, 1))
    if x.array.ndim == 1:
        x = unsqueeze.call((x, 0))
    return unsqueeze.call((x, -1)) if x.array.ndim == 2 else x


def _stacked(name: str, tensors: Any, prepare: Any, dim: int, out: Tensor | None) -> Tensor:
    items = [prepare(item) for item in _tensor_list(name, tensors)]
    if not items:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return cat(items, min(dim, items[0].array.ndim - 1), out=out)


@composite(public="function")
def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the second dimension, vectors along their only one."""
    return _stacked("hstack", tensors, atleast_1d, 1, out)


@composite(public="function")
def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the first dimension, vectors as rows."""
    return _stacked("vstack", tensors, atleast_2d, 0, out)


row_stack = vstack


@composite(public="function")
def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the third dimension."""
    return _stacked("dstack", tensors, atleast_3d, 2, out)


@composite(public="function")
def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the second dimension, vectors as columns."""
    return _stacked(
        "column_stack",
        tensors,
        lambda x: x if x.array.ndim > 1 else reshape(x, (x.array.size, 1)),
        1,
        out,
    )


def _corners(heights: tuple[int, ...], widths: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """Where the blocks of a block-diagonal matrix are."""
    keys = []
    row = column = 0
    for height, width in zip(heights, widths, strict=True):
        keys.append((slice(row, row + height), slice(column, column + width)))
        row, column = row + height, column + width
    return keys


def _blocks(
    g: Tensor, heights: tuple[int, ...], widths: tuple[int, ...], dims: tuple[int, ...]
) -> list[Tensor]:
    """The parts of a matrix that its blocks fill, in the shapes of the operands."""
    blocks = []
    for (r, c), ndim in zip(_corners(heights, widths), dims, strict=True):
        block = slice_.call((slice_.call((g, 0, r.start, r.stop, 1)), 1, c.start, c.stop, 1))
        blocks.append(block if ndim == 2 else reshape(block, (c.stop - c.start,)[:ndim]))
    return blocks


def _block_diag(
    xp: Any,
    arrays: list,
    heights: tuple[int, ...],
    widths: tuple[int, ...],
    dims: tuple[int, ...],
) -> Any:
    out = xp.zeros((sum(heights), sum(widths)), result_dtype(arrays))
    for array, key in zip(arrays, _corners(heights, widths), strict=True):
        out[key] = array
    return out


block_diag_ = linear(
    "_block_diag(Tensor[] tensors, int[] heights, int[] widths, int[] dims) -> Tensor",
    _block_diag,
    lambda g, heights, widths, dims: _blocks(g, heights, widths, dims),
    meta=lambda arrays, heights, widths, dims: meta.empty(
        (sum(heights), sum(widths)), result_dtype(arrays)
    ),
    batch=batched.block_diag,
    doc="A matrix with the given matrices along its diagonal.",
)


@composite(public="function")
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices, rows and numbers along its diagonal."""
    items = _several(tensors)
    if not items:
        return zeros((1, 0))
    for i, item in enumerate(_tensor_list("block_diag", items)):
        if item.array.ndim > 2:
            raise RuntimeError(
                "block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{i} has {item.array.ndim} dimensions"
            )
    shapes = [item.array.shape for item in items]
    heights, widths = zip(*[((1, 1) + shape)[-2:] for shape in shapes], strict=True)
    return block_diag_.call((items, heights, widths, tuple([len(shape) for shape in shapes])))


# Taking apart ------------------------------------------------------------------------------------


def _parts(operator: Operator) -> Operator:
    """Mark an operator that returns any number of tensors, as a tuple, all from one node."""
    operator.outputs = 0
    return operator


def _cut(xp: Any, x: Any, dim: int, sizes: Any) -> list:
    parts = ndarrays.cut(x, dim, list(sizes))
    if parts is not None:
        return parts
    parts = []
    start = 0
    for n in sizes:
        parts.append(sliced(x, dim, start, start + n, 1))
        start += n
    return parts


def _unbind(xp: Any, x: Any, dim: int) -> list:
    if not x.ndim:
        wrap_dim(dim, 0)
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, x.ndim)
    return [x[at(dim, i)] for i in range(x.shape[dim])]


unbind: Operator = _parts(
    linear(
        "unbind(Tensor(a) self, int dim=0) -> Tensor(a)[]",
        _unbind,
        lambda g, dim: stack.call((g, dim)),
        view=True,
        batch=parts_rule(removes=True),
        doc="All parts along one dimension, without it.",
        overload="int",
    )
)


def _split(xp: Any, x: Any, split_size: int, dim: int) -> list:
    if not x.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    dim = wrap_dim(dim, x.ndim)
    length = x.shape[dim]
    if split_size == 0 and length:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}"
        )
    count = max(1, -(-length // split_size)) if split_size else 1
    return _cut(xp, x, dim, [split_size] * count)


def _join_parts(parts: list[Tensor], dim: int) -> Tensor:
    """The gradients of all parts as the gradient of the whole."""
    dim %= parts[0].array.ndim
    return cat_.call((parts, dim, tuple([part.array.shape[dim] for part in parts])))


split_ = _parts(
    linear(
        "split(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]",
        _split,
        lambda g, dim: _join_parts(g, dim),
        view=True,
        batch=parts_rule(removes=False),
        doc="Parts of one size along a dimension; the last may be smaller.",
        overload="Tensor",
    )
)


def _split_with_sizes(xp: Any, x: Any, split_sizes: tuple[int, ...], dim: int) -> list:
    if not x.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, x.ndim)
    if any(n < 0 for n in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={shape_text(split_sizes)}"
        )
    if sum(split_sizes) != x.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {x.shape[dim]} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={shape_text(split_sizes)}"
        )
    return _cut(xp, x, dim, split_sizes)


split_with_sizes = _parts(
    linear(
        "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
        _split_with_sizes,
        lambda g, dim: cat(g, dim),
        view=True,
        batch=parts_rule(removes=False),
        doc="Parts of the given sizes along a dimension.",
    )
)


def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Parts along a dimension: of one size, or of the given sizes."""
    sizes = split_size_or_sections if split_size is None else split_size
    if sizes is None:
        raise TypeError('split() missing 1 required positional arguments: "split_size"')
    if isinstance(sizes, (tuple, list)):
        return split_with_sizes(tensor, sizes, dim)
    return split_(tensor, sizes, dim)


def chunk(input: Tensor, chunks: int, dim: int = 0, *, axis: int | None = None) -> tuple:
    """At most `chunks` parts along a dimension, all of one size but perhaps the last."""
    if not input.array.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim if axis is None else axis, input.array.ndim)
    length = input.array.shape[dim]
    if not length:
        return split_with_sizes.call((input, (0,) * chunks, dim))
    return split_.call((input, -(-length // chunks), dim))


def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    sections: int | None = None,
    indices: Any = None,
) -> tuple[Tensor, ...]:
    """Parts along a dimension: so many of nearly one size, or those between the given indices."""
    given = indices_or_sections
    for keyword in (sections, indices):
        given = keyword if given is None else given
    given = given.tolist() if isinstance(given, Tensor) else _number_of_parts(given)
    if not isinstance(given, (int, tuple, list)):
        raise TypeError(
            "tensor_split(): argument 'indices_or_sections' must be an int, ints or a Tensor, not "
            f"{type(given).__name__}"
        )
    if not input.array.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got 0-d")
    dim = wrap_dim(dim, input.array.ndim)
    length = input.array.shape[dim]
    if isinstance(given, (tuple, list)):
        ends = [*given, length]
    else:
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        small, larger = divmod(length, given)
        ends = [small * (i + 1) + min(i + 1, larger) for i in range(given)]
    starts = [0, *ends[:-1]]
    return tuple([slice_.call((input, dim, s, e, 1)) for s, e in zip(starts, ends, strict=True)])


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along the second dimension, of a vector along its only one."""
    if not input.array.ndim:
        raise RuntimeError(
            "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 "
            "dimensions!"
        )
    return _even_split("hsplit", input, indices_or_sections, min(1, input.array.ndim - 1))


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along the first dimension."""
    return _even_split("vsplit", _at_least("vsplit", input, 2), indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along the third dimension."""
    return _even_split("dsplit", _at_least("dsplit", input, 3), indices_or_sections, 2)


def _at_least(name: str, input: Tensor, ndim: int) -> Tensor:
    if input.array.ndim < ndim:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {ndim} dimension, but got a tensor with "
            f"{input.array.ndim} dimensions!"
        )
    return input


def _even_split(name: str, input: Tensor, given: Any, dim: int) -> tuple[Tensor, ...]:
    length, given = input.array.shape[dim], _number_of_parts(given)
    if not isinstance(given, (int, tuple, list)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, "
            f"{type(given).__name__}), but 'indices_or_sections' must be an int or ints"
        )
    if isinstance(given, int) and (given <= 0 or length % given):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the "
            f"dimension {length} is not divisible by the split_size {given}!"
        )
    return tensor_split(input, given, dim)


def _number_of_parts(given: Any) -> Any:
    """A whole number of another type, NumPy's or a tensor without dimensions, as an int."""
    is_number = hasattr(given, "__index__") and not getattr(given, "shape", ())
    return python_operator.index(given) if is_number else given


# Tensors made to fit each other ------------------------------------------------------------------


@composite(public="function")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors expanded to their common shape."""
    items = _tensor_list("broadcast_tensors", _several(tensors))
    shape = broadcast_shape("broadcast_tensors", [item.array for item in items])
    return tuple([x if x.array.shape == shape else expand.call((x, shape, False)) for x in items])


@composite(public="function")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Vectors expanded to the grid they span, one tensor of coordinates for each."""
    items = _tensor_list("meshgrid", _several(tensors))
    if indexing is None:
        warn_user(
            "meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
        )
        indexing = "ij"
    if not items:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    for item in items:
        if item.array.ndim > 1:
            raise RuntimeError(
                "meshgrid: Expected 0D or 1D tensor in the tensor list but got one of shape "
                f"{shape_text(item.array.shape)}"
            )
        if item.array.dtype != items[0].array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swapped = indexing == "xy" and len(items) > 1
    if swapped:
        items[:2] = items[1], items[0]
    shape = tuple([item.array.size for item in items])
    grids = []
    for i, item in enumerate(items):
        single = tuple([-1 if k == i else 1 for k in range(len(items))])
        grids.append(expand.call((view_.call((item, single)), shape, False)))
    if swapped:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


@composite(public="function")
def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of the elements of vectors, one per row."""
    items = _tensor_list("cartesian_prod", _several(tensors))
    for item in items:
        if item.array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {shape_text(item.array.shape)}")
    if len(items) == 1:
        return items[0]
    grids = meshgrid(*items, indexing="ij")
    return stack([reshape(grid, (-1,)) for grid in grids], 1)
