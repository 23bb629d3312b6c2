"""Batch rules of custom operators; what has `lib` runs on PyTorch too."""

import pytest

import wengert
from library.support import make


@pytest.fixture
def x(lib):
    return lib.arange(6.0).reshape(3, 2)


def test_a_rule(lib, define, x):
    seen = []
    operator = define("(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y)

    @operator.register_vmap
    def _(info, in_dims, x, y):
        seen.append((info.batch_size, info.randomness, in_dims))
        return operator(x, y), 0

    y = lib.tensor([1.0, 10.0])
    assert lib.vmap(operator, in_dims=(0, None))(x, y).tolist() == (x * y).tolist()
    assert lib.vmap(operator, randomness="same")(x, x).tolist() == (x * x).tolist()
    assert seen == [(3, "error", (0, None)), (3, "same", (0, 0))]


def test_dimensions_may_stay_where_they_are(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_vmap(lambda info, in_dims, x: (operator(x), in_dims[0]))
    assert lib.vmap(operator, in_dims=1)(x).tolist() == (x.T * 2).tolist()
    assert lib.vmap(lib.vmap(operator))(x).tolist() == (x * 2).tolist()


def test_a_result_may_be_the_same_for_all(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_vmap(lambda info, in_dims, x: (operator(x[0]), None))
    assert lib.vmap(operator)(x).tolist() == [[0.0, 2.0]] * 3


def test_lists_and_keywords(lib, define, x):
    seen = []
    operator = define(
        "(Tensor x, Tensor[] ys, int k, *, float f) -> (Tensor, Tensor[])",
        lambda x, ys, k, *, f: (x * k * f, [y + 1 for y in ys]),
    )

    @operator.register_vmap
    def _(info, in_dims, x, ys, k, *, f):
        seen.append((in_dims, k, f))
        first, rest = operator(x, ys, k, f=f)
        return (first, rest), (in_dims[0], in_dims[1])

    shared = lib.ones(2)
    first, second, third = lib.vmap(
        lambda x, y: (lambda out: (out[0], *out[1]))(operator(x, [y, shared], 2, f=1.5))
    )(x, x)
    assert first.tolist() == (x * 3).tolist()
    assert second.tolist() == (x + 1).tolist()
    assert third.tolist() == [[2.0, 2.0]] * 3
    assert seen == [((0, [0, None], None), 2, 1.5)]


def test_one_dimension_for_all_results(lib, define, x):
    operator = define("(Tensor x) -> (Tensor, Tensor[])", lambda x: (x * 2, [x * 3, x * 4]))
    operator.register_vmap(lambda info, in_dims, x: (operator(x), 0))
    assert lib.vmap(lambda x: operator(x)[1][1])(x).tolist() == (x * 4).tolist()


def test_unbatched_calls_need_no_rule(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_vmap(lambda info, in_dims, x: 1 / 0)
    assert lib.vmap(lambda y: operator(x) + y)(lib.zeros(2)).shape == (2, 3, 2)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda out: out, "to have two returns, an output and out_dims"),
        (lambda out: (out, (0, 0)), r"returned an incompatible \(output, out_dims\) tuple"),
    ],
)
def test_wrong_rules(lib, define, x, returned, message):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_vmap(lambda info, in_dims, x: returned(operator(x)))
    with pytest.raises(RuntimeError, match=message):
        lib.vmap(operator)(x)


def test_a_later_rule_replaces_the_first(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_vmap()(lambda info, in_dims, x: (operator(x) * 0, 0))
    lib.library.register_vmap(operator._qualname, lambda info, in_dims, x: (operator(x), 0))
    assert lib.vmap(operator)(x).tolist() == (x * 2).tolist()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_without_rule_examples_come_one_by_one(lib, define, x):
    shapes = []
    operator = define("(Tensor x) -> Tensor", lambda x: shapes.append(tuple(x.shape)) or x * 2)
    assert lib.vmap(operator)(x).tolist() == (x * 2).tolist()
    assert shapes == [(2,)] * 3


def test_batched_calls_are_recorded(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_autograd(lambda ctx, grad: grad * 2)
    operator.register_vmap(lambda info, in_dims, x: (operator(x), in_dims[0]))
    x.requires_grad_()
    lib.vmap(operator)(x).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0]] * 3


# Ours alone --------------------------------------------------------------------------------------


@pytest.fixture
def square():
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    operator = make("(Tensor x) -> Tensor", lambda x: x * x)
    operator.register_autograd(
        lambda ctx, grad: grad * 2 * ctx.saved_tensors[0], setup_context=setup_context
    )
    operator.register_jvp(lambda ctx, tangent: tangent * 2 * ctx.saved_tensors[0])
    operator.register_vmap(lambda info, in_dims, x: (operator(x), in_dims[0]))
    return operator


def test_transforms_nest(square):
    from wengert.func import grad, hessian, jacfwd, jacrev, jvp, vmap

    x = wengert.tensor([1.0, 2.0], dtype=wengert.float64)
    batch = wengert.arange(6.0, dtype=wengert.float64).reshape(3, 2)

    def total(x):
        return (square(x) * square(x)).sum()

    assert grad(total)(x).tolist() == (4 * x**3).tolist()
    assert vmap(grad(total))(batch).tolist() == (4 * batch**3).tolist()
    assert grad(lambda b: vmap(square)(b).sum())(batch).tolist() == (2 * batch).tolist()
    assert grad(lambda x: grad(total)(x).sum())(x).tolist() == (12 * x**2).tolist()
    assert hessian(total)(x).tolist() == (12 * x**2).diag().tolist()
    assert jacfwd(square)(x).tolist() == jacrev(square)(x).tolist() == (2 * x).diag().tolist()
    primal, tangent = jvp(square, (x,), (wengert.ones(2, dtype=wengert.float64),))
    assert (primal.tolist(), tangent.tolist()) == ([1.0, 4.0], [2.0, 4.0])


def test_mutation_inside_a_transform():
    operator = make("(Tensor(a!) x) -> ()", _add_one, mutates_args={"x"})

    def function(x):
        y = (x * 2).detach()
        operator(y)
        return (x * y).sum()

    assert wengert.func.grad(function)(wengert.tensor([1.0, 2.0])).tolist() == [3.0, 5.0]


def _add_one(x):
    x.numpy()[...] += 1


def test_derivatives_that_come_batched(square):
    x = wengert.tensor([1.0, 2.0], dtype=wengert.float64, requires_grad=True)
    (rows,) = wengert.autograd.grad(
        square(x), x, wengert.eye(2, dtype=wengert.float64), is_grads_batched=True
    )
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert wengert.autograd.gradcheck(square, x, check_batched_grad=True, check_forward_ad=True)
