"""Gradients through branches, maps, scans and loops, against the same written out in Python."""

import numpy as np
import pytest

import wengert
from compiler.support import accumulate, graph, run_gradient
from wengert.compiler import NotDifferentiable, differentiate, is_differentiable, run
from wengert.compiler.passes import propagate_requires_grad, propagate_shapes
from wengert.compiler.passes.rematerialize import Policy


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return wengert.tensor(values, requires_grad=True)


def check(text, function, inputs, order=2):
    """First and second derivatives of a graph are those of a function, the first ones also where a
    graph is differentiated once."""
    gradient = differentiate(graph(text))
    gradient.f.lint()
    gradient.df.lint()
    leaves = [x for x in inputs if isinstance(x, wengert.Tensor) and x.requires_grad]
    outputs = function(*inputs)
    weights = [wengert.ones_like(o) * (i + 1.0) for i, o in enumerate(outputs)]
    want = wengert.autograd.grad(
        outputs, leaves, weights, create_graph=True, allow_unused=True
    )
    detached = [x.detach() if isinstance(x, wengert.Tensor) else x for x in inputs]

    def check_first(gradient):
        values, found = run_gradient(gradient, detached, weights)
        for mine, other in zip(values, outputs):
            np.testing.assert_allclose(mine.numpy(), other.detach().numpy())
        got = [
            g for x, g in zip(inputs, found) if isinstance(x, wengert.Tensor) and x.requires_grad
        ]
        for mine, other in zip(got, want, strict=True):
            np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), atol=1e-12)
        return values

    for policy in (None, Policy()):
        check_first(differentiated_once(text, policy))
    values = check_first(gradient)
    if order == 1:
        return gradient
    # The second derivatives: through df by differentiating it, through f by running df again.
    given = gradient.df_inputs(detached, values, weights)
    second = differentiate(
        gradient.df.copy(), [i for i, value in enumerate(given) if value is None]
    )
    second.df.lint()
    ones = [wengert.ones_like(g) for g in want]
    _, back = run_gradient(second, given, ones)
    first = len(gradient.df_input_vjps)
    captured = gradient.df_input_captured_inputs
    total = [None] * len(inputs)
    for i, g in zip(captured, back[first:]):
        total[i] = accumulate(total[i], g)
    of_outputs = [None] * len(values)
    for i, g in zip(gradient.df_input_captured_outputs, back[first + len(captured) :]):
        of_outputs[i] = accumulate(of_outputs[i], g)
    through = run(gradient.df, *gradient.df_inputs(detached, values, of_outputs))
    for i, g in zip(gradient.df_output_vjps, through):
        total[i] = accumulate(total[i], g)
    targets = [g for g in want if g.requires_grad]
    expected = wengert.autograd.grad(
        targets, leaves, [wengert.ones_like(g) for g in targets], allow_unused=True
    )
    mine = [g for x, g in zip(inputs, total) if isinstance(x, wengert.Tensor) and x.requires_grad]
    for a, b, x in zip(mine, expected, leaves, strict=True):
        a, b = (wengert.zeros_like(x) if g is None else g for g in (a, b))
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), atol=1e-12)
    return gradient


def differentiated_once(text, policy=None):
    gradient = differentiate(graph(text), once=True, recompute=policy)
    gradient.f.lint()
    gradient.df.lint()
    return gradient


COND = """
    graph(%p : bool[], %x : float64[3; grad], %y : float64[3; grad]):
      %0, %1 = prim::cond(%p, %x, %y)
        block(%a, %b):
          %2 = wengert::mul(%a, %b)
          %3 = wengert::tanh(%2)
          return (%3, %a)
        block(%c, %d):
          %4 = wengert::exp(%c)
          return (%4, %c)
      return (%0, %1)
"""


@pytest.mark.parametrize("truth", [True, False])
def test_cond(truth):
    def function(p, x, y):
        return ((x * y).tanh(), x * 1) if p else (x.exp() + 0 * y, x * 1)

    gradient = check(COND, function, [wengert.tensor(truth), leaf(3), leaf(3, seed=1)])
    assert "prim::cond" in str(gradient.df)


def test_cond_of_which_one_branch_has_no_gradient():
    text = """
        graph(%p : bool[], %x : float64[3; grad]):
          %0 = prim::cond(%p, %x)
            block(%a):
              %1 = prim::full([3], 2.0, float64)
              return (%1)
            block(%c):
              %2 = wengert::square(%c)
              return (%2)
          return (%0)
    """
    for truth in (True, False):
        check(
            text,
            lambda p, x: (x * 0 + 2 if p else x * x,),
            [wengert.tensor(truth), leaf(3)],
        )


MAP = """
    graph(%xs : float64[4, 3; grad], %ns : int64[4], %w : float64[3; grad]):
      %0, %1 = prim::map[mapped=2](%xs, %ns, %w)
        block(%x, %n, %v):
          %2 = wengert::mul(%x, %v)
          %3 = wengert::mul(%2, %n)
          %4 = wengert::sin(%3)
          %5 = wengert::sum(%4)
          return (%4, %5)
      return (%0, %1)
"""


