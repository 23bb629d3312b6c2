"""Writes a program, runs it in two ways and says whether they agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import wengert
from fuzz.comparison import Difference, differences
from fuzz.declared import declared
from fuzz.flavours import write
from fuzz.program import Program
from fuzz.runner import Seen, execute

try:
    import torch
except ImportError:
    torch = None

warnings.simplefilter("ignore")
#: Fields that are left out, for a look at the others.
IGNORED: set[str] = set()


@dataclass
class Outcome:
    """The result of one program: nothing, a declared reason, or a difference that is not meant."""

    program: Program
    flavour: str
    difference: Difference | None = None
    reason: str = ""


def first_difference(program: Program, ours: list[Seen], theirs: list[Seen]):
    """The first difference that is not declared, and the reason of a declared one."""
    reason = ""
    for found in differences(program, ours, theirs):
        if found.field in IGNORED:
            continue
        entry = declared(found)
        if entry is None:
            return found, reason
        reason = entry.reason
        if not entry.harmless:
            break
    return None, reason


def rerun(program: Program, lib: Any = None) -> Difference | None:
    """Run a program again in both ways."""
    lib = lib or torch
    theirs = execute(program, lib, plain=True)
    return first_difference(program, execute(program, wengert), theirs)[0]


def check(seed: int, number: int) -> tuple[Outcome, Callable]:
    """Write and compare program `number`; also how to compare a changed one in the same way."""
    program, theirs, flavour = write(seed, number, torch or wengert)
    difference, reason = first_difference(program, execute(program, wengert), theirs)
    return Outcome(program, flavour, difference, reason), rerun
