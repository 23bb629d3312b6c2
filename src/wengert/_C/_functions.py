"""The classes of the nodes that operators record, by name."""

from __future__ import annotations

from ..core.registry import operators
from ..tape.node import AccumulateGrad as AccumulateGrad
from ..tape.planning import node_class


def __getattr__(name: str) -> type:
    kind = name.rstrip("0123456789")
    if any(getattr(op, "node_name", "").rstrip("0") == kind for op in operators().values()):
        return node_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
