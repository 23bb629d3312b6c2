"""Programs as text for people: loops, products, calls, blocks; and the logs that print it."""

import os
import subprocess
import sys

import pytest

import wengert
import wengert.nn.functional as F
from compiler.native.support import programs_of, randn
from wengert.compiler import scan
from wengert.compiler.native.listing import listing


def listed(function, *inputs):
    native, _ = programs_of(function, *inputs)
    native(*inputs)
    (variant,) = native.variants.values()
    return listing(variant.layout)


def test_a_loop():
    x, w = randn(2, 3, dtype="float32"), randn(2, 3, dtype="float32")
    assert listed(lambda x, w: x * w + 1, x, w).splitlines() == [
        "0. 6 rows",
        "   for i < 6:",
        "     v0: f32 = input0[i]",
        "     v1: f32 = input1[i]",
        "     v2: f32 = v0 * v1",
        "     v4: f32 = v2 + 1.0",
        "     output2[i] = v4",
    ]


def test_views_reductions_and_choices():
    text = listed(lambda x: wengert.where(x[:, 1:] > 0, x[:, 1:], 2.0).sum(1), randn(5, 4))
    assert "input0[4*i + j + 1]" in text
    assert "> 0.0" in text and "select(" in text
    assert "= add of" in text and "over j" in text


def test_places_that_are_computed():
    i = wengert.tensor([0, 2, 2])
    text = listed(lambda x, i: (x[i], x.index_add(0, i, x[:3])), randn(4, 5), i)
    assert "input0[j] at v" in text
    assert " += v" in text


def test_running_results_and_calls():
    text = listed(lambda x: (x.cumsum(0), x.argsort(0)), randn(4, 5))
    assert "running: " in text
    assert "calls %" in text and "wengert::argsort" in text and "#" not in text


@pytest.mark.compiled_only
def test_products():
    x, w, v = randn(40, 50), randn(60, 50), randn(60)
    assert listed(lambda x, w, v: F.linear(x, w, v).relu(), x, w, v) == (
        "0. product: output3[40, 60] = max(0.0, input2(0, 1) + input0(50, 1) @ input1(1, 50)), "
        "50 terms"
    )
    p = randn(50, 60)
    assert "input0(60, 1) + -0.5 * (input1(1, 50) @ " in listed(
        lambda p, a, b: p - 0.5 * (a.t() @ b), p, x, randn(40, 60)
    )


def test_blocks():
    text = listed(lambda h, x: scan(lambda h, x: (h + x, h), h, x), randn(3), randn(4, 3))
    assert "scan: " in text
    assert "   block\n     0. 3 rows\n        for i < 3:" in text


@pytest.mark.parametrize(("name", "wanted"), [("native", "for i < 2:"), ("llvm", "define void")])
def test_logs_by_environment(name, wanted):
    program = "import wengert; wengert.compile(lambda x: x.sin())(wengert.ones(2))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WENGERT_LOG": name},
        capture_output=True,
        text=True,
        check=True,
    )
    assert wanted in done.stderr
