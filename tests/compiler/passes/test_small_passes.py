"""Inlining, zeros, tuples, profiles, requires_grad, canonical form, memory."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from compiler.support import assert_becomes, assert_unchanged, graph, nodes_text, typed
from wengert.compiler import passes, run

# Inlining -----------------------------------------------------------------------------------------


def test_inline():
    assert_becomes(
        passes.inline,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0, %1 = prim::DifferentiableGraph(%x, %y)
            block(%a : float32[2], %b : float32[2]):
              %2 = wengert::mul(%a, %b)
              %3 = prim::DifferentiableGraph(%2)
                block(%c : float32[2]):
                  %4 = wengert::exp(%c)
                  return (%4)
              return (%3, %a)
          %5 = wengert::add(%0, %1)
          return (%5)
        """,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0 = wengert::mul(%x, %y)
          %1 = wengert::exp(%0)
          %2 = wengert::add(%1, %x)
          return (%2)
        """,
    )


# Zeros --------------------------------------------------------------------------------------------

GRADIENTS = """
    graph(%g : float32[2], %h : float32[2], %x : float32[2]):
      %0 = prim::AutogradZero()
      %1 = prim::AutogradAdd(%g, %0)
      %2 = prim::GradOf[name="a"](%1)
        block():
          %3 = wengert::mul(%1, %x)
          return (%3)
      %4 = prim::GradOf[name="b"](%h, %0)
        block():
          %5 = prim::GradOrZero(%h, [2], float32)
          %6 = prim::GradOrZero(%0, [2], float32)
          %7 = wengert::stack([%5, %6], 0)
          %8 = wengert::sum.dim_IntList(%7, [0])
          return (%8)
      %9 = prim::AutogradAdd(%2, %4)
      return (%9, %4)
"""


def zeros(*undefined):
    return lambda given: passes.eliminate_dead_code(passes.specialize_zeros(given, undefined))


def test_defined_gradients():
    assert_becomes(
        zeros(),
        GRADIENTS,
        """
        graph(%g : float32[2], %h : float32[2], %x : float32[2]):
          %0 = wengert::mul(%g, %x)
          %1 = prim::full([2], 0, float32)
          %2 = wengert::stack([%h, %1], 0)
          %3 = wengert::sum.dim_IntList(%2, [0])
          %4 = wengert::add(%0, %3)
          return (%4, %3)
        """,
    )


def test_one_undefined_gradient():
    assert_becomes(
        zeros(1),
        GRADIENTS,
        """
        graph(%g : float32[2], %h : float32[2], %x : float32[2]):
          %0 = wengert::mul(%g, %x)
          %1 = prim::AutogradZero()
          return (%0, %1)
        """,
    )


def test_all_undefined_gradients():
    result = zeros(0, 1)(typed(GRADIENTS))
    assert {node.kind for node in result.nodes()} == {"prim::AutogradZero"}
    assert run(result, None, None, wengert.ones(2)) == (None, None)


@pytest.mark.parametrize("undefined", [(), (0,), (1,), (0, 1)])
def test_specialisation_keeps_the_values(undefined):
    inputs = [wengert.ones(2) * (i + 2.0) for i in range(3)]
    for i in undefined:
        inputs[i] = None
    before = run(graph(GRADIENTS), *inputs)
    after = run(passes.specialize_zeros(graph(GRADIENTS), undefined), *inputs)
    assert [None if v is None else v.tolist() for v in before] == [
        None if v is None else v.tolist() for v in after
    ]


# Tuples -------------------------------------------------------------------------------------------


def test_tuples_vanish():
    assert_becomes(
        passes.lower_tuples,
        """
        graph(%x : float32[2], %y : float32[3]):
          %0 : Any = prim::TupleConstruct(%x, %y)
          %1, %2 = prim::TupleUnpack(%0)
          %3 : Any = prim::ListConstruct(%2)
          %4 = prim::ListUnpack(%3)
          %5 : Any = prim::TupleConstruct(%1, %4)
          return (%5)
        """,
        """
        graph(%x : float32[2], %y : float32[3]):
          %0 : Any = prim::TupleConstruct(%x, %y)
          return (%0)
        """,
    )


def test_outputs_are_packed():
    packed = passes.pack_outputs(graph("graph(%x : int64[2], %n : int):\n  return (%x, %n)"))
    assert str(packed.outputs[0].type) == "Tuple(int64[2], int)"
    x = wengert.tensor([1, 2])
    assert run(packed, x, 3) == ((x, 3),)


# Profiles -----------------------------------------------------------------------------------------


def test_profiling_gives_types():
    text = """
        graph(%x : Tensor, %m : Tensor):
          %0 : Tensor = wengert::masked_select(%x, %m)
          %1 : Tensor = wengert::exp(%0)
          return (%1)
    """
    given = passes.insert_profiles(graph(text))
    assert [n.kind for n in given.nodes()].count("prim::profile") == 4
    x = wengert.tensor([1.0, 2.0, 3.0], requires_grad=True)
    run(given, x, x > 1)
    run(given, x, x > 2)
    passes.remove_profiles(given)
    assert str(given) == (
        "graph(%x : float32[3; grad], %m : bool[3; no_grad]):\n"
        "  %0 : float32[*; grad] = wengert::masked_select(%x, %m)\n"
        "  %1 : float32[*; grad] = wengert::exp(%0)\n"
        "  return (%1)\n"
    )


# requires_grad ------------------------------------------------------------------------------------


def test_requires_grad_propagates():
    given = passes.propagate_requires_grad(
        typed("""
        graph(%x : float32[2, 3; grad], %y : float32[2, 3; no_grad], %z : float32[2, 3]):
          %0 = wengert::mul(%x, %y)
          %1 = wengert::exp(%y)
          %2, %3 = wengert::max.dim(%x, 0)
          %4 = wengert::gt(%x, 0)
          %5 = wengert::where(%4, %y, 1)
          %6 = prim::full([2], 1, float32)
          %7 = wengert::add(%z, %1)
          %8 = prim::GradOf[name="f"](%y)
            block():
              %9 = wengert::mul(%x, %y)
              return (%9)
          return (%0, %1, %2, %3, %4, %5, %6, %7, %8)
        """)
    )
    assert [v.type.requires_grad for v in given.outputs] == [
        True, False, True, False, False, False, False, True, True,
    ]  # fmt: skip


def test_requires_grad_goes_around_loops():
    given = passes.propagate_requires_grad(
        typed("""
        graph(%a : float32[2; no_grad], %b : float32[2; grad], %xs : float32[3, 2; no_grad]):
          %0, %1, %2 = prim::scan[carried=2, mapped=1, reverse=False](%a, %b, %xs)
            block(%c, %d, %x):
              %3 = wengert::mul(%d, 2)
              %4 = wengert::mul(%d, 3)
              %5 = wengert::mul(%x, 2)
              return (%3, %4, %5)
          %6, %7 = prim::while(%a, %b)
            block(%e, %f):
              %8 = wengert::sum(%e)
              return (%8)
            block(%g, %h):
              return (%h, %g)
          %9 = prim::cond(%a, %a, %b)
            block(%i, %j):
              return (%i)
            block(%k, %l):
              return (%l)
          return (%0, %1, %2, %6, %7, %9)
        """)
    )
    assert [v.type.requires_grad for v in given.outputs] == [True, True, False, True, True, True]
    passes.clear_requires_grad(given)
    assert "; grad" not in str(given)


# Canonical form -----------------------------------------------------------------------------------

ORDERED = """
    graph(%0 : float32[2], %1 : float32[2]):
      %2 = wengert::exp(%0)
      %3 = wengert::mul(%0, %1)
      %4 = wengert::sin(%1)
      %5 = wengert::add(%2, %3)
      %6 = wengert::sub(%5, %4)
      return (%6)
