"""Indexing with brackets: views for what is basic, `index` and `index_put` for tensors of indices.

Integers select, slices narrow and None adds a dimension, each as a view; the tensors left over go
to one gathering or scattering operator. A dimension selected by an integer is gone before tensors
are looked at, so unlike in NumPy it has no influence on where their dimensions appear.
"""

from __future__ import annotations

import operator as python_operator
from typing import Any

import numpy as np

from ..backends import meta, row_loops
from ..backends.backend import backend_of, has_elements, is_array
from ..backends.casting import retype
from ..backends.layout import copied, dense_strides, expanded_strides
from ..backends.running import gathered
from ..core import dtypes
from ..core.arrays import is_batched, made_here
from ..core.errors import broadcast_error, shape_text, warn_user
from ..core.numbers import check_number
from ..core.registry import operator_named, replace
from ..core.tensor import Tensor, wrap
from ..creation.conversion import tensor as make_tensor
from ..dispatch.base_operator import present
from ..dispatch.declaration import any_foreign, arrays_of
from ..dispatch.inplace import InplaceOperator
from ..dispatch.operator import Operator
from ..dispatch.overlap import check_not_overlapping, check_sources, is_expanded
from ..transforms.batching import indexing as batched
from ..transforms.batching.views import in_place
from . import views
from .declare import linear, nondifferentiable, primitive
from .pointwise import zeros_like
from .shapes import as_first

__all__ = ["index", "index_put", "index_put_"]

INTEGER_TYPES = (dtypes.int64.numpy, dtypes.int32.numpy)
_MASK_TYPES = (dtypes.bool.numpy, dtypes.uint8.numpy)
_INDEX_TYPES = (*INTEGER_TYPES, *_MASK_TYPES)
_UNSIGNED = {4: np.dtype("uint32"), 8: np.dtype("uint64")}
# Below this many elements numpy.add.at is done before flat positions are computed.
_SMALL = 512
# A longer list is always data, never a list of separate indices.
_MOST_SEPARATE_INDICES = 32


# Arrays of indices --------------------------------------------------------------------------------


def array_key(x: Any, indices: list) -> tuple:
    """The NumPy key for `indices`, one per dimension of `x` and None for a whole one.

    A mask stands for as many dimensions as it has.
    """
    key = []
    dim = 0
    for index in indices:
        if index is None:
            key.append(slice(None))
            dim += 1
            continue
        if index.dtype not in _INDEX_TYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if index.dtype in _MASK_TYPES:
            _check_mask(x, index, dim)
            key.append(index.astype(bool, copy=False))
            dim += index.ndim
        else:
            key.append(index)
            dim += 1
    if dim > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim} (got {dim})")
    if not x.size:
        _check_empty(x, key)
    return tuple(key)


def _check_empty(x: Any, key: list) -> None:
    """Refuse indices into a dimension without any, which NumPy checks only for some results."""
    dim = 0
    for index in key:
        if isinstance(index, slice) or index.dtype.kind != "b":
            if not isinstance(index, slice) and index.size and not x.shape[dim]:
                raise IndexError(
                    f"index is out of bounds for dimension with size 0: dimension {dim} of "
                    f"{shape_text(x.shape)} has nothing to select"
                )
            dim += 1
        else:
            dim += index.ndim


def _check_mask(x: Any, mask: Any, dim: int) -> None:
    for i, length in enumerate(mask.shape):
        if dim + i >= x.ndim or x.shape[dim + i] != length:
            raise IndexError(
                f"The shape of the mask {shape_text(mask.shape)} at index {i} does not match the "
                f"shape of the indexed tensor {shape_text(x.shape)} at index {dim + i}"
            )


def check_range(index: Any, dim: int, length: int, name: str = "", error: Any = None) -> None:
    """Refuse indices outside of 0 to `length`; NumPy would count negative ones from the end."""
    # Seen as unsigned, a negative index is larger than any length.
    if index.size and index.view(_UNSIGNED[index.dtype.itemsize]).max().item() >= length:
        wrong = index[(index < 0) | (index >= length)].reshape(-1)[0].item()
        raise (error or RuntimeError)(
            f"{name}index {wrong} is out of bounds for dimension {dim} with size {length}"
        )


