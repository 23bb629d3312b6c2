"""A line search for the strong Wolfe conditions: less loss, and a flatter slope, along a direction.

Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with cubic interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A place on the line: the step to it, loss and gradient there, slope along the line."""

    step: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    step: float,
    size: float,
    most: int,
    decrease: float = 1e-4,
    flatness: float = 0.9,
    tolerance: float = 1e-9,
) -> tuple[Point, int]:
    """The best point found with at most `most` further ones after the first, and the evaluations.

    `size` is the largest element of the direction: the search ends where no parameter would move
    by more than the tolerance.
    """

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + decrease * point.step * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -flatness * start.slope

    previous, new = start, evaluate(step)
    tries = 0
    while tries < most:
        if too_high(new) or (tries > 1 and new.loss >= previous.loss):
            break
        if flat(new):
            return new, tries + 1
        if new.slope >= 0:
            break
        bounds = (new.step + 0.01 * (new.step - previous.step), new.step * 10)
        step = _cubic_minimum(previous, new, bounds)
        previous, new = new, evaluate(step)
        tries += 1
    else:
        previous = start

    bracket = [previous, new]
    low = _lower(bracket)
    stuck = False
    while tries < most:
        nearest, farthest = sorted(point.step for point in bracket)
        if (farthest - nearest) * size < tolerance:
            break
        step = _cubic_minimum(bracket[0], bracket[1], (nearest, farthest))
        step, stuck = _away_from_ends(step, nearest, farthest, stuck)
        new = evaluate(step)
        tries += 1
        if too_high(new) or new.loss >= bracket[low].loss:
            bracket[1 - low] = new
            low = _lower(bracket)
            continue
        if not flat(new) and new.slope * (bracket[1 - low].step - bracket[low].step) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = new
        if flat(new):
            break
    return bracket[low], tries + 1


def _lower(bracket: list[Point]) -> int:
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def _cubic_minimum(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Where the cubic through two points with their slopes is least, within bounds."""
    if a.step > b.step:
        a, b = b, a
    shape = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = shape**2 - a.slope * b.slope
    if not square >= 0:
        return sum(bounds) / 2
    root = math.sqrt(square)
    part = (b.slope + root - shape) / (b.slope - a.slope + 2 * root)
    return min(max(b.step - (b.step - a.step) * part, bounds[0]), bounds[1])


def _away_from_ends(
    step: float, nearest: float, farthest: float, stuck: bool
) -> tuple[float, bool]:
    """A step not too close to an end of the bracket twice in a row, and whether it was now."""
    margin = 0.1 * (farthest - nearest)
    if min(farthest - step, step - nearest) >= margin:
        return step, False
    if stuck or step >= farthest or step <= nearest:
        at_far_end = abs(step - farthest) < abs(step - nearest)
        return (farthest - margin if at_far_end else nearest + margin), False
    return step, True
