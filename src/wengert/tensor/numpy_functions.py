"""NumPy's functions for tensors, with NumPy's arguments and defaults.

Each stands for the function of `numpy` it is registered under. An argument that is not listed here
is refused by Python's own TypeError, and so is a function that is not registered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert

from ..core.dtypes import as_dtype
from ..core.tensor import Tensor, wrap

w: Any = wengert
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def serves(*names: str) -> Callable[[Callable], Callable]:
    """Register a function under names of NumPy's; errors about its arguments use the first."""

    def register(function: Callable) -> Callable:
        function.__qualname__ = f"numpy.{names[0]}"
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def as_tensor(value: Any) -> Tensor:
    """A tensor from any operand of a NumPy function."""
    return value if isinstance(value, Tensor) else wrap(np.asarray(value))


def as_operand(value: Any) -> Any:
    """A tensor in place of a NumPy array; tensors and numbers stay what they are."""
    return as_tensor(value) if isinstance(value, np.ndarray) else value


def _as_tensors(values: Sequence[Any]) -> list[Tensor]:
    return [as_tensor(value) for value in values]


def _dtype(dtype: Any) -> Any:
    return None if dtype is None else as_dtype(dtype)


def _axes(a: Tensor, axis: Any) -> tuple[int, ...]:
    """The axes to reduce over; None means all."""
    if axis is None:
        return tuple(range(a.dim()))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _floating(a: Tensor) -> Tensor:
    """Integers as NumPy averages them."""
    return a.double() if a.array.dtype.kind in "biu" else a


# Reductions ---------------------------------------------------------------------------------------


