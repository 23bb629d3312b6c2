"""Checkpointing: equal gradients, how often a region runs, and what is refused."""

import functools
import importlib
import warnings

import pytest


@pytest.fixture
def ckpt(lib):
    return importlib.import_module(lib.__name__ + ".utils.checkpoint")


@pytest.fixture(params=[False, True], ids=["again", "reentrant"])
def reentrant(request):
    return request.param


@pytest.fixture(autouse=True)
def restored_seed(lib):
    lib.manual_seed(0)


def counting(function):
    calls = []

    def counted(*args, **kwargs):
        calls.append(1)
        return function(*args, **kwargs)

    counted.calls = calls
    return counted


def wave(x):
    return x.sin().exp().cos()


def plain_gradient(lib, function, value):
    x = value.detach().clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


def test_gradients_are_equal(lib, ckpt, reentrant):
    value = lib.linspace(-1, 1, 7)
    x = value.clone().requires_grad_()
    y = ckpt.checkpoint(wave, x, use_reentrant=reentrant)
    assert lib.equal(y, wave(value))
    y.sum().backward()
    assert lib.equal(x.grad, plain_gradient(lib, wave, value))


def test_region_runs_twice(lib, ckpt, reentrant):
    function = counting(wave)
    x = lib.ones(3, requires_grad=True)
    y = ckpt.checkpoint(function, x, use_reentrant=reentrant)
    assert len(function.calls) == 1
    y.sum().backward()
    assert len(function.calls) == 2


def test_several_inputs_and_outputs(lib, ckpt, reentrant):
    def function(a, b, factor):
        return a * b * factor, (a + b).sin()

    a, b = lib.full((2,), 2.0, requires_grad=True), lib.full((2,), 3.0, requires_grad=True)
    product, wavy = ckpt.checkpoint(function, a, b, 5, use_reentrant=reentrant)
    (product.sum() + wavy.sum()).backward()
    expected = lib.full((2,), 5.0).cos()
    assert lib.allclose(a.grad, 15 + expected) and lib.allclose(b.grad, 10 + expected)


def test_outputs_that_are_no_tensors(lib, ckpt, reentrant):
    x = lib.ones(2, requires_grad=True)
    y, number, nothing = ckpt.checkpoint(lambda x: (x * x, 3, None), x, use_reentrant=reentrant)
    assert number == 3 and nothing is None
    y.sum().backward()
    assert lib.equal(x.grad, lib.full((2,), 2.0))


def test_no_grad_mode_runs_once(lib, ckpt, reentrant):
    function = counting(wave)
    x = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        y = ckpt.checkpoint(function, x, use_reentrant=reentrant)
    assert not y.requires_grad and len(function.calls) == 1


def test_random_numbers_are_drawn_again(lib, ckpt, reentrant):
    def noisy(x):
        return x * lib.rand(100)

    x = lib.ones(100, requires_grad=True)
    y = ckpt.checkpoint(noisy, x, use_reentrant=reentrant)
    y.sum().backward()
    assert lib.equal(x.grad, y.detach())


def test_the_generator_is_left_as_it_was(lib, ckpt, reentrant):
    x = lib.ones(3, requires_grad=True)
    y = ckpt.checkpoint(lambda x: x * lib.rand(3), x, use_reentrant=reentrant)
    state = lib.get_rng_state()
    y.sum().backward()
    assert lib.equal(lib.get_rng_state(), state)


def test_random_state_can_be_left_alone(lib, ckpt, reentrant):
    x = lib.ones(100, requires_grad=True)
    y = ckpt.checkpoint(
        lambda x: x * lib.rand(100), x, use_reentrant=reentrant, preserve_rng_state=False
    )
    y.sum().backward()
    assert not lib.equal(x.grad, y.detach())


def test_reentrant_needs_an_input_that_requires_grad(lib, ckpt):
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = ckpt.checkpoint(wave, lib.ones(2), use_reentrant=True)
    assert not y.requires_grad


def test_captured_parameters_get_gradients(lib, ckpt):
    w = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(lambda x: (x * w).sin(), lib.full((2,), 2.0), use_reentrant=False)
    y.sum().backward()
    assert lib.allclose(w.grad, 2 * lib.full((2,), 2.0).cos())


