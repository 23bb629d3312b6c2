"""Rules that name a loop: what the engine does instead of calling them is what they say."""

import numpy as np
import pytest

import wengert
from wengert.tape.node import apply_loop

linear = wengert.nn.functional.linear


def sums_of(y):
    """Gradients that are one number for all elements, added to each other and to others."""
    return y.sum() + y[0].sum() + (y * 2).sum() + y.sum()


# Functions of three tensors: matrices of m rows and k columns, k and n, m and n.
FUNCTIONS = {
    "add": lambda x, w, b: x + x.exp(),
    "add_scaled": lambda x, w, b: wengert.add(x, x.exp(), alpha=3),
    "add_to_row": lambda x, w, b: x + x[0] + x[:, :1],
    "mul": lambda x, w, b: x * x.exp(),
    "mul_by_number": lambda x, w, b: x * 2.5 + 3 * x,
    "mul_by_row": lambda x, w, b: x * x[0],
    "div": lambda x, w, b: x / (x + 2),
    "div_by_number": lambda x, w, b: x / 3,
    "sum": lambda x, w, b: x * x.sum(),
    "sums_that_meet": lambda x, w, b: sums_of(x.exp()),
    "tanh": lambda x, w, b: x.tanh(),
    "sigmoid": lambda x, w, b: x.sigmoid(),
    "relu": lambda x, w, b: (x - x.mean()).relu(),
    "mm": lambda x, w, b: x @ w,
    "mm_turned": lambda x, w, b: w.t() @ x.t(),
    "mm_of_parts": lambda x, w, b: x[:, ::2] @ w[::2],
    "addmm": lambda x, w, b: wengert.addmm(b, x, w),
    "addmm_scaled": lambda x, w, b: wengert.addmm(b, x, w, beta=0.5, alpha=-2),
    "addmm_row": lambda x, w, b: wengert.addmm(b[0], x, w),
    "linear": lambda x, w, b: linear(x, w.t(), b[0]),
    "repeated": lambda x, w, b: sum(wengert.addmm(b, (x * i).tanh(), w) for i in range(1, 5)),
}


def leaves(sizes, dtype):
    m, k, n = sizes
    generator = wengert.Generator().manual_seed(3)
    return [
        wengert.rand(*shape, generator=generator, dtype=dtype).requires_grad_()
        for shape in ((m, k), (k, n), (m, n))
    ]


