"""Counts what the architecture promises: rooms, the direction of imports, cycles, the five walks.

    python tools/house.py            prints the counts and every import that points upward
    python tools/house.py --walks    also runs five small programs and counts the files they pass

Imports inside functions and `cimport` lines count like all others. The walks run the uncompiled
source.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src"
#: The rooms within the compiler, from the bottom.
COMPILER = ("ir", "interpret", "passes", "trace", "autodiff", "run")
#: The rooms from the bottom; rooms of one floor do not import each other. A room within a room is
#: named by its path.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("backends",),
    ("tape",),
    ("dispatch",),
    ("transforms",),
    ("creation",),
    ("operators",),
    ("autograd",),
    ("tensor",),
    ("library",),
    ("utils", "func", "nn"),
    *((f"compiler.{room}",) for room in COMPILER),
    ("compiler",),
    # These use the package as programs do, by its public names.
    ("autograd.functional", "autograd.gradcheck", "tensor.numpy_functions", "_C",
     "_library", "demo"),
)  # fmt: skip
SURFACE = len(FLOORS) - 1
#: Imports that point upward on purpose, each on first use.
ALLOWED = {
    ("core.registry", "operators.catalogue"): "an operator is declared when it is asked for",
    ("dispatch.base_operator", "library.builtin"): "a schema in full is made on demand",
    ("dispatch.torch_dispatch", "library.overloads"): "overloads are made for the first handler",
    ("tensor.numpy_protocol", ""): "NumPy's functions are answered by public ones of the same name",
    ("tensor.numpy_protocol", "tensor.numpy_functions"): "the table of NumPy's other functions",
    ("autograd", "autograd.gradcheck"): "public names of the package",
    ("library.checks", "autograd.gradcheck"): "opcheck runs gradcheck where it is asked to",
}
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


class Import(NamedTuple):
    """One import of one of our modules by another; `late` if it stands inside a function."""

    source: str
    target: str
    line: int
    late: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    """The files of the package by the name of their module; a .pyx wins over its fallback."""
    found: dict[str, Path] = {}
    for suffix in ("py", "pyx"):
        for path in sorted((SOURCE / "wengert").rglob(f"*.{suffix}")):
            found[module_name(path)] = path
    return found


def room_of(module: str) -> str | None:
    """The room of a module; None for what lies at the top: the public surface."""
    parts = module.split(".")[1:]
    for depth in (2, 1):
        if ".".join(parts[:depth]) in FLOOR_OF:
            return ".".join(parts[:depth])
    return None


def absolute(module: str, is_package: bool, level: int, name: str | None) -> str:
    """The absolute name behind `from ...name import` in a module."""
    if not level:
        return name or ""
    parts = module.split(".")
    base = parts[: len(parts) - level + is_package]
    return ".".join(base + ([name] if name else []))


def python_imports(module: str, path: Path, known: dict[str, Path]) -> list[Import]:
    tree = ast.parse(path.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    found = []
    for node in ast.walk(tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [a.name for a in node.names if a.name.split(".")[0] == "wengert"]
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, path.stem == "__init__", node.level, node.module)
            if base.split(".")[0] == "wengert":
                names = [f"{base}.{a.name}" for a in node.names]
                targets = [name if name in known else base for name in names]
        found += [Import(module, t, node.lineno, id(node) in inside) for t in set(targets)]
    return found


def cython_imports(module: str, path: Path) -> list[Import]:
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r"\s*from (\.+)([\w.]*) c?import", line)
        if match:
            target = absolute(module, False, len(match[1]), match[2])
            found.append(Import(module, target, number, False))
    return found


def imports() -> list[Import]:
    """Every import of one of our modules by another."""
    known = modules()
    found = []
    for module, path in known.items():
        if path.suffix == ".py":
            found += python_imports(module, path, known)
        else:
            found += cython_imports(module, path)
        declarations = path.with_suffix(".pxd")
        if declarations.exists():
            found += cython_imports(module, declarations)
    return found


def pair(each: Import) -> tuple[str, str]:
    """The two modules of an import, named below the package."""
    return each.source.partition(".")[2], each.target.partition(".")[2]


def upward(found: list[Import]) -> list[Import]:
    """The imports from a lower room into a higher one, or between rooms of one floor."""
    wrong = []
    for each in found:
        source, target = room_of(each.source), room_of(each.target)
        if source is None or source == target or pair(each) in ALLOWED:
            continue
        if target is None:
            wrong += [each] if each.target == "wengert" and FLOOR_OF[source] < SURFACE else []
        elif FLOOR_OF[target] >= FLOOR_OF[source]:
            wrong.append(each)
    return wrong


def cycles(found: list[Import]) -> list[list[str]]:
    """Groups of modules that import each other, largest first; what is ALLOWED does not count."""
    edges: dict[str, set[str]] = defaultdict(set)
    for each in found:
        if pair(each) not in ALLOWED:
            edges[each.source].add(each.target)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups = []
    for root in list(edges):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                    groups.append(group)
    return sorted((g for g in groups if len(g) > 1), key=len, reverse=True)


def top_level() -> list[str]:
    return sorted(p.stem for p in (SOURCE / "wengert").glob("*.py"))


def walk(program: Callable[[], object]) -> tuple[int, int]:
    """How many of our files a program passes through, and how often it changes between them."""
    program()  # what is imported and declared on first use is no part of the way
    passed: list[str] = []
    package = str(SOURCE / "wengert")

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(package):
            passed.append(name)
        elif event == "return" and frame.f_back is not None:
            back = frame.f_back.f_code.co_filename
            if back.startswith(package):
                passed.append(back)

    sys.setprofile(note)
    try:
        program()
    finally:
        sys.setprofile(None)
    changes = sum(a != b for a, b in zip(passed, passed[1:], strict=False))
    return len(set(passed)), changes


def walks() -> dict[str, tuple[int, int]]:
    """The ways of five small programs: files and changes of file."""
    sys.path.insert(0, str(SOURCE))
    import wengert

    x, y = wengert.ones(3, requires_grad=True), wengert.ones(3)
    batched = wengert.func.vmap(wengert.func.grad(lambda t: (t * t).sum()))
    compiled = wengert.compile(lambda t: (t * 2).sum())

    double = wengert.library.custom_op(
        "house::double", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    rows = wengert.ones(2, 3)
    return {
        "x * y": walk(lambda: x * y),
        "(x * y).sum().backward()": walk(lambda: (x * y).sum().backward()),
        "vmap(grad(f))(rows)": walk(lambda: batched(rows)),
        "compile(f)(x)": walk(lambda: compiled(x)),
        "a custom operator": walk(lambda: double(y)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--walks", action="store_true", help="count the files of five programs")
    options = parser.parse_args()
    found = imports()
    wrong = upward(found)
    late = [each for each in found if each.late]
    print(f"modules {len(modules())}, at the top {len(top_level())}")
    print(f"imports inside functions {len(late)}")
    print(f"import cycles {[len(group) for group in cycles(found)]}")
    print(f"imports that point upward {len(wrong)}")
    pairs = Counter((room_of(e.source), room_of(e.target)) for e in wrong)
    for (source, target), count in sorted(pairs.items(), key=lambda item: -item[1]):
        print(f"  {source} -> {target}: {count}")
    for each in wrong:
        print(f"  {each.source}:{each.line} imports {each.target}{' late' * each.late}")
    for program, (files, changes) in walks().items() if options.walks else ():
        print(f"{program}: {files} files, {changes} changes of file")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
