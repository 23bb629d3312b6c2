"""Fitting a gradient to the value it belongs to, on every edge where they differ."""

from __future__ import annotations

from typing import Any

from ..core.dtypes import from_numpy
from ..core.tensor import Tensor
from .copying import cast
from .reduce import sum_to, sum_to_size


def reduce_gradient(producer: Any, index: int, g: Tensor, shape: tuple, dtype: Any) -> Tensor:
    """A gradient in the shape and dtype of the value it belongs to.

    Broadcasting is undone by summing, promotion by casting, and the gradient of a real value is
    real. A shape that no broadcasting explains is the producer's mistake.
    """
    if g.array.shape != shape:
        if producer is not None:
            shape = _shape_when_used(producer, index, shape)
        if not _expands_to(shape, g.array.shape):
            name = "The root" if producer is None else f"Function {producer.name()}"
            raise RuntimeError(
                f"{name} returned an invalid gradient at index {index} - got "
                f"{list(g.array.shape)} but expected shape compatible with {list(shape)}"
            )
        g = sum_to.call((g, shape)) if len(shape) == 1 else sum_to_size(g, shape)
    if g.array.dtype != dtype:
        if producer is not None and producer.plan.custom:
            _check_complex(producer, index, g.array.dtype, dtype)
        if g.array.dtype.kind == "c" and dtype.kind != "c":
            g = g.real
        if g.array.dtype != dtype:
            g = cast(g, from_numpy(dtype))
    return g


def _shape_when_used(producer: Any, index: int, shape: tuple) -> tuple:
    """The shape that a leaf had when `producer` used it: `.data` may have given it another."""
    following = producer.next_nodes[index]
    if following.is_accumulator:
        cold = following.variable.cold
        if cold is not None and cold.former_shapes is not None:
            for sequence, former in cold.former_shapes:
                if producer.sequence < sequence:
                    return former
    return shape


def _check_complex(producer: Any, index: int, given: Any, expected: Any) -> None:
    """Refuse what a custom Function's backward can only have got wrong."""
    if given.kind == "c" and expected.kind != "c" or given.kind in "iub" and expected.kind == "c":
        raise RuntimeError(
            f"Function {producer.name()} returned an invalid gradient at index {index} - got "
            f"{given} for an input of type {expected}: the gradient of a real input is real, that "
            "of a complex input is floating point or complex"
        )


def _expands_to(shape: tuple, larger: tuple) -> bool:
    missing = len(larger) - len(shape)
    if missing < 0:
        return False
    for i in range(len(shape)):  # noqa: SIM110 - a generator would be made for every gradient
        if shape[i] != 1 and shape[i] != larger[missing + i]:
            return False
    return True
