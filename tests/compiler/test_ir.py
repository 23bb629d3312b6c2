"""Building and editing graphs: uses, places, copies, ownership."""

import pytest

import wengert
from wengert.compiler import Graph, GraphError, TensorType, Use, parse
from wengert.compiler.ir.literals import HOLE, fill
from wengert.compiler.ir.nodes import split_arguments

CHAIN = """\
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = wengert::mul(%x, %y)
  %b : Tensor = wengert::neg(%a)
  %c : Tensor = wengert::add(%b, %a)
  return (%c)
"""


def uses(value):
    return {(use.user.kind, use.offset) for use in value.uses}


def kinds(block):
    return [node.kind.partition("::")[2] for node in block.nodes()]


def test_a_graph_is_built_by_insertion():
    graph = Graph()
    x, y = graph.add_input(name="x"), graph.add_input(name="y")
    a = graph.insert("wengert::mul", x, y)
    b = graph.insert("wengert::neg", a)
    c = graph.insert("wengert::add", b, a)
    for name, value in zip("abc", (a, b, c)):
        value.name = name
    assert graph.register_output(c) == 0
    graph.lint()
    assert str(graph) == CHAIN


def test_inputs_and_literals_are_told_apart():
    graph = Graph()
    x, i = graph.add_input(), graph.add_input()
    node = graph.insert("wengert::index", x, [None, i]).node
    assert node.inputs == (x, i)
    assert node.arguments == (HOLE, (None, HOLE))
    assert node.bound_arguments() == (x, (None, i))
    assert split_arguments(fill(node.arguments, [x, i])) == (node.arguments, [x, i])
    values, indices = graph.insert("wengert::max.dim", x, dim=1)
    assert values.node is indices.node
    assert values.node.arguments == (HOLE, 1, False)
    parts = graph.insert("wengert::unbind", x, 0, outputs=3)
    assert [part.index for part in parts] == [0, 1, 2]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda g, x: g.insert("wengert::mul", x), "needs the argument 'other'"),
        (lambda g, x: g.insert("wengert::neg", x, x), "takes 1 arguments"),
        (lambda g, x: g.insert("wengert::neg", x, out=x), "no argument 'out'"),
        (lambda g, x: g.insert("wengert::unbind", x), "say how many outputs"),
    ],
)
def test_calls_must_fit_the_schema(call, message):
    graph = Graph()
    with pytest.raises(TypeError, match=message):
        call(graph, graph.add_input())


def test_unknown_kinds_are_refused():
    graph = Graph()
    with pytest.raises(LookupError, match="no such operator"):
        graph.insert("wengert::frobnicate")
    with pytest.raises(LookupError, match="no such primitive"):
        graph.insert("prim::frobnicate")


def test_values_know_their_uses():
    graph = parse(CHAIN)
    a = graph.value("a")
    assert uses(a) == {("wengert::neg", 0), ("wengert::add", 1)}
    assert uses(graph.value("c")) == {("prim::Return", 0)}
    assert a.uses[0] == Use(graph.value("b").node, 0)
    graph.value("b").node.replace_input(0, graph.value("x"))
    assert uses(a) == {("wengert::add", 1)}
    graph.lint()


def test_replace_all_uses():
    graph = parse(CHAIN)
    a, x = graph.value("a"), graph.value("x")
    a.replace_all_uses_with(x)
    assert not a.is_used
    assert uses(x) == {("wengert::mul", 0), ("wengert::neg", 0), ("wengert::add", 1)}
    a.node.destroy()
    graph.lint()
    assert kinds(graph.block) == ["neg", "add"]


def test_the_same_value_may_be_several_inputs():
    graph = parse(CHAIN)
    x, y, a = (graph.value(name) for name in "xya")
    a.node.replace_input(1, x)
    assert uses(x) == {("wengert::mul", 0), ("wengert::mul", 1)}
    a.node.replace_input_with(x, y)
    assert a.node.inputs == (y, y)
    assert not x.is_used
    graph.lint()


def test_inputs_can_be_removed():
    graph = Graph()
    x, y, z = (graph.add_input() for _ in range(3))
    node = graph.insert("prim::ListConstruct", x, y, z, y).node
    node.remove_input(1)
    assert node.inputs == (x, z, y)
    assert uses(y) == {("prim::ListConstruct", 2)}
    node.remove_all_inputs()
    assert not (x.is_used or y.is_used or z.is_used)


