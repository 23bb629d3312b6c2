"""differentiate: the two graphs it makes, what it captures, what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from compiler.support import (
    accumulate,
    equal,
    graph,
    inputs_for,
    programs,
    run_gradient,
    typed,
)
from line_counts import lines_run
from wengert.compiler import (
    Graph,
    GraphError,
    NotDifferentiable,
    TensorType,
    differentiate,
    is_differentiable,
    isDifferentiable,
    joint_graph,
    parse,
    passes,
    run,
)
from wengert.compiler.autodiff import rules as symbolic
from width import tries


def both(text, **options):
    gradient = differentiate(graph(text), **options)
    gradient.f.lint()
    gradient.df.lint()
    return gradient


def body(graph):
    """The kinds of a graph's nodes in order, inner ones in brackets."""

    def of(block):
        parts = []
        for node in block.nodes():
            name = node.kind.partition("::")[2]
            parts.append(name + "".join(f"[{of(inner)}]" for inner in node.blocks))
        return " ".join(parts)

    return of(graph.block)


# The layout ---------------------------------------------------------------------------------------


def test_the_two_graphs_of_a_layer():
    gradient = both("""
        graph(%x : float32[4, 5], %w : float32[5, 3; grad], %b : float32[3; grad]):
          %0 : float32[4, 3] = wengert::mm(%x, %w)
          %1 : float32[4, 3] = wengert::add(%0, %b)
          %2 : float32[4, 3] = wengert::tanh(%1)
          return (%2)
    """)
    assert str(gradient.f) == (
        "graph(%x : float32[4, 5; no_grad], %w : float32[5, 3; no_grad], "
        "%b : float32[3; no_grad]):\n"
        "  %0 : float32[4, 3; no_grad] = wengert::mm(%x, %w)\n"
        "  %1 : float32[4, 3; no_grad] = wengert::add(%0, %b)\n"
        "  %2 : float32[4, 3; no_grad] = wengert::tanh(%1)\n"
        "  return (%2)\n"
    )
    assert str(gradient.df) == (
        "graph(%0 : float32[4, 3; grad], %x : float32[4, 5; grad], %w : float32[5, 3; grad], "
        "%1 : float32[4, 3; grad]):\n"
        '  %2 : float32[4, 3] = prim::GradOf[name="wengert::tanh"](%0)\n'
        "    block():\n"
        "      %3 : float32[4, 3] = wengert::mul(%1, %1)\n"
        "      %4 : float32[4, 3] = wengert::rsub(%3, 1)\n"
        "      %5 : float32[4, 3] = wengert::mul(%0, %4)\n"
        "      return (%5)\n"
        '  %6 : float32[4, 3], %7 : float32[3] = prim::GradOf[name="wengert::add"](%2)\n'
        "    block():\n"
        "      %8 : float32[3] = wengert::_sum_to(%2, [3])\n"
        "      return (%2, %8)\n"
        '  %9 : float32[4, 5], %10 : float32[5, 3] = prim::GradOf[name="wengert::mm"](%6)\n'
        "    block():\n"
        "      %11 : float32[4, 5] = wengert::_mm_right(%6, %w)\n"
        "      %12 : float32[5, 3] = wengert::_mm_left(%x, %6)\n"
        "      return (%11, %12)\n"
        "  return (%9, %10, %7)\n"
    )
    assert gradient.f_real_outputs == 1
    assert gradient.df_input_vjps == [0]
    assert gradient.df_input_captured_inputs == [0, 1]
    assert gradient.df_input_captured_outputs == [0]
    assert gradient.df_output_vjps == [0, 1, 2]
    assert "df_output_vjps: [0, 1, 2]" in str(gradient)


def test_only_what_requires_grad_is_computed():
    gradient = both("""
        graph(%x : float32[4, 5; no_grad], %w : float32[5, 3; grad]):
          %0 : float32[4, 3] = wengert::mm(%x, %w)
          return (%0)
    """)
    assert gradient.df_output_vjps == [1]
    assert gradient.df_input_captured_inputs == [0]
    assert body(gradient.df) == "GradOf[_mm_left]"


