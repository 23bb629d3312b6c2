"""Tensors without data: the same shapes, dtypes and views as with data, or a refusal."""

import pytest

import wengert
from operators.support import (
    build,
    call,
    differentiable,
    each_sample,
    leaves_of,
    map_tensors,
    results,
)

KINDS = ("real", "complex", "integer")


def _on_meta(tensor):
    return tensor.detach().to("meta").requires_grad_(tensor.requires_grad)


@each_sample(lambda o: not o.needs_data, KINDS)
def test_meta_result_has_the_shape_and_dtype_of_the_real_one(operation, sample):
    built = build(wengert, sample)
    want = results(call(operation, wengert, built))
    got = results(call(operation, wengert, map_tensors(wengert, built, _on_meta)))
    assert len(got) == len(want)
    for mine, other in zip(got, want, strict=True):
        assert mine.device.type == "meta"
        assert mine.shape == other.shape
        assert mine.dtype == other.dtype
        assert mine._is_view() == other._is_view()


@each_sample(lambda o: bool(o.needs_data), ("real",))
def test_missing_data_is_noticed(operation, sample):
    """A call on meta tensors fails, unless these arguments do not need the data after all."""
    built = build(wengert, sample)
    want = call(operation, wengert, built)
    try:
        got = call(operation, wengert, map_tensors(wengert, built, _on_meta))
    except (RuntimeError, NotImplementedError) as error:
        assert "meta" in str(error)
        return
    shapes = [getattr(part, "shape", ()) for part in results(got)]
    assert shapes == [getattr(part, "shape", ()) for part in results(want)]


@each_sample(lambda o: o.differentiable and not o.needs_data)
def test_meta_gradients_have_the_shapes_of_the_inputs(operation, sample):
    built = map_tensors(wengert, build(wengert, sample, requires_grad=True), _on_meta)
    leaves = leaves_of(wengert, built)
    outputs = differentiable(call(operation, wengert, built))
    if not outputs:
        return
    seeds = [wengert.empty_like(out) for out in outputs]
    grads = wengert.autograd.grad(outputs, leaves, seeds, allow_unused=True)
    for grad, x in zip(grads, leaves, strict=True):
        if grad is not None:
            assert grad.device.type == "meta"
            assert grad.shape == x.shape
            assert grad.dtype == x.dtype


@pytest.mark.parametrize("name", ["item", "tolist", "numpy"])
def test_data_of_a_meta_tensor_is_refused(name):
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
        getattr(wengert.empty(1, device="meta"), name)()
