"""`functional_call` and `stack_module_state`, on modules of one's own and on PyTorch's."""

import numpy as np
import pytest

import wengert


class Plain:
    """What Wengert takes for a module: a callable that names its parameters and buffers."""

    training = True

    def named_parameters(self, remove_duplicate=True):
        yield from self._named("parameters", remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        yield from self._named("buffers", remove_duplicate)

    def _named(self, kind, remove_duplicate, prefix="", seen=None):
        seen = set() if seen is None else seen
        for name in getattr(self, kind, ()):
            value = getattr(self, name)
            if not (remove_duplicate and id(value) in seen):
                seen.add(id(value))
                yield prefix + name, value
        for name in getattr(self, "children", ()):
            child = getattr(self, name)
            yield from child._named(kind, remove_duplicate, f"{prefix}{name}.", seen)

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def eval(self):
        self.training = False
        return self


CLASSES = {}


def make(lib, name, attributes, forward, children=None, buffers=()):
    """A module of `lib` with these tensors as parameters, or as buffers where listed."""
    base = Plain if lib is wengert else lib.nn.Module
    key = (base, name, tuple(attributes))
    module = CLASSES.setdefault(key, type(name, (base,), {"forward": forward}))()
    if lib is wengert:
        module.parameters = [key for key in attributes if key not in buffers]
        module.buffers = list(buffers)
        module.children = list(children or {})
        for key, value in attributes.items():
            is_buffer = key in buffers
            setattr(module, key, value if is_buffer else value.detach().requires_grad_())
    else:
        for key, value in attributes.items():
            if key in buffers:
                module.register_buffer(key, value)
            else:
                setattr(module, key, lib.nn.Parameter(value))
    for key, child in (children or {}).items():
        setattr(module, key, child)
    return module


def linear(lib, weight, bias=None):
    def forward(self, x):
        y = self.weight @ x
        return y + self.bias if hasattr(self, "bias") else y

    attributes = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
    return make(lib, "Linear", attributes, forward)


def network(lib):
    children = {
        "first": linear(lib, lib.eye(2) * 2, lib.ones(2)),
        "second": linear(lib, lib.eye(2), lib.zeros(2)),
    }
    return make(lib, "Network", {}, lambda self, x: self.second(self.first(x).tanh()), children)


def counter(lib):
    def forward(self, x):
        self.count = self.count + 1
        return x * self.weight + self.count

    attributes = {"weight": lib.ones(()), "count": lib.zeros(())}
    return make(lib, "Counter", attributes, forward, buffers=("count",))


def test_parameters_are_replaced_for_the_call(lib):
    model = linear(lib, lib.eye(2), lib.zeros(2))
    x = lib.tensor([1.0, 2.0])
    found = lib.func.functional_call(model, {"weight": lib.ones(2, 2)}, (x,))
    assert found.tolist() == [3.0, 3.0]
    assert model(x).tolist() == [1.0, 2.0]


def test_one_argument_needs_no_tuple(lib):
    model = linear(lib, lib.eye(2), lib.zeros(2))
    assert lib.func.functional_call(model, {}, lib.ones(2)).tolist() == [1.0, 1.0]
    assert lib.func.functional_call(model, {}, kwargs={"x": lib.ones(2)}).tolist() == [1.0, 1.0]


def test_names_are_paths(lib):
    model, x = network(lib), lib.ones(2)
    found = lib.func.functional_call(model, {"second.weight": lib.zeros(2, 2)}, x)
    assert found.tolist() == [0.0, 0.0]
    assert model.second.weight.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_module_is_restored_after_an_error(lib):
    model = linear(lib, lib.eye(2), lib.zeros(2))
    with pytest.raises(RuntimeError):
        lib.func.functional_call(model, {"weight": lib.ones(2, 3)}, lib.ones(2))
    assert model(lib.ones(2)).tolist() == [1.0, 1.0]


def test_several_dictionaries(lib):
    model = linear(lib, lib.eye(2), lib.zeros(2))
    both = ({"weight": lib.ones(2, 2)}, {"bias": lib.ones(2)})
    assert lib.func.functional_call(model, both, lib.ones(2)).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        lib.func.functional_call(model, (both[0], both[0]), lib.ones(2))
    with pytest.raises(ValueError, match="Expected all elements of parameter_and_buffer_dicts to"):
        lib.func.functional_call(model, [3], lib.ones(2))
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict"):
        lib.func.functional_call(model, 3, lib.ones(2))


def test_only_tensors_are_put_in(lib):
    model = linear(lib, lib.eye(2))
    with pytest.raises(TypeError, match="is not an instance of .*Tensor"):
        lib.func.functional_call(model, {"weight": 1.0}, lib.ones(2))


def test_strict(lib):
    model = linear(lib, lib.eye(2), lib.zeros(2))
    given = {"weight": lib.eye(2)}
    with pytest.raises(RuntimeError, match="(?s)reparametrizing for Linear.*Missing key.*bias"):
        lib.func.functional_call(model, given, lib.ones(2), strict=True)
    given |= {"bias": lib.ones(2), "other": lib.ones(2)}
    with pytest.raises(RuntimeError, match="(?s)reparametrizing for Linear.*Unexpected key.*other"):
        lib.func.functional_call(model, given, lib.ones(2), strict=True)


def test_buffers_that_the_module_replaces_are_returned_in_the_dictionary(lib):
    model = counter(lib)
    state = {"count": lib.tensor(5.0)}
    assert lib.func.functional_call(model, state, lib.tensor(1.0)).item() == 7.0
    assert state["count"].item() == 6.0
    assert model.count.item() == 0.0


def test_tied_weights(lib):
    shared = lib.eye(2)
    children = {"a": linear(lib, shared), "b": linear(lib, shared)}
    model = make(lib, "Tied", {}, lambda self, x: self.b(self.a(x)), children)
    model.b.weight = model.a.weight
    x, double = lib.ones(2), lib.eye(2) * 2
    call = lib.func.functional_call
    assert call(model, {"a.weight": double}, x).tolist() == [4.0, 4.0]
    assert call(model, {"b.weight": double}, x).tolist() == [4.0, 4.0]
    assert call(model, {"a.weight": double}, x, tie_weights=False).tolist() == [2.0, 2.0]
    assert call(model, {"a.weight": double}, x, strict=True).tolist() == [4.0, 4.0]
    with pytest.raises(ValueError, match="got multiple values for keys .* which are tied"):
        call(model, {"a.weight": double, "b.weight": lib.eye(2)}, x)


def test_gradients_in_the_parameters(lib):
    model = network(lib)
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def loss(parameters, x):
        return lib.func.functional_call(model, parameters, x).sum()

    found = lib.func.grad(loss)(parameters, lib.ones(2))
    loss(dict(model.named_parameters()), lib.ones(2)).backward()
    for name, value in model.named_parameters():
        np.testing.assert_allclose(found[name].tolist(), value.grad.tolist(), rtol=1e-5)


def test_stacked_state(lib):
    models = [linear(lib, lib.eye(2) * k, lib.ones(2) * k) for k in (1.0, 2.0, 3.0)]
    parameters, buffers = lib.func.stack_module_state(models)
    assert buffers == {}
    assert sorted(parameters) == ["bias", "weight"]
    assert tuple(parameters["weight"].shape) == (3, 2, 2)
    assert parameters["weight"].requires_grad and parameters["weight"].is_leaf

    def call(parameters, x):
        return lib.func.functional_call(models[0], parameters, x)

    found = lib.vmap(call, in_dims=(0, None))(parameters, lib.ones(2))
    assert found.tolist() == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    found.sum().backward()
    assert parameters["bias"].grad.tolist() == [[1.0, 1.0]] * 3
    assert all(value.grad is None for model in models for _, value in model.named_parameters())


def test_stacked_buffers(lib):
    parameters, buffers = lib.func.stack_module_state([counter(lib), counter(lib)])
    assert buffers["count"].tolist() == [0.0, 0.0] and not buffers["count"].requires_grad


def test_models_must_be_alike(lib):
    stack = lib.func.stack_module_state
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        stack([])
    with pytest.raises(RuntimeError, match="Expected all models to be of the same class"):
        stack([linear(lib, lib.eye(2)), counter(lib)])
    with pytest.raises(RuntimeError, match="the same training/eval mode"):
        stack([linear(lib, lib.eye(2)), linear(lib, lib.eye(2)).eval()])


@pytest.mark.parametrize("module", [3, wengert.sin, object()])
def test_what_is_no_module(module):
    with pytest.raises(TypeError, match="a module is a callable with named_parameters"):
        wengert.func.functional_call(module, {}, wengert.ones(2))
    with pytest.raises(TypeError, match="a module is a callable with named_parameters"):
        wengert.func.stack_module_state([module])


def test_unknown_names():
    model = linear(wengert, wengert.eye(2))
    with pytest.raises(AttributeError, match="has no attribute `wrong`"):
        wengert.func.functional_call(model, {"wrong": wengert.ones(2)}, wengert.ones(2))


def test_batch_norms_without_statistics():
    class _BatchNorm:
        track_running_stats = True
        running_mean = running_var = num_batches_tracked = 0

    class BatchNorm1d(_BatchNorm):
        pass

    class Model:
        def __init__(self):
            self.parts = [BatchNorm1d(), Plain(), self]

        def modules(self):
            return iter(self.parts)

    model = Model()
    assert wengert.func.replace_all_batch_norm_modules_(model) is model
    norm = model.parts[0]
    assert norm.running_mean is norm.running_var is norm.num_batches_tracked is None
    assert norm.track_running_stats is False
    assert not hasattr(model.parts[1], "running_mean")
    with pytest.raises(TypeError, match="a module has modules"):
        wengert.func.replace_all_batch_norm_modules_(3)


def test_names_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    assert sorted(wengert.func.__all__) == sorted(torch.func.__all__)
