"""Hooks of modules: around forward and backward, of one module and of all."""

import copy
import sys
from importlib import import_module

import pytest


def of_all(lib):
    package = "torch" if lib.__name__ == "torch" else "wengert"
    return import_module(f"{package}.nn.modules.module")


def doubling(lib, fails=False):
    class Doubling(lib.nn.Module):
        def forward(self, x, *, shift=0):
            if fails:
                raise ValueError("inside")
            return 2 * x + shift

    return Doubling()


def test_forward_hooks_replace_arguments_and_results(lib):
    model, seen = doubling(lib), []

    def before(module, args):
        seen.append(("before", module is model, len(args)))
        return args[0] + 1

    def before_with(module, args, kwargs):
        seen.append(("before_with", sorted(kwargs)))
        return args, {"shift": 10}

    def after(module, args, output):
        seen.append(("after", args[0].item(), output.item()))
        return output + 100

    def after_with(module, args, kwargs, output):
        seen.append(("after_with", kwargs["shift"], output.item()))

    handles = [
        model.register_forward_pre_hook(before),
        model.register_forward_pre_hook(before_with, with_kwargs=True, prepend=True),
        model.register_forward_hook(after_with, with_kwargs=True),
        model.register_forward_hook(after, prepend=True),
    ]
    assert model(lib.tensor(1.0), shift=5).item() == 114
    assert seen == [
        ("before_with", ["shift"]), ("before", True, 1), ("after", 2.0, 14.0),
        ("after_with", 10, 114.0),
    ]  # fmt: skip
    for handle in handles:
        handle.remove()
    assert model(lib.tensor(1.0)).item() == 2
    model.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        model(lib.tensor(1.0))


def test_always_called_hooks(lib):
    model, seen = doubling(lib, fails=True), []
    model.register_forward_hook(lambda module, args, output: seen.append("never"))
    model.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)

    def failing(module, args, output):
        raise KeyError("hook")

    model.register_forward_hook(failing, always_call=True)
    with pytest.warns(UserWarning, match="always_call=True.* raised an exception that was"):
        with pytest.raises(ValueError, match="inside"):
            model(lib.tensor(1.0))
    assert seen == [None]


def test_always_called_hooks_run_once(lib):
    model, seen = doubling(lib), []
    model.register_forward_hook(lambda module, args, output: seen.append("first"), always_call=True)

    def failing(module, args, output):
        raise KeyError("hook")

    model.register_forward_hook(failing)
    model.register_forward_hook(
        lambda module, args, output: seen.append((args[0].item(), output.item())),
        always_call=True,
    )
    model.register_forward_pre_hook(lambda module, args: args[0] + 1)
    with pytest.raises(KeyError, match="hook"):
        model(lib.tensor(1.0))
    assert seen == ["first", (2.0, 4.0)]


def test_full_backward_hooks(lib):
    model, seen = doubling(lib), []

    def before(module, grad_output):
        seen.append(("before", [g.item() for g in grad_output]))
        return (grad_output[0] * 10,)

    def after(module, grad_input, grad_output):
        seen.append(("after", [g.item() for g in grad_input], [g.item() for g in grad_output]))
        return (grad_input[0] + 1,)

    model.register_full_backward_pre_hook(before)
    model.register_full_backward_hook(after)
    x = lib.tensor(3.0, requires_grad=True)
    y = model(x)
    assert type(y.grad_fn).__name__ == "BackwardHookFunctionBackward"
    y.backward()
    assert seen == [("before", [1.0]), ("after", [20.0], [10.0])] and x.grad.item() == 21


def test_prepended_backward_hooks(lib):
    model, seen = doubling(lib), []
    for name in "ab":
        model.register_full_backward_hook(
            lambda module, i, o, name=name: seen.append(name), prepend=True
        )
        model.register_full_backward_pre_hook(
            lambda module, o, name=name: seen.append("pre " + name), prepend=True
        )
    model(lib.tensor(3.0, requires_grad=True)).backward()
    assert seen == ["pre b", "pre a", "b", "a"]


def test_backward_hooks_with_several_arguments(lib):
    class Pair(lib.nn.Module):
        def forward(self, x, number, y):
            return x * y, number, x + y

    model, seen = Pair(), []
    model.register_full_backward_hook(
        lambda module, grads, outs: seen.append(
            [[None if g is None else g.item() for g in part] for part in (grads, outs)]
        )
    )
    x, y = lib.tensor(3.0, requires_grad=True), lib.tensor(4.0)
    product, number, _ = model(x, 7, y)
    assert number == 7
    product.backward()
    assert seen == [[[4.0, None, 0.0], [1.0, None, None]]] and x.grad.item() == 4


