"""Counts what the architecture promises: rooms, the direction of imports, cycles, the five walks.

    python tools/house.py               prints the counts and every import that points upward
    python tools/house.py --list        also prints where each thing counted stands
    python tools/house.py --walks       also runs five small programs and counts the files they pass
    python tools/house.py --contracts   writes the rooms into pyproject.toml, for import-linter

Imports inside functions and `cimport` lines count like all others. The walks run the uncompiled
source: each call of one of our Python functions is a step, in the file that defines it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
#: The rooms within the compiler, from the bottom.
COMPILER = ("ir", "interpret", "passes", "trace", "autodiff", "native", "run")
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
    ("utils", "func", "nn", "signal", "masked"),
    ("distributions",),
    ("serialization",),
    ("optim",),
    *((f"compiler.{room}",) for room in COMPILER),
    ("compiler",),
    ("amp", "testing"),
    ("__future__", "cuda", "distributed", "jit"),
    ("viz",),
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


def files() -> list[tuple[str, Path]]:
    """Every source file with the name of its module: a .pyx and its fallback are two files."""
    suffixes = ("py", "pyx")
    return [
        (module_name(path), path)
        for suffix in suffixes
        for path in sorted((SOURCE / "wengert").rglob(f"*.{suffix}"))
    ]


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


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def python_imports(module: str, path: Path, known: set[str]) -> list[Import]:
    tree = tree_of(path)
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
            found.append(Import(module, target, number, line[0] == " "))
    return found


def imports() -> list[Import]:
    """Every import of one of our modules by another."""
    known = {module for module, _ in files()}
    found = []
    for module, path in files():
        if path.suffix == ".py":
            found += python_imports(module, path, known)
        else:
            found += cython_imports(module, path)
    for declarations in sorted((SOURCE / "wengert").rglob("*.pxd")):
        found += cython_imports(module_name(declarations), declarations)
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


class Finding(NamedTuple):
    """A place in the source, and what stands there."""

    file: str
    line: int
    what: str


def findings(look: Callable[[ast.AST], str | None]) -> list[Finding]:
    """What `look` finds in the syntax trees of all Python files."""
    return [
        Finding(str(path.relative_to(SOURCE)), getattr(node, "lineno", 1), what)
        for _, path in files()
        if path.suffix == ".py"
        for node in ast.walk(tree_of(path))
        if (what := look(node)) is not None
    ]


def level_kind_tests() -> list[Finding]:
    """Comparisons of the kind of a transform level, which a method of the level should answer."""

    def look(node: ast.AST) -> str | None:
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                is_kind = isinstance(side, ast.Attribute) and side.attr == "kind"
                if is_kind and "level" in ast.unparse(side):
                    return ast.unparse(node)
        return None

    return findings(look)


def ndarray_tests() -> list[Finding]:
    """Tests for NumPy's own array class above `backends/`, which another array class fails."""

    def names_ndarray(node: ast.AST) -> bool:
        return any(
            (isinstance(each, ast.Name) and each.id.lstrip("_") == "ndarray")
            or (isinstance(each, ast.Attribute) and each.attr == "ndarray")
            for each in ast.walk(node)
        )

    def look(node: ast.AST) -> str | None:
        if isinstance(node, ast.Compare):
            tested = any(map(names_ndarray, (node.left, *node.comparators)))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            tested = names_ndarray(node.args[1])
        else:
            tested = False
        return ast.unparse(node) if tested else None

    def is_above(finding: Finding) -> bool:
        room = room_of(module_name(SOURCE / finding.file))
        return room is None or FLOOR_OF[room] > FLOOR_OF["backends"]

    return [finding for finding in findings(look) if is_above(finding)]


def leaning_docstrings() -> list[Finding]:
    """Docstrings that begin "The same" and say nothing to who has not read the one before.

    What a declaration calls `doc` becomes one.
    """

    def look(node: ast.AST) -> str | None:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
        elif isinstance(node, ast.keyword) and node.arg == "doc":
            text = str(getattr(node.value, "value", ""))
        else:
            return None
        return text.splitlines()[0] if text.startswith("The same") else None

    return findings(look)


def hooks() -> list[Finding]:
    """Functions named bind_*: most hand a lower module what a higher one knows."""

    def look(node: ast.AST) -> str | None:
        named = isinstance(node, ast.FunctionDef) and node.name.startswith("bind_")
        return node.name if named else None  # type: ignore[attr-defined]

    return findings(look)


