"""Kernels for one type of device in calls where no tensor tells the device."""

import pytest

NO_TENSOR = "There were no tensor arguments to this function"


@pytest.mark.parametrize(
    "schema, argument",
    [
        ("(int n) -> Tensor", 2),
        ("(Tensor? x) -> Tensor", None),
        ("(Tensor[] x) -> Tensor", []),
    ],
)
def test_a_kernel_of_one_device_needs_a_tensor(lib, defined, schema, argument):
    library, f = defined(schema, lambda value: lib.ones(2))
    with pytest.raises(NotImplementedError, match=NO_TENSOR):
        f(argument)
    library.impl("f", lambda value: lib.zeros(2), "CompositeExplicitAutograd")
    assert f(argument).tolist() == [0.0, 0.0]


def test_a_composite_kernel_needs_none(lib, defined):
    library, f = defined("(int n) -> Tensor", lambda n: lib.ones(n))
    library.impl("f", lambda n: lib.zeros(n))
    assert f(2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("device_types", ["cpu", ["cpu"], ["cpu", "cuda"]])
def test_custom_op_of_a_device_without_tensors(lib, define, device_types):
    match = "Functions without tensor inputs are required to have a `device:"
    with pytest.raises(ValueError, match=match):
        define("(int n) -> Tensor", lambda n: lib.ones(n), device_types=device_types)
    operator = define("(int n) -> Tensor", lambda n: lib.ones(n))
    with pytest.raises(ValueError, match=match):
        operator.register_kernel(device_types)(lambda n: lib.zeros(n))
    assert operator(2).tolist() == [1.0, 1.0]


def test_a_device_argument_tells_the_device(lib, define):
    operator = define(
        "(int n, Device device) -> Tensor", lambda n, device: lib.ones(n), device_types="cpu"
    )
    assert operator(2, lib.device("cpu")).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("argument", [None, []])
def test_a_custom_op_of_a_device_called_without_tensors(lib, define, argument):
    schema = "(Tensor? x) -> Tensor" if argument is None else "(Tensor[] x) -> Tensor"
    operator = define(schema, lambda x: lib.ones(2), device_types="cpu")
    with pytest.raises(NotImplementedError, match=NO_TENSOR):
        operator(argument)
