"""Time and memory per node of long graphs: built, differentiated, destroyed."""

from __future__ import annotations

import gc
import importlib.util
import json
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from harness import arguments, finish, load, number, print_table, quiet_heap, settings, verdict

SIZES = (10_000, 100_000, 1_000_000)
GROWTH_TARGETS = {"constant": 1.3, "learned": 1.3, "view": 2.0, "inplace": 2.0}
VARIANTS = tuple(GROWTH_TARGETS)
PHASES = ("build", "backward", "destroy")
COLUMNS = (*PHASES, "total", "again", "abandon", "bytes")
# A small graph takes milliseconds: more fresh processes make up for it.
PASSES_FACTOR = {10_000: 5, 100_000: 2, 1_000_000: 1}
# Stated for the chain with a constant factor, which takes 790 bytes per node in PyTorch.
BYTES_TARGET = 600
STATUS = Path("/proc/self/status")


def memory(field: str) -> int:
    """A memory figure of this process in bytes: `VmRSS` now, `VmHWM` at its highest."""
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Let the high-water mark start again from the present, where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def build(x: Any, factor: Any, nodes: int, variant: str) -> Any:
    """A chain of products, of views or of products in place, one node each."""
    y = x
    if variant == "view":
        for _ in range(nodes):
            y = y.view(4)
    elif variant == "inplace":
        y = y * factor
        for _ in range(nodes - 1):
            y = y.mul_(factor)
    else:
        for _ in range(nodes):
            y = y * factor
    return y


def one_graph(x: Any, factor: Any, seed: Any, nodes: int, variant: str) -> list[float]:
    """Nanoseconds per node of building, differentiating and destroying one graph."""
    gc.collect()
    stamps = [perf_counter_ns()]
    y = build(x, factor, nodes, variant)
    stamps.append(perf_counter_ns())
    y.backward(seed)
    stamps.append(perf_counter_ns())
    del y
    stamps.append(perf_counter_ns())
    x.grad = factor.grad = None
    return [(after - before) / nodes for before, after in zip(stamps, stamps[1:], strict=False)]


