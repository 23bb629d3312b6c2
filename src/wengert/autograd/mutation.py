"""Changing tensors that a backward still needs: the saved value is copied just before the change.

Saved tensors are packed into handles that know the memory they came from, by the array that owns
it. A dispatch mode sees every operator that writes, and copies what handles of that memory still
refer to.
"""

from __future__ import annotations

import sys
import weakref
from collections import defaultdict
from typing import Any

from ..backends.geometry import owner_of
from ..core.arrays import WrapperArray
from ..core.scopes import Assigned, SavedTensorsHooks, Together
from ..core.tensor import Tensor, counter_of
from ..dispatch.modes import TorchDispatchMode


class Handle:
    """Stands for one saved tensor."""

    __slots__ = ("__weakref__",)


class _AllowMutationOnSavedContext:
    """What the context manager knows: saved tensors as they are, and copies of changed ones."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary[Handle, Tensor] = weakref.WeakKeyDictionary()
        self.original: weakref.WeakKeyDictionary[Handle, Tensor] = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: weakref.WeakValueDictionary[tuple, Handle] = (
            weakref.WeakValueDictionary()
        )
        self.sid_to_tid: dict[int, set[tuple]] = defaultdict(set)
        self.open = True

    def clear(self) -> None:
        """Forget everything; a backward after this is refused."""
        self.open = False
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, t: Tensor) -> Handle:
        """A handle for a saved tensor; the same tensor saved twice has one."""
        sid = memory_of(t)
        tid = (id(t), sid)
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None or handle not in self.original:
            handle = Handle()
            self.tid_to_weakhandle[tid] = handle
            self.original[handle] = t
        self.sid_to_tid[sid].add(tid)
        return handle

    def unpack(self, handle: Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        if self.open:
            known = self.cloned.get(handle)
            if known is None:
                known = self.original.get(handle)
            if known is not None:
                return known
        raise AssertionError(
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which "
            "the graph was originally recorded."
        )

    def before_change(self, t: Tensor) -> None:
        """Copy what handles refer to in the memory of `t`."""
        for tid in self.sid_to_tid.pop(memory_of(t), ()):
            handle = self.tid_to_weakhandle.get(tid)
            if handle is not None and handle in self.original:
                self.cloned[handle] = self.original.pop(handle).clone()


def memory_of(t: Tensor) -> int:
    """Which memory a tensor is in; aliases without elements share a counter instead."""
    array = t.array
    return id(counter_of(t) if type(array) is WrapperArray else owner_of(array))


class CloneBeforeChange(TorchDispatchMode):
    """Tells the context of every tensor that an operator is about to write to."""

    def __init__(self, context: _AllowMutationOnSavedContext) -> None:
        self.context = context

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given: dict[Any, Any] = {**dict(enumerate(args)), **(kwargs or {})}
        for i, argument in enumerate(func._schema.arguments):
            if argument.is_write:
                value = given.get(i, given.get(argument.name))
                for t in value if isinstance(value, (list, tuple)) else (value,):
                    if t is not None:
                        self.context.before_change(t)
        return func(*args, **(kwargs or {}))


_active = False


class allow_mutation(Together):
    """Inside, a tensor that is saved for backward may be changed in place: it is copied first.

    The backward must run inside too. The context that is returned shows what was copied.

    >>> import wengert
    >>> with wengert.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = wengert.full((2,), 3.0, requires_grad=True)
    ...     b = a.clone()
    ...     out = (b**2).sum()
    ...     b.zero_()
    ...     out.backward()
    tensor([0., 0.], grad_fn=<ZeroBackward0>)
    >>> a.grad
    tensor([6., 6.])
    """

    def __init__(self) -> None:
        self.result = context = _AllowMutationOnSavedContext()
        self.scopes = [
            _Cleared(context),  # the only one that is Python code: left last
            Assigned(sys.modules[__name__], _active=True),
            _hooks_of(context),
            CloneBeforeChange(context),
        ]

    def _recreate_cm(self) -> allow_mutation:
        return allow_mutation()


def _hooks_of(context: _AllowMutationOnSavedContext) -> SavedTensorsHooks:
    hooks = SavedTensorsHooks()
    hooks.pack_hook, hooks.unpack_hook = context.pack, context.unpack
    return hooks


class _Cleared:
    """Clears a context at the end of a block."""

    def __init__(self, context: _AllowMutationOnSavedContext) -> None:
        self.context = context

    def __enter__(self) -> None:
        if _active:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")

    def __exit__(self, *exception: object) -> None:
        self.context.clear()
