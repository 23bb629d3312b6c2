"""`Variable`, the old name of Tensor, and the engine object behind it."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import engine
from .graph import GradientEdge
from .node import Node, edge_node

__all__ = ["Variable", "VariableMeta"]


class ExecutionEngine:
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
        targets = None if inputs is None else self._targets(inputs, accumulate_grad)
        result = engine.run_backward(
            roots, grads, bool(keep_graph), bool(create_graph), targets, bool(accumulate_grad)
        )
        if accumulate_grad or inputs is None:
            return None
        outputs = result or [None] * len(inputs)
        if not allow_unreachable and None in [None if g is None else 0 for g in outputs]:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph; "
                "with allow_unused=True its gradient is None"
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
        for i, (tensor, grad) in enumerate(zip(tensors, grad_tensors, strict=True)):
            if isinstance(tensor, GradientEdge):
                node, nr = tensor
            elif isinstance(tensor, Tensor):
                node = edge_node(tensor)
                nr = tensor.output_index
                if node is None:
                    raise RuntimeError(
                        f"element {i} of tensors does not require grad and does not have a grad_fn"
                    )
            else:
                raise RuntimeError(
                    f"element {i} of tensors tuple is not a Tensor or a GradientEdge"
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
            if isinstance(value, GradientEdge):
                if not isinstance(value.node, Node):
                    raise RuntimeError(
                        "GradientEdge first object must be an autograd.graph.Node but got "
                        f"{type(value.node).__name__}"
                    )
                targets.append((value.node, value.output_nr))
            elif isinstance(value, Tensor):
                if accumulate:
                    value.retain_grad()
                if not value.requires():
                    raise RuntimeError("One of the differentiated Tensors does not require grad")
                targets.append((edge_node(value), value.output_index))
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
        return engine.is_checkpoint_valid()


class VariableMeta(type):
    """Lets ``isinstance(t, Variable)`` hold for every tensor."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """The deprecated way to make a tensor that records: ``Variable(t, requires_grad=True)``."""

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        from ..creation import empty

        tensor = empty(0) if data is None else data.detach()
        return tensor.requires_grad_(requires_grad)
