"""Errors that depend on values are raised by compiled functions even if nobody uses the result."""

import numpy as np
import pytest

import wengert
import width
from operators.support import build, call, each_sample, map_tensors
from wengert.compiler import cond, parse, trace
from wengert.compiler.passes import eliminate_dead_code

pytestmark = pytest.mark.slow

F = wengert.nn.functional
X = wengert.ones(3, dtype=wengert.float64)
NUMBERS = (0, 5_000, -5_000, 7.5) if width.full else (5_000,)
OUTSIDE = wengert.tensor([5])


def corrupted(t, number):
    """A tensor like one of integers, or of floats for 7.5, with another number everywhere."""
    if t.dtype.is_floating_point == isinstance(number, float) and t.dtype is not wengert.bool:
        return t if t.is_complex() else wengert.full_like(t, number)
    return t


@each_sample(lambda o: not o.needs_data, kinds=("real",))
def test_what_raises_raises_as_dead_code(operation, sample):
    built = build(wengert, sample)
    for number in NUMBERS:
        tensors = []
        map_tensors(wengert, built, lambda t: tensors.append(corrupted(t, number)))  # noqa: B023

        def function(*given):
            supply = iter(given)
            call(operation, wengert, map_tensors(wengert, built, lambda t: next(supply)))
            return X * 2

        compiled = wengert.compile(function)
        try:
            compiled(*[t.clone() for t in tensors])
            outcome = None
        except Exception as error:
            if "needs the value" in str(error) or "meta" in str(error):
                return  # refused as a whole
            outcome = error
        try:
            function(*[t.clone() for t in tensors])
        except Exception as error:
            assert type(outcome) is type(error), (number, repr(outcome), repr(error))
        else:
            assert outcome is None


def dead_index(x, i):
    x[i]
    return x * 2


def dead_chain(x, i):
    (x.exp()[i] + 1).sum()
    return x * 2


def dead_write(x, i):
    y = x.clone()
    y[i] = 1
    return x * 2


def overwritten(x, i):
    y = x[i]
    y.data.zero_()
    y.detach().copy_(y * 0)
    return x * 2


def in_a_branch(x, i):
    cond(x.sum() > 0, lambda x: x[i] * 2, lambda x: x[:1], (x,))
    return x * 2


def inside_a_branch(x, i):
    def branch(x):
        x[i]
        return x * 2

    return cond(x.sum() > 0, branch, lambda x: x * 2, (x,))


@pytest.mark.parametrize(
    "program", [dead_index, dead_chain, dead_write, overwritten, in_a_branch, inside_a_branch]
)
@pytest.mark.parametrize("recorded", [False, True])
def test_indices_that_nobody_uses(program, recorded):
    x = X.clone().requires_grad_(recorded)
    compiled = wengert.compile(program)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, OUTSIDE)
    inside = wengert.tensor([1])
    y = compiled(x, inside)
    assert wengert.equal(y, X * 2)
    if recorded:
        (g,) = wengert.autograd.grad((y * y).sum(), x, create_graph=True)
        assert g.tolist() == [8.0, 8.0, 8.0]
        (g,) = wengert.autograd.grad(g.sum(), x)
        assert g.tolist() == [8.0, 8.0, 8.0]


def test_what_cannot_raise_is_left_out():
    def program(x, i):
        x.exp()
        i + 1
        x // 2
        return x[i] * 2

    graph = eliminate_dead_code(trace(program, X, OUTSIDE).graph)
    assert [node.kind for node in graph.nodes()] == ["wengert::index", "wengert::mul"]


def test_checks_are_part_of_the_text():
    graph = trace(dead_index, X, OUTSIDE).graph
    kinds = [node.kind for node in graph.nodes()]
    assert kinds == ["wengert::index", "prim::Check", "wengert::mul"]
    assert str(parse(str(graph))) == str(graph)
    assert str(eliminate_dead_code(graph.copy())) == str(graph)


def test_losses_of_operands_in_different_orders():
    a = wengert.arange(12, dtype=wengert.float64).reshape(3, 4).requires_grad_()

    def loss(a):
        return F.mse_loss(a.diagonal(1), a.t())

    with pytest.warns(UserWarning, match="target size"):
        mine, its = wengert.compile(loss)(a), loss(a)
    assert wengert.equal(mine, its)
    assert wengert.equal(*[wengert.autograd.grad(y, a)[0] for y in (mine, its)])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_shapes_that_do_not_broadcast():
    for given in (np.ones((2, 2)), np.ones((4, 2))):
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            wengert.compile(F.mse_loss)(wengert.ones(3), wengert.tensor(given))
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        F.mse_loss(wengert.ones(3, device="meta"), wengert.ones(2, device="meta"))
