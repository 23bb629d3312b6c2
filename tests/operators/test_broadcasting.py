"""Binary elementwise operations on all pairs of shapes that broadcast."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import wengert
from operators.samples import OPERATIONS
from operators.support import assert_close, assert_same
from width import tries

SHAPES = mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3)
FEW = settings(deadline=None, derandomize=True, max_examples=tries(8))
BINARY = [o for o in OPERATIONS if o.operands == 2]


def _values(operation, shapes, seed=3):
    """Two arrays in the operation's domain, made from the values of its first sample."""
    kind = "real" if operation.real else "integer"
    random = np.random.default_rng(seed)
    pools = operation.draw(kind)[0].arrays()
    return [
        np.asarray(random.choice(pool.reshape(-1), shape)) for pool, shape in zip(pools, shapes)
    ]


@pytest.mark.parametrize("operation", BINARY, ids=str)
@pytest.mark.wide
@FEW
@given(broadcast=SHAPES)
def test_operands_broadcast(operation, broadcast):
    x, y = _values(operation, broadcast.input_shapes)
    function = operation.resolve(wengert)
    got = function(wengert.tensor(x), wengert.tensor(y))
    wide = [np.broadcast_to(a, broadcast.result_shape).copy() for a in (x, y)]
    want = function(wengert.tensor(wide[0]), wengert.tensor(wide[1]))
    assert tuple(got.shape) == broadcast.result_shape
    assert_same(got, want)


@pytest.mark.parametrize("operation", [o for o in BINARY if o.differentiable], ids=str)
@pytest.mark.wide
@FEW
@given(broadcast=SHAPES)
def test_gradients_are_summed_back(operation, broadcast):
    arrays = _values(operation, broadcast.input_shapes)
    function = operation.resolve(wengert)
    leaves = [wengert.tensor(a).requires_grad_() for a in arrays]
    function(*leaves).sum().backward()
    wide = [
        wengert.tensor(np.broadcast_to(a, broadcast.result_shape).copy()).requires_grad_()
        for a in arrays
    ]
    function(*wide).sum().backward()
    for leaf, expanded in zip(leaves, wide):
        assert_close(leaf.grad, _summed(expanded.grad.numpy(), leaf.shape), 1e-9, 1e-11)


def _summed(array, shape):
    extra = array.ndim - len(shape)
    array = array.sum(tuple(range(extra)))
    kept = tuple(i for i, n in enumerate(shape) if n == 1)
    return array.sum(kept, keepdims=True)


@pytest.mark.parametrize("operation", BINARY, ids=str)
def test_shapes_that_do_not_broadcast_are_refused(operation):
    kind = "real" if operation.real else "integer"
    x, y = (a.reshape(-1)[:6] for a in operation.draw(kind)[0].arrays())
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        operation.resolve(wengert)(wengert.tensor(x[:2]), wengert.tensor(y[:3]))
