"""Kernels that compute the gradients of all inputs at once agree with the rules one by one."""

from __future__ import annotations

import pytest

import wengert as torch
from wengert.nn import functional


def operands(shape, dtype, changed):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=dtype)
    weight, bias = torch.rand(shape[1], dtype=dtype), torch.rand(shape[1], dtype=dtype)
    if changed:  # as an optimizer does
        weight.mul_(1.5)
    return x, weight, bias


def gradients(tensors, wanted):
    leaves = [t.detach().clone() if t is not tensors[1] else t.detach() for t in tensors]
    for leaf, is_wanted in zip(leaves, wanted, strict=True):
        leaf.requires_grad_(is_wanted)
    out = functional.batch_norm(leaves[0], None, None, leaves[1], leaves[2], training=True)
    seed = torch.arange(out.numel(), dtype=out.dtype).reshape(out.shape).sin()
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    plain = torch.autograd.grad(out, asked, seed, retain_graph=True)
    recorded = torch.autograd.grad(out, asked, seed, create_graph=True)
    return plain, recorded


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(7, 3), (2, 3, 5), (300, 4, 3, 11)])
@pytest.mark.parametrize("wanted", [(1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1)])
def test_kernels_agree_with_rules(shape, dtype, wanted, changed):
    plain, recorded = gradients(operands(shape, dtype, changed), [bool(w) for w in wanted])
    tolerance = 1e-4 if dtype is torch.float32 else 1e-11
    for one, other in zip(plain, recorded, strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=tolerance, atol=tolerance)


def test_a_parameter_changed_after_it_was_saved_is_refused():
    x, weight, bias = operands((4, 3, 2), torch.float32, True)
    x.requires_grad_()
    out = functional.batch_norm(x, None, None, weight, bias, training=True)
    weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_inputs_that_are_asked_for_alone():
    x, weight, bias = operands((4, 3, 2), torch.float64, True)
    for t in (x, weight, bias):
        t.requires_grad_()
    out = functional.batch_norm(x, None, None, weight, bias, training=True)
    seed = torch.ones_like(out) * x.detach()
    alone = [torch.autograd.grad(out, t, seed, retain_graph=True)[0] for t in (x, weight, bias)]
    together = torch.autograd.grad(out, (x, weight, bias), seed)
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one, other)