def test_outputs_can_be_erased_when_unused():
    graph = parse(CHAIN)
    node = graph.insert_node(graph.create("prim::ListUnpack", [graph.value("c")], ()))
    first, second = node.add_output(), node.add_output()
    graph.register_output(second)
    with pytest.raises(GraphError, match="still used"):
        node.erase_output(1)
    node.erase_output(0)
    assert second.index == 0 and first not in node.outputs
    graph.lint()
    graph.block.erase_output(1)
    node.erase_output(0)
    assert node.outputs == ()


def test_nodes_in_use_are_not_destroyed():
    graph = parse(CHAIN)
    with pytest.raises(GraphError, match="still used"):
        graph.value("a").node.destroy()


def test_places():
    graph = parse(CHAIN)
    a, b, c = (graph.value(name).node for name in "abc")
    assert a.is_before(b) and b.is_after(a) and not c.is_before(a)
    extra = graph.create("wengert::exp", [graph.value("x")])
    with pytest.raises(GraphError, match="in no block"):
        extra.move_before(a)
    extra.insert_after(b)
    assert kinds(graph.block) == ["mul", "neg", "exp", "add"]
    extra.move_before(a)
    assert kinds(graph.block) == ["exp", "mul", "neg", "add"]
    extra.move_after(c)
    assert kinds(graph.block) == ["mul", "neg", "add", "exp"]
    with pytest.raises(GraphError, match="already"):
        extra.insert_before(a)
    with pytest.raises(GraphError, match="nothing comes after"):
        extra.move_after(graph.block.return_node)
    assert [n.kind for n in graph.block.reverse_nodes()] == [
        n.kind for n in reversed(list(graph.nodes()))
    ]


def test_positions_stay_in_order_over_many_insertions():
    graph = parse(CHAIN)
    last = graph.value("c").node
    x = graph.value("x")
    for _ in range(200):
        last = graph.create("wengert::exp", [x]).insert_before(last)
    for _ in range(200):
        graph.create("wengert::sin", [x]).insert_after(graph.value("a").node)
    graph.lint()


def test_insertion_points():
    graph = parse(CHAIN)
    x = graph.value("x")
    with graph.inserting_before(graph.value("a").node):
        graph.insert("wengert::exp", x)
        graph.insert("wengert::sin", x)
    with graph.inserting_after(graph.value("b").node):
        graph.insert("wengert::cos", x)
    graph.insert("wengert::tan", x)
    assert kinds(graph.block) == ["exp", "sin", "mul", "neg", "cos", "add", "tan"]


def test_an_insertion_point_survives_the_end_of_its_node():
    graph = parse(CHAIN)
    point = graph.insert("wengert::exp", graph.value("x")).node
    graph.insert_point = point
    point.destroy()
    graph.insert("wengert::sin", graph.value("x"))
    assert kinds(graph.block)[-1] == "sin"


NESTED = """\
graph(%x : Tensor):
  %0 : Tensor = wengert::exp(%x)
  %1 : Tensor = prim::GradOf[name="f"](%0)
    block():
      %2 : Tensor = wengert::neg(%0)
      %3 : Tensor = wengert::mul(%2, %x)
      return (%3)
  %4 : Tensor = wengert::sin(%1)
  return (%4)
"""


def test_order_of_nested_nodes():
    graph = parse(NESTED)
    outer, inner, after = (graph.value(name).node for name in ("0", "2", "4"))
    assert outer.is_before(inner) and inner.is_before(after)
    assert inner.is_before(graph.value("3").node)
    with pytest.raises(GraphError, match="neither comes first"):
        inner.is_before(graph.value("1").node)
    assert graph.block.contains(inner)
    assert not graph.value("1").node.blocks[0].contains(outer)
    assert [n.kind.split("::")[1] for n in graph.all_nodes()] == [
        "exp", "GradOf", "neg", "mul", "sin",
    ]  # fmt: skip


def test_nodes_move_across_blocks():
    graph = parse(NESTED)
    graph.value("2").node.move_before(graph.value("1").node)
    graph.lint()
    assert kinds(graph.block) == ["exp", "neg", "GradOf", "sin"]


