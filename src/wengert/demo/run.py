"""Runs the parts of the demo and writes the report."""

import time
from pathlib import Path

import wengert
from wengert.demo import derivatives, pendulum, spirals, tools
from wengert.demo.report import Results, write_report


def run(output: Path, quick: bool = False) -> bool:
    """Solves all problems, writes ``output/report.html``, and tells whether each met its target.

    Beside it are ``graph.html``, the graph of the network, and ``memory.html``, what it remembers.
    """
    started = time.perf_counter()
    how = "compiled" if wengert.__compiled__ else "uncompiled"
    print(f"wengert {wengert.__version__} ({how}): three problems, solved with gradients")
    network = spirals.Settings.quick() if quick else spirals.Settings()
    results = Results(
        spirals=spirals.run(network),
        pendulum=pendulum.run(pendulum.Settings.quick() if quick else pendulum.Settings()),
        derivatives=derivatives.run(),
        tools=tools.run(network, output),
        quick=quick,
    )
    report = write_report(output, results, started)
    for target in results.targets():
        verdict = "ok    " if target.met else "FAILED"
        print(f"{verdict}  {target.name}: {target.value} (target: {target.goal})")
    print(f"{time.perf_counter() - started:.1f} s, report: {report}")
    print("to look around in: " + ", ".join(map(str, results.tools.pictures)))
    return all(target.met for target in results.targets())
