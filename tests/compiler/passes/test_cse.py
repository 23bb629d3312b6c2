"""Common subexpressions."""

from compiler.support import assert_becomes, assert_unchanged
from wengert.compiler.passes import eliminate_common_subexpressions as cse


def test_equal_nodes_are_merged():
    assert_becomes(
        cse,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0 = wengert::mul(%x, %y)
          %1 = wengert::mul(%x, %y)
          %2 = wengert::exp(%0)
          %3 = wengert::exp(%1)
          %4 = wengert::add(%2, %3)
          return (%4)
        """,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0 = wengert::mul(%x, %y)
          %1 = wengert::exp(%0)
          %2 = wengert::add(%1, %1)
          return (%2)
        """,
    )


def test_literals_count():
    assert_unchanged(
        cse,
        """
        graph(%x : float32[2]):
          %0 = wengert::mul(%x, 1)
          %1 = wengert::mul(%x, 1.0)
          %2 = wengert::mul(%x, True)
          %3 = wengert::mul(%x, 0.0)
          %4 = wengert::mul(%x, -0.0)
          %5 = wengert::stack([%0, %1, %2, %3, %4], 0)
          return (%5)
        """,
    )


def test_order_of_operands_counts():
    assert_unchanged(
        cse,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0 = wengert::sub(%x, %y)
          %1 = wengert::sub(%y, %x)
          %2 = wengert::mul(%0, %1)
          return (%2)
        """,
    )


def test_two_results_stay_two():
    """The caller may write into one of them."""
    assert_unchanged(
        cse,
        """
        graph(%x : float32[2]):
          %0 = wengert::exp(%x)
          %1 = wengert::exp(%x)
          return (%0, %1)
        """,
    )


def test_a_result_and_a_view_of_another_stay_two():
    assert_unchanged(
        cse,
        """
        graph(%x : float32[2, 3]):
          %0 = wengert::exp(%x)
          %1 = wengert::t(%0)
          %2 = wengert::exp(%x)
          return (%1, %2)
        """,
    )


def test_a_result_and_a_temporary_are_merged():
    assert_becomes(
        cse,
        """
        graph(%x : float32[2]):
          %0 = wengert::exp(%x)
          %1 = wengert::neg(%0)
          %2 = wengert::exp(%x)
          return (%1, %2)
        """,
        """
        graph(%x : float32[2]):
          %0 = wengert::exp(%x)
          %1 = wengert::neg(%0)
          return (%1, %0)
        """,
    )


def test_inner_blocks_see_outer_nodes_but_not_each_other():
    assert_becomes(
        cse,
        """
        graph(%x : float32[2], %g : float32[2]):
          %0 = wengert::exp(%x)
          %1 = prim::GradOf[name="f"](%g)
            block():
              %2 = wengert::exp(%x)
              %3 = wengert::sin(%x)
              %4 = wengert::mul(%2, %3)
              return (%4)
          %5 = prim::GradOf[name="f"](%g)
            block():
              %6 = wengert::sin(%x)
              return (%6)
          return (%0, %1, %5)
        """,
        """
        graph(%x : float32[2], %g : float32[2]):
          %0 = wengert::exp(%x)
          %1 = prim::GradOf[name="f"](%g)
            block():
              %2 = wengert::sin(%x)
              %3 = wengert::mul(%0, %2)
              return (%3)
          %4 = prim::GradOf[name="f"](%g)
            block():
              %5 = wengert::sin(%x)
              return (%5)
          return (%0, %1, %4)
        """,
    )


def test_all_outputs_are_replaced():
    assert_becomes(
        cse,
        """
        graph(%x : float32[2, 3]):
          %0, %1 = wengert::max.dim(%x, 0)
          %2, %3 = wengert::max.dim(%x, 0)
          %4 = wengert::mul(%0, %3)
          %5 = wengert::mul(%2, %1)
          %6 = wengert::add(%4, %5)
          return (%6)
        """,
        """
        graph(%x : float32[2, 3]):
          %0, %1 = wengert::max.dim(%x, 0)
          %2 = wengert::mul(%0, %1)
          %3 = wengert::add(%2, %2)
          return (%3)
        """,
    )


def test_what_is_written_in_place_is_left_alone():
    assert_unchanged(
        cse,
        """
        graph(%x : float32[2], %y : float32[2]):
          %0 = wengert::exp(%x)
          %1 = wengert::exp(%y)
          %2 = wengert::add_(%x, 1)
          %3 = wengert::exp(%x)
          %4 = wengert::mul(%0, %3)
          %5 = wengert::mul(%1, %4)
          return (%5)
        """,
    )


def test_constants_are_compared_by_value():
    assert_becomes(
        cse,
        """
        graph(%x : float32[2]):
          %0 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %1 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %2 = prim::Constant[value=tensor(float64[2], [1.0, 2.0])]()
          %3 = wengert::mul(%x, %0)
          %4 = wengert::mul(%3, %1)
          %5 = wengert::mul(%4, %2)
          return (%5)
        """,
        """
        graph(%x : float32[2]):
          %0 = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %1 = prim::Constant[value=tensor(float64[2], [1.0, 2.0])]()
          %2 = wengert::mul(%x, %0)
          %3 = wengert::mul(%2, %0)
          %4 = wengert::mul(%3, %1)
          return (%4)
        """,
    )
