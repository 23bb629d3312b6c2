"""Interleaved timing of one program under two libraries that share an API."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, perf_counter_ns, process_time, sleep
from types import ModuleType
from typing import Any, NamedTuple

THREADS = 2
# Read by the BLAS and OpenMP runtimes when they are loaded, hence before any import of NumPy.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)

TURN_SECONDS = 0.010
MINIMUM_ROUNDS = 15
MAXIMUM_ROUNDS = 400


class Work(NamedTuple):
    """What is timed: `run()`, or `run(prepare())` with the preparation left out of the time."""

    run: Callable[..., Any]
    prepare: Callable[[], Any] | None = None


class Program(NamedTuple):
    """One benchmark: `build(lib)` makes its work, which performs `operations` units a call.

    `run` returns the tensors by which the two libraries are compared before they are timed.
    """

    name: str
    build: Callable[[Any], Work]
    target: float | None = None
    uncompiled_target: float | None = None
    operations: int = 1


class Row(NamedTuple):
    """The outcome of one program: microseconds per unit, median ratio and its spread.

    `ratio_best` divides the fastest turns of both; `ratio_min` is the least ratio of any round.
    """

    name: str
    subject_us: float | None = None
    reference_us: float | None = None
    ratio: float | None = None
    ratio_best: float | None = None
    ratio_min: float | None = None
    ratio_quartiles: tuple[float, float] | None = None
    target: float | None = None
    ok: bool | None = None
    rounds: int = 0
    calls: int = 0
    error: str | None = None


def load(name: str) -> ModuleType | None:
    """Import a library and limit it to `THREADS` threads; None when it is not installed."""
    try:
        library = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        return None
    if hasattr(library, "set_num_threads"):
        library.set_num_threads(THREADS)
    return library


def describe(library: ModuleType) -> str:
    """Name and version of a library, and whether it runs compiled if it knows."""
    text = f"{library.__name__} {getattr(library, '__version__', '')}".rstrip()
    if hasattr(library, "__compiled__"):
        text += " (compiled)" if library.__compiled__ else " (uncompiled)"
    return text


def numbers(result: Any) -> list[float]:
    """The values in a tensor, or in a sequence of tensors, as one flat list."""
    if result is None:
        return []
    if hasattr(result, "detach"):
        values = result.detach().reshape(-1).tolist()
        if result.is_complex():
            return [part for value in values for part in (value.real, value.imag)]
        return [float(value) for value in values]
    return [value for part in result for value in numbers(part)]


def check_agreement(subject: list[float], reference: list[float]) -> None:
    """Raise ArithmeticError unless the two results agree to single precision accuracy."""
    if len(subject) != len(reference):
        raise ArithmeticError(f"{len(subject)} results against {len(reference)}")
    scale = max((abs(value) for value in reference), default=0.0) or 1.0
    # A NaN on either side must not pass, so the comparison asks for what is right.
    if not all(
        abs(ours - theirs) <= 1e-3 * scale for ours, theirs in zip(subject, reference, strict=True)
    ):
        raise ArithmeticError("the two libraries compute different results")


def call_once(work: Work) -> Any:
    """Perform the work once, untimed."""
    return work.run() if work.prepare is None else work.run(work.prepare())


def settle(run: Callable[[], Any]) -> None:
    """Wait until the threads of the library that had the last turn sleep, then warm up the next.

    OpenMP's threads spin for some ten milliseconds after a parallel loop, OpenBLAS's for a hundred:
    without the wait they would take a core from the library whose turn comes next. Threads that
    wake share a core with the one that woke them until the system's next tick, milliseconds later.
    """
    # Longer than the tick by which the system accounts for threads that are running.
    for _ in range(40):
        spent = process_time()
        sleep(0.006)
        if process_time() - spent < 0.001:
            break
    end = perf_counter() + 0.006
    run()
    while perf_counter() < end:
        run()


def time_turn(work: Work, calls: int) -> float:
    """Nanoseconds per call over one turn: on a collected heap, with no thread left spinning."""
    gc.collect()
    if THREADS > 1:
        settle(lambda: call_once(work))
    run, prepare = work
    if prepare is None:
        start = perf_counter_ns()
        for _ in range(calls):
            run()
        return (perf_counter_ns() - start) / calls
    elapsed = 0
    for _ in range(calls):
        prepared = prepare()
        start = perf_counter_ns()
        run(prepared)
        elapsed += perf_counter_ns() - start
        # Dropped here, so that what was prepared is destroyed outside the time.
        del prepared
    return elapsed / calls


def quiet_heap(collect: bool) -> None:
    """Hide everything alive from the collector, then let it run during the turns or not."""
    gc.unfreeze()
    gc.enable()
    gc.collect()
    gc.freeze()
    if not collect:
        gc.disable()


def rounds_of(works: Sequence[Work], seconds: float) -> tuple[list[list[float]], int]:
    """Time the works in turns; per work the times of all rounds, and the calls per turn."""
    for work in works:
        for _ in range(3):
            call_once(work)
    slowest = max(time_turn(work, 3) for work in works)
    calls = max(1, round(TURN_SECONDS * 1e9 / slowest))
    start = perf_counter_ns()
    for work in works:
        time_turn(work, calls)
    # Preparation and collection count here: they fill the budget although they are not timed.
    round_seconds = (perf_counter_ns() - start) / 1e9
    rounds = min(MAXIMUM_ROUNDS, max(MINIMUM_ROUNDS, round(seconds / round_seconds)))
    times: list[list[float]] = [[] for _ in works]
    for index in range(rounds):
        order = range(len(works)) if index % 2 == 0 else reversed(range(len(works)))
        for position in order:
            times[position].append(time_turn(works[position], calls))
    return times, calls


def measure(
    program: Program,
    subject: ModuleType,
    reference: ModuleType | None,
    *,
    target: float | None,
    seconds: float,
    collect: bool,
) -> Row:
    """Run one program under both libraries; a program that raises or disagrees is not ok."""
    try:
        works = [program.build(library) for library in (subject, reference) if library is not None]
        results = [numbers(call_once(work)) for work in works]
        if reference is not None:
            check_agreement(*results)
        quiet_heap(collect)
        try:
            times, calls = rounds_of(works, seconds)
        finally:
            gc.enable()
            gc.unfreeze()
    except Exception as failure:
        summary = f"{type(failure).__name__}: {failure}".splitlines()[0]
        return Row(program.name, target=target, ok=False, error=summary)
    micro = [statistics.median(series) / program.operations / 1000 for series in times]
    if reference is None:
        return Row(program.name, micro[0], rounds=len(times[0]), calls=calls, target=target)
    ratios = [ours / theirs for ours, theirs in zip(*times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return Row(
        program.name,
        subject_us=micro[0],
        reference_us=micro[1],
        ratio=middle,
        ratio_best=min(times[0]) / min(times[1]),
        ratio_min=min(ratios),
        ratio_quartiles=(low, high),
        target=target,
        ok=None if target is None else middle <= target,
        rounds=len(ratios),
        calls=calls,
    )


def fastest(run: Callable[[], Any], seconds: float) -> float:
    """The fastest call within a time, with no thread of another library left spinning."""
    settle(run)
    best = float("inf")
    end = perf_counter() + seconds
    while True:
        begin = perf_counter()
        run()
        now = perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best


def verdict(ok: bool | None) -> str:
    """How a target met, missed or not judged is printed."""
    return {True: "yes", False: "NO", None: "-"}[ok]


def number(value: float | None, digits: int) -> str:
    """A figure with fixed decimals, or a dash for one that was not measured."""
    return "-" if value is None else f"{value:.{digits}f}"


def aligned(cells: Iterable[str], widths: Sequence[int]) -> str:
    """One table line: the first column to the left, the others to the right."""
    padded = [
        cell.ljust(width) if column == 0 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return " | ".join(padded)


def print_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print lines of cells under a header, every column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    print(aligned(header, widths))
    print("-|-".join("-" * width for width in widths))
    for line in lines:
        print(aligned(line, widths))


def print_row(row: Row, widths: Sequence[int]) -> None:
    """Print the line of one program as soon as it is known."""
    cells = (
        row.name,
        number(row.subject_us, 3),
        number(row.reference_us, 3),
        number(row.ratio, 3),
        number(row.ratio_best, 3),
        number(row.target, 2),
        verdict(row.ok),
    )
    print(aligned(cells, widths) + (f"  {row.error}" if row.error else ""), flush=True)


def settings(collect: bool = True) -> dict[str, Any]:
    """What the figures depend on besides the libraries."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "gc": "on" if collect else "off",
    }


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark shares."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--check", action="store_true", help="fail when a target is missed")
    return parser


