"""Operators with a kernel and nothing for autograd: what is recorded, and that backward warns."""

import warnings

import pytest

WARNING = r"{}: an autograd kernel was not registered to the Autograd key\(s\)"


def silently(call):
    """The result of a call that must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return call()


@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd"])
def test_what_the_kernel_calls_is_recorded_and_backward_warns(lib, defined, key):
    library, f = defined("(Tensor x) -> Tensor", lambda x: x * 2, key)
    x = lib.ones(2, requires_grad=True)
    out = silently(lambda: f(x * 1))
    assert out.grad_fn.name() == "MulBackward0"
    with pytest.warns(UserWarning, match=WARNING.format(f"{library.ns}::f")):
        out.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "compute", [lambda lib, x: x.detach() * 2, lambda lib, x: lib.tensor(x.tolist()) * 2]
)
def test_results_without_history_stop_the_gradient_with_a_warning(lib, defined, compute):
    library, f = defined("(Tensor x, Tensor y) -> Tensor", lambda x, y: compute(lib, x))
    x, y = lib.ones(2, requires_grad=True), lib.ones(2)
    out = silently(lambda: f(x, y))
    assert out.tolist() == [2.0, 2.0]
    assert out.requires_grad
    assert not out.is_leaf
    assert out.grad_fn.name().endswith("WarnNotImplemented")
    assert [node for node, _ in out.grad_fn.next_functions if node is not None]
    with pytest.warns(UserWarning, match=WARNING.format(f"{library.ns}::f")):
        (out * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_every_backward_warns(lib, defined):
    _, f = defined("(Tensor x) -> Tensor", lambda x: x * 2)
    out = f(lib.ones(2, requires_grad=True)).sum()
    for _ in range(2):
        with pytest.warns(UserWarning, match="autograd kernel was not registered"):
            out.backward(retain_graph=True)


def test_lists_and_several_results(lib, defined):
    def kernel(tensors):
        return [t.detach() * 2 for t in tensors], tensors[0].detach()

    _, f = defined("(Tensor[] x) -> (Tensor[], Tensor)", kernel)
    x = lib.ones(2, requires_grad=True)
    (first, second), third = f([x, lib.ones(2)])
    for out in (first, second, third):
        assert out.requires_grad
    with pytest.warns(UserWarning, match="autograd kernel was not registered"):
        (first + second + third).sum().backward()
    assert x.grad is None


def test_a_changed_argument_that_is_returned(lib, defined):
    _, f = defined("(Tensor(a!) x) -> Tensor(a!)", lambda x: x.mul_(2))
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    out = f(y)
    assert out is y
    with pytest.warns(UserWarning, match="autograd kernel was not registered"):
        out.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_inside_grad(lib, defined):
    _, f = defined("(Tensor x) -> Tensor", lambda x: x * 2)
    with pytest.warns(UserWarning, match="autograd kernel was not registered"):
        found = lib.func.grad(lambda x: f(x).sum())(lib.ones(2))
    assert found.tolist() == [0.0, 0.0]


def composite(lib, library, f):
    library.impl("g", lambda x: x * 2)


def fallthrough(lib, library, f):
    library.impl("g", lambda x: x * 2, "CPU")
    library.impl("g", lib.library.fallthrough_kernel, "Autograd")


def kernel_for_autograd(lib, library, f):
    library.impl("g", lambda x: x * 2, "Autograd")


def formula(lib, library, f):
    library.impl("g", lambda x: x * 2, "CPU")
    lib.library.register_autograd(f"{library.ns}::g", lambda ctx, grad: grad * 2)


@pytest.mark.parametrize("complete", [composite, fallthrough, kernel_for_autograd, formula])
def test_operators_that_say_something_do_not_warn(lib, defined, complete):
    library, f = defined("(Tensor x) -> Tensor", lambda x: x)
    library.define("g(Tensor x) -> Tensor")
    complete(lib, library, f)
    x = lib.ones(2, requires_grad=True)
    silently(lambda: getattr(lib.ops, library.ns).g(x).sum().backward())
    assert x.grad.tolist() == [2.0, 2.0]


def test_calls_that_are_not_recorded_have_no_history(lib, defined):
    _, f = defined("(Tensor x) -> Tensor", lambda x: x.detach() * 2)
    with lib.no_grad():
        assert not f(lib.ones(2, requires_grad=True)).requires_grad
    assert not f(lib.ones(2)).requires_grad


def test_numbers_without_derivative_stay_plain(lib, defined):
    _, f = defined("(Tensor x) -> Tensor", lambda x: x.detach().long())
    assert f(lib.ones(2, requires_grad=True)).grad_fn is None
