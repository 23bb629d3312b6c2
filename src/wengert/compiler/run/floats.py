"""Floats that are inputs of a compiled function's graph, since their values have changed before.

A float is an argument, known by its number, or has a place elsewhere: an attribute, a variable, an
entry such as an optimizer's learning rate. A function is first compiled for the values that it
meets. Where the next call differs in floats alone, these become inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from ...core.tensor import Tensor, wrap
from ...core.trees.pytree import tree_flatten, tree_unflatten
from ..trace.floats import FloatTrace, TracedFloat
from ..trace.refusals import TraceError
from .places import Change, Item, Variable

Place = Item | Variable
#: Stands in the key of a call for the value of a float that is an input.
ANY_FLOAT = (float, "any")


def float_changes(changes: Iterable[Change]) -> list[Place]:
    """The places of floats that have other values now."""
    return [
        change.place
        for change in changes
        if isinstance(change.place, (Item, Variable))
        and type(change.before) is type(change.now) is float
    ]


def differing_floats(old: tuple, new: tuple) -> list[int] | None:
    """The numbers of arguments that are floats of other values; None if keys differ otherwise."""
    (old_tree, old_leaves, *old_rest), (new_tree, new_leaves, *new_rest) = old, new
    if old_rest != new_rest or len(old_leaves) != len(new_leaves) or old_tree != new_tree:
        return None
    found = []
    for i, (a, b) in enumerate(zip(old_leaves, new_leaves, strict=True)):
        if a != b:
            if not (_is_float(a) and _is_float(b)):
                return None
            found.append(i)
    return found


def _is_float(key: Any) -> bool:
    return type(key) is tuple and key[0] is float


def masked(key: tuple, numbers: Iterable[int]) -> tuple:
    """The key of a call with some floats of any value."""
    structure, leaves, *rest = key
    changed = list(leaves)
    for i in numbers:
        if _is_float(changed[i]):
            changed[i] = ANY_FLOAT
    return (structure, tuple(changed), *rest)


class Floats:
    """The floats that one compilation takes as inputs, the arguments first."""

    def __init__(self, key: tuple, places: Sequence[Place] = ()) -> None:
        arguments = [i for i, part in enumerate(key[1]) if part == ANY_FLOAT]
        self.arguments = arguments
        self.places = {place.identity: place for place in places}
        #: Numbers among the captured tensors, and the place or the number of the argument.
        self.sources: list[tuple[int, int | Place]] = []
        self.trace = FloatTrace()
        self._examples: list[Tensor] = []
        self._held: list[tuple[Place, TracedFloat, float]] = []

    def __bool__(self) -> bool:
        return bool(self.arguments or self.places)

    def put(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Arguments for a trace, with floats that it notes the use of; those elsewhere are put
        into their places."""
        leaves, tree = tree_flatten((args, kwargs))
        for i in self.arguments:
            leaves[i] = self._traced(leaves[i])
        for place in self.places.values():
            value = place.read()
            stand_in = self._traced(value)
            self._held.append((place, stand_in, value))
            place.write(stand_in)
        return tree_unflatten(leaves, tree)

    def _traced(self, value: float) -> TracedFloat:
        number = len(self._examples)
        self._examples.append(as_input(value))
        return TracedFloat(self.trace, self._examples[-1], frozenset((number,)), value)

    def put_back(self) -> None:
        """Leave the places as they were, but for those that the function has changed."""
        self.trace.is_active = False
        while self._held:
            place, stand_in, value = self._held.pop()
            if place.read() is stand_in:
                place.write(value)

    def check(self, results: Sequence[Any], code: Iterable[CodeType]) -> None:
        """Refuse a trace that has returned a float, has needed its value, or may have asked for its
        type."""
        if not self:
            return
        for value in results:
            if type(value) is TracedFloat:
                self.trace.needed |= value.roots
        if any("type" in part.co_names for part in code):
            self.trace.needed.update(range(len(self._examples)))
        if self.trace.needed:
            raise TraceError("the function needs the value of a float")

    def close(self, captured: Sequence[Tensor]) -> None:
        """Note which captured tensors stand for the floats."""
        every: list[int | Place] = [*self.arguments, *self.places.values()]
        numbers = {id(t): i for i, t in enumerate(captured)}
        self.sources = [
            (numbers[id(t)], source)
            for t, source in zip(self._examples, every, strict=True)
            if id(t) in numbers
        ]

    def needed(self) -> tuple[list[int], list[Place]]:
        """The arguments and places whose values the function needs; all if that is not known."""
        numbers = self.trace.needed or range(len(self._examples))
        count = len(self.arguments)
        places = list(self.places.values())
        return (
            [self.arguments[i] for i in numbers if i < count],
            [places[i - count] for i in numbers if i >= count],
        )

    @property
    def skipped(self) -> frozenset[tuple]:
        """The places that need not hold what they held."""
        return frozenset(self.places)

    def obstacle(self) -> str | None:
        """What stands where a float was."""
        for place in self.places.values():
            if type(place.read()) is not float:
                return "a float that the function reads is none now"
        return None

    def fill(self, captured: list[Tensor], leaves: Sequence[Any]) -> None:
        """Put tensors for the floats of a call among those that the function has captured."""
        for number, source in self.sources:
            value = leaves[source] if isinstance(source, int) else source.read()
            captured[number] = as_input(value)


def as_input(value: float) -> Tensor:
    """The tensor for a float."""
    return wrap(np.array(value, np.float64))
