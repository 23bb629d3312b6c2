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
from fuzz.by_hand import USES, as_functions, by_hand
from fuzz.comparison import Difference, Precision, differences
from fuzz.declared import declared
from fuzz.declared.looking import is_refused_change
from fuzz.declared.patterns import TRANSFORMS
from fuzz.flavours import write
from fuzz.program import Program, Step
from fuzz.runner import Nudged, Seen, execute, execute_in_threads, spread
from fuzz.second_opinion import (
    Copying,
    SecondOpinion,
    away_from_zero,
    cloned,
    conjugated_at_once,
    with_copies,
    without_zeros_of_no_sign,
)

try:
    import torch
except ImportError:
    torch = None

if torch is not None:
    torch.set_num_threads(1)
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
#: The one flavour to write, if not all.
ONLY: list[str] = [""]


@dataclass
class Outcome:
    """The result of one program: nothing, a declared reason, or a difference that is not meant."""

    program: Program
    flavour: str
    difference: Difference | None = None
    reason: str = ""


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


def against_pytorch(program: Program) -> Difference | None:
    """Run a program on both libraries."""
    ours, theirs = execute(program, wengert), execute(program, torch)
    found = first_difference(program, ours, theirs)[0]
    if found is None or contradicts_itself(program, ours):
        return None
    if saves_less(program, found, ours, theirs) or conjugates_late(program, ours):
        return None
    if computes_otherwise(program, ours, theirs):
        return None
    if is_refused_change(found) and changes_by_itself(program, ours, theirs):
        return None
    if found.field not in ("values", "grad", "value", "log"):
        return found
    if zeros_decide(program):
        return None
    if keeps_what_was_saved(program, ours, theirs):
        return None
    if changes_by_itself(program, ours, theirs):
        return None
    rounded = rounding_decides(program, found, wengert, ours) or rounding_decides(
        program, found, torch, theirs
    )
    return None if rounded else found


def contradicts_itself(program: Program, ours: list[Seen]) -> bool:
    """Whether PyTorch does as we do when it uses reverse mode and loops in place of transforms."""
    if not re.search(r"\b(torch\.func|vmap|jacobian)\b", program.text):
        return False
    again = execute(program, torch, plain=True, through=SecondOpinion(torch))
    return first_difference(program, ours, again)[0] is None


def saves_less(
    program: Program, found: Difference, ours: list[Seen], theirs: list[Seen]
) -> bool:
    """Whether PyTorch refuses a change of what it has saved, and with copies does as we do."""
    if not is_refused_change(found):
        return False
    if agree(program, ours, theirs, execute_saving_copies(program, torch)):
        return True
    if not TRANSFORMS.search(program.text):  # in which hooks see nothing
        return False
    copying = Program([Step(with_copies(step.source)) for step in program.steps])
    return agree(program, ours, theirs, execute(copying, torch, through=Copying(torch)))


def execute_saving_copies(program: Program, lib: Any) -> list[Seen]:
    """Run a program with nodes that save copies of tensors, so that later changes do not matter."""
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        return execute(program, lib)


def keeps_what_was_saved(program: Program, ours: list[Seen], theirs: list[Seen]) -> bool:
    """Whether both agree where `.data` changes nothing that was saved.

    Which of operands and results a rule reads, such a change shows.
    """
    if not re.search(r"\.data\b", program.text):
        return False
    again = execute_saving_copies(program, torch)
    return agree(program, ours, theirs, again) or agree(
        program, execute_saving_copies(program, wengert), theirs, again
    )


def agree(program: Program, ours: list[Seen], theirs: list[Seen], again: list[Seen]) -> bool:
    """Whether a second run, with copies or other functions, computes what we do.

    With copies nothing is refused, also what should be, and so ends otherwise. Nodes and memory
    are those of the copies.
    """
    for step, (mine, other) in enumerate(zip(ours, theirs)):
        if mine.error and other.error and not again[step].error:
            again[step], again[-1] = other, ours[-1]
    found = first_difference(program, ours, again)[0]
    return found is None or found.field in MINOR