def test_temporaries_become_outputs_and_get_gradients_themselves():
    gradient = both("""
        graph(%x : float32[2; grad]):
          %0 : float32[2] = wengert::exp(%x)
          %1 : float32[2] = wengert::sin(%0)
          return (%1)
    """)
    assert len(gradient.f.outputs) == 2 and gradient.f_real_outputs == 1
    assert gradient.df_input_captured_outputs == [1]
    assert gradient.df_input_vjps == [0, 1]
    assert body(gradient.df) == "GradOf[cos mul] AutogradAdd GradOf[mul]"
    # The gradient of the temporary is added to the one that arrives from behind.
    x = wengert.tensor([0.5, 1.0])
    outputs = run(gradient.f, x)
    g, extra = wengert.tensor([1.0, 1.0]), wengert.tensor([10.0, 20.0])
    (got,) = run(gradient.df, *gradient.df_inputs([x], outputs, [g, extra]))
    assert equal(got, (g * outputs[1].cos() + extra) * outputs[1])


def test_temporaries_without_gradient_get_none():
    gradient = both("""
        graph(%x : float32[2; grad], %y : float32[2; no_grad]):
          %0 : float32[2] = wengert::exp(%y)
          %1 : float32[2] = wengert::mul(%0, %x)
          return (%1)
    """)
    assert gradient.df_input_captured_outputs == [1]
    assert gradient.df_input_vjps == [0]


def test_constants_are_copied_not_captured():
    gradient = both("""
        graph(%x : float32[2; grad]):
          %c : float32[2] = prim::Constant[value=tensor(float32[2], [3.0, 4.0])]()
          %0 : float32[2] = wengert::mul(%x, %c)
          %1 : float32[2] = wengert::mul(%0, %c)
          return (%1)
    """)
    assert gradient.df_input_captured_inputs == []
    assert gradient.df_input_captured_outputs == []
    assert body(gradient.df) == "Constant GradOf[mul] GradOf[mul]"
    _, (got,) = run_gradient(gradient, [wengert.ones(2)], [wengert.ones(2)])
    assert got.tolist() == [9.0, 16.0]


# Inputs and outputs in all roles ------------------------------------------------------------------


def test_repeated_outputs():
    gradient = both("""
        graph(%x : float32[2; grad]):
          %0 : float32[2] = wengert::exp(%x)
          return (%0, %0)
    """)
    assert gradient.df_input_vjps == [0, 1]
    assert gradient.df_input_captured_outputs == [0]
    x, g = wengert.tensor([0.0, 1.0]), wengert.tensor([1.0, 2.0])
    _, (got,) = run_gradient(gradient, [x], [g, None])
    assert equal(got, g * x.exp())
    _, (got,) = run_gradient(gradient, [x], [g, g * 10])
    assert equal(got, (g + g * 10) * x.exp())


def test_outputs_that_are_inputs():
    gradient = both("""
        graph(%x : float32[2; grad], %y : float32[2; grad], %z : float32[2; no_grad]):
          %0 : float32[2] = wengert::mul(%x, %y)
          return (%x, %0, %z)
    """)
    assert gradient.df_input_vjps == [0, 1]
    assert gradient.df_output_vjps == [0, 1]
    # An output that is needed is captured as such, also if it is an input.
    assert gradient.df_input_captured_outputs == [0]
    assert gradient.df_input_captured_inputs == [1]
    x, y, g = (wengert.tensor([i, i + 1.0]) for i in range(3))
    _, got = run_gradient(gradient, [x, y, x], [g, g, None])
    assert equal(got[0], g + g * y) and equal(got[1], g * x) and got[2] is None


