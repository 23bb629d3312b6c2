"""Compares the derivative pairs of a mode and says how a pair differs."""

from __future__ import annotations

from typing import Any

import wengert
from wengert.autograd.gradcheck.errors import (
    FAST_FAILED_SLOW_PASSED,
    NOT_CONSTANT,
    GradcheckError,
)
from wengert.autograd.gradcheck.modes import ForwardMode, Pair, ReverseMode


def compare(mode: ReverseMode | ForwardMode, fast: bool) -> None:
    """Raise for the first derivative of `mode` that is not close to its numerical value.

    A function without a differentiable output must not change with its inputs at all.
    """
    if not mode.output_labels:
        if any(bool((value != 0).any()) for value in mode.numerical_derivatives(fast)):
            raise GradcheckError(NOT_CONSTANT)
        return
    for pair in mode.fast_pairs() if fast else mode.slow_pairs():
        if not close(pair.analytical, pair.numerical, mode.tolerances.rtol, pair.atol):
            text = _mismatch(mode, pair)
            raise GradcheckError(text + _slow_mode_text(mode, pair) if fast else text)


def close(a: wengert.Tensor, b: wengert.Tensor, rtol: float, atol: float) -> bool:
    """Whether `a` is everywhere within `atol + rtol * abs(b)` of `b`; a NaN never is."""
    return bool(((a == b) | ((a - b).abs() <= atol + rtol * b.abs())).all())


def _mismatch(mode: ReverseMode | ForwardMode, pair: Pair) -> str:
    output, x = mode.output_labels[pair.output], mode.x_labels[pair.x]
    part = output.part or x.part
    prefix = f"While considering the {part} part of complex {mode.split} only, " if part else ""
    text = (
        f"{prefix}Jacobian {mode.title}mismatch for output {output.position} with respect to input"
        f" {x.position},\nnumerical:{_shown(pair.numerical)}\n"
        f"analytical:{_shown(pair.analytical)}\n"
    )
    return text + (_largest_difference(pair) if pair.numerical.dim() == 2 else "")


def _largest_difference(pair: Pair) -> str:
    difference = (pair.analytical - pair.numerical).abs()
    row, column = divmod(int(difference.argmax()), difference.shape[1])
    return (
        f"The largest difference is {difference[row, column].item():.6g}, between element {row} of"
        f" the input and element {column} of the output.\n"
    )


def _slow_mode_text(mode: ReverseMode | ForwardMode, pair: Pair) -> str:
    """The full Jacobians behind a failed comparison along random directions."""
    analytical, numerical = mode.jacobians(pair.output, pair.x)
    text = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed in"
        " fast mode, along random directions. In slow mode they are:\n\n"
        f"Numerical:\n{numerical}\nAnalytical:\n{analytical}\n\n"
        "The max per-element difference (slow mode) is:"
        f" {(analytical - numerical).abs().max().item()}.\n"
    )
    if close(analytical, numerical, mode.tolerances.rtol, mode.tolerances.atol):
        text += FAST_FAILED_SLOW_PASSED
    return text


def _shown(value: wengert.Tensor) -> Any:
    return value.item() if value.dim() == 0 else value
