"""Inference mode in full: what is an inference tensor, what may be done with one, and where.

The mode as context manager and decorator is in test_grad_modes.py.
"""

import copy
import pickle

import pytest


def inference(lib, *size):
    with lib.inference_mode():
        return lib.ones(*(size or (3,)))


def leaf(lib, *size):
    return lib.ones(*(size or (3,)), requires_grad=True)


OUTSIDE = "Inplace update to inference tensor outside InferenceMode is not allowed"
NOT_SAVED = "Inference tensors cannot be saved for backward"
VIEW_INSIDE = "A view was created in inference mode and is being modified inplace"

# What is one --------------------------------------------------------------------------------------

INSIDE = {
    "result": (lambda lib, t: t + 1, True),
    "clone": (lambda lib, t: t.clone(), True),
    "cast": (lambda lib, t: t.double(), True),
    "itself": (lambda lib, t: t.float(), False),
    "view": (lambda lib, t: t.view(3), False),
    "slice": (lambda lib, t: t[:2], False),
    "element": (lambda lib, t: t[0], False),
    "expand": (lambda lib, t: t.expand(2, 3), False),
    "reshape": (lambda lib, t: t.reshape(3, 1), False),
    "unbind": (lambda lib, t: t.unbind(0)[0], False),
    "detach": (lambda lib, t: t.detach(), False),
    "data": (lambda lib, t: t.data, False),
    "changed": (lambda lib, t: t.add_(1), False),
    "alike": (lambda lib, t: lib.zeros_like(t), True),
    "literal": (lambda lib, t: lib.tensor([1.0]), True),
    "list": (lambda lib, t: lib.cat([t, t]), True),
}


@pytest.mark.parametrize("case", INSIDE)
def test_made_inside_from_a_normal_tensor(lib, case):
    make, expected = INSIDE[case]
    normal = lib.ones(3)
    with lib.inference_mode():
        assert make(lib, normal).is_inference() is expected


OUT = {
    "result": (lambda lib, t: t + 1, False),
    "clone": (lambda lib, t: t.clone(), False),
    "cast": (lambda lib, t: t.double(), False),
    "itself": (lambda lib, t: t.float(), True),
    "contiguous": (lambda lib, t: t.contiguous(), True),
    "view": (lambda lib, t: t.view(3), True),
    "slice": (lambda lib, t: t[:2], True),
    "reshape": (lambda lib, t: t.reshape(3, 1), True),
    "split": (lambda lib, t: t.split(1)[0], True),
    "detach": (lambda lib, t: t.detach(), True),
    "data": (lambda lib, t: t.data, True),
    "alike": (lambda lib, t: lib.zeros_like(t), False),
    "deep copy": (lambda lib, t: copy.deepcopy(t), False),
    "pickle": (lambda lib, t: pickle.loads(pickle.dumps(t)), False),
}


@pytest.mark.parametrize("case", OUT)
def test_made_outside_from_an_inference_tensor(lib, case):
    make, expected = OUT[case]
    assert make(lib, inference(lib)).is_inference() is expected


def test_view_of_an_inference_tensor_is_not_tracked(lib):
    with lib.inference_mode():
        view = lib.ones(3)[:2]
    assert not view._is_view()
    assert not inference(lib)[:2]._is_view()


def test_view_made_inside_of_a_normal_tensor_is_tracked(lib):
    normal = lib.ones(3)
    with lib.inference_mode():
        view = normal[:2]
    assert view._is_view()
    assert view._base is normal
    assert view._version == 0


def test_data_takes_the_kind_along(lib):
    normal, made_inside = lib.ones(3), inference(lib)
    normal.data = inference(lib)
    made_inside.data = lib.ones(3)
    assert normal.is_inference()
    assert not made_inside.is_inference()


def test_attributes(lib):
    t = inference(lib)
    assert (t.requires_grad, t.is_leaf, t.grad_fn, t.grad) == (False, True, None, None)
    assert lib.is_inference(t)
    assert t.tolist() == t.numpy().tolist() == [1.0, 1.0, 1.0]


def test_no_version(lib):
    t = inference(lib)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        t._version
    with lib.inference_mode():
        with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
            t._version


# Changing -----------------------------------------------------------------------------------------

