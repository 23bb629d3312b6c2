"""Dispatch modes: while one is active, every operator call passes through it below autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.scopes import DispatchModeScope
from ..core.scopes import InnermostModeAside as _pop_mode_temporarily  # noqa: F401
from ..core.scopes import ModesAside as _disable_current_modes  # noqa: F401
from ..core.scopes import pop_mode as _pop_mode  # noqa: F401
from ..core.scopes import push_mode as _push_mode  # noqa: F401
from ..core.state import thread_state
from ..core.tensor import Tensor

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "any_torch_dispatch_mode_on_stack",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode(DispatchModeScope):
    """Base of modes; a subclass overrides `__torch_dispatch__` and is used in a `with` block.

    The handler gets the overload that is called (as `wengert.ops` has it), the subclasses of Tensor
    among the arguments, and the arguments with defaults left out. Inside it the mode itself is put
    aside, so calling `func` runs the operator under the modes that were entered before. What the
    handler returns is what the program sees.

    >>> import wengert
    >>> from wengert.utils._python_dispatch import TorchDispatchMode
    >>> class Negate(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         if func is wengert.ops.aten.add.Tensor:
    ...             func = wengert.ops.aten.sub.Tensor
    ...         return func(*args, **(kwargs or {}))
    >>> with Negate():
    ...     wengert.ones(2) + 1
    tensor([0., 0.])
    """

    supports_higher_order_operators = False

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} is a dispatch mode without a __torch_dispatch__ method"
        )

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """An instance; the `with` statement enters it."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: modes of a kind that goes before all others do not exist."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


# The stack of modes ------------------------------------------------------------------------------


def _len_torch_dispatch_stack() -> int:
    return len(thread_state().modes)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode."""
    modes = thread_state().modes
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All active modes, outermost first."""
    return list(thread_state().modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active; none is an infra mode, so the argument makes no difference."""
    return bool(thread_state().modes)


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode is active."""
    return bool(thread_state().modes)


# Subclasses of Tensor ----------------------------------------------------------------------------


def return_and_correct_aliasing(
    func: Any, args: tuple, kwargs: dict[str, Any], out: Any
) -> Any:
    """What a handler returns for `func`, given results that it has made: written arguments as such.

    An operator that writes into an argument and returns it has to return that very tensor.
    """
    schema = func._schema
    given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    written = {
        str(argument.alias_info): given.get(i, given.get(argument.name))
        for i, argument in enumerate(schema.arguments)
        if argument.is_write
    }
    returns = schema.returns
    if len(returns) == 1:
        return written[str(returns[0].alias_info)] if returns[0].is_write else out
    if not returns:
        return out
    return type(out)(
        [
            written[str(returned.alias_info)] if returned.is_write else value
            for returned, value in zip(returns, out, strict=True)
        ]
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a value is a tensor of a subclass that can be taken apart and put together again."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors can be taken apart and put together again."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any,
    callback: Callable[[str, Any], Any],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """The tensor with each of the tensors inside it replaced by ``callback(name, tensor)``."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if tuple(made.shape) != tuple(size):
        raise RuntimeError(
            f"{type(t).__name__}.__tensor_unflatten__() made a tensor of size {tuple(made.shape)}, "
            f"not {tuple(size)}"
        )
    return made
