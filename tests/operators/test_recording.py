"""What a recorded call leaves behind, as in PyTorch: flags, node names, views, memory order."""

import warnings

import pytest

import wengert
from operators.samples import VIEWS
from operators.support import build, call, each_sample, results

#: Put together from other operators than in PyTorch, or, as floor_divide, without a node there.
COMPOSED_DIFFERENTLY = {
    "@", "chain_matmul", "cumulative_trapezoid", "einsum", "floor_divide", "matmul",
    "nanquantile", "nn.functional.cross_entropy", "nn.functional.pad",
    "nn.functional.pairwise_distance", "quantile", "trapezoid", "Tensor.sum_to_size", "unique",
}  # fmt: skip
VIEW_NAMES = {operation.name for operation in VIEWS}


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


@each_sample(lambda o: o.name not in COMPOSED_DIFFERENTLY)
def test_name_of_the_node(operation, sample):
    for got, want in _pairs(operation, sample):
        if want.grad_fn is not None:
            assert got.grad_fn.name() == want.grad_fn.name().rpartition("::")[2]


@each_sample(kinds=("real",))
def test_views(operation, sample):
    """A result is a view only where PyTorch's is, and always if that is what it is there for."""
    for got, want in _pairs(operation, sample):
        assert want._is_view() or not got._is_view()
        if operation.name in VIEW_NAMES:
            assert got._is_view() == want._is_view()


@each_sample()
def test_memory_order(operation, sample):
    """What can be flattened without a copy in PyTorch can be so here."""
    for got, want in _pairs(operation, sample):
        assert got.is_contiguous() or not want.is_contiguous()
