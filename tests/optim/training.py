"""A small problem for optimizers, the same for any library that is given."""

import numpy as np

_numbers = np.random.default_rng(7)
WEIGHT = _numbers.standard_normal((3, 2))
BIAS = _numbers.standard_normal(4)
INPUT = _numbers.standard_normal((5, 3))


def parameters(lib, is_complex=False, dtype="float64"):
    """Two leaf tensors: a matrix and a vector."""
    made = []
    for values in (WEIGHT, BIAS):
        if is_complex:
            values = values + 1j * values[::-1]
        else:
            values = values.astype(dtype)
        made.append(lib.nn.Parameter(lib.tensor(values)))
    return made


def loss_of(lib, weight, bias, number=1):
    """A loss that is neither convex nor the same at each step."""
    if weight.is_complex():
        weight = lib.view_as_real(weight)[..., 0] - 0.5 * lib.view_as_real(weight)[..., 1]
        bias = lib.view_as_real(bias)
    product = lib.tensor(INPUT).to(weight.dtype) @ weight
    return number * (product.sin() ** 2).sum() + (bias * bias.sin() - bias).sum()


def train(lib, optimizer, params, steps=10):
    """The parameters after each of some steps."""
    trajectory = []
    for number in range(1, steps + 1):
        optimizer.zero_grad()
        loss_of(lib, *params, number).backward()
        optimizer.step()
        trajectory.append([arrays(p) for p in params])
    return trajectory


def arrays(value):
    """Containers with copies of arrays in the place of tensors."""
    if hasattr(value, "detach"):
        return value.detach().numpy().copy()
    if isinstance(value, dict):
        return {key: arrays(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(arrays(each) for each in value)
    return value


def tensors(lib, value):
    """Containers with tensors of a library in the place of arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return lib.tensor(value)
    if isinstance(value, dict):
        return {key: tensors(lib, each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(tensors(lib, each) for each in value)
    return value


def assert_same(one, other, tolerance=1e-9):
    """Equal containers of equal numbers, arrays to a tolerance and of the same dtype."""
    assert type(one) is type(other), (one, other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key], tolerance)
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            assert_same(a, b, tolerance)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    elif isinstance(one, float):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    else:
        assert one == other
