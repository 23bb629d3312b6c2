"""What operators inside vmap refuse, and what they share memory with."""

import numpy as np
import pytest


def _tensor(lib, *shape, high=None, seed=0):
    random = np.random.default_rng(seed)
    if high is not None:
        return lib.tensor(random.integers(0, high, shape))
    return lib.tensor(random.uniform(-2, 2, shape))


def _check(lib, function, args, dims):
    """vmap equals the loop."""
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    rows = [[a if d is None else a.select(d, i) for a, d in zip(args, dims)] for i in range(size)]
    want = lib.stack([function(*row) for row in rows])
    got = lib.vmap(function, tuple(dims))(*args)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-10)


# Indices ------------------------------------------------------------------------------------------


def test_an_index_of_each_example(lib):
    x, i = _tensor(lib, 3, 4), lib.tensor([0, 3, 1])
    _check(lib, lambda x, i: x[i], (x, i), (0, 0))
    _check(lib, lambda i: x[:, i], (i,), (0,))

    def assigned(x, i):
        x = x.clone()
        x[i] = 7
        return x

    _check(lib, assigned, (x, i), (0, 0))


def test_accumulating_writes(lib):
    x, i, v = _tensor(lib, 2, 3), _tensor(lib, 2, 5, high=3), _tensor(lib, 2, 5, seed=3)
    for dims in ((0, 0, 0), (0, 0, None), (0, None, 0)):
        args = [a if d == 0 else a[0] for a, d in zip((x, i, v), dims)]
        _check(lib, lambda x, i, v: x.index_put((i,), v, accumulate=True), args, dims)
        _check(lib, lambda x, i, v: x.index_add(0, i, v), args, dims)
        _check(lib, lambda x, i, v: x.scatter_add(0, i, v), args, dims)


def test_a_shared_mask(lib):
    x, mask = _tensor(lib, 2, 3, 4), _tensor(lib, 3, 4) > 0
    _check(lib, lambda x: x[mask], (x,), (0,))
    _check(lib, lambda x: x.masked_select(mask), (x,), (0,))
    _check(lib, lambda x: x[mask[:, 0]], (x,), (0,))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_repetitions_of_equal_totals(lib):
    x, counts = _tensor(lib, 2, 3), lib.tensor([[1, 0, 2], [2, 1, 0]])
    _check(lib, lambda x, n: x.repeat_interleave(n), (x, counts), (0, 0))
    _check(lib, lambda x, n: x.repeat_interleave(n), (x[0], counts), (None, 0))
    with pytest.raises(RuntimeError):
        lib.vmap(lambda x, n: x.repeat_interleave(n))(x, lib.tensor([[1, 0, 2], [2, 1, 1]]))


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x: x.nonzero(),
        lambda lib, x: lib.where(x > 0),
        lambda lib, x: x[x > 0],
        lambda lib, x: x.unique(),
    ],
)
def test_a_shape_that_depends_on_values_is_refused(lib, function):
    with pytest.raises(RuntimeError, match="dynamic shape"):
        lib.vmap(lambda x: function(lib, x))(_tensor(lib, 2, 3))


def test_masked_select_by_a_batched_mask_is_refused(lib):
    x = _tensor(lib, 2, 3)
    with pytest.raises(RuntimeError, match="vmap"):
        lib.vmap(lib.masked_select)(x, x > 0)


def test_one_hot_needs_the_number_of_classes(lib):
    one_hot = lib.nn.functional.one_hot
    with pytest.raises(RuntimeError, match="num_classes"):
        lib.vmap(one_hot)(lib.tensor([[0, 1]]))
    _check(lib, lambda x: one_hot(x, 3), (lib.tensor([[0, 1], [2, 1]]),), (0,))


@pytest.mark.parametrize(
    "write",
    [
        lambda target, x: target.copy_(x),
        lambda target, x: target.add_(x),
        lambda target, x: target.__setitem__(0, x[0]),
        lambda target, x: target.index_put_((x.argmax().reshape(1),), x[:1]),
    ],
)
def test_writing_each_example_into_one_tensor_is_refused(lib, write):
    target = lib.zeros(3, dtype=lib.float64)
    with pytest.raises(RuntimeError, match="vmap|doesn't match the broadcast shape"):
        lib.vmap(lambda x: write(target, x))(_tensor(lib, 2, 3))


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_views_of_a_batch_share_its_memory(lib, dim):
    views = [
        lambda x: x[0], lambda x: x[:, 1:], lambda x: x.t(), lambda x: x.T[1],
        lambda x: x.diagonal(), lambda x: x.unsqueeze(1), lambda x: x.unbind(1)[2],
        lambda x: x.movedim(0, 1), lambda x: x.split(1)[1], lambda x: x.unfold(1, 2, 2),
        lambda x: x.narrow(1, 1, 2), lambda x: x.view(2, 6)[1], lambda x: x.squeeze()[1],
    ]  # fmt: skip
    for view in views:
        x = lib.zeros(2, 3, 4).movedim(0, dim)
        want = lib.zeros(3, 4)
        view(want).add_(1)
        lib.vmap(lambda x, view=view: view(x).add_(1), dim)(x)
        np.testing.assert_array_equal(x.select(dim, 1).numpy(), want.numpy())


def test_in_place_views(lib):
    for change in (
        lambda x: x.unsqueeze_(1), lambda x: x.transpose_(0, 1), lambda x: x.t_(),
        lambda x: x.unsqueeze_(0).squeeze_(0), lambda x: x.swapaxes_(-1, -2),
    ):  # fmt: skip
        _check(lib, lambda x, c=change: c(x.clone()) * 2, (_tensor(lib, 2, 3, 4),), (0,))