def measure_here(library: str, variant: str, nodes: int, collect: bool) -> dict[str, float]:
    """Measure one size in this process, which should be fresh."""
    lib: Any = load(library)
    x = lib.ones(4).requires_grad_()
    # Ones keep every value and gradient of a chain of any length in range.
    factor = lib.ones(4)
    if variant == "learned":
        factor.requires_grad_()
    seed = lib.ones(4)
    one_graph(x, factor, seed, 1000, variant)
    quiet_heap(collect)
    forget_peak()
    baseline = memory("VmRSS")
    first = one_graph(x, factor, seed, nodes, variant)
    peak = memory("VmHWM")
    figures = dict(zip(PHASES, first, strict=True))
    figures["total"] = sum(first)
    # The next graphs find the memory of the ones before, as far as it was not given back.
    repetitions = min(20, max(1, SIZES[-1] // nodes - 1))
    figures["again"] = statistics.median(
        sum(one_graph(x, factor, seed, nodes, variant)) for _ in range(repetitions)
    )
    # Destroying a graph that still holds all that it saved is the harder case.
    abandoned = build(x, factor, nodes, variant)
    start = perf_counter_ns()
    del abandoned
    figures["abandon"] = (perf_counter_ns() - start) / nodes
    figures["bytes"] = (peak - baseline) / nodes
    return figures


def measure_fresh(library: str, variant: str, nodes: int, collector: str) -> dict[str, float]:
    """Measure one size in a fresh process; RuntimeError tells how that process ended."""
    command = [sys.executable, __file__, "--measure", library, variant, str(nodes), collector]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if done.returncode < 0:
        raise RuntimeError(f"ended by {signal.Signals(-done.returncode).name}")
    raise RuntimeError(done.stderr.strip().splitlines()[-1])


Passes = list[dict[str, float]]
Cases = dict[tuple[str, str, int], Passes]


def measure_all(libraries: list[str], variants: list[str], passes: int, collector: str) -> Cases:
    """Measure every case once per pass; a case that fails is reported and has no figures."""
    cases: Cases = {
        (library, variant, nodes): []
        for variant in variants
        for nodes in SIZES
        for library in libraries
    }
    failed = set()
    # Turn -1 is not counted: a virtual machine may first have to get the memory from its host.
    for turn in range(-1, passes * max(PASSES_FACTOR.values())):
        for case, figures in cases.items():
            if case in failed or turn >= passes * PASSES_FACTOR[case[2]]:
                continue
            try:
                found = measure_fresh(*case, collector)
                if turn >= 0:
                    figures.append(found)
            except RuntimeError as failure:
                failed.add(case)
                figures.clear()
                library, variant, nodes = case
                print(f"{library}, {variant}, {nodes:,} nodes: {failure}", file=sys.stderr)
    return cases


def median_of(figures: Passes, key: str) -> float | None:
    """The median of one figure over the passes; None for a case that failed."""
    return statistics.median(found[key] for found in figures) if figures else None


def growth_of(small: Passes, large: Passes, start: str) -> float | None:
    """How much longer a node takes in the large graph than in the small one's `start` column."""
    before, after = median_of(small, start), median_of(large, "total")
    return None if before is None or after is None else after / before


def print_case(cases: Cases, library: str, variant: str) -> None:
    """Print the figures of one library and variant, a line per size."""
    print(f"\n{library}, {variant}: ns per node; bytes per node at the peak")
    lines = []
    for nodes in SIZES:
        found = cases[library, variant, nodes]
        lines.append([f"{nodes:,}", *(number(median_of(found, key), 0) for key in COLUMNS)])
    print_table(("nodes", *COLUMNS), lines)


def judge(cases: Cases, libraries: list[str], variant: str) -> list[dict[str, Any]]:
    """The subject's growth and memory against their targets, the reference's beside them."""
    fresh, warm = (
        [
            growth_of(cases[library, variant, SIZES[0]], cases[library, variant, SIZES[-1]], start)
            for library in libraries
        ]
        for start in ("total", "again")
    )
    sizes = [median_of(cases[library, variant, SIZES[-1]], "bytes") for library in libraries]
    totals = [median_of(cases[library, variant, SIZES[-1]], "total") for library in libraries]
    bytes_target = BYTES_TARGET if variant == "constant" else None
    rows = []
    for name, values, target in (
        (f"growth_{variant}", fresh, GROWTH_TARGETS[variant]),
        (f"growth_from_warm_{variant}", warm, None),
        (f"bytes_per_node_{variant}", sizes, bytes_target),
        (f"ns_per_node_{variant}", totals, None),
    ):
        subject, reference = (*values, None)[:2]
        # A size that could not be measured misses its target.
        ok = None if target is None else subject is not None and subject <= target
        rows.append(
            {"name": name, "subject": subject, "reference": reference, "target": target, "ok": ok}
        )
    return rows


def main() -> int:
    """Measure every size in fresh processes, print the tables and judge the subject."""
    if sys.argv[1:2] == ["--measure"]:
        library, variant, nodes, collector = sys.argv[2:]
        print(json.dumps(measure_here(library, variant, int(nodes), collector == "on")))
        return 0
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=VARIANTS, help="one variant of the chain")
    parser.add_argument("--passes", type=int, default=3, help="fresh processes per large graph")
    parser.add_argument("--gc", choices=("on", "off"), default="on", help="the cyclic collector")
    parser.add_argument("--subject", default="wengert", help="the library that is judged")
    parser.add_argument("--reference", default="torch", help="the library beside it")
    options = parser.parse_args()
    libraries = [options.subject]
    if importlib.util.find_spec(options.subject) is None:
        print(f"{options.subject} is not installed", file=sys.stderr)
        return 2
    if importlib.util.find_spec(options.reference) is None:
        print(f"{options.reference} is not installed: {options.subject} alone")
    elif options.reference != options.subject:
        libraries.append(options.reference)
    variants = [options.only] if options.only else list(VARIANTS)
    print(
        "chains of 4-element tensors, the first graph in a fresh process for every size and "
        f"pass ('again': later ones in it), medians of at least {options.passes} passes; cyclic "
        f"gc {options.gc}"
    )
    cases = measure_all(libraries, variants, options.passes, options.gc)
    for variant in variants:
        for library in libraries:
            print_case(cases, library, variant)
    rows = [row for variant in variants for row in judge(cases, libraries, variant)]
    lines = [
        (
            row["name"],
            number(row["subject"], 2),
            number(row["reference"], 2),
            number(row["target"], 2),
            verdict(row["ok"]),
        )
        for row in rows
    ]
    print()
    print_table(("name", options.subject, options.reference, "target", "ok?"), lines)
    figures = [
        {"library": library, "variant": variant, "nodes": nodes, "passes": found}
        for (library, variant, nodes), found in cases.items()
    ]
    report = {**settings(options.gc == "on"), "results": rows, "figures": figures}
    return finish(options, report, [row["ok"] for row in rows])


if __name__ == "__main__":
    sys.exit(main())
