"""Graphs as text: what is printed reads back as the same graph."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wengert
from wengert.compiler import Graph, ParseError, TensorType, parse, parse_type
from wengert.compiler.ir.literals import literal_key
from wengert.compiler.ir.printer import large_constants
from wengert.compiler.ir.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    ListType,
    OptionalType,
    TupleType,
)
from wengert.core.dtypes import ALL
from width import tries

EXAMPLE = """\
graph(%x : float32[4, 5; grad], %w : float32[5, 3; no_grad], %n : int):
  %0 : float32[4, 3] = wengert::mm(%x, %w)  # model.py:3
  %1 : float32[4, 3] = wengert::mul(%0, 2.0)
  %twice : Tensor[4, *] = wengert::add(%1, %0, alpha=-3)
  %2 : float32[...; grad] = wengert::sum.dim_IntList(%twice, [1])
  %3 : float32[4] = wengert::clamp(%2, None, 1)
  %4 : float32[4, 5] = wengert::_to_copy(%x, float64)
  %5 : int64[2] = prim::Constant[value=tensor(int64[2], [1, -3])]()
  %6 : float32[4], %7 : int64[4] = wengert::max.dim(%0, 1)
  %8 : float32[4, 3] = prim::GradOf[name="wengert::mul"](%0)
    block():
      %9 : float32[4, 3] = wengert::index(%twice, [None, %5])
      return (%9)
  %10 : List(float32[4]) = prim::ListConstruct(%2, %3)
  %11 : float32[] = prim::cond(%n, %3)
    block(%a : float32[4]):
      %12 : float32[] = wengert::sum(%a)
      return (%12)
    block(%b : float32[4]):
      %13 : float32[] = wengert::mean(%b)
      return (%13)
  return (%8, %1, %1, %x)