def index_error(error: IndexError, key: tuple) -> IndexError:
    """NumPy's complaint about a key, in the words used for tensors."""
    text = str(error)
    if text.startswith("shape mismatch"):
        shapes = [
            (each.sum().item(),) if each.dtype.kind == "b" else each.shape
            for each in key
            if is_array(each)
        ]
        return IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(shape_text(shape) for shape in shapes)
        )
    if text.startswith("cannot do a non-empty take"):
        return IndexError("index is out of bounds for dimension with size 0")
    return IndexError(text.replace("for axis", "for dimension"))


def add_at(xp: Any, out: Any, key: tuple, values: Any) -> None:
    """`out[key] += values`, where a position that occurs several times counts each time."""
    if len(key) == 1 and _is_mask(key[0]):
        out[key] += values
        return
    if getattr(values, "size", 1) < _SMALL or not out.flags.c_contiguous:
        xp.add.at(out, key, values)
        return
    covered = sum(each.ndim if _is_mask(each) else 1 for each in key)
    rows = xp.arange(_product(out.shape[:covered])).reshape(out.shape[:covered])[key]
    add_rows(xp, out, rows, xp.broadcast_to(values, rows.shape + out.shape[covered:]))


def add_rows(xp: Any, out: Any, rows: Any, values: Any) -> None:
    """Add `values` to the given rows of a contiguous array, seen as a matrix of so many columns."""
    if not rows.size or not values.size:
        return
    if row_loops.add_rows(out, rows, values):
        return
    width = values.size // rows.size
    positions = rows.reshape(-1)
    if width != 1:
        positions = (positions[:, None] * width + xp.arange(width)).reshape(-1)
    xp.add.at(out.reshape(-1), positions, values.reshape(-1))


def _is_mask(index: Any) -> bool:
    return is_array(index) and index.dtype.kind == "b"


def _product(lengths: tuple[int, ...]) -> int:
    total = 1
    for length in lengths:
        total *= length
    return total


# index and index_put ------------------------------------------------------------------------------


def _index(xp: Any, x: Any, indices: list) -> Any:
    key = array_key(x, indices)
    last = key[-1]
    try:
        if (
            last.dtype.kind != "b"
            and last.ndim
            and x.flags.c_contiguous
            and last.flags.c_contiguous
            and _only_last(key)
        ):
            return x.take(last, len(key) - 1)
        out = xp.asarray(x[key])
    except IndexError as error:
        raise index_error(error, key) from None
    if not (x.flags.c_contiguous and all(_in_rows(each) for each in key)):
        ordered = backend_of(x).empty_strided(out.shape, _index_strides(x, key, out), out.dtype, x)
        ordered[...] = out
        return ordered
    only_points = all(isinstance(each, slice) or each.ndim == 0 for each in key)
    return out.copy() if only_points or not out.flags.c_contiguous else out


def _in_rows(index: Any) -> bool:
    """Whether an item of a key has no order of dimensions of its own."""
    return isinstance(index, slice) or index.dtype.kind == "b" or index.flags.c_contiguous


def _index_strides(x: Any, key: tuple, out: Any) -> tuple[int, ...]:
    """Strides of the result: whole dimensions, and those of indices, keep their orders."""
    kept, places, dim = [], [], 0
    for place, each in enumerate(key):
        if isinstance(each, slice):
            kept.append(x.strides[dim])
        else:
            places.append(place)
        dim += each.ndim if _is_mask(each) else 1
    kept += x.strides[dim:]
    gathered = out.ndim - len(kept)
    together = places[-1] - places[0] < len(places)
    first = places[0] if together else 0
    last = first + gathered
    shape: tuple[int, ...] = out.shape
    steps = [kept[:first] + [0] * gathered + kept[first:]]
    for each in (key[place] for place in places):
        if not _is_mask(each):
            inner = expanded_strides(each, shape[first:last])
            # A dimension of one row is not broadcast: it lies around the indices, or within them.
            outer = each.size * each.itemsize
            around = [outer if n == 1 else 0 for n in shape[:first]]
            within = [each.itemsize if n == 1 else 0 for n in shape[last:]]
            steps.append(around + inner + within)
    return dense_strides(shape, steps, out.itemsize)


def _only_last(key: tuple) -> bool:
    """Whether all dimensions before the last of a key are whole ones."""
    return len(key) == 1 or all(isinstance(each, slice) for each in key[:-1])


