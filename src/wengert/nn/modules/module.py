"""Module: the base class of everything that holds parameters and can be called."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

from ...core.loading import load
from .conversion import Convertible
from .hooks import Hooked
from .hooks import register_module_backward_hook as register_module_backward_hook
from .hooks import register_module_forward_hook as register_module_forward_hook
from .hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from .hooks import register_module_full_backward_hook as register_module_full_backward_hook
from .hooks import (
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from .registration import (
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
)
from .registration import (
    register_module_module_registration_hook as register_module_module_registration_hook,
)
from .registration import (
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from .state import Stateful

_TABLES: dict[str, type] = {
    "_parameters": dict,
    "_buffers": dict,
    "_non_persistent_buffers_set": set,
    "_backward_pre_hooks": OrderedDict,
    "_backward_hooks": OrderedDict,
    "_forward_hooks": OrderedDict,
    "_forward_hooks_with_kwargs": OrderedDict,
    "_forward_hooks_always_called": OrderedDict,
    "_forward_pre_hooks": OrderedDict,
    "_forward_pre_hooks_with_kwargs": OrderedDict,
    "_state_dict_hooks": OrderedDict,
    "_state_dict_post_hooks": OrderedDict,
    "_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_pre_hooks_with_module": OrderedDict,
    "_load_state_dict_post_hooks": OrderedDict,
    "_modules": dict,
}


def _missing_forward(self: Any, *input: Any) -> Any:
    """What the module computes; every subclass defines it."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(Hooked, Stateful, Convertible):
    """Holds parameters, buffers and other modules, and computes by its method `forward`.

    A subclass calls `super().__init__()` first and defines `forward`.

    >>> import wengert as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale()
    >>> scale(torch.tensor(3.0))
    tensor(6., grad_fn=<MulBackward0>)
    >>> list(scale.state_dict().items())
    [('factor', tensor(2.))]
    """

    #: Whether `__init__` passes its arguments on, for classes with several bases.
    call_super_init = False
    dump_patches = False
    training: bool
    #: A function of any arguments: what subclasses define takes those of its own.
    forward: Callable[..., Any] = _missing_forward

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        fields = self.__dict__
        fields["training"] = True
        fields["_is_full_backward_hook"] = None
        for name, kind in _TABLES.items():
            fields[name] = kind()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def train(self, mode: bool = True) -> Self:
        """Set training mode, on or off, for this module and all in it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile calls of this module in place, with the arguments of `wengert.compile`."""
        self._compiled_call_impl = load("compiler").compile(self._call_impl, *args, **kwargs)

    def _as_compiled(self, **options: Any) -> Any:
        """What `wengert.compile(module)` returns."""
        return load("nn.modules.compiled").OptimizedModule(self, options)

    # Text ------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the text of the module says beside its class and its children."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        body = "".join(f"  {line}\n" for line in lines + children)
        return f"{self._get_name()}(\n{body})"

    # Pickling --------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, kind in _TABLES.items():  # an older state may lack some
            self.__dict__.setdefault(name, kind())
        self.__dict__.setdefault("_is_full_backward_hook", None)


def indented(text: str) -> str:
    """The text with all lines after the first indented."""
    return text.replace("\n", "\n  ")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments for factories among those of a module; others are refused.

    They stand in `kwargs` by name, or under `factory_kwargs`, but none in both.
    """
    given = dict(kwargs or {})
    inner = dict(given.pop("factory_kwargs", {}))
    unknown = set(given) - {"device", "dtype", "memory_format"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    for name in given:
        if name in inner:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
    return inner | given
