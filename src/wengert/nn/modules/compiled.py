"""A module whose calls are compiled, as `wengert.compile(module)` returns it."""

from __future__ import annotations

from typing import Any

from ...core.loading import load
from .hooks import has_global_hooks
from .module import Module

#: Attributes of its own; all others are those of the original module.
_OWN = frozenset((
    "_orig_mod", "_options", "forward", "_compiled_call_impl", "_is_full_backward_hook",
))  # fmt: skip


class OptimizedModule(Module):
    """Stands for another module, shares its attributes and compiles its calls.

    Hooks that are registered here run around the compiled call.
    """

    def __init__(self, mod: Module, options: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.__dict__.pop("training")
        self._modules["_orig_mod"] = mod
        self._options = options or {}
        self._compile_original()

    def _compile_original(self) -> None:
        compiled = load("compiler").compile(self._orig_mod.__call__, **self._options)
        self.forward = compiled

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Whether the original module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        self._orig_mod.training = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled module; the plain one where hooks are registered for all modules."""
        if has_global_hooks():
            return self._orig_mod(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getattr__(self, name: str) -> Any:
        original = self.__dict__["_modules"]["_orig_mod"]
        return original if name == "_orig_mod" else getattr(original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN or name == "training":
            object.__setattr__(self, name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            object.__delattr__(self, name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._orig_mod), "_orig_mod"})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._orig_mod, self._options)
