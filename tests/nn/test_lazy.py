"""Layers that find a size out from their first input."""

import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import wengert


def test_lazy_linear(lib):
    layer = lib.nn.LazyLinear(4)
    assert repr(layer) == "LazyLinear(in_features=0, out_features=4, bias=True)"
    assert repr(layer.weight) == "<UninitializedParameter>"
    assert layer.has_uninitialized_params() and isinstance(layer, lib.nn.Linear)
    assert isinstance(layer.bias, lib.nn.UninitializedParameter)
    parameters = list(layer.parameters())
    assert layer(lib.ones(2, 3)).shape == (2, 4)
    assert type(layer) is lib.nn.Linear and layer.in_features == 3
    assert all(a is b for a, b in zip(parameters, layer.parameters(), strict=True))
    assert type(layer.weight) is lib.nn.Parameter and layer.weight.requires_grad
    assert 0 < layer.weight.abs().max() <= 3**-0.5
    assert not layer._forward_pre_hooks and not layer._load_state_dict_pre_hooks
    assert not hasattr(layer, "_initialize_hook")
    layer(lib.ones(2, 3)).sum().backward()
    assert layer.weight.grad is not None


def test_options(lib):
    layer = lib.nn.LazyLinear(4, False, "cpu", lib.float64)
    assert layer.bias is None and layer.weight.dtype == lib.float64
    assert layer(lib.ones(2, 3, dtype=lib.float64)).dtype == lib.float64
    other = lib.nn.LazyLinear(4).double()
    assert other(lib.ones(2, 3, dtype=lib.float64)).dtype == lib.float64
    assert [p.name for p in inspect.signature(lib.nn.LazyLinear).parameters.values()] == [
        "out_features", "bias", "device", "dtype",
    ]  # fmt: skip


def test_states_are_loaded(lib):
    source = lib.nn.Linear(3, 4)
    layer = lib.nn.LazyLinear(4)
    layer.load_state_dict(source.state_dict())
    assert lib.equal(layer.weight, source.weight) and not layer.has_uninitialized_params()
    x = lib.ones(2, 3)
    assert lib.equal(layer(x), source(x))
    assert type(layer) is lib.nn.Linear and layer.in_features == 3
    lazy = lib.nn.LazyLinear(4)
    lazy.load_state_dict(lib.nn.LazyLinear(4).state_dict())
    assert lazy.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        source.load_state_dict(lib.nn.LazyLinear(4).state_dict())


def test_copies(lib):
    layer = lib.nn.LazyLinear(4)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.has_uninitialized_params() and repr(other) == repr(layer)
        assert other(lib.ones(1, 2)).shape == (1, 4)
    assert layer.has_uninitialized_params()


def test_uninitialised_tensors(lib):
    parameter = lib.nn.UninitializedParameter(dtype=lib.float64)
    assert parameter.requires_grad and lib.nn.parameter.is_lazy(parameter)
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        parameter.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        parameter + 1
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        lib.sin(parameter)
    parameter.materialize((2, 3))
    assert type(parameter) is lib.nn.Parameter and parameter.shape == (2, 3)
    assert parameter.dtype == lib.float64 and parameter.requires_grad
    assert (parameter + 1).shape == (2, 3)
    buffer = lib.nn.UninitializedBuffer()
    assert isinstance(buffer, lib.nn.Buffer) and not buffer.requires_grad
    buffer.materialize((2,), dtype=lib.int64)
    assert buffer.shape == (2,) and buffer.dtype == lib.int64 and (buffer + 1).shape == (2,)


