"""What a module holds: registration of parameters, buffers and modules, and access to them."""

import copy
import pickle

import pytest


def make(lib):
    class Inner(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2, 3))
            self.register_parameter("nothing", None)
            self.register_buffer("kept", lib.zeros(2))
            self.register_buffer("dropped", lib.ones(1), persistent=False)

    class Outer(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Inner()
            self.again = self.first
            self.second = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.Identity())
            self.scale = lib.nn.Parameter(lib.ones(()))
            self.empty = None

        def forward(self, x):
            return self.second(x) * self.scale

    return Outer()


def test_names_of_everything(lib):
    model = make(lib)
    assert [name for name, _ in model.named_parameters()] == [
        "scale", "first.weight", "second.0.weight", "second.0.bias",
    ]  # fmt: skip
    assert [name for name, _ in model.named_parameters(remove_duplicate=False)] == [
        "scale", "first.weight", "again.weight", "second.0.weight", "second.0.bias",
    ]  # fmt: skip
    assert [name for name, _ in model.named_parameters(prefix="p", recurse=False)] == ["p.scale"]
    assert [name for name, _ in model.named_buffers()] == ["first.kept", "first.dropped"]
    assert [name for name, _ in model.named_modules()] == [
        "", "first", "second", "second.0", "second.1",
    ]  # fmt: skip
    assert [name for name, _ in model.named_modules(prefix="m", remove_duplicate=False)] == [
        "m", "m.first", "m.again", "m.second", "m.second.0", "m.second.1",
    ]  # fmt: skip
    assert [name for name, _ in model.named_children()] == ["first", "second"]
    assert len(list(model.parameters())) == 4
    assert len(list(model.buffers())) == 2
    assert len(list(model.modules())) == 5
    assert len(list(model.children())) == 2
    assert list(model.state_dict()) == [
        "scale", "first.weight", "first.kept", "again.weight", "again.kept",
        "second.0.weight", "second.0.bias",
    ]  # fmt: skip
    assert model.first.nothing is None


def test_access_by_path(lib):
    model = make(lib)
    assert model.get_submodule("second.0") is model.second[0]
    assert model.get_submodule("") is model
    assert model.get_parameter("first.weight") is model.first.weight
    assert model.get_buffer("first.kept") is model.first.kept
    with pytest.raises(AttributeError, match="Outer has no attribute `absent`"):
        model.get_submodule("absent.0")
    with pytest.raises(AttributeError, match="`scale` is not an nn.Module"):
        model.get_submodule("scale")
    with pytest.raises(AttributeError, match="`kept` is not an nn.Parameter"):
        model.get_parameter("first.kept")
    with pytest.raises(AttributeError, match="`weight` is not a buffer"):
        model.get_buffer("first.weight")
    replacement = lib.nn.Identity()
    model.set_submodule("second.0", replacement)
    assert model.second[0] is replacement
    model.set_submodule("second.new", replacement)
    assert model.second.new is replacement
    with pytest.raises(AttributeError, match="has no attribute `other`"):
        model.set_submodule("second.other", replacement, strict=True)
    with pytest.raises(ValueError, match="without a target name"):
        model.set_submodule("", replacement)