def test_reentrant_refuses_grad(lib, ckpt):
    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(wave, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="incompatible with .grad()"):
        lib.autograd.grad(y, x)


def test_grad_and_inputs(lib, ckpt):
    value = lib.ones(2)
    x = value.clone().requires_grad_()
    y = ckpt.checkpoint(wave, x, use_reentrant=False).sum()
    (g,) = lib.autograd.grad(y, x)
    assert lib.equal(g, plain_gradient(lib, wave, value))


def test_missing_flag_warns(lib, ckpt):
    x = lib.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        ckpt.checkpoint(wave, x)


def test_keyword_arguments(lib, ckpt):
    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(lambda x, *, power: x**power, x, power=3, use_reentrant=False)
    y.sum().backward()
    assert lib.equal(x.grad, lib.full((2,), 3.0))


def test_reentrant_takes_no_keywords(lib, ckpt):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        ckpt.checkpoint(wave, x, use_reentrant=True, power=3)


def test_reentrant_takes_no_contexts(lib, ckpt):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        ckpt.checkpoint(wave, x, use_reentrant=True, debug=True)


def test_unknown_determinism_check(lib, ckpt):
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        ckpt.checkpoint(wave, lib.ones(2), use_reentrant=False, determinism_check="strict")


def test_retained_graph_runs_again(lib, ckpt):
    function = counting(wave)
    value = lib.ones(2)
    x = value.clone().requires_grad_()
    y = ckpt.checkpoint(function, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert len(function.calls) == 3
    assert lib.allclose(x.grad, 2 * plain_gradient(lib, wave, value))


def test_second_backward_without_retaining(lib, ckpt, reentrant):
    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(wave, x, use_reentrant=reentrant).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_nested_regions(lib, ckpt, reentrant):
    def inner(x):
        return x.sin().exp()

    def outer(x):
        return ckpt.checkpoint(inner, x * 2, use_reentrant=reentrant).cos()

    value = lib.linspace(-1, 1, 5)
    x = value.clone().requires_grad_()
    ckpt.checkpoint(outer, x, use_reentrant=reentrant).sum().backward()
    expected = plain_gradient(lib, lambda x: (x * 2).sin().exp().cos(), value)
    assert lib.allclose(x.grad, expected)


def test_deeply_nested_regions(lib, ckpt):
    def nested(x, depth):
        if depth == 0:
            return x.sin()
        return ckpt.checkpoint(nested, (x * 1.1).sin(), depth - 1, use_reentrant=False)

    def plain(x, depth=6):
        return x.sin() if depth == 0 else plain((x * 1.1).sin(), depth - 1)

    value = lib.linspace(-1, 1, 5)
    x = value.clone().requires_grad_()
    nested(x, 6).sum().backward()
    assert lib.allclose(x.grad, plain_gradient(lib, plain, value))


def test_double_backward(lib, ckpt):
    value = lib.tensor([0.3, 0.7], dtype=lib.float64)
    x = value.clone().requires_grad_()
    y = ckpt.checkpoint(lambda x: x.sin() * x, x, use_reentrant=False).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    assert lib.allclose(x.grad, 2 * value.cos() - value * value.sin())


def test_early_stop_ends_the_recomputation(lib, ckpt):
    reached = []

    def function(x):
        y = x.sin()
        reached.append("sin")
        y = y.clone()
        reached.append("clone")
        return y

    x = lib.ones(2, requires_grad=True)
    ckpt.checkpoint(function, x, use_reentrant=False).sum().backward()
    assert reached == ["sin", "clone"]


def test_without_early_stop_everything_runs(lib, ckpt):
    reached = []

    def function(x):
        y = x.sin()
        reached.append("sin")
        y = y.clone()
        reached.append("clone")
        return y

    x = lib.ones(2, requires_grad=True)
    with ckpt.set_checkpoint_early_stop(False):
        y = ckpt.checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    assert reached == ["sin", "clone", "sin", "clone"]


def alternating(first, second):
    calls = []

    def function(x):
        calls.append(1)
        return first(x) if len(calls) == 1 else second(x)

    return function


def test_fewer_saved_tensors_are_noticed(lib, ckpt):
    function = alternating(lambda x: x.sin().exp(), lambda x: x.sin())
    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(function, x, use_reentrant=False)
    with pytest.raises(ckpt.CheckpointError, match="A different number of tensors was saved"):
        y.sum().backward()


def test_other_shapes_are_noticed(lib, ckpt):
    function = alternating(lambda x: x.sin().exp(), lambda x: x[:1].sin().exp())
    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(function, x, use_reentrant=False)
    with pytest.raises(ckpt.CheckpointError, match="have different metadata") as failure:
        y.sum().backward()
    assert "tensor at position 0" in str(failure.value)


def test_the_check_can_be_switched_off(lib, ckpt):
    function = alternating(lambda x: x.sin(), lambda x: (x * 1.0).double().sin().float())
    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(function, x, use_reentrant=False, determinism_check="none")
    y.sum().backward()
    assert x.grad is not None


def test_failure_leaves_the_next_backward_working(lib, ckpt):
    function = alternating(lambda x: x.sin().exp(), lambda x: x.sin())
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(ckpt.CheckpointError):
        ckpt.checkpoint(function, x, use_reentrant=False).sum().backward()
    ckpt.checkpoint(wave, x, use_reentrant=False).sum().backward()
    assert lib.allclose(x.grad, plain_gradient(lib, wave, lib.ones(2)))


def test_exceptions_of_the_recomputation_arrive(lib, ckpt):
    def fail(x):
        raise ZeroDivisionError

    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(alternating(lambda x: x.sin(), fail), x, use_reentrant=False)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def test_input_changed_in_place_is_noticed(lib, ckpt):
    x = lib.ones(2, requires_grad=True)
    a = x * 2
    y = ckpt.checkpoint(lambda a: a.sin().exp(), a, use_reentrant=False)
    with lib.no_grad():
        a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_hooks_of_the_region_fire_once(lib, ckpt):
    seen = []

    def function(x):
        y = x.sin()
        if y.requires_grad:
            y.register_hook(lambda g: seen.append(1))
        return y.exp()

    x = lib.ones(2, requires_grad=True)
    ckpt.checkpoint(function, x, use_reentrant=False).sum().backward()
    assert len(seen) == 1


def test_contexts_of_both_runs(lib, ckpt):
    entered = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exception):
            pass

    x = lib.ones(2, requires_grad=True)
    y = ckpt.checkpoint(
        wave, x, use_reentrant=False, context_fn=lambda: (Noted("forward"), Noted("again"))
    )
    assert entered == ["forward"]
    y.sum().backward()
    assert entered == ["forward", "again"]