"""


def test_what_is_read_prints_the_same():
    assert str(parse(EXAMPLE)) == EXAMPLE


def test_a_copy_prints_the_same():
    graph = parse(EXAMPLE)
    copy = graph.copy()
    copy.lint()
    assert str(copy) == EXAMPLE
    copy.value("twice").node.replace_input(0, copy.value("0"))
    assert str(graph) == EXAMPLE


def test_defaults_are_left_out_and_filled_in():
    graph = parse(EXAMPLE)
    assert graph.value("2").node.bound_arguments() == (graph.value("twice"), (1,), False, None)
    assert graph.value("twice").node.argument("alpha") == -3
    assert graph.value("3").node.argument("min") is None


def test_numbers_are_given_anew():
    text = """\
    # Anything may stand in a comment.
    graph(%7 : float32[2]):
      %100 : float32[2] = wengert::neg(%7)
      return (%100)
    """
    assert str(parse(text)) == (
        "graph(%0 : float32[2]):\n"
        "  %1 : float32[2] = wengert::neg(%0)\n"
        "  return (%1)\n"
    )


def test_equal_names_are_told_apart():
    graph = Graph()
    x = graph.add_input(name="x")
    y = graph.insert("wengert::neg", x)
    y.name = "x"
    graph.register_output(y)
    assert str(graph) == (
        "graph(%x : Tensor):\n  %x.1 : Tensor = wengert::neg(%x)\n  return (%x.1)\n"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("graph(%x):\n  %1 = wengert::neg(%y)\n  return (%1)", "line 2: %y is not defined here"),
        ("graph(%x):\n  return (%x)\nmore", "line 3: expected 'end', found 'more'"),
        ("graph(%x, %x):\n  return (%x)", "line 1: %x is defined twice"),
        ("graph(%x : float33):\n  return (%x)", "line 1: float33 is no type"),
        ("graph(%x):\n  %1 = wengert::nag(%x)\n  return ()", "line 2: .*no such operator"),
        ("graph(%x):\n  %1 = prim::nag(%x)\n  return ()", "line 2: prim::nag"),
        ("graph(%x):\n  %1 = neg(%x)\n  return ()", "line 2: neg is no kind of node"),
        ("graph(%x):\n  %1 = wengert::mul(%x)\n  return ()", "needs the argument 'other'"),
        ("graph(%x):\n  %1 = wengert::neg(%x, 1)\n  return ()", "takes 1 arguments, not 2"),
        ("graph(%x):\n  %1 = wengert::neg(%x, n=1)\n  return ()", "no argument 'n'"),
        ("graph(%x):\n  %1 = prim::ListConstruct(3)\n  return ()", "takes values only"),
        ("graph(%x):\n  ~", "line 2: '~' is no part of a graph"),
        ("graph(%x):\n  %1 = prim::Constant[value=tensor(int64[1], @0)]()\n  return ()", "@0"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_values_of_a_block_are_not_seen_outside():
    text = EXAMPLE.replace("return (%8, ", "return (%9, ")
    with pytest.raises(ParseError, match="%9 is not defined here"):
        parse(text)


def test_large_constants_are_kept_aside():
    graph = Graph()
    big = wengert.arange(1000)
    graph.register_output(graph.constant(big))
    text = str(graph)
    assert "tensor(int64[1000], @0)" in text
    again = parse(text, large_constants(graph))
    assert str(again) == text
    assert again.outputs[0].node.attributes["value"] is big


# Properties ---------------------------------------------------------------------------------------

lengths = st.integers(0, 5) | st.none()
tensor_types = st.builds(
    TensorType,
    st.sampled_from(ALL) | st.none(),
    st.lists(lengths, max_size=3) | st.none(),
    st.booleans() | st.none(),
)
types = st.recursive(
    tensor_types | st.sampled_from([INT, FLOAT, BOOL, STR, NONE, ANY]),
    lambda inner: (
        st.builds(ListType, inner)
        | st.builds(OptionalType, inner)
        | st.builds(lambda items: TupleType(*items), st.lists(inner, max_size=3))
    ),
    max_leaves=4,
)


@given(types)
@example(TensorType(wengert.bool))
def test_types_read_back(type):
    assert parse_type(str(type)) == type
    assert hash(parse_type(str(type))) == hash(type)


floats = st.floats(allow_nan=True)
literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | floats
    | st.complex_numbers()
    | st.text()
    | st.sampled_from(ALL)
    | st.sampled_from([wengert.device("cpu"), wengert.device("cuda", 1), wengert.strided])
    | tensor_types,
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


@given(literals)
def test_literals_read_back(literal):
    graph = Graph()
    graph.register_output(graph.constant(literal))
    again = parse(str(graph)).outputs[0].node.attributes["value"]
    assert literal_key(again) == literal_key(literal)


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_small_tensors_read_back_exactly(dtype, shape):
    values = np.random.default_rng(1).uniform(0, 100, shape)
    tensor = wengert.tensor(values).to(dtype) / (3 if dtype.category >= 2 else 1)
    tensor = tensor.to(dtype)
    graph = Graph()
    graph.register_output(graph.constant(tensor))
    again = parse(str(graph)).outputs[0].node.attributes["value"]
    assert literal_key(again) == literal_key(tensor)


UNARY = ["neg", "exp", "tanh", "sum", "clone", "t", "logical_not"]
BINARY = ["mul", "div", "mm", "maximum", "eq"]


@st.composite
def graphs(draw):
    """Graphs of any types that lint accepts, with literals, names and inner blocks."""
    graph = Graph()
    names = st.sampled_from([None, "x", "y", "long_name", "a.b"])
    known = [
        graph.add_input(draw(tensor_types), draw(names)) for _ in range(draw(st.integers(1, 3)))
    ]

    def step(depth):
        value = st.sampled_from(known)
        kind = draw(st.integers(0, 7))
        if kind == 0:
            new = graph.insert(f"wengert::{draw(st.sampled_from(UNARY))}", draw(value))
        elif kind == 1:
            new = graph.insert(
                f"wengert::{draw(st.sampled_from(BINARY))}", draw(value), draw(value)
            )
        elif kind == 2:
            new = graph.insert("wengert::mul", draw(value), draw(st.integers() | floats))
        elif kind == 3:
            dims = draw(st.lists(st.integers(-3, 3), max_size=3)) or None
            new = graph.insert(
                "wengert::sum.dim_IntList",
                draw(value), dims, draw(st.booleans()), dtype=draw(st.sampled_from(ALL)),
            )  # fmt: skip
        elif kind == 4:
            parts = draw(st.lists(value | st.none(), min_size=1, max_size=3))
            new = graph.insert("wengert::index", draw(value), parts)
        elif kind == 5:
            new = graph.constant(draw(literals))
            new.name = draw(names)
            return
        elif kind == 6:
            new = graph.insert("wengert::max.dim", draw(value), 0)[draw(st.integers(0, 1))]
        elif depth:
            node = graph.create("prim::GradOf", [draw(value)], (), attributes={"name": "f"})
            graph.insert_node(node)
            outside = len(known)
            block = node.add_block()
            with graph.inserting_at_end(block):
                for _ in range(draw(st.integers(0, 3))):
                    step(depth - 1)
            block.register_output(draw(value))
            del known[outside:]
            new = node.add_output()
        else:
            return
        new.type = draw(tensor_types)
        new.name = draw(names)
        new.node.source = draw(st.sampled_from([None, "model.py:12"]))
        known.append(new)

    for _ in range(draw(st.integers(0, 8))):
        step(2)
    for value in draw(st.lists(st.sampled_from(known), max_size=4)):
        graph.register_output(value)
    return graph


@pytest.mark.wide
@settings(deadline=None, max_examples=tries(300))
@given(graphs())
def test_graphs_read_back(graph):
    graph.lint()
    text = str(graph)
    again = parse(text, large_constants(graph))
    assert str(again) == text
    assert same(graph.block, again.block, {})


def same(one, other, known):
    """Whether two blocks are the same but for the identity of their parts."""
    if len(one.inputs) != len(other.inputs):
        return False
    for a, b in zip(one.inputs, other.inputs):
        known[a] = b
        if a.type != b.type:
            return False
    nodes = list(zip(one.nodes(), other.nodes(), strict=True))
    for a, b in nodes:
        keys = [literal_key(tuple(n.attributes.items())) for n in (a, b)]
        if a.kind != b.kind or keys[0] != keys[1] or a.source != b.source:
            return False
        if literal_key(a.arguments or ()) != literal_key(b.arguments or ()):
            return False
        if [known[v] for v in a.inputs] != list(b.inputs):
            return False
        if not all(same(x, y, known) for x, y in zip(a.blocks, b.blocks, strict=True)):
            return False
        for x, y in zip(a.outputs, b.outputs, strict=True):
            known[x] = y
            if x.type != y.type:
                return False
    return [known[v] for v in one.outputs] == list(other.outputs)


def test_the_comparison_of_graphs_sees_differences():
    graph = parse(EXAMPLE)
    assert same(graph.block, parse(EXAMPLE).block, {})
    for old, new in [("2.0", "2"), ("alpha=-3", "alpha=-2"), ("::neg", "::exp"), ("a.b", "c")]:
        changed = EXAMPLE.replace(old, new)
        assert same(graph.block, parse(changed).block, {}) == (changed == EXAMPLE)
    assert literal_key(0.0) != literal_key(-0.0)
    assert literal_key(1) != literal_key(True) != literal_key(1.0)
    assert literal_key(math.nan) == literal_key(math.nan)
