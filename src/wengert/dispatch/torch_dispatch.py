"""What stands in for a kernel: dispatch modes, and classes of tensors with `__torch_dispatch__`.

Below autograd, forward mode and the transforms, a call is handed to the innermost mode, or else to
the classes of its tensors, as the overload that `wengert.ops` has for it. What the handler returns
takes the place of what the kernel would return.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.scopes import DispatchNotOverridden, set_modes
from ..core.state import ThreadState, call_user, overriding, thread_state
from ..core.tensor import Tensor, any_requires, set_fields
from .schema import REQUIRED

# What `library.register_torch_dispatch` has registered, by operator and class of modes or tensors.
_rules: dict[Any, dict[type, Callable[..., Any]]] = {}


def override_below(state: ThreadState, operator: Any, args: tuple) -> Any:
    """What the innermost mode or the classes of the tensors make of a call.

    NotImplemented if there is nobody to ask.
    """
    if not state.modes and (not overriding.possible or state.dispatch_disabled):
        return NotImplemented
    asked = dispatching_arguments(state, args)
    if not state.modes and not asked:
        return NotImplemented
    return _ask(state, operator, asked, *split_arguments(operator.schema, args))


def override_function(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What they make of a call that makes, draws or reads, see `effects.py`."""
    state = thread_state()
    asked = dispatching_arguments(state, (*args, *kwargs.values()))
    if not state.modes and not asked:
        return NotImplemented
    return _ask(state, function, asked, args, kwargs)


def dispatching_arguments(state: ThreadState, args: tuple) -> list[Tensor]:
    """The tensors whose classes are to be asked, one for each class, in the order of asking.

    Subclasses come before their bases, else the order is from the left to the right.
    """
    found: list[Tensor] = []
    if state.dispatch_disabled:
        return found
    for value in args:
        for item in value if type(value) is list or type(value) is tuple else (value,):
            cls = type(item)
            if cls is not Tensor and isinstance(item, Tensor) and overrides_dispatch(cls):
                add_by_class(found, item)
    return found


def add_by_class(found: list[Any], value: Any) -> None:
    """Add a value of another class, before those of its base classes."""
    cls = type(value)
    for i, other in enumerate(found):
        if cls is type(other):
            return
        if issubclass(cls, type(other)):
            found.insert(i, value)
            return
    found.append(value)