def refuse_meta(name: str) -> Any:
    """The rule for shape-only arrays of an operator whose result has no shape without data."""

    def rule(*args: Any) -> Any:
        raise NotImplementedError(
            f"{name}(): the values decide the shape of the result, and tensors on the meta device "
            "have none"
        )

    return rule


def _has_masks(indices: list) -> bool:
    return any(each is not None and each.dtype in _MASK_TYPES for each in indices)


def _index_meta(x: Any, indices: list) -> Any:
    if _has_masks(indices):
        return refuse_meta("index")()
    return meta.general(_index, (x, indices))


def _index_backward(xp: Any, g: Any, size: tuple, indices: list) -> Any:
    out = xp.zeros(size, g.dtype)
    add_at(xp, out, array_key(out, indices), g)
    return out


index = linear(
    "index(Tensor self, Tensor?[] indices) -> Tensor",
    _index,
    lambda g, self_shape, indices: index_backward.call((g, self_shape, indices)),
    meta=_index_meta,
    batch=batched.index,
    raises="values",
    doc="The elements at given indices: one tensor of indices, or None, per dimension.",
    overload="Tensor",
    public="method",
)
index_sum: Operator = linear(
    "_index_sum(Tensor self, Tensor?[] indices, int[] size) -> Tensor",
    lambda xp, x, indices, size: _sum_to(xp, _index(xp, x, indices), size),
    lambda g, self_shape, indices: index_backward.call((g, self_shape, indices)),
    widens=True,
    meta=lambda x, indices, size: meta.empty(size, x.dtype),
    batch=batched.index_sum,
    doc="The elements at given indices, summed where a tensor of `size` would broadcast to them.",
)
index_backward: Operator = linear(
    "_index_backward(Tensor grad, int[] size, Tensor?[] indices) -> Tensor",
    _index_backward,
    lambda g, indices: index.call((g, indices)),
    widens=True,
    meta=lambda g, size, indices: meta.empty(size, g.dtype),
    batch=batched.index_backward,
    doc="Zeros of a size with a gradient added at the given indices.",
)


def _sum_to(xp: Any, x: Any, size: tuple) -> Any:
    extra = x.ndim - len(size)
    if extra:
        x = x.sum(tuple(range(extra)))
    ones = tuple([i for i, n in enumerate(size) if n == 1 and x.shape[i] != 1])
    return x.sum(ones, keepdims=True) if ones else x


def _index_put_meta(x: Any, indices: list, values: Any, accumulate: bool) -> Any:
    if _has_masks(indices):
        return meta.like(x)
    return meta.sampled(index_put.kernel, as_first, x, indices, values, accumulate)


def _index_put(xp: Any, out: Any, indices: list, values: Any, accumulate: bool) -> None:
    key = array_key(out, indices)
    if not accumulate and values.size == 1 and _is_masked_fill(indices, values, out):
        values = values.astype(out.dtype, copy=False)
    if values.dtype != out.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{dtypes.from_numpy(out.dtype).scalar_name} for the destination and "
            f"{dtypes.from_numpy(values.dtype).scalar_name} for the source."
        )
    try:
        if accumulate:
            add_at(xp, out, key, values)
        else:
            out[key] = values
    except IndexError as error:
        raise index_error(error, key) from None
    except (TypeError, ValueError):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {shape_text(values.shape)} cannot be broadcast "
            f"to indexing result of shape {shape_text(out[key].shape)}"
        ) from None


def _is_masked_fill(indices: list, values: Any, target: Any) -> bool:
    """Whether one value is written where one mask says so; then it may be of another dtype."""
    given = [each for each in indices if each is not None]
    loses = values.dtype.kind == "c" and target.dtype.kind != "c"
    return len(given) == 1 and given[0].dtype in _MASK_TYPES and not loses


