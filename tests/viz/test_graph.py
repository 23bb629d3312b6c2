"""Drawings of graphs: what is on them, how they are folded, and the files they are saved in."""

import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygraphviz")

import wengert
from pages import Page
from viz.models import GPT, MLP, tokens
from wengert import nn, viz
from wengert.viz.folding import Group


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


@pytest.fixture(scope="module")
def gpt():
    return viz.graph(GPT(), tokens())


def test_a_tensor_is_drawn_with_shapes_saved_bytes_hooks_and_lines():
    x = wengert.ones(2, 3, requires_grad=True)

    def halve(gradient):
        return gradient / 2

    y = x.exp()
    y.register_hook(halve)
    x.register_hook(print)
    loss = (y * x).sum()
    line = sys._getframe().f_lineno - 1
    drawing = viz.graph(loss, names={"x": x})
    by_kind = {vertex.kind: vertex for vertex in drawing.nodes}
    assert by_kind.keys() == {"SumBackward0", "MulBackward0", "ExpBackward0", "AccumulateGrad"}
    product = by_kind["MulBackward0"]
    assert product.shape == (2, 3) and product.dtype == "float32"
    assert product.line[:2] == (__file__, line)
    # The product holds the exponential, whose memory its own node holds already, and the leaf.
    assert {(s.name, s.bytes, s.shared) for s in product.saved} == {
        ("self", 24, True), ("other", 24, True)
    }  # fmt: skip
    assert by_kind["ExpBackward0"].held == 24
    (hook,) = by_kind["ExpBackward0"].hooks
    assert "halve (of the tensor)" in hook
    assert by_kind["AccumulateGrad"].leaf == "x"
    assert by_kind["AccumulateGrad"].hooks == ("print (of the tensor)",)


def test_every_kind_of_hook_is_named():
    x = wengert.ones(2, requires_grad=True)
    y = x.exp()
    y.grad_fn.register_hook(lambda given, taken: None)
    y.grad_fn.register_prehook(lambda given: None)
    x.register_post_accumulate_grad_hook(lambda t: None)
    drawing = viz.graph(y)
    kinds = {hook.rpartition("(")[2] for vertex in drawing.nodes for hook in vertex.hooks}
    assert kinds == {"before the node)", "after the node)", "after accumulation)"}


def test_parameters_of_called_modules_have_their_names():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = wengert.ones(2, 3)
    leaves = {v.leaf for v in viz.graph(model, x).nodes if v.leaf is not None}
    assert leaves == {"0.weight", "0.bias", "2.weight", "2.bias"}
    leaves = {v.leaf for v in viz.graph(lambda x: model(x).sum(), x).nodes if v.leaf is not None}
    assert leaves == {"0.weight", "0.bias", "2.weight", "2.bias"}
    given = viz.graph(model(x).sum(), names=model)
    assert {v.leaf for v in given.nodes if v.leaf is not None} == leaves


def test_arguments_of_functions_have_their_names():
    w = wengert.ones(3, requires_grad=True)
    p = {"scale": wengert.ones((), requires_grad=True)}
    drawing = viz.graph(lambda x, p: (x * p["scale"]).sum(), (w, p))
    assert {v.leaf for v in drawing.nodes if v.leaf is not None} == {"x", "scale"}


def test_what_is_not_recorded_is_traced():
    drawing = viz.graph(lambda x: (x * 2).tanh(), wengert.ones(4))
    assert [v.kind for v in drawing.nodes] == ["input", "wengert::mul", "wengert::tanh"]
    assert drawing.nodes[0].leaf == "x"
    assert drawing.nodes[1].line.file == __file__
    assert "wengert::mul" in drawing.nodes[1].note


def test_graphs_of_the_compiler_are_drawn():
    traced = wengert.compiler.trace(lambda x: wengert.compiler.cond(
        x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)), wengert.ones(3))  # fmt: skip
    for given in (traced, traced.graph):
        drawing = viz.graph(given)
        assert len(drawing.nodes) == len(list(traced.graph.nodes())) + len(traced.graph.inputs)
        assert "<svg" in drawing.svg()


def test_nothing_to_draw_is_an_error():
    with pytest.raises(RuntimeError, match="does not require grad"):
        viz.graph(wengert.ones(3))


