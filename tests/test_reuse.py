"""Freed records and small arrays are used again, and only those that nobody else can see."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import wengert
from wengert.core.reuse import kept_arrays, release_arrays

pytestmark = pytest.mark.compiled_only


@pytest.fixture(autouse=True)
def nothing_kept():
    release_arrays()
    assert kept_arrays() == 0


def product(size=5, dtype=wengert.float32):
    x = wengert.ones(size, dtype=dtype)
    return x * x


def test_an_array_is_taken_again():
    p = product()
    address = p.data_ptr()
    del p
    assert kept_arrays()
    assert product().data_ptr() == address


@pytest.mark.parametrize("hold", [lambda t: t.numpy(), lambda t: t.detach(), lambda t: t[1:],
                                  lambda t: memoryview(t.numpy())])  # fmt: skip
def test_what_somebody_holds_stays(hold):
    p = product()
    held = hold(p)
    before = np.array(held)
    del p
    others = [product() + 3 for _ in range(20)]
    assert (np.asarray(held) == before).all()
    assert len(others) == 20


def test_arrays_with_weak_references_are_freed():
    p = product()
    dead = weakref.ref(p.numpy())
    del p
    assert dead() is None


def test_shapes_and_types_are_kept_apart():
    for shape in [(6,), (2, 3), (3, 2), (1, 6), (), (0,), (2, 0)]:
        for dtype in (wengert.float32, wengert.float64):
            for _ in range(3):
                x = wengert.ones(shape, dtype=dtype)
                y = x * x
                assert y.shape == shape and y.dtype == dtype
                assert y.is_contiguous() and (y == 1).all()


def test_what_is_kept_is_bounded():
    many = [product(64) for _ in range(2000)]
    del many
    assert kept_arrays() <= 64
    large = product(10_000)
    before = kept_arrays()
    del large
    assert kept_arrays() <= before


def test_nodes_get_their_class_when_they_are_seen():
    x = wengert.ones(3, requires_grad=True)
    for _ in range(3):
        y = (x * x).exp()
        assert type(y.grad_fn).__name__ == "ExpBackward0"
        assert type(y.grad_fn) is type((x * 2).exp().grad_fn)
        assert type(y.grad_fn.next_functions[0][0]).__name__ == "MulBackward0"
        y.sum().backward()
        del y
    assert x.grad.shape == (3,)


def test_a_graph_of_great_depth_is_freed_from_its_end():
    x = wengert.ones(3, requires_grad=True)
    y = x
    for _ in range(300_000):
        y = y * x if y is x else y.exp().mul(0.3)
    del y


def test_fresh_tensors_have_nothing_of_former_ones():
    p = product()
    p.note = "mine"
    p.requires_grad_()
    del p
    for _ in range(4):
        q = product()
        assert not q.requires_grad and q.grad is None and not hasattr(q, "note")
        assert q._version == 0 and q.is_leaf
