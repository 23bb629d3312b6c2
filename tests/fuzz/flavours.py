"""What programs are made of: each flavour mixes the subjects in its own way."""

from __future__ import annotations

import random
from typing import Any

from fuzz.operands import leaf
from fuzz.program import Program
from fuzz.runner import Seen
from fuzz.subjects import (  # noqa: F401
    derivatives,
    forward,
    functions,
    graphs,
    hooks,
    inplace,
    modes,
    operators,
    transforms,
    views,
)
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


def dual(w: Writer) -> None:
    """Functions, views and changes in place on dual tensors, and their tangents."""
    leaves(w, "float64")
    forward.opened(w)
    for _ in w.tensors():
        w.write({"forward": 1}) if w.chance(0.3) else forward.dual(w)
    several(w, COMPUTING, 2, 6)
    several(w, {"forward": 1}, 1, 3)
    several(w, COMPUTING, 0, 3)
    several(w, {"forward": 1, "derivatives": 0.2}, 1, 2)


def transformed(w: Writer) -> None:
    w.write({"transforms": 1})


def graph(w: Writer) -> None:
    """A compiled function, or control flow in an eager program."""
    if w.chance(0.7):
        graphs.compiled(w)
    else:
        leaves(w, "float64")
        several(w, {"operators": 2, "views": 1, "graphs": 3}, 2, 5)
        several(w, {"derivatives": 1}, 1, 2)


#: What writes a program of each flavour, and how often.
FLAVOURS = {
    "single": (single, 2.0),
    "eager": (eager, 3.0),
    "listening": (listening, 3.0),
    "dual": (dual, 1.5),
    "transformed": (transformed, 2.0),
    "graph": (graph, 0.7),
}


def write(
    seed: int, number: int, lib: Any, flavour: str = "", ours: bool = False
) -> tuple[Program, list[Seen], str]:
    """Program `number` of a seed, what the library it was written on has seen, and its flavour."""
    rng = random.Random(f"{seed}/{number}")
    names = list(FLAVOURS)
    name = flavour or rng.choices(names, [FLAVOURS[n][1] for n in names])[0]
    writer = Writer(rng, lib, ours)
    try:
        FLAVOURS[name][0](writer)
        seen = [*writer.seen, writer.run.end()]
    finally:
        writer.run.leave()
    return writer.program(), seen, name