"""


def test_a_canonical_graph_stays():
    once = nodes_text(passes.canonicalize(typed(ORDERED)))
    assert once == nodes_text(passes.canonicalize(passes.canonicalize(typed(ORDERED))))


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_any_order_and_any_names_give_one_text(seed):
    want = nodes_text(passes.canonicalize(typed(ORDERED)))
    shuffled = typed(ORDERED)
    rng = random.Random(seed)
    nodes = list(shuffled.nodes())
    rng.shuffle(nodes)
    for node in nodes:
        node.move_before(shuffled.block.return_node)
        for value in node.outputs:
            value.name = rng.choice([None, "a", "b"])
        if node.kind in ("wengert::add", "wengert::mul") and rng.random() < 0.5:
            a, b = node.inputs
            node.replace_input(0, b)
            node.replace_input(1, a)
    shuffled.block.sort()
    shuffled.lint()
    assert nodes_text(passes.canonicalize(shuffled)) == want


def test_effects_keep_their_order():
    assert_unchanged(
        passes.canonicalize,
        """
        graph(%0 : float32[2], %1 : float32[2]):
          %2 = wengert::sin(%1)
          %3 = wengert::add_(%0, 1)
          %4 = wengert::exp(%0)
          %5 = wengert::add_(%0, 2)
          return (%2, %4)
        """,
    )


def test_subtraction_does_not_commute():
    assert_unchanged(
        passes.canonicalize,
        """
        graph(%0 : float32[2], %1 : float32[2]):
          %2 = wengert::sub(%1, %0)
          %3 = wengert::add(%1, %2, alpha=2)
          %4 = wengert::add(%3, %0, alpha=2)
          return (%4)
        """,
    )


# Memory -------------------------------------------------------------------------------------------


def test_liveness():
    report = passes.liveness(
        typed("""
        graph(%x : float32[10], %unused : float32[100]):
          %0 = wengert::exp(%x)
          %1 = wengert::view(%0, [2, 5])
          %2 = wengert::mul(%1, 2)
          %3 = wengert::sum(%2)
          %4 = wengert::sin(%3)
          return (%4)
        """)
    )
    assert [step.allocated for step in report.steps] == [40, 0, 40, 4, 4]
    assert [step.alive for step in report.steps] == [80, 40, 80, 44, 8]
    assert (report.inputs, report.outputs, report.peak, report.total) == (440, 4, 80, 88)
    assert report.unknown == 0
    assert "drops %0 %1" in str(report)


def test_liveness_counts_what_it_does_not_know():
    report = passes.liveness(graph("graph(%x):\n  %0 = wengert::neg(%x)\n  return (%0)"))
    assert report.unknown == 2 and report.peak == 0
