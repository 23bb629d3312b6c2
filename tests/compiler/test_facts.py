"""What declarations say for the compiler: it is true of the operators, and passes go by it."""

import pytest

import wengert
from wengert.compiler import parse
from wengert.compiler.passes import Policy, canonicalize, peephole
from wengert.compiler.passes.raising import may_raise
from wengert.core.registry import declared_operators, operators
from wengert.operators.declare import elementwise, nondifferentiable


def with_fact(name):
    return sorted(
        key
        for key, operator in operators().items()
        if getattr(operator, "facts", {}).get(name) and not operator.mutates
    )


def operands(name, count):
    if name.startswith("bitwise") or name in ("gcd", "lcm"):
        values = [wengert.tensor([-3, 0, 5, 7]), wengert.tensor([2, 1, -5, 7])]
    elif name.startswith("logical"):
        values = [wengert.tensor([True, False, True]), wengert.tensor([True, True, False])]
    else:
        values = [wengert.tensor([-3.0, 0.5, 2.0, 7.0]), wengert.tensor([2.0, 0.5, -5.0, 7.0])]
    return values[:count]


@pytest.mark.parametrize("name", with_fact("commutes"))
def test_operands_change_places(name):
    x, y = operands(name, 2)
    operator = operators()[name]
    assert operator(x, y).tolist() == operator(y, x).tolist()


@pytest.mark.parametrize("name", with_fact("neutral"))
def test_neutral_numbers_change_nothing(name):
    operator = operators()[name]
    number, *positions = operator.facts["neutral"]
    (x,) = operands(name, 1)
    for position in positions:
        given = [x, x]
        given[position] = wengert.full_like(x, number)
        assert operator(*given).tolist() == x.tolist()


@pytest.mark.parametrize("name", with_fact("involution"))
def test_involutions_undo_themselves(name):
    (x,) = operands(name, 1)
    if name == "t":
        x = x.reshape(2, 2)
    if "conj" in name:
        x = wengert.complex(x, x + 1)
    operator = operators()[name]
    assert wengert.equal(operator(operator(x)), x)


def test_only_views_overlap():
    assert with_fact("overlaps") == ["_as_strided", "expand", "unfold"]
    assert all(operators()[name].is_view for name in with_fact("overlaps"))


def test_words():
    assert {operators()[name].facts["raises"] for name in with_fact("raises")} == {
        "values",
        "integers",
    }
    assert {operators()[name].facts["cost"] for name in with_fact("cost")} == {"product", "slow"}


@pytest.fixture
def declare():
    """Declares an operator for one test."""
    names = []

    def declare(family, name, *rest, **facts):
        names.append(name)
        return family(f"{name}(Tensor self, Tensor other) -> Tensor", *rest, **facts)

    yield declare
    for name in names:
        declared_operators().pop(name, None)


def graph_of(name):
    return parse(f"""
        graph(%x : float32[2], %y : float32[2]):
          %0 : float32[2] = wengert::{name}(%y, %x)
          %1 : float32[2] = wengert::{name}(%0, 3)
          return (%1)
    """)


def test_passes_read_the_declaration(declare):
    declare(
        elementwise, "_told", lambda xp, x, y: x * y / 3, inplace=False,
        commutes=True, neutral=(3, 0, 1), cost="slow", raises="values",
    )  # fmt: skip
    graph = graph_of("_told")
    node = next(graph.nodes())
    assert node.fact("commutes") and node.fact("involution") is None
    assert may_raise(node) and Policy().price(node) is None
    assert peephole(graph).outputs[0].node is node
    assert canonicalize(graph).inputs == next(graph.nodes()).inputs


def test_without_facts_nothing_is_done(declare):
    declare(elementwise, "_untold", lambda xp, x, y: x * y / 3, inplace=False)
    graph = graph_of("_untold")
    node = next(graph.nodes())
    assert not may_raise(node) and Policy().price(node) is not None
    assert peephole(graph).outputs[0].node is not node
    assert canonicalize(graph).inputs != next(graph.nodes()).inputs


def test_unknown_facts_are_refused(declare):
    with pytest.raises(TypeError, match="_wrong: a declaration has no keyword .*'comutes'"):
        declare(nondifferentiable, "_wrong", "add", batch=None, comutes=True)
    assert "_wrong" not in declared_operators()
