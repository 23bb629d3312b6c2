"""The other forms of an operation: methods, in-place, out=, other memory layouts."""

import numpy as np
import pytest

import wengert
from operators.support import (
    assert_close,
    assert_same,
    build,
    call,
    differentiable,
    each,
    each_sample,
    gradients,
    leaves_of,
    map_tensors,
    replaced,
    results,
    weights_like,
)
from wengert.autograd import forward_ad

KINDS = ("real", "complex", "integer")
#: In-place forms that change how a tensor sees its memory instead of the memory.
VIEWS_IN_PLACE = {
    "squeeze", "unsqueeze", "transpose", "t", "swapaxes", "swapdims", "as_strided",
}  # fmt: skip


REFUSED = (
    "doesn't match the broadcast shape|can't be cast|In-place abs is not supported|requires dtype"
)


def _is_function(operation):
    path = operation.path or operation.name
    return isinstance(path, str) and not path.startswith(("Tensor.", "nn."))


def _first(sample):
    """The tensor that a method would be called on, None if the first argument is none."""
    return sample.args[0] if sample.args and isinstance(sample.args[0], wengert.Tensor) else None


@each_sample(lambda o: o.method and _is_function(o), KINDS)
def test_method_is_the_function(operation, sample):
    built = build(wengert, sample)
    if _first(built) is not None:
        method = getattr(_first(built), operation.name)
        got = method if not callable(method) else method(*built.args[1:], **built.kwargs)
        assert_same(got, call(operation, wengert, built))


@each(lambda o: _is_function(o) and o.name.isidentifier())
def test_is_a_method_where_pytorch_has_one(operation):
    torch = pytest.importorskip("torch")
    assert not hasattr(torch.Tensor, operation.name) or hasattr(wengert.Tensor, operation.name)


# In place -----------------------------------------------------------------------------------------


def _has_inplace(operation):
    name = operation.name.rpartition(".")[2] + "_"
    return _is_function(operation) and hasattr(wengert.Tensor, name)


def _inplace(operation, target, sample):
    return getattr(target, operation.name + "_")(*sample.args[1:], **sample.kwargs)


def _fits(operation, result, target):
    """Whether a result can be written into a tensor: by shape, and by kind of number."""
    if operation.name in VIEWS_IN_PLACE:
        return True
    if operation.name == "abs" and target.is_complex():
        return False
    return result.shape == target.shape and wengert.can_cast(result.dtype, target.dtype)


@each(lambda o: _is_function(o) and o.name.isidentifier())
def test_has_an_in_place_form_where_pytorch_has_one(operation):
    torch = pytest.importorskip("torch")
    name = operation.name + "_"
    assert not hasattr(torch.Tensor, name) or hasattr(wengert.Tensor, name)


@each_sample(_has_inplace, KINDS)
def test_in_place_writes_what_the_function_returns(operation, sample):
    built = build(wengert, sample)
    if _first(built) is None:
        return
    want = call(operation, wengert, built)
    for recording in (True, False):
        target = _first(built).clone()
        with wengert.set_grad_enabled(recording):
            if not _fits(operation, want, target):
                with pytest.raises(RuntimeError, match=REFUSED):
                    _inplace(operation, target, built)
                continue
            assert _inplace(operation, target, built) is target
        assert target._version == 1
        assert_same(target, want.to(target.dtype))


@each_sample(lambda o: o.differentiable and _has_inplace(o))
def test_in_place_gradient_is_that_of_the_function(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    if _first(built) is None:
        return
    target = _first(built).clone()
    if not _fits(operation, call(operation, wengert, build(wengert, sample)), target):
        return
    _inplace(operation, target, built)
    (cotangent,) = weights_like([target])
    inputs = leaves_of(wengert, built)
    got = wengert.autograd.grad(target, inputs, wengert.tensor(cotangent), allow_unused=True)
    _assert_same_gradients(got, gradients(wengert, operation, sample))


@each_sample(lambda o: o.differentiable and _has_inplace(o))
def test_in_place_tangent_is_that_of_the_function(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    if _first(built) is None or not _fits(
        operation, call(operation, wengert, build(wengert, sample)), _first(built)
    ):
        return
    inputs = [x.detach() for x in leaves_of(wengert, built)]
    tangents = [wengert.tensor(u) for u in weights_like(inputs)]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, u) for x, u in zip(inputs, tangents)]
        made = replaced(wengert, built, duals)
        want = forward_ad.unpack_dual(call(operation, wengert, made)).tangent
        target = made.args[0].clone()
        _inplace(operation, target, made)
        assert_close(forward_ad.unpack_dual(target).tangent, want)


