"""Looking at and steering the recorded graph: edges, versions, saved-tensor hooks, multi-hooks."""

from __future__ import annotations

import abc
import contextlib
import functools
from _thread import allocate_lock
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.handles import RemovableHandle
from ..core.loading import load
from ..core.scopes import NoSavedTensorsHooks, SavedTensorsHooks
from ..core.tensor import Tensor
from ..tape.node import Node as RecordedNode
from ..tape.node import edge_node, seen
from ..tape.tasks import current_graph_task_id, will_engine_execute_node

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
    # out of scope, found by __getattr__
    "region_activation_memory_budget",  # noqa: F822
    "set_warn_on_accumulate_grad_stream_mismatch",  # noqa: F822
    "set_override_stale_capture_stream",  # noqa: F822
]


class Node(abc.ABC):
    """What every node of a graph offers, of operators, leaves and custom functions alike."""

    @abc.abstractmethod
    def name(self) -> str:
        """The name of the operation, such as ``MulBackward0``."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Pairs of a node, or None, and the number of its output, one for each input."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict:
        """A dictionary that belongs to the user."""

    @abc.abstractmethod
    def _sequence_nr(self) -> int: ...

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> tuple: ...

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node; a result replaces grad_inputs."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before the node runs; a result replaces grad_outputs."""


Node.register(RecordedNode)


class GradientEdge(NamedTuple):
    """Where a gradient arrives: a node and the number of its output.

    A node holds the graph behind it, so the token, with which PyTorch keeps that alive, is None.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def _get_grad_fn_or_grad_acc(t: Tensor | GradientEdge) -> Node | None:
    """The node that gradients of `t` arrive at: of its operation, or of a leaf its sink."""
    return t.node if isinstance(t, GradientEdge) else seen(edge_node(t))


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of `tensor` is computed; it keeps the graph alive."""
    if not tensor.requires():
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(seen(edge_node(tensor)), tensor.output_index)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tell autograd that the memory of one or several tensors was changed behind its back.

    A tensor made in inference mode has no version and stays as it is.
    """
    if not isinstance(tensor, Iterable):
        raise RuntimeError(
            "increment_version expect a Iterable[Tensor] as input, or one Tensor, but got "
            f"{type(tensor).__name__}"
        )
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError(
                "increment_version expects each element of the iterable to be a tensor, but got "
                f"{type(t).__name__}"
            )
        if not t.inference:
            t.bump("increment_version")


class saved_tensors_hooks(SavedTensorsHooks):
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


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved in the block in CPU memory, and bring it back for backward.

    A tensor that is there already is kept as it is, or copied with `pin_memory`. The copy would be
    page-locked for devices of `device_type`; without such devices it is ordinary memory.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack_to_cpu(tensor: Tensor) -> tuple:
            packed = tensor.cpu()
            return tensor.device, packed.clone() if pin_memory and packed is tensor else packed

        def unpack_from_cpu(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


def disable_saved_tensors_hooks(error_message: str) -> contextlib.AbstractContextManager[None]:
    """Let saved-tensor hooks raise `error_message` inside the block."""
    if not isinstance(error_message, str):
        raise TypeError(
            "disable_saved_tensors_hooks(): incompatible function arguments. error_message must be "
            f"str, not {type(error_message).__name__}"
        )
    return NoSavedTensorsHooks(error_message)


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
    lock = allocate_lock()
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
    if None in nodes:  # before any hook is registered
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
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
    return load("autograd.mutation").allow_mutation()


# Names of this module that are defined in others, which are imported when they are asked for.
_ELSEWHERE = {
    "_AllowMutationOnSavedContext": ("autograd.mutation", "_AllowMutationOnSavedContext"),
    "_CloneArgBeforeMutateMode": ("autograd.mutation", "CloneBeforeChange"),
    "_engine_run_backward": ("autograd.variable", "engine_run_backward"),
    "_register_logging_hooks_on_whole_graph": ("tape.node_log", "log_nodes"),
    "memory": ("autograd.memory", "memory"),
}


def __getattr__(name: str) -> Any:
    if name == "__path__":  # asked for by every import from this module
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ELSEWHERE:
        module, own = _ELSEWHERE[name]
        return getattr(load(module), own)
    if name == "log":
        import logging

        return logging.getLogger(__name__)
    return load("autograd.out_of_scope").look_up(__name__, name)
