"""Whose side finite differences take in a question of forward mode."""

from __future__ import annotations

import re

import wengert
from fuzz.comparison import Difference
from fuzz.declared.numbers import numbers_in
from fuzz.declared.origins import naming
from fuzz.runner import FIELDS, execute
from fuzz.second_opinion import Moved

STEP = 1e-5


#: Modes in which forward mode goes on, and reverse mode cannot tell what is right.
UNRECORDED = ("no_grad", "set_grad_enabled", "inference_mode")
#: A change of an argument, which reverse mode refuses.
CHANGED_ARGUMENT = re.compile(r"\bx\d+(?:\.\w+_\(| [-+*/%]{1,2}= )")


def in_forward_mode(d: Difference) -> bool:
    """Whether a tangent of dual tensors differs, and may be ours that is right.

    Transforms are left to a second run on PyTorch, by reverse mode where it records.
    """
    if "strategy='forward-mode'" in d.source:
        return True
    if d.program.uses("jvp", "jacfwd", "hessian", "linearized"):
        return d.program.uses(*UNRECORDED) or bool(CHANGED_ARGUMENT.search(d.program.text))
    return "unpack_dual" in naming(d, d.name) and not _take_side(d, d.theirs, d.ours)


def tells_the_slope(d: Difference) -> bool:
    """Whether a tangent of dual tensors differs, and ours is the right one."""
    unpacked = "unpack_dual" in naming(d, d.name)
    return unpacked and d.field == "values" and _take_side(d, d.ours, d.theirs)


def _take_side(d: Difference, one: object, other: object) -> bool:
    """Whether differences of values agree with the one tangent and not with the other."""
    ahead, behind = (
        dict(execute(d.program, wengert, through=Moved(wengert, step))[d.step].made).get(d.name)
        for step in (STEP, -STEP)
    )
    if not isinstance(ahead, tuple) or not isinstance(behind, tuple):
        return False
    values = FIELDS.index("values")
    pairs = zip(numbers_in(ahead[values]), numbers_in(behind[values]))
    slopes = [(high - low) / (2 * STEP) for high, low in pairs]
    return _agree(one, slopes) and not _agree(other, slopes)


def _agree(found: object, slopes: list[complex]) -> bool:
    # Without a tangent a tensor does not change; where one is missing, the other is seen whole.
    values = found[FIELDS.index("values")] if isinstance(found, tuple) else found
    numbers = [0.0] * len(slopes) if found is None else numbers_in(values)
    return len(numbers) == len(slopes) and all(
        abs(number - slope) <= 1e-3 * max(1.0, abs(slope)) for number, slope in zip(numbers, slopes)
    )
