"""Values, shapes and dtypes: against PyTorch, and of small types against float64."""

import itertools
import warnings

import pytest

import wengert
from operators.support import (
    TOLERANCES,
    assert_close,
    assert_same,
    build,
    call,
    dtype_name,
    each,
    map_tensors,
    results,
)

KIND_OF = {
    "float64": "real",
    "float32": "real",
    "float16": "real",
    "bfloat16": "real",
    "complex128": "complex",
    "complex64": "complex",
    "int64": "integer",
    "int32": "integer",
    "uint8": "integer",
    "bool": "integer",
}


def _attempt(operation, lib, sample, dtype):
    """The result, or the exception that was raised instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(operation, lib, build(lib, sample, dtype))
        except Exception as error:
            return error


#: What PyTorch makes NaN of, by name and dtype.
WRONG_THERE = set(
    itertools.product(("matrix_exp", "linalg.matrix_exp"), ("float16", "bfloat16"))
)


@pytest.mark.parametrize("dtype", KIND_OF)
@each()
def test_equals_pytorch(operation, dtype):
    torch = pytest.importorskip("torch")
    if (operation.name, dtype) in WRONG_THERE:
        made = results(_attempt(operation, torch, operation.draw("real")[0], dtype))
        assert any(part.isnan().any() or part.isinf().any() for part in made)
        return
    for sample in operation.draw(KIND_OF[dtype]):
        want = _attempt(operation, torch, sample, dtype)
        got = _attempt(operation, wengert, sample, dtype)
        if isinstance(want, Exception) or _is_unknown(want):
            if not _is_gap(want, dtype):
                assert isinstance(got, Exception), f"{sample}: PyTorch refuses, {want}"
        elif isinstance(got, Exception):
            if not _is_accident(operation, sample, dtype, got):
                raise AssertionError(f"refused {sample} of {dtype}") from got
        else:
            assert_same(got, want, operation.inexact if dtype == "float64" else 1)


def _is_unknown(result):
    """Whether PyTorch answers in a dtype that does not exist here."""
    return any(not hasattr(wengert, dtype_name(part)) for part in results(result))


def _is_gap(error, dtype):
    """Whether PyTorch only lacks a kernel for a real dtype, so that nothing forbids to have one."""
    return "not implemented for '" in str(error) and not dtype.startswith("complex")


def _is_accident(operation, sample, dtype, error):
    """Whether PyTorch takes an unsupported dtype only because there is next to nothing to do."""
    if dtype == "bool":
        return "not implemented for 'Bool'" in str(error)
    supported = getattr(operation, KIND_OF[dtype])
    return not supported and any(array.size < 2 for array in sample.arrays())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@each(lambda o: o.real and not o.own_dtype)
def test_small_types_are_as_exact_as_they_can_be(operation, dtype):
    """The same call in float64 on the same, already rounded inputs is the reference."""
    if dtype != "float32" and not operation.half:
        return
    tolerance = TOLERANCES[dtype] * (operation.half_scale if dtype != "float32" else 1)
    for sample in operation.draw("real"):
        small = build(wengert, sample, dtype)
        exact = map_tensors(wengert, small, _widened)
        for got, want in zip(
            results(call(operation, wengert, small)),
            results(call(operation, wengert, exact)),
            strict=True,
        ):
            if dtype_name(want) == "float64":
                assert dtype_name(got) == dtype
            assert_close(got, want, tolerance, tolerance)


def _widened(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor
