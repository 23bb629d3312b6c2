"""A log of every node that runs, with the shapes of its gradients, for who asks at debug level."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..core.tensor import Tensor
from .node import Node, edge_node
from .tasks import current_autograd_node

LOGGER = "wengert.autograd.graph"
DEBUG = 10

_logger: Any = None


def logs_nodes() -> bool:
    """Whether somebody asked for the log: without the logging module, nobody can have."""
    global _logger
    if _logger is None:
        logging = sys.modules.get("logging")
        if logging is None:
            return False
        _logger = logging.getLogger(LOGGER)
    return _logger.isEnabledFor(DEBUG)


def log_nodes(roots: Iterable[Any]) -> Callable[[], None]:
    """Log every node behind tensors, edges or nodes when it runs, until the result is called."""

    def before(grads: tuple) -> None:
        shapes = ",".join(map(_abbreviated, grads))
        _logger.debug("Executing: %r with grad_outputs: [%s]", current_autograd_node(), shapes)

    handles = [node.register_prehook(before) for node in _reachable(roots)]

    def stop() -> None:
        for handle in handles:
            handle.remove()

    return stop


def _reachable(roots: Iterable[Any]) -> Iterator[Node]:
    seen = set()
    stack = [_node_behind(root) for root in roots]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            stack.extend(following for following, _ in node.next_functions)


def _node_behind(root: Any) -> Node | None:
    if isinstance(root, Tensor):
        return edge_node(root)
    return root if isinstance(root, Node) else root.node


def _abbreviated(gradient: Tensor | None) -> str:
    """Type and shape in short, such as ``f32[2, 3]``."""
    if gradient is None:
        return "None"
    name = gradient.dtype.name.replace("float", "f").replace("complex", "c").replace("int", "i")
    name = "b8" if name == "bool" else name.replace("ui", "u")
    return f"{name}[{', '.join(map(str, gradient.array.shape))}]"