@each_sample(lambda o: o.differentiable and _has_inplace(o), ("real",))
def test_in_place_on_a_leaf_is_refused(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    target = _first(built)
    if target is None or not target.requires_grad or not _fits(
        operation, call(operation, wengert, build(wengert, sample)), target
    ):
        return
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        _inplace(operation, target, built)


@each_sample(lambda o: o.operands == 1 and o.name.startswith("nn.functional."), ("real",))
def test_inplace_argument_writes_into_the_input(operation, sample):
    import inspect

    function = operation.resolve(wengert)
    if "inplace" not in inspect.signature(function).parameters:
        return
    built = build(wengert, sample)
    want = function(*built.args, **built.kwargs)
    target = built.args[0].clone()
    assert function(target, *built.args[1:], **built.kwargs, inplace=True) is target
    assert target._version == 1
    assert_same(target, want)


# out= ---------------------------------------------------------------------------------------------


def _with_out(operation, sample):
    """The expected result, tensors for out= and the sample that has them."""
    want = call(operation, wengert, build(wengert, sample))
    given = [wengert.empty_like(part) for part in results(want)]
    out = given[0] if isinstance(want, wengert.Tensor) else tuple(given)
    return want, given, out


@each_sample(lambda o: o.out, KINDS)
def test_out_receives_the_result(operation, sample):
    want, given, out = _with_out(operation, sample)
    built = build(wengert, sample)
    got = operation.resolve(wengert)(*built.args, **built.kwargs, out=out)
    assert_same(got, want)
    assert_same(given, want)
    assert all(mine is other for mine, other in zip(results(got), given, strict=True))


@each(lambda o: o.out and o.differentiable)
def test_out_refuses_to_record(operation):
    sample = operation.draw("real" if operation.real else "complex")[0]
    _, _, out = _with_out(operation, sample)
    built = build(wengert, sample, requires_grad=True)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        operation.resolve(wengert)(*built.args, **built.kwargs, out=out)


# Memory layouts -----------------------------------------------------------------------------------


def _stretched(tensor):
    """The same values with gaps between them and, in two or more dimensions, in column order."""
    array = tensor.detach().numpy()
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    if array.ndim > 1:
        wide = np.moveaxis(np.moveaxis(wide, 0, -2).copy(), -2, 0)
    return wengert.from_numpy(wide[..., 0]).requires_grad_(tensor.requires_grad)


@each_sample(lambda o: o.any_layout, KINDS)
def test_memory_layout_does_not_matter(operation, sample):
    built = build(wengert, sample)
    want = call(operation, wengert, built)
    assert_same(call(operation, wengert, map_tensors(wengert, built, _stretched)), want)


@each_sample(lambda o: o.any_layout and o.differentiable)
def test_memory_layout_does_not_matter_for_gradients(operation, sample):
    built = map_tensors(wengert, build(wengert, sample, requires_grad=True), _stretched)
    inputs = leaves_of(wengert, built)
    outputs = differentiable(call(operation, wengert, built))
    cotangents = [
        _stretched(wengert.tensor(w).to(out.dtype))
        for w, out in zip(weights_like(outputs), outputs)
    ]
    got = [None] * len(inputs)
    if outputs:
        got = wengert.autograd.grad(outputs, inputs, cotangents, allow_unused=True)
    _assert_same_gradients(got, gradients(wengert, operation, sample))


def _assert_same_gradients(got, want):
    for mine, other in zip(got, want, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(mine, other)
