"""What the tests of the compiler share: comparing texts, running graphs, random programs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

import wengert
from wengert.compiler import Gradient, Graph, TensorType, parse, run
from wengert.compiler.passes import propagate_shapes


def graph(text: str) -> Graph:
    """A graph from indented text."""
    return parse(textwrap.dedent(text))


def typed(text: str) -> Graph:
    """A graph from text, with the types that follow from those of its inputs."""
    return propagate_shapes(graph(text))


def nodes_text(graph: Graph) -> str:
    """The text of a graph without the types of results, which a test does not care about."""
    return re.sub(r"(%[\w.]+) : [^=(]*?(?=, %|, [A-Z]| =)", r"\1", str(graph))


def assert_becomes(transform: Callable[[Graph], Graph], before: str, after: str) -> None:
    """A transformation makes of one text, after shape propagation, the other one."""
    result = transform(typed(before))
    result.lint()
    got, want = nodes_text(result), nodes_text(typed(after))
    assert got == want, f"\n{got}\n--- expected\n{want}"


def assert_unchanged(transform: Callable[[Graph], Graph], text: str) -> None:
    assert_becomes(transform, text, text)


def equal(got: object, want: object) -> bool:
    """Whether two results are the same, undefined ones included."""
    if got is None or want is None:
        return got is want
    a, b = got.detach().numpy(), want.detach().numpy()  # type: ignore[attr-defined]
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)


UNARY = ["neg", "tanh", "exp", "sin", "square", "clone", "abs", "sigmoid", "relu"]
BINARY = ["add", "mul", "sub", "maximum", "div"]
SHAPES = [(2, 3), (3,), (1, 3), (2, 1), ()]


@st.composite
def programs(draw: Callable, size: int = 12, grad: bool = False) -> Graph:
    """Graphs that run on float64 tensors of some shapes that broadcast to (2, 3)."""
    graph = Graph()
    known = [
        graph.add_input(
            TensorType(
                wengert.float64,
                draw(st.sampled_from(SHAPES)),
                draw(st.booleans()) if grad else None,
            )
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    for _ in range(draw(st.integers(0, size))):
        value = st.sampled_from(known)
        x = draw(value)
        choice = draw(st.integers(0, 9))
        if choice < 3:
            new = graph.insert(f"wengert::{draw(st.sampled_from(UNARY))}", x)
        elif choice < 6:
            new = graph.insert(f"wengert::{draw(st.sampled_from(BINARY))}", x, draw(value))
        elif choice == 6:
            new = graph.insert("wengert::mul", x, draw(st.sampled_from([1, 1.0, 2.0, -0.5])))
        elif choice == 7:
            new = graph.insert("wengert::add", x, draw(st.sampled_from([0, 0.0, 1.5])))
        elif choice == 8 and len(x.type.shape) == 2:
            kind = draw(st.sampled_from(["double transpose", "sum", "view", "cast"]))
            if kind == "double transpose":
                new = graph.insert("wengert::t", graph.insert("wengert::t", x))
            elif kind == "sum":
                new = graph.insert("wengert::sum.dim_IntList", x, (1,), True)
            elif kind == "view":
                flat = graph.insert("wengert::view", x, (-1,))
                new = graph.insert("wengert::view", flat, x.type.shape)
            else:
                wide = graph.insert("wengert::_to_copy", x, wengert.complex128)
                new = graph.insert("wengert::_to_copy", wide, wengert.float64)
        else:
            new = graph.insert("wengert::where", graph.insert("wengert::gt", x, 0.5), x, 0.25)
        propagate_shapes(graph)
        known.append(new)
    for value in draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)):
        graph.register_output(value)
    return graph


def inputs_for(graph: Graph, seed: int = 0) -> list:
    """Tensors that fit the inputs of a graph; those that may require grad do."""
    random = np.random.default_rng(seed)
    out = []
    for value in graph.inputs:
        t = value.type
        assert isinstance(t, TensorType)
        x = wengert.tensor(random.uniform(-1.5, 1.5, t.shape)).to(t.dtype)
        out.append(x.requires_grad_(bool(t.requires_grad)))
    return out


def run_gradient(gradient: Gradient, inputs: list, vjps: list) -> tuple[tuple, list]:
    """Run f and df: all outputs of f, and gradients for all inputs, None where there is none."""
    outputs = run(gradient.f, *inputs)
    found = run(gradient.df, *gradient.df_inputs(inputs, outputs, vjps))
    out: list = [None] * len(inputs)
    for i, g in zip(gradient.df_output_vjps, found, strict=True):
        out[i] = g
    return outputs, out


def accumulate(total: object, g: object) -> object:
    """The sum of two gradients, either of which may be undefined."""
    if total is None or g is None:
        return g if total is None else total
    return total + g  # type: ignore[operator]
