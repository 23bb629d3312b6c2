"""Recorded graphs as data, and where their boxes and lines go."""

import pytest

pytest.importorskip("pygraphviz")

from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from pages import Page
from wengert.viz.layout import HEIGHT, lay_out, short_name
from wengert.viz.recorded import RecordedGraph, Vertex, record_graph
from wengert.viz.svg import draw


def test_recorded_graph_names_nodes_and_leaves():
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    y = wengert.tensor(3.0, requires_grad=True)
    graph = record_graph(((x * y).tanh() + x).sum().grad_fn, {"x": x, "y": y})
    kinds = sorted(vertex.kind.rstrip("01") for vertex in graph.vertices)
    assert kinds == sorted(
        ["SumBackward", "AddBackward", "TanhBackward", "MulBackward"] + ["AccumulateGrad"] * 2
    )
    leaves = {vertex.leaf: vertex.shape for vertex in graph.vertices if vertex.leaf is not None}
    assert leaves == {"x": (2,), "y": ()}
    names = [short_name(vertex) for vertex in graph.vertices]
    edges = {(names[a], names[b]) for a, b in graph.edges}
    assert edges == {
        ("x 2", "Mul"),
        ("y", "Mul"),
        ("Mul", "Tanh"),
        ("Tanh", "Add"),
        ("x 2", "Add"),
        ("Add", "Sum"),
    }


def test_recording_a_deep_graph_needs_no_recursion():
    x = wengert.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1
    assert record_graph(y.grad_fn, {}).node_count == 5001


@st.composite
def graphs(draw_from):
    """Graphs in which every vertex leads to vertex 0."""
    count = draw_from(st.integers(1, 14))
    edges = set()
    for producer in range(1, count):
        consumers = st.sets(st.integers(0, producer - 1), min_size=1, max_size=3)
        edges.update((producer, consumer) for consumer in draw_from(consumers))
    producers_of = {consumer for _, consumer in edges}
    vertices = [
        Vertex("AddBackward0") if i in producers_of else Vertex("AccumulateGrad", f"x{i}", (2,))
        for i in range(count)
    ]
    return RecordedGraph(vertices, sorted(edges))


@settings(max_examples=60, deadline=None)
@given(graphs(), st.booleans())
def test_layout_keeps_boxes_apart_and_edges_in_order(graph, vertical):
    layout = lay_out(graph, vertical)
    boxes = layout.boxes
    assert [box.vertex for box in boxes] == graph.vertices
    for index, box in enumerate(boxes):
        assert box.width / 2 - 0.1 <= box.x <= layout.width - box.width / 2 + 0.1
        assert HEIGHT / 2 - 0.1 <= box.y <= layout.height - HEIGHT / 2 + 0.1
        for other in boxes[:index]:
            beside = abs(other.x - box.x) >= (box.width + other.width) / 2
            assert beside or abs(other.y - box.y) >= HEIGHT
    for (producer, consumer), line in zip(graph.edges, layout.lines, strict=True):
        assert len(line) % 3 == 1  # a start, and three points per curve
        for box, (x, y) in ((boxes[producer], line[0]), (boxes[consumer], line[-1])):
            assert abs(x - box.x) <= box.width / 2 + 2
            assert abs(y - box.y) <= HEIGHT / 2 + 2
        before, after = boxes[producer], boxes[consumer]
        assert before.y < after.y if vertical else before.x < after.x


@settings(max_examples=20, deadline=None)
@given(graphs(), st.booleans())
def test_drawing_is_well_formed(graph, vertical):
    svg = draw(graph, "a <graph>", vertical)
    page = Page(svg)
    assert page.open == []
    assert svg.count("<rect") == graph.node_count
    assert svg.count("<path") == len(graph.edges)
    assert 'aria-label="a &lt;graph&gt;"' in svg
