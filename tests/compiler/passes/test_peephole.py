"""Peephole rewrites: what is left out, and what only looks as if it could be."""

import pytest

import wengert
from compiler.support import assert_becomes, assert_unchanged, graph
from wengert.compiler import run
from wengert.compiler.passes import eliminate_dead_code, peephole


def rewrite(graph):
    return eliminate_dead_code(peephole(graph))


def program(type, *lines):
    """A graph whose last line's result is %r, used once more, so that it does not leave."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"graph(%x : {type}):\n{body}  %out = wengert::exp(%r)\n  return (%out)\n"


def becomes_the_input(type, *lines):
    direct = f"graph(%x : {type}):\n  %out = wengert::exp(%x)\n  return (%out)\n"
    assert_becomes(rewrite, program(type, *lines), direct)


@pytest.mark.parametrize(
    "call",
    [
        "mul(%x, 1)", "mul(%x, 1.0)", "mul(1, %x)", "div(%x, 1)", "pow(%x, 1)", "add(%x, 0)",
        "add(0.0, %x)", "sub(%x, 0)", "add(%x, 0, alpha=3)", "transpose(%x, 1, 1)",
        "transpose(%x, -1, 1)", "permute(%x, [0, -1])", "view(%x, [2, 3])", "view(%x, [-1, 3])",
        "expand(%x, [2, 3])", "expand(%x, [-1, 3])", "_to_copy(%x, float32)",
    ],
)  # fmt: skip
def test_nothing_is_done(call):
    becomes_the_input("float32[2, 3]", f"%r = wengert::{call}")


@pytest.mark.parametrize(
    "call",
    [
        "mul(%x, 2)", "div(1, %x)", "sub(0, %x)", "add(%x, 1)", "pow(1, %x)",
        "mul(%x, complex(1.0, 0.0))", "add(0, %x, alpha=2)",
        "transpose(%x, 0, 1)", "permute(%x, [1, 0])", "view(%x, [3, 2])", "expand(%x, [4, 2, 3])",
        "_to_copy(%x, float64)", "neg(%x)",
    ],
)  # fmt: skip
def test_something_is_done(call):
    assert_unchanged(rewrite, program("float32[2, 3]", f"%r = wengert::{call}"))


def test_numbers_may_change_the_dtype():
    assert_unchanged(rewrite, program("int64[2]", "%r = wengert::mul(%x, 1.0)"))
    assert_unchanged(rewrite, program("int64[2]", "%r = wengert::div(%x, 1)"))
    becomes_the_input("int64[2]", "%r = wengert::mul(%x, 1)")


def test_constants_count_as_numbers():
    one = "prim::Constant[value=tensor(float32[], [1.0])]()"
    becomes_the_input("float32[2]", f"%c = {one}", "%r = wengert::mul(%x, %c)")
    becomes_the_input(
        "float32[2]", "%c = prim::full([2], 0, float32)", "%r = wengert::add(%c, %x)"
    )
    # Broadcasting is not nothing.
    assert_unchanged(
        rewrite,
        program("float32[2]", "%c = prim::full([3, 2], 0, float32)", "%r = wengert::add(%c, %x)"),
    )


@pytest.mark.parametrize("kind", ["neg", "t", "bitwise_not", "logical_not", "_conj"])
def test_twice_is_nothing(kind):
    type = {"_conj": "complex64", "bitwise_not": "int64", "logical_not": "bool"}.get(
        kind, "float32"
    )
    becomes_the_input(
        f"{type}[2, 3]", f"%0 = wengert::{kind}(%x)", f"%r = wengert::{kind}(%0)"
    )


def test_twice_is_something_if_the_first_changed_the_type():
    assert_unchanged(
        rewrite,
        program("float32[2]", "%0 = wengert::logical_not(%x)", "%r = wengert::logical_not(%0)"),
    )


def test_transposes():
    becomes_the_input(
        "float32[2, 3, 4]",
        "%0 = wengert::transpose(%x, 0, 2)",
        "%r = wengert::transpose(%0, -1, 0)",
    )
    becomes_the_input(
        "float32[2, 3, 4]",
        "%0 = wengert::permute(%x, [2, 0, 1])",
        "%r = wengert::permute(%0, [1, 2, 0])",
    )
    assert_becomes(
        rewrite,
        program(
            "float32[2, 3, 4]",
            "%0 = wengert::permute(%x, [2, 0, 1])",
            "%r = wengert::permute(%0, [2, 0, 1])",
        ),
        program("float32[2, 3, 4]", "%r = wengert::permute(%x, [1, 2, 0])"),
    )
    assert_unchanged(
        rewrite,
        program(
            "float32[2, 3, 4]",
            "%0 = wengert::transpose(%x, 0, 1)",
            "%r = wengert::transpose(%0, 1, 2)",
        ),
    )


def test_views_of_views():
    assert_becomes(
        rewrite,
        program("float32[2, 3]", "%0 = wengert::view(%x, [6])", "%r = wengert::view(%0, [3, 2])"),
        program("float32[2, 3]", "%r = wengert::view(%x, [3, 2])"),
    )


@pytest.mark.parametrize(
    "first, between, last, result",
    [
        ("float32", "float64", "float32", None),
        ("float16", "float32", "float64", "float64"),
        ("bfloat16", "float32", "bfloat16", None),
        ("int32", "float64", "int32", None),
        ("float32", "complex64", "float32", None),
        ("bool", "uint8", "bool", None),
    ],
)
def test_casts_without_loss(first, between, last, result):
    lines = [f"%0 = wengert::_to_copy(%x, {between})", f"%r = wengert::_to_copy(%0, {last})"]
    if result is None:
        becomes_the_input(f"{first}[2]", *lines)
    else:
        assert_becomes(
            rewrite,
            program(f"{first}[2]", *lines),
            program(f"{first}[2]", f"%r = wengert::_to_copy(%x, {result})"),
        )


@pytest.mark.parametrize(
    "first, between, last",
    [
        ("float64", "float32", "float64"),
        ("int64", "float32", "int64"),
        ("float16", "bfloat16", "float16"),
        ("float32", "int32", "float32"),
        ("complex64", "float32", "complex64"),
        ("int64", "bool", "int64"),
    ],
)
def test_casts_with_loss_stay(first, between, last):
    assert_unchanged(
        rewrite,
        program(
            f"{first}[2]",
            f"%0 = wengert::_to_copy(%x, {between})",
            f"%r = wengert::_to_copy(%0, {last})",
        ),
    )


def test_results_keep_their_own_memory():
    assert_unchanged(
        rewrite,
        """
        graph(%x : float32[2]):
          %0 = wengert::mul(%x, 1)
          return (%0)
        """,
    )
    assert_unchanged(
        rewrite,
        """
        graph(%x : float32[2]):
          %0 = wengert::exp(%x)
          %1 = wengert::add(%0, 0)
          return (%0, %1)
        """,
    )
    # A view shares it anyway.
    assert_becomes(
        rewrite,
        """
        graph(%x : float32[2, 3]):
          %0 = wengert::t(%x)
          %1 = wengert::t(%0)
          return (%1)
        """,
        "graph(%x : float32[2, 3]):\n  return (%x)",
    )
    # A temporary's memory is free to be a result's.
    assert_becomes(
        rewrite,
        """
        graph(%x : float32[2]):
          %0 = wengert::exp(%x)
          %1 = wengert::add(%0, 0)
          return (%1)
        """,
        """
        graph(%x : float32[2]):
          %0 = wengert::exp(%x)
          return (%0)
        """,
    )


def test_results_whose_elements_share_memory_are_not_made():
    """The caller may write into what `expand(%0) * 1` returns, but not into the expanded value."""
    text = """
        graph(%x : float32[2]):
          %0 : float32[2] = wengert::exp(%x)
          %1 : float32[3, 2] = wengert::expand(%0, [3, 2])
          %2 : float32[3, 2] = wengert::mul(%1, 1)
          return (%2)
    """
    (out,) = run(peephole(graph(text)), wengert.ones(2))
    out[0] = 0
    assert out[1].all()
    used = text.replace("return (%2)", "%3 : float32[3, 2] = wengert::neg(%2)\n  return (%3)")
    assert "mul" not in str(rewrite(graph(used)))


def test_what_is_written_in_place_is_left_alone():
    assert_unchanged(
        rewrite,
        """
        graph(%x : float32[2]):
          %0 = wengert::mul(%x, 1)
          %1 = wengert::add_(%0, 1)
          %2 = wengert::mul(%x, %1)
          return (%2)
        """,
    )


def test_sums_to_sizes():
    assert_becomes(
        rewrite,
        """
        graph(%g : float32[4, 2, 3]):
          %0 = prim::_grad_sum_to_size(%g, [2, 3])
          %1 = prim::_grad_sum_to_size(%0, [3])
          %2 = prim::_grad_sum_to_size(%1, None)
          %3 = prim::_grad_sum_to_size(%2, [3])
          %4 = wengert::exp(%3)
          return (%4)
        """,
        """
        graph(%g : float32[4, 2, 3]):
          %0 = prim::_grad_sum_to_size(%g, [3])
          %1 = wengert::exp(%0)
          return (%1)
        """,
    )


def test_rewrites_reach_inner_blocks_and_chain():
    assert_becomes(
        rewrite,
        """
        graph(%x : float32[2], %g : float32[2]):
          %0 = prim::GradOf[name="f"](%g)
            block():
              %1 = wengert::neg(%g)
              %2 = wengert::mul(%1, 1)
              %3 = wengert::neg(%2)
              %4 = wengert::mul(%3, %x)
              return (%4)
          return (%0)
        """,
        """
        graph(%x : float32[2], %g : float32[2]):
          %0 = prim::GradOf[name="f"](%g)
            block():
              %1 = wengert::mul(%g, %x)
              return (%1)
          return (%0)
        """,
    )
