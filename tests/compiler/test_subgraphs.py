"""Slicing a graph into differentiable groups, and putting groups together and apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from compiler.support import assert_becomes, equal, graph, inputs_for, programs, typed
from wengert.autograd import Function
from wengert.compiler import Graph, GraphError, NotDifferentiable, differentiate, parse, run, trace
from wengert.compiler.ir import primitives
from wengert.compiler.run.subgraphs import (
    graph_of,
    groups,
    merge,
    separate_views,
    slice_differentiable,
    unmerge,
)
from width import tries


def kinds(block):
    """The kinds of nodes in order, those of groups in brackets."""
    parts = []
    for node in block.nodes():
        name = node.kind.partition("::")[2]
        if name == "DifferentiableGraph":
            name = f"[{kinds(node.blocks[0])}]"
        parts.append(name)
    return " ".join(parts)


def sliced(text, **options):
    result = slice_differentiable(graph(text), **options)
    result.lint()
    return result


@pytest.fixture(autouse=True)
def opaque():
    """A node that nobody can differentiate."""
    primitives.register_primitive(
        primitives.Primitive("prim::opaque", evaluate=lambda x: x.clone())
    )
    yield
    del primitives.PRIMITIVES["prim::opaque"]


def test_a_differentiable_graph_is_one_group():
    result = sliced("""
        graph(%x : float32[2; grad], %y : float32[2]):
          %c = prim::Constant[value=tensor(float32[2], [1.0, 2.0])]()
          %0 = wengert::mul(%x, %y)
          %1 = wengert::gt(%0, 0)
          %2 = wengert::where(%1, %0, %c)
          %3 = wengert::exp(%2)
          return (%3, %2)
    """)
    assert kinds(result.block) == "[Constant mul gt where exp]"
    (group,) = groups(result)
    assert len(group.inputs) == 2 and len(group.outputs) == 2


def test_groups_before_and_after_what_is_not_differentiable():
    result = sliced("""
        graph(%x : float32[2; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::sin(%0)
          %2 : float32[2] = prim::opaque(%1)
          %3 = wengert::cos(%2)
          %4 = wengert::mul(%3, %1)
          return (%4)
    """)
    assert kinds(result.block) == "[exp sin] opaque [cos mul]"


def test_what_does_not_depend_on_it_is_moved_aside():
    """One group on each side, though the nodes are mixed."""
    result = sliced("""
        graph(%x : float32[2; grad], %y : float32[2; grad]):
          %0 = wengert::exp(%x)
          %1 : float32[2] = prim::opaque(%y)
          %2 = wengert::sin(%0)
          %3 = wengert::cos(%1)
          %4 = wengert::mul(%2, %0)
          %5 = wengert::add(%3, %4)
          return (%5)
    """)
    assert kinds(result.block) == "[exp sin mul] opaque [cos add]"


def test_unconnected_parts_are_groups_of_their_own():
    result = sliced("""
        graph(%x : float32[2; grad], %y : float32[2; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::sin(%y)
          %2 = wengert::exp(%0)
          %3 = wengert::sin(%1)
          return (%2, %3)
    """)
    assert kinds(result.block) == "[exp exp] [sin sin]"


@pytest.mark.parametrize("threshold, expected", [(1, "[exp]"), (2, "exp")])
def test_small_groups_are_not_made(threshold, expected):
    text = "graph(%x : float32[2; grad]):\n  %0 = wengert::exp(%x)\n  return (%0)"
    assert kinds(sliced(text, threshold=threshold).block) == expected


def test_groups_without_gradients_are_not_made():
    result = sliced("""
        graph(%x : float32[2; no_grad], %y : float32[2; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::sin(%0)
          %2 = wengert::gt(%y, 0)
          %3 = wengert::logical_not(%2)
          return (%1, %3)
    """)
    assert not groups(result)


def test_nothing_moves_across_an_effect():
    text = """
        graph(%x : float32[2; grad], %y : float32[2; grad], %z : float32[2; no_grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::mul(%0, %y)
          %2 = wengert::add_(%z, 1)
          %3 = wengert::exp(%y)
          %4 = wengert::mul(%3, %1)
          %5 = wengert::mul(%4, %z)
          return (%5)
    """
    result = sliced(text)
    assert kinds(result.block) == "[exp mul] add_ [exp mul] mul"
    x, y = (wengert.tensor([1.0, 2.0]) * i for i in (1, 2))
    z, w = wengert.ones(2), wengert.ones(2)
    assert equal(run(result, x, y, z)[0], run(graph(text), x, y, w)[0])
    assert equal(z, w)


def test_what_may_return_its_input_stays_outside():
    result = sliced("""
        graph(%x : float32[2; grad], %y : float32[2; grad]):
          %0 = wengert::sin(%x)
          %1 = wengert::mul(%0, %y)
          %2 = prim::AutogradAdd(%1, %x)
          return (%2)
    """)
    assert kinds(result.block) == "[sin mul] AutogradAdd"


def test_what_is_written_in_place_stays_outside():
    result = sliced("""
        graph(%x : float32[2, 3; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::sin(%0)
          %2 = wengert::mul(%1, 2)
          %3 = wengert::t(%2)
          %4 = wengert::add_(%3, 1)
          %5 = wengert::neg(%2)
          %6 = wengert::cos(%0)
          %7 = wengert::sum(%6)
          return (%5, %7)
    """)
    text = kinds(result.block)
    for kind in ("mul", "t", "add_", "neg"):
        assert kind not in "".join(part.partition("]")[0] for part in text.split("[")[1:])


# Views --------------------------------------------------------------------------------------------


def test_views_of_results_and_inputs_are_made_outside():
    result = sliced("""
        graph(%x : float32[2, 3; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::mul(%0, 2)
          %2 = wengert::t(%1)
          %3 = wengert::t(%x)
          %4 = wengert::sum.dim_IntList(%3, [0])
          %5 = wengert::unsqueeze(%4, 0)
          return (%1, %2, %3, %5)
    """)
    assert kinds(result.block) == "[exp mul] t [t sum.dim_IntList unsqueeze] t"
    for group in groups(result):
        alone = graph_of(group)
        inputs = [wengert.ones(v.type.shape) for v in alone.inputs]
        arrays = [t.numpy() for t in (*run(alone, *inputs), *inputs)]
        for i, a in enumerate(arrays[: len(alone.outputs)]):
            assert not any(np.shares_memory(a, b) for b in arrays[i + 1 :])


def test_several_views_of_one_result():
    result = sliced("""
        graph(%x : float32[2, 3; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::mul(%0, 2)
          %2, %3 = wengert::unbind(%1, 0)
          return (%2, %3)
    """)
    assert kinds(result.block) == "[exp mul] unbind"


def test_views_used_inside_and_outside():
    result = sliced("""
        graph(%x : float32[2, 3; grad]):
          %0 = wengert::t(%x)
          %1 = wengert::exp(%0)
          %2 = wengert::sum(%1)
          return (%0, %2)
    """)
    assert kinds(result.block) == "[t exp sum] t"


# Putting together and apart -----------------------------------------------------------------------

TEXT = """
    graph(%x : float32[2; grad], %y : float32[2; grad]):
      %0 = wengert::exp(%x)
      %1 = wengert::mul(%0, %y)
      %2 = wengert::sin(%1)
      return (%2, %0)
"""


def test_merging_and_unmerging_are_inverse():
    def there_and_back(given):
        first, second, _ = given.nodes()
        group = merge([first, second])
        given.lint()
        assert kinds(given.block) == "[exp mul] sin"
        unmerge(group)
        return given

    assert_becomes(there_and_back, TEXT, TEXT)


def test_groups_can_be_nested():
    given = typed(TEXT)
    a, b, c = given.nodes()
    outer = merge([merge([a, b]), c])
    given.lint()
    assert kinds(given.block) == "[[exp mul] sin]"
    x, y = wengert.tensor([1.0, 2.0]), wengert.tensor([3.0, 4.0])
    assert all(map(equal, run(given, x, y), run(typed(TEXT), x, y)))
    unmerge(outer)
    assert kinds(given.block) == "[exp mul] sin"


def test_only_neighbours_without_effects_are_merged():
    given = typed(TEXT)
    a, _, c = given.nodes()
    with pytest.raises(GraphError, match="follow each other"):
        merge([a, c])
    given = typed("graph(%x : float32[2]):\n  %0 = wengert::add_(%x, 1)\n  return (%0)")
    with pytest.raises(GraphError, match="wengert::add_ has effects"):
        merge(list(given.nodes()))


def test_separating_views_of_a_group_made_by_hand():
    given = typed("""
        graph(%x : float32[2, 3; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::t(%0)
          %2 = wengert::t(%x)
          return (%0, %1, %2)
    """)
    separate_views(merge(list(given.nodes())))
    given.lint()
    assert sorted(kinds(given.block).split()) == ["[exp]", "t", "t"]


# Meaning ------------------------------------------------------------------------------------------


class Differentiated(Function):
    """Runs f forward and df backward: how a group takes part in eager autograd."""

    @staticmethod
    def forward(ctx, gradient, *inputs):
        outputs = run(gradient.f, *[x.detach() for x in inputs])
        ctx.gradient, ctx.inputs, ctx.outputs = gradient, inputs, outputs
        return outputs[: gradient.f_real_outputs]

    @staticmethod
    def backward(ctx, *grads):
        given = ctx.gradient.df_inputs(
            [x.detach() for x in ctx.inputs], ctx.outputs, list(grads)
        )
        found = dict(zip(ctx.gradient.df_output_vjps, run(ctx.gradient.df, *given)))
        return (None, *[found.get(i) for i in range(len(ctx.inputs))])


def run_in_groups(given, inputs):
    """Run a sliced graph node by node: groups through their gradients, all else in eager mode."""
    values = dict(zip(given.inputs, inputs))
    for node in given.nodes():
        operands = [values[v] for v in node.inputs]
        if node.kind == primitives.DIFFERENTIABLE_GRAPH:
            results = Differentiated.apply(differentiate(graph_of(node)), *operands)
        else:
            alone = Graph()
            names = {v: alone.add_input(v.type) for v in node.inputs}
            copy = alone.insert_node(alone.create_clone(node, names))
            for value in copy.outputs:
                alone.register_output(value)
            results = run(alone, *operands)
        values.update(zip(node.outputs, results))
    return [values[v] for v in given.outputs]


@pytest.mark.wide
@settings(deadline=None, max_examples=tries(100))
@given(programs(grad=True), st.integers(1, 4), st.integers(0, 3))
def test_sliced_programs_compute_the_same(given, threshold, opaque_every):
    """Values and gradients, with eager autograd between the groups."""
    if opaque_every:
        for i, node in enumerate(list(given.nodes())):
            if i % (opaque_every + 1) == opaque_every:
                value = node.outputs[0]
                hidden = given.create("prim::opaque", (), (value.type,))
                value.replace_all_uses_with(hidden.output)
                hidden.add_input(value)
                hidden.insert_after(node)
    given.lint()
    inputs = inputs_for(given)
    want = run(given, *inputs)
    result = slice_differentiable(given, threshold)
    result.lint()
    for group in groups(result):
        assert len(list(group.blocks[0].nodes())) >= threshold
    got = run_in_groups(result, inputs)
    assert all(map(equal, [g.detach() for g in got], [w.detach() for w in want]))
    leaves = [x for x in inputs if x.requires_grad]
    pairs = [(g, w) for g, w in zip(got, want) if w.requires_grad]
    if not leaves or not pairs:
        return
    mine, its = (
        wengert.autograd.grad(
            [p[k] for p in pairs], leaves, [wengert.ones_like(p[k]) for p in pairs],
            allow_unused=True,
        )
        for k in (0, 1)
    )  # fmt: skip
    for a, b in zip(mine, its):
        if a is None or b is None:
            assert all(v is None or not v.any() for v in (a, b))
        else:
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-9)


# Custom operators ---------------------------------------------------------------------------------


@pytest.fixture
def cube():
    """A custom operator with a formula that cannot be traced."""

    @wengert.library.custom_op("compiler_tests::cube", mutates_args=())
    def cube(x: wengert.Tensor) -> wengert.Tensor:
        return x * x * x

    cube.register_fake(wengert.empty_like)
    cube.register_autograd(
        lambda ctx, g: wengert.from_numpy(g.numpy() * 3 * ctx.saved_tensors[0].numpy() ** 2),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return cube


def test_custom_operators_stay_outside_of_groups(cube):
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    traced = trace(lambda x: cube(x.sin().exp()).tanh() * 2, x)
    assert str(parse(str(traced.graph))) == str(traced.graph)
    result = slice_differentiable(traced.graph)
    assert kinds(result.block) == "[sin exp] cube [tanh mul]"
    with pytest.raises(NotDifferentiable, match="(?s)compiler_tests::cube .*"):
        differentiate(result.copy())
    (out,) = run_in_groups(result, [x])
    want = cube(x.sin().exp()).tanh() * 2
    assert equal(out, want)
    ones = wengert.ones(2)
    got = wengert.autograd.grad(out, x, ones), wengert.autograd.grad(want, x, ones)
    np.testing.assert_allclose(got[0][0].numpy(), got[1][0].numpy(), 1e-6)
