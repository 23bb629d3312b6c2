"""The short ways of calls: one node that records them, and what is given up is called directly."""

import gc
import random
import typing
import warnings
import weakref

import pytest

import wengert
from wengert.compiler.native.runtime import Lane, Reversal

X = wengert.tensor([1.0, -2.0, 3.0])


def leaf():
    return X.clone().requires_grad_()


def compiled(function, *args):
    """The function compiled, and called until nothing changes any more."""
    run = wengert.compile(function, fullgraph=True, backend="native")
    for _ in range(3):
        run(*args)
    assert Lane is None or run.lane is not None
    return run


def several(x, y):
    z = (x * y).tanh()
    return z, (z * x).sum(), (x > 0)


def test_outputs_of_recorded_calls():
    run = compiled(several, leaf(), X)
    x = leaf()
    z, total, positive = run(x, X)
    assert z.requires_grad and total.requires_grad and not positive.requires_grad
    assert z.grad_fn is total.grad_fn and z.output_nr == 0 and total.output_nr == 1
    mine = wengert.autograd.grad(z.sum() + 2 * total, x)[0]
    other = leaf()
    a, b, _ = several(other, X)
    assert wengert.allclose(mine, wengert.autograd.grad(a.sum() + 2 * b, other)[0])
    (alone,) = wengert.autograd.grad(run(x, X)[1], x)
    assert wengert.allclose(alone, wengert.autograd.grad(several(x, X)[1], x)[0])


def test_recorded_calls_check_what_they_keep():
    run = compiled(lambda x, y: (x * y).exp(), leaf(), X)
    x, y = leaf(), X.clone()
    out = run(x, y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    out = run(x, X)
    out.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.sum().backward()


def test_recorded_calls_after_each_other_and_hooks():
    run = compiled(lambda x: (x * 2).tanh(), leaf())
    x, seen = leaf(), []
    middle = run(x)
    middle.register_hook(lambda g: seen.append(g) or g * 3)
    run(middle).sum().backward()
    other = leaf()
    eager = (other * 2).tanh()
    eager.register_hook(lambda g: g * 3)
    (eager * 2).tanh().sum().backward()
    assert wengert.allclose(x.grad, other.grad) and len(seen) == 1


def test_recorded_calls_pass_saved_tensor_hooks():
    run = compiled(lambda x: (x * 2).tanh(), leaf())
    packed = []
    with wengert.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t.shape) or t, lambda t: t
    ):
        out = run(leaf())
    assert packed and out.requires_grad


def test_modes_around_a_short_way():
    run = compiled(lambda x: x * 2, leaf())
    with wengert.no_grad():
        assert not run(leaf()).requires_grad
    with wengert.inference_mode():
        assert run(leaf()).is_inference()
    assert run(leaf()).requires_grad
    x = leaf()
    assert wengert.equal(wengert.func.grad(lambda x: run(x).sum())(x.detach()), X * 0 + 2)
    assert wengert.equal(run(x=x), X * 2)


def differentiated(function, *args):
    """The function compiled, and differentiated until nothing changes any more."""
    run = compiled(function, *args)
    for _ in range(2):
        run(*args).sum().backward()
    made = run(*args).grad_fn.call[0]
    assert Reversal is None or made.reversal is not None
    return run


def gradients(function, *args):
    leaves = [t.detach().requires_grad_(t.requires_grad) for t in args]
    function(*leaves).sum().backward()
    return [t.grad for t in leaves]


def bent(x, y):
    return (x * y).tanh() * x


def test_backward_after_backward():
    run = differentiated(bent, leaf(), X)
    x, y = leaf(), X.exp()
    for _ in range(2):
        mine, its = gradients(run, x, y), gradients(bent, x, y)
        assert its[1] is None and mine[1] is None
        assert wengert.allclose(mine[0], its[0])
        x = wengert.cat([leaf().detach(), x.detach()]).requires_grad_()  # another size
        y = wengert.cat([X, y])
    kept = run(leaf(), X).sum()
    for _ in range(2):
        kept.backward(retain_graph=True)


