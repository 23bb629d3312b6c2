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
    results,
    tensors_of,
    weights_like,
)

KINDS = ("real", "complex", "integer")


def _is_function(operation):
    return isinstance(operation.path, str) and not (operation.path or operation.name).startswith(
        "Tensor."
    )


def _inplace_name(operation):
    name = operation.name.rpartition(".")[2] + "_"
    return name if hasattr(wengert.Tensor, name) else ""


@each_sample(lambda o: o.method and _is_function(o), KINDS)
def test_method_is_the_function(operation, sample):
    built = build(wengert, sample)
    first, *rest = built.args
    if not isinstance(first, wengert.Tensor):
        return
    method = getattr(first, operation.name.rpartition(".")[2])
    assert_same(method(*rest, **built.kwargs), call(operation, wengert, built))


@each(lambda o: _is_function(o) and o.name.isidentifier())
def test_is_a_method_where_pytorch_has_one(operation):
    torch = pytest.importorskip("torch")
    assert hasattr(torch.Tensor, operation.name) == hasattr(wengert.Tensor, operation.name)


# In place ------------------------------------------------------------------------------------------


@each_sample(lambda o: bool(_inplace_name(o)), KINDS)
def test_in_place_writes_what_the_function_returns(operation, sample):
    built = build(wengert, sample)
    first, *rest = built.args
    if not isinstance(first, wengert.Tensor):
        return
    want = call(operation, wengert, built)
    target = first.clone()
    method = getattr(target, _inplace_name(operation))
    if _fits(want, target):
        version = target._version
        assert method(*rest, **built.kwargs) is target
        assert target._version == version + 1
        assert_same(target, want.to(target.dtype))
    else:
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape|can't be cast"):
            method(*rest, **built.kwargs)


def _fits(result, target):
    """Whether a result can be written into a tensor: by shape, and by kind of number."""
    if result.shape != target.shape:
        return result.numel() == target.numel() and not result.is_contiguous() or (
            result.numel() == target.numel() and result._base is not None
        )
    return wengert.can_cast(result.dtype, target.dtype)


@each_sample(lambda o: o.differentiable and bool(_inplace_name(o)))
def test_in_place_gradient_is_that_of_the_function(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    first, *rest = built.args
    if not isinstance(first, wengert.Tensor):
        return
    plain = call(operation, wengert, build(wengert, sample))
    if not _fits(plain, first):
        return
    target = first.clone()
    getattr(target, _inplace_name(operation))(*rest, **built.kwargs)
    (cotangent,) = weights_like([target])
    inputs = tensors_of(wengert, built)
    got = wengert.autograd.grad(target, inputs, wengert.tensor(cotangent), allow_unused=True)
    for mine, other in zip(got, gradients(wengert, operation, sample), strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(mine, other)


@each_sample(lambda o: o.differentiable and bool(_inplace_name(o)), ("real",))
def test_in_place_on_a_leaf_is_refused(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    first, *rest = built.args
    if not isinstance(first, wengert.Tensor) or not _fits(
        call(operation, wengert, build(wengert, sample)), first
    ):
        return
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(first, _inplace_name(operation))(*rest, **built.kwargs)


# out= ----------------------------------------------------------------------------------------------


@each_sample(lambda o: o.out, KINDS)
def test_out_receives_the_result(operation, sample):
    built = build(wengert, sample)
    want = call(operation, wengert, built)
    single = isinstance(want, wengert.Tensor)
    given = [wengert.empty_like(part) for part in results(want)]
    built.kwargs["out"] = given[0] if single else tuple(given)
    got = call(operation, wengert, built)
    assert_same(got, want)
    assert_same(given, want)
    if single:
        assert got is given[0]


@each(lambda o: o.out and o.differentiable)
def test_out_refuses_to_record(operation):
    kind = "real" if operation.real else "complex"
    sample = operation.draw(kind)[0]
    want = call(operation, wengert, build(wengert, sample))
    given = [wengert.empty_like(part) for part in results(want)]
    built = build(wengert, sample, requires_grad=True)
    built.kwargs["out"] = given[0] if isinstance(want, wengert.Tensor) else tuple(given)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call(operation, wengert, built)


# Memory layouts ------------------------------------------------------------------------------------


def _stretched(array):
    """The same values with gaps between them and, in two or more dimensions, in column order."""
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    if array.ndim > 1:
        wide = np.moveaxis(np.moveaxis(wide, 0, -2).copy(), -2, 0)
    return wide[..., 0]


def _rebuilt(sample, requires_grad=False):
    """The sample around arrays that are not contiguous."""

    def tensor(array):
        result = wengert.from_numpy(_stretched(array))
        return result.requires_grad_() if requires_grad else result

    template = build(wengert, sample)
    converted = sample.map(tensor, fixed=tensor)
    return template, converted


@each_sample(lambda o: o.any_layout, KINDS)
def test_memory_layout_does_not_matter(operation, sample):
    template, converted = _rebuilt(sample)
    converted = _with_dtypes(converted, template)
    assert_same(call(operation, wengert, converted), call(operation, wengert, template))


def _with_dtypes(converted, template):
    """Leaves that are no arrays, such as dtypes, come from the template."""

    def pick(mine, other):
        if type(mine) in (tuple, list):
            return type(mine)(pick(a, b) for a, b in zip(mine, other, strict=True))
        return mine if isinstance(mine, wengert.Tensor) else other

    converted.args = pick(tuple(converted.args), tuple(template.args))
    converted.kwargs = {name: pick(v, template.kwargs[name]) for name, v in converted.kwargs.items()}
    return converted


@each_sample(lambda o: o.any_layout and o.differentiable)
def test_memory_layout_does_not_matter_for_gradients(operation, sample):
    template, converted = _rebuilt(sample, requires_grad=True)
    converted = _with_dtypes(converted, template)
    outputs = differentiable(call(operation, wengert, converted))
    cotangents = [
        wengert.from_numpy(_stretched(w)).to(out.dtype)
        for w, out in zip(weights_like(outputs), outputs)
    ]
    inputs = tensors_of(wengert, converted)
    got = wengert.autograd.grad(outputs, inputs, cotangents, allow_unused=True)
    for mine, other in zip(got, gradients(wengert, operation, sample), strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(mine, other)