def test_destroying_a_node_destroys_its_blocks():
    graph = parse(NESTED)
    graph.value("4").node.replace_input(0, graph.value("0"))
    graph.value("1").node.destroy()
    assert uses(graph.value("0")) == {("wengert::sin", 0)}
    graph.lint()


def test_copies_of_nodes_look_their_inputs_up():
    graph = parse(NESTED)
    x, y = graph.value("x"), graph.value("0")
    values = {y: x}
    copy = graph.insert_node(graph.create_clone(graph.value("1").node, values))
    assert copy.inputs == (x,)
    assert values[graph.value("1")] is copy.output
    inner = list(copy.blocks[0].nodes())
    assert inner[0].inputs == (x,) and inner[1].inputs == (inner[0].output, x)
    graph.lint()


def test_copies_of_blocks():
    graph = parse(NESTED)
    target = parse("graph(%a : Tensor, %b : Tensor):\n  return ()\n")
    a, b = target.inputs
    outside = {graph.value("0"): a, graph.value("x"): b}
    target.block.clone_from(graph.value("1").node.blocks[0], outer=outside.__getitem__)
    target.lint()
    assert str(target) == (
        "graph(%a : Tensor, %b : Tensor):\n"
        "  %0 : Tensor = wengert::neg(%a)\n"
        "  %1 : Tensor = wengert::mul(%0, %b)\n"
        "  return (%1)\n"
    )


def test_a_graph_is_inserted_into_another():
    graph = parse(CHAIN)
    callee = parse("graph(%p : Tensor):\n  %q : Tensor = wengert::exp(%p)\n  return (%q, %p)\n")
    c = graph.value("c")
    results = graph.insert_graph(callee, [c])
    assert results[0].node.kind == "wengert::exp" and results[1] is c
    graph.lint()
    with pytest.raises(GraphError, match="1 inputs cannot be called with 2"):
        graph.insert_graph(callee, [c, c])


def test_values_of_other_graphs_are_refused():
    graph, other = parse(CHAIN), parse(CHAIN)
    with pytest.raises(GraphError, match="another graph"):
        graph.insert("wengert::neg", other.value("x"))
    with pytest.raises(GraphError, match="another graph"):
        graph.value("b").node.replace_input(0, other.value("x"))
    with pytest.raises(GraphError, match="its own graph"):
        graph.value("b").replace_all_uses_with(other.value("x"))
    with pytest.raises(GraphError, match="no place"):
        graph.create("wengert::neg", [graph.value("x")]).insert_before(other.value("b").node)


def test_topological_order():
    graph = parse(NESTED)
    graph.value("0").node.move_before(graph.block.return_node)
    with pytest.raises(GraphError, match="not defined before it"):
        graph.lint()
    graph.block.sort()
    graph.lint()
    assert str(graph) == NESTED


def test_order_is_kept_where_possible():
    graph = parse(CHAIN)
    before = list(graph.nodes())
    assert graph.block.topological_order() == before


def test_circles_are_found():
    graph = parse(CHAIN)
    graph.value("a").node.replace_input(0, graph.value("c"))
    with pytest.raises(GraphError, match="depends on its own result"):
        graph.block.sort()


def test_taken_graphs_are_gone():
    graph = parse(CHAIN)
    fresh = graph.take("differentiate")
    fresh.lint()
    assert str(fresh) == CHAIN
    with pytest.raises(GraphError, match="given to differentiate and is gone"):
        graph.lint()
    with pytest.raises(GraphError, match="gone"):
        str(graph)


def test_claimed_graphs_are_not_taken():
    graph = parse(CHAIN).claim("a cache")
    with pytest.raises(GraphError, match="differentiate will mutate and destroy the graph"):
        graph.take("differentiate")
    with pytest.raises(GraphError, match="belongs to 'a cache' already"):
        graph.claim("somebody")
    with pytest.raises(GraphError, match="not to 'somebody'"):
        graph.release("somebody")
    graph.release("a cache").take("differentiate")


def test_requires_grad_of_a_value():
    graph = Graph()
    for type, expected in [
        (TensorType(), True),
        (TensorType(wengert.float32), True),
        (TensorType(wengert.int64), False),
        (TensorType(wengert.float32, (), False), False),
        (TensorType(wengert.int64, (), None), False),
    ]:
        assert graph.add_input(type).requires_grad == expected
    assert not graph.constant(3).requires_grad
