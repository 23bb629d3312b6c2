"""Modules in compiled functions, and as functions of their parameters."""

import copy
import pickle

import pytest

import wengert
from wengert import nn

X = wengert.linspace(-1, 1, 12, dtype=wengert.float64).reshape(4, 3)


def network():
    wengert.manual_seed(3)
    return nn.Sequential(
        nn.Linear(3, 5), nn.LayerNorm(5), nn.GELU(), nn.Dropout(0.0), nn.Linear(5, 2), nn.PReLU(2)
    ).double()


def gradients(model, run):
    model.zero_grad()
    run(X).square().sum().backward()
    return [p.grad.tolist() for p in model.parameters()]


def test_compiled_module():
    model = network()
    compiled = wengert.compile(model)
    assert isinstance(compiled, nn.Module)
    assert wengert.allclose(compiled(X), model(X))
    expected = gradients(model, model)
    found = gradients(model, compiled)
    for one, other in zip(found, expected, strict=True):
        assert wengert.tensor(one).allclose(wengert.tensor(other), atol=1e-12)
    # One compilation serves changed weights.
    assert len(compiled.forward.compilations) == 1
    with wengert.no_grad():
        model[0].weight.mul_(2)
    assert wengert.allclose(compiled(X), model(X))
    assert len(compiled.forward.compilations) == 1


def test_the_compiled_module_is_the_module():
    model = network()
    compiled = wengert.compile(model)
    keys = list(compiled.state_dict())
    assert keys == ["_orig_mod." + name for name in model.state_dict()]
    assert compiled._orig_mod is model and len(compiled) == 6
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(\n    (0): Lin")
    assert list(compiled.parameters()) == list(model.parameters())
    compiled.eval()
    assert not model.training and not compiled.training
    compiled.train()
    compiled.extra = 5
    assert model.extra == 5
    del compiled.extra
    assert not hasattr(model, "extra") and "_orig_mod" in dir(compiled)
    other = network()
    compiled.load_state_dict(wengert.compile(other).state_dict())
    for each in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert each._orig_mod is not model
        assert wengert.allclose(each(X), model(X))


def test_compiled_modules_notice_changes():
    model = network()
    compiled = wengert.compile(model)
    compiled(X)
    model[0] = nn.Linear(3, 5).double()
    assert wengert.allclose(compiled(X), model(X))
    model[1].eps = 0.5
    assert wengert.allclose(compiled(X), model(X))
    seen = []
    handle = model[2].register_forward_hook(lambda module, args, out: out * 2)
    assert wengert.allclose(compiled(X), model(X))
    handle.remove()
    assert wengert.allclose(compiled(X), model(X))
    model[0].weight = nn.Parameter(wengert.ones(5, 3, dtype=wengert.float64))
    assert wengert.allclose(compiled(X), model(X))
    handle = nn.modules.module.register_module_forward_hook(lambda *args: seen.append(1))
    compiled(X)
    handle.remove()
    assert len(seen) == 7
    model[3].p = 1.0
    assert compiled(X)[0].tolist() == pytest.approx(model(X)[0].tolist())
    model.eval()
    assert wengert.allclose(compiled(X), model(X))


def test_hooks_of_the_compiled_module():
    compiled = wengert.compile(nn.Tanh())
    compiled.register_forward_hook(lambda module, args, output: output + 1)
    assert wengert.allclose(compiled(X), X.tanh() + 1)


def test_backward_hooks_do_not_get_lost():
    """A graph would not run a hook inside. One of the compiled module runs around it."""
    model = nn.Linear(3, 2).double()
    x = X.clone().requires_grad_()
    handle = model.register_full_backward_hook(lambda module, grads, outs: (grads[0] * 10,))
    with pytest.raises(RuntimeError, match="would not run the hook"):
        wengert.compile(model, fullgraph=True)(x)
    with pytest.warns(UserWarning, match="would not run the hook"):
        (g,) = wengert.autograd.grad(wengert.compile(model)(x).sum(), x)
    assert wengert.allclose(g, 10 * model.weight.sum(0).expand(4, 3))
    handle.remove()
    compiled = wengert.compile(model)
    compiled.register_full_backward_hook(lambda module, grads, outs: (grads[0] * 10,))
    compiled(x).sum().backward()
    assert wengert.allclose(x.grad, 10 * model.weight.sum(0).expand(4, 3))


def test_compile_in_place():
    model = network()
    expected = model(X)
    model.compile()
    assert wengert.allclose(model(X), expected)
    assert len(model._compiled_call_impl.compilations) == 1
    assert list(model.state_dict()) == list(network().state_dict())
    seen = []
    handle = nn.modules.module.register_module_forward_hook(lambda *args: seen.append(1))
    assert wengert.allclose(model(X), expected)
    handle.remove()
    assert len(seen) == 7
    assert pickle.loads(pickle.dumps(model))._compiled_call_impl is None
    assert wengert.compile(model, disable=True) is model
    with pytest.raises(ValueError, match="Unrecognized mode"):
        wengert.compile(model, mode="fastest")


def test_a_compiled_step_of_training():
    model, loss = network(), nn.CrossEntropyLoss()
    target = wengert.tensor([0, 1, 1, 0])

    def step(x):
        return loss(model(x), target)

    compiled = wengert.compile(step)
    for _ in range(3):
        results = []
        for function in (step, compiled):
            model.zero_grad()
            value = function(X)
            value.backward()
            results.append([value, *[p.grad.clone() for p in model.parameters()]])
        for one, other in zip(*results, strict=True):
            assert wengert.allclose(one, other, atol=1e-12)
        with wengert.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
    assert len(compiled.compilations) == 1


def test_functional_call(lib):
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Tanh())
    x = lib.ones(3, 2)
    given = {name: lib.zeros(t.shape) for name, t in model.named_parameters()}
    assert lib.func.functional_call(model, given, (x,)).abs().sum().item() == 0
    assert model(x).abs().sum().item() > 0
    assert isinstance(model[0].weight, lib.nn.Parameter)

    def loss(parameters, x):
        return lib.func.functional_call(model, parameters, (x,)).sum()

    parameters = dict(model.named_parameters())
    found = lib.func.grad(loss)({k: v.detach() for k, v in parameters.items()}, x)
    loss(parameters, x).backward()
    for name, parameter in parameters.items():
        assert lib.allclose(found[name], parameter.grad)
    each = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0))(
        {k: v.detach() for k, v in parameters.items()}, x
    )
    assert each["0.weight"].shape == (3, 2, 2)
    assert lib.allclose(each["0.weight"].sum(0), found["0.weight"])


def test_ensembles(lib):
    models = [lib.nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = lib.func.stack_module_state(models)
    assert parameters["weight"].shape == (4, 3, 2) and buffers == {}
    x = lib.ones(5, 2)
    results = lib.func.vmap(
        lambda parameters: lib.func.functional_call(models[0], parameters, (x,))
    )(parameters)
    for model, result in zip(models, results, strict=True):
        assert lib.allclose(model(x), result, atol=1e-6)
