"""Anomaly detection: what it says about a failing backward, and what it leaves as it was."""

import warnings

import pytest


@pytest.fixture(autouse=True)
def quiet_and_off(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    assert not lib.is_anomaly_enabled()


def failing_backward(y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(Exception) as failure:
            y.backward()
    return failure.value, "".join(str(w.message) for w in caught)


def square_root_at_zero(lib):
    x = lib.zeros(2, requires_grad=True)
    return (x.sqrt() * x).sum()


def test_entering_warns(lib):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        lib.autograd.detect_anomaly()


def test_nan_raises_and_names_the_node(lib):
    with lib.autograd.detect_anomaly():
        y = square_root_at_zero(lib)
        error, _ = failing_backward(y)
    assert isinstance(error, RuntimeError)
    assert "Function 'SqrtBackward0' returned nan values in its 0th output" in str(error)


def test_the_warning_shows_the_forward_call(lib):
    with lib.autograd.detect_anomaly():
        y = square_root_at_zero(lib)
        _, text = failing_backward(y)
    assert "Error detected in SqrtBackward0" in text
    assert "square_root_at_zero" in text
    assert "x.sqrt()" in text


def test_without_check_nan_nothing_is_raised(lib):
    x = lib.zeros(2, requires_grad=True)
    with lib.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * x).sum().backward()
    assert x.grad.isnan().all()


def test_forward_outside_leaves_no_traceback(lib):
    y = square_root_at_zero(lib)
    with lib.autograd.detect_anomaly():
        error, text = failing_backward(y)
    assert "returned nan values" in str(error)
    assert "No forward pass information available" in text


def test_nodes_keep_their_stack_only_inside(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.autograd.detect_anomaly():
        inside = x * 2
    outside = x * 2
    assert "traceback_" in inside.grad_fn.metadata
    assert any("test_nodes_keep_their_stack_only_inside" in s
               for s in inside.grad_fn.metadata["traceback_"])
    assert "traceback_" not in outside.grad_fn.metadata


def test_double_backward_knows_its_parent(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.autograd.detect_anomaly():
        y = (x**3).sum()
        (g,) = lib.autograd.grad(y, x, create_graph=True)
    assert "parent_" in g.grad_fn.metadata
    assert g.grad_fn.metadata["parent_"].name() == "PowBackward0"


def test_parent_chain_is_told(lib):
    def first(x):
        return (x**1.5).sum()

    x = lib.zeros(2, dtype=lib.float64, requires_grad=True)
    with lib.autograd.detect_anomaly(check_nan=False):
        (g,) = lib.autograd.grad(first(x), x, create_graph=True)
    g.grad_fn.register_hook(lambda *grads: 1 / 0)
    with lib.autograd.detect_anomaly(check_nan=False):
        error, text = failing_backward(g.sum())
    assert isinstance(error, ZeroDivisionError)
    assert "that induced the previous calculation" in text
    assert "in first" in text


def failing(lib):
    class Failing(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("refused")

    return Failing


def nested_failure(lib):
    """The backward of a node runs a whole backward, which fails."""

    class Outer(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with lib.enable_grad():
                inner_forward(lib).sum().backward()
            return g

    return Outer.apply(lib.ones(1, requires_grad=True)).sum()


def inner_forward(lib):
    return failing(lib).apply(lib.ones(1, requires_grad=True))


def test_nested_failure_tells_each_step_in_a_warning_of_its_own(lib):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lib.autograd.set_detect_anomaly(True), pytest.raises(ValueError, match="refused"):
            nested_failure(lib).backward()
    first, second, third = [str(warning.message).strip() for warning in caught]
    assert first.startswith("Error detected in FailingBackward. Traceback of forward call that")
    assert "in inner_forward" in first
    assert second.startswith(
        "Previous calculation was induced by OuterBackward. Traceback of forward call that "
        "induced the previous calculation:"
    )
    assert "in nested_failure" in second
    assert third.startswith("Error detected in OuterBackward. Traceback of forward call that")


def test_steps_of_a_forward_call_outside_are_told_without_a_stack(lib):
    x = lib.ones(1, requires_grad=True)
    y = x**3
    with lib.autograd.set_detect_anomaly(True):
        (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        g.grad_fn.register_hook(lambda *grads: 1 / 0)
        error, text = failing_backward(g.sum())
    assert isinstance(error, ZeroDivisionError)
    assert "PowBackward0. No forward pass information available" in text


@pytest.mark.parametrize("make", [square_root_at_zero, nested_failure])
def test_warnings_as_errors_leave_the_error_as_it_is(lib, make, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with lib.autograd.set_detect_anomaly(True):
            y = make(lib)
            with pytest.raises((RuntimeError, ValueError), match="nan values|refused") as failure:
                y.backward()
    assert failure.value.__cause__ is failure.value.__context__ is None
    told = "".join([*getattr(failure.value, "__notes__", ()), capsys.readouterr().err])
    assert "Traceback of forward call that caused the error" in told
    assert f"in {make.__name__}" in told


@pytest.mark.parametrize("where", ["tensor hook", "node hook", "node prehook"])
def test_failing_hooks_are_explained(lib, where):
    x = lib.ones(2, requires_grad=True)
    with lib.autograd.detect_anomaly():
        y = x * 2
        if where == "tensor hook":
            y.register_hook(lambda g: 1 / 0)
        elif where == "node hook":
            y.grad_fn.register_hook(lambda *grads: 1 / 0)
        else:
            y.grad_fn.register_prehook(lambda *grads: 1 / 0)
        error, text = failing_backward(y.sum())
    assert isinstance(error, ZeroDivisionError)
    assert "Error detected in MulBackward0" in text


def test_modes_nest_and_are_restored(lib):
    with lib.autograd.detect_anomaly():
        assert lib.is_anomaly_enabled() and lib.is_anomaly_check_nan_enabled()
        with lib.autograd.set_detect_anomaly(True, check_nan=False):
            assert not lib.is_anomaly_check_nan_enabled()
        assert lib.is_anomaly_check_nan_enabled()
        with lib.autograd.set_detect_anomaly(False):
            assert not lib.is_anomaly_enabled()
        assert lib.is_anomaly_enabled()
    assert not lib.is_anomaly_enabled()


def test_set_works_at_once(lib):
    lib.autograd.set_detect_anomaly(True)
    try:
        assert lib.is_anomaly_enabled()
    finally:
        lib.autograd.set_detect_anomaly(False)


def test_restored_after_an_exception(lib):
    with pytest.raises(ValueError), lib.autograd.detect_anomaly():
        raise ValueError
    assert not lib.is_anomaly_enabled()


def test_the_next_backward_works(lib):
    with lib.autograd.detect_anomaly():
        failing_backward(square_root_at_zero(lib))
        x = lib.ones(2, requires_grad=True)
        (x.sqrt() * x).sum().backward()
    assert lib.allclose(x.grad, lib.full((2,), 1.5))


def test_inf_is_no_anomaly(lib):
    x = lib.zeros(2, requires_grad=True)
    with lib.autograd.detect_anomaly():
        x.sqrt().sum().backward()
    assert lib.isinf(x.grad).all()