def _ask(
    state: ThreadState, operator: Any, asked: list[Tensor], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Let the innermost mode decide, or else the first class that wants to.

    A mode is put aside meanwhile. Nothing is recorded inside, except that a custom operator without
    a formula is recorded through what its kernel calls.
    """
    from ..library.overloads import overload_of

    func = overload_of(operator)
    types = tuple([type(value) for value in asked])
    modes, grad_enabled = state.modes, state.grad_enabled
    try:
        state.grad_enabled = grad_enabled and not getattr(operator, "records", True)
        if modes:
            set_modes(state, modes[:-1])
        for handler in (*modes[-1:], *types):
            rule = rule_for(operator, handler if handler in types else type(handler))
            if rule is not None:
                out = call_user(rule, handler, func, types, args, kwargs)
            else:
                out = call_user(handler.__torch_dispatch__, func, types, args, kwargs)
            if out is not NotImplemented:
                return out
    finally:  # the call last: an interrupt may come after it
        state.grad_enabled = grad_enabled
        if modes:
            set_modes(state, modes)
    handlers = [f"mode object {mode}" for mode in modes[-1:]]
    handlers += [f"tensor subclass {cls}" for cls in types]
    raise TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned "
        "NotImplemented:\n" + "\n".join(f"  - {text}" for text in handlers)
    )


def overrides_dispatch(cls: type) -> bool:
    """Whether a class has a `__torch_dispatch__` of its own."""
    handler = getattr(cls, "__torch_dispatch__", None)
    return handler is not None and handler is not disabled_torch_dispatch_impl


def disabled_torch_dispatch_impl(
    func: Callable[..., Any], types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The `__torch_dispatch__` of Tensor itself: the operator as it is for plain tensors."""
    with DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


class DisableTorchDispatch(DispatchNotOverridden):
    """Inside, the classes of tensors do not handle operators."""


def rule_for(operator: Any, cls: type) -> Callable[..., Any] | None:
    """What is registered for an operator and a class, see `register_rule`."""
    rules = _rules.get(operator)
    return None if rules is None else rules.get(cls)


def register_rule(
    operator: Any, cls: type, rule: Callable[..., Any], *, replace: bool = False
) -> Callable[[], None]:
    """Let `rule` handle an operator in place of a class's handler; returns how to take it back."""
    if not isinstance(cls, type):
        raise TypeError(
            f"register_torch_dispatch(): expected the class of a mode or of a tensor, got {cls!r}"
        )
    rules = _rules.setdefault(operator, {})
    if cls in rules and not replace:
        raise RuntimeError(
            f"{cls} already has a `__torch_dispatch__` rule registered for {operator.name}"
        )
    rules[cls] = rule

    def undo() -> None:
        if rules.get(cls) is rule:
            del rules[cls]

    return undo


# Arguments and results ---------------------------------------------------------------------------


def split_arguments(schema: Any, args: tuple) -> tuple[tuple, dict[str, Any]]:
    """All arguments in schema order as a handler gets them: as a caller gives them, with lists."""
    positional, keywords = call_form(schema, args)
    return tuple([list(v) if type(v) is tuple else v for v in positional]), keywords


def call_form(schema: Any, args: tuple) -> tuple[tuple, dict[str, Any]]:
    """All arguments in schema order as a caller would give them, defaults left out at the end."""
    positional: list = []
    keywords: dict[str, Any] = {}
    for argument, value in zip(schema.arguments, args, strict=True):
        if not argument.keyword_only:
            positional.append(value)
        elif not _is_default(argument, value):
            keywords[argument.name] = value
    while positional and _is_default(schema.arguments[len(positional) - 1], positional[-1]):
        positional.pop()
    return tuple(positional), keywords


def _is_default(argument: Any, value: Any) -> bool:
    default = argument.default
    if default is REQUIRED:
        return False
    return value is default or (type(value) is type(default) and bool(value == default))


def as_results(operator: Any, args: tuple, out: Any) -> Any:
    """What a handler returned in the form that a kernel's results have; tensors stay tensors.

    A result of a recorded call gets a history of its own. Where the handler returned an input or a
    tensor that has a history, the program therefore gets an alias of that.
    """
    returns = operator.schema.returns
    state = thread_state()
    recorded = state.recording() and any_requires(args, operator.grad_positions)
    if len(returns) == 1 and not returns[0].endswith("]"):
        return None if out is None else _as_result(operator, args, out, recorded)
    if not isinstance(out, (tuple, list)):
        raise RuntimeError(
            f"Unable to cast {out!r} to Tensors: {operator.name} returns several, so that the "
            "handler has to return a tuple or a list"
        )
    if len(returns) > 1 and len(out) != len(returns):
        raise RuntimeError(
            f"{operator.name} returns {len(returns)} tensors, but the handler returned {len(out)}"
        )
    items = [_as_result(operator, args, item, recorded) for item in out]
    return items if len(returns) == 1 else tuple(items)


def _as_result(operator: Any, args: tuple, out: Any, recorded: bool) -> Tensor:
    if not isinstance(out, Tensor):
        raise RuntimeError(
            f"Unable to cast {out!r} to Tensor: that is what the handler returned for "
            f"{operator.name}"
        )
    if recorded or operator.is_view:
        out = without_history(args, out, recorded)
        if not operator.is_view:
            set_fields(out, view_meta=None)
    return out


def without_history(args: tuple, out: Any, recorded: bool = True) -> Any:
    """Results with aliases in place of inputs and, if `recorded`, of tensors with history."""
    if isinstance(out, (tuple, list)):
        return type(out)([without_history(args, item, recorded) for item in out])
    if isinstance(out, Tensor) and (
        (recorded and out.needs_grad) or any(out is value for value in args)
    ):
        return out.detach()
    return out
