"""Loops written in Python, found again in a traced graph: repeated blocks become a `prim::scan`.

A block repeats where nodes follow each other that are alike, period after period. What a node reads
is then one of four things: computed in the same block; carried on from the block before; the same
for all blocks; or the next slice of something, as in `x[t]`. Other graphs stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...backends.host import is_plain
from ...core import dtypes
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from ..ir.types import TensorType, stacked, without_grad
from .dce import eliminate_dead_code
from .slices import stack_gradients, unstack

#: Fewer rounds stay as they are, and so do loops of fewer nodes in all: fusing pays more.
FEWEST_ROUNDS = 8
FEWEST_NODES = 600
_LONGEST_BLOCK = 8192
#: So many nodes in a row have to be alike before a repetition is looked for.
_ALIKE = 6
#: So many distances between alike nodes are tried at a place, and so often in a graph.
_TRIES_AT_PLACE, _TRIES = 48, 4000

#: What carrying something over two rounds weighs.
_TWICE = 1 << 20

_SELECT, _UNBIND, _STACK = "wengert::select", "wengert::unbind", "wengert::stack"
_PRIMITIVES = {prim.CONSTANT, prim.FULL}


def reroll(graph: Graph) -> Graph:
    """Replace repeated blocks by scans; the graph computes what it did, up to rounding."""
    nodes = list(graph.nodes())
    if len(nodes) < FEWEST_NODES:
        return graph
    stack_gradients(graph, FEWEST_ROUNDS)
    nodes = list(eliminate_dead_code(graph).nodes())
    rolled = False
    for first, period, last in _repetitions(nodes):
        rolled |= _Loop(graph, nodes, first, period, last).roll()
    if rolled:
        unstack(graph, FEWEST_ROUNDS)
        eliminate_dead_code(graph)
    return graph


# Finding repetitions ------------------------------------------------------------------------------


def _is_plain(node: Node) -> bool:
    """Whether nodes like this one may be in a loop."""
    if node.operator is None:
        return node.kind in _PRIMITIVES
    operator = node.operator
    if prim.is_custom(operator) or node.fact("raises") is not None:
        return False
    return not node.has_effects


def _kind(node: Node, known: dict[Any, int], number: int) -> int:
    """A number for what a node does; which slice it selects is left open."""
    operator = node.operator
    plain = known.get(operator or node.kind)
    if plain is None:
        plain = known[operator or node.kind] = int(_is_plain(node))
    if not plain:
        return -number - 1
    arguments = node.arguments
    if node.kind == _SELECT and arguments is not None:
        arguments = arguments[:-1]
    if node.kind == prim.CONSTANT:
        value = node.attributes["value"]
        array: Any = getattr(value, "array", None)
        if not is_plain(array) or array.size > 64:
            return -number - 1
        arguments = (str(array.dtype), array.shape, array.tobytes())
    types = tuple([value.type for value in node._outputs])
    key = (node.kind, repr(arguments), types, len(node._inputs))
    return known.setdefault(key, len(known))


def _repetitions(nodes: list[Node]) -> Iterable[tuple[int, int, int]]:
    """First node, length of a block, and the end, of stretches in which kinds of nodes repeat."""
    known: dict[Any, int] = {}
    kinds = np.array([_kind(node, known, i) for i, node in enumerate(nodes)], np.int64)
    count = len(kinds)
    mixed = kinds.copy()
    for k in range(1, _ALIKE):  # each place with the kinds that follow it
        following = np.roll(kinds, -k)
        mixed = mixed * np.int64(1_000_003) + following
    places: dict[int, list[int]] = {}
    listed = mixed.tolist()
    for i in range(count - _ALIKE):
        places.setdefault(listed[i], []).append(i)
    ranks: dict[int, int] = {}
    tries = 0
    i = 0
    while i < count - _ALIKE and tries < _TRIES:
        alike = places[listed[i]]
        rank = ranks.get(listed[i], 0)
        while rank < len(alike) and alike[rank] <= i:
            rank += 1
        ranks[listed[i]] = rank
        best = None
        if len(alike) - rank + 1 >= FEWEST_ROUNDS:
            for other in alike[rank : rank + _TRIES_AT_PLACE]:
                period = other - i
                if period > _LONGEST_BLOCK or i + FEWEST_ROUNDS * period > count:
                    break
                tries += 1
                end = i + (FEWEST_ROUNDS - 1) * period
                if not np.array_equal(kinds[i:end], kinds[i + period : end + period]):
                    continue
                differ = kinds[i:-period] != kinds[i + period :]
                at = int(np.argmax(differ)) if differ.any() else len(differ)
                if at + period >= FEWEST_NODES:
                    best = (i, period, i + at + period)
                    break
        if best is None:
            i += 1
        else:
            yield best
            i = best[2]


# One loop -----------------------------------------------------------------------------------------


class _Slices:
    """Something that each round sees another slice of: at `start` in the first, then `step` on."""

    def __init__(self, source: Value, dim: int, start: int, step: int) -> None:
        self.source = source
        self.dim = dim
        self.start = start
        self.step = step

    @property
    def key(self) -> tuple:
        return (self.source, self.dim, self.start, self.step)


class _Loop:
    """A stretch of a graph that may be a loop."""

    def __init__(
        self, graph: Graph, nodes: list[Node], first: int, period: int, last: int
    ) -> None:
        self.graph = graph
        self.nodes = nodes
        self.period = period
        self.places = {node: i for i, node in enumerate(nodes[first:last], first)}
        self.limits = (first, last)

    def _cut(self, first: int, last: int) -> int:
        """Where to begin a block such that least is carried from one to the next.

        What is read later than in the next block would have to be carried twice.
        """
        period = self.period
        rounds = (last - first) // period
        crossing = np.zeros(2 * period + 1, np.int64)
        middle = first + max(rounds // 2 - 1, 0) * period
        for i in range(middle, middle + period):
            for value in self.nodes[i]._outputs:
                users = [self.places.get(use.user, -1) for use in value._uses]
                users = [u - i for u in users if i < u < i + 2 * period]
                if users:  # cuts after the node and up to its last use
                    full, rest = divmod(max(users), period)
                    weight = _TWICE if full else 1
                    crossing[i - middle + 1] += weight
                    crossing[i - middle + 1 + rest] -= weight
        over = np.cumsum(crossing)[: 2 * period]
        return first + int(np.argmin(over[:period] + over[period:]))

    def at(self, offset: int, turn: int) -> Node:
        return self.nodes[self.first + turn * self.period + offset]

    def roll(self) -> bool:
        """Replace the stretch by a scan, if what its nodes read allows it."""
        first, last = self.limits
        best = self._cut(first, last)
        # The first round may read what others do not, and so may the last one of a reverse.
        return any(
            self._roll_from(start, left_out)
            for left_out in (0, 1)
            for start in dict.fromkeys([best, first, best + self.period])
        )

    def _roll_from(self, start: int, left_out: int) -> bool:
        self.first = start
        self.rounds = (self.limits[1] - start) // self.period - left_out
        self.end = self.first + self.rounds * self.period
        if self.rounds < FEWEST_ROUNDS or self.rounds * self.period < FEWEST_NODES:
            return False
        self.carried: dict[tuple, int] = {}  # (offset, output, first value): number
        self.slices: dict[tuple, _Slices] = {}
        self.fixed: dict[Value, None] = {}
        #: For each node of the block, what its inputs are; and nodes that are slices themselves.
        self.reads: list[list[tuple[str, Any]]] = []
        self.sliced: dict[int, _Slices] = {}
        self.hoisted: set[int] = set()
        for offset in range(self.period):
            if not self._classify(offset):
                return False
        self._replace()
        return True

    def _classify(self, offset: int) -> bool:
        rounds = self.rounds
        mine = [self.at(offset, t) for t in range(rounds)]
        reads: list[tuple[str, Any]] = []
        for k in range(len(mine[0]._inputs)):
            values = [node._inputs[k] for node in mine]
            found = self._relation(values)
            if found is None:
                return False
            reads.append(found)
        node = mine[0]
        if node.kind == _SELECT:
            indices = [n.arguments[-1] for n in mine]  # type: ignore[index]
            if len(set(indices)) > 1:
                step = _even(indices)
                how, source = reads[0]
                if step is None or how != "fixed":
                    return False
                dim = node.arguments[1] % len(source.type.shape)  # type: ignore[index]
                length = source.type.shape[dim]
                self.sliced[offset] = _Slices(source, dim, indices[0] % length, step)
                self.reads.append(reads)
                return indices[0] % length + step * (rounds - 1) in range(length)
        if all(
            how == "fixed" or (how == "inside" and what[0] in self.hoisted) for how, what in reads
        ):
            self.hoisted.add(offset)
        self.reads.append(reads)
        return True

    def _relation(self, values: list[Value]) -> tuple[str, Any] | None:
        """What the values are that one input of a node has round by round."""
        first, period = self.first, self.period
        start = values[0]
        if all(value is start for value in values):
            return ("fixed", start) if self._is_before(start) else None
        places = [self.places.get(value.node, -1) for value in values]
        output = values[1].index
        if all(v.index == output for v in values[1:]):
            offset = places[1] - first - period
            if 0 <= offset < period and places[0] == first + offset:
                steady = all(p == first + offset + t * period for t, p in enumerate(places))
                if steady and start.index == output:
                    return ("inside", (offset, output))
            offset = places[1] - first
            if 0 <= offset < period and self._is_before(start):
                steady = all(
                    p == first + offset + (t - 1) * period
                    for t, p in enumerate(places)
                    if t > 0
                )
                kinds = [without_grad(v.type) for v in values[:2]]
                if steady and kinds[0] == kinds[1] and _is_complete(kinds[0]):
                    return ("carried", (offset, output, start))
        if not all(self._is_before(value) for value in values):
            return None
        return self._sequence(values)

    def _is_before(self, value: Value) -> bool:
        place = self.places.get(value.node)
        return place is None or place < self.first

    def _sequence(self, values: list[Value]) -> tuple[str, Any] | None:
        """Slices of one thing that were taken before the loop."""
        kind = values[0].node.kind
        if kind not in (_SELECT, _UNBIND) or any(v.node.kind != kind for v in values):
            return None
        sources = {v.node._inputs[0] for v in values}
        dims = {v.node.arguments[1] for v in values}  # type: ignore[index]
        if len(sources) > 1 or len(dims) > 1:
            return None
        (source,), (dim,) = sources, dims
        if not _is_complete(source.type):
            return None
        shape = source.type.shape  # type: ignore[attr-defined]
        length = shape[dim]
        if kind == _UNBIND:
            indices = [v.index for v in values]
        else:
            indices = [v.node.arguments[-1] % length for v in values]  # type: ignore[index]
        step = _even(indices)
        if not step:
            return None
        return ("slice", _Slices(source, dim % len(shape), indices[0], step))

    # Making the scan ------------------------------------------------------------------------------

    def _replace(self) -> None:
        graph, rounds = self.graph, self.rounds
        with graph.inserting_before(self.at(0, 0)):
            fixed_values: dict[Value, Value] = {}
            for offset in sorted(self.hoisted):
                self._hoist(offset, fixed_values)
            self._collect(fixed_values)
            backward = bool(self.slices) and all(s.step < 0 for s in self.slices.values())
            xs = [self._sequence_value(s, backward) for s in self.slices.values()]
            if not xs:
                xs = [_typed(graph.insert(prim.FULL, (rounds,), False, dtypes.bool), (rounds,))]
            starts = [start for _, _, start in self.carried]
            finals, series = self._results()
            starts += [_zeros(graph, self.at(o, 1)._outputs[k].type) for o, k in finals]
            types = [without_grad(value.type) for value in starts]
            every = [
                stacked(without_grad(self.at(o, 1)._outputs[k].type), rounds) for o, k in series
            ]
            node = graph.create(
                prim.SCAN,
                [*starts, *xs, *self.fixed],
                [*types, *every],
                attributes={
                    "carried": len(starts), "mapped": len(xs), "reverse": backward,
                },
            )  # fmt: skip
            node.source = self.at(0, 0).source
            graph.insert_node(node)
        self._fill(node, xs, len(finals), series, finals, fixed_values)
        self._use(node, finals, series, backward, fixed_values)
        for i in range(self.end - 1, self.first - 1, -1):
            self.nodes[i].destroy()
            self.nodes[i]._outputs = []  # which refer to the node

    def _hoist(self, offset: int, values: dict[Value, Value]) -> None:
        """Compute once, before the loop, what is the same in each round."""
        source = self.at(offset, 0)
        copy = self.graph.create_clone(source, values)
        self.graph.insert_node(copy)

    def _collect(self, hoisted: dict[Value, Value]) -> None:
        """Number what is carried, sliced and fixed, as far as nodes that stay inside read it."""
        for offset, reads in enumerate(self.reads):
            if offset in self.hoisted or offset in self.sliced:
                continue
            for how, what in reads:
                if how == "carried":
                    self.carried.setdefault(what, len(self.carried))
                elif how == "slice":
                    self.slices.setdefault(what.key, what)
                elif how == "fixed":
                    self.fixed.setdefault(what)
                elif what[0] in self.hoisted:
                    self.fixed.setdefault(hoisted[self.at(what[0], 0)._outputs[what[1]]])
                elif what[0] in self.sliced:
                    found = self.sliced[what[0]]
                    self.slices.setdefault(found.key, found)
        # A carried value may itself be a slice, or the same in each round.
        for offset, _, _ in self.carried:
            if offset in self.sliced:
                self.slices.setdefault(self.sliced[offset].key, self.sliced[offset])
            elif offset in self.hoisted:
                for value in self.at(offset, 0)._outputs:
                    self.fixed.setdefault(hoisted[value])

    def _sequence_value(self, slices: _Slices, backward: bool) -> Value:
        """What a scan goes through to see slices in their order."""
        graph, rounds = self.graph, self.rounds
        value = slices.source
        shape = list(value.type.shape)  # type: ignore[attr-defined]
        dim = slices.dim
        if dim:
            order = [dim, *[d for d in range(len(shape)) if d != dim]]
            shape = [shape[d] for d in order]
            value = _typed(graph.insert("wengert::permute", value, tuple(order)), shape, value)
        last = slices.start + slices.step * (rounds - 1)
        low, high = min(slices.start, last), max(slices.start, last)
        step = abs(slices.step)
        if (low, high + 1, step) != (0, shape[0], 1):
            shape[0] = rounds
            value = _typed(
                graph.insert("wengert::slice", value, 0, low, high + 1, step), shape, value
            )
        if (slices.step < 0) != backward:
            value = _typed(graph.insert("wengert::flip", value, (0,)), shape, value)
        return value

    def _results(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """What is read after the loop and not carried: of the last round, and of all rounds."""
        carried = {(offset, output) for offset, output, _ in self.carried}
        finals, series = [], []
        #: Values that something after the loop reads: offset, output, and the rounds.
        self.leaving: list[tuple[int, int, list[int]]] = []
        for offset in range(self.period):
            for k in range(len(self.at(offset, 0)._outputs)):
                turns = [
                    t for t in range(self.rounds) if self._leaves(self.at(offset, t)._outputs[k])
                ]
                if turns:
                    self.leaving.append((offset, k, turns))
                if offset in self.hoisted or offset in self.sliced:
                    continue
                if turns and turns != [self.rounds - 1]:
                    series.append((offset, k))
                elif turns and (offset, k) not in carried:
                    finals.append((offset, k))
        return finals, series

    def _leaves(self, value: Value) -> bool:
        places, first, end = self.places, self.first, self.end
        return any(not first <= places.get(use.user, -1) < end for use in value._uses)

    def _fill(
        self,
        node: Node,
        xs: list[Value],
        extra: int,
        series: list[tuple[int, int]],
        finals: list[tuple[int, int]],
        hoisted: dict[Value, Value],
    ) -> None:
        """The block of the scan: a copy of the second round."""
        graph = self.graph
        block = node.add_block()
        carries = [
            block.add_input(without_grad(value.type)) for value in node._inputs[: len(self.carried)]
        ]
        for value in node._inputs[len(self.carried) : len(self.carried) + extra]:
            block.add_input(without_grad(value.type))
        parts = [
            block.add_input(TensorType(x.type.dtype, x.type.shape[1:]))  # type: ignore[attr-defined]
            for x in xs
        ]
        sliced = dict(zip(self.slices, parts, strict=False))
        fixed = {value: block.add_input(without_grad(value.type)) for value in self.fixed}
        inside: dict[tuple[int, int], Value] = {}
        for offset in self.sliced:
            if self.sliced[offset].key in sliced:
                inside[offset, 0] = sliced[self.sliced[offset].key]
        for offset in self.hoisted:
            for k, value in enumerate(self.at(offset, 0)._outputs):
                if hoisted[value] in fixed:
                    inside[offset, k] = fixed[hoisted[value]]

        def given(how: str, what: Any) -> Value:
            if how == "carried":
                return carries[self.carried[what]]
            if how == "slice":
                return sliced[what.key]
            if how == "fixed":
                return fixed[what]
            return inside[what]

        for offset in range(self.period):
            if offset in self.hoisted or offset in self.sliced:
                continue
            source = self.at(offset, 1)
            values = [given(how, what) for how, what in self.reads[offset]]
            copy = graph.create(
                source.kind, values, [without_grad(v.type) for v in source._outputs],
                arguments=source.arguments,
                attributes=dict(source.attributes) if source.attributes else None,
            )  # fmt: skip
            copy.source = source.source
            block.append(copy)
            for k, value in enumerate(copy._outputs):
                inside[offset, k] = value
        for offset, output, _ in self.carried:
            block.register_output(inside[offset, output])
        for place in (*finals, *series):
            block.register_output(inside[place])

    def _use(
        self,
        node: Node,
        finals: list[tuple[int, int]],
        series: list[tuple[int, int]],
        backward: bool,
        hoisted: dict[Value, Value],
    ) -> None:
        """Let what comes after the loop read its results."""
        graph, last = self.graph, self.rounds - 1
        after: dict[tuple[int, int], Value] = {}
        for i, (offset, output, _) in enumerate(self.carried):
            after[offset, output] = node._outputs[i]
        for i, place in enumerate(finals, len(self.carried)):
            after[place] = node._outputs[i]
        every = dict(
            zip(series, node._outputs[len(self.carried) + len(finals) :], strict=True)
        )
        returned = graph.block.return_node
        with graph.inserting_after(node):
            for offset, k, turns in self.leaving:
                for t in turns:
                    value = self.at(offset, t)._outputs[k]
                    number = last - t if backward else t
                    if offset in self.hoisted:
                        found = hoisted[self.at(offset, 0)._outputs[k]]
                    elif offset in self.sliced:
                        s = self.sliced[offset]
                        found = self._selected(s.source, s.dim, s.start + s.step * t, value)
                    elif t == last and (offset, k) in after:
                        found = after[offset, k]
                    else:
                        found = self._selected(every[offset, k], 0, number, value)
                    # A list of all rounds takes the last one from among them, and results of the
                    # graph are no parts of something.
                    listed = owned = found
                    users = {use.user for use in value._uses}
                    if t == last and (offset, k) in after and (offset, k) in every:
                        listed = self._selected(every[offset, k], 0, number, value)
                    elif (
                        returned in users
                        and found.node.kind == _SELECT
                        and offset not in self.sliced
                    ):
                        owned = graph.insert("wengert::clone", found)
                        owned.type = without_grad(value.type)
                    for use in list(value._uses):
                        if not self.first <= self.places.get(use.user, -1) < self.end:
                            chosen = found
                            if use.user.kind == _STACK:
                                chosen = listed
                            elif use.user is returned:
                                chosen = owned
                            use.user.replace_input(use.offset, chosen)

    def _selected(self, source: Value, dim: int, index: int, like: Value) -> Value:
        found: Value = self.graph.insert(_SELECT, source, dim, index)
        found.type = without_grad(like.type)
        return found


def _even(indices: list[int]) -> int | None:
    """The step between indices, if it is always the same one and not zero."""
    step = indices[1] - indices[0]
    if not step or any(b - a != step for a, b in zip(indices, indices[1:], strict=False)):
        return None
    return step


def _is_complete(known: Any) -> bool:
    return isinstance(known, TensorType) and known.is_complete


def _typed(value: Value, shape: Iterable[int], like: Value | None = None) -> Value:
    dtype = dtypes.bool if like is None else like.type.dtype  # type: ignore[attr-defined]
    value.type = TensorType(dtype, shape)
    return value


def _zeros(graph: Graph, like: Any) -> Value:
    out: Value = graph.insert(prim.FULL, like.shape, 0, like.dtype)
    out.type = without_grad(like)
    return out
