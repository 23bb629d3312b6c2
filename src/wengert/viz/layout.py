"""Where boxes and lines go: Graphviz, through pygraphviz, whose wheel brings it along."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .recorded import RecordedGraph, Vertex

FAMILIES = {
    "arithmetic": "add sub mul div neg pow rsub square reciprocal addcmul addcdiv",
    "function": "tanh sin cos exp log sqrt sigmoid relu gelu silu softmax logsoftmax",
    "product": "mm addmm bmm baddbmm mv dot linear matmul convolution conv2d scaleddotproduct",
    "reduction": "sum mean amax amin max min logsumexp nativelayernorm layernorm nllloss mseloss",
    "shape": "view t transpose permute unsqueeze squeeze expand gather stack select slice unbind "
    "reshape cat index unsafeview alias split embedding",
}
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}
# In points, which are the pixels of the drawing. Boxes are given to Graphviz, and no texts: what it
# makes of fonts differs from machine to machine.
LETTER_WIDTH = 7.4
HEIGHT = 26
POINTS_PER_INCH = 72
SPACING = {"LR": {"ranksep": 0.4, "nodesep": 0.2}, "TB": {"ranksep": 0.32, "nodesep": 0.2}}

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A vertex on the page: its middle and its width."""

    vertex: Vertex
    x: float
    y: float
    width: float

    @property
    def text(self) -> str:
        return short_name(self.vertex)

    @property
    def family(self) -> str:
        return family_of(self.vertex)


@dataclass(frozen=True)
class Layout:
    """Boxes, and lines from the producer to the consumer: a start, and three points per curve."""

    boxes: list[Box]
    lines: list[list[Point]]
    width: float
    height: float


@dataclass(frozen=True)
class Places:
    """The middles of boxes, the lines between them, and the size of the whole."""

    middles: list[Point]
    lines: list[list[Point]]
    width: float
    height: float


def lay_out(graph: RecordedGraph, vertical: bool = False) -> Layout:
    """Layers from left to right, or from the top down, with few crossings."""
    widths = tuple(text_width(short_name(v)) for v in graph.vertices)
    places = arrange(widths, HEIGHT, tuple(graph.edges), vertical)
    boxes = [
        Box(vertex, x, y, width)
        for vertex, (x, y), width in zip(graph.vertices, places.middles, widths, strict=True)
    ]
    return Layout(boxes, places.lines, places.width, places.height)


def text_width(text: str) -> float:
    """The width of a box for a text."""
    return len(text) * LETTER_WIDTH + 20


@lru_cache(maxsize=256)
def arrange(
    widths: tuple[float, ...], height: float, edges: tuple[tuple[int, int], ...], vertical: bool
) -> Places:
    """Where boxes of some widths go, so that all edges lead onward; later boxes are inputs."""
    try:
        import pygraphviz
    except ImportError as missing:
        raise ImportError(
            "drawing a graph needs Graphviz: pip install pygraphviz (version 2 or newer, which "
            "brings it along), or pip install 'wengert[viz]'"
        ) from missing
    direction = "TB" if vertical else "LR"
    # As text, because an empty label counts as none when it is given as a keyword.
    drawn = pygraphviz.AGraph('digraph { node [label="", shape=box, fixedsize=true] }')
    drawn.graph_attr.update(rankdir=direction, **SPACING[direction])
    drawn.edge_attr.update(dir="none")
    # The number of a vertex is its name. The inputs come first, so that they are ranked first.
    for number in reversed(range(len(widths))):
        size = {"width": widths[number] / POINTS_PER_INCH, "height": height / POINTS_PER_INCH}
        drawn.add_node(number, **size)
    drawn.add_edges_from(edges)
    drawn.layout(prog="dot")
    _, _, whole_width, whole_height = map(float, drawn.graph_attr["bb"].split(","))

    def points(text: str) -> list[Point]:
        pairs = (pair.split(",") for pair in text.replace("\\\n", "").split())
        return [(float(x), whole_height - float(y)) for x, y in pairs]  # counted from below

    middles = [points(drawn.get_node(number).attr["pos"])[0] for number in range(len(widths))]
    lines = [points(drawn.get_edge(*edge).attr["pos"]) for edge in edges]
    return Places(middles, lines, whole_width, whole_height)


def short_name(vertex: Vertex) -> str:
    """What stands in the box: the operator, or the name and shape of a leaf."""
    if vertex.leaf is not None:
        return f"{vertex.leaf} {shape_text(vertex.shape)}".strip() or "leaf"
    return operator_name(vertex.kind)


def operator_name(kind: str) -> str:
    """The operator in the name of a node: Mul for MulBackward0."""
    kind = kind.rpartition("::")[2]
    return kind.rstrip("0123456789").removesuffix("Backward").lstrip("_") or kind


def shape_text(shape: tuple[int | None, ...]) -> str:
    """A shape as it is written in a box."""
    return " × ".join("?" if n is None else str(n) for n in shape)


def family_of(vertex: Vertex) -> str:
    """The kind of operator, which has a colour."""
    if vertex.leaf is not None:
        return "leaf"
    name = operator_name(vertex.kind).lower().partition(".")[0].replace("_", "")
    return FAMILY_OF.get(name, "other")
