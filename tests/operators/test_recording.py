"""What a recorded call leaves behind, as in PyTorch: flags, dependence, memory order."""

import itertools
import warnings

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


def _recorded(lib, operation, sample):
    """The results that are tensors; None where PyTorch cannot record the call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = results(call(operation, lib, build(lib, sample, requires_grad=True)))
    return [part for part in found if isinstance(part, lib.Tensor)]


def _pairs(operation, sample):
    torch = pytest.importorskip("torch")
    try:
        expected = _recorded(torch, operation, sample)
    except RuntimeError:
        return []
    return list(zip(_recorded(wengert, operation, sample), expected, strict=True))


@each_sample()
def test_requires_grad(operation, sample):
    for got, want in _pairs(operation, sample):
        assert got.requires_grad == want.requires_grad


@each_sample()
def test_memory_order(operation, sample):
    """What can be flattened without a copy in PyTorch can be so here."""
    for got, want in _pairs(operation, sample):
        assert got.is_contiguous() or not want.is_contiguous()


#: Where PyTorch treats 0-d or empty tensors apart, or has one rule for several gradients.
DEPENDS_DIFFERENTLY = {
    "cummax", "cummin", "cumprod", "logcumsumexp", "native_layer_norm", "nn.functional.layer_norm",
    "nn.functional.pad", "prod",
    "nn.functional.batch_norm", "nn.functional.instance_norm",
    "convolution", *[f"nn.functional.conv{n}d" for n in (1, 2, 3)],
    *[f"nn.functional.conv_transpose{n}d" for n in (1, 2, 3)],
}  # fmt: skip


def _dependence(lib, operation, sample):
    """Whether each gradient has a graph, and which inputs that leads to; None if there is none."""
    built = build(lib, sample, requires_grad=True)
    inputs = leaves_of(lib, built)
    outputs = differentiable(call(operation, lib, built))
    if not outputs:
        return None
    seeds = [lib.ones_like(out) for out in outputs]
    grads = lib.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True)
    recorded = [g for g in grads if g is not None and g.requires_grad]
    pattern = [g is not None and g.requires_grad for g in grads]
    if not recorded:
        return pattern, None
    again = lib.autograd.grad(
        recorded, inputs, [lib.ones_like(g) for g in recorded], allow_unused=True
    )
    return pattern, [g is not None for g in again]


@each_sample(
    lambda o: o.differentiable and o.name not in DEPENDS_DIFFERENTLY and "_pool" not in o.name
)
def test_gradient_depends_on_the_inputs_as_in_pytorch(operation, sample):
    """A piecewise linear function has a second derivative, which is zero."""
    torch = pytest.importorskip("torch")
    try:
        want = _dependence(torch, operation, sample)
    except (RuntimeError, NotImplementedError):
        return
    assert _dependence(wengert, operation, sample) == want


def _turned(tensor):
    """The same values with the order of the dimensions in memory reversed."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order) if order else tensor


@each_sample(lambda o: o.any_layout, ("real", "complex", "integer"))
def test_memory_order_for_turned_inputs(operation, sample):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = [
            map_tensors(lib, build(lib, sample), _turned) for lib in (wengert, torch)
        ]
        try:
            want = results(call(operation, torch, want))
        except (RuntimeError, NotImplementedError):
            return
        got = results(call(operation, wengert, got))
    for mine, other in zip(got, want, strict=True):
        if isinstance(mine, wengert.Tensor):
            assert mine.is_contiguous() or not other.is_contiguous()


ALONG_DIMENSIONS = [
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "cummax", "cummin", "cumprod",
    "cumsum", "log_softmax", "logcumsumexp", "logsumexp", "max", "mean", "median", "min", "mode",
    "nanmean", "nanmedian", "nansum", "prod", "softmax", "sort", "std", "std_mean", "sum", "var",
    "var_mean",
]  # fmt: skip


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", ALONG_DIMENSIONS)
def test_strides_of_results_along_a_dimension(name, dim):
    torch = pytest.importorskip("torch")
    for order in itertools.permutations(range(3)):
        found = []
        for lib in (wengert, torch):
            x = lib.arange(24.0).reshape(2, 3, 4).permute(order)
            found.append([tuple(r.stride()) for r in results(getattr(lib, name)(x, dim))])
        assert found[0] == found[1], order


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x, y: lib.sin(x),
        lambda lib, x, y: x + y,
        lambda lib, x, y: y * x,
        lambda lib, x, y: x - y[:1],
        lambda lib, x, y: lib.where(x > 0, x, y),
        lambda lib, x, y: x.expand(2, 2, 3, 4) * y,
        lambda lib, x, y: x.clone(),
        lambda lib, x, y: x.double(),
        lambda lib, x, y: x[:, ::2] > 0,
    ],
)
def test_meta_results_have_the_strides_of_real_ones(compute):
    torch = pytest.importorskip("torch")
    for order in itertools.permutations(range(3)):
        shape = [(2, 3, 4)[order.index(i)] for i in range(3)]
        found = []
        for lib, device in ((wengert, "meta"), (torch, "meta"), (torch, "cpu")):
            x = lib.zeros(shape, device=device).permute(order)
            found.append(tuple(compute(lib, x, lib.zeros(x.shape, device=device)).stride()))
        assert found[0] == found[1] == found[2], order