@pytest.mark.parametrize("dtype", [wengert.float32, wengert.float64, wengert.complex128])
@pytest.mark.parametrize("sizes", [(2, 4, 3), (1, 2, 1), (32, 40, 24)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loop_is_the_rule(name, sizes, dtype):
    """backward() runs the loops, create_graph=True calls the rules."""
    if name == "relu" and dtype.is_complex:
        return
    inputs = leaves(sizes, dtype)
    out = FUNCTIONS[name](*inputs)
    g = wengert.rand_like(out)
    before = g.clone()
    wanted = wengert.autograd.grad(out, inputs, g, create_graph=True, materialize_grads=True)
    restricted = wengert.autograd.grad(out, inputs, g, retain_graph=True, materialize_grads=True)
    for repetition in (1, 2):
        out.backward(g, retain_graph=True)
        for x, expected, alone in zip(inputs, wanted, restricted, strict=True):
            if x.grad is not None:
                rtol = 1e-5 if dtype == wengert.float32 else 1e-12
                np.testing.assert_allclose(
                    x.grad.numpy(), repetition * expected.detach().numpy(), rtol, atol=rtol
                )
                np.testing.assert_allclose(
                    alone.numpy(), expected.detach().numpy(), rtol, atol=rtol
                )
    assert wengert.equal(g, before)


SERVED = ["add", "mul", "mul_by_number", "div_by_number", "tanh"]
COMPILED = [] if not wengert.__compiled__ else ["mm", "addmm", "linear", "repeated"]


@pytest.mark.parametrize("name", SERVED + COMPILED)
@pytest.mark.parametrize("sizes", [(2, 4, 3), (32, 40, 24)], ids=str)
def test_rules_with_loops_are_not_called(name, sizes, monkeypatch):
    def refuse(*args):
        raise AssertionError("the rule was called")

    out = FUNCTIONS[name](*leaves(sizes, wengert.float32))
    seen = set()
    stack = [out.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        stack.extend(following for following, _ in node.next_functions)
        if node.plan.loops:
            for step in node.plan.steps:
                monkeypatch.setattr(step, "rule", refuse)
    g = wengert.ones_like(out)
    out.backward(g, retain_graph=True)
    with pytest.raises(AssertionError, match="the rule was called"):
        out.backward(g, create_graph=True)


def test_operands_of_two_dtypes():
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    y = wengert.tensor([3.0, 5.0], dtype=wengert.float64, requires_grad=True)
    (x * y).backward(wengert.tensor([1.0, 2.0], dtype=wengert.float64))
    assert x.grad.dtype == wengert.float32 and x.grad.tolist() == [3.0, 10.0]
    assert y.grad.dtype == wengert.float64 and y.grad.tolist() == [1.0, 4.0]


@pytest.mark.parametrize("function", [lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x @ y])
def test_changed_operand_is_noticed(function):
    x = wengert.ones(3, 3, requires_grad=True)
    y = wengert.ones(3, 3)
    out = function(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward(wengert.ones(3, 3))
    assert function(x, y).sum().item() > 0


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu"])
def test_changed_result_is_noticed(name):
    x = wengert.ones(3, requires_grad=True)
    out = getattr(x, name)()
    out.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward(wengert.ones(3))


def test_a_value_saved_after_a_change_is_right():
    x = wengert.ones(3, requires_grad=True)
    y = wengert.ones(3)
    y.add_(1)
    (x * y).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_freed_node_is_noticed():
    x = wengert.ones(3, requires_grad=True)
    out = x * x
    out.backward(wengert.ones(3))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward(wengert.ones(3))


def test_sums_leave_what_was_passed_on_alone():
    """The gradient that an addition passes on to several places is not what they are summed in."""
    x = wengert.ones(3, requires_grad=True)
    g = wengert.tensor([1.0, 2.0, 3.0])
    (x + x + x * 2 + x).backward(g)
    assert x.grad.tolist() == [5.0, 10.0, 15.0]
    assert g.tolist() == [1.0, 2.0, 3.0]
    first = x.grad
    (x * g + x * g).backward(g)
    assert x.grad is first and x.grad.tolist() == [7.0, 18.0, 33.0]


def test_product_is_added_to_the_total():
    x, w = wengert.ones(2, 3), wengert.ones(3, 4, requires_grad=True)
    (step,) = (x @ w).grad_fn.plan.steps
    total = wengert.ones(3, 4)
    found = apply_loop(step, wengert.ones(2, 4), x, False, total, False)
    assert (found is total) == wengert.__compiled__
    if wengert.__compiled__:
        assert total.tolist() == [[3.0] * 4] * 3


@pytest.mark.parametrize("changed", [False, True])
def test_rules_are_loops_after_a_step_of_an_optimizer_too(changed):
    """A saved parameter that was changed before it was used is read as any other."""
    x, w, b = leaves((4, 3, 5), wengert.float64)
    weight = w.detach().t().contiguous().requires_grad_()
    if changed:
        with wengert.no_grad():
            weight.mul_(2.0)
            b.mul_(2.0)
    out = linear(x, weight, b[0])
    saved = out.grad_fn.saved
    step = next(s for s in out.grad_fn.plan.steps if s.is_product)
    value = apply_loop(step, wengert.ones(4, 5, dtype=wengert.float64), saved, False, None, False)
    if wengert.__compiled__:
        assert value.tolist() == weight.detach().sum(0).expand(4, 3).tolist()
    with wengert.no_grad():
        weight.add_(1.0)
    assert apply_loop(step, wengert.ones(4, 5), saved, False, None, False) is None
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