#: Operators that zeros decide something about, and libraries in which these are no zeros.
ZEROS = {
    r"fft\w?\(|stft\(|cholesky_inverse|inv\b|solve": without_zeros_of_no_sign,
    r"\bprelu\(": away_from_zero,
}


def zeros_decide(program: Program) -> bool:
    """Whether both libraries agree when such zeros have a sign, or are none."""
    as_function = re.compile(r"\b([a-z]\d+)\.prelu\(")
    steps = [Step(as_function.sub(r"torch.prelu(\1, ", step.source)) for step in program.steps]
    changed = Program(steps)
    for pattern, variant in ZEROS.items():
        if re.search(pattern, program.text):
            ours = execute(changed, wengert, through=variant(wengert))
            theirs = execute(changed, torch, through=variant(torch))
            if first_difference(changed, ours, theirs)[0] is None:
                return True
    return False


def computes_otherwise(program: Program, ours: list[Seen], theirs: list[Seen]) -> bool:
    """Whether PyTorch does as we do when some functions are computed from their definitions."""
    if not USES.search(program.text):
        return False
    changed = Program([Step(as_functions(step.source)) for step in program.steps])
    definitions = by_hand(torch)
    return agree(program, ours, theirs, execute(changed, torch, through=definitions)) or agree(
        program, ours, theirs, execute(changed, torch, through=SecondOpinion(definitions))
    )


#: Methods and properties that PyTorch returns lazily conjugated tensors from.
LATE = re.compile(r"\b([a-z]\d+)\.(conj\(\)|adjoint\(\)|m?H\b)")


def conjugates_late(program: Program, ours: list[Seen]) -> bool:
    """Whether PyTorch does as we do when it conjugates at once."""
    if not re.search(r"conj|H\b|adjoint|\bihfft", program.text):
        return False
    at_once = Program([Step(LATE.sub(r"\1.\2.resolve_conj()", s.source)) for s in program.steps])
    again = execute(at_once, torch, through=conjugated_at_once(torch))
    return first_difference(program, ours, again)[0] is None


#: A change of a tensor, and what it is changed by.
CHANGE = re.compile(r"^(.*(?:\.\w+_\(| [-+*/%]{1,2}= |\] = ))(.*)$", re.MULTILINE)


def changes_by_itself(program: Program, ours: list[Seen], theirs: list[Seen]) -> bool:
    """Whether PyTorch does as we do when a tensor is changed by copies of its operands."""
    if not program.uses(*FORWARD):
        return False

    def copied(change: re.Match) -> str:
        return change[1] + cloned(change[2])

    copies = Program([Step(CHANGE.sub(copied, step.source)) for step in program.steps])
    if copies.text == program.text:
        return False
    return agree(program, ours, theirs, execute(copies, torch))


#: What makes tangents.
FORWARD = ("enter_dual_level", "jvp", "jacfwd", "hessian", "linearized")
#: Relative changes of the numbers of a program that its dtypes hardly represent.
NUDGES = {"float64": 4e-15, "float32": 2e-6, "half": 4e-3}


def rounding_decides(program: Program, found: Difference, lib: Any, seen: list[Seen]) -> bool:
    """Whether numbers that hardly differ give one library values that differ as much.

    Both larger and smaller ones must: a jump of a function at a number is no matter of rounding.
    """
    kind = Precision(program.text).kind
    for nudge in (NUDGES[kind], -NUDGES[kind]):
        others = execute(program, lib, through=Nudged(lib, nudge))
        if not any(
            other.field in (found.field, "error") and other.step <= found.step
            for other in differences(program, seen, others)
        ):
            return False
    return True


def against_itself(program: Program) -> Difference | None:
    """Run a program as it is, and with its transforms and graphs in their plain meaning."""
    theirs = execute(program, wengert, plain=True)
    return first_difference(program, execute(program, wengert), theirs)[0]


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
