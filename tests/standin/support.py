"""Samples of operations on the stand-in device, and what comes of them beside NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert
from operators.samples import DType, Operation, Sample
from operators.samples.fourier import FOURIER
from operators.samples.special import BY_SCIPY
from operators.support import (
    assert_close,
    assert_same,
    build,
    call,
    differentiable,
    leaves_of,
    map_tensors,
    replaced,
    results,
    weights_like,
)

from .array import Array
from .backend import PLACE

#: What the stand-in refuses, by the names of the samples, with the reason that the error gives.
REFUSED = {
    **dict.fromkeys(BY_SCIPY, "scipy.special"),
    **dict.fromkeys([o.name for o in FOURIER if "shift" not in o.name], "scipy.fft"),
    "erf": "scipy.special.erf",
    **dict.fromkeys(
        ["linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex", "linalg.ldl_factor",
         "linalg.ldl_solve"],
        "scipy.linalg.lapack",
    ),
    "stft": "scipy.fft",
    "istft": "scipy.fft",
    "linalg.matrix_exp": "scipy.linalg.expm",
    "matrix_exp": "scipy.linalg.expm",
    "index_reduce": "multiply.at",
    "nn.functional.gelu": "scipy.special.erf",
    "scatter_reduce": "multiply.at",
}


def on_device(sample: Sample, *, requires_grad: bool = False) -> Sample:
    """The sample with tensors on the stand-in device."""

    def tensor(array: Any) -> Any:
        return wengert.tensor(array, device=PLACE, requires_grad=requires_grad)

    return sample.map(
        tensor,
        lambda fixed: wengert.tensor(fixed.array, device=PLACE),
        lambda value: getattr(wengert, value.name) if isinstance(value, DType) else value,
    )


def built(sample: Sample, place: Any) -> Sample:
    """The sample with tensors that require grad, on the stand-in device or on the CPU."""
    if place is None:
        return build(wengert, sample, requires_grad=True)
    return on_device(sample, requires_grad=True)


def assert_on_device(value: Any) -> None:
    """All tensors among some results have arrays of the stand-in."""
    for result in results(value):
        if isinstance(result, wengert.Tensor):
            assert type(result.array) is Array


def assert_like_cpu(function: Callable[[Any], Any]) -> None:
    """`function(place)` gives on the stand-in device what it gives on the CPU."""
    got, want = function(PLACE), function(None)
    assert_on_device(got)
    assert_same(got, want)


def _tensors(value: Any) -> list:
    return [result for result in results(value) if isinstance(result, wengert.Tensor)]


def as_function(operation: Operation, sample: Sample) -> tuple[Callable, list]:
    """A built sample as a function of the tensors that require grad, and these, detached."""
    leaves = leaves_of(wengert, sample)

    def function(*tensors: Any) -> tuple:
        return tuple(_tensors(call(operation, wengert, replaced(wengert, sample, tensors))))

    return function, [t.detach() for t in leaves]


def cotangents(outputs: list, seed: int, place: Any) -> list:
    """Repeatable gradients of some outputs."""
    weights = weights_like(outputs, seed)
    return [
        wengert.tensor(weight, device=place).to(out.dtype) for weight, out in zip(weights, outputs)
    ]


# What the tests compare ---------------------------------------------------------------------------


def check_values(operation: Operation, sample: Sample) -> None:
    """Values, dtypes, shapes and strides."""
    got = call(operation, wengert, on_device(sample))
    want = call(operation, wengert, build(wengert, sample))
    assert_on_device(got)
    assert_same(got, want)
    for mine, other in zip(_tensors(got), _tensors(want), strict=True):
        assert mine.stride() == other.stride()


def check_layout(operation: Operation, sample: Sample) -> None:
    """Values and strides for operands whose first and last dimensions are swapped in memory."""

    def swapped(t: Any) -> Any:
        return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t

    def result(built: Sample) -> Any:
        return call(operation, wengert, map_tensors(wengert, built, swapped))

    got, want = result(on_device(sample)), result(build(wengert, sample))
    assert_on_device(got)
    assert_same(got, want)
    assert [t.stride() for t in _tensors(got)] == [t.stride() for t in _tensors(want)]


def check_half_values(operation: Operation, sample: Sample) -> None:
    """16-bit floats compute in float32 on every device, so results are the same."""
    on_cpu = build(wengert, sample, "float16")
    got = call(operation, wengert, map_tensors(wengert, on_cpu, lambda t: t.to(PLACE)))
    assert_on_device(got)
    assert_same(got, call(operation, wengert, on_cpu), operation.half_scale)


def gradients(operation: Operation, sample: Sample, place: Any, order: int) -> list:
    """First or second derivatives of a weighted sum of all results."""
    arguments = built(sample, place)
    inputs = leaves_of(wengert, arguments)
    outputs = differentiable(call(operation, wengert, arguments))
    for seed in range(order):
        if not outputs:
            return []
        seeds = [g.requires_grad_() for g in cotangents(outputs, seed, place)]
        found = wengert.autograd.grad(
            outputs, inputs, seeds, allow_unused=True, create_graph=seed + 1 < order
        )
        outputs = [g for g in found if g is not None and g.requires_grad]
        inputs = [*inputs, *seeds]
    return [None if g is None else g.detach() for g in found]


def check_gradients(operation: Operation, sample: Sample, order: int) -> None:
    got = gradients(operation, sample, PLACE, order)
    want = gradients(operation, sample, None, order)
    assert [g is None for g in got] == [g is None for g in want]
    for mine, other in zip(got, want):
        if mine is not None:
            assert_on_device(mine)
            assert_close(mine, other)


def check_forward_mode(operation: Operation, sample: Sample) -> None:
    def pushed(place: Any) -> Any:
        function, inputs = as_function(operation, built(sample, place))
        if not function(*inputs):
            return ()
        return wengert.func.jvp(function, tuple(inputs), tuple(cotangents(inputs, 3, place)))[1]

    assert_like_cpu(pushed)


def check_vmap(operation: Operation, sample: Sample) -> None:
    def mapped(place: Any) -> Any:
        function, inputs = as_function(operation, built(sample, place))
        return wengert.func.vmap(function)(*[wengert.stack([t, t * 2]) for t in inputs])

    assert_like_cpu(mapped)


def check_compiled(operation: Operation, sample: Sample) -> None:
    """The second call runs a graph that was made before."""

    def compiled(place: Any) -> Any:
        function, inputs = as_function(operation, built(sample, place))
        run = wengert.compile(function)
        return run(*inputs), run(*[t.clone() for t in inputs])

    assert_like_cpu(compiled)


def check_compiled_gradients(operation: Operation, sample: Sample) -> None:
    def differentiated(place: Any) -> Any:
        function, inputs = as_function(operation, built(sample, place))
        inputs = [t.requires_grad_() for t in inputs]
        outputs = differentiable(wengert.compile(function)(*inputs))
        if not outputs:
            return []
        seeds = cotangents(outputs, 5, place)
        found = wengert.autograd.grad(outputs, inputs, seeds, allow_unused=True)
        return [g for g in found if g is not None]

    assert_like_cpu(differentiated)




def check_in_place(operation: Operation, sample: Sample) -> None:
    """The in-place form on a part of a tensor: values, gradients, and what the CPU refuses."""
    if not isinstance(sample.args[0], np.ndarray):
        return  # a number cannot be changed
    name = operation.name.rpartition(".")[2] + "_"
    refusals: list = []

    def changed(place: Any) -> Any:
        arguments = built(sample, place)
        leaves = leaves_of(wengert, arguments)
        target, *rest = arguments.args
        whole = wengert.stack([target, target]) * 1
        try:
            getattr(whole[1], name)(*rest, **arguments.kwargs)
        except (RuntimeError, IndexError, TypeError) as refusal:
            refusals.append(type(refusal))
            return []
        if not whole.requires_grad:
            return [whole]
        (seed,) = cotangents([whole], 11, place)
        found = wengert.autograd.grad(whole, leaves, seed, allow_unused=True)
        return [whole.detach(), *[g for g in found if g is not None]]

    assert_like_cpu(changed)
    assert refusals in ([], 2 * refusals[:1])