@pytest.mark.parametrize(
    "assign, kind, phrase",
    [
        (lambda lib, m: m.register_parameter("a.b", None), KeyError, "t contain"),
        (lambda lib, m: m.register_parameter("", None), KeyError, "t be empty string"),
        (lambda lib, m: m.register_parameter(1, None), TypeError, "should be a string. Got int"),
        (lambda lib, m: m.register_parameter("train", None), KeyError, "'train' already exists"),
        (lambda lib, m: m.register_parameter("p", 1), TypeError, "cannot assign 'int' object"),
        (
            lambda lib, m: m.register_parameter("p", lib.nn.Parameter(lib.ones(2)) * 2),
            TypeError, "object to parameter 'p' .torch.nn.Parameter or None required",
        ),
        (lambda lib, m: m.register_buffer("a.b", None), KeyError, "t contain"),
        (lambda lib, m: m.register_buffer("", None), KeyError, "t be empty string"),
        (lambda lib, m: m.register_buffer(1, None), TypeError, "buffer name should be a string"),
        (lambda lib, m: m.register_buffer("scale", None), KeyError, "'scale' already exists"),
        (lambda lib, m: m.register_buffer("b", 1), TypeError, "torch Tensor or None required"),
        (lambda lib, m: m.add_module("a.b", None), KeyError, 't contain ".", got: a.b'),
        (lambda lib, m: m.add_module("", None), KeyError, "t be empty string"),
        (lambda lib, m: m.add_module("scale", None), KeyError, "'scale' already exists"),
        (lambda lib, m: m.add_module("x", 1), TypeError, "int is not a Module subclass"),
        (lambda lib, m: m.register_module(1, None), TypeError, "module name should be a string"),
        (
            lambda lib, m: setattr(m, "scale", 1.0),
            TypeError, "cannot assign 'float' as parameter 'scale' .torch.nn.Parameter or None",
        ),
        (
            lambda lib, m: setattr(m, "first", 1),
            TypeError, "cannot assign 'int' as child module 'first' .torch.nn.Module or None",
        ),
        (
            lambda lib, m: setattr(m.first, "kept", 1),
            TypeError, "cannot assign 'int' as buffer 'kept' .torch.nn.Buffer, torch.Tensor or",
        ),
        (lambda lib, m: m.absent, AttributeError, "'Outer' object has no attribute 'absent'"),
        (lambda lib, m: delattr(m, "absent"), AttributeError, "absent"),
        (lambda lib, m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        (lambda lib, m: lib.nn.Module(1), TypeError, "takes 1 positional argument but 2 were"),
        (lambda lib, m: lib.nn.Module(a=1), TypeError, "unexpected keyword argument 'a'"),
        (lambda lib, m: lib.nn.Module()(1), NotImplementedError, 'missing the required "forward"'),
        (lambda lib, m: m.to(lib.int64), TypeError, "only accepts floating point or complex"),
    ],
)  # fmt: skip
def test_errors(lib, assign, kind, phrase):
    with pytest.raises(kind, match=phrase):
        assign(lib, make(lib))


@pytest.mark.parametrize(
    "value, phrase",
    [
        (lambda lib: lib.nn.Parameter(lib.ones(1)), "cannot assign parameters before Module"),
        (lambda lib: lib.nn.Identity(), "cannot assign module before Module"),
        (lambda lib: lib.nn.Buffer(lib.ones(1)), "cannot assign buffer before Module"),
    ],
)
def test_assignment_before_the_constructor(lib, value, phrase):
    class Early(lib.nn.Module):
        def __init__(self):
            self.value = value(lib)

    with pytest.raises(AttributeError, match=phrase):
        Early()


def test_non_leaf_parameter(lib):
    computed = lib.nn.Parameter(lib.ones(2)) * 2
    computed._is_param = True
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'p'"):
        make(lib).register_parameter("p", computed)


def test_attributes_move_between_tables(lib):
    model = lib.nn.Module()
    model.thing = lib.ones(2)
    assert "thing" in model.__dict__
    model.thing = lib.nn.Parameter(lib.ones(2))
    assert "thing" not in model.__dict__ and list(model._parameters) == ["thing"]
    model.thing = None
    assert model.thing is None and "thing" in model._parameters
    del model.thing
    assert not hasattr(model, "thing")
    model.thing = lib.nn.Buffer(lib.ones(2), persistent=False)
    assert list(model._buffers) == ["thing"] and list(model.state_dict()) == []
    model.thing = lib.zeros(3)
    assert list(model._buffers) == ["thing"] and model.thing.shape == (3,)
    model.thing = lib.nn.Identity()
    assert list(model._modules) == ["thing"] and not model._buffers
    model.register_buffer("other", None)
    assert model.other is None
    model.other = lib.nn.Buffer(lib.ones(1))
    assert list(model.state_dict()) == ["other"]
    assert "other" in dir(model) and "thing" in dir(model)


def test_buffer(lib):
    data = lib.ones(2)
    made = lib.nn.Buffer(data)
    assert isinstance(made, lib.nn.Buffer) and made.persistent
    assert not isinstance(data, lib.nn.Buffer) and type(made) is lib.Tensor
    made[0] = 5
    assert data[0] == 5
    assert lib.nn.Buffer().shape == (0,)


def test_modes_and_apply(lib):
    model = make(lib)
    assert model.training and model.eval() is model
    assert not any(module.training for module in model.modules())
    assert model.train() is model and model.second[0].training
    seen = []
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert seen == ["Inner", "Linear", "Identity", "Sequential", "Outer"]
    model.requires_grad_(False)
    assert not any(p.requires_grad for p in model.parameters())


def test_casts_keep_parameters_and_gradients(lib):
    model = make(lib)
    weight = model.second[0].weight
    model.register_buffer("whole", lib.ones(2, dtype=lib.int64))
    model(lib.ones(1, 3)).sum().backward()
    assert model.double() is model and model.second[0].weight is weight
    assert weight.dtype == weight.grad.dtype == lib.float64
    assert model.first.kept.dtype == lib.float64 and model.whole.dtype == lib.int64
    assert model.to(lib.float16).scale.dtype == lib.float16
    assert model.to("cpu", lib.float32).scale.dtype == lib.float32
    assert model.to(lib.ones(1, dtype=lib.float64)).scale.dtype == lib.float64
    assert model.to(device="cpu", dtype=lib.bfloat16).scale.dtype == lib.bfloat16
    assert model.float().scale.dtype == lib.float32
    assert model.half().scale.dtype == lib.float16
    assert model.bfloat16().scale.dtype == lib.bfloat16
    assert model.type(lib.float64).whole.dtype == lib.float64
    assert model.cpu() is model
    model.zero_grad(set_to_none=False)
    assert weight.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
    model.zero_grad()
    assert weight.grad is None


def test_meta_and_back(lib):
    layer = lib.nn.Linear(2, 3, device="meta", dtype=lib.float64)
    assert layer.weight.is_meta and layer.weight.dtype == lib.float64
    layer.to_empty(device="cpu")
    assert not layer.weight.is_meta and layer.weight.shape == (3, 2)
    assert isinstance(layer.weight, lib.nn.Parameter) and layer.weight.requires_grad
    layer.reset_parameters()
    assert layer(lib.ones(1, 2, dtype=lib.float64)).shape == (1, 3)
    assert layer.to("meta").weight.is_meta


def test_copies(lib):
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.PReLU(), lib.nn.LayerNorm(2)).eval()
    model.register_buffer("b", lib.ones(1), persistent=False)
    model.tied = model[0].weight
    x = lib.ones(1, 2)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert repr(other) == repr(model) and not other.training
        assert other[0].weight is not model[0].weight and other.tied is other[0].weight
        assert list(other._non_persistent_buffers_set) == ["b"]
        del other.tied  # Sequential would not mind, but the text above has it
        assert other(x).tolist() == model(x).tolist()
        other(x).sum().backward()
    assert model[0].weight.grad is None
    shallow = copy.copy(model)
    assert shallow[0] is model[0] and shallow.__dict__ is not model.__dict__


