"""Writes a program, runs it in two ways and says whether they agree."""

from __future__ import annotations

import functools
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import wengert
from fuzz.comparison import Difference, Precision, differences
from fuzz.declared.tangents import tells_the_slope
from fuzz.flavours import write
from fuzz.judging import first_difference
from fuzz.program import Program, Step
from fuzz.runner import (
    FIELDS,
    Nudged,
    Nudges,
    Seen,
    execute,
    execute_in_threads,
    nudged_results,
    spread,
)
from fuzz.variants import COMPUTED, left_by_variants

try:
    import torch
except ImportError:
    torch = None

if torch is not None:
    torch.set_num_threads(1)
#: The one flavour to write, if not all.
ONLY: list[str] = [""]


@dataclass
class Outcome:
    """The result of one program: nothing, a declared reason, or a difference that is not meant."""

    program: Program
    flavour: str
    difference: Difference | None = None
    reason: str = ""


def against_pytorch(program: Program) -> Difference | None:
    """Run a program on both libraries."""
    ours, theirs = execute(program, wengert), execute(program, torch)
    found = first_difference(program, ours, theirs)[0]
    if found is None or tells_the_slope(found):
        return None
    left = []
    for other in left_by_variants(found, ours, theirs, torch):
        if other is None:
            return None
        left.append(other)
    computed = [other for other in (found, *left) if other.field in COMPUTED]
    rounded = any(
        rounding_decides(program, other, lib, seen)
        for lib, seen in ((wengert, ours), (torch, theirs))
        for other in computed
    )
    if rounded or found.field in COMPUTED and too_coarse(program, found, ours, theirs):
        return None
    return found


#: What is said of narrow dtypes, and the same of wide ones.
WIDE = (
    (re.compile(r"\btorch\.(b?float16|bfloat16|half|float32|float)\b"), "torch.float64"),
    (re.compile(r"\btorch\.complex64\b"), "torch.complex128"),
    (re.compile(r"\.(half|bfloat16|float)\(\)"), ".double()"),
)
NARROW = ("float32", "float16", "bfloat16", "complex64")


def too_coarse(
    program: Program, found: Difference, ours: list[Seen], theirs: list[Seen]
) -> bool:
    """Whether a dtype is too coarse for a value, so that PyTorch has it wrong.

    In double precision both libraries agree, and PyTorch does not agree with that otherwise.
    """
    if found.dtype not in NARROW or found.field != "values":
        return False
    wide = Program([Step(_widened(step.source)) for step in program.steps])
    runs = (ours, theirs, *(_run_wide(wide, lib) for lib in (wengert, torch)))
    parts = [_values(dict(seen[found.step].made).get(found.name)) for seen in runs]
    precision, exact = Precision(program.text), Precision("")
    precision.meet(found.dtype)
    differing = [
        exact.same(*both) and not precision.same(other, both[1])
        for mine, other, *both in zip(*parts)
        if not precision.same(mine, other)
    ]
    return bool(differing) and all(differing)


def _widened(source: str) -> str:
    for narrow, wide in WIDE:
        source = narrow.sub(wide, source)
    return source


def _run_wide(program: Program, lib: Any) -> list[Seen]:
    """What is seen where numbers without a dtype are of double precision."""
    lib.set_default_dtype(lib.float64)
    try:
        return execute(program, lib)
    finally:
        lib.set_default_dtype(lib.float32)


def _values(seen: Any) -> list:
    """The values of each tensor among what was seen of one name."""
    if isinstance(seen, tuple):
        return [seen[FIELDS.index("values")]]
    return [value for part in seen or () for value in _values(part)]


#: Parts of the nudges that numbers get, of which one has to decide.
SHARES = (1.0, 0.8, 0.6)


def rounding_decides(program: Program, found: Difference, lib: Any, seen: list[Seen]) -> bool:
    """Whether numbers that hardly differ give one library values that differ as much.

    Both larger and smaller ones must: a jump of a function at a number is no matter of rounding.
    They are the numbers of the program, or also those that it makes of integers.
    """
    return any(
        all(
            any(decide(program, found, lib, seen, sign * share) for share in SHARES)
            for sign in (1, -1)
        )
        for decide in (nudged_numbers_decide, nudged_results_decide)
    )


def nudged_numbers_decide(
    program: Program, found: Difference, lib: Any, seen: list[Seen], scale: float
) -> bool:
    """Whether the library gives other values once the numbers of a program are nudged."""
    others = execute(program, lib, through=Nudged(lib, Nudges(program.text, scale)))
    return any(
        other.field in (found.field, "error") and other.step <= found.step
        for other in differences(program, seen, others)
    )


