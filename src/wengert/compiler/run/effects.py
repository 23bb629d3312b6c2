"""What a function changes besides its results: found, undone, and done again by later calls.

All that a function can reach is noted before it is traced. What it has changed then is known
afterwards and can be put back. A tensor of the trace that was stored in an attribute, a variable, a
dictionary or a place of a list becomes an output of the graph, which each call stores there anew;
what the function had read there is looked up anew as well. Any other change is refused.
"""

from __future__ import annotations

import dis
import linecache
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from types import CodeType
from typing import Any

from ...core.tensor import Tensor
from ...core.trees.pytree import TreeSpec, tree_flatten, tree_unflatten
from ..trace.refusals import Effect
from .checks import same
from .guards import tensor_key
from .places import MISSING, Appended, Change, Variable
from .reads import globals_read
from .surroundings import Surroundings
from .walk import Walk

#: Values that a graph may store beside tensors: they are the same in every call.
_LITERAL = (int, float, complex, bool, str, bytes, type(None))
#: Those that it may store without any tensor. A number would be another one next time.
_FLAG = (bool, str, type(None))


class Snapshot:
    """All that a function can reach before it runs, as far as that can be seen."""

    def __init__(self, function: Callable, arguments: list[Any]) -> None:
        walk = Walk(set(), False, None, before=True)
        walk.run(function, arguments)
        self.checks = walk.checks
        self._met_again = walk.met_again
        self._containers = walk.containers

    def changes(self) -> list[Change]:
        """What is no longer what it was."""
        found: dict[Any, Change] = {}
        for check in self.checks:
            for change in check.changes():
                place = change.place
                found.setdefault(change.name if place is None else place.identity, change)
        return list(found.values())

    def holds_container_in(self, value: Any) -> bool:
        """Whether a value is, or has in it, a list or dictionary that was there before: a graph
        would store a new one."""
        if id(value) in self._containers:
            return True
        if isinstance(value, dict):
            return any(map(self.holds_container_in, value.values()))
        return isinstance(value, (list, tuple)) and any(map(self.holds_container_in, value))

    def has_other_names(self, value: Any) -> bool:
        """Whether the function can reach an object in more than one way."""
        return id(value) in self._met_again

    def restore(self) -> None:
        """Put back what was there."""
        for check in self.checks:
            if check.changes():
                check.restore()


class Store:
    """A place into which each call puts tensors: the leaves of the value that was put there."""

    __slots__ = ("name", "place", "tree", "before")

    def __init__(self, change: Change, tree: TreeSpec) -> None:
        assert change.place is not None
        self.name = change.name
        self.place: Any = change.place
        self.tree = tree
        self.before = change.before

    def put(self, leaves: list[Any]) -> None:
        self.place.write(tree_unflatten(leaves, self.tree))


class Stores:
    """The stores of one trace, in their order."""

    def __init__(self, snapshot: Snapshot, surroundings: Surroundings) -> None:
        self._snapshot = snapshot
        self._surroundings = surroundings
        self.each: list[Store] = []

    def leaves(self) -> list[Any]:
        """The values that were stored, tensors among them; refuses other changes."""
        if self._surroundings.refusal is not None:  # the program may have caught it
            raise self._surroundings.refusal
        found: list[Any] = []
        for change in self._snapshot.changes():
            leaves, tree = tree_flatten(change.now)
            if not (self._can_be_repeated(change) and _is_new(leaves)):
                raise refusal(change, self._surroundings.code)
            self.each.append(Store(change, tree))
            found += leaves
        return found

    def _can_be_repeated(self, change: Change) -> bool:
        """Whether it has a place, and if that is the end of a list, whether nothing is done with
        the list but that something is appended."""
        place = change.place
        if place is None or self._snapshot.holds_container_in(change.now):
            return False
        if type(place) is not Appended:
            return True
        return not self._snapshot.has_other_names(place.elements) and is_only_appended_to(
            change.name.rpartition(".")[2], self._surroundings.code
        )

    def put(self, leaves: list[Any]) -> None:
        """Do what the function did, with the values of this call."""
        start = 0
        for store in self.each:
            end = start + store.tree.num_leaves
            store.put(leaves[start:end])
            start = end