def test_registration_hooks(lib):
    from importlib import import_module

    module = import_module(
        "torch.nn.modules.module" if lib.__name__ == "torch" else "wengert.nn.modules.module"
    )
    seen = []
    other = lib.nn.Parameter(lib.zeros(2))

    def parameter(owner, name, value):
        seen.append(("parameter", name))
        return other

    handles = [
        module.register_module_parameter_registration_hook(parameter),
        module.register_module_buffer_registration_hook(
            lambda owner, name, value: seen.append(("buffer", name))
        ),
        module.register_module_module_registration_hook(
            lambda owner, name, value: seen.append(("module", name))
        ),
    ]
    try:
        model = lib.nn.Module()
        model.p = lib.nn.Parameter(lib.ones(2))
        model.register_buffer("b", lib.ones(1))
        model.m = lib.nn.Module()
        model.add_module("n", lib.nn.Module())
    finally:
        for handle in handles:
            handle.remove()
    assert model.p is other
    assert seen == [("parameter", "p"), ("buffer", "b"), ("module", "m"), ("module", "n")]
    model.q = lib.nn.Parameter(lib.ones(2))
    assert model.q is not other


def test_call_super_init(lib):
    class Other:
        def __init__(self, value):
            self.value = value

    class Both(lib.nn.Module, Other):
        call_super_init = True

    assert Both(3).value == 3
