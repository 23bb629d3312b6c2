"""Functions of networks beyond values and derivatives: dropout, constants, implicit dimensions."""

import numpy as np
import pytest

import wengert
from wengert.nn import functional


@pytest.fixture(autouse=True)
def seed():
    wengert.manual_seed(0)


def test_dropout_zeroes_a_share_and_scales_the_rest():
    x = wengert.ones(100, 100)
    y = functional.dropout(x, 0.25)
    values = np.unique(y.numpy())
    np.testing.assert_allclose(values, [0, 1 / 0.75], rtol=1e-6)
    assert abs(float((y == 0).float().mean()) - 0.25) < 0.02


def test_dropout_gradient_is_its_mask():
    x = wengert.rand(50, requires_grad=True)
    y = functional.dropout(x, 0.5)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(y.detach().numpy() == 0, 0, 2))


def test_dropout_follows_the_seed():
    x = wengert.ones(64)
    first = functional.dropout(x)
    second = functional.dropout(x)
    wengert.manual_seed(0)
    again = functional.dropout(x)
    assert wengert.equal(first, again)
    assert not wengert.equal(first, second)


def test_dropout_in_place():
    x = wengert.ones(64)
    assert functional.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_dropout_refuses_what_is_no_probability(p):
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        functional.dropout(wengert.ones(2), p)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_dropout_of_channels(count):
    x = wengert.ones(4, 16, *[3] * count)
    y = getattr(functional, f"dropout{count}d")(x, 0.5).reshape(4, 16, -1).numpy()
    assert (y == y[..., :1]).all()
    assert set(np.unique(y)) == {0.0, 2.0}


def test_attention_dropout_and_causality():
    x = wengert.rand(2, 4, 3)
    plain = functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    np.testing.assert_allclose(plain[:, 0].numpy(), x[:, 0].numpy(), rtol=1e-6)
    dropped = functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
    assert not wengert.allclose(dropped, functional.scaled_dot_product_attention(x, x, x))


def _weighted(lib):
    x = lib.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    y = x.clone()
    classes = lib.tensor([0, 2])
    f = lib.nn.functional
    return {
        "nll_loss": lambda w: f.nll_loss(x, classes, w),
        "cross_entropy": lambda w: f.cross_entropy(x, classes, w),
        "binary_cross_entropy": lambda w: f.binary_cross_entropy(x, y, w),
        "with_logits": lambda w: f.binary_cross_entropy_with_logits(x, y, w),
        "pos_weight": lambda w: f.binary_cross_entropy_with_logits(x, y, pos_weight=w),
    }


@pytest.mark.parametrize("name", list(_weighted(wengert)))
def test_weights_of_losses_are_constants(lib, name):
    weight = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument"):
        _weighted(lib)[name](weight)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_implicit_dimension_warns(lib, name):
    function = getattr(lib.nn.functional, name)
    x = lib.rand(2, 3)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        implicit = function(x)
    assert lib.equal(implicit, function(x, dim=1))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_warn_of_broadcasting(lib, name):
    with pytest.warns(UserWarning, match="Using a target size"):
        getattr(lib.nn.functional, name)(lib.ones(2, 3), lib.ones(3))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_refuse_unknown_reductions(lib, name):
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        getattr(lib.nn.functional, name)(lib.ones(2), lib.ones(2), reduction="median")


def test_embedding_shortens_long_rows(lib):
    weight = lib.tensor([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]])
    rows = lib.nn.functional.embedding(lib.tensor([0, 1, 0]), weight, max_norm=1.0)
    expected = [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]]
    np.testing.assert_allclose(rows.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(weight[2].numpy(), [30, 40])


def test_embedding_refuses_unknown_rows(lib):
    with pytest.raises(IndexError, match="index out of range in self"):
        lib.nn.functional.embedding(lib.tensor([3]), lib.ones(3, 2))


def test_one_hot_counts_the_classes(lib):
    assert lib.nn.functional.one_hot(lib.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes"):
        lib.nn.functional.one_hot(lib.tensor([0, 2]), 2)


def test_cross_entropy_refuses_classes_out_of_range(lib):
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        lib.nn.functional.cross_entropy(lib.ones(1, 3), lib.tensor([3]))


def test_ignored_classes_leave_nothing_to_average(lib):
    x = lib.ones(2, 3, requires_grad=True)
    loss = lib.nn.functional.cross_entropy(x, lib.tensor([1, 1]), ignore_index=1)
    assert np.isnan(loss.item())
    total = lib.nn.functional.cross_entropy(x, lib.tensor([1, 1]), ignore_index=1, reduction="sum")
    assert total.item() == 0
