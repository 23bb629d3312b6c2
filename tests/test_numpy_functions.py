"""NumPy functions on tensors: the same numbers as NumPy's, with gradients, or a TypeError."""

import numpy as np
import pytest

import wengert

A = np.array([[0.3, 0.9, 0.5], [0.7, 0.1, 0.8]])
B = A[::-1] + 0.1
V = np.array([0.3, 0.9, 0.5])
S = np.array([[2.0, 0.5], [0.5, 1.0]])


def leaf(array):
    return wengert.tensor(array, requires_grad=True)


def calls(text):
    """One call per line, each as a parameter; a, b, v and s stand for the operands."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return pytest.mark.parametrize("call", lines)


def evaluate(call, wrap):
    operands = {"a": wrap(A), "b": wrap(B), "v": wrap(V), "s": wrap(S)}
    return eval(call, {"np": np, "A": A, "V": V, **operands})


def check_same(found, wanted):
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            check_same(ours, theirs)
        return
    assert isinstance(found, wengert.Tensor)
    assert tuple(found.shape) == np.shape(wanted)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12)


DIFFERENTIABLE = """
    np.sin(a)
    np.cos(a)
    np.exp(a)
    np.log(a)
    np.sqrt(a)
    np.tanh(a)
    np.abs(a)
    np.negative(a)
    np.positive(a)
    np.square(a)
    np.reciprocal(a)
    np.arcsin(a)
    np.arctan(a)
    np.arctan2(a, b)
    np.sinh(a)
    np.arccosh(a + 1)
    np.log1p(a)
    np.expm1(a)
    np.exp2(a)
    np.log2(a)
    np.log10(a)
    np.power(a, 2)
    np.power(2, a)
    np.power(a, b)
    np.maximum(a, b)
    np.minimum(a, 0.45)
    np.hypot(a, b)
    np.add(a, 1)
    np.subtract(1, a)
    np.multiply(a, b)
    np.divide(a, b)
    np.true_divide(a, 2)
    np.matmul(a, b.T)
    np.conjugate(a)
    np.remainder(a, 0.2)
    np.fmod(a, 0.2)
    np.ones((2, 3)) * a
    np.ones((2, 3)) + a
    np.ones((2, 3)) - a
    np.ones((2, 3)) / a
    np.ones((2, 3)) ** a
    np.ones((4, 2)) @ a
    np.float64(2) * a
    np.ones(3) * a
    np.sum(a)
    np.sum(a, axis=0)
    np.sum(a, 0)
    np.sum(a, axis=1, keepdims=True)
    np.sum(a, axis=(0, 1))
    np.mean(a)
    np.mean(a, axis=0)
    np.var(a)
    np.var(a, axis=0)
    np.std(a)
    np.std(a, axis=0, ddof=1)
    np.max(a)
    np.max(a, axis=0)
    np.min(a, axis=1)
    np.max(a, axis=1, keepdims=True)
    np.amax(a, axis=0)
    np.cumsum(a, axis=0)
    np.cumsum(a)
    np.concatenate([a, b])
    np.concatenate([a, b], axis=1)
    np.concatenate([A, b])
    np.stack([a, b])
    np.stack([a, b], axis=1)
    np.reshape(a, (3, 2))
    np.reshape(a, -1)
    np.ravel(a)
    np.transpose(a)
    np.transpose(a, (1, 0))
    np.swapaxes(a, 0, 1)
    np.moveaxis(a, 0, 1)
    np.squeeze(a[None])
    np.squeeze(a[None], axis=0)
    np.expand_dims(a, 0)
    np.expand_dims(a, axis=1)
    np.broadcast_to(a, (4, 2, 3))
    np.flip(a)
    np.flip(a, axis=1)
    np.where(A > 0.5, a, b)
    np.where(a > 0.45, a, 0.0)
    np.clip(a, 0.2, 0.6)
    np.clip(a, None, 0.6)
    np.dot(a, b.T)
    np.dot(v, v)
    np.outer(v, v)
    np.einsum('ij,kj->ik', a, b)
    np.tril(a)
    np.triu(a, k=1)
    np.prod(a)
    np.prod(a, axis=0)
    np.prod(a, axis=(0, 1), keepdims=True)
    np.cumprod(a, axis=1)
    np.cumprod(a)
    np.sum(a, dtype=np.float64)
    np.nansum(a, axis=0)
    np.nanmean(a)
    np.ptp(a)
    np.ptp(a, axis=1, keepdims=True)
    np.average(a)
    np.average(a, axis=1, weights=v)
    np.average(a, weights=b)
    np.sort(a)
    np.sort(a, axis=0)
    np.sort(a, axis=None)
    np.median(a)
    np.median(a, axis=0)
    np.quantile(a, 0.3)
    np.quantile(a, [0.2, 0.7], axis=1)
    np.quantile(a, 0.2, axis=0, keepdims=True)
    np.percentile(a, 40)
    np.percentile(a, [10, 80], axis=0)
    np.linalg.norm(a)
    np.linalg.norm(a, axis=1)
    np.linalg.norm(a, "fro")
    np.linalg.norm(v, ord=1)
    np.linalg.norm(v, np.inf)
    np.linalg.norm(a, 3, axis=0, keepdims=True)
    np.diff(a)
    np.diff(a, axis=0)
    np.diff(a, n=2)
    np.diff(a, prepend=0.0)
    np.diff(a, axis=0, append=b)
    np.trapezoid(a)
    np.trapezoid(a, v, axis=1)
    np.trapezoid(a, dx=0.5, axis=0)
    np.concatenate([a, b], axis=None)
    np.concatenate([a[0], [1.0, 2.0]])
    np.append(v, 2.0)
    np.append(a, b, axis=1)
    np.vstack([a, b])
    np.hstack([a, b])
    np.dstack([a, b])
    np.column_stack([v, v])
    np.roll(a, 1)
    np.roll(a, 1, axis=1)
    np.roll(a, (1, 2), axis=(0, 1))
    np.repeat(a, 2)
    np.repeat(a, 2, axis=0)
    np.repeat(v, [1, 0, 2])
    np.tile(a, 2)
    np.tile(a, (2, 1))
    np.fliplr(a)
    np.flipud(a)
    np.rot90(a)
    np.rot90(a, 3, (1, 0))
    np.atleast_1d(a.sum())
    np.atleast_2d(v)
    np.atleast_3d(v)
    np.expand_dims(a, (0, -1))
    np.squeeze(a[None, ..., None], axis=(0, 3))
    np.broadcast_arrays(v, a)[0]
    np.permute_dims(a, (1, 0))
    np.inner(v, v)
    np.inner(a, b)
    np.vdot(a, b)
    np.dot(2.0, a)
    np.dot(v, np.ones((2, 3, 4)))
    np.tensordot(a, b, axes=([1], [1]))
    np.tensordot(a, b, axes=(1, 1))
    np.tensordot(a, b.T, axes=1)
    np.tensordot(a, b)
    np.kron(v, v)
    np.trace(s)
    np.trace(s, offset=1)
    np.diag(v)
    np.diag(s)
    np.diag(s, k=-1)
    np.diagonal(s, offset=1)
    np.take(a, [0, 2], axis=1)
    np.take(a, [0, 2])
    np.take_along_axis(a, np.argsort(A, axis=1), axis=1)
    np.split(a, 3, axis=1)[1]
    np.split(a, [1], axis=1)[1]
    np.array_split(a, 2, axis=1)[0]
    np.vsplit(a, 2)[1]
    np.hsplit(a, 3)[2]
    np.hsplit(v, [1])[1]
    np.meshgrid(v, v)[0]
    np.meshgrid(v, v, indexing="ij")[1]
    np.copy(a)
    np.real(a)
    np.fabs(a - 0.4)
    np.clip(a, A - 0.1, 0.6)
    np.clip(a, min=0.2)
    np.clip(a, v, None)
    np.float32(2) * a
