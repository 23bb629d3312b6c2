"""Memory formats in which channels are the innermost dimension."""

import pytest

import wengert
from wengert.autograd import gradcheck


def _strides(t):
    return tuple(t.stride())


def test_making_and_asking(lib):
    x = lib.arange(120.0).reshape(2, 3, 4, 5)
    y = x.contiguous(memory_format=lib.channels_last)
    assert _strides(y) == (60, 1, 15, 3) and y.equal(x)
    assert y.is_contiguous(memory_format=lib.channels_last) and not y.is_contiguous()
    assert x.is_contiguous() and not x.is_contiguous(memory_format=lib.channels_last)
    assert y.contiguous(memory_format=lib.channels_last) is y
    assert _strides(y.contiguous()) == (60, 20, 5, 1)
    assert not lib.ones(2, 3).is_contiguous(memory_format=lib.channels_last)
    for made in (
        x.to(memory_format=lib.channels_last), x.clone(memory_format=lib.channels_last),
        lib.empty(2, 3, 4, 5, memory_format=lib.channels_last), y.clone(), lib.zeros_like(y),
        lib.ones_like(x, memory_format=lib.channels_last), y.double(), y * 2, y + y, y.relu(),
        x.to(lib.float64, memory_format=lib.channels_last),
    ):  # fmt: skip
        assert _strides(made) == _strides(y)
    volume = lib.ones(2, 3, 1, 2, 2).contiguous(memory_format=lib.channels_last_3d)
    assert volume.is_contiguous(memory_format=lib.channels_last_3d)
    assert _strides(volume) == (12, 1, 12, 6, 3)
    assert not y._is_view()


def test_other_numbers_of_dimensions_are_refused(lib):
    for call in (
        lambda: lib.ones(2, 3).contiguous(memory_format=lib.channels_last),
        lambda: lib.ones(2, 3).clone(memory_format=lib.channels_last),
        lambda: lib.empty(2, 3, memory_format=lib.channels_last_3d),
    ):
        with pytest.raises(RuntimeError, match="required rank"):
            call()


def test_modules(lib):
    class Filters(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2, 3, 4, 5))
            self.bias = lib.nn.Parameter(lib.ones(2))

    model = Filters().to(memory_format=lib.channels_last)
    assert _strides(model.weight) == (60, 1, 15, 3) and _strides(model.bias) == (1,)


def test_gradients_batches_graphs_and_shapes():
    x = wengert.arange(24.0, dtype=wengert.float64).reshape(1, 2, 3, 4).requires_grad_()

    def turned(x):
        return x.contiguous(memory_format=wengert.channels_last) * 2

    assert gradcheck(turned, (x,), check_forward_ad=True, check_batched_grad=True)
    batch = wengert.stack([x, x + 1]).detach()
    assert wengert.vmap(turned)(batch).equal(batch * 2)
    compiled = wengert.compile(turned)(x)
    assert compiled.equal(x * 2) and _strides(compiled) == _strides(turned(x))
    shaped = turned(x.detach().to("meta"))
    assert _strides(shaped) == _strides(turned(x))


def test_formats_have_names(lib):
    assert repr(lib.channels_last).endswith(".channels_last")
    assert isinstance(lib.channels_last_3d, lib.memory_format)
