"""Operands that no gradient needs are not saved: they may be changed, and walked again."""

import pytest

FACTORS = {
    "qr": lambda lib, x: lib.linalg.qr(x)[1],
    "qr of a wide matrix": lambda lib, x: lib.linalg.qr(x[:2])[0],
    "lu_unpack": lambda lib, x: lib.lu_unpack(x, lib.arange(1, 4, dtype=lib.int32))[1],
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_matrix_may_change_when_its_factors_are_made(lib, name):
    start = lib.eye(3, dtype=lib.float64) + lib.arange(9.0, dtype=lib.float64).reshape(3, 3) / 10
    gradients = []
    for change in (0.0, 1.0):
        leaf = start.clone().requires_grad_()
        x = leaf * 1
        y = FACTORS[name](lib, x)
        with lib.no_grad():
            x.add_(change)
        gradients.append(lib.autograd.grad((y * y).sum(), leaf)[0])
    assert gradients[0].tolist() == gradients[1].tolist()


def test_unpacked_factors_can_be_walked_twice(lib):
    x = lib.eye(2).requires_grad_()
    _, lower, _ = lib.lu_unpack(x, lib.tensor([1, 2], dtype=lib.int32))
    lower.sum().backward()
    lower.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize("operand", ["x", "x.view(-1)", "x[:2]"])
@pytest.mark.parametrize("name", ["pow_", "hypot_"])
def test_an_operand_that_the_change_writes_over_is_missed(lib, name, operand):
    """The rules of these read the result too, which is not there before it is written."""
    p = lib.tensor([2.0, 3.0], requires_grad=True)
    x = p * 1
    getattr(x, name)(eval(operand, {"x": x}))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_a_change_whose_operand_cannot_be_saved_is_none(lib):
    with lib.inference_mode():
        exponent = lib.tensor([2.0])
    p = lib.tensor([3.0], requires_grad=True)
    x = p * 1
    node = x.grad_fn
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x.pow_(exponent)
    assert x.tolist() == [3.0] and x._version == 0 and x.grad_fn is node
    x.backward()
    assert p.grad.tolist() == [1.0]
