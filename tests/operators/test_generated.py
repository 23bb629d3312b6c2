"""What `make generate` writes: it is not stale, and one declaration is enough for an operator."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

#: An elementwise operator, a reduction and an operator with two results, as one would add them.
ADDED = '''
"""Operators that a test adds."""

from __future__ import annotations

from ..transforms.batching.rules import along
from .along import normal_dims
from .declare import elementwise, linear, primitive
from .pointwise import cos, sin
from . import shapes

__all__ = ["halve_angle", "sum_twice", "sine_and_cosine"]

halve_angle = elementwise(
    "halve_angle(Tensor self) -> Tensor",
    lambda xp, x: xp.sin(x / 2),
    lambda t, self: t * cos(self / 2) / 2,
    also="half_sine",
    numpy="rad2deg",
    doc="The sine of half the angle.",
)
sum_twice = linear(
    "sum_twice(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    lambda xp, x, dim, keepdim: 2 * xp.sum(x, axis=normal_dims(dim, x.ndim), keepdims=keepdim),
    lambda g, self_shape, dim, keepdim: 2 * (
        g if keepdim else g.unsqueeze(dim[0])
    ).expand(self_shape),
    shape=lambda x, dim, keepdim: __import__("numpy").sum(x, axis=dim, keepdims=keepdim).shape,
    batch=along("dim"),
    doc="Twice the sum along dimensions.",
)
sine_and_cosine = primitive(
    "sine_and_cosine(Tensor self) -> (Tensor, Tensor)",
    lambda xp, x: (xp.sin(x), xp.cos(x)),
    lambda g, out0, out1: g[0] * out1 - g[1] * out0,
    lambda tangents, out0, out1: (tangents["self"] * out1, -(tangents["self"] * out0)),
    shape=lambda x: [x.shape, x.shape],
    batch=lambda operator, args, dims: (operator.call(args), dims[0]),
    doc="Sine and cosine of each element.",
)
'''

CHECK = '''
import numpy as np
import wengert as w
from wengert.func import hessian, jvp, vmap

x = w.tensor([[0.3, -1.2, 0.8], [0.1, 0.5, -0.4]], dtype=w.float64, requires_grad=True)
plain = x.detach()

assert w.halve_angle is w.Tensor.halve_angle is w.half_sine
assert w.allclose(w.halve_angle(x), w.sin(x / 2))
assert w.allclose(plain.clone().halve_angle_(), w.sin(plain / 2))
assert w.allclose(plain.clone().half_sine_(), w.sin(plain / 2))
assert w.allclose(np.rad2deg(x), w.sin(x / 2))
assert w.autograd.gradcheck(w.halve_angle, x) and w.autograd.gradgradcheck(w.halve_angle, x)
assert w.autograd.gradcheck(lambda t: t.sum_twice(1), x)
assert w.autograd.gradgradcheck(lambda t: t.sum_twice(1).sin(), x)
assert w.autograd.gradcheck(w.sine_and_cosine, x) and w.autograd.gradgradcheck(w.sine_and_cosine, x)
assert w.allclose(w.sum_twice(x, 0), 2 * x.sum(0))
for f in (w.halve_angle, lambda t: w.sum_twice(t, 0), lambda t: w.sine_and_cosine(t)[1]):
    assert w.allclose(vmap(f)(plain), w.stack([f(row) for row in plain]))
    assert w.allclose(w.compile(f)(plain), f(plain))
    value, tangent = jvp(f, (plain,), (w.ones_like(plain),))
    assert tangent.shape == value.shape
    assert hessian(lambda t: f(t).sum())(plain[0]).shape == (3, 3)
    assert f(w.empty(2, 3, device="meta")).shape == f(plain).shape
assert "half_sine" in dir(w) and w.halve_angle.__doc__
'''


def test_nothing_generated_is_stale():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate.py"), "--check"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"run `make generate`:\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the sources to which one file of operators was added."""
    root = tmp_path_factory.mktemp("extended")
    shutil.copytree(
        ROOT / "src" / "wengert", root / "src" / "wengert",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )  # fmt: skip
    shutil.copytree(ROOT / "tools", root / "tools")
    shutil.copytree(ROOT / "docs", root / "docs")
    (root / "src" / "wengert" / "operators" / "added.py").write_text(ADDED.lstrip())
    subprocess.run([sys.executable, str(root / "tools" / "generate.py")], check=True)
    return root


def test_one_file_adds_an_operator(extended):
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHECK],
        env={"PYTHONPATH": str(extended / "src")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["halve_angle", "sum_twice", "sine_and_cosine"])
def test_an_added_operator_is_documented_and_typed(extended, name):
    assert f"| `{name}` |" in (extended / "docs" / "operators.md").read_text()
    assert f"def {name}(input: Tensor" in (extended / "src/wengert/__init__.pyi").read_text()


def test_the_page_of_operators_has_no_empty_cell():
    rows = (ROOT / "docs" / "operators.md").read_text().split("\n|---")[1].splitlines()[1:]
    assert len(rows) > 400
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 12 and all(cells), row
