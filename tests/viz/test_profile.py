"""Flame charts: their pages, and the traces that Perfetto opens."""

import json
import re

import wengert
from pages import Page
from wengert import viz
from wengert.autograd.profiler import profile, record_function


def program(x):
    with record_function("layer"):
        y = x.exp().sum()
    y.backward()


def test_a_function_is_profiled_and_shown(tmp_path):
    flames = viz.profile(program, wengert.ones(3, requires_grad=True))
    text = flames.save(tmp_path / "profile.html").read_text("utf-8")
    page = Page(text)
    assert page.open == [] and page.references == []
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    depth = {event[0]: event[2] for event in data["events"]}
    assert depth["layer"] == 0 and depth["aten::exp"] == 1
    assert depth["evaluate_function: ExpBackward0"] == 0 and depth["ExpBackward0"] == 1
    assert {row[0] for row in data["sums"]} >= {"layer", "aten::exp", "ExpBackward0"}
    assert any(__file__ in event[9] for event in data["events"])
    assert repr(flames).startswith("<Flames of program: ")
    assert flames._repr_html_().startswith("<iframe")


def test_a_finished_profile_is_exported_for_perfetto(tmp_path):
    with profile() as measured:
        program(wengert.ones(3, requires_grad=True))
    flames = viz.profile(measured, title="mine")
    trace = json.loads(flames.save(tmp_path / "trace.json").read_text())
    names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
    assert names == [event.name for event in measured.function_events]
    assert "<h1>mine</h1>" in flames.html()
