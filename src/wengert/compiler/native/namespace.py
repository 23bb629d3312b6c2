"""NumPy's functions on arrays of a graph: what kernels get as `xp` when they become loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backends.backend import BY_CLASS, Backend
from ...core.devices import CPU
from ...core.scalar import namespace as scalars
from ...core.scalar.expressions import Scalar, Unsupported, type_of
from ...core.scalar.functions import FUNCTIONS
from ...core.scalar.namespace import scalar_namespace
from .arrays import CheckedBuilder, SymbolicArray, gathered, pointwise, scattered, symbolic
from .products import product
from .running import NAMES as RUNNING


def builder_of(*args: Any) -> CheckedBuilder:
    """The builder of the arrays among arguments."""
    for a in args:
        if isinstance(a, SymbolicArray):
            return a.builder
        if isinstance(a, (list, tuple)) and any(isinstance(b, SymbolicArray) for b in a):
            return builder_of(*a)
    raise Unsupported("a function of what is known already")


def _elementwise(name: str) -> Callable[..., Any]:
    function = getattr(scalar_namespace, name)

    def call(*args: Any, out: Any = None, dtype: Any = None) -> Any:
        if not any(isinstance(a, SymbolicArray) for a in args):
            return getattr(np, name)(*args)
        how = function if dtype is None else lambda *xs: function(*xs, dtype=dtype)
        made = pointwise(builder_of(*args), how, args)
        return made if out is None else out._become(made)

    return call


def _reduction(name: str) -> Callable[..., Any]:
    def call(x: Any, axis: Any = None, **how: Any) -> Any:
        if not isinstance(x, SymbolicArray):
            return getattr(np, name)(x, axis=axis, **how)
        return getattr(x, {"amax": "max", "amin": "min"}.get(name, name))(axis, **how)

    return call


def concatenate(
    arrays: Sequence[Any],
    axis: int = 0,
    out: Any = None,
    dtype: Any = None,
    casting: str = "same_kind",
) -> SymbolicArray:
    if out is not None:
        return out._become(concatenate(arrays, axis, dtype=out.dtype))
    builder = builder_of(arrays)
    parts = [symbolic(builder, a) for a in arrays]
    kind = type_of(np.result_type(*[p.dtype for p in parts]) if dtype is None else np.dtype(dtype))
    ndim = parts[0].ndim
    axis %= ndim
    shape = list(parts[0].shape)
    shape[axis] = sum([p.shape[axis] for p in parts])
    placed, start = [], 0
    for part in parts:
        if part.ndim != ndim or any(
            a != b for d, (a, b) in enumerate(zip(part.shape, shape, strict=True)) if d != axis
        ):
            raise Unsupported("arrays that do not fit")
        stop = start + part.shape[axis]
        if stop > start:
            placed.append((part.value, (slice(None),) * axis + (slice(start, stop),)))
        start = stop
    return SymbolicArray(builder, builder.joined(placed, tuple(shape), kind))


def stack(arrays: Sequence[Any], axis: int = 0) -> SymbolicArray:
    builder = builder_of(arrays)
    return concatenate([expand_dims(symbolic(builder, a), axis) for a in arrays], axis)


def expand_dims(x: Any, axis: Any) -> Any:
    return x._viewed(lambda array: np.expand_dims(array, axis))


def _view(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def call(x: Any, *args: Any, **how: Any) -> Any:
        if not isinstance(x, SymbolicArray):
            return function(x, *args, **how)
        return x._viewed(lambda array: function(array, *args, **how))

    return call


def broadcast_to(x: Any, shape: Any) -> Any:
    if not isinstance(x, SymbolicArray):
        return np.broadcast_to(x, shape)
    return x._made(x.builder.expanded(x.value, tuple(shape)))


def matmul(a: Any, b: Any) -> SymbolicArray:
    builder = builder_of(a, b)
    a, b = symbolic(builder, a), symbolic(builder, b)
    if not a.ndim or not b.ndim:
        raise Unsupported("a product with a number")
    left = a if a.ndim > 1 else expand_dims(a, 0)
    right = b if b.ndim > 1 else expand_dims(b, 1)
    out = SymbolicArray(builder, product(builder, left.value, right.value))
    if a.ndim == 1:
        out = out.squeeze(-2)
    return out if b.ndim > 1 else out.squeeze(-1)


def dot(a: Any, b: Any) -> SymbolicArray:
    if max(a.ndim, b.ndim) > 2:
        raise Unsupported("a product of more than matrices")
    return matmul(a, b)


def asarray(x: Any, dtype: Any = None, order: str | None = None) -> Any:
    if not isinstance(x, SymbolicArray):
        return np.asarray(x, dtype)
    return x if dtype is None else x.astype(dtype, copy=False)


def _filled(number: Any) -> Callable[..., Any]:
    def call(x: Any, dtype: Any = None) -> Any:
        kind = type_of(x.dtype if dtype is None else np.dtype(dtype))
        return x._made(x.builder.uniform(x.shape, kind, number))

    return call


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    axis %= x.ndim
    key: list[Any] = []
    for d, n in enumerate(indices.shape):
        if d == axis:
            key.append(indices)
        else:
            key.append(np.arange(n).reshape((-1,) + (1,) * (indices.ndim - 1 - d)))
    return gathered(x, tuple(key))


def full_like(x: Any, value: Any) -> Any:
    return x._made(x.builder.uniform(x.shape, x.value.kind, value))


def split(x: Any, sections: int, axis: int = 0) -> list[Any]:
    length, rest = divmod(x.shape[axis], sections)
    if rest:
        raise Unsupported("parts of several lengths")
    front = (slice(None),) * (axis % x.ndim)
    return [x[(*front, slice(i * length, (i + 1) * length))] for i in range(sections)]


def tile(x: Any, repeats: Sequence[int]) -> Any:
    counts = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    counts = (1,) * (len(shape) - len(counts)) + counts
    spread = x.reshape(tuple([n for length in shape for n in (1, length)]))
    wanted = tuple([n for pair in zip(counts, shape, strict=True) for n in pair])
    whole = tuple([c * n for c, n in zip(counts, shape, strict=True)])
    return broadcast_to(spread, wanted).reshape(whole)


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return roll(x.reshape(-1), shift, 0).reshape(x.shape)
    shifts, axes = (v if isinstance(v, tuple) else (v,) for v in (shift, axis))
    for distance, dim in zip(shifts, axes, strict=True):
        length = x.shape[dim]
        at = -distance % length if length else 0
        if at:
            front = (slice(None),) * dim
            x = concatenate([x[(*front, slice(at, None))], x[(*front, slice(0, at))]], dim)
    return x


def _triangle(name: str) -> Callable[..., Any]:
    def call(x: Any, k: int = 0) -> Any:
        mask = getattr(np, name)(np.ones(x.shape[-2:], bool), k)
        return pointwise(
            x.builder, lambda a, flag: flag.choose(a, a.number(0)), (x, mask)
        )

    return call


def copyto(out: Any, source: Any, where: Any) -> None:
    out._write(_elementwise("where")(where, source, out).astype(out.dtype).value)


def running(name: str, x: SymbolicArray, axis: int, dtype: Any = None) -> SymbolicArray:
    """The accumulation of a binary function along a dimension."""
    if name not in RUNNING:
        raise Unsupported(f"numpy.{name}.accumulate")
    if dtype is not None:
        x = x.astype(dtype, copy=False)
    return SymbolicArray(x.builder, x.builder.running(name, x.value, axis % x.ndim))


def _cumulative(name: str) -> Callable[..., Any]:
    def call(x: Any, axis: int, dtype: Any = None) -> Any:
        return running(name, x, axis, dtype)

    return call


def _place_of(name: str) -> Callable[..., Any]:
    """The first place of an extremum; what is no number counts as one."""

    def call(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        if not isinstance(x, SymbolicArray):
            return getattr(np, name)(x, axis=axis, keepdims=keepdims)
        if axis is None:
            ndim, x, axis = x.ndim, x.reshape((-1,)), 0
            found = call(x, 0)
            return found.reshape((1,) * ndim) if keepdims else found
        axis %= x.ndim
        length = x.shape[axis]
        best = x.max(axis, True) if name == "argmax" else x.min(axis, True)
        shape = [1] * x.ndim
        shape[axis] = length
        places = symbolic(x.builder, np.arange(length).reshape(shape))
        found = _elementwise("where")((x == best) | (x != x), places, length)
        return found.min(axis, keepdims)

    return call


class _Add:
    """numpy.add, also at places that may be there twice."""

    def __init__(self) -> None:
        self._plain = _elementwise("add")

    def __call__(self, *args: Any, **how: Any) -> Any:
        return self._plain(*args, **how)

    def at(self, array: Any, key: Any, values: Any) -> None:
        array._write(scattered(array, key, symbolic(array.builder, values), True).value)

    def reduce(self, x: Any, axis: Any = 0, **how: Any) -> Any:
        return x.sum(axis, **how)


class ArrayNamespace:
    """NumPy as kernels know it; what it lacks raises `Unsupported`.

    New arrays of known elements, such as zeros, are NumPy's own until they meet one of the graph's.
    """

    def __init__(self, builder: CheckedBuilder | None = None) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Any:
        found = _TABLE.get(name)
        if found is not None:
            return found
        if name in scalars.NAMES:
            made = _TABLE[name] = _elementwise(name)
            return made
        value = getattr(np, name, None)
        if isinstance(value, (float, type)) or name in _OF_KNOWN:
            return value
        raise Unsupported(f"numpy.{name} has no form as loops")

    def _new(self, shape: Any, number: Any, dtype: Any) -> Any:
        builder = self._builder
        if builder is None:
            raise Unsupported("a new array")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = type_of(np.dtype(float if dtype is None else dtype))
        return SymbolicArray(builder, builder.uniform(shape, kind, number))

    def zeros(self, shape: Any, dtype: Any = None) -> Any:
        return self._new(shape, 0, dtype)

    def empty(self, shape: Any, dtype: Any = None) -> Any:
        return self._new(shape, 0, dtype)

    def ones(self, shape: Any, dtype: Any = None) -> Any:
        return self._new(shape, 1, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, SymbolicArray):
            if dtype is not None:
                value = value.astype(dtype)
            return broadcast_to(value, shape)
        return self._new(shape, value, np.asarray(value).dtype if dtype is None else dtype)


#: Functions of what is known while a kernel runs: numbers and shapes.
_OF_KNOWN = {"arange", "prod", "finfo", "iinfo", "broadcast_shapes", "dtype", "isscalar", "tri",
    "eye",
}  # fmt: skip
_TABLE: dict[str, Any] = {
    **{name: _reduction(name) for name in
       ("sum", "prod", "max", "min", "amax", "amin", "mean", "any", "all")},
    **{name: _view(name) for name in
       ("transpose", "swapaxes", "moveaxis", "squeeze", "flip", "expand_dims", "diagonal",
        "rollaxis")},
    "add": _Add(),
    "argmax": _place_of("argmax"),
    "argmin": _place_of("argmin"),
    "cumsum": _cumulative("add"),
    "cumprod": _cumulative("multiply"),
    "concatenate": concatenate,
    "stack": stack,
    "broadcast_to": broadcast_to,
    "matmul": matmul,
    "dot": dot,
    "asarray": asarray,
    "asanyarray": asarray,
    "ascontiguousarray": asarray,
    "full_like": full_like,
    "split": split,
    "tile": tile,
    "roll": roll,
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "copyto": copyto,
    "zeros_like": _filled(0),
    "ones_like": _filled(1),
    "empty_like": _filled(0),
    "take_along_axis": take_along_axis,
    "reshape": lambda x, shape: x.reshape(shape),
    "ravel": lambda x: x.ravel(),
    "result_type": lambda *args: np.result_type(
        *[a.dtype if isinstance(a, SymbolicArray) else a for a in args]
    ),
}  # fmt: skip
namespace = ArrayNamespace()


class SymbolicBackend(Backend):
    """What kernels ask a backend for, of arrays and elements of a graph."""

    device_type = "cpu"

    def device_of(self, array: Any) -> Any:
        return CPU

    def special(self, name: str) -> Any:
        if name not in FUNCTIONS and name not in scalars.SPECIAL:
            raise Unsupported(f"scipy.special.{name} has no form in scalar expressions")
        return getattr(self.xp, name)

    def scipy_linalg(self, name: str) -> Any:
        raise Unsupported(f"scipy.linalg.{name}")

    def fourier(self, name: str) -> Any:
        raise Unsupported(f"scipy.fft.{name}")

    def accumulate(self, name: str, array: Any, dim: int) -> Any:
        if not isinstance(array, SymbolicArray):
            raise Unsupported(f"numpy.{name}.accumulate")
        return running(name, array, dim)

    def strided(self, array: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
        if tuple(shape) == array.shape and not offset:
            return array  # a new order in memory, which is nothing that counts
        raise Unsupported("a view by strides")

    def view_shape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)

    def number(self, value: Any, dtype: Any, like: Any) -> Any:
        return self.from_number(np.asarray(value).astype(dtype), like)

    def from_number(self, array: Any, like: Any) -> Any:
        raise NotImplementedError


class _ScalarBackend(SymbolicBackend):
    array_class = Scalar
    xp = scalar_namespace

    def from_number(self, array: Any, like: Any) -> Any:
        made = like.number(array[()], type_of(array.dtype))
        made.ndim = 0
        return made

    def empty_strided(self, shape: Any, strides: Any, dtype: Any, like: Any) -> Any:
        return like.number(0, type_of(np.dtype(dtype)))


class _ArrayBackend(SymbolicBackend):
    array_class = SymbolicArray
    xp = namespace

    def from_number(self, array: Any, like: Any) -> Any:
        return symbolic(like.builder, array)

    def empty_strided(self, shape: Any, strides: Any, dtype: Any, like: Any) -> Any:
        builder = like.builder
        return SymbolicArray(builder, builder.uniform(tuple(shape), type_of(np.dtype(dtype)), 0))


for _backend in (_ScalarBackend(), _ArrayBackend()):
    BY_CLASS[_backend.array_class] = _backend