def test_a_network_is_folded_to_its_modules(gpt):
    assert len(gpt.nodes) > 500
    data = data_of(gpt.html())
    assert len(data["groups"][0]["view"]["cards"]) < 30
    blocks = data["groups"][1]
    assert (blocks["label"], blocks["kind"], blocks["repeated"]) == ("h.0 … h.11", "Block", 12)
    assert [card[1] for card in blocks["view"]["cards"] if card[3] == "group"] == [
        f"h.{i}" for i in range(12)
    ]


def test_every_vertex_is_in_one_view(gpt):
    data = data_of(gpt.html())
    shown = [c[0] for g in data["groups"] for c in g["view"]["cards"] if c[0][0] in "vg"]
    assert len(shown) == len(set(shown))
    vertices = {int(target[1:]) for target in shown if target[0] == "v"}
    groups = {int(target[1:]) for target in shown if target[0] == "g"}
    assert vertices == set(range(len(gpt.nodes)))
    assert groups == set(range(1, len(data["groups"])))


def test_every_edge_is_seen_between_the_parts_it_connects(gpt):
    views = gpt._views
    inner = 0
    for producer, consumer in gpt.graph.edges:
        group = views.home[producer]
        if views.home[consumer] == group:
            inner += 1
            cards = [card.target for card in views.view(group).cards]
            ends = {(cards[a], cards[b]) for a, b, _ in views.view(group).lines}
            assert (f"v{producer}", f"v{consumer}") in ends
    assert inner > 100


def test_loops_are_folded_without_modules():
    weights = [wengert.ones(4, 4, requires_grad=True) for _ in range(40)]
    x = wengert.ones(2, 4)
    for w in weights:
        x = (x @ w).tanh()
    drawing = viz.graph(x.sum())
    root = drawing._views.groups[0]
    (loop,) = [item for item in root.items if isinstance(item, Group)]
    assert loop.repeated == 40
    assert [len(part.vertices()) for part in loop.items] == [3] * 40
    assert len(viz.graph(x.sum(), fold=False)._views.groups) == 1


def test_long_chains_stay_small_on_every_view():
    x = y = wengert.ones((), requires_grad=True)
    for _ in range(3000):
        y = y * 1.1
    data = data_of(viz.graph(y, names={"x": x}).html())
    assert max(len(group["view"]["cards"]) for group in data["groups"]) <= 50


def test_saved_files_stand_alone(tmp_path):
    drawing = viz.graph(MLP(width=8), wengert.ones(2, 8), title="a <small> & deep one")
    page = Path(drawing.save(tmp_path / "graph.html")).read_text("utf-8")
    svg = drawing.save(str(tmp_path / "graph.svg")).read_text("utf-8")
    assert "a &lt;small&gt; &amp; deep one" in page
    for text in (page, svg):
        read = Page(text)
        assert read.open == []
        assert read.references == []
        assert "@import" not in text and not re.search(r"url\((?!#)|@[A-Z]+@", text)
    with pytest.raises(ValueError, match=r"\.html, \.svg"):
        drawing.save(tmp_path / "graph.png")


def test_drawings_show_themselves_in_notebooks():
    x = wengert.ones(2, requires_grad=True)
    drawing = viz.graph(x.exp().sum())
    assert drawing._repr_svg_().startswith("<svg")
    framed = drawing._repr_html_()
    assert framed.startswith("<iframe srcdoc=") and Page(framed).open == []
    assert repr(drawing) == "<Drawing of SumBackward0: 3 nodes>"


def test_data_cannot_end_the_script(tmp_path):
    x = wengert.ones(2, requires_grad=True)
    text = viz.graph(x.exp(), names={"</script><b>@TITLE@": x}).html()
    assert text.count("</script>") == 2
    assert any(v["leaf"] == "</script><b>@TITLE@" for v in data_of(text)["vertices"])


def test_watching_leaves_nothing_behind():
    before = sys.getprofile()

    def fails(x):
        raise KeyError(x)

    with pytest.raises(KeyError):
        viz.graph(fails, wengert.ones(2))
    assert sys.getprofile() is before
    assert not nn.modules.hooks.has_global_hooks()


def test_without_graphviz_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    x = wengert.ones(123, requires_grad=True)
    drawing = viz.graph((x.exp() + x.sin() * x).cos(), names={"something never drawn": x})
    with pytest.raises(ImportError, match=r"wengert\[viz\]"):
        drawing.svg()
