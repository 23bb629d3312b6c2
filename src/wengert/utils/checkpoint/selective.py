"""Selective checkpointing: a policy says, call by call, what is kept and what is made again."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from ...core.tensor import AbstractOperator, Tensor
from ...dispatch.modes import TorchDispatchMode
from ...library.overloads import OpOverload, overload_of
from ...operators.getitem import detach
from ...transforms.memory import alias_of


class CheckpointPolicy(enum.Enum):
    """What to do with the result of an operator. PREFER leaves a compiler free to decide."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (
    CheckpointPolicy.MUST_SAVE,
    CheckpointPolicy.PREFER_SAVE,
    CheckpointPolicy.MUST_CPU_OFFLOAD,
    CheckpointPolicy.PREFER_CPU_OFFLOAD,
)

# Operators that compute nothing; a policy is not asked about them. Recomputed tensors are detached
# more often than those of the forward.
SAC_IGNORED_OPS: set[Any] = {overload_of(detach)}


class SelectiveCheckpointContext:
    """What a policy is told about the run it decides for."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable | list, allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The two contexts for ``checkpoint(context_fn=...)``.

    The policy is ``policy_fn(ctx, op, *args, **kwargs) -> CheckpointPolicy``, or a list of the
    operators whose results are saved.

    >>> import functools
    >>> import wengert
    >>> from wengert.utils.checkpoint import (
    ...     CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts)
    >>> def keep_products(ctx, op, *args, **kwargs):
    ...     save = op is wengert.ops.aten.mm.default
    ...     return CheckpointPolicy.MUST_SAVE if save else CheckpointPolicy.PREFER_RECOMPUTE
    >>> x = wengert.ones(2, 2, requires_grad=True)
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, keep_products)
    >>> y = checkpoint(lambda x: (x @ x).sin().sum(), x, use_reentrant=False, context_fn=contexts)
    """
    if isinstance(policy_fn_or_list, list):
        chosen = [_overload_of(op) for op in policy_fn_or_list]

        def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> Any:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[OpOverload, list[Kept | None]] = {}
    return Keeping(policy, kept), Replaying(kept, allow_cache_entry_mutation)


def _overload_of(op: Any) -> OpOverload:
    """The overload that a list means, given itself or as an operator, declared or custom."""
    op = getattr(op, "_opoverload", op)
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, AbstractOperator):
        return overload_of(op)
    raise ValueError(
        f"create_selective_checkpoint_contexts(): the list must hold operators: expected an "
        f"OpOverload but got {op!r} of type {type(op).__name__}"
    )


class Kept:
    """A result as it was, with its version at that time."""

    def __init__(self, out: Any) -> None:
        self.tensors = [alias_of(t) for t in _listed(out)]
        self.sources = [t.shared_counter() for t in _listed(out)]
        self.versions = [counter.value for counter in self.sources]
        self.single = isinstance(out, Tensor)
        self.kind = type(out)

    def result(self, check: bool) -> Any:
        if check and self.versions != [counter.value for counter in self.sources]:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated in place "
                "since; pass allow_cache_entry_mutation=True if that is meant"
            )
        fresh = [alias_of(t) for t in self.tensors]
        return fresh[0] if self.single else self.kind(fresh)


_MISSING: Any = object()


def _listed(out: Any) -> list:
    return [out] if isinstance(out, Tensor) else list(out)


class Keeping(TorchDispatchMode):
    """The forward: keeps what the policy says, and None for each result that is made again."""

    def __init__(self, policy: Callable, kept: dict[OpOverload, list[Kept | None]]) -> None:
        self.policy = policy
        self.kept = kept

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in SAC_IGNORED_OPS:
            return out
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        saved = _decide(self.policy, context, func, args, kwargs or {}) in _SAVED
        if saved and func._schema.is_mutable:
            raise RuntimeError(
                f"selective checkpoint: the policy saves the result of {func}, which "
                "works in place; in-place operators cannot be kept"
            )
        self.kept.setdefault(func, []).append(Kept(out) if saved else None)
        return out


class Replaying(TorchDispatchMode):
    """The recomputation: gives back what was kept, in the order of the calls in the forward."""

    def __init__(self, kept: dict[OpOverload, list[Kept | None]], mutable: bool) -> None:
        self.kept = kept
        self.mutable = mutable

    def _prepare_to_enter(self) -> None:
        self.left = {func: iter(results) for func, results in self.kept.items()}

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func not in SAC_IGNORED_OPS:
            result = next(self.left.get(func, iter(())), _MISSING)
            if result is _MISSING:
                raise RuntimeError(
                    f"{func} encountered during backward, but not found in storage: the function "
                    "called it less often during the forward"
                )
            if result is not None:
                return result.result(not self.mutable)
        return func(*args, **(kwargs or {}))


def _decide(policy: Callable, context: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    answer = policy(context, func, *args, **kwargs)
    if isinstance(answer, bool):
        return CheckpointPolicy.MUST_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
    if not isinstance(answer, CheckpointPolicy):
        raise RuntimeError(
            f"selective checkpoint: the policy must return a CheckpointPolicy, not {answer!r}"
        )
    return answer
