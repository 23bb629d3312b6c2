"""A folded graph as pictures: for each group one view, with what lies outside at its border."""

from __future__ import annotations

from dataclasses import dataclass

from ..autograd.profiler_util import format_memory
from .folding import Group, Item
from .layout import arrange, family_of, operator_name, shape_text, text_width
from .recorded import RecordedGraph

HEIGHT = 42
SMALLER = 0.86  # the second line of a box, against the first


@dataclass(frozen=True)
class Card:
    """A box of a view: two lines of text, a colour, and what it stands for.

    `target` is ``v`` or ``g`` and the number of a vertex or group, with ``o`` in front for what
    lies outside of the group that is shown.
    """

    target: str
    title: str
    subtitle: str
    family: str
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class View:
    """What one group looks like."""

    cards: list[Card]
    lines: list[tuple[int, int, list[tuple[float, float]]]]
    width: float
    height: float


class Views:
    """The views of a folded graph, made when they are asked for."""

    def __init__(self, graph: RecordedGraph, root: Group) -> None:
        self.graph = graph
        self.groups: list[Group] = []
        self.parent: list[int] = []
        self.home: dict[int, int] = {}  # the group of each vertex
        self._number: dict[int, int] = {}
        pending: list[tuple[Group, int]] = [(root, -1)]
        while pending:
            group, parent = pending.pop()
            number = self._number[id(group)] = len(self.groups)
            self.groups.append(group)
            self.parent.append(parent)
            for item in reversed(group.items):
                if isinstance(item, Group):
                    pending.append((item, number))
                else:
                    self.home[item] = number
        self._into: list[list[int]] = [[] for _ in graph.vertices]
        self._out_of: list[list[int]] = [[] for _ in graph.vertices]
        for producer, consumer in graph.edges:
            self._into[consumer].append(producer)
            self._out_of[producer].append(consumer)

    def number(self, group: Group) -> int:
        return self._number[id(group)]

    def path(self, group: int) -> list[int]:
        """A group and all around it, the outermost first."""
        found = []
        while group >= 0:
            found.append(group)
            group = self.parent[group]
        return found[::-1]

    def view(self, number: int, vertical: bool = True) -> View:
        """The picture of one group."""
        group = self.groups[number]
        targets = [self._target(item) for item in group.items]
        place = {
            vertex: i
            for i, item in enumerate(group.items)
            for vertex in (item.vertices() if isinstance(item, Group) else (item,))
        }
        edges: dict[tuple[int, int], None] = {}
        for vertex, i in place.items():
            for producer in self._into[vertex]:
                start = place.get(producer)
                if start is None:
                    start = self._outside(producer, number, "o", targets)
                if start != i:
                    edges[start, i] = None
            for consumer in self._out_of[vertex]:
                if consumer not in place:
                    edges[i, self._outside(consumer, number, "O", targets)] = None
        texts = [self._texts(target, number) for target in targets]
        widths = tuple(max(text_width(a), text_width(b) * SMALLER) for a, b, _ in texts)
        places = arrange(widths, HEIGHT, tuple(edges), vertical)
        cards = [
            Card(target.lower(), *text, x, y, width)
            for target, text, (x, y), width in zip(
                targets, texts, places.middles, widths, strict=True
            )
        ]
        lines = [(a, b, points) for (a, b), points in zip(edges, places.lines, strict=True)]
        return View(cards, lines, places.width, places.height)

    def _target(self, item: Item) -> str:
        return f"g{self.number(item)}" if isinstance(item, Group) else f"v{item}"

    def _outside(self, vertex: int, group: int, mark: str, targets: list[str]) -> int:
        """The place of the box for something outside: the largest part without `group` in it."""
        around = set(self.path(group))
        target = f"{mark}v{vertex}"
        for number in self.path(self.home[vertex]):
            if number not in around:
                target = f"{mark}g{number}"
                break
        if target not in targets:
            targets.append(target)
        return targets.index(target)

    def _texts(self, target: str, shown_in: int) -> tuple[str, str, str]:
        """The two lines of a box and its colour."""
        number = int(target.lstrip("oOvg"))
        outside = target[0] in "oO"
        if "g" in target:
            group = self.groups[number]
            vertices = group.vertices()
            times = f" × {group.repeated}" if group.repeated > 1 else ""
            facts = [group.kind] if group.kind and group.kind != group.label else []
            facts.append(f"{len(vertices)} nodes")
            held = sum(self.graph.vertices[i].held for i in vertices)
            facts += [format_memory(held)] if held else []
            title = group.label.rpartition(".")[2] if group.kind == "repetition" else group.label
            family = "outside" if outside else "group"
            return f"{title}{times}", " · ".join(facts), family
        vertex = self.graph.vertices[number]
        facts = [shape_text(vertex.shape) or "scalar"] if vertex.dtype else []
        facts += [vertex.dtype] if vertex.dtype not in ("", "float32") else []
        facts += [format_memory(vertex.held)] if vertex.held else []
        facts += [f"{len(vertex.hooks)} hooks"] if vertex.hooks else []
        title = operator_name(vertex.kind)
        if vertex.leaf is not None:
            title = self._relative(vertex.leaf, shown_in) or "leaf"
        return title, " · ".join(facts), "outside" if outside else family_of(vertex)

    def _relative(self, name: str, group: int) -> str:
        """The name of a parameter without that of the module which is shown."""
        for number in reversed(self.path(group)):
            prefix = self.groups[number].label + "."
            if name.startswith(prefix):
                return name.removeprefix(prefix)
        return name
