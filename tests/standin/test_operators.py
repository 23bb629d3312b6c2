"""Every operation on an array class that is not NumPy's: values, derivatives, vmap, compile."""

import re

import pytest

import wengert
from operators.samples import BY_NAME
from operators.support import call, each_sample
from standin import support
from standin.support import REFUSED

#: Uncompiled in the long run only.
pytestmark = pytest.mark.slow

#: Operations whose values decide shapes or branches, which neither a batch nor a graph has.
NEEDS_VALUES = {
    "allclose", "argwhere", "bincount", "equal", "nonzero", "unique", "unique_consecutive",
    "where of one",
    "nn.functional.binary_cross_entropy",
}  # fmt: skip
#: Operations of which some samples are refused in a graph for the same reason.
NEEDS_VALUES_TRACED = {"masked_select", "repeat_interleave", "Tensor.__getitem__"}


def accepted(operation):
    return operation.name not in REFUSED


def differentiable(operation):
    return accepted(operation) and operation.differentiable


def batchable(operation):
    takes_indices_only = operation.name in (
        "nn.functional.one_hot", "nonzero_static", "unravel_index",
    )  # fmt: skip
    return accepted(operation) and operation.name not in NEEDS_VALUES and not takes_indices_only


def traceable(operation):
    return batchable(operation) and operation.name not in NEEDS_VALUES_TRACED


@each_sample(accepted, kinds=("real", "complex", "integer"))
def test_values(operation, sample):
    support.check_values(operation, sample)


@each_sample(lambda o: accepted(o) and o.any_layout)
def test_layouts(operation, sample):
    support.check_layout(operation, sample)


@each_sample(lambda o: accepted(o) and o.half, kinds=("real",))
def test_values_of_16_bit_floats(operation, sample):
    support.check_half_values(operation, sample)


@each_sample(differentiable)
def test_gradients(operation, sample):
    support.check_gradients(operation, sample, 1)


@each_sample(differentiable)
def test_gradients_of_gradients(operation, sample):
    support.check_gradients(operation, sample, 2)


@each_sample(differentiable)
def test_forward_mode(operation, sample):
    support.check_forward_mode(operation, sample)


def written(operation):
    name = operation.name.rpartition(".")[2]
    if name == "heaviside":  # it has no derivative
        return False
    return accepted(operation) and operation.method and hasattr(wengert.Tensor, name + "_")


@each_sample(written)
def test_in_place(operation, sample):
    support.check_in_place(operation, sample)


@each_sample(batchable)
def test_vmap(operation, sample):
    support.check_vmap(operation, sample)


@pytest.mark.full
@each_sample(traceable)
def test_compiled(operation, sample):
    support.check_compiled(operation, sample)


@pytest.mark.full
@each_sample(lambda o: differentiable(o) and traceable(o))
def test_compiled_gradients(operation, sample):
    support.check_compiled_gradients(operation, sample)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_operator_the_class_and_the_reason(name):
    operation = BY_NAME[name]
    refusals = []
    for sample in operation.draw("real" if operation.real else "complex"):
        try:
            call(operation, wengert, support.on_device(sample))
        except NotImplementedError as refusal:
            refusals.append(str(refusal))
    operator = r"_fft_\w+" if name.startswith("fft.") else name.rpartition(".")[2]
    operator = {
        "index_reduce": "scatter_reduce", "lu": "_linalg_lu_factor", "stft": r"_fft_\w+",
        "istft": r"_fft_\w+",
        "lu_factor_ex": "_linalg_lu_factor", "ldl_solve": "_linalg_ldl_factor",
    }.get(operator, operator)  # fmt: skip
    wanted = rf"{operator}\(\) is not supported on arrays of class Array: .*{REFUSED[name]}"
    assert refusals and all(re.search(wanted, text) for text in refusals)
