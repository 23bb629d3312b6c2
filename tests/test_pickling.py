"""Pickles and deep copies of tensors."""

import copy
import io
import pickle

import numpy as np
import pytest

import wengert


def there_and_back(thing):
    return pickle.loads(pickle.dumps(thing))


class Special(wengert.Tensor):
    """A subclass that pickle can find by name."""


@pytest.mark.parametrize("name", [each.name for each in wengert.core.dtypes.ALL])
def test_values_and_types(name):
    source = wengert.tensor([[0, 1], [2, 3]], dtype=getattr(wengert, name))
    for made in (there_and_back(source), copy.deepcopy(source)):
        assert made.tolist() == source.tolist()
        assert made.dtype is source.dtype
        assert made.is_leaf and not made.requires_grad
        assert not np.shares_memory(made.array, source.array)


def test_leaves_keep_requires_grad(lib):
    source = lib.ones(2, requires_grad=True)
    for made in (there_and_back(source), copy.deepcopy(source)):
        assert made.requires_grad and made.is_leaf


def test_results_become_leaves(lib):
    made = there_and_back(lib.ones(2, requires_grad=True) * 2)
    assert made.requires_grad and made.is_leaf
    assert made.tolist() == [2.0, 2.0]


def test_results_cannot_be_deep_copied(lib):
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(lib.ones(2, requires_grad=True) * 2)


def test_view_of_a_leaf_made_without_recording(lib):
    leaf = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        view, of_result = leaf[:2], (leaf * 2)[:2]
    assert view.requires_grad and not of_result.requires_grad
    for made in (there_and_back(view), copy.deepcopy(view)):
        assert made.requires_grad and made.is_leaf and made._base is None
    assert not copy.deepcopy(of_result).requires_grad


def test_one_object_stays_one(lib):
    source = lib.ones(2)
    for made in (there_and_back([source, source]), copy.deepcopy([source, source])):
        assert made[0] is made[1]


def test_deep_copies_take_the_gradient_along(lib):
    source = lib.ones(2, requires_grad=True)
    source.grad = lib.full((2,), 3.0)
    made = copy.deepcopy(source)
    assert made.grad.tolist() == [3.0, 3.0]
    assert made.grad is not source.grad
    assert there_and_back(source).grad is None


def test_attributes_travel(lib):
    source = lib.ones(1)
    source.label = ["a"]
    for made in (there_and_back(source), copy.deepcopy(source)):
        assert made.label == ["a"]
        assert made.label is not source.label


def test_subclasses_stay():
    made = there_and_back(Special([1.0]))
    assert type(made) is Special
    assert made.tolist() == [1.0]
    assert type(copy.deepcopy(made)) is Special


def test_0d_stays_an_array():
    made = there_and_back(wengert.tensor(2.0))
    assert isinstance(made.array, np.ndarray)
    assert made.array.ndim == 0


def test_meta():
    source = wengert.ones(2, 3, dtype=wengert.int8, device="meta")
    for made in (there_and_back(source), copy.deepcopy(source)):
        assert made.device.type == "meta"
        assert (tuple(made.shape), made.dtype) == ((2, 3), wengert.int8)


def test_every_protocol():
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        stream = io.BytesIO()
        pickle.dump(wengert.arange(3), stream, protocol)
        stream.seek(0)
        assert pickle.load(stream).tolist() == [0, 1, 2]
