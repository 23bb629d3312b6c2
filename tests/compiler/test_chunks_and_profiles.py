"""Tensors cut into a known number of parts, and what profiles tell differentiation."""

import pytest

import wengert
from compiler.support import graph, run_gradient, typed
from wengert.compiler import (
    GraphError,
    differentiate,
    is_differentiable,
    parse,
    passes,
    run,
)
from wengert.compiler.run.executable import Executable

CHUNKS = """
    graph(%x : float64[2, 5; grad], %w : float64[2, 2; grad]):
      %0, %1, %2 = prim::ConstantChunk[chunks=3, dim=1](%x)
      %3 = wengert::mul(%0, %w)
      %4 = wengert::mul(%3, %1)
      return (%4, %2)
"""


def inputs():
    x = wengert.linspace(-1, 1, 10, dtype=wengert.float64).reshape(2, 5)
    return x, wengert.linspace(1, 2, 4, dtype=wengert.float64).reshape(2, 2)


def by_hand(x, w):
    a, b, c = x.chunk(3, 1)
    return a * w * b, c


def test_chunks_are_parts():
    given = typed(CHUNKS)
    given.lint()
    assert [str(v.type) for v in next(given.nodes()).outputs] == [
        "float64[2, 2]", "float64[2, 2]", "float64[2, 1]",
    ]  # fmt: skip
    assert str(parse(str(given))) == str(given)
    for mine, its in zip(run(given, *inputs()), by_hand(*inputs()), strict=True):
        assert wengert.equal(mine, its)


def test_types_of_chunks_of_unknown_sizes():
    given = typed("""
        graph(%x : float32[*, 4], %y : float32):
          %0, %1 = prim::ConstantChunk[chunks=2, dim=0](%x)
          %2, %3 = prim::ConstantChunk[chunks=2, dim=-1](%x)
          %4, %5 = prim::ConstantChunk[chunks=2, dim=0](%y)
          return (%0, %3, %5)
    """)
    assert [str(v.type) for v in given.outputs] == ["float32[*, 4]", "float32[*, 2]", "float32"]


def test_too_few_chunks():
    given = graph("""
        graph(%x : Tensor):
          %0, %1, %2 = prim::ConstantChunk[chunks=3, dim=0](%x)
          return (%2)
    """)
    assert run(given, wengert.arange(5))[0].tolist() == [4]
    with pytest.raises(RuntimeError, match="expected 3 chunks along dimension 0, got 2"):
        run(given, wengert.arange(4))


def test_chunks_need_their_attributes():
    with pytest.raises(GraphError, match="attribute 'dim' is missing"):
        graph("""
            graph(%x : Tensor):
              %0, %1 = prim::ConstantChunk[chunks=2](%x)
              return (%1)
        """).lint()


@pytest.mark.parametrize("given", [(0, 1), (0,), (1,)])
def test_gradients_of_chunks(given):
    assert is_differentiable(typed(CHUNKS))
    x, w = [t.requires_grad_() for t in inputs()]
    outputs = by_hand(x, w)
    cotangents = [wengert.ones_like(y) * 3 if i in given else None for i, y in enumerate(outputs)]
    want = wengert.autograd.grad(
        [outputs[i] for i in given], (x, w), [cotangents[i] for i in given], allow_unused=True
    )
    gradient = differentiate(typed(CHUNKS))
    with wengert.no_grad():
        _, got = run_gradient(gradient, [x, w], cotangents)
    for mine, its in zip(got, want, strict=True):
        assert (mine is None) == (its is None)
        assert mine is None or wengert.equal(mine, its)


def test_second_derivatives_of_chunks():
    def second(function):
        x, w = [t.requires_grad_() for t in inputs()]
        y, z = function(x, w)
        first = wengert.autograd.grad(y.sum() + (z * z).sum(), (x, w), create_graph=True)
        return wengert.autograd.grad([(g * g).sum() for g in first], (x, w))

    for mine, its in zip(second(Executable(typed(CHUNKS))), second(by_hand), strict=True):
        assert wengert.allclose(mine, its)


def test_an_output_that_was_seen_without_grad_gets_no_gradient():
    text = """
        graph(%x : Tensor, %y : Tensor):
          %0 : Tensor = wengert::exp(%x)
          %1 : Tensor = prim::profile(%0)
          %2 : Tensor = wengert::sin(%y)
          %3 : Tensor = prim::profile(%2)
          return (%1, %3)
    """
    given = graph(text)
    x, y = wengert.ones(2, requires_grad=True), wengert.ones(2)
    run(given, x, y)
    for value in given.inputs:
        value.type = parse("graph(%x : float32[2; grad]):\n  return (%x)").inputs[0].type
    assert differentiate(given.copy()).df_input_vjps[:1] == [0]
    assert 1 not in differentiate(given.copy()).df_input_vjps
    run(given, x, y.clone().requires_grad_())  # seen both ways
    assert differentiate(given.copy()).df_input_vjps[:2] == [0, 1]


def test_a_declared_output_is_believed():
    given = graph("""
        graph(%x : float32[2; grad]):
          %0 : float32[2] = wengert::exp(%x)
          %1 : float32[2; grad] = prim::profile[profiled_type=type(float32[2; no_grad])](%0)
          return (%1)
    """)
    assert differentiate(given).df_input_vjps[:1] == [0]


def test_profiles_of_values_that_are_no_tensors():
    given = passes.insert_profiles(
        graph("""
        graph(%x : float32[2, 3; grad], %n : Optional(int), %d : Any):
          %0 : float32[2, 3] = wengert::mul(%x, %n)
          %1 : List(int) = prim::size(%0)
          return (%0, %1, %d)
    """)
    )
    kinds = [node.kind for node in given.nodes()]
    assert (kinds.count("prim::profile"), kinds.count("prim::profile_ivalue")) == (2, 3)
    given.lint()
    profiles = [node for node in given.nodes() if node.kind == "prim::profile_ivalue"]
    assert all(is_differentiable(node) for node in profiles)
    for number, other in ((2, 1.5), (3, None)):
        assert run(given, wengert.ones(2, 3), number, other)[1:] == ((2, 3), other)
    passes.remove_profiles(given)
    assert [str(value.type) for value in given.inputs] == [
        "float32[2, 3; no_grad]", "int", "Optional(float)",
    ]  # fmt: skip
    assert "profile" not in str(given)
