"""A drawing of a recorded graph as SVG, laid out by Graphviz, in the colours of the page."""

from dataclasses import dataclass

import pygraphviz
from markupsafe import Markup

from wengert.demo.graph import RecordedGraph, Vertex
from wengert.demo.templates import render

FAMILIES = {
    "arithmetic": "add sub mul div neg pow rsub square reciprocal",
    "function": "tanh sin cos exp log sqrt sigmoid relu softmax logsoftmax",
    "product": "mm addmm bmm mv dot linear matmul",
    "reduction": "sum mean amax amin max min logsumexp",
    "shape": "view t transpose permute unsqueeze squeeze expand gather stack select slice unbind "
    "reshape cat index unsafeview alias",
}
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}
# In points, which are the pixels of the drawing. Boxes are given to Graphviz, and no texts: what it
# makes of fonts differs from machine to machine.
LETTER_WIDTH = 7.4
HEIGHT = 26
MARGIN = 10
POINTS_PER_INCH = 72
SPACING = {"LR": {"ranksep": 0.4, "nodesep": 0.2}, "TB": {"ranksep": 0.32, "nodesep": 0.2}}


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


Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Boxes, and lines from the producer to the consumer: a start, and three points per curve."""

    boxes: list[Box]
    lines: list[list[Point]]
    width: float
    height: float


def draw(graph: RecordedGraph, label: str, vertical: bool = False) -> Markup:
    """The graph with its leaves first and its result last; gradients run the other way."""
    return render(
        "graph.html", layout=lay_out(graph, vertical), label=label, height=HEIGHT, margin=MARGIN
    )


def lay_out(graph: RecordedGraph, vertical: bool = False) -> Layout:
    """Layers from left to right, or from the top down, with few crossings."""
    direction = "TB" if vertical else "LR"
    # As text, because an empty label counts as none when it is given as a keyword.
    drawn = pygraphviz.AGraph('digraph { node [label="", shape=box, fixedsize=true] }')
    drawn.graph_attr.update(rankdir=direction, **SPACING[direction])
    drawn.edge_attr.update(dir="none")
    widths = [len(short_name(v)) * LETTER_WIDTH + 20 for v in graph.vertices]
    # The number of a vertex is its name. The inputs come first, so that they are ranked first.
    for number in reversed(range(graph.node_count)):
        size = {"width": widths[number] / POINTS_PER_INCH, "height": HEIGHT / POINTS_PER_INCH}
        drawn.add_node(number, **size)
    drawn.add_edges_from(graph.edges)
    drawn.layout(prog="dot")
    _, _, width, height = map(float, drawn.graph_attr["bb"].split(","))

    def points(text: str) -> list[Point]:
        pairs = (pair.split(",") for pair in text.replace("\\\n", "").split())
        return [(float(x), height - float(y)) for x, y in pairs]  # Graphviz counts from below

    boxes = []
    for number, vertex in enumerate(graph.vertices):
        ((x, y),) = points(drawn.get_node(number).attr["pos"])
        boxes.append(Box(vertex, x, y, widths[number]))
    lines = [points(drawn.get_edge(*edge).attr["pos"]) for edge in graph.edges]
    return Layout(boxes, lines, width, height)


def short_name(vertex: Vertex) -> str:
    if vertex.leaf is not None:
        shape = " × ".join(map(str, vertex.shape))
        return f"{vertex.leaf} {shape}".strip() or "leaf"
    return vertex.kind.rstrip("0123456789").removesuffix("Backward").lstrip("_")


def family_of(vertex: Vertex) -> str:
    if vertex.leaf is not None:
        return "leaf"
    return FAMILY_OF.get(short_name(vertex).lower(), "other")
