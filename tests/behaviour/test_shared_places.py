"""Changes of parts of tensors whose elements share memory, against differences of values.

PyTorch's gradients of these are wrong, so it is no oracle.
"""

import pytest

import wengert
from wengert.autograd import gradcheck, gradgradcheck

OTHER = wengert.tensor([0.6, -0.4, 1.3], dtype=wengert.float64)


def overlapping(x):
    """A copy of four numbers as two rows of three, which share two of them."""
    return (x * 1).as_strided_((2, 3), (1, 1))


def a_diagonal(x, y):
    t = overlapping(x)
    t.diagonal().atan2_(y[0])
    return t


def a_row_by_another(x, y):
    t = overlapping(x)
    t[1].mul_(y).sin_()
    return t


def two_rows(x, y):
    t = overlapping(x)
    t[0].copy_(y)
    t[1].mul_(y)
    t[0, 1:].add_(x[:2])
    return t * t


def rows_of_memory_that_was_made(x, y):
    t = x.new_empty_strided((2, 3), (1, 1))
    t[1] = 0
    t[0] = x[:3]
    t[1] = y
    return t


def beyond_what_is_shown(x, y):
    t = (x * 1).as_strided_((2, 2), (1, 1))
    t.as_strided((3,), (1,), 1).mul_(y)
    return t


def filled(x, y):
    t = overlapping(x)
    t[0, :2].fill_(0.5)
    return t * y


def by_a_function(x, y):
    class Doubled(wengert.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(t):
            return t.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.mul_(2)

    t = overlapping(x)
    Doubled.apply(t[1])
    return t * y


CHANGES = [
    a_diagonal, a_row_by_another, two_rows, rows_of_memory_that_was_made, beyond_what_is_shown,
    filled, by_a_function,
]  # fmt: skip


def operands():
    x = wengert.tensor([0.3, 1.0, 0.1, 0.5], dtype=wengert.float64, requires_grad=True)
    return x, OTHER.clone().requires_grad_()


@pytest.mark.parametrize("change", CHANGES)
def test_gradients_are_those_of_the_values(change):
    assert gradcheck(change, operands())
    assert gradgradcheck(change, operands())


def jacobians(change, mode):
    return getattr(wengert.func, mode)(change)(*(t.detach() for t in operands()))


# A view beyond what is shown has no tangent, and is refused in forward mode.
@pytest.mark.parametrize("change", [f for f in CHANGES if f is not beyond_what_is_shown])
def test_forward_mode_agrees(change):
    assert wengert.allclose(jacobians(change, "jacrev"), jacobians(change, "jacfwd"))


# A Function that changes its argument cannot be batched.
@pytest.mark.parametrize("change", [f for f in CHANGES if f is not by_a_function])
def test_each_example_has_its_own_places(change):
    x, y = (t.detach() for t in operands())
    each = wengert.func.vmap(wengert.func.jacrev(change), (0, None))(wengert.stack([x + 1, x]), y)
    assert wengert.allclose(each[1], jacobians(change, "jacrev"))


def test_a_hook_sees_what_reaches_each_place():
    x, y = operands()
    t = overlapping(x)
    seen = []
    t.register_hook(lambda g: seen.append(g.tolist()))
    t[1].mul_(2)
    t.backward(wengert.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=wengert.float64))
    # Two of the three that were doubled are in the first row too, where they come first.
    assert seen == [[[1.0, 12.0, 16.0], [0.0, 0.0, 12.0]]]
    assert x.grad.tolist() == [1.0, 12.0, 16.0, 12.0]