def nudged_results_decide(
    program: Program, found: Difference, lib: Any, seen: list[Seen], scale: float
) -> bool:
    """Whether the library gives other values once numbers that are made of integers are too."""
    nudges = Nudges(program.text, scale)
    with nudged_results(lib, nudges):
        others = execute(program, lib, through=Nudged(lib, nudges))
    for other in differences(program, seen, others):
        if other.field in (found.field, "error"):
            return other.field == found.field and other.step <= found.step
    return False


def against_itself(program: Program) -> Difference | None:
    """Run a program as it is, and with its transforms and graphs in their plain meaning."""
    ours, theirs = execute(program, wengert), execute(program, wengert, plain=True)
    found = first_difference(program, ours, theirs)[0]
    if found is None or found.field not in COMPUTED:
        return found
    return None if rounding_decides(program, found, wengert, ours) else found


def in_threads(program: Program) -> Difference | None:
    """Run a program with every step in another thread.

    A dual level belongs to its thread. What a backward that fails leaves behind, and which of
    several gradients comes first, depends on the order of nodes, which each thread counts itself.
    """
    if program.uses("enter_dual_level") or "mode='any'" in program.text:
        return None
    if re.search(r"\w\d+\.grad\b", program.text):  # a hook may read it at any moment
        return None
    theirs = execute(program, wengert)
    if any(seen.error for seen in theirs):
        return None
    ours = execute_in_threads(program, wengert)
    for seen in (*ours, *theirs):
        seen.log.sort(key=repr)  # nodes of two threads have no order among each other
    return first_difference(program, ours, theirs)[0]


def on_devices(program: Program) -> Difference | None:
    """Run a program with its nodes spread over several devices.

    When backward fails, it depends on the order of nodes which leaves have their gradient by then.
    """
    theirs = execute(program, wengert)
    if any(seen.error for seen in theirs) or program.uses(*ORDERED):
        return None
    if re.search(r"\w\d+\.grad\b", program.text):  # a hook may read it at any moment
        return None
    ours = execute(program, wengert, place=spread([None, "fake:0", "fake:1"]))
    for seen in (*ours, *theirs):
        seen.log.sort(key=repr)  # which of two devices is first is not determined
    return first_difference(program, ours, theirs)[0]


#: What depends on the order of devices, or belongs to the thread that calls backward.
ORDERED = ("register_multi_grad_hook", "is_grads_batched", "functional", "func")
#: Ways to run a program a second time, and how many of all programs are.
FREQUENCIES = (0.03, 0.05) if torch else (0.3, 0.4)
AGAIN = tuple(zip((in_threads, on_devices), FREQUENCIES))
OURS = 0.15  # of the programs are not for PyTorch, where it is installed
NATIVE = 0.3  # of the graphs become machine code, which takes long to make; others are interpreted
BACKEND = "WENGERT_BACKEND"


def with_backend(name: str, function: Callable) -> Callable:
    """The function with that backend for graphs, unless the user has chosen one."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        if BACKEND in os.environ or not name:
            return function(*args)
        os.environ[BACKEND] = name
        try:
            return function(*args)
        finally:
            del os.environ[BACKEND]

    return run


def check(seed: int, number: int) -> tuple[Outcome, Callable]:
    """Write and compare program `number`; also how to compare a changed one in the same way."""
    rng = random.Random(f"way {seed}/{number}")
    backend = "" if random.Random(f"backend {seed}/{number}").random() < NATIVE else "interpreter"
    outcome, compare = with_backend(backend, _check)(seed, number, rng)
    return outcome, with_backend(backend, compare)


def _check(seed: int, number: int, rng: random.Random) -> tuple[Outcome, Callable]:
    ours = torch is None or rng.random() < OURS
    compare = against_itself if ours else against_pytorch
    program, theirs, flavour = write(seed, number, wengert if ours else torch, ONLY[0], ours)
    if ours:
        theirs = execute(program, wengert, plain=True)  # with the random numbers of a fresh run
    difference, reason = first_difference(program, execute(program, wengert), theirs)
    if difference is not None:
        difference = compare(program)  # while it was written, tensors were looked at
    for way, often in AGAIN:
        if difference is None and rng.random() < often:
            difference, compare = way(program), way
    return Outcome(program, flavour, difference, reason), compare
