"""Calls samples in a library and compares what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import width
from operators.samples import OPERATIONS, DType, Fixed, Operation, Sample

TOLERANCES = {"float32": 3e-6, "complex64": 3e-6, "float16": 3e-3, "bfloat16": 2.5e-2}


def each(choose: Callable[[Operation], bool] = lambda operation: True) -> Any:
    """Parametrise over the chosen operations."""
    return pytest.mark.parametrize("operation", [o for o in OPERATIONS if choose(o)], ids=str)


def each_sample(
    choose: Callable[[Operation], bool] = lambda operation: True,
    kinds: tuple[str, ...] = ("real", "complex"),
    usual: int | None = None,
) -> Callable[[Callable], Callable]:
    """Make a test for each chosen operation and kind of number out of a check of one sample.

    With `usual`, so many samples of each are looked at, and all of them with `--full`.
    """
    limit = None if width.full else usual
    cases = [
        pytest.param(operation, kind, id=f"{operation.name}-{kind}")
        for operation in OPERATIONS
        if choose(operation)
        for kind in kinds
        if getattr(operation, kind)
    ]

    def decorate(check: Callable[[Operation, Sample], None]) -> Callable:
        @pytest.mark.filterwarnings("ignore::UserWarning")
        @pytest.mark.parametrize("operation, kind", cases)
        def test(operation: Operation, kind: str) -> None:
            failures = []
            for sample in operation.draw(kind)[:limit]:
                try:
                    check(operation, sample)
                except Exception as failure:
                    failure.add_note(f"{operation.name}{sample}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(f"{len(failures)} samples of {operation.name}", failures)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def build(
    lib: Any, sample: Sample, dtype: str | None = None, *, requires_grad: bool = False
) -> Sample:
    """The sample with tensors of a library, in the given dtype."""

    def tensor(array: np.ndarray) -> Any:
        result = lib.tensor(np.abs(array) if dtype == "uint8" else array)
        if dtype is not None:
            result = result.to(getattr(lib, dtype))
        return result.requires_grad_() if requires_grad else result

    def constant(value: Fixed) -> Any:
        result = lib.tensor(value.array)
        if dtype is not None and value.takes_dtype:
            result = result.to(getattr(lib, dtype))
        return result

    return sample.map(
        tensor,
        constant,
        lambda value: getattr(lib, value.name) if isinstance(value, DType) else value,
    )


def call(operation: Operation, lib: Any, sample: Sample) -> Any:
    """The operation of a library on a sample with its tensors."""
    return operation.resolve(lib)(*sample.args, **sample.kwargs)


def map_tensors(lib: Any, sample: Sample, convert: Callable) -> Sample:
    """A built sample with every tensor replaced by what `convert` makes of it."""

    def visit(value: Any) -> Any:
        if type(value) in (tuple, list):
            return type(value)(visit(item) for item in value)
        return convert(value) if isinstance(value, lib.Tensor) else value

    result = Sample(*visit(sample.args))
    result.kwargs = {name: visit(value) for name, value in sample.kwargs.items()}
    return result


def leaves_of(lib: Any, sample: Sample) -> list:
    """The tensors of a built sample that require grad, in order."""
    found: list = []
    map_tensors(lib, sample, lambda t: found.append(t) if t.requires_grad else None)
    return found


def replaced(lib: Any, sample: Sample, tensors: Iterable) -> Sample:
    """The built sample with `tensors` in place of those that `leaves_of` finds."""
    given = iter(tensors)
    return map_tensors(lib, sample, lambda t: next(given) if t.requires_grad else t)


def results(value: Any) -> list:
    """What a call returned as a flat list."""
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in results(part)]
    return [value]


def differentiable(value: Any) -> list:
    """The results that gradients flow from."""
    return [item for item in results(value) if getattr(item, "requires_grad", False)]


def as_numpy(value: Any) -> np.ndarray:
    """A tensor of either library, or a number, as an array; 16-bit floats as float32."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach()
    if dtype_name(value) in ("bfloat16", "float16"):
        value = value.float()
    if hasattr(value, "resolve_conj"):
        value = value.resolve_conj().resolve_neg()
    return np.asarray(value.numpy(force=True))


def dtype_name(value: Any) -> str:
    """A tensor's dtype in words, a Python number's type."""
    return str(value.dtype).rpartition(".")[2] if hasattr(value, "dtype") else type(value).__name__


def assert_same(got: Any, want: Any, scale: float = 1.0) -> None:
    """Two results, of either library, agree in structure, dtype, shape and values."""
    got, want = results(got), results(want)
    assert len(got) == len(want)
    for mine, other in zip(got, want, strict=True):
        assert dtype_name(mine) == dtype_name(other)
        tolerance = TOLERANCES.get(dtype_name(mine), 1e-10) * scale
        assert_close(mine, other, tolerance, tolerance)


def assert_close(got: Any, want: Any, rtol: float = 1e-10, atol: float = 1e-12) -> None:
    """Two tensors or arrays agree in shape and values."""
    mine, other = as_numpy(got), as_numpy(want)
    assert mine.shape == other.shape
    if mine.dtype.kind in "biu":
        np.testing.assert_array_equal(mine, other)
    else:
        np.testing.assert_allclose(mine, other, rtol, atol)


def weights_like(outputs: list, seed: int = 7) -> list[np.ndarray]:
    """Repeatable cotangents, as arrays, for some outputs."""
    random = np.random.default_rng(seed)
    found = []
    for out in outputs:
        shape = tuple(out.shape)
        values = random.uniform(-1, 1, shape)
        found.append(values + 1j * random.uniform(-1, 1, shape) if out.is_complex() else values)
    return found


def gradients(lib: Any, operation: Operation, sample: Sample) -> list:
    """Gradients of a weighted sum of all results; None where an input has no part in it."""
    built = build(lib, sample, requires_grad=True)
    inputs = leaves_of(lib, built)
    outputs = differentiable(call(operation, lib, built))
    if not outputs:
        return [None] * len(inputs)
    cotangents = [lib.tensor(w).to(out.dtype) for w, out in zip(weights_like(outputs), outputs)]
    return list(lib.autograd.grad(outputs, inputs, cotangents, allow_unused=True))
