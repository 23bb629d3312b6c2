"""Running the hooks on nodes and tensors, in PyTorch's order."""

from __future__ import annotations

from typing import Any

from ..core.arrays import has_ended
from ..core.registry import operator_named
from ..core.tensor import Tensor, set_fields
from .node import AccumulateGrad, Node


def run_tensor_hooks(node: Node, grads: Any) -> Any:
    """Tensor hooks of the node's outputs, then what `retain_grad` asked to keep."""
    if isinstance(node, AccumulateGrad):
        cold = node.variable.cold
        hooks = {0: cold.hooks} if cold is not None and cold.hooks else None
        retained = None
    else:
        hooks = node.cold.tensor_hooks
        retained = node.cold.retain_hooks
    if hooks:
        for nr in list(hooks):  # in the order of their first registration
            for hook in list(hooks[nr].values()):
                grads = _replace(node, grads, nr, _hooked(hook, _pick(node, grads, nr)))
    if retained:
        for nr, reference in list(retained.items()):
            tensor = reference()
            gradient = _pick(node, grads, nr)
            if tensor is not None and gradient is not None:
                _retain(tensor, gradient)
    return grads


def _pick(node: Node, grads: Any, nr: int) -> Any:
    if node.outputs_meta is None:
        return grads
    return None if grads is None else grads[nr]


def _replace(node: Node, grads: Any, nr: int, new: Any) -> Any:
    if node.outputs_meta is None:
        return new
    if grads is None:
        grads = [None] * len(node.outputs_meta)
    grads[nr] = new
    return grads


def _hooked(hook: Any, gradient: Any) -> Any:
    result = hook(gradient)
    if result is None:
        return gradient
    _check_replacement(hook, result, gradient)
    return result


def _check_replacement(hook: Any, result: Any, gradient: Any) -> None:
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(result, Tensor):
        raise TypeError(
            f"expected Variable, but hook returned '{type(result).__name__}' (hook '{name}' must "
            "return a Tensor or None)"
        )
    if gradient is None:
        raise RuntimeError(
            f"can't replace a None gradient with a non-None value (hook '{name}')"
        )
    if result.array.dtype != gradient.array.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {gradient.dtype} got {result.dtype})"
        )
    if result.array.shape != gradient.array.shape:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value (was {list(gradient.array.shape)} got "
            f"{list(result.array.shape)})"
        )


def _retain(tensor: Tensor, gradient: Tensor) -> None:
    before = tensor.gradient
    if before is not None and has_ended(before):  # by a batch of gradients, say
        before = None
    total = operator_named("_contiguous").call1(gradient) if before is None else before + gradient
    set_fields(tensor, gradient=total)


def run_pre_hooks(node: Node, grads: Any) -> Any:
    """Node pre-hooks: each sees and may replace the tuple of output gradients."""
    for hook in list(node.cold.pre_hooks.values()):
        given = _as_given(node, grads)
        result = hook(given)
        if result is None:
            continue
        replaced = _as_tuple(hook, result, len(given))
        for new, old in zip(replaced, given, strict=True):
            if new is not None:
                _check_replacement(hook, new, old)
        grads = replaced[0] if node.outputs_meta is None else list(replaced)
    return grads


def run_post_hooks(node: Node, outputs: list, grads: Any, task: Any) -> list:
    """Node post-hooks: each sees input and output gradients and may replace the former."""
    given = _as_given(node, grads)
    for hook in list(node.cold.post_hooks.values()):
        result = hook(tuple(outputs), given)
        if result is None:
            continue
        replaced = _as_tuple(hook, result, len(outputs))
        for new, old in zip(replaced, outputs, strict=True):
            if new is not None:
                _check_replacement(hook, new, old)
        outputs = list(replaced)
    return outputs


def _as_given(node: Node, grads: Any) -> tuple:
    """The gradients of a node's outputs as its hooks see them: one per output."""
    if node.outputs_meta is None:
        return (grads,)
    return tuple(grads) if grads is not None else (None,) * len(node.outputs_meta)


def _as_tuple(hook: Any, result: Any, count: int) -> tuple:
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(result, tuple):
        raise TypeError(
            f"expected tuple, but hook returned '{type(result).__name__}' (hook '{name}')"
        )
    if len(result) != count:
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(result)}, but "
            f"expected {count})"
        )
    return result
