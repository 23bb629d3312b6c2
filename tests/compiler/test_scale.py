"""Differentiating long graphs takes time in proportion to their length."""

import time

import pytest

import wengert
from wengert.compiler import Graph, TensorType, differentiate
from wengert.compiler.passes import Policy, propagate_shapes


def chain(nodes):
    graph = Graph()
    x, c = (graph.add_input(TensorType(wengert.float32, (4, 4), True)) for _ in range(2))
    y = x
    for i in range(nodes):
        if i % 3 == 0:
            y = graph.insert("wengert::mul", y, c)
        elif i % 3 == 1:
            y = graph.insert("wengert::tanh", y)
        else:
            y = graph.insert("wengert::add", y, x)
    graph.register_output(y)
    return propagate_shapes(graph)


def seconds(nodes, recompute):
    """Processor time, the least of three."""
    found = []
    for _ in range(3):
        graph = chain(nodes)
        start = time.process_time()
        gradient = differentiate(graph, recompute=recompute)
        found.append(time.process_time() - start)
    assert len(gradient.df_output_vjps) == 2
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize("recompute", [None, Policy()], ids=["plain", "recompute"])
def test_ten_thousand_nodes(recompute):
    short, long = seconds(2_000, recompute), seconds(10_000, recompute)
    # Measured: 1.0 s and 1.4 s on a slow machine. Quadratic growth would be 25 times the time.
    assert long < 4.0
    assert long < 5 * short * 2.2