CHANGES = {
    "add_": lambda lib, t: t.add_(1),
    "zero_": lambda lib, t: t.zero_(),
    "fill_": lambda lib, t: t.fill_(3.0),
    "copy_": lambda lib, t: t.copy_(lib.zeros(3)),
    "mul_ tensor": lambda lib, t: t.mul_(lib.ones(3)),
    "assignment": lambda lib, t: t.__setitem__(0, 2.0),
    "unsqueeze_": lambda lib, t: t.unsqueeze_(0),
    "out": lambda lib, t: lib.add(lib.ones(3), 1, out=t),
    "random": lambda lib, t: t.uniform_(),
}


@pytest.mark.parametrize("case", CHANGES)
def test_change_outside_is_refused(lib, case):
    t = inference(lib)
    with pytest.raises(RuntimeError, match=OUTSIDE):
        CHANGES[case](lib, t)
    if lib.__name__ == "wengert":  # PyTorch notices after the change
        assert t.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("case", CHANGES)
def test_change_inside(lib, case):
    t = inference(lib)
    with lib.inference_mode():
        CHANGES[case](lib, t)
    assert t.is_inference()


@pytest.mark.parametrize("mode", ["no_grad", "enable_grad"])
def test_change_under_another_mode_is_refused(lib, mode):
    with getattr(lib, mode)():
        with pytest.raises(RuntimeError, match=OUTSIDE):
            inference(lib).add_(1)


def test_change_through_a_view_made_outside_is_refused(lib):
    with pytest.raises(RuntimeError, match=OUTSIDE):
        inference(lib)[:2].add_(1)


def test_normal_tensor_changed_inside_counts(lib):
    normal = lib.ones(3)
    with lib.inference_mode():
        normal.add_(1)
    assert normal._version == 1
    assert not normal.is_inference()


def test_change_inside_is_detected_by_backward(lib):
    x = leaf(lib) * 1
    y = x * x
    with lib.inference_mode():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_change_inside_is_not_recorded(lib):
    x = leaf(lib)
    y = x * 2
    with lib.inference_mode():
        y.mul_(5)
        x.add_(1)
    assert x._version == 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_normal_tensor_changed_by_an_inference_tensor(lib):
    normal, y = lib.ones(3), leaf(lib) * 1
    normal.add_(inference(lib))
    assert normal.tolist() == [2.0, 2.0, 2.0]
    y.add_(inference(lib))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match=NOT_SAVED):
        y.mul_(inference(lib))


# Recording ----------------------------------------------------------------------------------------


def test_saving_is_refused(lib):
    with pytest.raises(RuntimeError, match=NOT_SAVED):
        leaf(lib) * inference(lib)


def test_recording_without_saving(lib):
    x = leaf(lib)
    (x + inference(lib)).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_clone_outside_can_be_saved(lib):
    x = leaf(lib)
    (x * inference(lib).clone()).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_normal_mode_inside_records(lib):
    with lib.inference_mode():
        made_inside = lib.ones(3)
        with lib.inference_mode(False):
            x = leaf(lib)
            y = x * 2
            assert not y.is_inference()
            with pytest.raises(RuntimeError, match=NOT_SAVED):
                x * made_inside
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_requires_grad_inside(lib):
    with lib.inference_mode():
        x = leaf(lib)
        y = x * 2
    assert x.requires_grad
    assert not y.requires_grad


def test_inference_leaf_used_outside(lib):
    with lib.inference_mode():
        x = leaf(lib)
    (x + 1).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_requires_grad_outside_is_refused(lib):
    t = inference(lib)
    with pytest.raises(RuntimeError, match="outside InferenceMode is not allowed"):
        t.requires_grad = True
    with pytest.raises(RuntimeError, match="outside InferenceMode is not allowed"):
        t.requires_grad_()
    t.requires_grad = False


def test_hooks_need_requires_grad(lib):
    with pytest.raises(RuntimeError, match="cannot register a hook"):
        inference(lib).register_hook(len)
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        inference(lib).retain_grad()


# Views of normal tensors made inside --------------------------------------------------------------


def test_view_made_inside_has_no_history(lib):
    base = leaf(lib) * 1
    with lib.inference_mode():
        view = base[:2]
    assert view.requires_grad
    assert view.grad_fn is None
    assert (view * 2).requires_grad


