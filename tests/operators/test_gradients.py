"""First and second derivatives, backward and forward, against differences and against PyTorch."""

import numpy as np
import pytest

import wengert
from operators.support import (
    assert_close,
    build,
    call,
    each_sample,
    gradients,
    leaves_of,
    replaced,
    results,
    weights_like,
)
from wengert.autograd import forward_ad, gradcheck, gradgradcheck


def _function(operation, sample):
    """The operation as a function of its differentiable tensors, and those."""
    built = build(wengert, sample, requires_grad=True)

    def function(*tensors):
        return tuple(_floating(call(operation, wengert, replaced(wengert, built, tensors))))

    return function, leaves_of(wengert, built)


@each_sample(lambda o: o.differentiable and o.true_gradient and not o.coarse)
def test_gradient_is_the_derivative(operation, sample):
    function, inputs = _function(operation, sample)
    # Whole Jacobians of complex functions have four times the entries: projections must do.
    fast = any(x.is_complex() for x in inputs)
    assert gradcheck(
        function, inputs, check_forward_ad=True, check_grad_dtypes=True, fast_mode=fast
    )


@pytest.mark.slow
@each_sample(lambda o: o.differentiable and o.true_gradient and not o.coarse)
def test_gradient_of_the_gradient_is_its_derivative(operation, sample):
    function, inputs = _function(operation, sample)
    assert gradgradcheck(function, inputs, atol=1e-4, check_fwd_over_rev=True, fast_mode=True)


@each_sample(lambda o: o.differentiable and o.true_gradient, usual=2)
def test_what_is_linearized_is_forward_mode(operation, sample):
    """It differentiates the gradient by an incoming one that is zero."""
    function, inputs = _function(operation, sample)
    inputs = [x.detach() for x in inputs]
    tangents = [wengert.tensor(u) for u in weights_like(inputs, seed=1)]
    if not inputs:
        return
    _, expected = wengert.func.jvp(function, tuple(inputs), tuple(tangents))
    found = wengert.func.linearize(function, *inputs)[1](*tangents)
    for got, want in zip(found, expected, strict=True):
        assert_close(got, want, 1e-6, 1e-9)


@each_sample(lambda o: o.differentiable and o.true_gradient)
def test_forward_mode_is_the_adjoint_of_reverse_mode(operation, sample):
    """Re <v, J u> = Re <J* v, u> for random u and v."""
    built = build(wengert, sample, requires_grad=True)
    leaves = leaves_of(wengert, built)
    inputs = [x.detach() for x in leaves]
    us = [wengert.tensor(u) for u in weights_like(inputs, seed=1)]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, u) for x, u in zip(inputs, us)]
        outputs = call(operation, wengert, replaced(wengert, built, duals))
        pushed = [forward_ad.unpack_dual(out).tangent for out in _floating(outputs)]
    outputs = _floating(call(operation, wengert, built))
    assert [t is not None for t in pushed] == [out.requires_grad for out in outputs]
    pairs = [(out, t) for out, t in zip(outputs, pushed) if t is not None]
    if not pairs:
        assert not outputs
        return
    vs = [
        wengert.tensor(v).to(out.dtype)
        for v, (out, _) in zip(weights_like([out for out, _ in pairs], seed=2), pairs)
    ]
    pulled = wengert.autograd.grad([out for out, _ in pairs], leaves, vs, allow_unused=True)
    forward = sum(_inner(v, t) for v, (_, t) in zip(vs, pairs))
    reverse = sum(_inner(g, u) for g, u in zip(pulled, us) if g is not None)
    tolerance = 1e-6 if operation.coarse else 1e-10
    np.testing.assert_allclose(forward, reverse, rtol=tolerance, atol=tolerance)


def _floating(value):
    return [out for out in results(value) if out.is_floating_point() or out.is_complex()]


def _inner(a, b):
    a, b = a.detach().numpy().astype(complex), b.detach().numpy().astype(complex)
    return float(np.real(np.sum(np.conj(a) * b)))


#: Operations of which PyTorch's gradient is not the derivative, and what it is.
WRONG_IN_PYTORCH = {"as_strided_scatter": "that of what was replaced, not of what remains"}


@each_sample(lambda o: o.differentiable and o.name not in WRONG_IN_PYTORCH)
def test_gradient_equals_pytorchs(operation, sample):
    torch = pytest.importorskip("torch")
    try:
        expected = gradients(torch, operation, sample)
    except RuntimeError:
        return  # PyTorch has no derivative here: differences alone are the oracle
    for got, want in zip(gradients(wengert, operation, sample), expected, strict=True):
        assert (got is None) == (want is None)
        if got is not None:
            assert_close(got, want, 1e-7, 1e-10)
