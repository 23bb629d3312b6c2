"""Tensor: one backend array with its version, its place in the graph and its view relation.

The fields are the hot record; what few tensors need (hooks, tangents, user attributes) lives in a
`Cold` object made on first use. Operators are bound after they are declared, see `complete`.
"""

from __future__ import annotations

from typing import Any

from .classes import COMPILED, classes, make
from .collector import collector
from .frames import frames
from .reuse import keep_tensors
from .state import overriding, thread_state

_classes = classes
_collector = collector
_frames = frames
_overriding = overriding
_hides = COMPILED

# How a view came about; anything but VIEW_DEFAULT restricts in-place changes through it.
VIEW_DEFAULT = 0
VIEW_NO_GRAD = 1
VIEW_INFERENCE = 2
VIEW_MULTI_OUTPUT = 3
VIEW_CUSTOM_FUNCTION = 4


def set_fields(t: Any, **fields: Any) -> None:
    """Set fields of a tensor's record, which only typed code of this package may assign."""
    for name, value in fields.items():
        _classes.set_attribute(t, name, value)


class AbstractOperator:
    """What all operators have in common: how to call one with one, two or any number of arguments.

    An operator that changes an argument `mutates`; `functional` computes what it would write.
    """

    def call1(self, x: Any) -> Any:
        raise NotImplementedError

    def call2(self, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def call(self, args: tuple) -> Any:
        raise NotImplementedError


class VersionCounter:
    """Counts in-place changes of one piece of memory; every alias shares it."""

    value: int
    watched: bool
    operator: str | None
    code: Any
    lasti: int


class ViewMeta:
    """A view's base and the calls that lead there: (earlier steps, operator, arguments)."""

    def __init__(self, base: Tensor, steps: tuple, creation: int, version: int) -> None:
        self.base = base
        self.steps = steps
        self.creation = creation
        self.version = version


class Cold:
    """The rarely used part of a tensor."""

    def __init__(self) -> None:
        self.hooks: Any = None
        self.post_hooks: Any = None
        self.retains_grad = False
        self.tangents: Tensor | None = None
        self.tangent_source: Tensor | None = None
        self.tangent_base: Any = None
        self.attributes: dict[str, Any] | None = None
        self.name: str | None = None
        self.detached_at = -1
        self.former_shapes: tuple | None = None
        self.counts_versions = False


def wrap(array: Any) -> Tensor:
    """A fresh tensor around `array`, without copy and without history.

    It is hidden from the cyclic collector: until it gets attributes, hooks or a gradient with a
    graph, no cycle can lead through it, see `tape/cycles.py`.
    """
    return wrap_as(array, thread_state().inference)


def wrap_as(array: Any, inference: bool) -> Tensor:
    """A fresh tensor around `array`, for a caller that knows whether it is in inference mode."""
    t = make(Tensor)
    t.array = array
    t.inference = inference
    # Uncompiled, a field of the instance is read much faster than a default of the class.
    t.node = None
    t.output_index = 0
    t.needs_grad = False
    t.counter = None
    t.view_meta = None
    if _hides:
        _collector.hide(t)
    return t


def wrapped(out: Any, inference: bool) -> Tensor:
    """A tensor for one result: around an array, or the tensor that a layer below has made."""
    return out if isinstance(out, Tensor) else wrap_as(out, inference)


class Tensor:
    """A differentiable n-dimensional array; see `wengert.tensor` for making one."""

    __array_priority__ = 1000

    def __init__(self, *args: Any, **options: Any) -> None:
        """What a compiled class runs on a new plain tensor; subclasses do not see it."""
        _fill(self, args, options)

    def adopt(self, source: Tensor) -> None:
        """Take over the array of `source`, as a new tensor without history."""
        self.array: Any = _marked(type(self), source.array)
        self.counter: VersionCounter | None = source.counter
        self.node: Any = None
        self.output_index = 0
        self.needs_grad = False
        self.inference: bool = source.inference
        self.watched = False
        self.gradient: Tensor | None = None
        self.accumulator: Any = None
        self.view_meta: ViewMeta | None = None
        self.cold: Cold | None = None

    # Versions and history ------------------------------------------------------------------

    def version(self) -> int:
        """How often the memory was changed in place."""
        return 0 if self.counter is None else self.counter.value

    def shared_counter(self) -> VersionCounter:
        """The version counter, made now if nobody needed it before."""
        return counter_of(self)

    def bump(self, operator: str) -> None:
        """Note one in-place change; remember by whom if a backward may ask."""
        bump_version(self, operator)

    def requires(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return requires_of(self)

    def current_node(self) -> Any:
        """The node that computes this tensor; for a view whose base has changed, a renewed one."""
        return node_of(self)

    def make_cold(self) -> Cold:
        """The rarely used part of the tensor, made on first use."""
        if self.cold is None:
            self.cold = Cold()
            _collector.show(self)
        return self.cold

    # Attributes that users invent ----------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        cold = self.cold
        if cold is not None and cold.attributes is not None and name in cold.attributes:
            return cold.attributes[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FRESH:
            raise AttributeError(
                f"attribute '{name}' of '{type(self).__name__}' objects is not writable: it is a "
                "part of Wengert's own record of the tensor; choose another name"
            )
        try:
            _classes.set_attribute(self, name, value)
        except AttributeError:
            if hasattr(type(self), name):
                raise
            cold = self.make_cold()
            if cold.attributes is None:
                cold.attributes = {}
            cold.attributes[name] = value
            if isinstance(value, Tensor):
                _show_graph(value)

    # Operators -----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Tensor:
        return _add.call2(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _add.call2(self, other)

    def __iadd__(self, other: Any) -> Tensor:
        return _iadd.call2(self, other)

    def __sub__(self, other: Any) -> Tensor:
        return _sub.call2(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        minuend = _rsub_tensor if isinstance(other, Tensor) else _rsub
        return minuend.call2(self, other)

    def __isub__(self, other: Any) -> Tensor:
        return _isub.call2(self, other)

    def __mul__(self, other: Any) -> Tensor:
        return _mul.call2(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _mul.call2(self, other)

    def __imul__(self, other: Any) -> Tensor:
        return _imul.call2(self, other)

    def __truediv__(self, other: Any) -> Tensor:
        return _div.call2(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _div.call2(other, self)

    def __itruediv__(self, other: Any) -> Tensor:
        return _idiv.call2(self, other)

    def __floordiv__(self, other: Any) -> Tensor:
        return _floor_divide.call2(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _floor_divide.call2(other, self)

    def __ifloordiv__(self, other: Any) -> Tensor:
        return _ifloor_divide.call2(self, other)

    def __mod__(self, other: Any) -> Tensor:
        return _remainder.call2(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _remainder.call2(other, self)

    def __imod__(self, other: Any) -> Tensor:
        return _iremainder.call2(self, other)

    def __pow__(self, other: Any, modulo: None = None) -> Tensor:
        if modulo is not None:
            return NotImplemented
        return _pow.call2(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _pow.call2(other, self)

    def __ipow__(self, other: Any) -> Tensor:  # type: ignore[misc]
        return _ipow.call2(self, other)

    def __matmul__(self, other: Any) -> Tensor:
        return _matmul.call2(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _matmul.call2(other, self)

    def __neg__(self) -> Tensor:
        return _neg.call1(self)

    def __pos__(self) -> Tensor:
        if self.array.dtype.kind == "b":
            raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
        return self

    def __abs__(self) -> Tensor:
        return _abs.call1(self)

    def __invert__(self) -> Tensor:
        if self.array.dtype.kind not in "biu" and type(self) is Tensor:
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
            )
        return _invert.call1(self)

    def __and__(self, other: Any) -> Tensor:
        return _and.call2(self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _and.call2(self, other)

    def __iand__(self, other: Any) -> Tensor:
        return _iand.call2(self, other)

    def __or__(self, other: Any) -> Tensor:
        return _or.call2(self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _or.call2(self, other)

    def __ior__(self, other: Any) -> Tensor:
        return _ior.call2(self, other)

    def __xor__(self, other: Any) -> Tensor:
        return _xor.call2(self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _xor.call2(self, other)

    def __ixor__(self, other: Any) -> Tensor:
        return _ixor.call2(self, other)

    def __lshift__(self, other: Any) -> Tensor:
        return _lshift.call2(self, other)

    def __ilshift__(self, other: Any) -> Tensor:
        return _ilshift.call2(self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return _lshift.call2(other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return _rshift.call2(self, other)

    def __irshift__(self, other: Any) -> Tensor:
        return _irshift.call2(self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return _rshift.call2(other, self)

    def __lt__(self, other: Any) -> Tensor:
        return _lt.call2(self, other)

    def __le__(self, other: Any) -> Tensor:
        return _le.call2(self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _gt.call2(self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _ge.call2(self, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _eq.call2(self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _ne.call2(self, other)

    def __getitem__(self, index: Any) -> Tensor:
        return _getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _setitem(self, index, value)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    # Python protocols ----------------------------------------------------------------------

    def __hash__(self) -> int:
        return id(self)

    def __reversed__(self) -> Tensor:
        if _overriding.possible and (found := _override("__reversed__", (self,))) is not _PLAIN:
            return found
        return self.flip(0) if self.array.ndim else self

    def __len__(self) -> int:
        if _overriding.possible and (found := _override("__len__", (self,))) is not _PLAIN:
            return found
        if self.array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self) -> Any:
        if self.array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __bool__(self) -> bool:
        if _overriding.possible and (found := _override("__bool__", (self,))) is not _PLAIN:
            return found
        size = self.array.size
        if size != 1:
            raise RuntimeError(
                "Boolean value of Tensor with "
                + ("no values" if size == 0 else "more than one value")
                + " is ambiguous"
            )
        return bool(self.item())

    def __float__(self) -> float:
        if _overriding.possible and (found := _override("__float__", (self,))) is not _PLAIN:
            return found
        return float(_real_number(self))

    def __int__(self) -> int:
        if _overriding.possible and (found := _override("__int__", (self,))) is not _PLAIN:
            return found
        return int(_real_number(self))

    def __complex__(self) -> complex:
        if _overriding.possible and (found := _override("__complex__", (self,))) is not _PLAIN:
            return found
        return complex(self.item())

    def __index__(self) -> int:
        if _overriding.possible and (found := _override("__index__", (self,))) is not _PLAIN:
            return found
        value = self.item() if self.array.size == 1 else None
        if not isinstance(value, int):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(value)

    def __contains__(self, element: Any) -> bool:
        if (
            _overriding.possible
            and (found := _override("__contains__", (self, element))) is not _PLAIN
        ):
            return found
        if not isinstance(element, (Tensor, int, float, complex)):
            raise RuntimeError(
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(element)}."
            )
        return bool((self == element).any())

    def __repr__(self) -> str:
        if _overriding.possible and (found := _override("__repr__", (self,))) is not _PLAIN:
            return found
        return _repr(self)

    def __format__(self, spec: str) -> str:
        if _overriding.possible and (found := _override("__format__", (self, spec))) is not _PLAIN:
            return found
        if self.array.ndim == 0 and type(self) is Tensor:
            return format(self.item(), spec)
        return object.__format__(self, spec)


def _real_number(t: Tensor) -> Any:
    """The one element for a conversion to int or float."""
    if t.array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    value = t.item()
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError("value cannot be converted to type double without overflow")
        return value.real
    return value


# The same as functions, which compiled modules call without looking for an override -------------


def counter_of(t: Tensor) -> VersionCounter:
    """The version counter, made now if nobody needed it before."""
    if t.counter is None:
        t.counter = VersionCounter()
        t.counter.watched = t.watched
    return t.counter


def bump_version(t: Tensor, operator: str) -> None:
    """Note one in-place change; remember by whom if a backward may ask."""
    counter = counter_of(t)
    counter.value += 1
    if counter.watched:
        counter.operator = operator
        counter.code = _frames.caller()
        counter.lasti = _frames.lasti


def requires_of(t: Tensor) -> bool:
    """Whether operations on a tensor are recorded."""
    if t.needs_grad:
        return True
    view = t.view_meta
    return view is not None and view.base.needs_grad


def any_requires(args: tuple, positions: tuple) -> bool:
    """Whether recording concerns any of the arguments at `positions`."""
    for position in positions:
        value = args[position]
        if isinstance(value, Tensor):
            t = value
            if requires_of(t):
                return True
        elif type(value) is list or type(value) is tuple:
            for item in value:
                if isinstance(item, Tensor) and requires_of(item):
                    return True
    return False


def node_of(t: Tensor) -> Any:
    """The node that computes a tensor; for a view whose base has changed, a renewed one."""
    view = t.view_meta
    if (
        view is not None
        and view.version != (0 if t.counter is None else t.counter.value)
        and (t.node is not None or view.base.needs_grad)
    ):
        _regenerate_view(t)
    return t.node


FRESH: dict[str, Any] = {
    "array": None,
    "inference": False,
    "counter": None,
    "node": None,
    "output_index": 0,
    "needs_grad": False,
    "watched": False,
    "gradient": None,
    "accumulator": None,
    "view_meta": None,
    "cold": None,
}


class TensorMeta(type):
    """The class of Tensor, to be joined with other metaclasses, such as ABCMeta."""

    __slots__ = ()


def give_defaults(cls: type, **fields: Any) -> None:
    """Let the fields of an uncompiled class begin as those of a compiled one do by themselves.

    One instance is given all of them at once, while the interpreter still adds to the layout that
    the instances share; later additions would cost every instance a dictionary of its own.
    """
    for name, value in fields.items():
        setattr(cls, name, value)
    first: Any = object.__new__(cls)
    for name, value in fields.items():
        setattr(first, name, value)


if not COMPILED:
    # a plain class has an instance dictionary for what users attach
    del Tensor.__getattr__, Tensor.__setattr__  # type: ignore[attr-defined]
    give_defaults(Tensor, **FRESH)
    give_defaults(VersionCounter, value=0, watched=False, operator=None, code=None, lasti=0)

classes.give_metaclass(Tensor, TensorMeta)
keep_tensors(wrap_as(_classes, False), _classes)

_add: Any = AbstractOperator()
_sub = _mul = _div = _pow = _matmul = _neg = _abs = _add
_rsub = _rsub_tensor = _remainder = _floor_divide = _add
_lt = _le = _gt = _ge = _eq = _ne = _add
_and = _or = _xor = _invert = _lshift = _rshift = _add
_iadd = _isub = _imul = _idiv = _ipow = _iremainder = _ifloor_divide = _add
_iand = _ior = _ixor = _ilshift = _irshift = _add
_getitem: Any = None
_setitem = _regenerate_view = _show_graph = _repr = _getitem
_override: Any = None
_PLAIN = _marked = _fill = _override


def complete(table: dict[str, Any]) -> None:
    """Give Tensor what upper rooms have: operators for its symbols, ways to make and override.

    The one place where a lower room learns of what stands above it: `tensor/registration.py` calls
    this when the package is imported, and again when an operator has been declared.
    """
    global _override, _PLAIN, _marked, _fill
    global _add, _sub, _mul, _div, _pow, _matmul, _neg, _abs, _remainder, _floor_divide
    global _rsub, _rsub_tensor, _lt, _le, _gt, _ge, _eq, _ne
    global _and, _or, _xor, _invert, _lshift, _rshift
    global _iadd, _isub, _imul, _idiv, _ipow, _iremainder, _ifloor_divide
    global _iand, _ior, _ixor, _ilshift, _irshift, _getitem, _setitem
    global _regenerate_view, _show_graph, _repr
    _add, _sub, _mul, _div = table["add"], table["sub"], table["mul"], table["div"]
    _pow, _matmul, _neg, _abs = table["pow"], table["matmul"], table["neg"], table["abs"]
    _rsub, _rsub_tensor = table["rsub"], table["_rsub_tensor"]
    _remainder, _floor_divide = table["remainder"], table["floor_divide"]
    _lt, _le, _gt, _ge = table["lt"], table["le"], table["gt"], table["ge"]
    _eq, _ne = table["eq"], table["ne"]
    _and, _or, _xor = table["bitwise_and"], table["bitwise_or"], table["bitwise_xor"]
    _invert = table["bitwise_not"]
    _lshift, _rshift = table["bitwise_left_shift"], table["bitwise_right_shift"]
    _iadd, _isub, _imul, _idiv = table["add_"], table["sub_"], table["mul_"], table["div_"]
    _ipow, _iremainder = table["pow_"], table["remainder_"]
    _ifloor_divide = table["floor_divide_"]
    _iand, _ior, _ixor = table["bitwise_and_"], table["bitwise_or_"], table["bitwise_xor_"]
    _ilshift, _irshift = table["bitwise_left_shift_"], table["bitwise_right_shift_"]
    _getitem, _setitem = table["getitem"], table["setitem"]
    _regenerate_view, _show_graph = table["regenerate_view"], table["show_graph"]
    _repr = table["repr"]
    _override, _PLAIN = table["override_method"], table["plain"]
    _marked, _fill = table["marked"], table["fill"]
