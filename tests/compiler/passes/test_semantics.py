"""Random programs: no pass changes what is computed, nor which results share memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.support import equal, inputs_for, programs
from wengert.compiler import parse, passes, run
from width import tries

PASSES = [
    passes.eliminate_common_subexpressions,
    passes.eliminate_dead_code,
    passes.fold_constants,
    passes.pool_constants,
    passes.peephole,
    passes.canonicalize,
    passes.inline,
    passes.propagate_shapes,
    passes.propagate_requires_grad,
    passes.specialize_zeros,
    passes.lower_tuples,
]


def sharing(values, inputs):
    """Which of the results share memory with each other and with the inputs."""
    arrays = [v.detach().numpy() for v in (*values, *inputs)]
    return [
        np.shares_memory(a, b) for i, a in enumerate(arrays[: len(values)]) for b in arrays[i + 1 :]
    ]


@pytest.mark.wide
@settings(deadline=None, max_examples=tries(150))
@given(programs(), st.lists(st.sampled_from(PASSES), min_size=1, max_size=5))
def test_passes_keep_the_meaning(graph, chosen):
    inputs = inputs_for(graph)
    want = run(graph, *inputs)
    shared = sharing(want, inputs)
    for transform in chosen:
        graph = transform(graph)
        graph.lint()
    got = run(graph, *inputs)
    assert all(map(equal, got, want))
    after = sharing(got, inputs)
    assert not [1 for a, b in zip(after, shared, strict=True) if a and not b]


@pytest.mark.parametrize("transform", PASSES, ids=lambda p: p.__name__)
def test_passes_return_the_graph_they_are_given(transform):
    graph = parse("graph(%x : float32[2]):\n  %0 = wengert::neg(%x)\n  return (%0)")
    assert transform(graph) is graph
