"""Arrays that are not there yet, for kernels to be called with.

A kernel written for NumPy's arrays, called with `SymbolicArray`s and with `namespace` as its `xp`,
adds to the loops of a graph what it would compute. So softmax, norms, losses, reductions and
products have no second form for machine code. What asks for elements raises `Unsupported`, and the
operator is called as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backends.layout import row_major
from ...core.scalar.expressions import DTYPES, Flags, Unsupported, type_of
from ...core.scalar.namespace import scalar_namespace
from .building import Builder, Value


def _axes(axis: Any, ndim: int) -> frozenset[int]:
    if axis is None:
        return frozenset(range(ndim))
    if isinstance(axis, int):
        axis = (axis,)
    return frozenset([a % ndim for a in axis])


class Unordered(Flags):
    """An order in memory that is not known: kernels then take the ways that suit any order."""

    c_contiguous = False


class Assumed:
    """A number that is known at run time only; what is asked of it is assumed to be as usual.

    Kernels ask such questions to refuse values. Where the answer is another one, a flag is set at
    run time, and the interpreter runs the graph and refuses them.
    """

    __slots__ = ("array",)

    def __init__(self, array: SymbolicArray) -> None:
        self.array = array

    def _assume(self, unusual: SymbolicArray) -> bool:
        self.array.builder.check(unusual.value)
        return False

    def __ge__(self, other: Any) -> bool:
        return self._assume(self.array >= other)

    def __gt__(self, other: Any) -> bool:
        return self._assume(self.array > other)

    def __lt__(self, other: Any) -> bool:
        return self._assume(self.array < other)

    def _is_decisive(self, *_: Any) -> Any:
        raise Unsupported("a decision by the value of an element")

    # Whether it equals something is asked to choose a way, not to refuse it.
    __bool__ = __int__ = __float__ = __index__ = __eq__ = __ne__ = __le__ = _is_decisive
    __hash__ = None  # type: ignore[assignment]


class Memory:
    """How often an array or one of its views was written."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes = 0


