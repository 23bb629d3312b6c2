"""What a recorded operation costs in memory, beside the tensors it saves."""

import sys

import pytest

import wengert


@pytest.mark.compiled_only
def test_node_of_a_product_with_a_constant():
    factor = wengert.ones(2)
    y = wengert.ones(2, requires_grad=True) * factor * factor
    node = y.grad_fn
    assert node.saved is factor  # without a tuple around it
    assert sys.getsizeof(node) + sys.getsizeof(node.next_nodes) <= 224


@pytest.mark.compiled_only
def test_tensor():
    assert sys.getsizeof(wengert.ones(2)) <= 112
