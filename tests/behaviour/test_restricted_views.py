"""Views that may not be changed in place, or not everywhere: one of several results, or made where
nothing is recorded."""

import pytest

# Multi-output views


@pytest.mark.parametrize(
    "make",
    [
        lambda y: y.unbind(),
        lambda y: y.split(2),
        lambda y: y.split([1, 3]),
        lambda y: y.chunk(2),
    ],
)
def test_multi_output_view_may_not_change(lib, make):
    y = lib.ones(4, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="returns multiple views"):
        make(y)[0].add_(1)


def test_multi_output_view_of_leaf_may_not_change(lib):
    x = lib.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="returns multiple views|view of a leaf"):
        x.split(2)[0].add_(1)


def test_refused_change_changes_nothing(lib):
    y = lib.ones(4, requires_grad=True) * 1
    with pytest.raises(RuntimeError):
        y.split(2)[0].add_(1)
    assert y.tolist() == [1.0] * 4
    assert y._version == 0


def test_multi_output_view_of_constant_may_change(lib):
    x = lib.zeros(4)
    x.split(2)[1].add_(1)
    assert x.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_multi_output_view_of_constant_may_not_become_differentiable(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        lib.zeros(4).split(2)[0].add_(x)


def test_multi_output_view_may_change_under_no_grad(lib):
    y = lib.ones(4, requires_grad=True) * 1
    part = y.split(2)[0]
    with lib.no_grad():
        part.add_(1)
    assert y.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_multi_output_view_is_invalid_after_change_of_base(lib):
    y = lib.ones(4, requires_grad=True) * 1
    part = y.split(2)[0]
    y.mul_(2)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        part.grad_fn


def test_use_of_multi_output_view_after_change_of_base_is_refused(lib):
    y = lib.ones(4, requires_grad=True) * 1
    part = y.unbind()[0]
    y.mul_(2)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        part * 2


def test_view_of_multi_output_view_may_not_change(lib):
    y = lib.ones(4, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="returns multiple views"):
        y.split(2)[0][:1].add_(1)


def test_multi_output_views_are_differentiable(lib):
    x = lib.ones(4, requires_grad=True)
    first, second = (x * 1).split(2)
    (first * 2 + second * 3).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 3.0, 3.0]


def test_selected_view_beside_multi_output_view_may_change(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    y.split(2)
    y[:2].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0, 1.0]


# Views made under no_grad


def test_no_grad_view_may_not_change_outside(lib):
    y = lib.ones(4, requires_grad=True) * 1
    with lib.no_grad():
        view = y[:2]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.add_(1)


def test_no_grad_view_of_leaf_may_not_change_outside(lib):
    x = lib.ones(4, requires_grad=True)
    with lib.no_grad():
        view = x[:2]
    with pytest.raises(RuntimeError, match="created in no_grad mode|view of a leaf"):
        view.add_(1)


def test_no_grad_view_may_change_inside(lib):
    x = lib.ones(4, requires_grad=True)
    with lib.no_grad():
        x[:2].add_(1)
    assert x.tolist() == [2.0, 2.0, 1.0, 1.0]
    assert x.is_leaf
    assert x._version == 1


def test_no_grad_view_of_constant_may_change_outside(lib):
    x = lib.ones(4)
    with lib.no_grad():
        view = x[:2]
    view.add_(1)
    assert x.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_no_grad_view_of_constant_may_not_become_differentiable(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        view = lib.ones(4)[:2]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.add_(x)


def test_no_grad_view_is_invalid_after_recorded_change_of_base(lib):
    y = lib.ones(4, requires_grad=True) * 1
    with lib.no_grad():
        view = y[:2]
    y.add_(1)
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.grad_fn


def test_no_grad_view_has_no_history(lib):
    y = lib.ones(4, requires_grad=True) * 1
    with lib.no_grad():
        view = y[:2]
    assert view.grad_fn is None
    assert view.is_leaf


def test_view_of_leaf_after_change_under_no_grad(lib):
    x = lib.ones(4, requires_grad=True)
    view = x[:2]
    with lib.no_grad():
        x.mul_(10)
    assert view.tolist() == [10.0, 10.0]
    view.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_view_changed_under_no_grad_keeps_the_history_of_its_base(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    with lib.no_grad():
        y[:2].zero_()
    assert y.grad_fn is node
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 4


# Views made in inference mode


def test_inference_view_of_normal_tensor_is_normal(lib):
    x = lib.ones(4)
    with lib.inference_mode():
        view = x[:2]
    assert not view.is_inference()


def test_inference_view_may_not_change_outside(lib):
    y = lib.ones(4, requires_grad=True) * 1
    with lib.inference_mode():
        view = y[:2]
    with pytest.raises(RuntimeError, match="created in inference mode"):
        view.add_(1)


def test_inference_view_of_constant_may_change_outside(lib):
    x = lib.ones(4)
    with lib.inference_mode():
        view = x[:2]
    view.add_(1)
    assert x.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_inference_view_of_constant_may_not_become_differentiable(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.inference_mode():
        view = lib.ones(4)[:2]
    with pytest.raises(RuntimeError, match="inference"):
        view.add_(x)
