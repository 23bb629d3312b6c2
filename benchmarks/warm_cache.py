"""First calls of compiled programs in fresh processes: with an empty folder on disk, and with what
an earlier process has left there.

    python benchmarks/warm_cache.py [names] [--repeat 3] [--check] [--json FILE]

Prints seconds: the first call with nothing on disk, then, of the fastest of some processes that
find all there, the trace and the rest of the call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from compile import PROGRAMS  # isort: skip - it sets what NumPy reads
import wengert

#: The most that a first call may take beyond its trace where all is on disk.
TARGET = 0.1


def first_call(name: str) -> dict[str, float]:
    """Seconds of the first call in this process, and of its trace. What every program imports on
    first use was imported for another one."""
    wengert.compile(lambda x: x * 2)(wengert.ones(2))
    function, arrays = PROGRAMS[name](wengert)
    tensors = [wengert.tensor(a) for a in arrays]
    compiled = wengert.compile(function)
    begin = perf_counter()
    compiled(*tensors)
    return {"call": perf_counter() - begin, "trace": compiled.compilations[0].seconds}


def in_process(name: str, folder: str) -> dict[str, float]:
    """What a fresh process measures with that folder."""
    done = subprocess.run(
        [sys.executable, __file__, name, "--here"],
        env={**os.environ, "WENGERT_CACHE": folder}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the names of programs")
    parser.add_argument("--repeat", type=int, default=3, help="processes that find all on disk")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help="fail where the target is missed")
    parser.add_argument("--json", help="a file for all figures")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(first_call(given.names[0])))
        return
    figures: dict[str, Any] = {}
    for name in PROGRAMS:
        if given.names and not any(part in name for part in given.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            cold = in_process(name, folder)
            again = [in_process(name, folder) for _ in range(given.repeat)]
        warm = min(again, key=lambda each: each["call"] - each["trace"])
        beyond = warm["call"] - warm["trace"]
        figures[name] = {"cold": cold["call"], "trace": warm["trace"], "beyond": beyond}
        print(
            f"{name}: {cold['call']:.3f} s with nothing on disk; trace {warm['trace']:.3f} s and "
            f"{beyond:.3f} s beyond it with all there (target {TARGET})"
        )
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=1))
    if given.check:
        sys.exit(int(any(each["beyond"] > TARGET for each in figures.values())))


if __name__ == "__main__":
    main()