class Sources:
    """Captured tensors that are looked up anew in each call, where stores have replaced them."""

    def __init__(self, stores: list[Store], captured: list[Tensor]) -> None:
        self._stores = [store for store in stores if _has_tensors(store.before)]
        self._ends = {
            store.place.identity for store in stores if type(store.place) is Appended
        }
        self._trees = []
        self._keys: list[list[Any]] = []
        at: dict[int, tuple[int, int]] = {}
        for i, store in enumerate(self._stores):
            leaves, tree = tree_flatten(store.before)
            self._trees.append(tree)
            self._keys.append([_kind(leaf) for leaf in leaves])
            at.update({id(leaf): (i, j) for j, leaf in enumerate(leaves)})
        #: For each captured tensor that is looked up, its number, the store and the leaf.
        self.places = [
            (number, *at[id(t)]) for number, t in enumerate(captured) if id(t) in at
        ]

    @property
    def skipped(self) -> frozenset[tuple]:
        """The places that need not hold what they held."""
        return frozenset([store.place.identity for store in self._stores]) | self._ends

    def numbers(self) -> set[int]:
        return {number for number, _, _ in self.places}

    def current(self) -> list[list[Any]] | str:
        """What the places hold now, or the name of one that holds something of another kind."""
        found = []
        for store, tree, keys in zip(self._stores, self._trees, self._keys, strict=True):
            leaves, now = tree_flatten(store.place.read())
            if now != tree or not all(map(_is_kind, leaves, keys)):
                return store.name
            found.append(leaves)
        return found


def iterator_of(function: Callable, arguments: list[Any]) -> str | None:
    """The name of an iterator that a function names or is given: tracing would use it up."""
    function = getattr(function, "__func__", function)
    named: dict[str, Any] = {f"argument {i}": value for i, value in enumerate(arguments)}
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        variables = function.__globals__
        named |= {name: variables[name] for name in globals_read(code) if name in variables}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        named |= {name: Variable(cell).read() for name, cell in cells}
    for name, value in named.items():
        if isinstance(value, Iterator) and not isinstance(value, IOBase):
            return name
    return None


def _is_new(leaves: list[Any]) -> bool:
    """Whether values are tensors and what goes with them, or flags."""
    others = [type(leaf) for leaf in leaves if not isinstance(leaf, Tensor)]
    allowed = _FLAG if len(others) == len(leaves) else _LITERAL
    return all(kind in allowed for kind in others)


def _has_tensors(value: Any) -> bool:
    return value is not MISSING and any(
        isinstance(leaf, Tensor) for leaf in tree_flatten(value)[0]
    )


def _kind(leaf: Any) -> Any:
    return tensor_key(leaf) if isinstance(leaf, Tensor) else leaf


def _is_kind(leaf: Any, key: Any) -> bool:
    return tensor_key(leaf) == key if isinstance(leaf, Tensor) else same(leaf, key)


def refusal(change: Change, code: Iterable[CodeType]) -> Effect:
    """The error for a change that a graph does not do again, with the line that may make it."""
    line = _line_of(change.name, code)
    return Effect(
        f"the function changes `{change.name}`, which a graph would not do again: return the new "
        f"value, or keep it in a tensor that is changed in place.{line and chr(10) + '  '}{line}"
    )


def is_only_appended_to(name: str, code: Iterable[CodeType]) -> bool:
    """Whether a program, wherever it names a list, calls its method `append`."""
    if not name.isidentifier():
        return False
    for part in code:
        instructions = list(dis.get_instructions(part))
        for instruction, following in zip(instructions, instructions[1:], strict=False):
            if instruction.argval == name and following.argval != "append":
                return False
    return True


def _line_of(name: str, code: Iterable[CodeType]) -> str:
    """The line of a program that stores under a name, or in something of that name."""
    parts = name.replace("]", "").replace("[", ".").split(".")
    last, names = parts[-1], set(parts)
    best: tuple[int, str, int] | None = None
    for part in code:
        line, known = part.co_firstlineno, {*part.co_names, *part.co_freevars}
        for instruction in dis.get_instructions(part):
            line = instruction.positions.lineno or line if instruction.positions else line
            operation = instruction.opname
            stores = operation.startswith(("STORE_", "DELETE_")) and "FAST" not in operation
            if stores and instruction.argval == last:
                rank = 0
            elif stores and operation.endswith("SUBSCR") and not names.isdisjoint(known):
                rank = 1
            elif operation.startswith("LOAD_") and instruction.argval == last:
                rank = 2
            else:
                continue
            if best is None or rank < best[0]:
                best = (rank, part.co_filename, line)
    if best is None:
        return ""
    return f"{best[1]}:{best[2]}: {linecache.getline(best[1], best[2]).strip()}"
