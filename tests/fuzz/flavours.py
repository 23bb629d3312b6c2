"""What programs are made of: each flavour mixes the subjects in its own way."""

from __future__ import annotations

import random
from typing import Any

from fuzz.operands import leaf
from fuzz.program import Program
from fuzz.runner import Seen
from fuzz.subjects import derivatives, functions, hooks, inplace, modes, operators, views  # noqa: F401
from fuzz.writing import Writer

COMPUTING = {"operators": 5, "views": 3, "inplace": 3}
REGIONS = {"operators": 4, "views": 2, "inplace": 2, "modes": 2, "functions": 3}


def leaves(w: Writer, dtype: str | None = None) -> None:
    for _ in range(w.rng.randrange(1, 4)):
        leaf(w, dtype)


def several(w: Writer, subjects: dict[str, float], least: int, most: int) -> None:
    for _ in range(w.rng.randrange(least, most + 1)):
        w.write(subjects)


def single(w: Writer) -> None:
    """Little but one operator, in any dtype, and its derivatives."""
    several(w, {"operators": 1}, 1, 2)
    several(w, {"derivatives": 1}, 1, 2)


def eager(w: Writer) -> None:
    """Functions, views and changes in place in many dtypes, then derivatives, then again."""
    leaves(w)
    for _ in range(w.choice([1, 1, 2])):
        several(w, COMPUTING, 2, 8)
        several(w, {"operators": 1, "derivatives": 4}, 1, 3)


def listening(w: Writer) -> None:
    """Hooks, regions and modes around it all; one dtype, as the order of things matters here."""
    leaves(w, "float64")
    for _ in range(w.choice([1, 1, 2])):
        several(w, REGIONS, 2, 8)
        several(w, {"hooks": 1}, 0, 4)
        several(w, REGIONS, 1, 5)
        several(w, {"derivatives": 1}, 1, 3)


FLAVOURS = {"single": (single, 2.0), "eager": (eager, 3.0), "listening": (listening, 3.0)}


def write(seed: int, number: int, lib: Any, ours: bool = False) -> tuple[Program, list[Seen], str]:
    """Program `number` of a seed, what the library it was written on has seen, and its flavour."""
    rng = random.Random(f"{seed}/{number}")
    names = list(FLAVOURS)
    name = rng.choices(names, [FLAVOURS[n][1] for n in names])[0]
    writer = Writer(rng, lib, ours)
    try:
        FLAVOURS[name][0](writer)
        seen = [*writer.seen, writer.run.end()]
    finally:
        writer.run.leave()
    return writer.program(), seen, name
