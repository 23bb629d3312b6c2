"""Folding and pooling of constants."""

import pytest

import wengert
from compiler.support import assert_becomes, assert_unchanged, graph, typed
from wengert.compiler.passes import eliminate_dead_code, fold_constants, pool_constants
from wengert.compiler.passes.constants import LIMIT


def fold(given):
    return eliminate_dead_code(fold_constants(given))


def test_constants_are_computed():
    assert_becomes(
        fold,
        """
        graph(%x : float32[2]):
          %0 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %1 = wengert::mul(%0, 3)
          %2 = wengert::sum(%1)
          %3 = wengert::mul(%x, %2)
          return (%3)
        """,
        """
        graph(%x : float32[2]):
          %0 = prim::Constant[value=tensor(float32[], [9.0])]()
          %1 = wengert::mul(%x, %0)
          return (%1)
        """,
    )


def test_what_leaves_the_graph_is_made_anew_each_time():
    assert_unchanged(
        fold,
        """
        graph():
          %0 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %1 = wengert::mul(%0, 3)
          %2 = wengert::view(%1, [2, 1])
          return (%2)
        """,
    )


def test_large_results_are_not_stored():
    text = f"""
        graph(%x : float32[]):
          %0 = prim::Constant[value=tensor(float32[], [1.0])]()
          %1 = wengert::expand(%0, [{LIMIT}])
          %2 = wengert::mul(%1, 2)
          %3 = wengert::sum(%2)
          %4 = wengert::mul(%3, %x)
          return (%4)
    """
    assert_unchanged(lambda given: fold_constants(given, limit=1000), text)
    folded = fold(typed(text.replace(str(LIMIT), "10")))
    assert len(list(folded.nodes())) == 2


def test_creation_is_not_folded():
    assert_unchanged(
        fold,
        """
        graph(%x : float32[2]):
          %0 = prim::full([2], 0, float32)
          %1 = wengert::mul(%x, %0)
          return (%1)
        """,
    )


def test_a_known_branch_is_taken():
    text = """
        graph(%x : float32[2]):
          %p = prim::Constant[value={value}]()
          %0 = prim::cond(%p, %x)
            block(%a : float32[2]):
              %1 = wengert::exp(%a)
              return (%1)
            block(%b : float32[2]):
              return (%b)
          return (%0)
    """
    assert_becomes(
        fold,
        text.format(value="True"),
        "graph(%x : float32[2]):\n  %0 = wengert::exp(%x)\n  return (%0)",
    )
    assert_becomes(
        fold,
        text.format(value="tensor(bool[], [False])"),
        "graph(%x : float32[2]):\n  return (%x)",
    )


def test_equal_constants_are_kept_once_at_the_top():
    assert_becomes(
        pool_constants,
        """
        graph(%x : float32[2], %g : float32[2]):
          %0 = wengert::exp(%x)
          %1 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %2 = wengert::mul(%0, %1)
          %3 = prim::GradOf[name="f"](%g)
            block():
              %4 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
              %5 = prim::Constant[value=tensor(float32[2], [1.0, -2.0])]()
              %6 = wengert::mul(%4, %5)
              return (%6)
          return (%2, %3)
        """,
        """
        graph(%x : float32[2], %g : float32[2]):
          %0 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %1 = prim::Constant[value=tensor(float32[2], [1.0, -2.0])]()
          %2 = wengert::exp(%x)
          %3 = wengert::mul(%2, %0)
          %4 = prim::GradOf[name="f"](%g)
            block():
              %5 = wengert::mul(%0, %1)
              return (%5)
          return (%3, %4)
        """,
    )


def test_large_constants_are_compared_by_identity():
    big = wengert.ones(2000)
    given = graph("graph(%x : float32[2000]):\n  return ()")
    x = given.inputs[0]
    a, b, c = given.constant(big), given.constant(big), given.constant(big.clone())
    total = given.insert("wengert::stack", [x, a, b, c])
    given.register_output(total)
    pool_constants(given)
    assert total.node.inputs[1] is total.node.inputs[2] is not total.node.inputs[3]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("factor", [0, 1])
def test_equal_constants_that_lie_otherwise_stay_apart(backend, factor):
    def function():
        numbers = wengert.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]) * factor
        rows = numbers.expand(2, 2, 3).repeat_interleave(2, 0)
        rows.copy_(rows)
        return rows

    compiled = wengert.compile(function, backend=backend, fullgraph=True)
    assert compiled().tolist() == function().tolist()
    assert compiled().stride() == function().stride()
