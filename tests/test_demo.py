"""The demo reaches its targets and writes a report that stands alone."""

import html
import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("pygments")
pytest.importorskip("pygraphviz")
pytest.importorskip("tqdm")

import jinja2
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from wengert import cli
from wengert.demo import derivatives, highlight, pendulum, spirals
from wengert.demo.adam import Adam
from wengert.demo.graph import RecordedGraph, Vertex, record_graph
from wengert.demo.graph_svg import HEIGHT, draw, lay_out, short_name
from wengert.demo.templates import render

VOID_ELEMENTS = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that elements are balanced and collects ids, classes and references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.classes: set[str] = set()
        self.references: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)
        self.handle_startendtag(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name == "class":
                self.classes.update(value.split())
            elif name in ("src", "href", "xlink:href"):
                self.references.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    return cli.main(["demo", "--quick", "--output", str(folder)]), folder / "report.html"


def test_quick_demo_meets_every_target(quick_run):
    status, report = quick_run
    assert status == 0
    text = report.read_text("utf-8")
    assert text.count('class="met"') == 4
    assert 'class="missed"' not in text


def test_report_is_well_formed_and_complete(quick_run):
    text = quick_run[1].read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {"chart", "graph", "planes", "swing", "cards"} <= page.classes
    assert text.count('class="chart"') == 12
    assert text.count('class="graph"') == 2
    assert not re.search(r"\{[{%#]", text)
    assert "Where the" in text


def test_report_stands_alone(quick_run):
    text = quick_run[1].read_text("utf-8")
    page = Page(text)
    assert all(reference.startswith(("#", "data:")) for reference in page.references)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_missed_target_fails_the_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("wengert.demo.run.run", lambda output, quick: False)
    assert cli.main(["demo", "--quick", "--output", str(tmp_path)]) == 1


@pytest.mark.slow
def test_full_demo_meets_every_target(tmp_path, capsys):
    assert cli.main(["demo", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("ok  ") == 4
    assert re.search(r"[\d.]+ s, report", printed)


def test_spirals_are_balanced_and_apart():
    generator = wengert.Generator().manual_seed(0)
    points, labels = spirals.make_spirals(spirals.Settings(noise=0.0), generator)
    assert points.shape == (800, 2)
    assert labels.sum().item() == 400
    blue, orange = points[labels == 0], points[labels == 1]
    distances = (blue.unsqueeze(1) - orange.unsqueeze(0)).norm(dim=2)
    assert distances.min().item() > 0.15


def test_first_adam_step_moves_each_element_by_the_rate():
    parameter = wengert.tensor([1.0, -2.0, 3.0], requires_grad=True)
    optimizer = Adam([parameter], rate=0.1)
    optimizer.step([wengert.tensor([5.0, -0.01, 300.0])])
    assert parameter.tolist() == pytest.approx([0.9, -1.9, 2.9], abs=1e-5)


def test_runge_kutta_conserves_the_energy_of_an_undamped_pendulum():
    angle = wengert.tensor(1.0, dtype=wengert.float64)
    speed = wengert.zeros_like(angle)
    pull, damping = wengert.full_like(angle, -9.0), wengert.zeros_like(angle)

    def energy():
        return (speed * speed / 2 + pull * angle.cos()).item()

    before = energy()
    for _ in range(100):
        angle, speed = pendulum.runge_kutta_step(angle, speed, pull, damping, 0.01)
    assert energy() == pytest.approx(before, abs=1e-7)


def test_newton_finds_the_minimum_of_a_quadratic_at_once():
    hessian = wengert.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=wengert.float64)
    minimum = wengert.tensor([0.5, -2.0], dtype=wengert.float64)
    gradient = hessian @ -minimum
    assert pendulum.newton_update(gradient, hessian).tolist() == pytest.approx([0.5, -2.0])


def test_derivatives_agree_with_closed_forms(capsys):
    result = derivatives.run(size=5, seed=1)
    assert result.passed
    assert result.largest_error < 1e-10


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


def test_templates_escape_texts_and_refuse_missing_values():
    layout = lay_out(RecordedGraph([Vertex("<b>")], []))
    assert "&lt;b&gt;" in render("graph.html", layout=layout, label="", height=1, margin=0)
    with pytest.raises(jinja2.UndefinedError, match="margin"):
        render("graph.html", layout=layout, label="", height=1)


def test_highlighting_changes_no_character():
    shown = highlight.source_of(highlight.source_of, record_graph)
    plain = html.unescape(re.sub(r"<[^>]+>", "", shown))
    assert plain.startswith("def source_of(*functions: Callable) -> Markup:\n")
    assert "return Markup(" in plain
    assert plain.endswith("for node in number], list(edges))")
    assert '<span class="k">def</span><span class="w"> </span><span class="nf">source_of' in shown
