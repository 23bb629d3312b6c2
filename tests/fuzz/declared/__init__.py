"""The differences that are meant, each with its reason; docs/differences.md explains them."""

from __future__ import annotations

from fuzz.comparison import Difference
from fuzz.declared import derivatives, graph, memory, refusals, transforms
from fuzz.declared.entry import Declared

TABLE: list[Declared] = [
    *graph.TABLE,
    *memory.TABLE,
    *derivatives.TABLE,
    *refusals.TABLE,
    *transforms.TABLE,
]


def declared(difference: Difference) -> Declared | None:
    """The entry that explains a difference, if there is one."""
    return next((entry for entry in TABLE if entry.matches(difference)), None)
