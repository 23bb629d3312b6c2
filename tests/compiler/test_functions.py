"""Custom autograd Functions inside traced functions: their derivative is their own."""

import pytest

import wengert
from wengert import compiler
from wengert.autograd import Function
from wengert.autograd.function import once_differentiable
from wengert.compiler import (
    GraphError,
    NotDifferentiable,
    Program,
    cond,
    differentiate,
    joint_graph,
    parse,
    run,
    scan,
    trace,
)
from wengert.compiler.passes import (
    Policy,
    canonicalize,
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    inline,
    peephole,
    pool_constants,
    propagate_requires_grad,
    propagate_shapes,
)

X = wengert.linspace(-1, 1, 6, dtype=wengert.float64).reshape(2, 3)
SCALE = wengert.tensor(2.0, dtype=wengert.float64)


class Rounded(Function):
    """Rounds, with a derivative that pretends otherwise."""

    @staticmethod
    def forward(ctx, x, digits):
        ctx.save_for_backward(x)
        ctx.digits = digits
        return x.round(decimals=digits)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * x * ctx.digits, None


class SavesResult(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * out * 3


class SavesIntermediate(Function):
    @staticmethod
    def forward(ctx, x, y):
        inner = (x * y).sin()
        ctx.save_for_backward(inner, y)
        ctx.mark_non_differentiable(order := x.argsort(-1))
        return inner * SCALE, order, x + y

    @staticmethod
    def backward(ctx, g, _, h):
        inner, y = ctx.saved_tensors
        return g * inner * y * SCALE, h * 5


class Masked(Function):
    @staticmethod
    def forward(ctx, x):
        mask = wengert.rand_like(x) > 0.5
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def derivatives(function, *inputs):
    wengert.manual_seed(1)
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    value = function(*leaves)
    first = wengert.autograd.grad(value, leaves, create_graph=True, allow_unused=True)
    known = [g for g in first if g is not None and g.requires_grad]
    second = [None] * len(leaves)
    if known:
        total = sum((g * g).sum() for g in known)
        second = wengert.autograd.grad(total, leaves, allow_unused=True)
    return [value.detach(), *first, *second]


def check(function, *inputs):
    """Compiled, and as a graph that the interpreter runs and autograd records, it is the same."""
    expected = derivatives(function, *inputs)
    compiled = wengert.compile(function)
    traced = trace(function, *[x.detach().clone().requires_grad_() for x in inputs])
    for way in (compiled, traced):
        for mine, its in zip(derivatives(way, *inputs), expected, strict=True):
            mine, its = (wengert.zeros_like(X) if g is None else g for g in (mine, its))
            assert wengert.allclose(mine.sum(), its.sum()) and wengert.allclose(mine, its)
    graph = compiled.compilations[0].traced.graph
    graph.lint()
    return graph


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (Rounded.apply(x * 2, 1) * x).sum(),
        lambda x: (SavesResult.apply(x) * x).sum(),
        lambda x: SavesResult.apply(SavesResult.apply(x)).sum(),
        lambda x: (SavesResult.apply(x).detach() * x).sum(),
    ],
)
def test_one_input(function):
    assert "prim::Function" in str(check(function, X))


def test_several_results_and_what_is_captured():
    def function(x, y):
        a, order, b = SavesIntermediate.apply(x, y)
        return (a * b * order).sum()

    graph = check(function, X, X + 2)
    (node,) = [node for node in graph.nodes() if node.kind == "prim::Function"]
    assert len(node.outputs) == 4 and len(node.inputs) == 3  # one value kept, one tensor captured
    SCALE.mul_(2)
    check(function, X, X + 2)
    SCALE.div_(2)


def test_some_inputs_require_no_gradient():
    def function(x):
        return SavesIntermediate.apply(x, X + 2)[0].sum()

    check(function, X)


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Turned(Function):
    @staticmethod
    def forward(ctx, x):
        return x.t()

    @staticmethod
    def backward(ctx, g):
        return g.t() * 3


class NotOnlyTensors(Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x, None)
        return n, x * n, None, "text"

    @staticmethod
    def backward(ctx, _, g, *others):
        x, nothing = ctx.saved_tensors
        assert nothing is None
        return g * x * x, None