class UpdateOperator(InplaceOperator):
    """In-place variant of an operator whose kernel writes into its first array.

    `to_expanded` allows a target whose elements share memory, with a warning, and `from_itself`
    a source that shares memory with the target.
    """

    def __init__(
        self, functional: Any, schema: Any, write: Any, to_expanded: bool, from_itself: bool
    ) -> None:
        InplaceOperator.__init__(self, functional, schema)
        self.update = write
        self.to_expanded = to_expanded
        self.from_itself = from_itself

    def write(self, target: Tensor, args: tuple) -> None:
        if not has_elements(target.array):
            InplaceOperator.write(self, target, args)
            return
        backend = backend_of(target.array)
        arrays = arrays_of(args)
        if any_foreign(args):
            arrays = gathered(backend, self.functional, arrays, target.array)
        self._check_memory(arrays)
        token = backend.silence()
        try:
            self.update(backend.xp, *arrays)
        except ValueError as error:
            raise broadcast_error(self.name, arrays, error) from None
        finally:
            backend.restore(token)

    def _check_memory(self, arrays: tuple) -> None:
        if not self.from_itself:
            # a single value to fill with is read before anything is written
            fills = "value" in self.schema.names or (
                self.name == "index_put_" and _is_masked_fill(arrays[1], arrays[2], arrays[0])
            )
            sources = [a for a in arrays[1:] if not (fills and getattr(a, "ndim", 1) == 0)]
            check_sources(self.name, arrays[0], sources, apart=True)
        if not self.to_expanded:
            check_not_overlapping(self.name, arrays[0])
        elif is_expanded(arrays[0]):
            warn_user(
                f"Use of {self.name} on expanded tensors is deprecated: several elements are one "
                "in memory. Write to a clone() of it",
            )


present(UpdateOperator)


def update(
    schema: str,
    write: Any,
    vjp: Any,
    jvp: Any,
    kernel: Any = None,
    *,
    to_expanded: bool = False,
    from_itself: bool = False,
    keeps_order: bool = False,
    **options: Any,
) -> Any:
    """Declare an operator by how it writes into an array: into a copy, or in place for ``name_``.

    `kernel` is needed only where the result can be larger than what is written into. The copy is
    in row-major order, unless it `keeps_order`.
    """

    def write_copy(xp: Any, x: Any, *args: Any) -> Any:
        out = copied(x) if keeps_order else x.copy("C")
        write(xp, out, *args)
        return out

    functional = primitive(schema, kernel or write_copy, vjp, jvp, inplace=True, **options)
    derived = operator_named(functional.name + "_")
    replace(UpdateOperator(functional, derived.schema, write, to_expanded, from_itself))
    return functional


def tangent_of(tangents: dict, name: str, value: Any) -> Any:
    """The tangent of an argument, zeros in its place where it has none."""
    if name in tangents:
        return tangents[name]
    return zeros_like(value) if isinstance(value, Tensor) else 0


def _without(g: Tensor, indices: list) -> Tensor:
    """The gradient with zeros where `indices` point."""
    zero = made_here(wrap(np.zeros((), g.array.dtype)))
    return index_put.call((g, indices, zero, False))


index_put: Operator = update(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    _index_put,
    {
        "self": lambda g, indices, accumulate: g if accumulate else _without(g, indices),
        "values": lambda g, indices, values_shape: index_sum.call((g, indices, values_shape)),
    },
    lambda tangents, self, indices, values, accumulate: index_put.call(
        (
            tangent_of(tangents, "self", self),
            indices,
            tangent_of(tangents, "values", values),
            accumulate,
        )
    ),
    meta=_index_put_meta,
    to_expanded=True,
    keeps_order=True,
    batch=batched.index_put,
    raises="values",
    doc="The tensor with `values` written at, or added to, the given indices.",
)
index_put_ = operator_named("index_put_")
alias = linear(
    "alias(Tensor(a) self) -> Tensor(a)",
    lambda xp, x: x.view(),
    lambda g: g,
    view=True,
    batch=in_place,
    doc="The whole tensor as a view.",
)
linear(
    "_primal(Tensor(a) self) -> Tensor(a)",
    lambda xp, x: x.view(),
    lambda g: g,
    view=True,
    name="Identity",
    batch=in_place,
    doc="The whole tensor as the view that unpack_dual() calls its primal.",
)
detach = nondifferentiable(
    "detach(Tensor(a) self) -> Tensor(a)",
    lambda xp, x: x,
    meta=lambda x: x,
    batch=in_place,
    doc="A view of this memory outside the graph, where a class or a mode is to see that.",
)


# Brackets -----------------------------------------------------------------------------------------