def test_map():
    def function(xs, ns, w):
        rows = [(xs[i] * w * ns[i]).sin() for i in range(4)]
        return wengert.stack(rows), wengert.stack([row.sum() for row in rows])

    check(MAP, function, [leaf(4, 3), wengert.arange(4), leaf(3, seed=1)])


SCAN = """
    graph(%h : float64[3; grad], %n : int64[], %xs : float64[4, 3; grad], %w : float64[3; grad]):
      %0, %1, %2 = prim::scan[carried=2, mapped=1, reverse={reverse}](%h, %n, %xs, %w)
        block(%a, %k, %x, %v):
          %3 = wengert::mul(%a, %v)
          %4 = wengert::add(%3, %x)
          %5 = wengert::tanh(%4)
          %6 = wengert::mul(%5, %k)
          %7 = wengert::add(%k, 1)
          return (%5, %7, %6)
      return (%0, %2)
"""


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse):
    def function(h, n, xs, w):
        seen = []
        for i in range(3, -1, -1) if reverse else range(4):
            h = (h * w + xs[i]).tanh()
            seen.append(h * n)
            n = n + 1
        return h, wengert.stack(seen[::-1] if reverse else seen)

    inputs = [leaf(3), wengert.tensor(1), leaf(4, 3, seed=1), leaf(3, seed=2)]
    gradient = check(SCAN.format(reverse=reverse), function, inputs)
    assert str(gradient.df).count("= prim::scan") == 2


def test_loops_keep_what_their_reverse_reads():
    """Each round runs once where nothing is differentiated again, but for what costs little."""
    everything = differentiated_once(SCAN.format(reverse=False))
    assert str(everything.df).count("= prim::scan") == 1
    assert "wengert::tanh" not in str(everything.df) and "wengert::tanh" in str(everything.f)
    mapped = differentiated_once(MAP)
    assert "wengert::sin" not in str(mapped.df) and "wengert::sin" in str(mapped.f)
    # A product is kept, and the square of it computed again.
    text = """
        graph(%h : float64[3; grad], %xs : float64[4, 3, 3; grad]):
          %0 = prim::scan[carried=1, mapped=1, reverse=False](%h, %xs)
            block(%a, %x):
              %1 = wengert::mv(%x, %a)
              %2 = wengert::square(%1)
              %3 = wengert::sin(%2)
              return (%3)
          return (%0)
    """

    def function(h, xs):
        for x in xs:
            h = (x @ h).square().sin()
        return (h,)

    check(text, function, [leaf(3), leaf(4, 3, 3, seed=1)])
    cheapest = differentiated_once(text, Policy())
    assert str(cheapest.df).count("= prim::scan") == 1
    assert str(cheapest.df).count("wengert::mv(") == 1  # that of a gradient
    assert "wengert::square" in str(cheapest.df)


def test_loops_do_not_keep_what_is_the_same_in_all_rounds():
    text = """
        graph(%h : float64[3; grad], %xs : float64[4, 3; grad], %w : float64[3, 3; grad]):
          %0 = prim::scan[carried=1, mapped=1, reverse=False](%h, %xs, %w)
            block(%a, %x, %v):
              %1 = wengert::mm(%v, %v)
              %2 = wengert::mv(%1, %a)
              %3 = wengert::mul(%2, %x)
              return (%3)
          return (%0)
    """

    def function(h, xs, w):
        for x in xs:
            h = w @ w @ h * x
        return (h,)

    check(text, function, [leaf(3), leaf(4, 3, seed=1), leaf(3, 3, seed=2)])
    assert "float64[4, 3, 3" not in str(differentiated_once(text, Policy()).f)


def test_loops_in_loops_keep_what_is_inside():
    text = """
        graph(%h : float64[3; grad], %xs : float64[2, 4, 3; grad], %w : float64[3; grad]):
          %0, %1 = prim::scan[carried=1, mapped=1, reverse=False](%h, %xs, %w)
            block(%a, %x, %v):
              %2, %3 = prim::scan[carried=1, mapped=1, reverse=True](%a, %x, %v)
                block(%b, %y, %u):
                  %4 = wengert::mul(%b, %u)
                  %5 = wengert::add(%4, %y)
                  %6 = wengert::tanh(%5)
                  return (%6, %6)
              return (%2, %3)
          return (%0, %1)
    """

    def function(h, xs, w):
        rows = []
        for x in xs:
            seen = []
            for y in reversed(x):
                h = (h * w + y).tanh()
                seen.append(h)
            rows.append(wengert.stack(seen[::-1]))
        return h, wengert.stack(rows)

    check(text, function, [leaf(3), leaf(2, 4, 3, seed=1), leaf(3, seed=2)])
    gradient = differentiated_once(text)
    assert "wengert::tanh" not in str(gradient.df)
    assert "float64[2, 4, 3" in str(gradient.f)