def test_unused_inputs_have_no_gradient():
    gradient = both("""
        graph(%x : float32[2; grad], %unused : float32[2; grad], %dead : float32[2; grad]):
          %0 : float32[2] = wengert::neg(%x)
          %1 : float32[2] = wengert::exp(%dead)
          return (%0)
    """)
    assert gradient.df_output_vjps == [0]
    assert body(gradient.f) == "neg"


def test_no_gradient_at_all():
    gradient = both("""
        graph(%x : float32[2; no_grad], %n : int64[2]):
          %0 : float32[2] = wengert::mul(%x, %n)
          return (%0, %n)
    """)
    assert gradient.df_input_vjps == [] and gradient.df_output_vjps == []
    assert run(gradient.df) == ()


def test_a_value_that_is_cut_off():
    gradient = both("""
        graph(%x : float32[2; grad]):
          %0 : float32[2; no_grad] = wengert::exp(%x)
          %1 : float32[2] = wengert::mul(%0, %x)
          return (%1)
    """)
    x, g = wengert.tensor([0.5, 1.0]), wengert.ones(2)
    _, (got,) = run_gradient(gradient, [x], [g])
    assert equal(got, x.exp())


def test_integers_stop_gradients():
    gradient = both("""
        graph(%x : float32[2, 3; grad]):
          %0 : int64[2] = wengert::argmax(%x, 1)
          %1 : int64[2, 1] = wengert::unsqueeze(%0, 1)
          %2 : float32[2, 1] = wengert::gather(%x, 1, %1)
          return (%2, %0)
    """)
    assert gradient.df_input_vjps == [0]
    assert len(gradient.f.outputs) == 3


def test_several_uses_are_added():
    gradient = both("""
        graph(%x : float32[2; grad]):
          %0 : float32[2] = wengert::mul(%x, %x)
          %1 : float32[2] = wengert::mul(%0, %x)
          return (%1)
    """)
    assert body(gradient.df).count("AutogradAdd") == 3  # two for x, one for the temporary
    x = wengert.tensor([2.0, 3.0])
    _, (got,) = run_gradient(gradient, [x], [wengert.ones(2)])
    assert got.tolist() == [12.0, 27.0]


