"""Runs many programs, shrinks what differs, and counts."""

from __future__ import annotations

import math
import re
import signal
import time
from collections import Counter
from collections.abc import Callable

import wengert
from fuzz.checking import check, torch
from fuzz.comparison import Difference
from fuzz.program import Program
from fuzz.runner import Failure
from fuzz.shrinking import apart, shrink

#: The exit code of a process whose program has reached the limit of the processor's time.
OUT_OF_TIME = -getattr(signal, "SIGPROF", math.inf)
#: A pattern of programs whose differences are left out, for a look at the others.
LEAVE: list[str] = []


def signature(difference: Difference) -> tuple:
    """What tells one difference from another before it is shrunk: field, operator, errors."""
    called = re.findall(r"[.\s](\w*[a-z_]+)\(", difference.source.split("= ", 1)[-1])
    kinds = [kind_of(value) for value in (difference.ours, difference.theirs)]
    word = called[-1] if called else re.sub(r"\d+", "", difference.source)[:20]
    return (difference.field, word, *kinds)


#: What to print of a name to see that a field differs; its value if nothing is said.
SHOWN = {
    "node": "{}.grad_fn", "stride": "{}.stride()", "offset": "{}.storage_offset()",
    "view": "{}._is_view()", "base": "{}._base", "version": "{}._version", "leaf": "{}.is_leaf",
    "requires_grad": "{}.requires_grad", "dtype": "{}.dtype", "shape": "{}.shape",
    "inference": "{}.is_inference()", "retains_grad": "{}.retains_grad", "grad": "{}.grad",
    "log": "log",
}  # fmt: skip


def shown(difference: Difference) -> str:
    """The line that shows a difference at the end of a script; an error shows itself."""
    if difference.field in ("error", "message"):
        return ""
    part = difference.name[:1] in ("d", "g", "r", "y")  # it may be a list
    pattern = "{}" if part else SHOWN.get(difference.field, "{}")
    return f"print({pattern.format(difference.name)})"


def kind_of(value: object) -> str:
    """The type of a value; of an error also how its message begins."""
    if isinstance(value, Failure):
        return f"{value.kind}: {re.sub(r'[^a-z ]', '', value.message)[:24]}"
    return type(value).__name__


class Report:
    """Programs run so far under one seed, and the differences that are not declared."""

    def __init__(self, seed: int, printing: bool = True) -> None:
        self.seed = seed
        self.printing = printing
        self.ran: Counter = Counter()
        self.declared: Counter = Counter()
        self.found: dict[tuple, str] = {}
        self.times: Counter = Counter()
        self.known: set[tuple] = set()  # found before, and not shrunk again
        self.seconds = 0.0
        self.busy = 0.0  # seconds of the processor, on a machine that may have other work

    def merge(self, other: Report) -> None:
        """Take over what another process has found."""
        self.ran += other.ran
        self.declared += other.declared
        self.times += other.times
        self.seconds += other.seconds
        self.busy += other.busy
        self.found.update(other.found)
        if self.printing:
            print(*other.found.values(), sep="\n", end="", flush=True)

    def crashed(self, number: int, code: int | None, on_pytorch: bool) -> None:
        """A program has killed its process, which is no finding if PyTorch ran at that moment."""
        if on_pytorch:
            self.declared["It ends the process of PyTorch."] += 1
            return
        key = ("crash", number)
        self.times[key] += 1
        what = "takes too long" if code == OUT_OF_TIME else f"ends the process with {code}"
        self.found[key] = f"# program {number} of seed {self.seed} {what}\n"
        if self.printing:
            print(self.found[key], flush=True)

    def add(self, number: int) -> None:
        """Write, run and compare one program."""
        start, busy = time.perf_counter(), time.process_time()
        outcome, compare = check(self.seed, number)
        self.seconds += time.perf_counter() - start
        self.busy += time.process_time() - busy
        self.ran[outcome.flavour] += 1
        self.declared[outcome.reason] += bool(outcome.reason)
        if outcome.difference is None or LEAVE and re.search(LEAVE[0], outcome.program.text):
            return
        key = signature(outcome.difference)
        self.times[key] += 1
        if key not in self.found and key not in self.known:
            self.found[key] = self.shrunk(outcome.program, outcome.difference, compare, number)

    def shrunk(
        self, program: Program, found: Difference, compare: Callable, number: int
    ) -> str:
        """The smallest program found that differs in the same way, as a script."""
        key = signature(found)

        def shows(candidate: Program) -> bool:
            difference = compare(candidate)
            return (
                difference is not None
                and signature(difference)[0] == key[0]
                and signature(difference)[2:] == key[2:]
                and len(difference.before) <= len(found.before)
                and " at 0x" not in str(difference)
            )

        def smallest() -> str:
            small = shrink(program, shows)
            return told(small, compare(small) or found)

        def told(program: Program, difference: Difference) -> str:
            head = f"# program {number} of seed {self.seed}, {compare.__name__}: {difference}"
            return f"{head}\n{program.printed()}\n{shown(difference)}\n"

        return apart(smallest) or told(program, found)

    def summary(self) -> str:
        total = sum(self.ran.values())
        against = f"PyTorch {torch.__version__}" if torch else "itself"
        lines = [
            f"{total} programs in {self.seconds:.0f} s, {self.busy:.0f} s of the processor "
            f"({total / max(self.busy, 1e-9):.0f} a second), seed {self.seed}, wengert "
            f"{wengert.__version__} against {against}: "
            + ", ".join(f"{count} {name}" for name, count in sorted(self.ran.items()))
        ]
        lines += [f"{n:6} declared: {reason}" for reason, n in self.declared.most_common() if n]
        lines += [f"{n:6} NOT DECLARED: {key}" for key, n in self.times.most_common()]
        return "\n".join(lines)
