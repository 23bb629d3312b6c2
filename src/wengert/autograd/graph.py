"""Looking at and steering the recorded graph: edges, versions, saved-tensor hooks, multi-hooks."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..state import thread_state
from ..tensor import Tensor
from ..utils.hooks import RemovableHandle
from .engine import current_graph_task_id, will_engine_execute_node
from .node import Node, edge_node

__all__ = [
    "saved_tensors_hooks",
    "save_on_cpu",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors",
    "Node",
    "GradientEdge",
    "get_gradient_edge",
    "increment_version",
]


class GradientEdge(NamedTuple):
    """Where a gradient arrives: a node and the number of its output."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of `tensor` is computed; it keeps the graph alive."""
    if not tensor.requires():
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(edge_node(tensor), tensor.output_index)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Tell autograd that the memory of one or several tensors was changed behind its back."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if t.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        t.bump("increment_version")


class saved_tensors_hooks:
    """Pass every tensor saved in the block through `pack_hook`, and back through `unpack_hook`.

    >>> import wengert
    >>> x = wengert.ones(2, requires_grad=True)
    >>> with wengert.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), wengert.tensor):
    ...     y = x.exp()
    >>> y.sum().backward()
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        state = thread_state()
        if state.saved_hooks_disabled is not None:
            raise RuntimeError(state.saved_hooks_disabled)
        state.saved_hooks.append((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exception: object) -> None:
        thread_state().saved_hooks.pop()


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved in the block in CPU memory, and bring it back for backward."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple:
            return tensor.device, tensor.cpu()

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        if pin_memory:
            raise RuntimeError(
                "save_on_cpu(pin_memory=True) needs a CUDA device; page-locked memory is not "
                "available on the CPU backend"
            )
        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Let saved-tensor hooks raise `error_message` inside the block."""
    state = thread_state()
    previous = state.saved_hooks_disabled
    if state.saved_hooks:
        raise RuntimeError(error_message)
    state.saved_hooks_disabled = error_message
    try:
        yield
    finally:
        state.saved_hooks_disabled = previous


class _MultiHandle(RemovableHandle):
    """One handle for several hooks."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple:
        return self.handles

    def __setstate__(self, state: tuple) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once per backward: with all gradients of `tensors`, or with the first of any.

    Tensors that the running backward does not reach are not waited for; their place is None.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        ran: dict[int, bool] = defaultdict(bool)

        @functools.wraps(fn)
        def first_hook(grad: Tensor) -> None:
            task = current_graph_task_id()
            with lock:
                before, ran[task] = ran[task], True
            if not before:
                fn(grad)

        return _MultiHandle(tuple(t.register_hook(first_hook) for t in tensors if t.requires_grad))

    nodes = [edge_node(t) for t in tensors]
    waiting: dict[int, int] = {}
    gathered: dict[int, list] = {}

    def hook_of(index: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            task = current_graph_task_id()
            with lock:
                if task not in waiting:
                    waiting[task] = sum(will_engine_execute_node(node) for node in nodes)
                    gathered[task] = [None] * len(nodes)
                waiting[task] -= 1
                gathered[task][index] = grad
                complete = waiting[task] == 0
                if complete:
                    del waiting[task]
                    grads = gathered.pop(task)
            if complete:
                fn(grads)

        return hook

    return _MultiHandle(tuple(t.register_hook(hook_of(i)) for i, t in enumerate(tensors)))


def allow_mutation_on_saved_tensors() -> contextlib.AbstractContextManager[Any]:
    """Inside, tensors that a backward needs may be changed in place: see `autograd/mutation.py`.

    Returns the context that holds the copies, for debugging.
    """
    from .mutation import allow_mutation

    return allow_mutation()
