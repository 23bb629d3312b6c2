"""Removable handles for hooks kept in an ordered dictionary."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

_next_id = itertools.count()


def unserializable_hook(f: Callable) -> Callable:
    """Mark a hook that is meant to stay behind when its tensor is pickled."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Say which hooks of a tensor will stay behind when it is pickled, but for marked ones."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If that is meant, mark "
                "the hook by the decorator utils.hooks.unserializable_hook",
                stacklevel=2,
            )


class RemovableHandle:
    """Takes a hook away again: by `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = next(_next_id)
        self.extra_dict_refs: tuple = ()
        if isinstance(extra_dict, list):
            self.extra_dict_refs = tuple(weakref.ref(d) for d in extra_dict)
        elif extra_dict is not None:
            self.extra_dict_refs = (weakref.ref(extra_dict),)

    def remove(self) -> None:
        """Remove the hook; doing so twice is harmless."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_refs):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_refs))

    def __setstate__(self, state: tuple) -> None:
        global _next_id
        hooks, self.id, extra = state
        # The dictionary that came along has this number in use.
        _next_id = itertools.count(max(next(_next_id), self.id + 1))
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_refs = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
