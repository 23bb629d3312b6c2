"""NumPy functions on tensors: NumPy's values, and a history."""

import numpy as np
import pytest

import wengert

CALLS = [
    lambda a: np.sin(a),
    lambda a: np.exp(a) * np.ones(3),
    lambda a: np.ones((2, 3)) / a,
    lambda a: np.power(a, 2.0),
    lambda a: np.maximum(a, 1.0),
    lambda a: np.sum(a),
    lambda a: np.sum(a, axis=0),
    lambda a: np.sum(a, axis=(0, 1), keepdims=True),
    lambda a: np.mean(a, axis=1),
    lambda a: np.var(a),
    lambda a: np.var(a, axis=0, ddof=1),
    lambda a: np.std(a, axis=1, keepdims=True),
    lambda a: np.max(a),
    lambda a: np.max(a, axis=0),
    lambda a: np.min(a, axis=1),
    lambda a: np.concatenate([a, np.ones((1, 3))]),
    lambda a: np.stack([a, a], axis=1),
    lambda a: np.transpose(a),
    lambda a: np.transpose(a, (1, 0)),
    lambda a: np.reshape(a, (3, 2)),
    lambda a: np.ravel(a),
    lambda a: np.expand_dims(a, 1),
    lambda a: np.squeeze(np.expand_dims(a, 0)),
    lambda a: np.swapaxes(a, 0, 1),
    lambda a: np.moveaxis(a, 0, 1),
    lambda a: np.broadcast_to(a, (4, 2, 3)),
    lambda a: np.cumsum(a),
    lambda a: np.cumsum(a, axis=1),
    lambda a: np.flip(a),
    lambda a: np.flip(a, axis=1),
    lambda a: np.tril(a, k=1),
    lambda a: np.triu(a),
    lambda a: np.dot(a, np.ones((3, 2))),
    lambda a: np.outer(a, a),
    lambda a: np.einsum("ij,kj->ik", a, a),
    lambda a: np.where(np.array([True, False, True]), a, 0.0),
    lambda a: np.clip(a, 0.6, 1.5),
]


def values():
    return np.random.default_rng(0).uniform(0.5, 2.0, (2, 3))


@pytest.mark.parametrize("call", CALLS)
def test_value_is_numpys_and_gradient_flows(call):
    x = wengert.tensor(values(), requires_grad=True)
    result = call(x)
    assert isinstance(result, wengert.Tensor)
    np.testing.assert_allclose(result.detach().numpy(), call(values()), rtol=1e-12)
    result.sum().backward()
    assert x.grad is not None


def test_plain_answers():
    x = wengert.tensor(values())
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert np.argmax(x).item() == np.argmax(values())


@pytest.mark.parametrize("call", [np.repeat, np.median, np.linalg.norm, np.sort])
def test_function_without_a_counterpart_is_refused(call):
    with pytest.raises(TypeError, match="no implementation found"):
        call(wengert.tensor(values()), *([2] if call is np.repeat else []))
