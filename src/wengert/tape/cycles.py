"""Which tensors and nodes the cyclic garbage collector looks at.

A recorded graph has no cycle of its own: nodes point to earlier nodes, saved values and arrays. A
cycle needs a way out of the graph into Python (a hook, an attribute, a packed value, a gradient
that has a graph, a custom Function whose methods are closures) and back, or a tensor that is
changed in place after a node has saved it, to which its new node may lead. So tensors and nodes are
made hidden from the collector, which then spends no time on a graph of a million nodes. They are
shown to it from the moment such a way exists: the object itself, everything recorded on top of it
later, and everything it was computed from. What was recorded on top of it before stays hidden: a
hook that refers to a later result of the same graph keeps that graph alive until the hook is
removed, as it does in PyTorch.
"""

from __future__ import annotations

from ..core.collector import collector
from ..core.tensor import Tensor


def show_graph(start: object) -> None:
    """Let the collector see a tensor or node and all that it was computed from.

    Nodes, and what they save, know themselves what to show: `show_itself` returns what the way
    leads on to. They have no base class in common, which would cost time whenever one is made.
    """
    stack = [start]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            collector.show(item)
            stack.append(item.node)
            if item.view_meta is not None:
                stack.append(item.view_meta.base)
        else:
            show_itself = getattr(type(item), "show_itself", None)
            if show_itself is not None:
                stack.extend(show_itself(item))
