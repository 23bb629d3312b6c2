"""Verification: every kind of damage is found, and the message says where it is."""

import pytest

from wengert.compiler import GraphError, TensorType, parse
from wengert.compiler.ir.literals import HOLE
from wengert.compiler.ir.nodes import Use
from wengert.compiler.ir.types import INT, STR

TEXT = """\
graph(%x : float32[2], %n : int):
  %a : float32[2] = wengert::mul(%x, %x)
  %b : float32[2] = prim::GradOf[name="f"](%a)
    block():
      %c : float32[2] = wengert::neg(%a)
      return (%c)
  %d : float32[2] = wengert::add(%b, %n)
  return (%d)
"""


def test_a_sound_graph_passes():
    parse(TEXT).lint()


def reorder(graph):
    graph.value("a").node.move_after(graph.value("d").node)


def use_inner_value_outside(graph):
    graph.value("d").node.replace_input(0, graph.value("c"))


def forget_a_use(graph):
    del graph.value("a")._uses[Use(graph.value("b").node, 0)]


def invent_a_use(graph):
    graph.value("a")._uses[Use(graph.value("d").node, 1)] = None


def use_outside_of_the_graph(graph):
    graph.create("wengert::neg", [graph.value("a")])


def misplace_an_output(graph):
    graph.value("a").index = 3


def wrong_block(graph):
    graph.value("c").node.block = graph.block


def broken_order(graph):
    graph.value("d").node.position = 0


def missing_attribute(graph):
    del graph.value("b").node.attributes["name"]


def no_block(graph):
    graph.value("b").node.blocks.clear()


def too_many_returns(graph):
    graph.value("b").node.blocks[0].register_output(graph.value("c"))


def too_many_outputs(graph):
    graph.value("a").node.add_output()


def too_few_arguments(graph):
    node = graph.value("a").node
    node.arguments = node.arguments[:1]


def holes_without_inputs(graph):
    graph.value("a").node.arguments = (HOLE, 3)


def wrong_type(graph):
    graph.value("n").type = STR


def unknown_kind(graph):
    graph.value("b").node.kind = "prim::Nothing"


def foreign_graph(graph):
    graph.value("a").node.graph = parse(TEXT)


@pytest.mark.parametrize(
    "damage, where, message",
    [
        (reorder, "GradOf", r"input 0, %a, is not defined before it"),
        (use_inner_value_outside, "add", r"input 0, %c, is not defined before it"),
        (forget_a_use, "GradOf", r"%a does not know that it is input 0"),
        (invent_a_use, "mul", r"%a lists a use that does not exist"),
        (use_outside_of_the_graph, "mul", r"%a is used by a node outside of the graph"),
        (misplace_an_output, "mul", r"output 0 says that it is the output of another node"),
        (wrong_block, "neg", r"belongs to another block or graph"),
        (broken_order, "add", r"the order of the nodes is broken"),
        (missing_attribute, "GradOf", r"the attribute 'name' is missing"),
        (no_block, "GradOf", r"has 0 blocks, not 1"),
        (too_many_returns, "GradOf", r"a block returns 2 values for 1 outputs"),
        (too_many_outputs, "mul", r"has 2 outputs, not 1"),
        (too_few_arguments, "mul", r"the arguments do not fit mul\(Tensor self, Tensor other\)"),
        (holes_without_inputs, "mul", r"1 arguments are values, 2 given"),
        (wrong_type, "add", r"argument 'other' is a Tensor, not str"),
        (unknown_kind, "Nothing", r"no such primitive is declared"),
        (foreign_graph, "mul", r"belongs to another block or graph"),
    ],
)
def test_damage_is_found(damage, where, message):
    graph = parse(TEXT)
    damage(graph)
    with pytest.raises(GraphError, match=message) as caught:
        graph.lint()
    line = next(line for line in str(caught.value).splitlines() if where in line)
    assert line.startswith("  `%")


def test_all_problems_are_listed():
    graph = parse(TEXT)
    missing_attribute(graph)
    too_many_outputs(graph)
    with pytest.raises(GraphError) as caught:
        graph.lint()
    assert len(str(caught.value).splitlines()) == 3


def test_outputs_of_a_block_are_named_as_such():
    graph = parse(TEXT)
    graph.block.replace_output(0, graph.value("c"))
    with pytest.raises(GraphError, match=r"outputs of the graph: input 0, %c, is not defined"):
        graph.lint()
    graph = parse(TEXT)
    graph.value("b").node.blocks[0].replace_output(0, graph.value("d"))
    with pytest.raises(GraphError, match=r"outputs of a block of `%b .*: input 0, %d, is not"):
        graph.lint()


@pytest.mark.parametrize(
    "text, message",
    [
        ("%1 : Tensor = prim::AutogradAdd(%x)", "has 1 inputs, not 2"),
        ("%1 : Tensor = prim::Constant[value=3](%x)", "has 1 inputs, not 0"),
        ("%1 : Tensor, %2 : Tensor = prim::ListConstruct(%x)", "has 2 outputs, not 1"),
        ("%1 : Tensor = prim::GradOf[name=\"f\"]()", "has 0 blocks, not 1"),
        ("%1 : Tensor = prim::map[mapped=2](%x) block(%y): return (%y)", "cannot map 2"),
        ("%1 : Tensor = prim::map[mapped=1](%x) block(): return (%x)", "takes 0 values, 1 given"),
        (
            "%1 : Tensor = prim::cond(%x, %x) block(%y): return (%y) block(): return (%x)",
            "takes 0 values, 1 given",
        ),
        ("%1 = prim::cond() block(): return () block(): return ()", "has no condition"),
        (
            "%1 = prim::while(%x) block(%a): return () block(%b): return (%b)",
            "more or less than one",
        ),
        (
            "%1 = prim::while(%x) block(%a): return (%a) block(%b): return ()",
            "the body returns 0 values for 1 outputs",
        ),
        (
            "%1 = prim::scan[carried=1, mapped=1, reverse=False](%x) block(%a): return (%a)",
            "cannot carry 1 and map 1 of 1 inputs",
        ),
        (
            "%1 = prim::DifferentiableGraph(%x) block(%a): return (%a, %a)",
            "returns 2 values for 1 outputs",
        ),
        ("%1 : Tensor = wengert::unsqueeze(%x, %x)", "argument 'dim' is a int, not float32"),
    ],
)
def test_what_single_kinds_want(text, message):
    with pytest.raises(GraphError, match=message):
        parse(f"graph(%x : float32[2]):\n  {text}\n  return ()\n")


def test_numbers_may_stand_for_tensors():
    parse(
        "graph(%x : float32[2], %n : float):\n"
        "  %1 : float32[2] = wengert::mul(%x, %n)\n"
        "  return (%1)\n"
    )


def test_types_accept_what_says_more():
    assert TensorType().accepts(TensorType(None, (2, 3)))
    assert TensorType(None, (None, 3)).accepts(TensorType(None, (2, 3), True))
    assert not TensorType(None, (2, 3)).accepts(TensorType(None, (None, 3)))
    assert not TensorType(None, (2,)).accepts(TensorType(None, (2, 3)))
    assert not TensorType().accepts(INT)