"""


@calls(DIFFERENTIABLE)
def test_values_and_history(call):
    found = evaluate(call, leaf)
    check_same(found, evaluate(call, np.array))
    assert found.requires_grad


SMOOTH = [
    line.strip()
    for line in DIFFERENTIABLE.strip().splitlines()
    if not any(word in line for word in ("round", "remainder", "fmod"))
]


@pytest.mark.parametrize("call", SMOOTH)
def test_gradients(call):
    """Against central differences of NumPy's own function along one direction."""
    operands = {"a": A, "b": B, "v": V, "s": S}
    leaves = {name: leaf(array) for name, array in operands.items()}
    out = eval(call, {"np": np, "A": A, "V": V, **leaves})
    weights = np.cos(np.arange(float(out.numel()))).reshape(tuple(out.shape))
    out.backward(wengert.tensor(weights))
    step = 1e-6
    slope = along = 0.0
    for name, array in operands.items():
        direction = np.sin(1.0 + np.arange(float(array.size))).reshape(array.shape)
        if leaves[name].grad is not None:
            along += float((leaves[name].grad.numpy() * direction).sum())
            sides = [
                eval(call, {"np": np, "A": A, "V": V, **operands, name: array + move * direction})
                for move in (step, -step)
            ]
            slope += float(((sides[0] - sides[1]) * weights).sum()) / (2 * step)
    assert along == pytest.approx(slope, rel=1e-6, abs=1e-8)