def test_backward_hooks_without_inputs_that_need_gradients(lib):
    model, seen = lib.nn.Linear(2, 1, bias=False), []
    handle = model.register_full_backward_hook(
        lambda module, grads, outs: seen.append((grads, outs[0].tolist()))
    )
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        model(lib.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    handle.remove()
    model.register_full_backward_hook(lambda module, grads, outs: (lib.ones(1),))
    with (
        pytest.warns(UserWarning, match="since no inputs require gradients"),
        pytest.raises(RuntimeError, match="where no input requires gradient"),
    ):
        model(lib.ones(1, 2)).sum().backward()


def test_wrong_numbers_of_gradients(lib):
    x = lib.tensor(3.0, requires_grad=True)
    model = doubling(lib)
    model.register_full_backward_hook(lambda module, i, o: (i[0], i[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        model(x).backward()
    model = doubling(lib)
    model.register_full_backward_pre_hook(lambda module, o: (o[0], o[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_output, got 2, but expected 1"):
        model(x).backward()


def test_no_gradients_no_backward_hooks(lib):
    model, seen = doubling(lib), []
    model.register_full_backward_hook(lambda module, i, o: seen.append(1))
    with lib.no_grad():
        assert not model(lib.tensor(3.0, requires_grad=True)).requires_grad
    assert model(lib.tensor(3.0)).grad_fn is None and seen == []


def test_output_that_is_no_tensor(lib):
    class Lists(lib.nn.Module):
        def forward(self, x):
            return [x * 2]

    model = Lists()
    model.register_full_backward_hook(lambda module, i, o: None)
    with pytest.warns(UserWarning, match="For backward hooks to be called, module output should"):
        (result,) = model(lib.tensor(3.0, requires_grad=True))
    result.backward()


def test_double_backward_through_hooks(lib):
    model, seen = lib.nn.Tanh(), []
    model.register_full_backward_hook(lambda module, i, o: seen.append(i[0].requires_grad))
    x = lib.tensor(0.5, dtype=lib.float64, requires_grad=True)
    (first,) = lib.autograd.grad(model(x), x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    tanh = x.tanh().item()
    assert abs(second.item() + 2 * tanh * (1 - tanh**2)) < 1e-12 and seen[0] is True


def test_hooks_of_all_modules(lib):
    module, seen = of_all(lib), []
    handles = [
        module.register_module_forward_pre_hook(lambda m, args: seen.append("pre")),
        module.register_module_forward_hook(lambda m, args, out: seen.append("forward")),
        module.register_module_forward_hook(
            lambda m, args, kwargs, out: seen.append(sorted(kwargs)),
            with_kwargs=True, always_call=True,
        ),
        module.register_module_full_backward_pre_hook(lambda m, out: seen.append("backward pre")),
        module.register_module_full_backward_hook(lambda m, i, out: seen.append("backward")),
    ]  # fmt: skip
    try:
        model = doubling(lib)
        model.register_forward_pre_hook(lambda m, args: seen.append("own pre"))
        model(lib.tensor(1.0, requires_grad=True), shift=1).backward()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["pre", "own pre", "forward", ["shift"], "backward pre", "backward"]
    lib.nn.Tanh()(lib.tensor(1.0))
    assert len(seen) == 6


def test_hooks_are_copied(lib):
    model, seen = doubling(lib), []
    model.register_forward_hook(lambda module, args, output: seen.append(module))
    other = copy.deepcopy(model)
    other(lib.tensor(1.0))
    assert seen == [other]


@pytest.mark.filterwarnings("ignore")
def test_older_backward_hooks(lib):
    """They see the gradients of the last operation."""
    seen = []

    def note(module, grad_input, grad_output):
        seen.append((module, grad_output[0].tolist()))
        return tuple(None if g is None else 2 * g for g in grad_input)

    layer = lib.nn.Tanh()
    handle = layer.register_backward_hook(note)
    x = lib.zeros(2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [(layer, [1, 1])] and x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="both regular backward hooks and full backward hooks"):
        layer.register_full_backward_hook(note)
    handle.remove()
    layer(x).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [3, 3]
    pair = lib.nn.GRU(2, 3)
    pair.register_backward_hook(lambda module, *gradients: seen.append(module))
    pair(lib.ones(1, 2))[0].sum().backward()
    assert seen[-1] is pair


@pytest.mark.filterwarnings("ignore")
def test_older_backward_hooks_of_all_modules(lib, monkeypatch):
    """Either these or full ones: the choice lasts, as long as the process does."""
    everything = of_all(lib)
    where = sys.modules[everything.register_module_backward_hook.__module__]
    monkeypatch.setattr(where, "_global_is_full_backward_hook", None)
    seen = []
    inner, outer = lib.nn.Tanh(), lib.nn.Sequential()
    outer.append(inner)
    inner.register_full_backward_hook(lambda *called: seen.append("full"))
    handle = everything.register_module_backward_hook(
        lambda module, inputs, outputs: seen.append((type(module).__name__, len(inputs)))
    )
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        everything.register_module_full_backward_hook(print)
    outer(lib.zeros(2, requires_grad=True)).sum().backward()
    assert seen == [("Tanh", 1), ("Sequential", 1), "full"]
    handle.remove()
    outer(lib.zeros(2, requires_grad=True)).sum().backward()
    assert seen[3:] == ["full"]


def test_memory_is_not_shared():
    import wengert

    with pytest.raises(NotImplementedError, match="share_memory"):
        wengert.nn.Tanh().share_memory()
