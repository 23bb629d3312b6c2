"""Python floats that are inputs of a graph: what they are used for is noted, not their value.

A `TracedFloat` stands for a float while a function is traced. Sums, products and quotients of it
are nodes of the graph, and so are operators on tensors that take it as an operand or as a factor.
Any other use needs the value: it raises, and the function is traced again with the value itself.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from typing import Any

from ...core.dtypes import dtype, float32, float64, from_numpy, get_default_dtype
from ...core.tensor import Tensor
from .refusals import TraceError


class FloatTrace:
    """The floats of one trace: whether it goes on, in which thread, and of which of them the
    function needs the values."""

    __slots__ = ("thread", "is_active", "needed")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.is_active = True
        self.needed: set[int] = set()


def _value_used(name: str) -> Callable[..., Any]:
    """A method that needs the value."""

    def method(self: TracedFloat, *args: Any) -> Any:
        return getattr(self.value(), name)(*args)

    return method


def _arithmetic(name: str) -> Callable[[Any, Any], Any]:
    """A method for an operation of Python's on numbers that a graph computes alike."""
    compute = getattr(operator, name)

    def method(self: TracedFloat, other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented  # the tensor's own operator sees to it
        return self.combined(compute, self, other)

    return method


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    compute = getattr(operator, name)

    def method(self: TracedFloat, other: Any) -> Any:
        return self.combined(compute, other, self)

    return method


class TracedFloat:
    """A float of a traced function: a number for Python, a tensor without dimensions for the graph.

    `roots` are the numbers of those floats from outside that it is computed from.
    """

    __slots__ = ("trace", "tensor", "roots", "_value")

    def __init__(
        self, trace: FloatTrace, tensor: Tensor, roots: frozenset[int], value: float
    ) -> None:
        self.trace = trace
        self.tensor = tensor
        self.roots = roots
        self._value = value

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        return float

    def is_traced(self) -> bool:
        """Whether the trace goes on here; elsewhere it is a number like any other."""
        return self.trace.is_active and self.trace.thread == threading.get_ident()

    def value(self) -> float:
        """The number, which the graph would then hold for."""
        if self.is_traced():
            self.trace.needed |= self.roots
            raise TraceError("the value of a float that is an input of the graph is needed")
        return self._value

    def combined(self, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """The result of a sum, difference, product or quotient."""
        if not self.is_traced():
            return compute(*[x._value if type(x) is TracedFloat else x for x in (a, b)])
        if any(type(x) not in (float, int, TracedFloat) for x in (a, b)):
            self.value()
        if compute is operator.truediv and (type(b) is TracedFloat or not b):
            self.value()  # a quotient by zero raises
        roots = frozenset[int]().union(*[x.roots for x in (a, b) if type(x) is TracedFloat])
        result = compute(*[x.tensor if type(x) is TracedFloat else float(x) for x in (a, b)])
        return TracedFloat(self.trace, result, roots, math.nan)

    def __neg__(self) -> Any:
        return self.combined(operator.mul, self, -1.0) if self.is_traced() else -self._value

    def __pos__(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value(), name)

    __add__, __radd__ = _arithmetic("add"), _reflected("add")
    __sub__, __rsub__ = _arithmetic("sub"), _reflected("sub")
    __mul__, __rmul__ = _arithmetic("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _arithmetic("truediv"), _reflected("truediv")

    def __pow__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Tensor) else self.value() ** other

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = [x.value() if type(x) is TracedFloat else x for x in inputs]
        return getattr(ufunc, method)(*given, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value().__array__(*args, **kwargs)  # type: ignore[attr-defined]


for _name in (
    "__abs__", "__bool__", "__ceil__", "__divmod__", "__eq__", "__float__", "__floor__",
    "__floordiv__", "__format__", "__ge__", "__gt__", "__hash__", "__int__", "__le__", "__lt__",
    "__mod__", "__ne__", "__rdivmod__", "__reduce_ex__", "__repr__", "__rfloordiv__", "__rmod__",
    "__round__", "__rpow__", "__str__", "__trunc__",
):  # fmt: skip
    setattr(TracedFloat, _name, _value_used(_name))


# Operators with such an argument ------------------------------------------------------------------

#: Operators whose first two arguments may both be tensors.
_OPERANDS = frozenset(("mul", "add", "sub", "rsub", "div"))
#: Operators with a factor, by its place and by that of the argument that it multiplies.
_FACTORS = {"add": (2, 1), "sub": (2, 1), "rsub": (2, 0), "addcmul": (3, 1), "addcdiv": (3, 1)}


def without_floats(operator: Any, args: tuple, multiply: Any) -> tuple:
    """The arguments of a call with tensors in the place of traced floats.

    `multiply` is the operator for factors, which are one afterwards.
    """
    name = operator.functional.name if operator.mutates else operator.name
    found = list(args)
    factor, place = _FACTORS.get(name, (-1, -1))
    for i, given in enumerate(args):
        if type(given) is not TracedFloat:
            continue
        if not given.is_traced():
            found[i] = given.value()
        elif i == factor and _have_one_dtype(found[:factor]):
            found[place] = multiply(found[place], _as_operand(given, found[place]))
            found[i] = 1
        elif name in _OPERANDS and i < 2 and isinstance(args[1 - i], Tensor):
            found[i] = _as_operand(given, args[1 - i])
        else:
            given.value()
    return tuple(found)


def _have_one_dtype(operands: list) -> bool:
    """Whether operands are tensors of one floating dtype."""
    if not all(isinstance(t, Tensor) for t in operands):
        return False
    return len({t.dtype for t in operands}) == 1 and operands[0].dtype.is_floating_point


def _as_operand(given: TracedFloat, beside: Tensor) -> Tensor:
    """The tensor for a float beside another one, of the dtype in which eager would compute."""
    kind = _weak_dtype(from_numpy(beside.array.dtype))
    if kind is None:
        given.value()
        raise AssertionError
    return given.tensor if kind is float64 else given.tensor.to(kind)


def _weak_dtype(beside: dtype) -> dtype | None:
    if beside.is_floating_point:
        return beside if beside in (float32, float64) else None
    default = get_default_dtype()
    return None if beside.is_complex or default not in (float32, float64) else default