@calls(
    """
    np.isnan(a)
    np.isfinite(a)
    np.greater(a, 0.5)
    np.equal(a, b)
    np.logical_not(a)
    np.logical_and(a, b)
    np.ones((2, 3)) > a
    np.argmax(a)
    np.argmax(a, axis=1)
    np.argmin(a, axis=0)
    np.argmax(a, axis=1, keepdims=True)
    np.sign(a)
    np.floor(a)
    np.ceil(a)
    np.trunc(a)
    np.rint(a)
    np.round(a)
    np.round(a * 10, 1)
    np.around(a, decimals=1)
    np.argsort(a, axis=1)
    np.argsort(a, axis=None)
    np.any(a)
    np.any(a > 0.85, axis=(0, 1), keepdims=True)
    np.all(a, axis=0)
    np.nonzero(a > 0.5)
    np.where(a > 0.5)
    np.argwhere(a > 0.5)
    np.isclose(a, b)
    np.isclose(a, A)
    np.count_nonzero(a)
    np.count_nonzero(a > 0.5, axis=1)
    np.zeros_like(a)
    np.ones_like(a, dtype=np.float32)
    np.full_like(a, 2.0)
    np.unique(a)
    np.unique(np.round(a), return_counts=True)
    np.searchsorted(np.sort(V), v)
    np.searchsorted(np.sort(v), A, side="right")
    np.imag(a)
    np.angle(a)
    np.mean(np.arange(4) * (a > 2).sum())
    """
)
def test_what_has_no_gradient(call):
    check_same(evaluate(call, leaf), evaluate(call, np.array))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("np.shape(a)", (2, 3)),
        ("np.ndim(a)", 2),
        ("np.size(a)", 6),
        ("np.size(a, 1)", 3),
        ("np.allclose(a, A)", True),
        ("np.allclose(a, b)", False),
        ("np.array_equal(a, A)", True),
        ("np.array_equal(a, v)", False),
        ("np.iscomplexobj(a)", False),
        ("np.isrealobj(a)", True),
    ],
)
def test_plain_answers(call, value):
    found = evaluate(call, leaf)
    assert found == value and not isinstance(found, wengert.Tensor)


