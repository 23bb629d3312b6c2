"""`__torch_function__`: classes and modes that take over calls of the public functions.

A public function looks for overrides before it does anything else: the innermost function mode
first, then the classes of its arguments. The operators inside it, and those that rules and kernels
call, are not asked again: `state.inside` says that a call is part of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.arrays import mark, unmarked
from ..core.errors import argument_error, name_and_parameters
from ..core.scopes import FunctionsNotOverridden, set_function_modes
from ..core.state import ThreadState, overriding, thread_state
from ..core.tensor import Tensor
from .effects import Effect
from .torch_dispatch import add_by_class, call_form, overrides_dispatch

# What of `__torch_function__` is switched off, see ThreadState.function_disabled.
SUBCLASSES = 1
ALL = 2

#: The answer of `override` where nobody wants the call.
PLAIN: Any = type("Plain", (), {"__slots__": ()})()


#: Functions that read their arguments as data, whatever their classes are.
MODES_ONLY: set[Callable[..., Any]] = set()


def disabled_torch_function_impl(
    func: Callable[..., Any], types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """As ``__torch_function__`` of a class: its instances are treated as plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def overrides_functions(cls: type) -> bool:
    """Whether a class has a `__torch_function__` that is to be asked."""
    if cls is Tensor:
        return False
    handler = getattr(cls, "__torch_function__", None)
    if handler is None or handler is disabled_torch_function_impl:
        return False
    # A class that handles what is below autograd is left alone above it, unless it says otherwise.
    is_default = getattr(handler, "__func__", None) is default_torch_function
    return not (is_default and overrides_dispatch(cls))


def takes_part(cls: type) -> bool:
    """Whether calls with instances of a class have to ask it, above autograd or below."""
    return overrides_functions(cls) or overrides_dispatch(cls)


def overloaded_arguments(values: Iterable[Any]) -> list[Any]:
    """Those of `values`, or of lists among them, whose classes override; one for each class.

    They are in the order in which they are asked: subclasses before their bases, else from the
    left to the right.
    """
    found: list[Any] = []
    for value in values:
        if type(value) is tuple or type(value) is list:
            for item in value:
                if type(item) is not Tensor:
                    _add_overloaded(found, item)
        elif type(value) is not Tensor:
            _add_overloaded(found, value)
    return found


def _add_overloaded(found: list[Any], value: Any) -> None:
    if overrides_functions(type(value)):
        add_by_class(found, value)


def override(
    state: ThreadState,
    func: Any,
    args: tuple,
    kwargs: dict[str, Any],
    relevant: tuple | None = None,
) -> Any:
    """What a mode or a class among the arguments makes of a call; PLAIN if there is none.

    `relevant` are the arguments whose classes are looked at, by default all.
    """
    disabled = state.function_disabled
    modes = state.function_modes if disabled < ALL else []
    overloaded: list[Any] = []
    if not disabled:
        overloaded = overloaded_arguments(
            (*args, *kwargs.values()) if relevant is None else relevant
        )
    if not modes and not overloaded:
        return PLAIN
    types = tuple([type(value) for value in overloaded])
    if modes:
        out = _call_mode(state, modes, func, types, args, kwargs)
        if out is not NotImplemented:
            return out
    for value in overloaded:
        out = value.__torch_function__(func, types, args, kwargs)
        if out is not NotImplemented:
            return out
    raise _failed(func, modes, types)