def test_unused_output(lib, ckpt, reentrant):
    x = lib.ones(2, requires_grad=True)
    used, _ = ckpt.checkpoint(lambda x: (x * x, x.sin()), x, use_reentrant=reentrant)
    used.sum().backward()
    assert lib.equal(x.grad, lib.full((2,), 2.0))


def test_saved_hooks_outside_see_the_inputs(lib, ckpt):
    packed = []
    x = lib.ones(2, requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t):
        y = ckpt.checkpoint(wave, x, use_reentrant=False)
    y.sum().backward()
    assert len(packed) >= 1
    assert lib.allclose(x.grad, plain_gradient(lib, wave, lib.ones(2)))


def test_sequential(lib, ckpt, reentrant):
    functions = [counting(f) for f in (lib.sin, lib.exp, lib.cos, lib.tanh)]
    value = lib.ones(3)
    x = value.clone().requires_grad_()
    y = ckpt.checkpoint_sequential(functions, 2, x, use_reentrant=reentrant)
    y.sum().backward()
    assert [len(f.calls) for f in functions] == [2, 2, 1, 1]
    expected = plain_gradient(lib, lambda x: x.sin().exp().cos().tanh(), value)
    assert lib.allclose(x.grad, expected)


def test_sequential_refuses_unknown_keywords(lib, ckpt):
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        ckpt.checkpoint_sequential([lib.sin], 1, lib.ones(2), use_reentrant=False, speed=3)