@calls(
    """
    np.fft.fft(v)
    np.linalg.svd(s)
    np.histogram(a)
    np.convolve(v, v)
    np.interp(v, v, v)
    np.insert(v, 0, 1)
    np.apply_along_axis(np.sum, 0, a)
    np.add.reduce(a)
    np.add.outer(v, v)
    np.multiply.accumulate(v)
    np.add(a, b, out=A.copy())
    np.sin(a, where=A > 0.5)
    np.sum(a, initial=1.0)
    np.mean(a, where=A > 0.5)
    np.spacing(a)
    np.linalg.norm(s, ord=2)
    np.reshape(a, (3, 2), order="F")
    np.sort(a, kind="stable")
    np.unique(a, return_index=True)
    np.average(a, weights=v)
    np.round(a, 1, A)
    """
)
def test_unsupported_is_a_type_error(call):
    with pytest.raises(TypeError):
        evaluate(call, leaf)


def test_errors_name_the_function():
    with pytest.raises(TypeError, match="no implementation found for 'numpy.convolve'"):
        np.convolve(leaf(V), V)
    with pytest.raises(TypeError, match=r"numpy.sum\(\) got an unexpected keyword .*'initial'"):
        np.sum(leaf(A), initial=1.0)
    with pytest.raises(ValueError, match="equal division"):
        np.split(leaf(A), 2, axis=1)


def test_array_on_the_left_gives_a_tensor():
    for function in (
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / y,
        lambda x, y: x**y,
        lambda x, y: x @ y,
        lambda x, y: x > y,
        lambda x, y: x == y,
        lambda x, y: x // y,
        lambda x, y: x % y,
    ):
        found = function(V, leaf(V))
        assert isinstance(found, wengert.Tensor)
        np.testing.assert_allclose(found.detach().numpy(), function(V, V))
        found = function(leaf(V), V)
        assert isinstance(found, wengert.Tensor)
        np.testing.assert_allclose(found.detach().numpy(), function(V, V))


def test_double_backward_through_numpy():
    x = leaf(V)
    (first,) = wengert.autograd.grad(np.sum(np.sin(x) * np.exp(x)), x, create_graph=True)
    (second,) = wengert.autograd.grad(np.sum(first), x)
    np.testing.assert_allclose(second.numpy(), 2 * np.exp(V) * np.cos(V), rtol=1e-12)


def test_existing_numpy_code_is_differentiable():
    def logistic_loss(weights, inputs, labels):
        predictions = 1 / (1 + np.exp(-np.dot(inputs, weights)))
        chosen = predictions * labels + (1 - predictions) * (1 - labels)
        return -np.sum(np.log(chosen))

    inputs, labels = A, np.array([1.0, 0.0])
    weights = leaf(V)
    loss = logistic_loss(weights, inputs, labels)
    loss.backward()
    assert loss.item() == pytest.approx(logistic_loss(V, inputs, labels))
    expected = inputs.T @ (1 / (1 + np.exp(-inputs @ V)) - labels)
    np.testing.assert_allclose(weights.grad.numpy(), expected, rtol=1e-12)


def test_in_place_operator_of_an_array_refuses_a_tensor():
    """An ndarray cannot hold a graph."""
    array = V.copy()
    with pytest.raises(TypeError):
        np.add(array, leaf(V), out=array)


def test_asarray_refuses_to_lose_a_graph():
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(leaf(V))
    assert np.asarray(leaf(V).detach()).tolist() == V.tolist()


def test_array_shares_memory():
    x = wengert.ones(3)
    np.asarray(x)[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 1.0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64


def test_integer_and_boolean_tensors():
    x = wengert.arange(6).reshape(2, 3)
    array = np.arange(6).reshape(2, 3)
    for call in (
        lambda t: np.sum(t, axis=0),
        lambda t: np.add(t, 1),
        lambda t: np.bitwise_and(t, 3),
        lambda t: np.left_shift(t, 1),
        lambda t: np.invert(t),
        lambda t: np.floor_divide(t, 2),
        lambda t: np.greater(t, 2),
    ):
        found, wanted = call(x), call(array)
        assert found.numpy().tolist() == wanted.tolist()
        assert found.numpy().dtype == wanted.dtype


def test_subclass_of_tensor():
    from wengert.nn import Parameter

    weights = Parameter(wengert.tensor(V))
    np.sum(np.square(weights)).backward()
    np.testing.assert_allclose(weights.grad.numpy(), 2 * V)