class Nowhere(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return None


class Nested(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return SavesResult.apply(x) * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * SavesResult.apply(x)


class KeepsAttribute(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.sine = x.sin()
        ctx.set_materialize_grads(False)
        return x * 2, x.exp()

    @staticmethod
    def backward(ctx, g, h):
        if g is None or h is None:
            return g * ctx.sine if h is None else h * 3
        return g * ctx.sine + h * 3


class OneResultTwice(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        return y, y

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 5


class OnlyIndices(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(order := x.argsort())
        return order

    @staticmethod
    def backward(ctx, g):
        raise AssertionError("no gradient gets here")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: Same.apply(x) * x,
        lambda x: Same.apply(x * 2) * x,
        lambda x: Turned.apply(x) * x.t(),
        lambda x: NotOnlyTensors.apply(x, 3)[1],
        lambda x: Nowhere.apply(x) * x,
        lambda x: Nested.apply(x) * x,
        lambda x: KeepsAttribute.apply(x)[0] * x,
        lambda x: KeepsAttribute.apply(x)[1] * x,
        lambda x: KeepsAttribute.apply(x)[0] * KeepsAttribute.apply(x)[1],
        lambda x: OneResultTwice.apply(x)[0] * OneResultTwice.apply(x)[1] * x,
        lambda x: OnlyIndices.apply(x) * x,
        lambda x: cond(x.sum() < 9, lambda x: Nested.apply(x) * x, lambda x: x * 1, (x,)),
        lambda x: scan(lambda c, x: (Nested.apply(c * x), c * 1), x[0], x)[0],
        lambda x: compiler.map(lambda row: Rounded.apply(row, 1), x),
    ],
)
def test_all_kinds_of_functions(function):
    check(lambda x: function(x).sum(), X)


def test_what_backward_does_not_need_may_be_changed():
    def function(x):
        y = x * 1
        rounded, order, total = SavesIntermediate.apply(y, X + 2)
        rounded.mul_(2)
        y.add_(1)
        (g,) = wengert.autograd.grad((rounded * order).sum(), x, create_graph=True)
        return (g * total * rounded).sum()

    check(function, X)


def test_strides_of_results_are_known():
    def function(x):
        turned = Turned.apply(x) * 1
        return turned.sum(), Turned.apply(x).stride(), turned.stride(), turned.is_contiguous()

    x = X.clone().requires_grad_()
    assert wengert.compile(function, fullgraph=True)(x)[1:] == function(x)[1:]
    check(lambda x: function(x)[0], X)


def test_draws_are_kept():
    check(lambda x: (Masked.apply(x) * x).sum(), X)


def test_gradients_taken_inside():
    def function(x):
        y = Rounded.apply(x * 2, 1).sum()
        (g,) = wengert.autograd.grad(y, x, create_graph=True)
        return (g * x).sum()

    check(function, X)
    check(lambda x: (wengert.func.grad(lambda x: SavesResult.apply(x).sum())(x) * x).sum(), X)


def test_without_gradients_only_the_forward_is_there():
    kinds = [n.kind for n in trace(lambda x: SavesResult.apply(x), X).graph.nodes()]
    assert "prim::Function" not in kinds
    with wengert.no_grad():
        compiled = wengert.compile(lambda x: SavesResult.apply(x))
        assert wengert.allclose(compiled(X.clone().requires_grad_()), X.exp())

    def partly(x):
        with wengert.no_grad():
            y = SavesResult.apply(x)
        return (y * x).sum()

    check(partly, X)


def test_text_round_trip():
    graph = trace(lambda x: Rounded.apply(x, 1), X.clone().requires_grad_()).graph
    assert str(parse(str(graph))) == str(graph)
    assert "round" not in str(differentiate(parse(str(graph))).df)


def test_missing_gradients_are_zeros():
    def function(x):
        a, _, b = SavesIntermediate.apply(x, X + 2)
        return a.sum()

    check(function, X)


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


@pytest.mark.parametrize(
    "way", [lambda f: f, wengert.compile, lambda f: trace(f, X.clone().requires_grad_())]
)
def test_once_differentiable(way):
    """As in eager mode, an error comes where a gradient gets to the marked backward."""
    x = X.clone().requires_grad_()
    alone = way(lambda x: Once.apply(x).sum())
    (g,) = wengert.autograd.grad(alone(x), x, create_graph=True)
    assert wengert.allclose(g, 2 * X) and not g.requires_grad
    among_others = way(lambda x: (Once.apply(x) * x).sum())
    (g,) = wengert.autograd.grad(among_others(x), x, create_graph=True)
    assert wengert.allclose(g, 3 * X * X)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.sum().backward()


def test_once_differentiable_graphs():
    graph = trace(lambda x: Once.apply(x) * x, X.clone().requires_grad_()).graph
    graph.lint()
    assert str(parse(str(graph))) == str(graph)
    joint = joint_graph(differentiate(graph), values=False)
    joint.lint()
    with pytest.raises(NotDifferentiable, match="is marked with once_differentiable"):
        differentiate(joint)


def test_passes_leave_both_blocks_whole():
    text = """
        graph(%x : float64[2; grad]):
          %c : float64[] = prim::Constant[value=tensor(float64[], [2.0])]()
          %0 : float64[2] = wengert::mul(%x, %c)
          %1 : float64[2], %2 : float64[2] = prim::Function[name="F", differentiable=[0], gradients=[0]](%0)
            block(%y : float64[2]):
              %3 : float64[] = prim::Constant[value=tensor(float64[], [2.0])]()
              %4 : float64[2] = wengert::mul(%y, %3)
              %5 : float64[2] = wengert::sin(%y)
              return (%4, %5)
            block(%y : float64[2], %a : float64[2], %s : float64[2], %g : float64[2]):
              %6 : float64[] = prim::Constant[value=tensor(float64[], [2.0])]()
              %7 : float64[2] = wengert::mul(%s, %6)
              %8 : float64[2] = wengert::mul(%g, %7)
              return (%8)
          return (%1)
    """  # noqa: E501
    x = wengert.tensor([0.5, 1.0], dtype=wengert.float64)
    expected = 2 * (2 * (2 * x).sin())
    for change in (
        lambda graph: graph, pool_constants, fold_constants, eliminate_common_subexpressions,
        eliminate_dead_code, canonicalize, propagate_shapes, peephole, inline,
        propagate_requires_grad,
    ):  # fmt: skip
        graph = change(parse(text))
        graph.lint()
        graph = parse(str(graph))
        kinds = [node.kind for node in graph.nodes()]
        assert "prim::Function" in kinds
        leaf = x.clone().requires_grad_()
        (out,) = Program(graph)(leaf)
        assert wengert.allclose(out, 4 * x)
        assert wengert.allclose(wengert.autograd.grad(out.sum(), leaf)[0], expected)
        gradient = differentiate(graph, recompute=Policy())
        outputs = run(gradient.f, x)
        inputs = gradient.df_inputs([x], outputs, [wengert.ones(2, dtype=wengert.float64)])
        assert wengert.allclose(run(gradient.df, *inputs)[0], expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(%4)", "(%4, %4)", "returns 2 values for 1 outputs"),
        ("differentiable=[0]", "differentiable=[1]", "not all of .* are outputs"),
        ("gradients=[0]", "gradients=[2]", "not all of .* are inputs"),
        ("block(%y : float64[2]):", "block():", "the first block takes 0 values"),
        ("%a : float64[2], %g", "%g", "the second block takes 2 values, not 3"),
        ("(%8)", "()", "the second block returns 0 values, not 1"),
    ],
)
def test_lint(old, new, message):
    text = """
        graph(%x : float64[2]):
          %1 : float64[2] = prim::Function[name="F", differentiable=[0], gradients=[0]](%x)
            block(%y : float64[2]):
              %4 : float64[2] = wengert::sin(%x)
              return (%4)
            block(%y : float64[2], %a : float64[2], %g : float64[2]):
              %8 : float64[2] = wengert::neg(%g)
              return (%8)
          return (%1)
    """
    parse(text).lint()
    with pytest.raises(GraphError, match=message):
        parse(text.replace(old, new)).lint()


def test_changes_in_place_are_refused():
    class Changes(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    compiled = wengert.compile(lambda x: Changes.apply(x * 1).sum(), fullgraph=True)
    with pytest.raises(RuntimeError, match="changes a tensor in place"):
        compiled(X.clone().requires_grad_())


def test_reentrant_checkpoints():
    from wengert.utils.checkpoint import checkpoint

    def function(x):
        return checkpoint(lambda x: (x.sin() * x).exp(), x, use_reentrant=True).sum()

    x = X.clone().requires_grad_()
    (g,) = wengert.autograd.grad(wengert.compile(lambda x: (x.sin() * x).exp().sum())(x), x)
    wengert.compile(function)(x).backward()
    assert wengert.allclose(x.grad, g)
