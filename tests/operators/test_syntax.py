"""Python's own operators on tensors and numbers: the functions they stand for, and PyTorch's."""

import operator
import warnings

import numpy as np
import pytest

import wengert
from operators.support import assert_close, assert_same, dtype_name

NAMES = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq",
    "ne": "ne", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
BITS = {"and_", "or_", "xor", "lshift", "rshift"}
COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
SMOOTH = ["add", "sub", "mul", "truediv", "pow"]
VALUES = {"float64": [0.5, 1.5, 2.5], "float32": [0.5, 1.5, 2.5], "int64": [1, 2, 3]}
CASES = [
    (symbol, dtype)
    for symbol in NAMES
    for dtype in VALUES
    if symbol not in BITS or dtype == "int64"
]


def _operands(lib, dtype, left, right):
    """A tensor, another one, or a number, by the words "tensor", "int" and "float"."""
    made = []
    for word, values in ((left, VALUES[dtype]), (right, VALUES[dtype][::-1])):
        if word == "tensor":
            made.append(lib.tensor(values, dtype=getattr(lib, dtype)))
        else:
            made.append(2 if word == "int" else 1.5)
    return made


PAIRS = [("tensor", "tensor"), ("tensor", "int"), ("int", "tensor"), ("tensor", "float"),
         ("float", "tensor")]  # fmt: skip


@pytest.mark.parametrize("left, right", PAIRS)
@pytest.mark.parametrize("symbol, dtype", CASES)
def test_operator_equals_pytorchs(symbol, dtype, left, right):
    torch = pytest.importorskip("torch")
    if symbol in BITS and "float" in (left, right):
        return
    function = getattr(operator, symbol)
    got = function(*_operands(wengert, dtype, left, right))
    assert_same(got, function(*_operands(torch, dtype, left, right)))


@pytest.mark.parametrize("symbol, dtype", CASES)
def test_operator_is_the_function(symbol, dtype):
    x, y = _operands(wengert, dtype, "tensor", "tensor")
    assert_same(getattr(operator, symbol)(x, y), getattr(wengert, NAMES[symbol])(x, y))


@pytest.mark.parametrize("left, right", PAIRS)
@pytest.mark.parametrize("symbol", SMOOTH)
def test_gradient_of_an_operator_is_that_of_the_function(symbol, left, right):
    found = []
    for function in (getattr(operator, symbol), getattr(wengert, NAMES[symbol])):
        operands = _operands(wengert, "float64", left, right)
        leaves = [x.requires_grad_() for x in operands if isinstance(x, wengert.Tensor)]
        if function is wengert.sub and not isinstance(operands[0], wengert.Tensor):
            out = wengert.rsub(operands[1], operands[0])
        else:
            out = function(*operands)
        found.append(wengert.autograd.grad(out.sum(), leaves))
    for got, want in zip(*found, strict=True):
        assert_close(got, want)


IN_PLACE = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"]


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("right", ["tensor", "int", "float"])
@pytest.mark.parametrize("symbol", IN_PLACE)
def test_augmented_assignment_changes_the_tensor(symbol, right, recording):
    x, y = _operands(wengert, "float64", "tensor", right)
    want = getattr(operator, symbol[1:])(x, y)
    target = x.clone()
    with wengert.set_grad_enabled(recording):
        got = getattr(operator, symbol)(target, y)
    assert got is target
    assert target._version == 1
    assert_same(target, want)


@pytest.mark.parametrize("symbol", IN_PLACE)
def test_augmented_assignment_has_the_gradient_of_the_operator(symbol):
    found = []
    for name in (symbol, symbol[1:]):
        x, y = _operands(wengert, "float64", "tensor", "tensor")
        x.requires_grad_(), y.requires_grad_()
        out = getattr(operator, name)(x.clone(), y)
        found.append(wengert.autograd.grad(out.sum(), (x, y)))
    for got, want in zip(*found, strict=True):
        assert_close(got, want)


@pytest.mark.parametrize("symbol, name", [("neg", "neg"), ("pos", "positive"), ("abs", "abs"),
                                          ("invert", "bitwise_not")])  # fmt: skip
def test_unary_operator_is_the_function(symbol, name):
    x = wengert.tensor([1, -2, 3])
    assert_same(getattr(operator, symbol)(x), getattr(wengert, name)(x))


@pytest.mark.parametrize("symbol", ["add", "mul", "sub", "truediv", "lt", "pow"])
def test_arrays_take_part(symbol):
    """With an array on either side the result is a tensor."""
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    want = getattr(operator, symbol)(x, y)
    for got in (
        getattr(operator, symbol)(wengert.tensor(x), y),
        getattr(operator, symbol)(x, wengert.tensor(y)),
    ):
        assert isinstance(got, wengert.Tensor)
        assert_close(got, want)


@pytest.mark.parametrize("symbol", ["add", "mul", "sub", "truediv", "matmul", "lt"])
def test_other_objects_are_refused(lib, symbol):
    for operands in ((lib.ones(2), "a"), (object(), lib.ones(2))):
        with pytest.raises(TypeError):
            getattr(operator, symbol)(*operands)


@pytest.mark.parametrize("other", ["a", None, object()])
def test_anything_can_be_compared_for_equality(lib, other):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (lib.ones(2) == other) is False
        assert (lib.ones(2) != other) is True


def test_numbers_do_not_widen(lib):
    """A Python number takes on the dtype of the tensor unless it is of a higher kind."""
    assert dtype_name(lib.ones(2, dtype=lib.float16) * 2.5) == "float16"
    assert dtype_name(lib.ones(2, dtype=lib.int32) + 1) == "int32"
    assert dtype_name(lib.ones(2, dtype=lib.int32) * 1.5) == "float32"
    assert dtype_name(lib.ones(2, dtype=lib.float32) * 1j) == "complex64"
    assert dtype_name(lib.ones(2, dtype=lib.bool) + 1) == "int64"
