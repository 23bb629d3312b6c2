"""Saved-tensor hooks, version counters and sequence numbers, one function for each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..autograd import _get_sequence_nr as _get_sequence_nr
from ..autograd.profiler_util import DeviceType as DeviceType
from ..core.scopes import pop_saved_tensors_hooks as _pop_saved_tensors_default_hooks
from ..core.scopes import push_saved_tensors_hooks as _push_saved_tensors_default_hooks
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..tape.inspection import SavedTensor as SavedTensor

__all__ = [
    "DeviceType", "SavedTensor", "_get_sequence_nr", "_pop_saved_tensors_default_hooks",
    "_push_saved_tensors_default_hooks", "_saved_tensors_hooks_disable",
    "_saved_tensors_hooks_enable", "_saved_tensors_hooks_get_disabled_error_message",
    "_saved_tensors_hooks_is_enabled", "_top_saved_tensors_default_hooks",
    "_unsafe_set_version_counter",
]  # fmt: skip


def _saved_tensors_hooks_disable(
    error_message: str, fail_if_non_empty: bool = True
) -> None:
    """Let saved-tensor hooks raise `error_message` from now on; those that are set are refused."""
    state = thread_state()
    if state.saved_hooks and fail_if_non_empty:
        raise RuntimeError(error_message)
    state.saved_hooks_disabled = error_message


def _saved_tensors_hooks_enable() -> None:
    """Allow saved-tensor hooks again."""
    thread_state().saved_hooks_disabled = None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """What saved-tensor hooks raise, or None if they are allowed."""
    return thread_state().saved_hooks_disabled


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved-tensor hooks are allowed."""
    return thread_state().saved_hooks_disabled is None


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> tuple[Callable, Callable] | None:
    """The pair of hooks that tensors saved now would pass through."""
    hooks = thread_state().saved_hooks
    return hooks[-1] if hooks else None


def _unsafe_set_version_counter(tensors: Sequence[Tensor], versions: Sequence[int]) -> None:
    """Give the memory of tensors other version numbers."""
    for tensor, version in zip(tensors, versions, strict=True):
        tensor.shared_counter().value = version
