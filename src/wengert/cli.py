"""The ``wengert`` command: ``wengert demo`` and ``wengert info``."""

import argparse
import importlib.util
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import wengert
from wengert.core.installation import reason_uncompiled

#: What the extra `demo` installs, by the names under which it is imported.
DEMO_NEEDS = ("jinja2", "llvmlite", "matplotlib", "pygments", "pygraphviz", "tqdm")
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 is success, 1 a failed command, 2 wrong usage, 130 an interrupt.

    141, as of a program that the signal ended, when nobody reads the output any more.
    """
    options = make_parser().parse_args(arguments)
    try:
        status = options.command(options)
        sys.stdout.flush()  # here, where a closed pipe can be told
        return status
    except KeyboardInterrupt:
        print("wengert: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # What is left in the buffer must not be tried again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wengert", description="Eager automatic differentiation on NumPy."
    )
    parser.add_argument("--version", action="version", version=f"wengert {wengert.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    demo = commands.add_parser(
        "demo",
        help="train, fit and differentiate three examples and write a report",
        description="Trains a classifier, recovers the constants of a pendulum by differentiating "
        "through its simulation, checks higher derivatives against closed forms, compiles and "
        "draws the classifier's graph, and writes what happened to DIR/report.html, beside pages "
        "with the graph and the memory it holds. Fails if a result misses its target.",
    )
    demo.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path("demo"),
        help="folder of the report, made if missing (default: %(default)s)",
    )
    demo.add_argument(
        "--quick", action="store_true", help="smaller problems: a few seconds on any machine"
    )
    demo.set_defaults(command=run_demo)

    info = commands.add_parser(
        "info",
        help="show the version, how it was built, backends, devices and threads",
        description="Shows what is installed and what it can run on.",
    )
    info.set_defaults(command=show_info)
    return parser


def run_demo(options: argparse.Namespace) -> int:
    missing = [name for name in DEMO_NEEDS if not importlib.util.find_spec(name)]
    if missing:
        print(
            f"wengert: the demo needs {', '.join(missing)}: "
            f"{sys.executable} -m pip install {' '.join(missing)}",
            file=sys.stderr,
        )
        return 1
    from wengert.demo.run import run

    return 0 if run(options.output, quick=options.quick) else 1


def show_info(options: argparse.Namespace) -> int:
    for name, value in describe_installation():
        print(f"{name:<9} {value}")
    return 0


def describe_installation() -> list[tuple[str, str]]:
    """Facts about this installation as (name, text) rows."""
    how = "compiled" if wengert.__compiled__ else "not compiled: the same modules, slower"
    if reason := reason_uncompiled():
        how += f", because {reason}"
    interpreter = f"{platform.python_version()} ({platform.python_implementation()})"
    return [
        ("wengert", f"{wengert.__version__} ({how})"),
        ("location", str(Path(wengert.__file__).parent)),
        ("python", f"{interpreter} on {platform.system()} {platform.machine()}"),
        ("backends", f"numpy {describe_numpy()}"),
        ("devices", "cpu, meta"),
        ("threads", describe_threads()),
    ]


def describe_numpy() -> str:
    import numpy

    dependencies = numpy.show_config(mode="dicts") or {}
    blas = dependencies.get("Build Dependencies", {}).get("blas", {})
    library = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    return f"{numpy.__version__} (BLAS: {library})"


def describe_threads() -> str:
    """How many threads matrix products use, and where that number comes from."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for variable in THREAD_VARIABLES:
        if os.environ.get(variable, "").isdigit():
            return f"{os.environ[variable]} ({variable}; {usable} processors usable)"
    return f"{usable} (all usable processors)"