#: What is counted beside imports, by what is printed.
COUNTED = {
    "tests of the kind of a level": level_kind_tests,
    "tests for numpy.ndarray above backends/": ndarray_tests,
    'docstrings that begin "The same"': leaning_docstrings,
    "functions named bind_*": hooks,
}


def walk(program: Callable[[], object]) -> tuple[int, int]:
    """How many of our files a program calls functions of, and how often the file changes."""
    for _ in range(3):  # what is imported and declared on first use is no part of the way
        program()
    passed: list[str] = []
    package = str(SOURCE / "wengert")

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(package):
            passed.append(name)

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


BEGIN, END = "# rooms: begin, written by tools/house.py --contracts", "# rooms: end"


def quoted_list(names: Iterable[str]) -> str:
    """Strings as the lines of a list in TOML."""
    return "".join(f'    "{name}",\n' for name in names)


def contracts() -> str:
    """The rooms as contracts of import-linter, which follows chains of imports as well.

    It knows no room within a room: those on the surface are free to import and protected from
    being imported.
    """
    within = [room for room in FLOORS[SURFACE] if "." in room]
    inner_rooms = quoted_list(reversed(COMPILER))

    exceptions = "".join(
        f'    "{".".join(filter(None, ("wengert", source)))} -> '
        f'{".".join(filter(None, ("wengert", target)))}",  # {reason}\n'
        for (source, target), reason in ALLOWED.items()
    )
    freed = quoted_list(
        [
            f"wengert.{room}{inner} -> wengert{target}"
            for room in within
            for inner in ("", ".**")
            for target in ("", ".**")
        ]
    )
    layers = quoted_list(
        [
            " | ".join(f"wengert.{room}" for room in rooms if "." not in room)
            for rooms in reversed(FLOORS)
            if any("." not in room for room in rooms)
        ]
    )
    return f"""{BEGIN}
[tool.importlinter]
root_package = "wengert"

[[tool.importlinter.contracts]]
id = "floors"
name = "Imports point down"
type = "layers"
layers = [
{layers}]
ignore_imports = [
{exceptions}    # They use the package as programs do.
{freed}]
unmatched_ignore_imports_alerting = "none"

[[tool.importlinter.contracts]]
id = "compiler"
name = "Imports within the compiler point down"
type = "layers"
containers = ["wengert.compiler"]
layers = [
{inner_rooms}]

[[tool.importlinter.contracts]]
id = "surface"
name = "What lies on the surface is imported by programs"
type = "protected"
protected_modules = [
{quoted_list([f"wengert.{room}" for room in within])}]
allowed_importers = [
{quoted_list([f"wengert.{room}" for room in FLOORS[SURFACE]])}]
ignore_imports = [
{exceptions}]
unmatched_ignore_imports_alerting = "none"
{END}
"""


def write_contracts() -> None:
    """Put the contracts into pyproject.toml, in place of those that stand there."""
    file = ROOT / "pyproject.toml"
    text = file.read_text()
    if BEGIN in text:
        before, _, rest = text.partition(BEGIN)
        text = before + contracts() + rest.partition(END + "\n")[2]
    else:
        text += "\n" + contracts()
    file.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print where each thing counted is")
    parser.add_argument("--walks", action="store_true", help="count the files of five programs")
    parser.add_argument("--contracts", action="store_true", help="write pyproject.toml's contracts")
    options = parser.parse_args()
    if options.contracts:
        write_contracts()
        return 0
    found = imports()
    wrong = upward(found)
    late = [each for each in found if each.late]
    names = {module for module, _ in files()}
    print(f"modules {len(names)}, at the top {len(top_level())}")
    print(f"imports inside functions {len(late)}")
    for each in late if options.list else ():
        print(f"  {each.source}:{each.line} imports {each.target}")
    print(f"import cycles {[len(group) for group in cycles(found)]}")
    for group in cycles(found) if options.list else ():
        print(f"  {' '.join(sorted(group))}")
    print(f"imports that point upward {len(wrong)}")
    pairs = Counter((room_of(e.source), room_of(e.target)) for e in wrong)
    for (source, target), count in sorted(pairs.items(), key=lambda item: -item[1]):
        print(f"  {source} -> {target}: {count}")
    for each in wrong:
        print(f"  {each.source}:{each.line} imports {each.target}{' late' * each.late}")
    for title, count_them in COUNTED.items():
        counted = count_them()
        print(f"{title} {len(counted)}")
        for finding in counted if options.list else ():
            print(f"  {finding.file}:{finding.line} {finding.what}")
    for program, (passed, changes) in walks().items() if options.walks else ():
        print(f"{program}: {passed} files, {changes} changes of file")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
