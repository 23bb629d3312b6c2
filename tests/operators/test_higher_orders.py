"""Second and third derivatives of every operator: all ways to take them give the same numbers.

An operator is made a function of one number, `t`: a weighted sum of what it makes of inputs that
lie on a line. Its derivatives by `t` are then taken by nests of transforms, by recorded backwards,
by forward mode over backward, and by batches of numbers. Derivatives of compiled code are compared
with those of the program in tests/compiler.
"""

import itertools

import numpy as np
import pytest

import wengert
from operators.support import build, call, each_sample, leaves_of, replaced, results, weights_like
from wengert import func
from wengert.autograd import forward_ad

pytestmark = pytest.mark.slow
ORDERS = (2, 3)


def _along_a_line(operation, sample):
    """A smooth function of one number, and None if the sample has no elements to differentiate."""
    built = build(wengert, sample, requires_grad=True)
    starts = [x.detach() for x in leaves_of(wengert, built)]
    if not any(x.numel() for x in starts):
        return None
    directions = [wengert.tensor(0.3 * v) for v in weights_like(starts, seed=5)]

    def function(t):
        inputs = [x + t * v for x, v in zip(starts, directions)]
        made = results(call(operation, wengert, replaced(wengert, built, inputs)))
        made = [wengert.view_as_real(out) if out.is_complex() else out for out in made]
        outputs = [out for out in made if out.is_floating_point()]
        total = t.sin()  # keeps all derivatives defined, whatever the operator makes of `t`
        for out, weights in zip(outputs, weights_like(outputs)):
            total = total + (wengert.tensor(weights) * (out + 0.5 * out.sin())).sum()
        return total

    return function


def _grad(function):
    return func.grad(function)


def _jvp(function):
    return lambda t: func.jvp(function, (t,), (wengert.ones_like(t),))[1]


def _recorded(function, t, order):
    """Derivatives by `autograd.grad` with recorded graphs."""
    t = t.clone().requires_grad_()
    value = function(t)
    for _ in range(order):
        (value,) = wengert.autograd.grad(value, t, create_graph=True)
    return value.detach()


def _forward_over_backward(function, t, order):
    """The last derivative by forward mode, over a backward that records nothing."""
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t, wengert.ones_like(t)).requires_grad_()
        value = function(x)
        for k in range(order - 1):
            (value,) = wengert.autograd.grad(value, x, create_graph=k < order - 2)
        return forward_ad.unpack_dual(value).tangent.detach()


def _nested(function, transforms):
    for transform in transforms:
        function = transform(function)
    return function


@each_sample(lambda o: o.differentiable and o.true_gradient, kinds=("real",), usual=2)
def test_second_and_third_derivatives_agree(operation, sample):
    function = _along_a_line(operation, sample)
    if function is None:
        return
    t = wengert.tensor(0.1, dtype=wengert.float64)
    if not function(t.clone().requires_grad_()).isfinite():
        return
    for order in ORDERS:
        want = _recorded(function, t, order)
        got = {
            " of ".join(f.__name__ for f in reversed(nest)): _nested(function, nest)(t)
            for nest in itertools.product((_grad, _jvp), repeat=order)
        }
        got["forward over backward"] = _forward_over_backward(function, t, order)
        deep = _nested(function, (_grad,) * order)
        with wengert.no_grad():
            got["grad without recording"] = deep(t)
            got["jvp without recording"] = _nested(function, (_jvp,) * order)(t)
        batched = func.vmap(deep, randomness="same")
        got["batched"] = batched(wengert.stack([t + 0.02, t]))[1]
        for way, value in got.items():
            np.testing.assert_allclose(
                value.item(), want.item(), rtol=1e-6, atol=1e-7, err_msg=f"{order}: {way}"
            )