def test_modules_of_programs(lib):
    class Scale(lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = lib.nn.UninitializedParameter()
            self.register_buffer("shift", lib.nn.UninitializedBuffer())

        def initialize_parameters(self, x):
            if self.has_uninitialized_params():
                with lib.no_grad():
                    self.factor.materialize(x.shape)
                    self.factor.fill_(2)
                    self.shift.materialize(x.shape)
                    self.shift.fill_(1)

        def forward(self, x):
            return x * self.factor + self.shift

    module = lib.nn.Sequential(Scale(), lib.nn.LazyLinear(1))
    assert module(lib.ones(3)).shape == (1,)
    assert module[0](lib.ones(3)).tolist() == [3.0, 3.0, 3.0]
    assert list(module.state_dict()) == ["0.factor", "0.shift", "1.weight", "1.bias"]

    class Nothing(lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for"):
        Nothing()(1)

    class Forgetful(Scale):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="module Forgetful has not been fully initialized"):
        Forgetful()(lib.ones(2))


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")
def test_norms_need_a_shape(lib):
    for norm in (lib.nn.utils.weight_norm, lib.nn.utils.spectral_norm):
        with pytest.raises(ValueError, match="can't have uninitialized parameters"):
            norm(lib.nn.LazyLinear(2))


def test_any_layer_has_a_lazy_form():
    from wengert.nn.modules.layer import Layer, parameter
    from wengert.nn.modules.lazy import lazy_form

    class Shift(Layer, fields="width, by=1.0"):
        weight = parameter("width", init=lambda layer, t: wengert.nn.init.constant_(t, layer.by))

        def forward(self, x):
            return x + self.weight

    layer = lazy_form(Shift, "width", 0)(by=2.0)
    assert repr(layer) == "LazyShift(width=0, by=2.0)"
    assert layer(wengert.zeros(2)).tolist() == [2.0, 2.0]
    assert repr(layer) == "Shift(width=2, by=2.0)"


LAZY = {
    "LazyConv1d": ((4, 3), (2, 5, 6), (5, 6)),
    "LazyConv2d": ((4, 3, 1, "same"), (2, 5, 6, 6), (5, 6, 6)),
    "LazyConv3d": ((4, 2), (2, 5, 3, 3, 3), (5, 3, 3, 3)),
    "LazyConvTranspose1d": ((4, 3), (2, 5, 6), (5, 6)),
    "LazyConvTranspose2d": ((4, 3, 2), (2, 5, 3, 3), (5, 3, 3)),
    "LazyConvTranspose3d": ((4, 2), (2, 5, 2, 2, 2), (5, 2, 2, 2)),
    "LazyBatchNorm1d": ((), (4, 5), (4, 5, 2)),
    "LazyBatchNorm2d": ((1e-3,), (2, 5, 3, 3), (1, 5, 2, 2)),
    "LazyBatchNorm3d": ((), (2, 5, 2, 2, 2), (2, 5, 1, 2, 2)),
    "LazyInstanceNorm1d": ((), (2, 5, 3), (2, 5, 4)),
    "LazyInstanceNorm2d": ((), (2, 5, 3, 3), (2, 5, 2, 2)),
    "LazyInstanceNorm3d": ((), (2, 5, 2, 2, 2), (2, 5, 1, 2, 2)),
}


@pytest.mark.parametrize("shape", [0, 1])
@pytest.mark.parametrize("name", LAZY)
def test_lazy_layers_of_pictures(name, shape):
    torch = pytest.importorskip("torch")
    arguments, *shapes = LAZY[name]
    found = []
    for lib in (wengert, torch):
        lib.manual_seed(0)
        layer = getattr(lib.nn, name)(*arguments)
        before = repr(layer)
        out = layer(lib.linspace(-1, 1, math.prod(shapes[shape])).reshape(shapes[shape]))
        state = {key: value.tolist() for key, value in layer.state_dict().items()}
        found.append((before, repr(layer), type(layer).__name__, state, list(out.shape)))
    mine, its = found
    assert mine[:3] == its[:3] and mine[4] == its[4]
    assert mine[3].keys() == its[3].keys()
    for key, value in mine[3].items():
        assert np.allclose(value, its[3][key], atol=1e-6), key