def test_scan_whose_carried_value_does_not_depend_on_itself():
    text = """
        graph(%h : float64[; grad], %xs : float64[4; grad]):
          %0, %1 = prim::scan[carried=1, mapped=1, reverse=False](%h, %xs)
            block(%a, %x):
              %2 = wengert::square(%x)
              %3 = wengert::mul(%a, %x)
              return (%2, %3)
          return (%0, %1)
    """

    def function(h, xs):
        seen = []
        for x in xs:
            seen.append(h * x)
            h = x * x
        return h, wengert.stack(seen)

    check(text, function, [leaf(), leaf(4, seed=1)])


WHILE = """
    graph(%x : float64[3; grad], %n : int64[], %w : float64[3; grad]):
      %0, %1 = prim::while(%x, %n, %w)
        block(%a, %b, %c):
          %2 = wengert::lt(%b, 4)
          return (%2)
        block(%d, %e, %f):
          %3 = wengert::mul(%d, %f)
          %4 = wengert::sin(%3)
          %5 = wengert::add(%e, 1)
          return (%4, %5)
      return (%0)
"""


@pytest.mark.parametrize("start", [0, 3, 7])
def test_while(start):
    def function(x, n, w):
        for _ in range(n.item(), 4):
            x = (x * w).sin()
        return (x + 0 * w,)

    check(WHILE, function, [leaf(3), wengert.tensor(start), leaf(3, seed=1)])


def test_rounds_of_a_loop():
    text = """
        graph(%x : float64[3; grad], %n : int64[], %w : float64[3; grad]):
          %0, %1 = prim::rounds(%x, %n, %w)
            block(%a, %b, %c):
              %2 = wengert::lt(%b, 4)
              return (%2)
            block(%d, %e, %f):
              %3 = wengert::mul(%d, %f)
              %4 = wengert::sin(%3)
              %5 = wengert::add(%e, 1)
              return (%4, %5)
          return (%0)
    """

    def function(x, n, w):
        found = [x]
        for _ in range(n.item(), 3):
            found.append((found[-1] * w).sin())
        return (wengert.stack(found) + 0 * w,)

    for start in (0, 3):
        check(text, function, [leaf(3), wengert.tensor(start), leaf(3, seed=1)])
    shapes = propagate_shapes(graph(text))
    assert [str(value.type) for value in next(shapes.nodes()).outputs] == [
        "float64[*, 3]", "int64[*]",
    ]  # fmt: skip
    (nothing,) = run(shapes, leaf(3).detach(), wengert.tensor(9), leaf(3).detach())
    assert nothing.shape == (0, 3)


def test_nested_control_flow():
    text = """
        graph(%xs : float64[4, 3; grad], %h : float64[3; grad]):
          %0 = prim::scan[carried=1, mapped=1, reverse=False](%h, %xs)
            block(%a, %x):
              %1 = wengert::sum(%a)
              %2 = wengert::gt(%1, 0)
              %3 = prim::cond(%2, %a, %x)
                block(%b, %c):
                  %4 = wengert::mul(%b, %c)
                  return (%4)
                block(%d, %e):
                  %5 = wengert::sub(%d, %e)
                  %6 = wengert::sin(%5)
                  return (%6)
              return (%3)
          return (%0)
    """

    def function(xs, h):
        for x in xs:
            h = h * x if h.sum() > 0 else (h - x).sin()
        return (h,)

    check(text, function, [leaf(4, 3), leaf(3, seed=1)])


def typed_node(text):
    given = propagate_requires_grad(propagate_shapes(graph(text)))
    return next(node for node in given.nodes() if node.blocks)


@pytest.mark.parametrize(
    "text, reason",
    [
        (COND.replace("wengert::exp(%c)", "wengert::mul(%c, %x)"), "a value from outside"),
        (
            COND.replace("wengert::exp(%c)", "wengert::exp_(%c)"),
            "wengert::exp_ inside it: it writes in place",
        ),
        (COND.replace("%x : float64[3; grad]", "%x : float64[*; grad]"), "shape in a block"),
    ],
)
def test_refusals(text, reason):
    assert not is_differentiable(typed_node(text))
    with pytest.raises(NotDifferentiable, match=reason):
        differentiate(graph(text))


@pytest.mark.parametrize("text", [COND, MAP, SCAN.format(reverse=False), WHILE])
def test_control_flow_is_differentiable(text):
    assert is_differentiable(typed_node(text))


def test_values_from_outside_without_gradient_are_fine():
    text = """
        graph(%p : bool[], %x : float64[3; grad], %y : float64[3; no_grad]):
          %0 = prim::cond(%p, %x)
            block(%a):
              %1 = wengert::mul(%a, %y)
              return (%1)
            block(%c):
              return (%c)
          return (%0)
    """
    y = leaf(3, seed=1).detach()
    for truth in (True, False):
        check(
            text,
            lambda p, x, y: (x * y if p else x * 1,),
            [wengert.tensor(truth), leaf(3), y],
        )
