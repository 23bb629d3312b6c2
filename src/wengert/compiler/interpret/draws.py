"""Drawing again: a graph that computes a forward pass a second time must see the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...core.tensor import Tensor
from ...creation.generator import Generator, default_generator
from ..ir import primitives as prim
from ..ir.graph import Graph

#: Generators and the states that they were in.
States = Sequence[tuple[Generator, Tensor]]


def generators_of(graph: Graph) -> tuple[Generator, ...]:
    """The generators that the nodes of a graph draw from."""
    found: dict[Generator, None] = {}
    for node in graph.all_nodes():
        if node.kind == prim.RANDOM:
            options = (*node.attributes["args"], *dict(node.attributes["kwargs"]).values())
            found.update(dict.fromkeys(generators_among(options)))
    return tuple(found)


def generators_among(options: Sequence[object]) -> list[Generator]:
    """The generators that a function with these arguments draws from."""
    given = [option for option in options if isinstance(option, Generator)]
    return given or [default_generator]


def states_of(generators: Sequence[Generator]) -> States:
    """The states that generators are in now."""
    return tuple([(generator, generator.get_state()) for generator in generators])


@contextmanager
def drawing_again(states: States) -> Iterator[None]:
    """Let generators draw what they drew in those states, and go on afterwards where they are."""
    now = states_of([generator for generator, _ in states])
    try:
        for generator, state in states:
            generator.set_state(state)
        yield
    finally:
        for generator, state in now:
            generator.set_state(state)