def test_change_of_view_made_inside_is_refused_outside(lib):
    base = leaf(lib) * 1
    with lib.inference_mode():
        view = base[:2]
    with pytest.raises(RuntimeError, match=VIEW_INSIDE):
        view.add_(1)


def test_change_of_view_made_inside_is_allowed_inside(lib):
    base = leaf(lib) * 1
    with lib.inference_mode():
        base[:2].add_(1)
    assert base.tolist() == [2.0, 2.0, 1.0]
    assert base._version == 1


def test_unrecorded_change_of_view_made_inside(lib):
    base = lib.ones(3)
    with lib.inference_mode():
        view = base[:2]
    view.add_(1)
    assert base.tolist() == [2.0, 2.0, 1.0]
    with pytest.raises(RuntimeError, match=VIEW_INSIDE):
        view.mul_(leaf(lib, 2))


# Backward -----------------------------------------------------------------------------------------


def test_backward_inside_makes_inference_gradients(lib):
    x = leaf(lib)
    y = (x * 2).sum()
    with lib.inference_mode():
        y.backward(retain_graph=True)
        assert lib.autograd.grad(y, x)[0].is_inference()
    assert x.grad.is_inference()


def test_accumulation_into_an_inference_gradient_outside_is_refused(lib):
    x = leaf(lib)
    y = (x * 2).sum()
    with lib.inference_mode():
        y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=OUTSIDE):
        y.backward()


def test_accumulation_into_a_normal_gradient_inside(lib):
    x = leaf(lib)
    y = (x * 2).sum()
    y.backward(retain_graph=True)
    with lib.inference_mode():
        y.backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
    assert not x.grad.is_inference()


def test_inference_gradient_may_be_assigned(lib):
    x = leaf(lib)
    x.grad = inference(lib)
    assert x.grad.is_inference()
    with pytest.raises(RuntimeError, match=OUTSIDE):
        (x * 2).sum().backward()


def test_inference_tensor_as_gradient_of_the_root(lib):
    x = leaf(lib)
    (x * 2).backward(inference(lib))
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert not x.grad.is_inference()


def test_backward_of_an_inference_tensor_is_refused(lib):
    with pytest.raises(RuntimeError, match="does not require grad"):
        inference(lib, 1).backward()


# Nesting ------------------------------------------------------------------------------------------


def test_modes_inside_and_after(lib):
    with lib.no_grad():
        with lib.inference_mode():
            assert not lib.is_grad_enabled()
        assert not lib.is_grad_enabled()
        with lib.inference_mode(False):
            assert lib.is_grad_enabled()
        assert not lib.is_grad_enabled()
    assert not lib.is_inference_mode_enabled()


def test_enable_grad_inside(lib):
    with lib.inference_mode(), lib.enable_grad():
        assert lib.is_grad_enabled()
        y = leaf(lib) * 2
        assert y.is_inference()
        assert not y.requires_grad


def test_parameter(lib):
    with lib.inference_mode():
        assert lib.nn.Parameter(lib.ones(3)).is_inference()
    with pytest.raises(RuntimeError, match="outside InferenceMode is not allowed"):
        lib.nn.Parameter(inference(lib))


def test_forward_mode_is_off_inside(lib):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lib.ones(3), lib.ones(3))
        with lib.inference_mode():
            assert forward_ad.unpack_dual(dual * 2).tangent is None


# Version counters and views: the internal modes beside it -----------------------------------------


def test_preserved_version(lib):
    x, y = lib.ones(2), lib.ones(2)
    y.add_(1)
    with lib.autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1)
        y.mul_(2).mul_(2)
    assert (x._version, y._version) == (0, 1)


def test_preserved_version_of_one_tensor_after_an_exception(lib):
    x = lib.ones(2)
    with pytest.raises(KeyError):
        with lib.autograd._unsafe_preserve_version_counter(x):
            x.add_(1)
            raise KeyError
    assert x._version == 0


def test_preserved_version_hides_a_change_from_backward(lib):
    w = leaf(lib)
    x = w * 1
    y = x * x
    with lib.autograd._unsafe_preserve_version_counter(x), lib.no_grad():
        x.mul_(3)
    y.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("wrong", [3, None, "list"])
def test_preserved_version_wants_a_tensor_or_a_tuple(lib, wrong):
    with pytest.raises(AssertionError, match="Expected tensors to be a tuple"):
        lib.autograd._unsafe_preserve_version_counter([lib.ones(2)] if wrong == "list" else wrong)