def _sums(name: str) -> None:
    @serves(name)
    def reduce(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        a = as_tensor(a)
        if name in ("mean", "nanmean"):
            a = _floating(a)
        return getattr(w, name)(a, _axes(a, axis), keepdims, dtype=_dtype(dtype))


for _name in ("sum", "mean", "nansum", "nanmean"):
    _sums(_name)


def _extrema(name: str, ours: str) -> None:
    @serves(name, ours)
    def reduce(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        a = as_tensor(a)
        return getattr(w, ours)(a, _axes(a, axis), keepdims)


for _name in ("max", "min"):
    _extrema(_name, "a" + _name)


def _deviations(name: str) -> None:
    @serves(name)
    def reduce(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
        a = _floating(as_tensor(a))
        return getattr(w, name)(a, _axes(a, axis), correction=ddof, keepdim=keepdims)


for _name in ("var", "std"):
    _deviations(_name)


def _truths(name: str) -> None:
    @serves(name)
    def reduce(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return getattr(w, name)(a, _axes(a, axis), keepdims).bool()


for _name in ("any", "all"):
    _truths(_name)


def _positions(name: str) -> None:
    @serves(name)
    def find(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        return getattr(w, name)(as_tensor(a), axis, keepdims)


for _name in ("argmax", "argmin"):
    _positions(_name)


@serves("prod")
def prod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    a = as_tensor(a)
    for each in sorted((i % a.dim() for i in _axes(a, axis)), reverse=True):
        a = w.prod(a, each, keepdims, dtype=_dtype(dtype))
    return a if a.dim() or dtype is None else a.to(_dtype(dtype))


@serves("count_nonzero")
def count_nonzero(a: Any, axis: Any = None) -> Tensor:
    return w.count_nonzero(as_tensor(a), _axes(a, axis))


@serves("ptp")
def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    axes = _axes(a, axis)
    return w.amax(a, axes, keepdims) - w.amin(a, axes, keepdims)


@serves("quantile")
def quantile(a: Any, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    a = _floating(as_tensor(a))
    level = q if isinstance(q, (int, float)) else as_tensor(q).to(a.dtype)
    return w.quantile(a, level, axis, keepdims)


@serves("percentile")
def percentile(a: Any, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    level = q if isinstance(q, Tensor) else np.asarray(q)
    return quantile(a, level / 100, axis, keepdims=keepdims)


@serves("median")
def median(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    return quantile(a, 0.5, axis, keepdims=keepdims)


@serves("average")
def average(a: Any, axis: int | None = None, weights: Any = None) -> Tensor:
    a = _floating(as_tensor(a))
    if weights is None:
        return a.mean(_axes(a, axis))
    weights = as_tensor(weights)
    if weights.shape != a.shape:
        if axis is None:
            raise TypeError("numpy.average() of a Tensor: axis must be given for these weights")
        weights = weights.reshape([-1] + [1] * (a.dim() - 1 - axis % a.dim()))
    axes = _axes(a, axis)
    return (a * weights).sum(axes) / weights.expand(a.shape).sum(axes)


@serves("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    x = _floating(as_tensor(x))
    if ord == "fro" or ord is None:
        return x.norm(2, None if axis is None else _axes(x, axis), keepdims)
    if len(_axes(x, axis)) != 1:
        raise TypeError("numpy.linalg.norm() of a Tensor: a matrix has its Frobenius norm only")
    return x.norm(ord, axis, keepdims)


# Along one axis -----------------------------------------------------------------------------------


def _scans(name: str) -> None:
    @serves(name)
    def scan(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        a = as_tensor(a)
        a, axis = (a.reshape(-1), 0) if axis is None else (a, axis)
        return getattr(a, name)(axis, dtype=_dtype(dtype))


for _name in ("cumsum", "cumprod"):
    _scans(_name)


@serves("sort")
def sort(a: Any, axis: int | None = -1) -> Tensor:
    return a.reshape(-1).sort().values if axis is None else a.sort(axis).values


@serves("argsort")
def argsort(a: Any, axis: int | None = -1) -> Tensor:
    return a.reshape(-1).argsort() if axis is None else a.argsort(axis)


@serves("diff")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    a = as_tensor(a)
    edges = []
    for edge in (prepend, append):
        if edge is not None:
            edge = as_tensor(edge).to(a.dtype)
            if not edge.dim():
                edge = edge.expand([1 if i == axis % a.dim() else m for i, m in enumerate(a.shape)])
        edges.append(edge)
    return w.diff(a, n, axis, *edges)


@serves("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    if x is None:
        return w.trapezoid(as_tensor(y), dx=dx, dim=axis)
    return w.trapezoid(as_tensor(y), as_tensor(x), dim=axis)


@serves("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    ordered = None if sorter is None else as_tensor(sorter)
    return w.searchsorted(as_tensor(a), as_tensor(v), side=side, sorter=ordered)


# Shapes -------------------------------------------------------------------------------------------

serves("reshape")(lambda a, shape: a.reshape(shape))
serves("ravel")(lambda a: a.reshape(-1))
serves("swapaxes")(lambda a, axis1, axis2: a.transpose(axis1, axis2))
serves("moveaxis")(lambda a, source, destination: a.movedim(source, destination))
serves("broadcast_to")(lambda array, shape: as_tensor(array).broadcast_to(shape))
serves("broadcast_arrays")(lambda *args: tuple(w.broadcast_tensors(*_as_tensors(args))))
serves("fliplr")(lambda m: m.fliplr())
serves("flipud")(lambda m: m.flipud())
serves("rot90")(lambda m, k=1, axes=(0, 1): m.rot90(k, axes))
serves("tril")(lambda m, k=0: m.tril(k))
serves("triu")(lambda m, k=0: m.triu(k))
serves("diag")(lambda v, k=0: v.diag(k))
serves("diagonal")(lambda a, offset=0, axis1=0, axis2=1: a.diagonal(offset, axis1, axis2))
serves("trace")(lambda a, offset=0, axis1=0, axis2=1: a.diagonal(offset, axis1, axis2).sum(-1))
serves("roll")(lambda a, shift, axis=None: a.roll(shift) if axis is None else a.roll(shift, axis))
serves("tile")(lambda A, reps: A.tile((reps,) if isinstance(reps, int) else tuple(reps)))
serves("squeeze")(lambda a, axis=None: a.squeeze() if axis is None else a.squeeze(axis))


@serves("transpose", "permute_dims")
def transpose(a: Any, axes: Any = None) -> Tensor:
    return a.permute(tuple(reversed(range(a.dim()))) if axes is None else tuple(axes))


@serves("expand_dims")
def expand_dims(a: Any, axis: Any) -> Tensor:
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = a.dim() + len(axes)
    for each in sorted(each % ndim for each in axes):
        a = a.unsqueeze(each)
    return a


@serves("flip")
def flip(m: Any, axis: Any = None) -> Tensor:
    return m.flip(_axes(m, axis))


@serves("repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    times = repeats if isinstance(repeats, int) else as_tensor(repeats)
    return a.repeat_interleave(times, dim=axis)


def _at_least(name: str) -> None:
    @serves(name)
    def raise_dimension(*arys: Any) -> Any:
        found = [getattr(w, name)(as_tensor(each)) for each in arys]
        return found[0] if len(found) == 1 else tuple(found)


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    _at_least(_name)


# Joining and splitting ----------------------------------------------------------------------------

serves("stack")(lambda arrays, axis=0: w.stack(_as_tensors(arrays), axis))
serves("vstack")(lambda tup: w.vstack(_as_tensors(tup)))
serves("hstack")(lambda tup: w.hstack(_as_tensors(tup)))
serves("dstack")(lambda tup: w.dstack(_as_tensors(tup)))
serves("column_stack")(lambda tup: w.column_stack(_as_tensors(tup)))


@serves("concatenate", "concat")
def concatenate(arrays: Any, axis: int | None = 0) -> Tensor:
    tensors = _as_tensors(arrays)
    if axis is None:
        return w.cat([tensor.reshape(-1) for tensor in tensors])
    return w.cat(tensors, axis)


@serves("append")
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    return concatenate([arr, values], axis)


@serves("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    where_to = indices_or_sections
    return list(ary.tensor_split(where_to if isinstance(where_to, int) else tuple(where_to), axis))


@serves("split")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


serves("vsplit")(lambda ary, indices_or_sections: split(ary, indices_or_sections, 0))
serves("hsplit")(
    lambda ary, indices_or_sections: split(ary, indices_or_sections, min(ary.dim() - 1, 1))
)
serves("dsplit")(lambda ary, indices_or_sections: split(ary, indices_or_sections, 2))


@serves("meshgrid")
def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    return tuple(w.meshgrid(*_as_tensors(xi), indexing=indexing))


# Products -----------------------------------------------------------------------------------------

serves("outer")(lambda a, b: w.outer(as_tensor(a).reshape(-1), as_tensor(b).reshape(-1)))
serves("vdot")(lambda a, b: w.vdot(as_tensor(a).reshape(-1), as_tensor(b).reshape(-1)))
serves("inner")(lambda a, b: w.inner(as_tensor(a), as_tensor(b)))
serves("kron")(lambda a, b: w.kron(as_tensor(a), as_tensor(b)))
serves("einsum")(lambda subscripts, *operands: w.einsum(subscripts, *_as_tensors(operands)))


@serves("dot")
def dot(a: Any, b: Any) -> Tensor:
    a, b = as_tensor(a), as_tensor(b)
    if not a.dim() or not b.dim():
        return a * b
    return a @ b if b.dim() <= 2 else w.tensordot(a, b, ([a.dim() - 1], [b.dim() - 2]))


@serves("tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    if not isinstance(axes, int):
        axes = [[each] if isinstance(each, int) else list(each) for each in axes]
    return w.tensordot(as_tensor(a), as_tensor(b), axes)


# Selection ----------------------------------------------------------------------------------------


@serves("where")
def where(condition: Any, *choices: Any) -> Any:
    return w.where(as_tensor(condition), *[as_operand(each) for each in choices])


@serves("clip")
def clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Tensor:
    low, high = [
        as_operand(first if second is None else second)
        for first, second in ((a_min, min), (a_max, max))
    ]
    a = as_tensor(a)
    if low is not None and isinstance(low, Tensor) != isinstance(high, Tensor):
        low, high = as_tensor(low), None if high is None else as_tensor(high)
    return a.clamp(low, high)


@serves("take")
def take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    index = as_tensor(indices)
    if axis is None:
        return a.reshape(-1)[index]
    return a[(slice(None),) * (axis % a.dim()) + (index,)]


@serves("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    return w.take_along_dim(as_tensor(arr), as_tensor(indices), axis)


serves("nonzero")(lambda a: tuple(a.nonzero(as_tuple=True)))
serves("argwhere")(lambda a: a.argwhere())


@serves("unique")
def unique(ar: Any, *, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return w.unique(ar, True, return_inverse, return_counts)


# Elements -----------------------------------------------------------------------------------------

serves("round", "around")(lambda a, decimals=0: a.round(decimals=decimals))
serves("real")(lambda val: val.real)
serves("imag")(lambda val: val.imag if val.is_complex() else w.zeros_like(val))
serves("angle")(lambda z: z.angle())
serves("copy")(lambda a: a.clone())


def _likes(name: str) -> None:
    @serves(name)
    def make(a: Any, dtype: Any = None) -> Tensor:
        return getattr(w, name)(a, dtype=_dtype(dtype))


for _name in ("zeros_like", "ones_like", "empty_like"):
    _likes(_name)


@serves("full_like")
def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    return w.full_like(a, fill_value, dtype=_dtype(dtype))


@serves("isclose")
def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    a = as_tensor(a)
    return w.isclose(a, as_tensor(b).to(a.dtype), rtol, atol, equal_nan)


@serves("allclose")
def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


@serves("array_equal")
def array_equal(a1: Any, a2: Any) -> bool:
    return w.equal(as_tensor(a1), as_tensor(a2))


serves("shape")(lambda a: tuple(a.shape))
serves("ndim")(lambda a: a.dim())
serves("size")(lambda a, axis=None: a.numel() if axis is None else a.shape[axis])
serves("iscomplexobj")(lambda x: x.is_complex())
serves("isrealobj")(lambda x: not x.is_complex())