def test_gradients_of_some_outputs_of_a_node():
    """Missing ones are zeros for the rule, those of indices are left out."""
    gradient = both("""
        graph(%x : float32[2, 3; grad]):
          %0 : float32[3], %1 : float32[3] = wengert::unbind(%x, 0)
          %2 : float32[2], %3 : int64[2] = wengert::max.dim(%x, 1)
          return (%0, %2)
    """)
    text = str(gradient.df)
    assert 'prim::GradOf[name="wengert::max.dim"](%1)' in text
    assert 'prim::AutogradZero()' in text and "prim::GradOrZero" in text
    x = wengert.arange(6.0).reshape(2, 3)
    g = wengert.tensor([1.0, 2.0, 3.0])
    _, (got,) = run_gradient(gradient, [x], [g, None])
    assert got.tolist() == [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    _, (got,) = run_gradient(gradient, [x], [None, g[:2]])
    assert got.tolist() == [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]


# Sizes --------------------------------------------------------------------------------------------


def test_sums_are_left_out_where_shapes_are_equal():
    gradient = both("""
        graph(%x : float32[2, 3; grad], %y : float32[2, 3; grad], %z : float32[3; grad]):
          %0 : float32[2, 3] = wengert::mul(%x, %y)
          %1 : float32[2, 3] = wengert::mul(%0, %z)
          return (%1)
    """)
    assert body(gradient.df).count("sum") == 1


def test_unknown_shapes_are_compared_at_run_time():
    gradient = both("""
        graph(%x : float32, %y : float32):
          %0 = wengert::mul(%x, %y)
          %1 = wengert::sum(%0)
          return (%1)
    """)
    assert body(gradient.f) == (
        "size size mul size _size_if_not_equal _size_if_not_equal sum"
    )
    assert body(gradient.df) == (
        "GradOf[expand] GradOf[mul mul _grad_sum_to_size _grad_sum_to_size]"
    )
    for shape, other in [((2, 3), (2, 3)), ((2, 3), (3,)), ((), (4,)), ((2, 1), (1, 3))]:
        x = wengert.ones(shape, requires_grad=True)
        y = wengert.full(other, 2.0, requires_grad=True)
        _, got = run_gradient(gradient, [x.detach(), y.detach()], [wengert.tensor(1.0)])
        want = wengert.autograd.grad((x * y).sum(), (x, y))
        assert all(map(equal, got, want))


def test_unknown_shapes_differentiate_again():
    gradient = both("""
        graph(%x : float32, %y : float32):
          %0 = wengert::mul(%x, %y)
          return (%0)
    """)
    second = differentiate(gradient.df)
    x, y = wengert.ones(2, 3, requires_grad=True), wengert.full((3,), 2.0, requires_grad=True)
    g = wengert.ones(2, 3, requires_grad=True)
    eager = wengert.autograd.grad(x * y, (x, y), g, create_graph=True)
    want = wengert.autograd.grad([e.sum() for e in eager], (g, x, y))
    detached = [t.detach() for t in (x, y)]
    outputs = run(gradient.f, *detached)
    given = gradient.df_inputs(detached, outputs, [g.detach()])
    _, got = run_gradient(second, given, [wengert.ones(2, 3), wengert.ones(3)])
    tensors = [t for t in got if t is not None]
    assert all(map(equal, tensors, want))


def test_sizes_that_become_known_are_folded():
    """The node is recorded for any shape since one operand is unknown; the others are known."""
    gradient = both("""
        graph(%x : float32[2, 3; grad], %y : float32[3; grad], %u : float32[...; no_grad]):
          %0 : float32[2, 3] = wengert::addcmul(%x, %y, %u)
          return (%0)
    """)
    assert "_size_if_not_equal" not in str(gradient.f)
    assert body(gradient.df) == "GradOf[mul mul _grad_sum_to_size]"
    assert ", [3])" in str(gradient.df)


def test_the_size_of_a_captured_value_is_not_captured_too():
    gradient = both("""
        graph(%x : float32[...; grad]):
          %0 = wengert::exp(%x)
          %1 = wengert::sum(%0)
          return (%1)
    """)
    assert body(gradient.f) == "exp sum"
    assert body(gradient.df) == "size GradOf[expand] AutogradAdd GradOf[mul]"
    x = wengert.ones(2, 3)
    _, (got,) = run_gradient(gradient, [x], [wengert.tensor(2.0)])
    assert equal(got, x.exp() * 2)


def test_a_size_that_is_captured_alone_stays_captured():
    gradient = both("""
        graph(%x : float32[...; grad]):
          %0 = wengert::sum(%x)
          return (%0)
    """)
    assert body(gradient.f) == "size sum"
    assert gradient.df_input_captured_outputs == [1]
    assert gradient.df_input_vjps == [0]


def test_a_size_that_the_forward_uses_too_stays_there():
    gradient = both("""
        graph(%x : float32[...; grad], %y : float32[...; no_grad]):
          %0 = wengert::exp(%x)
          %1 : List(int) = prim::size(%0)
          %2 = wengert::expand(%y, %1)
          %3 = wengert::sum(%0)
          return (%3, %2)
    """)
    assert body(gradient.f) == "exp size expand sum"
    x = wengert.ones(2, 3)
    (_, wide, *_), (got, _) = run_gradient(gradient, [x, wengert.ones(3)], [wengert.tensor(2.0)])
    assert equal(got, x.exp() * 2) and wide.shape == (2, 3)


def test_equal_values_and_constants_are_kept_once():
    gradient = both("""
        graph(%x : float32[2; grad], %y : float32[2; grad]):
          %a = prim::Constant[value=tensor(float32[2], [2.0, 3.0])]()
          %b = prim::Constant[value=tensor(float32[2], [2.0, 3.0])]()
          %0 = wengert::exp(%x)
          %1 = wengert::exp(%x)
          %2 = wengert::mul(%0, %y)
          %3 = wengert::mul(%1, %a)
          %4 = wengert::mul(%3, %b)
          return (%2, %4)
    """)
    assert body(gradient.f) == "Constant exp mul mul mul"
    assert body(gradient.df).count("Constant") == 1
    assert len(gradient.f.outputs) == 3


# Refusals -----------------------------------------------------------------------------------------


def test_the_graph_is_used_up():
    given = graph("graph(%x : float32[2]):\n  %0 = wengert::neg(%x)\n  return (%0)")
    differentiate(given.copy())
    differentiate(given)
    with pytest.raises(GraphError, match="given to differentiate and is gone"):
        differentiate(given)


def test_owned_graphs_are_refused():
    given = graph("graph(%x : float32[2]):\n  return (%x)").claim("the cache")
    with pytest.raises(GraphError, match="will mutate and destroy the graph.*'the cache'"):
        differentiate(given)
    given.lint()


@pytest.mark.parametrize(
    "text, reason",
    [
        ("%0 : float32[2] = wengert::mul(%x, %u)", "a dtype is not known"),
        ("%0 : float32[2] = wengert::add_(%x, 1)", "it writes in place"),
        (
            "%0 : float32[2], %i : int64[2], %c : int64[0] = wengert::_unique2(%x)",
            "not implemented",
        ),
        ("%0 : List(float32[2]) = prim::ListConstruct(%x)", "it is not known how"),
        ("%0 : float32 = wengert::mm(%v, %v)", "a shape is not known"),
        ("%0 : float32 = wengert::mean(%v)", "a shape is not known"),
    ],
)
def test_refusals_name_the_node_and_the_reason(text, reason):
    given = graph(
        "graph(%x : float32[2; grad], %u : Tensor, %v : float32[...; grad]):\n"
        f"  {text}\n  return (%0)"
    )
    assert not is_differentiable(given)
    assert not isDifferentiable(next(given.nodes()))
    with pytest.raises(NotDifferentiable, match=f"(?s)differentiation of .*{reason}.*in %0"):
        differentiate(given)


def test_what_is_differentiable():
    text = """
        graph(%x : float32[2; grad], %m : bool[2], %s : bool[]):
          %c = prim::Constant[value=3]()
          %0 = wengert::mul(%x, %x)
          %1 = wengert::gt(%0, 0)
          %2 = wengert::where(%1, %0, 1)
          %3 = prim::AutogradZero()
          %4 = prim::AutogradAdd(%3, %2)
          %5 = prim::profile(%4)
          %6 = prim::GradOf[name="f"](%5)
            block():
              %7 = wengert::exp(%5)
              return (%7)
          %8 = prim::DifferentiableGraph(%6)
            block(%a):
              %9 = wengert::sin(%a)
              return (%9)
          return (%8)
    """
    given = typed(text)
    assert is_differentiable(given)
    for node in given.nodes():
        assert is_differentiable(node), node
    wrong = typed(text.replace("wengert::sin(%a)", "wengert::sin_(%a)"))
    assert [n.kind for n in wrong.nodes() if not is_differentiable(n)] == [
        "prim::DifferentiableGraph"
    ]
    assert not is_differentiable(wrong)


def test_nodes_that_need_no_gradient_may_be_anything():
    gradient = both("""
        graph(%x : float32[2; grad], %y : float32[2; no_grad], %m : bool[2]):
          %0 : float32[*] = wengert::masked_select(%y, %m)
          %1 : float32[] = wengert::sum(%0)
          %2 : float32[2] = wengert::mul(%x, %1)
          return (%2)
    """)
    assert gradient.df_output_vjps == [0]


# Higher orders ------------------------------------------------------------------------------------


def power_rule(order):
    """The derivative of x**5 of some order at 2, by differentiating graphs again and again."""
    current = graph("""
        graph(%x : float64[; grad]):
          %0 : float64[] = wengert::pow(%x, 5)
          return (%0)
    """)
    x = wengert.tensor(2.0, dtype=wengert.float64)
    for _ in range(order):
        gradient = differentiate(current)
        # The next function: run f, then df with the gradient 1, all in one graph of x.
        current = Graph()
        value = current.add_input(TensorType(wengert.float64, (), True))
        outputs = current.insert_graph(gradient.f, [value])
        one = current.constant(wengert.tensor(1.0, dtype=wengert.float64))
        vjps = [one]
        for _ in outputs[1:]:
            vjps.append(current.insert("prim::AutogradZero"))
        results = current.insert_graph(
            gradient.df, gradient.df_inputs([value], outputs, vjps)
        )
        current.register_output(results[0])
        for node in current.all_nodes():
            for out in node.outputs:
                if isinstance(out.type, TensorType):
                    out.type = out.type.with_requires_grad(None)
        current.lint()
    return run(current, x)[0].item()


@pytest.mark.parametrize("order, value", [(1, 80.0), (2, 160.0), (3, 240.0), (4, 240.0)])
def test_derivatives_of_higher_order(order, value):
    assert power_rule(order) == value


def test_rules_that_need_no_further_derivative_are_shorter():
    text = """
        graph(%x : float32[2, 4; grad]):
          %0 = wengert::pow(%x, 2)
          return (%0)
    """
    once, again = both(text, once=True), both(text)
    assert len(list(once.df.all_nodes())) < len(list(again.df.all_nodes()))
    x = wengert.arange(8.0).reshape(2, 4)
    g = wengert.arange(8.0).reshape(2, 4) - 3
    for gradient in (once, again):
        _, (got,) = run_gradient(gradient, [x], [g])
        assert (got - 2 * x * g).abs().max().item() < 1e-6


def test_layer_norm_gradient_of_a_graph():
    text = """
        graph(%x : float32[2, 4; grad]):
          %0, %1, %2 = wengert::native_layer_norm(%x, [4], None, None, 1e-05)
          return (%0)
    """
    x = wengert.arange(8.0).reshape(2, 4) ** 2
    g = wengert.arange(8.0).reshape(2, 4)
    for gradient in (both(text, once=True), both(text)):
        _, (got,) = run_gradient(gradient, [x], [g])
        leaf = x.clone().requires_grad_()
        out = wengert.native_layer_norm(leaf, (4,), None, None, 1e-5)[0]
        (want,) = wengert.autograd.grad(out, leaf, g)
        assert (got - want).abs().max().item() < 1e-6


# Random programs ----------------------------------------------------------------------------------


def eager_gradients(given, inputs, vjps):
    outputs = run(given, *inputs)
    pairs = [(o, g) for o, g in zip(outputs, vjps) if o.requires_grad and g is not None]
    leaves = [x for x in inputs if x.requires_grad]
    if not pairs or not leaves:
        return [None] * len(inputs)
    found = iter(
        wengert.autograd.grad(
            [o for o, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True
        )
    )
    return [next(found) if x.requires_grad else None for x in inputs]


@pytest.mark.wide
@settings(deadline=None, max_examples=tries(300))
@given(programs(grad=True), st.integers(0, 7), st.booleans())
def test_random_programs(given, missing, optimised):
    """Gradients equal those of eager autograd, whatever is required, repeated or undefined."""
    inputs = inputs_for(given)
    outputs = run(given, *inputs)
    vjps = [
        None if missing >> i & 1 else wengert.ones_like(o) * (i + 0.5)
        for i, o in enumerate(outputs)
    ]
    want = eager_gradients(given, inputs, vjps)
    gradient = differentiate(given)
    gradient.f.lint()
    gradient.df.lint()
    given_inputs = [x.detach() for x in inputs]
    if optimised:
        known = {i for i, g in enumerate(vjps) if g is not None}
        undefined = [i for i, o in enumerate(gradient.df_input_vjps) if o not in known]
        passes.specialize_zeros(gradient.df, undefined)
        for transform in (
            passes.peephole, passes.fold_constants, passes.eliminate_common_subexpressions,
            passes.eliminate_dead_code, passes.canonicalize,
        ):  # fmt: skip
            transform(gradient.df).lint()
    values, got = run_gradient(gradient, given_inputs, vjps)
    assert all(map(equal, values, [o.detach() for o in outputs]))
    for mine, other in zip(got, want, strict=True):
        if mine is None or other is None:
            assert mine is None or not mine.any()
            assert other is None or not other.any()
        else:
            assert mine.shape == other.shape and mine.dtype is other.dtype
            np.testing.assert_allclose(mine.numpy(), other.numpy(), 1e-9, 1e-9)


# Size ---------------------------------------------------------------------------------------------


def chain(length):
    given = Graph()
    t = TensorType(wengert.float32, (4, 5), True)
    x, y = given.add_input(t), given.add_input(t)
    kinds = ["mul", "add", "tanh", "mul", "sub", "exp", "div"]
    for i in range(length):
        kind = kinds[i % len(kinds)]
        operands = (x,) if kind in ("tanh", "exp") else (x, y)
        x = given.insert(f"wengert::{kind}", *operands)
    given.register_output(x)
    return given


def test_work_grows_in_proportion_to_the_graph():
    differentiate(chain(100))  # records the rules
    small = lines_run(differentiate, chain(250))
    large = lines_run(differentiate, chain(1_000))
    # Proportional work is 4 times as much, quadratic work 16 times.
    assert large <= 6 * small


@pytest.mark.slow
def test_ten_thousand_nodes():
    gradient = differentiate(chain(10_000))
    assert len(list(gradient.df.nodes())) > 10_000


def test_rules_are_recorded_once():
    differentiate(chain(50))
    before = len(symbolic._rules)
    differentiate(chain(500))
    assert len(symbolic._rules) == before


def test_deep_graphs_do_not_recurse():
    gradient = differentiate(chain(3000))
    x = wengert.ones(4, 5) * 0.1
    _, got = run_gradient(gradient, [x, x], [wengert.ones(4, 5)])
    assert got[0] is not None
    assert accumulate(None, got[0]) is got[0]


def test_parse_and_differentiate_text_of_a_gradient():
    """What is printed of a gradient can be read, differentiated and run."""
    gradient = both("""
        graph(%x : float32[2; grad], %y : float32[2; grad]):
          %0 : float32[2] = wengert::mul(%x, %y)
          %1 : float32[2] = wengert::tanh(%0)
          return (%1)
    """)
    again = parse(str(gradient.df))
    assert str(again) == str(gradient.df)
    second = differentiate(again)
    second.df.lint()


# Both in one graph --------------------------------------------------------------------------------


def test_the_joint_graph():
    text = """
        graph(%x : float32[2; grad], %y : float32[2; no_grad]):
          %0 : float32[2] = wengert::exp(%x)
          %1 : float32[2; no_grad] = wengert::sin(%0)
          %2 : float32[2] = wengert::mul(%0, %1)
          %3 : float32[2] = wengert::mul(%2, %y)
          return (%3, %y)
    """
    joint = joint_graph(both(text))
    joint.lint()
    assert len(joint.inputs) == 3 and len(joint.outputs) == 3
    x, y, g = (wengert.tensor([i, 1.0]) for i in (0.5, 2.0, 3.0))
    out, again, dx = run(joint, x, y, g)
    assert equal(out, x.exp() * x.exp().sin() * y) and again is y
    assert equal(dx, g * y * x.exp().sin() * x.exp())
    # What was cut off stays so, what was not is open again.
    sine = next(node for node in joint.nodes() if node.kind == "wengert::sin")
    assert str(sine.output.type) == "float32[2; no_grad]"
    assert str(joint.inputs[1].type) == "float32[2; no_grad]"
    second = differentiate(joint)
    assert second.df_output_vjps == [0, 2]
