"""Rematerialisation: what is computed again, at what cost, and that nothing else changes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from compiler.support import equal, graph, inputs_for, programs, run_gradient
from wengert.compiler import differentiate, run
from wengert.compiler.ir import primitives
from wengert.compiler.passes import Policy
from wengert.compiler.passes.rematerialize import choose
from width import tries


def kinds(given):
    return [node.kind.partition("::")[2] for node in given.all_nodes()]


CHAIN = """
    graph(%x : float32[1000; grad]):
      %0 : float32[1000] = wengert::exp(%x)
      %1 : float32[1000] = wengert::sin(%0)
      %2 : float32[1000] = wengert::square(%1)
      %3 : float32[] = wengert::sum(%2)
      return (%3)
"""


def test_a_cheap_chain_is_computed_again_from_its_input():
    plain = differentiate(graph(CHAIN))
    assert plain.saved_bytes == 8000
    again = differentiate(graph(CHAIN), recompute=Policy())
    assert again.saved_bytes == 0
    assert again.df_input_captured_inputs == [0]
    assert kinds(again.f) == ["exp", "sin", "square", "sum"]
    # Each value is computed again right before its first use.
    assert kinds(again.df) == [
        "GradOf", "expand", "exp", "sin", "GradOf", "pow", "mul", "mul", "GradOf", "cos", "mul",
        "GradOf", "mul",
    ]  # fmt: skip


def test_expensive_enough_is_kept():
    policy = Policy(prices={"wengert::exp": 1.5})
    gradient = differentiate(graph(CHAIN), recompute=policy)
    assert gradient.saved_bytes == 4000
    assert "exp" not in kinds(gradient.df) and "sin" in kinds(gradient.df)


LAYERS = """
    graph(%x : float32[64, 32; no_grad], %w : float32[32, 32; grad], %b : float32[32; grad],
          %v : float32[32, 32; grad]):
      %0 : float32[64, 32] = wengert::mm(%x, %w)
      %1 : float32[64, 32] = wengert::add(%0, %b)
      %2 : float32[64, 32] = wengert::tanh(%1)
      %3 : float32[64, 32] = wengert::mul(%2, %2)
      %4 : float32[64, 32] = wengert::mm(%3, %v)
      %5 : float32[64, 32] = wengert::sigmoid(%4)
      %6 : float32[] = wengert::sum(%5)
      return (%6)
