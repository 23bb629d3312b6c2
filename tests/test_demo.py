"""The demo reaches its targets and writes a report that stands alone."""

import html
import re

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("llvmlite")
pytest.importorskip("matplotlib")
pytest.importorskip("pygments")
pytest.importorskip("pygraphviz")
pytest.importorskip("tqdm")

import jinja2

import wengert
from pages import Page
from wengert import cli
from wengert.demo import derivatives, highlight, pendulum, spirals, templates
from wengert.demo.adam import Adam
from wengert.demo.templates import render


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    return cli.main(["demo", "--quick", "--output", str(folder)]), folder / "report.html"


def test_quick_demo_meets_every_target(quick_run):
    status, report = quick_run
    assert status == 0
    text = report.read_text("utf-8")
    assert text.count('class="met"') == 5
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
    assert printed.count("ok  ") == 5
    assert re.search(r"[\d.]+ s, report", printed)
    for name in ("graph.html", "memory.html"):
        assert str(tmp_path / name) in printed and Page((tmp_path / name).read_text()).open == []
    assert '"W1"' in (tmp_path / "graph.html").read_text()


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


def test_templates_escape_texts_and_refuse_missing_values(tmp_path, monkeypatch):
    (tmp_path / "greeting.html").write_text("<p>{{ name }}, {{ count }}</p>")
    monkeypatch.setattr(templates._environment, "loader", jinja2.FileSystemLoader(tmp_path))
    assert render("greeting.html", name="<b>", count=1) == "<p>&lt;b&gt;, 1</p>"
    with pytest.raises(jinja2.UndefinedError, match="count"):
        render("greeting.html", name="<b>")


def test_highlighting_changes_no_character():
    shown = highlight.source_of(highlight.source_of, render)
    plain = html.unescape(re.sub(r"<[^>]+>", "", shown))
    assert plain.startswith("def source_of(*functions: Callable) -> Markup:\n")
    assert "return Markup(" in plain
    assert plain.endswith("get_template(template).render(values))")
    assert '<span class="k">def</span><span class="w"> </span><span class="nf">source_of' in shown