def getitem(tensor: Tensor, item: Any) -> Tensor:
    """`tensor[item]`."""
    kind = type(item)
    if kind is int:
        return _select(tensor, 0, item)
    if kind is slice and tensor.array.ndim:
        return views.slice_.call((tensor, 0, *_bounds(item, tensor.array.shape[0])))
    part, indices = _split(tensor, item)
    if indices and _selects_apart(indices):
        part, indices = _selected(part, indices)
    if indices:
        return index.call((part, indices))
    return alias.call((part,)) if part is tensor else part


def setitem(tensor: Tensor, item: Any, value: Any) -> None:
    """`tensor[item] = value` for a number, a tensor that broadcasts, or an array."""
    if item is False:
        return
    if item is True:
        item = None
    part, indices = _split(tensor, item)
    if indices and _selects_apart(indices):
        # Where each example writes is found by reading: positions from positions.
        places = made_here(wrap(np.arange(tensor.array.size).reshape(tensor.array.shape)))[item]
        value = _without_leading_ones(_values(tensor, value, indices), places.array.ndim)
        operator_named("put_").call((tensor, places, value.expand(places.array.shape), False))
        return
    if indices:
        index_put_.call((part, indices, _values(part, value, indices), False))
        return
    if isinstance(value, (int, float, complex)):
        value = _values(part, value, [])
    else:
        value = _as_tensor(tensor, value)
    shape = part.array.shape
    if not value.array.ndim and shape:
        operator_named("fill_").call((part, value))
        return
    if value.array.shape != shape:
        value = _without_leading_ones(value, 0, always=True)
        if value.array.shape != shape:
            value = value.expand(shape)
    operator_named("copy_").call((part, value, False))


def _values(target: Tensor, value: Any, indices: list) -> Tensor:
    """What is assigned through tensors of indices, a number in the type of the target."""
    if not isinstance(value, (int, float, complex)):
        converts = not isinstance(value, Tensor)
        value = _as_tensor(target, value)
        if converts or (
            value.array.size == 1
            and _is_masked_fill(list(arrays_of(tuple(indices))), value.array, target.array)
        ):
            kind = dtypes.from_numpy(target.array.dtype)
            if not converts and has_elements(value.array):
                check_number(value.item(), kind)
            value = value.to(kind)
        return _without_leading_ones(value, 0)
    kind = dtypes.from_numpy(target.array.dtype)
    # a number too large for a 16-bit float becomes infinity
    check_number(value, dtypes.float64 if kind in (dtypes.float16, dtypes.bfloat16) else kind)
    return made_here(wrap(retype(np.asarray(value), kind)))


def _as_tensor(target: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return make_tensor(value)
    raise TypeError(
        f"can't assign a {type(value).__name__} to a tensor of type "
        f"{dtypes.from_numpy(target.array.dtype).name}"
    )


def _without_leading_ones(value: Tensor, ndim: int, always: bool = False) -> Tensor:
    """`value` without the leading dimensions of size one, as long as it has more than `ndim`.

    If it has none the result is `value` itself, unless a view is `always` wanted.
    """
    shape = value.array.shape
    extra = 0
    while len(shape) - extra > ndim and shape[extra] == 1:
        extra += 1
    return value.reshape(shape[extra:]) if extra or always else value


def _select(x: Tensor, dim: int, index: int) -> Tensor:
    shape = x.array.shape
    if dim >= len(shape):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a "
            "number"
            if not shape
            else f"too many indices for tensor of dimension {len(shape)}"
        )
    length = shape[dim]
    if not -length <= index < length:
        raise IndexError(
            f"index {index} is out of bounds for dimension {dim} with size {length}"
        )
    return views.select.call((x, dim, index + length if index < 0 else index))


def _bounds(item: slice, length: int) -> tuple[int, int, int]:
    """Start, end and step of a slice, within 0 and `length`."""
    if item.step is not None and python_operator.index(item.step) < 0:
        raise ValueError("step must be greater than zero")
    start, end, step = item.indices(length)
    return start, max(start, end), step