"""


def test_products_are_not_computed_again():
    plain = differentiate(graph(LAYERS))
    gradient = differentiate(graph(LAYERS), recompute=Policy())
    size = 64 * 32 * 4
    assert plain.saved_bytes == 3 * size
    assert gradient.saved_bytes == 2 * size
    assert not {"mm", "addmm"} & set(kinds(gradient.df))


def test_products_are_computed_again_if_told_to():
    policy = Policy(products=True, prices={"wengert::mm": 0.2})
    gradient = differentiate(graph(LAYERS), recompute=policy)
    assert gradient.saved_bytes == 0
    assert kinds(gradient.df).count("mm") == 2


def test_random_numbers_are_drawn_once():
    kind = primitives.Primitive(
        "prim::draw", "draw(int[] size) -> Tensor", wengert.rand, effects=True
    )
    primitives.register_primitive(kind)
    try:
        gradient = differentiate(
            graph("""
            graph(%x : float32[1000; grad]):
              %0 : float32[1000; no_grad] = prim::draw([1000])
              %1 : bool[1000; no_grad] = wengert::gt(%0, 0.5)
              %2 : float32[1000] = wengert::where(%1, %x, 0)
              %3 : float32[] = wengert::sum(%2)
              return (%3)
            """),
            recompute=Policy(),
        )
        assert "draw" not in kinds(gradient.df)
    finally:
        del primitives.PRIMITIVES["prim::draw"]


def test_outputs_and_inputs_are_free():
    gradient = differentiate(
        graph("""
        graph(%x : float32[1000; grad]):
          %0 : float32[1000] = wengert::exp(%x)
          %1 : float32[1000] = wengert::sin(%0)
          return (%1, %0)
        """),
        recompute=Policy(),
    )
    assert gradient.saved_bytes == 0
    assert kinds(gradient.df).count("exp") == 0


def test_unknown_sizes_are_kept():
    text = CHAIN.replace("[1000; grad]", "[...; grad]").replace("[1000]", "")
    plain, again = differentiate(graph(text)), differentiate(graph(text), recompute=Policy())
    assert kinds(plain.f) == kinds(again.f) and kinds(plain.df) == kinds(again.df)


@pytest.mark.wide
@settings(deadline=None, max_examples=tries(100))
@given(programs(grad=True), st.sampled_from([Policy(), Policy(prices={"wengert::mul": None})]))
def test_gradients_stay_the_same(given, policy):
    inputs = [x.detach() for x in inputs_for(given)]
    vjps = [wengert.ones_like(o) for o in run(given, *inputs)]
    want = run_gradient(differentiate(given.copy()), inputs, vjps)[1]
    gradient = differentiate(given, recompute=policy)
    gradient.f.lint()
    gradient.df.lint()
    got = run_gradient(gradient, inputs, vjps)[1]
    assert all(map(equal, got, want))


def test_second_derivatives_through_what_is_computed_again():
    text = """
        graph(%x : float64[3; grad]):
          %0 : float64[3] = wengert::exp(%x)
          %1 : float64[3] = wengert::sin(%0)
          return (%1)
    """
    first = differentiate(graph(text), recompute=Policy())
    assert first.df_input_vjps == [0]
    second = differentiate(first.df.copy())
    x = wengert.tensor([0.1, 0.2, 0.3], dtype=wengert.float64, requires_grad=True)
    g = wengert.ones(3, dtype=wengert.float64)
    (grad,) = wengert.autograd.grad(x.exp().sin(), x, g, create_graph=True)
    (want,) = wengert.autograd.grad(grad, x, g)
    given = first.df_inputs([x.detach()], run(first.f, x.detach()), [g])
    _, got = run_gradient(second, given, [g])
    np.testing.assert_allclose(got[1].numpy(), want.numpy())


# The choice is the cheapest one -------------------------------------------------------------------

PRICES = {"wengert::exp": 0.5, "wengert::sin": 0.1, "wengert::mul": 0.3, "wengert::add": None}


@st.composite
def costs(draw):
    """A small forward graph of vectors of several sizes, and a reverse that needs some of them."""
    given = graph("graph(%x : float32[4], %y : float32[1]):\n  return ()")
    known = list(given.inputs)
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(sorted(PRICES)))
        operands = [draw(st.sampled_from(known))]
        if kind in ("wengert::mul", "wengert::add"):
            operands.append(draw(st.sampled_from(known)))
        new = given.insert(kind, *operands)
        new.type = type(known[0].type)(wengert.float32, (draw(st.integers(1, 5)),))
        known.append(new)
    given.register_output(draw(st.sampled_from(known)))
    holder = given.create("prim::Reverse", (), ())
    reverse = holder.add_block()
    for value in draw(st.lists(st.sampled_from(known), min_size=1, max_size=4)):
        given.create("wengert::neg", [value]).insert_before(reverse.return_node)
    return given, reverse


def cost_of(given, reverse, again):
    """The cost of computing some nodes again and keeping what is then missing; None: impossible."""
    total = 0.0
    needed = {value for node in reverse.nodes() for value in node.inputs}
    for node in reversed(list(given.nodes())):
        if node in again:
            price = PRICES[node.kind]
            if price is None:
                return None
            total += price * node.output.type.nbytes
            needed.discard(node.output)
            needed.update(node.inputs)
    free = {*given.inputs, *given.outputs}
    return total + sum(value.type.nbytes for value in needed if value not in free)


@pytest.mark.wide
@settings(deadline=None, max_examples=tries(150))
@given(costs())
def test_the_choice_is_the_cheapest(case):
    given, reverse = case
    nodes = list(given.nodes())
    chosen = choose(given.block, reverse, Policy(prices=PRICES))
    all_costs = [
        cost_of(given, reverse, set(subset))
        for count in range(len(nodes) + 1)
        for subset in itertools.combinations(nodes, count)
    ]
    best = min(cost for cost in all_costs if cost is not None)
    got = cost_of(given, reverse, set(chosen))
    assert got is not None
    np.testing.assert_allclose(got, best, rtol=1e-6)