class SymbolicArray:
    """An array of a graph that is becoming loops, with as much of NumPy's as kernels use."""

    __slots__ = ("builder", "guess", "_value", "_memory", "_seen", "_base", "_step")
    __array_ufunc__ = None
    flags = Unordered()

    def __init__(self, builder: CheckedBuilder, value: Value, guess: bool | None = None) -> None:
        self.builder = builder
        self._value = value
        #: What `item` returns if the element is a truth value that kernels only use to refuse.
        self.guess = guess
        # Views share what NumPy's would share; see `_write`.
        self._memory = Memory()
        self._seen = 0
        self._base: SymbolicArray | None = None
        self._step: Any = None

    def _made(self, value: Value) -> SymbolicArray:
        return SymbolicArray(self.builder, value)

    @property
    def value(self) -> Value:
        """What the elements are now."""
        if self._seen != self._memory.changes:
            raise Unsupported("an array whose memory was changed through another one")
        return self._value

    def _write(self, value: Value) -> None:
        """Take another value, and give it to the array that this one is a view of."""
        self._memory.changes += 1
        array, given = self, value
        while True:
            array._value, array._seen = given, self._memory.changes
            if array._base is None:
                return
            given = self.builder.written(array._base._value, given, array._step)
            array = array._base

    # What it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def dtype(self) -> Any:
        return DTYPES[self.value.kind]

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return row_major(self.shape, self.itemsize)

    @property
    def real(self) -> SymbolicArray:
        return self

    @property
    def T(self) -> SymbolicArray:
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def item(self) -> Any:
        if self.value.number is not None:
            return self.value.number
        if self.guess is not None:
            unusual = self if not self.guess else ~self
            self.builder.check(unusual.value)
            return self.guess
        if self.size != 1:
            raise Unsupported("an element of an array")
        return Assumed(self)

    def tolist(self) -> Any:
        raise Unsupported("the elements of an array")

    def __bool__(self) -> bool:
        raise Unsupported("a decision by the value of an element")

    __int__ = __float__ = __index__ = __iter__ = __bool__

    # Elementwise -------------------------------------------------------------------------------

    def _operate(self, function: Callable[..., Any], *others: Any) -> Any:
        return pointwise(self.builder, function, (self, *others))

    def __add__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x + y, other)

    def __radd__(self, other: Any) -> Any:
        return self._operate(lambda x, y: y + x, other)

    def __sub__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x - y, other)

    def __rsub__(self, other: Any) -> Any:
        return self._operate(lambda x, y: y - x, other)

    def __mul__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x * y, other)

    def __rmul__(self, other: Any) -> Any:
        return self._operate(lambda x, y: y * x, other)

    def __truediv__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x / y, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._operate(lambda x, y: y / x, other)

    def __pow__(self, other: Any) -> Any:
        return self._operate(scalar_namespace.power, other)

    def __mod__(self, other: Any) -> Any:
        return self._operate(scalar_namespace.remainder, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._operate(scalar_namespace.floor_divide, other)

    def __neg__(self) -> Any:
        return self._operate(lambda x: -x)

    def __abs__(self) -> Any:
        return self._operate(abs)

    def __invert__(self) -> Any:
        return self._operate(lambda x: ~x)

    def __lt__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x < y, other)

    def __le__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x <= y, other)

    def __gt__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x > y, other)

    def __ge__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x >= y, other)

    def __eq__(self, other: object) -> Any:
        return self._operate(lambda x, y: x == y, other)

    def __ne__(self, other: object) -> Any:
        return self._operate(lambda x, y: x != y, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x & y, other)

    def __or__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x | y, other)

    def __xor__(self, other: Any) -> Any:
        return self._operate(lambda x, y: x ^ y, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def _become(self, made: SymbolicArray) -> SymbolicArray:
        """Take the value that an operation in place gives this array."""
        if made.shape != self.shape:
            raise Unsupported("an operation in place broadcasts")
        self._write(self.builder.cast(made.value, self.value.kind))
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._become(self + other)

    def __isub__(self, other: Any) -> Any:
        return self._become(self - other)

    def __imul__(self, other: Any) -> Any:
        return self._become(self * other)

    def __itruediv__(self, other: Any) -> Any:
        return self._become(self / other)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True, **_: Any) -> SymbolicArray:
        kind = type_of(np.dtype(dtype))
        if kind == self.value.kind and not copy:
            return self
        return self._made(self.builder.cast(self.value, kind))

    def copy(self, order: str = "C") -> SymbolicArray:
        return self._made(self.value)

    def conj(self) -> SymbolicArray:
        return self

    conjugate = conj

    # Reductions --------------------------------------------------------------------------------

    def _reduced(
        self, name: str, axis: Any, keepdims: bool, kind: str | None = None
    ) -> SymbolicArray:
        value = self.value if kind is None else self.builder.cast(self.value, kind)
        dims = _axes(axis, self.ndim)
        if name in ("max", "min") and any(self.shape[d] == 0 for d in dims):
            raise Unsupported("the largest of no elements")
        return self._made(self.builder.reduce(name, value, dims, bool(keepdims)))

    def sum(
        self, axis: Any = None, dtype: Any = None, keepdims: bool = False, **_: Any
    ) -> SymbolicArray:
        kind = self.value.kind
        if dtype is not None:
            kind = type_of(np.dtype(dtype))
        elif kind == "bool" or kind[0] == "i":
            kind = "i64"
        elif kind[0] == "u":
            kind = "u64"
        return self._reduced("add", axis, keepdims, kind)

    def prod(
        self, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> SymbolicArray:
        kind = self.value.kind if dtype is None else type_of(np.dtype(dtype))
        if dtype is None and kind not in ("f32", "f64"):
            kind = "i64"
        return self._reduced("mul", axis, keepdims, kind)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> SymbolicArray:
        if self.value.kind not in ("f32", "f64"):
            raise Unsupported("the mean of what are no floats")
        count = math.prod([self.shape[d] for d in _axes(axis, self.ndim)])
        return self.sum(axis, dtype, keepdims) / (count or math.nan)

    def max(self, axis: Any = None, keepdims: bool = False) -> SymbolicArray:
        return self._reduced("max", axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> SymbolicArray:
        return self._reduced("min", axis, keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> SymbolicArray:
        made = self._reduced("or", axis, keepdims, "bool")
        return SymbolicArray(self.builder, made.value, False if axis is None else None)

    def all(self, axis: Any = None, keepdims: bool = False) -> SymbolicArray:
        made = self._reduced("and", axis, keepdims, "bool")
        return SymbolicArray(self.builder, made.value, True if axis is None else None)

    # Shapes ------------------------------------------------------------------------------------

    def _viewed(self, view: Callable[[Any], Any]) -> SymbolicArray:
        return self._shared(self.builder.viewed(self.value, view), view)

    def _shared(self, value: Value, step: Callable[[Any], Any]) -> SymbolicArray:
        """A view of this array."""
        made = self._made(value)
        made._memory, made._seen = self._memory, self._seen
        made._base, made._step = self, step
        return made

    def reshape(self, *shape: Any, order: str = "C") -> SymbolicArray:
        if order != "C":
            raise Unsupported("another order than by rows")
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        made = self.builder.reshaped(self.value, tuple(wanted))
        return self._shared(made, lambda array: array.reshape(made.shape))

    def ravel(self, order: str = "C") -> SymbolicArray:
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> SymbolicArray:
        return self._viewed(lambda array: array.transpose(*axes))

    def swapaxes(self, one: int, other: int) -> SymbolicArray:
        return self._viewed(lambda array: array.swapaxes(one, other))

    def squeeze(self, axis: Any = None) -> SymbolicArray:
        return self._viewed(lambda array: array.squeeze(axis))

    def view(self, dtype: Any = None) -> SymbolicArray:
        if dtype is None:
            return self._viewed(lambda array: array)
        kind = type_of(np.dtype(dtype))
        if DTYPES[kind].itemsize != self.itemsize:
            raise Unsupported("the bits of elements of another size")
        return self._operate(lambda x: x.bits(kind))

    def take(self, indices: Any, axis: Any = None) -> SymbolicArray:
        if axis is None:
            return self.reshape(-1)[indices]
        return self[(slice(None),) * (axis % self.ndim) + (indices,)]

    def __getitem__(self, key: Any) -> SymbolicArray:
        plain = _basic_key(key)
        if plain is not None:
            return self._viewed(lambda array: array[plain])
        return gathered(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        given = symbolic(self.builder, value, self.dtype)
        plain = _basic_key(key)
        if plain is None:
            self._write(scattered(self, key, given, False).value)
        elif plain is Ellipsis or plain == slice(None):
            expanded = self.builder.expanded(given.value, self.shape)
            self._write(self.builder.cast(expanded, self.value.kind))
        else:
            self._write(self.builder.written(self.value, given.value, lambda array: array[plain]))


class CheckedBuilder(Builder):
    """A builder that kernels may give conditions to, under which the graph is refused."""

    def __init__(self, may_check: bool) -> None:
        Builder.__init__(self)
        #: Whether the graph can be run again if a check fails.
        self.may_check = may_check
        self.checks: list[Value] = []

    def check(self, unusual: Value) -> None:
        """Have the graph run by the interpreter where a truth value of one element is set."""
        if not self.may_check:
            raise Unsupported("a check in a graph that cannot be run twice")
        self.checks.append(self.viewed(unusual, lambda array: array.reshape(())))

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        """The elements in their order in another shape; a copy where their places demand it."""
        if -1 in shape:
            known = math.prod([n for n in shape if n != -1])
            length = value.size // known if known else 0
            shape = tuple([length if n == -1 else n for n in shape])
        if shape == value.shape:
            return value
        if value.number is not None:
            return self.uniform(shape, value.kind, value.number)
        self.in_memory(value)

        def view(array: Any) -> Any:
            made = array.view()
            made.shape = shape
            return made

        try:
            return self.viewed(value, view)
        except AttributeError:
            return self.viewed(self.packed(value), view)


def _basic_key(key: Any) -> Any:
    """The key if it makes a view, else None."""
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if not (part is None or part is Ellipsis or isinstance(part, (int, slice))):
            return None
        if isinstance(part, bool):
            return None
    return key


def symbolic(builder: CheckedBuilder, value: Any, dtype: Any = None) -> SymbolicArray:
    """An array or number as one of the graph's."""
    if isinstance(value, SymbolicArray):
        return value
    if hasattr(value, "shape"):
        return SymbolicArray(builder, builder.constant(value))
    array = np.asarray(value, dtype if isinstance(value, (bool, int, float)) else None)
    return SymbolicArray(builder, builder.constant(array))


def pointwise(
    builder: CheckedBuilder, function: Callable[..., Any], args: Sequence[Any]
) -> SymbolicArray:
    """A function of elements of arrays and numbers."""
    values: list[Any] = []
    for a in args:
        if hasattr(a, "shape"):
            a = symbolic(builder, a)
        values.append(a.value if isinstance(a, SymbolicArray) else a)
    shape = np.broadcast_shapes(*[v.shape for v in values if isinstance(v, Value)])
    return SymbolicArray(builder, builder.pointwise(function, values, shape))


def _split_key(array: SymbolicArray, key: Any) -> tuple[list[SymbolicArray], list[int], int]:
    """The arrays of a key, the dimensions they choose in, and where theirs appear in the result."""
    parts = list(key) if isinstance(key, tuple) else [key]
    parts += [slice(None)] * (array.ndim - len(parts))
    indices, dims = [], []
    for d, part in enumerate(parts):
        if isinstance(part, slice) and part == slice(None):
            continue
        if hasattr(part, "shape"):
            part = symbolic(array.builder, part)
        if not isinstance(part, SymbolicArray) or part.value.kind not in ("i64", "i32", "u8"):
            raise Unsupported("indices of several kinds")
        indices.append(part)
        dims.append(d)
    if len(parts) > array.ndim or not dims:
        raise Unsupported("indices of several kinds")
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    return indices, dims, dims[0] if adjacent else 0


def _layout(
    array: SymbolicArray, indices: list[SymbolicArray], dims: list[int], front: int
) -> tuple[tuple[int, ...], Callable[[Any], Any], list[Value]]:
    """The shape of what a key chooses, how the other dimensions lie in it, and indices in it."""
    builder = array.builder
    chosen = np.broadcast_shapes(*[i.shape for i in indices])
    rest = [n for d, n in enumerate(array.shape) if d not in dims]
    shape = (*rest[:front], *chosen, *rest[front:])

    def place(view: Any) -> Any:
        for _ in chosen:
            view = np.expand_dims(view, front)
        return view

    fitted = []
    for index in indices:
        value = builder.expanded(index.value, chosen)
        for _ in rest[front:]:
            value = builder.viewed(value, lambda v: np.expand_dims(v, v.ndim))
        fitted.append(builder.expanded(value, shape))
    return shape, place, fitted


def gathered(array: SymbolicArray, key: Any) -> SymbolicArray:
    """What arrays of indices choose."""
    indices, dims, front = _split_key(array, key)
    shape, place, fitted = _layout(array, indices, dims, front)
    value = array.value
    if value.number is not None:
        raise Unsupported("a choice among equal elements")
    return SymbolicArray(
        array.builder, array.builder.gather(value, place, fitted, dims, shape)
    )


def scattered(
    array: SymbolicArray, key: Any, given: SymbolicArray, adds: bool
) -> SymbolicArray:
    """A copy in which the elements that arrays of indices choose are replaced or added to."""
    indices, dims, front = _split_key(array, key)
    shape, place, fitted = _layout(array, indices, dims, front)
    builder = array.builder
    values = builder.expanded(given.value, shape)
    return SymbolicArray(
        builder,
        builder.scatter(array.shape, array.value, values, place, fitted, dims, adds),
    )