def _call_mode(
    state: ThreadState, modes: list, func: Any, types: tuple, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Ask the innermost mode, which is put aside meanwhile."""
    try:
        set_function_modes(state, modes[:-1])
        return modes[-1].__torch_function__(func, types, args, kwargs)
    finally:
        set_function_modes(state, modes)


def _failed(func: Any, modes: list, types: tuple) -> TypeError:
    asked = [f"  - mode object {modes[-1]}"] if modes else []
    asked += [f"  - tensor subclass {cls}" for cls in types]
    name = getattr(func, "__name__", repr(func))
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
        "NotImplemented:\n" + "\n".join(asked)
    )


# Where calls come from ---------------------------------------------------------------------------


def call_overridable(public: Any, function: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """A call of a public function, known to overrides as `public`, that someone may override."""
    state = thread_state()
    if not state.inside:
        out = override(state, public, args, kwargs, () if function in MODES_ONLY else None)
        if out is not PLAIN:
            return out
    if isinstance(function, Effect):
        out = function.handled(args, kwargs)
        if out is not NotImplemented:
            return out
    try:
        return function(*args, **kwargs)
    except AttributeError as error:
        name, parameters = name_and_parameters(function)
        raise argument_error(error, name, parameters, args, kwargs) from None


def override_operator(operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What overrides make of a call of an operator; PLAIN if there are none."""
    state = thread_state()
    return PLAIN if state.inside else override(state, operator, args, kwargs)


def override_method(name: str, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
    """What overrides make of a call of a method of Tensor that is no function; PLAIN if none."""
    state = thread_state()
    return PLAIN if state.inside else override(state, getattr(Tensor, name), args, kwargs or {})


def override_bound(operator: Any, args: tuple) -> Any:
    """What overrides make of a call whose arguments are in schema order; PLAIN if none."""
    state = thread_state()
    if state.inside:
        return PLAIN
    facts = operator.facts
    if "reflected" in facts and not isinstance(args[0], Tensor):
        func = getattr(Tensor, facts["reflected"])
        return override(state, func, (args[1], args[0]), {})
    func = getattr(Tensor, facts["overridden_as"]) if "overridden_as" in facts else operator
    return override(state, func, *call_form(operator.schema, args))


def override_operands(operator: Any, x: Any, y: Any) -> Any:
    """What becomes of two operands of which one is no tensor: NotImplemented, unless it overrides.

    NotImplemented is also the answer if none of those that override want the call: Python then
    asks the other operand.
    """
    try:
        out = override_operator(operator, (x, y), {})
    except TypeError as error:
        if "Multiple dispatch failed" in str(error):
            return NotImplemented
        raise
    return NotImplemented if out is PLAIN else out


# Switching it off --------------------------------------------------------------------------------


class DisableTorchFunctionSubclass(FunctionsNotOverridden):
    """Inside, the classes of arguments do not override functions; modes do."""

    what = SUBCLASSES


class DisableTorchFunction(FunctionsNotOverridden):
    """Inside, neither classes of arguments nor modes override functions."""

    what = ALL


# The default -------------------------------------------------------------------------------------


def default_torch_function(
    cls: type,
    func: Callable[..., Any],
    types: tuple,
    args: tuple = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call the function on tensors as such, and return its results as instances of this class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        out = func(*args, **(kwargs or {}))
        return out if func in unwrapped_functions() else converted(out, cls)


def converted(out: Any, cls: type) -> Any:
    """Results with every tensor, in tuples and lists too, as an instance of `cls`."""
    if cls is Tensor:
        return out
    if isinstance(out, Tensor):
        return out if isinstance(out, cls) else out.as_subclass(cls)
    if isinstance(out, (tuple, list)):
        items = [converted(item, cls) for item in out]
        named = isinstance(out, tuple) and hasattr(out, "_fields")
        return type(out)(*items) if named else type(out)(items)
    return out


_unwrapped: set[Any] = set()


def unwrapped_functions() -> set[Any]:
    """The functions whose results stay what they are: they return tensors that exist already."""
    if not _unwrapped:
        table: Any = Tensor
        _unwrapped.update((table._base.__get__, table.grad.__get__))
    return _unwrapped


def marked(cls: type, array: Any) -> Any:
    """An array as an instance of `cls` carries it."""
    if cls is Tensor or not takes_part(cls):
        return unmarked(array)
    overriding.note_class()
    return mark(array)
