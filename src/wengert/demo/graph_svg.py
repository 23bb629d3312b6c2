"""A drawing of a recorded graph as SVG that follows the colours of the page around it."""

from html import escape

from wengert.demo.graph import Layout, Point, RecordedGraph, Vertex, lay_out

FAMILIES = {
    "arithmetic": "add sub mul div neg pow rsub square reciprocal",
    "function": "tanh sin cos exp log sqrt sigmoid relu softmax logsoftmax",
    "product": "mm addmm bmm mv dot linear matmul",
    "reduction": "sum mean amax amin max min logsumexp",
    "shape": "view t transpose permute unsqueeze squeeze expand gather stack select slice unbind "
    "reshape cat index unsafeview alias",
}
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}
LETTER_WIDTH = 7.4
HEIGHT = 26


def draw(graph: RecordedGraph, label: str, vertical: bool = False) -> str:
    """The graph with its leaves first and its result last; gradients run the other way."""
    return Drawing(graph, lay_out(graph), vertical).svg(label)


def short_name(vertex: Vertex) -> str:
    if vertex.leaf is not None:
        shape = " × ".join(map(str, vertex.shape))
        return f"{vertex.leaf} {shape}".strip() or "leaf"
    return vertex.kind.rstrip("0123456789").removesuffix("Backward").lstrip("_")


def family_of(vertex: Vertex) -> str:
    if vertex.leaf is not None:
        return "leaf"
    return FAMILY_OF.get(short_name(vertex).lower(), "other")


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """Turns layers and offsets into positions on the page."""

    def __init__(self, graph: RecordedGraph, layout: Layout, vertical: bool) -> None:
        self.graph = graph
        self.layout = layout
        self.vertical = vertical
        self.widths = [len(short_name(v)) * LETTER_WIDTH + 20 for v in graph.vertices]
        if vertical:
            self.layer_position = [index * 1.9 * HEIGHT for index in range(layout.layers)]
            self.offset_scale = max(self.widths) + 14
        else:
            self.layer_position = self.column_centres()
            self.offset_scale = 1.6 * HEIGHT

    def column_centres(self) -> list[float]:
        widest = [0.0] * self.layout.layers
        for width, point in zip(self.widths, self.layout.vertices):
            widest[point.layer] = max(widest[point.layer], width)
        centres = [0.0]
        for left, right in zip(widest, widest[1:]):
            centres.append(centres[-1] + (left + right) / 2 + 34)
        return centres

    def position(self, point: Point) -> tuple[float, float]:
        along, across = self.layer_position[point.layer], point.offset * self.offset_scale
        return (across, along) if self.vertical else (along, across)

    def svg(self, label: str) -> str:
        margin = 10
        boxes = [self.position(point) for point in self.layout.vertices]
        left = min(x - w / 2 for (x, _), w in zip(boxes, self.widths)) - margin
        right = max(x + w / 2 for (x, _), w in zip(boxes, self.widths)) + margin
        # Bends may lie outside of all vertices.
        points = boxes + [self.position(point) for chain in self.layout.edges for point in chain]
        left = min(left, min(x for x, _ in points) - margin)
        right = max(right, max(x for x, _ in points) + margin)
        top = min(y for _, y in points) - HEIGHT / 2 - margin
        bottom = max(y for _, y in points) + HEIGHT / 2 + margin
        view = " ".join(number(v) for v in (left, top, right - left, bottom - top))
        edges = "".join(map(self.edge, self.layout.edges, self.graph.edges))
        vertices = "".join(map(self.vertex, range(self.graph.node_count)))
        return (
            f'<svg class="graph" role="img" aria-label="{escape(label)}" viewBox="{view}" '
            f'style="width:{number(right - left)}px" xmlns="http://www.w3.org/2000/svg">'
            f'<g class="edges">{edges}</g>{vertices}</svg>'
        )

    def edge(self, chain: list[Point], ends: tuple[int, int]) -> str:
        """A smooth line from the border of the producer to the border of the consumer."""
        points = [self.position(point) for point in chain]
        (x0, y0), (x1, y1) = points[0], points[-1]
        if self.vertical:
            points[0], points[-1] = (x0, y0 + HEIGHT / 2), (x1, y1 - HEIGHT / 2)
        else:
            producer, consumer = ends
            points[0] = (x0 + self.widths[producer] / 2, y0)
            points[-1] = (x1 - self.widths[consumer] / 2, y1)
        path = "M{} {}".format(*map(number, points[0]))
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            if self.vertical:
                middle = (y0 + y1) / 2
                bend = (x0, middle, x1, middle, x1, y1)
            else:
                middle = (x0 + x1) / 2
                bend = (middle, y0, middle, y1, x1, y1)
            path += "C" + " ".join(map(number, bend))
        return f'<path d="{path}"/>'

    def vertex(self, index: int) -> str:
        vertex, width = self.graph.vertices[index], self.widths[index]
        x, y = self.position(self.layout.vertices[index])
        corner = 5 if vertex.leaf is not None else HEIGHT / 2
        return (
            f'<g class="vertex {family_of(vertex)}"><title>{escape(vertex.kind)}</title>'
            f'<rect x="{number(x - width / 2)}" y="{number(y - HEIGHT / 2)}" '
            f'width="{number(width)}" height="{HEIGHT}" rx="{number(corner)}"/>'
            f'<text x="{number(x)}" y="{number(y)}">{escape(short_name(vertex))}</text></g>'
        )