def test_backward_of_other_kinds_than_before():
    run = differentiated(bent, leaf(), X)
    x = leaf()
    strided = wengert.ones(6)[::2]
    (mine,) = wengert.autograd.grad(run(x, X), x, strided)
    assert wengert.allclose(mine, gradients(bent, x, X)[0])
    (first,) = wengert.autograd.grad(run(x, X).sum(), x, create_graph=True)
    assert first.requires_grad
    rows = wengert.eye(3)
    (batched,) = wengert.autograd.grad(run(x, X), x, rows, is_grads_batched=True)
    whole = wengert.autograd.functional.jacobian(lambda x: bent(x, X), x)
    assert wengert.allclose(batched, whole)


def test_backward_reads_what_was_saved_once():
    """Also where arrays are not as in the call that the short way was made for."""
    run = differentiated(lambda x: (x * 2).tanh() * x, leaf())
    packed, unpacked = [], []
    for x in (leaf(), wengert.ones(5, requires_grad=True)):
        with wengert.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t.shape) or t, lambda t: unpacked.append(t.shape) or t
        ):
            out = run(x)
        out.sum().backward()
        assert unpacked == [x.shape] * len(unpacked) and 0 < len(unpacked) <= len(packed)
        packed.clear()
        unpacked.clear()
        assert wengert.allclose(x.grad, gradients(lambda x: (x * 2).tanh() * x, x)[0])
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            out.sum().backward()


def test_backward_from_some_of_several_outputs():
    run = compiled(several, leaf(), X)
    for chosen in ((0, 1), (1,), (0, 1), (0,)):
        pair = []
        for function in (run, several):
            x = leaf()
            out = function(x, X / 9)
            sum(out[i].sum() for i in chosen).backward()
            pair.append(x.grad)
        assert wengert.allclose(*pair)


def test_a_node_holds_nothing_longer_than_its_results():
    run = compiled(lambda x: (x * 2).tanh(), leaf())
    x = leaf()
    out = run(x)
    gone = weakref.ref(x)
    del x
    assert gone() is not None
    del out
    gc.collect()
    assert gone() is None


def test_a_function_that_never_compiles_is_called_directly():
    def draws(x):
        return x * random.random()

    run = wengert.compile(draws)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        for _ in range(100):
            run(X)
    assert run.plain is draws
    random.seed(3)
    mine = run(x=X)
    random.seed(3)
    assert wengert.equal(mine, draws(X))


def test_errors_pass_through_the_short_way():
    def fails(x):
        raise KeyError(str(x.shape[0]))

    run = wengert.compile(fails)
    for _ in range(100):
        with pytest.raises(KeyError, match="3"):
            run(X)


class Pair(typing.NamedTuple):
    first: wengert.Tensor
    second: wengert.Tensor


def test_named_tuples_are_read():
    pair = Pair(X, X + 1)

    def f(other):
        return pair.first * other.second + pair.second

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = wengert.compile(f, fullgraph=True)
        for _ in range(3):
            assert wengert.equal(run(Pair(X, X * 2)), f(Pair(X, X * 2)))
    assert len(run.compilations) == 1


def test_results_that_are_detached_are_not_recorded():
    def f(x):
        y = (x * 2).tanh()
        return y.detach()

    run = wengert.compile(f, fullgraph=True)
    x = leaf()
    out = run(x)
    assert wengert.allclose(out, f(x)) and not out.requires_grad and out.grad_fn is None
    assert [name for name, _ in run.compilations[0].executable.made()] == ["without gradients"]


@pytest.mark.parametrize("function", [
    lambda x: (lambda y: (y, y.detach()))((x * 2).tanh()),
    lambda x: (lambda y: (y.detach(), y.detach()))((x * 2).tanh()),
    lambda x: (lambda y: (y.detach(), y.detach()[1:]))((x * 2).tanh()),
    lambda x: (x.detach(), x * 2),
    lambda x: (x[1:].detach(), x * 2),
    lambda x: ((x * 2)[1:].detach(), x * 2),
])  # fmt: skip
def test_results_that_are_detached_share_what_they_shared(function):
    run = wengert.compile(function, fullgraph=True)
    x, other = leaf(), leaf()
    mine, its = run(x), function(other)
    for pair in (mine, its):
        pair[0].detach().mul_(5)
    for a, b in zip((*mine, x), (*its, other), strict=True):
        assert wengert.allclose(a, b) and a.requires_grad is b.requires_grad