def test_preserved_version_of_an_inference_tensor_is_refused(lib):
    with pytest.raises(RuntimeError, match="do not track version counter"):
        lib.autograd._unsafe_preserve_version_counter(inference(lib))


def test_view_tracking_flag(lib):
    force, enabled = lib.autograd._force_original_view_tracking, lib.autograd.is_view_replay_enabled
    assert not enabled()
    with force(True):
        assert enabled()
        with force(False):
            assert not enabled()
        assert enabled()
    assert not enabled()

    @force(True)
    def function():
        return enabled()

    assert not enabled()
    assert function()
    assert not enabled()


def test_view_tracking_keeps_the_operator_of_a_view(lib):
    base = leaf(lib) * 1
    with lib.autograd._force_original_view_tracking(True):
        view = base[:2]
        base.mul_(2)
        assert view.grad_fn.name() == "SliceBackward0"


@pytest.mark.compiled_only  # the uncompiled engine copies every first gradient
@pytest.mark.parametrize("enable", [True, False])
def test_layout_of_a_stolen_gradient(lib, enable):
    leaf = lib.ones(2, 3).t().requires_grad_()
    with lib.autograd.enforce_grad_layout_policy(enable):
        (leaf * 2).backward(lib.ones(3, 2))
    assert leaf.grad.stride() == ((1, 3) if enable else (2, 1))


def test_layout_of_a_copied_gradient_is_always_that_of_the_leaf(lib):
    leaf, gradient = lib.ones(2, 3).t().requires_grad_(), lib.ones(3, 2)
    with lib.autograd.enforce_grad_layout_policy(False):
        (leaf + 0).backward(gradient)
    assert leaf.grad.stride() == (1, 3)


@pytest.mark.compiled_only
def test_layout_policy_as_decorator_and_function(lib):
    def strides():
        leaf = lib.ones(2, 3).t().requires_grad_()
        (leaf * 2).backward(lib.ones(3, 2))
        return leaf.grad.stride()

    policy = lib.autograd.enforce_grad_layout_policy
    relaxed = policy(False)(strides)
    assert strides() == (1, 3)
    assert relaxed() == (2, 1)
    policy(False)
    try:
        assert strides() == (2, 1)
    finally:
        policy(True)
    assert strides() == (1, 3)


# Aliases taken outside of the mode ----------------------------------------------------------------

aliases = pytest.mark.parametrize("alias", [lambda x: x.detach(), lambda x: x.data])


@aliases
def test_alias_taken_outside_can_be_changed(lib, alias):
    x = inference(lib)
    y = alias(x)
    assert y.is_inference() and y._version == 0
    y.add_(1).mul_(2)
    y.normal_().fill_(4)
    assert y._version == 4
    assert x.tolist() == y.tolist() == [4.0, 4.0, 4.0]
    lib.add(lib.ones(3), 1, out=alias(x))
    assert x.tolist() == [2.0, 2.0, 2.0]
    assert alias(y)._version == 0


@aliases
def test_alias_taken_inside_can_not_be_changed_outside(lib, alias):
    with lib.inference_mode():
        y = alias(lib.ones(3))
    for use in (lambda: y.add_(1), lambda: y._version, lambda: alias(inference(lib))[:1].add_(1)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor|do not track"):
            use()


@aliases
def test_change_of_an_alias_is_recorded(lib, alias):
    w = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = alias(inference(lib))
    y.mul_(w)
    y.add_(w)
    assert y.requires_grad and y.is_inference()
    (gradient,) = lib.autograd.grad(y, w, lib.ones(3))
    assert gradient.tolist() == [2.0, 2.0, 2.0]


VIEWS = {
    "view": lambda x: x.view(3, 1),
    "slice": lambda x: x[:1],
    "expand": lambda x: x.expand(2, 3),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "split": lambda x: x.split(1)[0],
    "unbind": lambda x: x.unbind(0)[0],
    "transpose": lambda x: x.t(),
    "reshape": lambda x: x.reshape(1, 3),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_view_of_an_inference_tensor_is_not_recorded(lib, view):
    with lib.inference_mode():
        x = lib.ones(3, requires_grad=True)
    y = view(x)
    assert y.is_inference() and not y.requires_grad and y.grad_fn is None
    assert (x + 1).requires_grad
