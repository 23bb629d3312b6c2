"""Says which of the differences between two runs of a program are not declared."""

from __future__ import annotations

import re

from fuzz.comparison import Difference, differences
from fuzz.declared import declared
from fuzz.program import Program
from fuzz.runner import Seen

#: Fields that are left out, for a look at the others.
IGNORED: set[str] = set()
#: Fields that do not decide what a program computes.
MINOR = ("node", "stride", "offset", "view", "base", "leaf", "version", "message")
#: Fields that the memory of operands decides.
LAYOUT = ("stride", "offset", "view", "base", "node", "version")
#: What gives other values, views or errors where memory is laid out in another order.
READS_LAYOUT = re.compile(
    r"\.(as_strided\w*|view|view_as|reshape\w*|flatten|ravel|contiguous|unflatten|resize\w*|to|"
    r"set_|unfold|view_as_\w+|is_contiguous|stride)\("
)


def first_difference(program: Program, ours: list[Seen], theirs: list[Seen]):
    """The first difference that is not declared, and the reason of a declared one.

    One that changes nothing of what comes after, such as the name of a node, gives way to others.
    """
    reason, minor = "", None
    layout_matters = bool(READS_LAYOUT.search(program.text))
    names = set()  # of nodes that are declared: a tensor may have several names
    laid_out = False  # whether memory differs: what is made of such a tensor lies otherwise too
    for found in differences(program, ours, theirs):
        if laid_out and found.field in LAYOUT:
            continue
        if any(getattr(error, "kind", "") == "MemoryError" for error in (found.ours, found.theirs)):
            break  # derivatives of large tensors may need more than the machine has
        if found.field in IGNORED or found.field == "node" and (found.ours, found.theirs) in names:
            continue
        found.laid_out = laid_out
        entry = declared(found)
        if entry is not None and found.field == "node":
            names.add((found.ours, found.theirs))
        if entry is not None and (entry.spreads or found.field in ("stride", "offset")):
            laid_out = True
        if entry is None and found.field not in MINOR:
            return found, reason
        if entry is None:
            minor = minor or found
            continue
        reason = entry.reason
        if not entry.harmless and (found.field not in ("stride", "offset") or layout_matters):
            break
    return minor, reason


def left_over(
    program: Program, ours: list[Seen], theirs: list[Seen], again: list[Seen]
) -> Difference | None:
    """In what a second run, with copies or other functions, computes something else than we do.

    With copies nothing is refused, also what should be, and so ends otherwise. Nodes and memory
    are those of the copies.
    """
    for step, (mine, other) in enumerate(zip(ours, theirs)):
        if mine.error and other.error and not again[step].error:
            again[step], again[-1] = other, ours[-1]
    found = first_difference(program, ours, again)[0]
    return None if found is None or found.field in MINOR else found