def test_group_of_backwards_runs_the_region_once(lib, ckpt):
    function = counting(lambda x: (x.sin().exp(), x.cos().tanh()))
    x = lib.ones(2, requires_grad=True)
    first, second = ckpt.checkpoint(function, x, use_reentrant=False, early_stop=False)
    with ckpt.GraphExecGroup():
        first.sum().backward()
        second.sum().backward()
    assert len(function.calls) == 2
    expected = plain_gradient(lib, lambda x: x.sin().exp() + x.cos().tanh(), lib.ones(2))
    assert lib.allclose(x.grad, expected)


def operator_name(op):
    return getattr(op, "_schema", op).name.rpartition("::")[2]


def selective(ckpt, name):
    seen = []

    def policy(ctx, op, *args, **kwargs):
        if not ctx.is_recompute:
            seen.append(operator_name(op))
        chosen = operator_name(op) == name
        policies = ckpt.CheckpointPolicy
        return policies.MUST_SAVE if chosen else policies.PREFER_RECOMPUTE

    return functools.partial(ckpt.create_selective_checkpoint_contexts, policy), seen


def test_selective_policy_keeps_gradients(lib, ckpt):
    contexts, seen = selective(ckpt, "mm")

    def function(x):
        return (x @ x).sin().exp() @ x

    value = lib.linspace(-1, 1, 9).reshape(3, 3)
    x = value.clone().requires_grad_()
    y = ckpt.checkpoint(function, x, use_reentrant=False, context_fn=contexts)
    y.sum().backward()
    assert seen.count("mm") == 2 and "sin" in seen
    assert lib.allclose(x.grad, plain_gradient(lib, function, value))


def test_selective_policy_must_be_callable_or_a_list(lib, ckpt):
    with pytest.raises(TypeError, match="function or a list of ops"):
        ckpt.create_selective_checkpoint_contexts("mm")


def test_detach_variable(lib, ckpt):
    x = (lib.ones(2, requires_grad=True) * 2, lib.ones(2), 3)
    a, b, c = ckpt.detach_variable(x)
    assert a.is_leaf and a.requires_grad and not b.requires_grad and c == 3
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        ckpt.detach_variable([lib.ones(2)])


def test_early_stop_context_is_restored(lib, ckpt):
    with pytest.raises(ValueError), ckpt.set_checkpoint_early_stop(False):
        raise ValueError
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = lib.ones(2, requires_grad=True)
        ckpt.checkpoint(wave, x, use_reentrant=False).sum().backward()


def test_checkpoint_module_is_there_after_import_of_the_library(lib, ckpt):
    assert lib.utils.checkpoint is ckpt
    assert ckpt.DefaultDeviceType.get_device_type() == "cpu"


def test_selective_policy_is_asked_once_for_each_call(lib, ckpt):
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append((ctx.is_recompute, operator_name(op)))
        policies = ckpt.CheckpointPolicy
        return policies.MUST_SAVE if len(asked) % 2 else policies.PREFER_RECOMPUTE

    def function(x):
        return x.sin().sin().sin().exp().sin()

    x = lib.linspace(-1, 1, 3).requires_grad_()
    contexts = functools.partial(ckpt.create_selective_checkpoint_contexts, policy)
    ckpt.checkpoint(function, x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert asked == [(False, name) for name in ("sin", "sin", "sin", "exp", "sin")]
    assert lib.allclose(x.grad, plain_gradient(lib, function, x.detach()))


def test_selective_policy_may_save_everything(lib, ckpt):
    def policy(ctx, op, *args, **kwargs):
        return ckpt.CheckpointPolicy.MUST_SAVE

    def function(x):
        return x.sin().view(3, 1).exp().sum(0) * x[0]

    x = lib.linspace(-1, 1, 3).requires_grad_()
    contexts = functools.partial(ckpt.create_selective_checkpoint_contexts, policy)
    ckpt.checkpoint(function, x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert lib.allclose(x.grad, plain_gradient(lib, function, x.detach()))
