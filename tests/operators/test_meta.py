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


LARGE = 10**6


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x @ x,
        lambda x: x.sum(0),
        lambda x: x.softmax(1),
        lambda x: x.sort(0).values,
        lambda x: x.topk(1000).indices,
        lambda x: wengert.cat([x, x], 1),
        lambda x: wengert.nn.functional.layer_norm(x, (LARGE,)),
        lambda x: x.repeat(3, 4),
        lambda x: x.index_select(0, wengert.empty(10, dtype=wengert.int64, device="meta")),
        lambda x: x.std(1),
        lambda x: x.cumsum(0),
        lambda x: wengert.nn.functional.mse_loss(x, x),
    ],
)
def test_nothing_of_the_size_of_the_data_is_computed(function):
    """A real operation of this size would take terabytes."""
    x = wengert.empty(LARGE, LARGE, device="meta", requires_grad=True)
    out = function(x)
    if out.requires_grad:
        (grad,) = wengert.autograd.grad(out, x, wengert.empty_like(out))
        assert grad.shape == x.shape


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


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_kernels_refuse_is_refused_without_data(device):
    x, y = wengert.empty(3, 4, device=device), wengert.empty(4, 5, device=device)
    z = wengert.empty(3, 4, dtype=wengert.complex64, device=device)
    with pytest.raises(RuntimeError, match=r"size of tensor a \(4\) must match .* b \(5\)"):
        x + y
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(3x4 and 3x4\)"):
        x @ x
    with pytest.raises(NotImplementedError, match="ComplexFloat"):
        z.floor()
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(5)


def test_number_of_classes_is_needed_without_data():
    classes = wengert.empty(3, dtype=wengert.int64, device="meta")
    assert wengert.nn.functional.one_hot(classes, 7).shape == (3, 7)
    with pytest.raises(NotImplementedError, match="values decide the shape"):
        wengert.nn.functional.one_hot(classes)


@pytest.mark.parametrize("name", ["item", "tolist", "numpy"])
def test_data_of_a_meta_tensor_is_refused(name):
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
        getattr(wengert.empty(1, device="meta"), name)()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1,
        lambda x: 1.5 * x,
        lambda x: x / 2,
        lambda x: 2 / x,
        lambda x: x // 2,
        lambda x: x * wengert.ones((), dtype=x.dtype, device=x.device),
        lambda x: x * wengert.ones(2, dtype=wengert.float32, device=x.device),
    ],
)
def test_small_floats_and_numbers_promote_as_with_data(function, shape, dtype):
    real = wengert.ones(shape, dtype=getattr(wengert, dtype))
    assert function(real.to("meta")).dtype == function(real).dtype
