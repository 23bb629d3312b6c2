"""Cold import of wengert against NumPy alone, each in fresh interpreters."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile

from harness import arguments, finish, number, print_table, settings, verdict

TARGET = 1.45
TIMED_IMPORT = """
from time import perf_counter_ns
start = perf_counter_ns()
import {module}
print(perf_counter_ns() - start)
"""
IMPORT_LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)")


def interpreter(*parameters: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter that may read and write bytecode caches."""
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # An empty working directory, so that nothing there is taken for a module.
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run(
            [sys.executable, *parameters],
            env=environment,
            cwd=directory,
            capture_output=True,
            text=True,
            check=True,
        )


def import_milliseconds(module: str) -> float:
    """The time of one import statement, without the start of the interpreter."""
    return int(interpreter("-c", TIMED_IMPORT.format(module=module)).stdout) / 1e6


def modules_loaded(module: str) -> dict[str, int]:
    """Own microseconds of every module that an import loads, as the interpreter reports them."""
    report = interpreter("-X", "importtime", "-c", f"import {module}").stderr
    return {name: int(own) for own, name in IMPORT_LINE.findall(report)}


def explain(subject: str, base: str, limit: int = 15) -> None:
    """Print the costliest modules that the subject loads and the base does not."""
    known = modules_loaded(base)
    extra = {name: own for name, own in modules_loaded(subject).items() if name not in known}
    print(f"\n{len(extra)} modules beyond those of {base}, the costliest first")
    costliest = sorted(extra.items(), key=lambda item: -item[1])[:limit]
    print_table(("module", "own us"), [(name, str(own)) for name, own in costliest])


def main() -> int:
    """Time the imports in turn, print the table and judge the median ratio."""
    parser = arguments(__doc__)
    parser.add_argument("--repetitions", type=int, default=40, help="fresh interpreters per module")
    parser.add_argument("--subject", default="wengert", help="the module that is judged")
    parser.add_argument("--explain", action="store_true", help="list what the import loads")
    options = parser.parse_args()
    subject, base = options.subject, "numpy"
    try:
        # Also fills the file cache and the bytecode cache, so that no repetition pays for them.
        for module in (subject, base):
            import_milliseconds(module)
    except subprocess.CalledProcessError as failure:
        print(failure.stderr.strip().splitlines()[-1], file=sys.stderr)
        return 2
    times: dict[str, list[float]] = {subject: [], base: []}
    for index in range(options.repetitions):
        order = (subject, base) if index % 2 == 0 else (base, subject)
        for module in order:
            times[module].append(import_milliseconds(module))
    ratios = [first / second for first, second in zip(*times.values(), strict=True)]
    ratio = statistics.median(ratios)
    ours, theirs = (statistics.median(times[module]) for module in (subject, base))
    best = min(times[subject]) / min(times[base])
    ok = ratio <= TARGET
    print(f"{options.repetitions} fresh interpreters each, interleaved, medians")
    cells = (
        f"import {subject}",
        number(ours, 1),
        number(theirs, 1),
        number(ratio, 3),
        number(best, 3),
        number(TARGET, 2),
        verdict(ok),
    )
    header = ("name", f"{subject} ms", f"{base} ms", "ratio", "best", "target", "ok?")
    print_table(header, [cells])
    if options.explain:
        explain(subject, base)
    row = {
        "name": f"import {subject}",
        "subject_ms": ours,
        "base_ms": theirs,
        "ratio": ratio,
        "ratio_best": best,
        "target": TARGET,
        "ok": ok,
    }
    return finish(options, {**settings(), "results": [row]}, [ok])


if __name__ == "__main__":
    sys.exit(main())
