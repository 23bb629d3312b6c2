"""The ``wengert`` command: ``wengert demo`` and ``wengert info``."""

import argparse
import importlib.util
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import wengert

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 is success, 1 a failed command, 2 wrong usage, 130 an interrupt."""
    options = make_parser().parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        print("wengert: interrupted", file=sys.stderr)
        return 130


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
        "through its simulation, checks higher derivatives against closed forms, and writes what "
        "happened to DIR/report.html. Fails if a result misses its target.",
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
    missing = [name for name in ("matplotlib", "tqdm") if not importlib.util.find_spec(name)]
    if missing:
        print(
            f"wengert: the demo needs {' and '.join(missing)}: pip install wengert[demo]",
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
    cupy, cuda_devices = describe_cupy()
    how = "compiled" if wengert.__compiled__ else "not compiled: the same modules, slower"
    interpreter = f"{platform.python_version()} ({platform.python_implementation()})"
    return [
        ("wengert", f"{wengert.__version__} ({how})"),
        ("location", str(Path(wengert.__file__).parent)),
        ("python", f"{interpreter} on {platform.system()} {platform.machine()}"),
        ("backends", f"numpy {describe_numpy()}; cupy {cupy}"),
        ("devices", ", ".join(["cpu", "meta", *cuda_devices])),
        ("threads", describe_threads()),
    ]


def describe_numpy() -> str:
    import numpy

    dependencies = numpy.show_config(mode="dicts") or {}
    blas = dependencies.get("Build Dependencies", {}).get("blas", {})
    library = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    return f"{numpy.__version__} (BLAS: {library})"


def describe_cupy() -> tuple[str, list[str]]:
    """The state of CuPy and the CUDA devices it sees; CuPy is imported only where installed."""
    if not importlib.util.find_spec("cupy"):
        return "not installed", []
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
        return str(cupy.__version__), [f"cuda:{index}" for index in range(count)]
    except Exception as error:
        return f"installed, without a usable device ({type(error).__name__})", []


def describe_threads() -> str:
    """How many threads matrix products use, and where that number comes from."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for variable in THREAD_VARIABLES:
        if os.environ.get(variable, "").isdigit():
            return f"{os.environ[variable]} ({variable}; {usable} processors usable)"
    return f"{usable} (all usable processors)"