def _split(x: Tensor, item: Any) -> tuple[Tensor, list]:
    """The view that the basic part of an index makes, and tensors for its dimensions.

    In the list None stands for a whole dimension; it is empty where the view is all.
    """
    items = [_convert(each) for each in _items(item)]
    specified = sum(_dimensions(each) for each in items)
    ndim = x.array.ndim
    if specified > ndim:
        if ndim == 0 and type(items[0]) is int:
            _select(x, 0, 0)
        if ndim == 0 and type(items[0]) is slice:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    indices: list = []
    covered = 0
    dim = 0
    for each in items:
        kind = type(each)
        if kind is int:
            x = _select(x, dim, each)
            continue
        if kind is slice:
            bounds = _bounds(each, x.array.shape[dim])
            if bounds != (0, x.array.shape[dim], 1):
                x = views.slice_.call((x, dim, *bounds))
            dim += 1
            continue
        if each is Ellipsis:
            dim += ndim - specified
            continue
        if each is None or kind is bool:
            x = views.unsqueeze.call((x, dim))
            if each is None:
                dim += 1
                continue
            each = made_here(wrap(np.zeros(int(each), np.int64)))
        indices += [None] * (dim - covered)
        indices.append(each)
        dim += each.array.ndim if each.array.dtype in _MASK_TYPES else 1
        covered = dim
    return x, indices


def _selects(index: Any) -> bool:
    """Whether an index is one number for each example of a batch."""
    return index is not None and not index.array.ndim and index.array.dtype not in _MASK_TYPES


def _selects_apart(indices: list) -> bool:
    """Whether such an index, which takes its dimension away first, stands beside other tensors."""
    numbers = [_selects(each) for each in indices if each is not None]
    return any(numbers) and not all(numbers)


def _selected(x: Tensor, indices: list) -> tuple[Tensor, list]:
    """The part of `x` at one number for each example, and the indices of the other dimensions."""
    left: list = []
    for each in indices:
        if _selects(each):
            x = index.call((x, [None] * len(left) + [each]))
        else:
            left.append(each)
    while left[-1] is None:
        left.pop()
    return x, left


def _items(item: Any) -> tuple:
    """The parts of an index: a tuple's, or those of a list that cannot be one tensor of indices."""
    if isinstance(item, tuple):
        return item
    if isinstance(item, list) and len(item) < _MOST_SEPARATE_INDICES:
        separate = (slice, Tensor, np.ndarray, list, tuple, range, type(None), type(Ellipsis))
        if any(isinstance(each, separate) for each in item):
            warn_user(
                "a list that holds more than numbers is taken for a tuple of indices; write "
                "x[tuple(seq)] for that, or x[wengert.tensor(seq)] for a tensor of indices",
            )
            return tuple(item)
    return (item,)


def _convert(item: Any) -> Any:
    """One part of an index as an int, slice, bool, None, Ellipsis or tensor with dimensions.

    Inside vmap a tensor without dimensions may hold one index per example and stays a tensor.
    """
    if type(item) is int or type(item) is slice or item is None or item is Ellipsis:
        return item
    if isinstance(item, (bool, np.bool_)):
        return bool(item)
    if isinstance(item, np.ndarray):
        item = wrap(item.astype(np.int64) if item.dtype.kind == "f" else item)
    elif isinstance(item, (list, tuple, range)):
        item = make_tensor(list(item) or np.zeros(0, np.int64))
        if item.array.dtype.kind == "f":
            item = wrap(item.array.astype(np.int64))
    if not isinstance(item, Tensor):
        if not hasattr(item, "__index__"):
            raise (TypeError if isinstance(item, (str, bytes)) else IndexError)(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte tensors are "
                f"valid indices (got {type(item).__name__})"
            )
        return python_operator.index(item)
    if item.array.dtype not in _INDEX_TYPES and not (
        item.array.ndim == 0 and item.array.dtype.kind in "iu"
    ):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if item.array.dtype == dtypes.uint8.numpy:
        warn_user(
            "indexing with dtype wengert.uint8 is now deprecated, please use a dtype wengert.bool "
            "instead: it is taken for a mask",
        )
    if item.array.ndim or is_batched(item):
        return item
    return bool(item.item()) if item.array.dtype in _MASK_TYPES else int(item.item())


def _dimensions(item: Any) -> int:
    """How many dimensions of the tensor one part of an index takes up."""
    if item is None or item is Ellipsis or type(item) is bool:
        return 0
    if isinstance(item, Tensor) and item.array.dtype in _MASK_TYPES:
        return item.array.ndim
    return 1