def finish(
    options: argparse.Namespace, report: dict[str, Any], verdicts: Sequence[bool | None]
) -> int:
    """Write the JSON file if asked for and return the exit status: 1 missed, 2 not judged."""
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump(report, stream, indent=2)
            stream.write("\n")
    if not options.check:
        return 0
    if any(ok is False for ok in verdicts):
        return 1
    if not any(verdicts):
        print("no target could be judged", file=sys.stderr)
        return 2
    return 0


def select(programs: Sequence[Program], patterns: Sequence[str] | None) -> list[Program]:
    """The programs whose name contains one of the patterns; all of them without patterns."""
    if not patterns:
        return list(programs)
    return [program for program in programs if any(text in program.name for text in patterns)]


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a benchmark made of programs."""
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="programs whose name contains NAME"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="time spent on each program")
    parser.add_argument(
        "--gc",
        choices=("on", "off"),
        default="on",
        help="let the cyclic collector run during the turns of both libraries, or of neither",
    )
    parser.add_argument("--subject", default="wengert", help="the library that is judged")
    parser.add_argument("--reference", default="torch", help="the library it is compared with")


def run_programs(
    programs: Sequence[Program], options: argparse.Namespace, *, uncompiled: bool = False
) -> int:
    """Measure the programs, print the table and return the exit status."""
    if not programs:
        print("no program has such a name", file=sys.stderr)
        return 2
    subject, reference = load(options.subject), load(options.reference)
    if subject is None:
        print(f"{options.subject} is not installed", file=sys.stderr)
        return 2
    if uncompiled and getattr(subject, "__compiled__", True):
        print(f"{options.subject} runs compiled from {subject.__file__}", file=sys.stderr)
        return 2
    collect = options.gc == "on"
    libraries = [describe(library) for library in (subject, reference) if library is not None]
    print(" against ".join(libraries))
    print(
        f"Python {platform.python_version()}, {THREADS} threads, interleaved turns, medians; "
        f"microseconds per unit; cyclic gc {options.gc} for both, heap frozen beforehand, "
        "collected before every turn"
    )
    if reference is None:
        print(f"{options.reference} is not installed: absolute figures only, no target is judged")
    names = (f"{options.subject} us", f"{options.reference} us")
    header = ("name", *names, "ratio", "best", "target", "ok?")
    longest = max(len(program.name) for program in programs)
    widths = (longest, *(max(10, len(name)) for name in names), 6, 6, 6, 3)
    print(aligned(header, widths))
    print("-|-".join("-" * width for width in widths))
    rows = []
    for program in programs:
        row = measure(
            program,
            subject,
            reference,
            target=program.uncompiled_target if uncompiled else program.target,
            seconds=options.seconds,
            collect=collect,
        )
        print_row(row, widths)
        rows.append(row)
    report = {
        "libraries": libraries,
        **settings(collect),
        "results": [row._asdict() for row in rows],
    }
    return finish(options, report, [row.ok for row in rows])


def run_benchmark(description: str | None, programs: Sequence[Program]) -> int:
    """Run a benchmark that consists of programs, by the options of the command line."""
    parser = arguments(description)
    add_program_options(parser)
    options = parser.parse_args()
    return run_programs(select(programs, options.only), options)
