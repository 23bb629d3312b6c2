"""`Variable`, the old name of Tensor, and the engine object behind it."""

from __future__ import annotations

import warnings
from typing import Any

from ..core.loading import load
from ..core.tensor import Tensor
from ..creation.factories import empty
from ..tape import engine, tasks
from ..tape.node import Node, edge_node

__all__ = ["Variable", "VariableMeta"]


class ImperativeEngine:
    """The engine as `Variable._execution_engine`, with every argument checked."""

    def run_backward(
        self,
        tensors: tuple,
        grad_tensors: tuple,
        keep_graph: bool,
        create_graph: bool,
        inputs: tuple | None = None,
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> tuple | None:
        """Run one backward; gradients of `inputs` return unless they are accumulated."""
        roots, grads = self._roots(tensors, grad_tensors)
        targets = self._targets(inputs, accumulate_grad) if inputs else None
        if targets is None and not accumulate_grad:
            raise RuntimeError("grad requires non-empty inputs.")
        outputs = engine.run_backward(
            roots, grads, bool(keep_graph), bool(create_graph), targets, bool(accumulate_grad)
        )
        if accumulate_grad or outputs is None:
            return None
        if not allow_unreachable:
            for index, gradient in enumerate(outputs):
                if gradient is None:
                    raise RuntimeError(
                        f"The differentiated Tensor at index {index} appears to not have been used "
                        "in the graph. Set allow_unused=True if its gradient may be None"
                    )
        return tuple(outputs)

    def _roots(self, tensors: tuple, grad_tensors: tuple) -> tuple[list, list]:
        for name, value in (("tensors", tensors), ("grad_tensors", grad_tensors)):
            if not isinstance(value, tuple):
                raise RuntimeError(
                    f"{name} argument is expected to be a tuple, but got {type(value).__name__}"
                )
        if len(tensors) != len(grad_tensors):
            raise RuntimeError(f"got {len(tensors)} tensors and {len(grad_tensors)} gradients")
        roots, grads = [], []
        for i, tensor in enumerate(tensors):
            grad = grad_tensors[i]
            if isinstance(tensor, Tensor):
                node = edge_node(tensor)
                nr = tensor.output_index
                if node is None:
                    raise RuntimeError(
                        f"element {i} of tensors does not require grad and does not have a grad_fn"
                    )
            elif is_edge(tensor):
                node, nr = checked_edge(tensor)
            else:
                raise RuntimeError(
                    f"element {i} of tensors tuple is neither a Tensor nor a GradientEdge, but "
                    f"{type(tensor).__name__}"
                )
            if grad is None:
                raise RuntimeError(
                    f"element {i} of gradients tuple is None, but the corresponding Tensor "
                    "requires grad"
                )
            if not isinstance(grad, Tensor):
                raise RuntimeError(f"element {i} of gradients tuple is not a Tensor or None")
            roots.append((node, nr))
            grads.append(grad)
        return roots, grads

    def _targets(self, inputs: tuple, accumulate: bool) -> list:
        if not isinstance(inputs, tuple):
            raise RuntimeError("inputs to run_backward must be a tuple")
        targets = []
        for value in inputs:
            if isinstance(value, Tensor):
                if accumulate:
                    value.retain_grad()
                node = edge_node(value)
                if node is None and not value.requires():
                    raise RuntimeError("One of the differentiated Tensors does not require grad")
                targets.append((node, value.output_index))
            elif is_edge(value):
                targets.append(checked_edge(value))
            else:
                raise RuntimeError(
                    "all inputs have to be Tensors or GradientEdges, but got "
                    f"{type(value).__name__}"
                )
        return targets

    def queue_callback(self, callback: Any) -> None:
        """Call `callback` when the running backward has ended."""
        engine.queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether no backward under way is restricted by `inputs=`."""
        return tasks.is_checkpoint_valid()


def engine_run_backward(t_outputs: tuple, *args: Any, **kwargs: Any) -> tuple | None:
    """`run_backward` of the engine, as a function."""
    return Variable._execution_engine.run_backward(t_outputs, *args, **kwargs)


def is_edge(value: Any) -> bool:
    """Whether a value is a `GradientEdge`, whose module few programs import."""
    return isinstance(value, tuple) and isinstance(value, load("autograd.graph").GradientEdge)


def checked_edge(edge: Any) -> tuple[Node, int]:
    """Node and output number of an edge that a user may have put together."""
    node, nr = edge.node, edge.output_nr
    if not isinstance(node, Node):
        raise RuntimeError(
            "GradientEdge's first object must be an autograd.graph.Node but got "
            f"{type(node).__name__}"
        )
    count = 1 if node.outputs_meta is None else len(node.outputs_meta)
    if not 0 <= nr < count:
        raise IndexError(
            f"GradientEdge's output number {nr} is out of range: {node.name()} has {count} "
            f"output{'s' if count > 1 else ''}"
        )
    return node, nr


class VariableMeta(type):
    """Lets ``isinstance(t, Variable)`` hold for every tensor."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """The deprecated way to make a tensor that records: ``Variable(t, requires_grad=True)``."""

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile is not None:
            warnings.warn(
                "volatile was removed and now has no effect: record nothing by `with no_grad():`",
                stacklevel=2,
            )
        tensor = empty(0) if data is None else data.detach()
        return tensor.requires_grad_(requires_grad)
