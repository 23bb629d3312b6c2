"""Dead code."""

from compiler.support import assert_becomes, assert_unchanged, graph
from wengert.compiler.passes import eliminate_dead_code as dce
from wengert.compiler.passes.dce import remove_dead_nodes


def test_unused_nodes_go():
    assert_becomes(
        dce,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0 = wengert::mul(%x, %y)
          %1 = wengert::exp(%0)
          %2 = wengert::sin(%1)
          %3 = wengert::neg(%0)
          return (%3)
        """,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0 = wengert::mul(%x, %y)
          %1 = wengert::neg(%0)
          return (%1)
        """,
    )


def test_effects_stay():
    assert_unchanged(
        dce,
        """
        graph(%x : float32[2]):
          %0 = wengert::add_(%x, 1)
          return (%x)
        """,
    )


def test_one_used_output_keeps_the_node():
    assert_unchanged(
        dce,
        """
        graph(%x : float32[2, 3]):
          %0, %1 = wengert::max.dim(%x, 0)
          return (%1)
        """,
    )


def test_results_of_blocks_that_nobody_takes_go():
    assert_becomes(
        dce,
        """
        graph(%x : float32[2], %y : float32[2], %g : float32[2]):
          %0 = wengert::exp(%y)
          %1, %2 = prim::GradOf[name="wengert::mul"](%g)
            block():
              %3 = wengert::mul(%g, %0)
              %4 = wengert::mul(%g, %x)
              return (%3, %4)
          return (%2)
        """,
        """
        graph(%x : float32[2], %y : float32[2], %g : float32[2]):
          %0 = prim::GradOf[name="wengert::mul"](%g)
            block():
              %1 = wengert::mul(%g, %x)
              return (%1)
          return (%0)
        """,
    )


def test_both_branches_are_trimmed():
    assert_becomes(
        dce,
        """
        graph(%p : bool[], %x : float32[2], %y : float32[2], %z : float32[2]):
          %0, %1 = prim::cond(%p, %x, %y, %z)
            block(%a : float32[2], %b : float32[2], %c : float32[2]):
              %2 = wengert::mul(%a, %b)
              return (%2, %c)
            block(%d : float32[2], %e : float32[2], %f : float32[2]):
              %3 = wengert::neg(%f)
              return (%d, %3)
          return (%0)
        """,
        """
        graph(%p : bool[], %x : float32[2], %y : float32[2], %z : float32[2]):
          %0 = prim::cond(%p, %x, %y)
            block(%a : float32[2], %b : float32[2]):
              %1 = wengert::mul(%a, %b)
              return (%1)
            block(%d : float32[2], %e : float32[2]):
              return (%d)
          return (%0)
        """,
    )


def test_carried_values_of_a_scan_stay():
    assert_becomes(
        dce,
        """
        graph(%h : float32[2], %xs : float32[3, 2]):
          %0, %1 = prim::scan[carried=1, mapped=1, reverse=False](%h, %xs)
            block(%a : float32[2], %b : float32[2]):
              %2 = wengert::add(%a, %b)
              %3 = wengert::exp(%a)
              return (%2, %3)
          return (%0)
        """,
        """
        graph(%h : float32[2], %xs : float32[3, 2]):
          %0 = prim::scan[carried=1, mapped=1, reverse=False](%h, %xs)
            block(%a : float32[2], %b : float32[2]):
              %1 = wengert::add(%a, %b)
              return (%1)
          return (%0)
        """,
    )


def test_removed_values_are_reported():
    given = graph("""
        graph(%x : float32[2], %g : float32[2]):
          %0 = wengert::neg(%x)
          %1, %2 = prim::GradOf[name="f"](%g)
            block():
              %3 = wengert::mul(%g, %0)
              return (%3, %g)
          return (%2)
    """)
    expected = {given.value("0"), given.value("1"), given.value("3")}
    removed = set()
    remove_dead_nodes(given.block, removed.add)
    assert removed == expected
