"""Tensors without data: the same shapes, dtypes and views as with data, or a refusal."""

import pytest

import wengert
from operators.support import build, call, each_sample, results

KINDS = ("real", "complex", "integer")


def _on_meta(value):
    if type(value) in (tuple, list):
        return type(value)(_on_meta(item) for item in value)
    return value.to("meta") if isinstance(value, wengert.Tensor) else value


@each_sample(lambda o: not o.needs_data, KINDS)
def test_meta_result_has_the_shape_and_dtype_of_the_real_one(operation, sample):
    real = build(wengert, sample)
    meta = build(wengert, sample)
    meta.args = _on_meta(meta.args)
    meta.kwargs = {name: _on_meta(value) for name, value in meta.kwargs.items()}
    want = results(call(operation, wengert, real))
    got = results(call(operation, wengert, meta))
    assert len(got) == len(want)
    for mine, other in zip(got, want, strict=True):
        assert mine.device.type == "meta"
        assert mine.shape == other.shape
        assert mine.dtype == other.dtype
        assert mine._is_view() == other._is_view()


@each_sample(lambda o: bool(o.needs_data), ("real",))
def test_values_that_are_needed_are_missed(operation, sample):
    """Without data the call either fails or does not depend on values after all."""
    meta = build(wengert, sample)
    want = results(call(operation, wengert, build(wengert, sample)))
    meta.args = _on_meta(meta.args)
    meta.kwargs = {name: _on_meta(value) for name, value in meta.kwargs.items()}
    try:
        got = results(call(operation, wengert, meta))
    except (RuntimeError, NotImplementedError) as error:
        assert "meta" in str(error)
        return
    assert [tuple(x.shape) for x in got] == [tuple(x.shape) for x in want]


@each_sample(lambda o: o.differentiable and not o.needs_data, ("real",))
def test_meta_gradients_have_the_shapes_of_the_inputs(operation, sample):
    meta = build(wengert, sample)
    leaves = []

    def leaf(value):
        if type(value) in (tuple, list):
            return type(value)(leaf(item) for item in value)
        if isinstance(value, wengert.Tensor):
            value = value.to("meta")
            if value.is_floating_point():
                leaves.append(value.requires_grad_())
        return value

    meta.args = leaf(meta.args)
    meta.kwargs = {name: leaf(value) for name, value in meta.kwargs.items()}
    outputs = [out for out in results(call(operation, wengert, meta)) if out.requires_grad]
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
