"""What all parts of a graph share: their error, and what is done with them by modules above.

Values, nodes, blocks and graphs print and check themselves by the functions here. `printer` and
`verify`, which know all of these classes, register what the functions do for each.
"""

from __future__ import annotations

from functools import singledispatch


class GraphError(RuntimeError):
    """A graph that is not well formed, or an edit that would make it so."""


@singledispatch
def text_of(item: object) -> str:
    """The text of a value, a node, a block or a graph."""
    raise TypeError(f"{type(item).__name__} is no part of a graph")


@singledispatch
def problems_of(graph: object) -> list[str]:
    """Everything that is wrong with a graph, one line for each."""
    raise TypeError(f"{type(graph).__name__} is no graph")
