"""Graphs in parts that can be looked at one by one: calls, and what a loop repeats.

The nodes in the order of recording are put into the groups of the calls that recorded them. Within
each group, a pattern of neighbours that repeats becomes a group of its repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Union

from .recorded import RecordedGraph
from .scopes import Scope

#: A graph of at most so many vertices is shown whole; so is a group of half as many.
SMALL = 40
#: A call of at most so many operations is not shown as a part of its own.
TINY = 6
#: So many parts are shown beside each other, others are put together.
MOST = 48
LONGEST_PATTERN = 400

Item = Union[int, "Group"]


@dataclass(eq=False)
class Group:
    """A part of a graph: numbers of vertices and further groups, in the order of recording."""

    label: str
    kind: str = ""
    items: list[Item] = field(default_factory=list)
    repeated: int = 1

    def vertices(self) -> list[int]:
        """All vertices inside, at any depth."""
        found: list[int] = []
        pending: list[Item] = [self]
        while pending:
            item = pending.pop()
            if isinstance(item, Group):
                pending.extend(reversed(item.items))
            else:
                found.append(item)
        return found


def fold(graph: RecordedGraph, scopes: Iterable[Scope] = (), small: int = SMALL) -> Group:
    """The graph as one group, with groups inside if it is larger than `small`."""
    root = Group("graph")
    if graph.node_count <= small:
        root.items = list(range(graph.node_count))
        return root
    # Positions in a graph that was not recorded are the numbers of its vertices.
    order = [i for i, v in enumerate(graph.vertices) if v.leaf is None]
    order.sort(key=lambda i: graph.vertices[i].sequence)
    root = _by_calls(graph, order, scopes)
    kinds: dict[object, int] = {}
    _repetitions(graph, root, kinds)
    _unfold_small(root, small // 2)
    _limit(root)
    _add_leaves(graph, root)
    return root


# Calls --------------------------------------------------------------------------------------------


def _by_calls(graph: RecordedGraph, order: list[int], scopes: Iterable[Scope]) -> Group:
    """The vertices in the groups of the calls that recorded them."""
    root = Group("graph")
    waiting = sorted(scopes, key=lambda scope: (scope.start, -scope.end))
    waiting.reverse()
    open_groups: list[tuple[int, Group]] = [(2**63, root)]
    for i in order:
        sequence = graph.vertices[i].sequence
        while open_groups[-1][0] <= sequence:
            open_groups.pop()
        while waiting and waiting[-1].start <= sequence:
            scope = waiting.pop()
            if scope.end > sequence:
                group = Group(scope.name, scope.kind)
                open_groups[-1][1].items.append(group)
                open_groups.append((scope.end, group))
        open_groups[-1][1].items.append(i)
    return _simplified(root)


def _simplified(group: Group) -> Group:
    """Without groups of a single part: the group inside, or the vertex, takes their place."""
    items: list[Item] = []
    for item in group.items:
        if isinstance(item, Group):
            inner = _simplified(item)
            if len(inner.items) == 1:
                (only,) = inner.items
                if isinstance(only, Group) and not only.kind:
                    only.label, only.kind = inner.label, inner.kind
                items.append(only)
            else:
                items.append(inner)
        else:
            items.append(item)
    group.items = items
    if len(items) == 1 and isinstance(items[0], Group) and group.label == "graph":
        group.items = items[0].items
    return group


# Repetitions --------------------------------------------------------------------------------------


def _repetitions(graph: RecordedGraph, group: Group, kinds: dict[object, int]) -> int:
    """Fold the repetitions in a group; returns the number of its kind, equal for equal groups."""
    numbers = []
    for item in group.items:
        if isinstance(item, Group):
            numbers.append(_repetitions(graph, item, kinds))
        else:
            v = graph.vertices[item]
            numbers.append(kinds.setdefault((v.kind, v.shape, v.dtype, v.line, v.note), len(kinds)))
    kind = kinds.setdefault((group.kind, *numbers), len(kinds))
    items: list[Item] = []
    position = 0
    while position < len(numbers):
        period, count = _longest_run(numbers, position)
        if count == 1:
            items.append(group.items[position])
            position += 1
            continue
        end = position + period * count
        parts = [group.items[i : i + period] for i in range(position, end, period)]
        items.append(_run(graph, parts, kinds))
        position = end
    # A group that only repeats needs no further group around the repetitions.
    only = items[0] if len(items) == 1 else None
    if isinstance(only, Group) and only.repeated > 1 and not isinstance(group.items[0], int):
        group.items, group.repeated = only.items, only.repeated
    else:
        group.items = items
    return kind


def _run(graph: RecordedGraph, parts: list[list[Item]], kinds: dict[object, int]) -> Group:
    """The group of the repetitions of a pattern."""
    first = parts[0]
    if len(first) > 1:
        members: list[Item] = []
        for number, part in enumerate(parts):
            once = Group(f"{_line(graph, part)}#{number + 1}", "repetition", part)
            _repetitions(graph, once, kinds)
            members.append(once)
        return Group(_line(graph, first), "loop", members, len(parts))
    (one,) = first
    members = [part[0] for part in parts]
    if isinstance(one, int):
        return Group(f"{graph.vertices[one].kind}", "loop", members, len(parts))
    last = members[-1]
    assert isinstance(last, Group)
    label = one.label if one.label == last.label else f"{one.label} … {last.label}"
    return Group(label, one.kind, members, len(parts))


def _line(graph: RecordedGraph, items: Sequence[Item]) -> str:
    """Where the first vertex of some parts was recorded, in short."""
    first: Item = items[0]
    while isinstance(first, Group):
        first = first.items[0]
    line = graph.vertices[first].line
    return "repeated" if line is None else f"{line.function.rpartition('.')[2]}:{line.number}"


def _longest_run(numbers: list[int], start: int) -> tuple[int, int]:
    """The length of a pattern that begins here and how often it stands here; (1, 1) for none."""
    best, covered = (1, 1), 1
    left = len(numbers) - start
    for period in range(1, min(LONGEST_PATTERN, left // 3) + 1):
        if numbers[start] != numbers[start + period]:
            continue
        pattern = numbers[start : start + period]
        count = 1
        while numbers[start + count * period : start + (count + 1) * period] == pattern:
            count += 1
        if count >= 3 and count * period > covered:
            best, covered = (period, count), count * period
    return best


# Sizes --------------------------------------------------------------------------------------------


def _unfold_small(group: Group, small: int) -> None:
    """Put what is in small groups into the group around them, except what repeats."""
    items: list[Item] = []
    for item in group.items:
        if isinstance(item, Group):
            _unfold_small(item, small)
            size = len(item.vertices())
            tiny = size <= TINY and group.repeated == 1
            if tiny or (len(group.vertices()) <= small and item.repeated == 1):
                items.extend(item.items)
                continue
        items.append(item)
    group.items = items


def _limit(group: Group) -> None:
    """Put neighbours together where more than can be looked at lie side by side."""
    for item in group.items:
        if isinstance(item, Group):
            _limit(item)
    while len(group.items) > MOST:
        size = MOST // 2
        parts = [group.items[i : i + size] for i in range(0, len(group.items), size)]
        count = len(group.items)
        group.items = [
            Group(f"{1 + i * size} … {min((i + 1) * size, count)}", "part", part)
            for i, part in enumerate(parts)
        ]


def _add_leaves(graph: RecordedGraph, root: Group) -> None:
    """Put every leaf into the innermost group that has all of its uses."""
    path_of: dict[int, list[Group]] = {}

    pending: list[tuple[Group, list[Group]]] = [(root, [root])]
    while pending:
        group, path = pending.pop()
        for item in group.items:
            if isinstance(item, Group):
                pending.append((item, [*path, item]))
            else:
                path_of[item] = path
    users: dict[int, list[int]] = {}
    for producer, consumer in graph.edges:
        users.setdefault(producer, []).append(consumer)
    for i, vertex in enumerate(graph.vertices):
        if vertex.leaf is None:
            continue
        paths = [path_of[user] for user in users.get(i, ()) if user in path_of]
        common = 0
        while paths and all(
            len(path) > common and path[common] is paths[0][min(common, len(paths[0]) - 1)]
            for path in paths
        ):
            common += 1
        home = paths[0][common - 1] if paths and common else root
        while home.repeated > 1 and common > 1:  # beside the repetitions, not among them
            common -= 1
            home = paths[0][common - 1]
        home.items.append(i)
