"""Views of a tensor that is reshaped in place after they were made."""

import pytest

RESHAPED = {
    "t_": lambda base: base.t_(),
    "transpose_": lambda base: base.transpose_(0, 1),
    "swapaxes_": lambda base: base.swapaxes_(0, -1),
    "swapdims_": lambda base: base.swapdims_(0, 1),
    "unsqueeze_": lambda base: base.unsqueeze_(0),
}
reshaped = pytest.mark.parametrize("reshape", RESHAPED.values(), ids=list(RESHAPED))


def test_flattened_view_of_a_transposed_base_without_history(lib):
    base = lib.zeros(2, 3)
    flat = base.flatten()
    base.swapaxes_(0, -1)
    w = lib.arange(6.0, requires_grad=True)
    flat.add_(w)
    (base * lib.arange(6.0).reshape(3, 2)).sum().backward()
    assert w.grad.tolist() == [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
    assert base.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@reshaped
@pytest.mark.parametrize("history", [False, True])
def test_gradient_through_a_row_of_what_was_reshaped(lib, reshape, history):
    w = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = lib.arange(9.0).reshape(3, 3).clone()
    if history:
        base = base + w * 0
    row = base[1]
    reshape(base)
    row.mul_(w)
    row.add_(w)
    assert row.tolist() == [4.0, 10.0, 18.0]
    weights = reshape(lib.arange(9.0).reshape(3, 3))
    (gradient,) = lib.autograd.grad((base * weights).sum() + (row * row).sum(), w)
    assert gradient.tolist() == [44.0, 120.0, 246.0]


@reshaped
@pytest.mark.parametrize("history", [False, True])
def test_tangent_through_a_row_of_what_was_reshaped(lib, reshape, history):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        w = forward_ad.make_dual(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1.0, 2.0, 4.0]))
        base = lib.arange(9.0).reshape(3, 3).clone()
        if history:
            base = base + w * 0
        row, column = base[1], base[:, 2]
        reshape(base)
        row.mul_(w)
        column.mul_(w)
        expected = lib.tensor([[0.0, 0.0, 2.0], [3.0, 8.0, 70.0], [0.0, 0.0, 32.0]])
        tangents = [forward_ad.unpack_dual(t).tangent.tolist() for t in (base, row, column)]
    assert tangents[0] == reshape(expected.clone()).tolist()
    assert tangents[1:] == [expected[1].tolist(), expected[:, 2].tolist()]


@reshaped
@pytest.mark.parametrize(("part", "unit"), [("real", -1j), ("imag", 1)])
def test_parts_of_complex_numbers_of_a_reshaped_base(lib, part, unit, reshape):
    x = (lib.arange(6.0) * (1 + 0.5j)).reshape(2, 3).requires_grad_()
    base = x * 1j
    view, row = getattr(base, part), getattr(base[1], part)
    reshape(base)
    factors = lib.arange(6.0).reshape(2, 3)
    (found,) = lib.autograd.grad((view * factors).sum() + (row * 2).sum(), x)
    expected = factors + lib.tensor([[0.0], [2.0]])
    assert (found - unit * expected).abs().max().item() < 1e-6


@reshaped
def test_a_part_of_a_view_that_was_made_before(lib, reshape):
    base = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    view = base.swapaxes(0, 0)
    reshape(base)
    x = lib.tensor(5.0, requires_grad=True)
    view[:1] = x
    weights = lib.tensor([[1.0, 10.0], [100.0, 1000.0]])
    for result in (view, base):
        (found,) = lib.autograd.grad((result * weights).sum(), x, retain_graph=True)
        turned = result is base and base.dim() == 2
        assert found.item() == (101 if turned else 11)
    assert view.tolist() == [[5, 5], [3, 4]]


@reshaped
def test_a_tangent_in_a_part_of_a_view_that_was_made_before(lib, reshape):
    forward_ad = lib.autograd.forward_ad
    base = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    view = base.swapaxes(0, 0)
    reshape(base)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(lib.tensor(5.0), lib.tensor(7.0))
        view[:1] = x
        assert forward_ad.unpack_dual(view).tangent.tolist() == [[7, 7], [0, 0]]
