"""Differentiating and lowering long graphs takes work in proportion to their length."""

import numpy as np
import pytest

import wengert
from line_counts import lines_run
from wengert.compiler import Graph, TensorType, differentiate
from wengert.compiler.native import building, host, program
from wengert.compiler.native.control import Signature
from wengert.compiler.native.emitter import Emitter
from wengert.compiler.native.frames import Layout
from wengert.compiler.native.lower import lower
from wengert.compiler.passes import Policy, propagate_shapes


def chain(nodes, repeats=True):
    graph = Graph()
    x, c = (graph.add_input(TensorType(wengert.float32, (4, 4), True)) for _ in range(2))
    y, i = x, 0
    for k in range(nodes):
        i = k if repeats else i * 1103515245 % 2147483647 + k
        if i % 3 == 0:
            y = graph.insert("wengert::mul", y, c)
        elif i % 3 == 1:
            y = graph.insert("wengert::tanh", y)
        else:
            y = graph.insert("wengert::add", y, x)
    graph.register_output(y)
    return propagate_shapes(graph)


def differentiated(graph, recompute):
    gradient = differentiate(graph, recompute=recompute)
    assert len(gradient.df_output_vjps) == 2


@pytest.mark.parametrize("recompute", [None, Policy()], ids=["plain", "recompute"])
def test_work_grows_in_proportion(recompute):
    differentiated(chain(10), recompute)  # records the rules
    short = lines_run(differentiated, chain(200), recompute)
    long = lines_run(differentiated, chain(1_000), recompute)
    # Proportional work is 5 times as much, quadratic work 25 times.
    assert long < 8 * short


@pytest.mark.slow
@pytest.mark.parametrize("recompute", [None, Policy()], ids=["plain", "recompute"])
def test_ten_thousand_nodes(recompute):
    differentiated(chain(10_000), recompute)


def lowered(graph):
    signatures = [Signature(np.dtype("float32"), (4, 4), (16, 4))] * 2
    made = lower(graph, signatures)
    layout = Layout(made.groups, made.buffers)
    kinds = [buffer.kind for buffer in made.buffers]
    for step in layout.steps:
        Emitter(step, kinds, 64).emit()


def test_work_on_machine_code_grows_in_proportion():
    lowered(chain(10))  # records the forms
    short = lines_run(lowered, chain(400))
    long = lines_run(lowered, chain(2_000))
    assert long < 8 * short


class Given(Exception):
    """What LLVM was given."""


def lines_given(monkeypatch, nodes):
    """The lines that LLVM is given of a chain."""

    def compiled(text, bits):
        raise Given(text.count("\n"))

    monkeypatch.setattr(host, "compiled", compiled)
    monkeypatch.setattr(program, "STRICT", True)
    with pytest.raises(Given) as given:
        program.NativeProgram(chain(nodes, False))(wengert.ones(4, 4), wengert.ones(4, 4))
    return given.value.args[0]


def test_longer_operators_of_long_graphs_are_functions(monkeypatch):
    """LLVM takes longest of all: of what comes after some thousand nodes it is given little."""
    monkeypatch.setattr(building, "MOST_REPLAYED", 2_000)
    none, short, long = (lines_given(monkeypatch, nodes) for nodes in (100, 500, 2_500))
    assert none > 8 * 100
    assert long - short < 3 * 2_000
