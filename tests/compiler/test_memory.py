"""A trace that has ended keeps nothing of its tensors, whose level refers to them."""

import gc
import weakref

import pytest

import wengert
from wengert.compiler import trace


class Double(wengert.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 + 0 * x


def failing(x):
    x.sin()
    raise ValueError("not traced")


def fails(x):
    with pytest.raises(ValueError, match="not traced"):
        wengert.compile(failing)(x)


USES = {
    "trace": lambda x: trace(lambda t: t.sin() * 2, x),
    "compile": lambda x: wengert.compile(lambda t: t.sin() * 2)(x),
    "backward": lambda x: wengert.compile(lambda t: (t.sin() * 2).sum())(x).backward(),
    "function": lambda x: wengert.compile(lambda t: Double.apply(t).sum())(x).backward(),
    "captured": lambda x: wengert.compile(lambda: x.sin() * 2)(),
    "failure": fails,
}


def references(use, history):
    """What the collector should be able to free after a use: a tensor and what it came from."""
    leaf = wengert.ones(3, requires_grad=True)
    x = leaf * 1 if history else leaf
    use(x)
    return weakref.ref(leaf), weakref.ref(x)


@pytest.mark.parametrize("history", [False, True], ids=["leaf", "result"])
@pytest.mark.parametrize("name", USES)
def test_arguments_die(name, history):
    leaf, x = references(USES[name], history)
    gc.collect()
    assert leaf() is None
    assert x() is None


@pytest.mark.parametrize("name", USES)
def test_number_of_objects_does_not_grow(name):
    def number_after(times):
        for _ in range(times):
            references(USES[name], True)
        gc.collect()
        return len(gc.get_objects())

    number_after(3)
    before = number_after(5)
    assert number_after(20) <= before + 10
