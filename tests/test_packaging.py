"""What an installation consists of, and what importing it loads."""

import ast
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wengert
from wengert.core.loading import TOGETHER, SharedLibrary
from wengert.core.tensor import FRESH

PACKAGE = Path(wengert.__file__).parent
REPOSITORY = Path(__file__).parents[1]
EXTENSIONS = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def output_of(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_version_is_the_one_of_the_distribution():
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z.]+\d+)?", wengert.__version__)
    try:
        installed = importlib.metadata.version("wengert")
    except importlib.metadata.PackageNotFoundError:
        return
    assert wengert.__version__ == installed


def test_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.compiled_only
def test_compiled_package_is_the_installed_wheel():
    assert wengert.__compiled__
    assert PACKAGE.is_relative_to(sys.prefix)
    assert not PACKAGE.is_relative_to(REPOSITORY / "src")


@pytest.mark.compiled_only
def test_every_module_with_a_declaration_is_an_extension():
    declared = [
        path.relative_to(PACKAGE.parent).with_suffix("")
        for path in PACKAGE.rglob("*.pxd")
        if path.stem != "__init__" and path.with_suffix(".py").exists()  # not for C alone
    ]
    assert declared
    for module in declared:
        spec = importlib.util.find_spec(".".join(module.parts))
        assert spec is not None and spec.origin is not None
        assert spec.origin.endswith(EXTENSIONS), f"{spec.origin} is not compiled"


@pytest.mark.compiled_only
def test_the_import_opens_one_shared_library():
    """What every program needs lies in it, and nothing else: the list is neither short nor long."""
    found = output_of(
        "import sys, numpy\nbefore = set(sys.modules)\nimport wengert\n"
        "for name in set(sys.modules) - before:\n"
        "    print(name, getattr(sys.modules[name], '__file__', None))"
    )
    files = dict(line.split(maxsplit=1) for line in found.splitlines())
    compiled = {name: path for name, path in files.items() if path.endswith(EXTENSIONS)}
    assert set(compiled) == TOGETHER | {"wengert.creation.declare"}
    assert len(set(compiled.values())) == 2


def test_a_copy_of_the_package_finds_its_own_library(tmp_path):
    """Only modules below the folder of a library are looked up in it."""
    library = SharedLibrary(str(tmp_path), str(tmp_path / "_together.so"))
    name = "wengert.core.state"
    assert library.find_spec(name, [str(tmp_path / "core")]).origin == library.path
    assert library.find_spec(name, [str(PACKAGE / "core")]) is None
    assert library.find_spec("wengert.cli", [str(tmp_path)]) is None


def test_uncompiled_package_holds_no_extension():
    extensions = [path for path in PACKAGE.rglob("*") if path.name.endswith(EXTENSIONS)]
    assert bool(extensions) == wengert.__compiled__


def test_only_typed_modules_assign_fields_of_tensors():
    """Others use `set_fields`: plain assignments are refused, as those of a program are."""
    offenders = []
    for path in PACKAGE.rglob("*.py"):
        if path.with_suffix(".pxd").exists():
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                owner = ast.unparse(node.value)
                if node.attr in FRESH and owner not in ("self", "level", "state"):
                    offenders.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert offenders == []


def test_typed_modules_declare_the_functions_that_assign_fields_of_tensors():
    """A parameter that is not declared as a tensor is assigned to as if by a program."""
    offenders = []
    for path in PACKAGE.rglob("*.py"):
        declarations = path.with_suffix(".pxd")
        if not declarations.exists() or path.with_suffix(".pyx").exists():
            continue
        declared = declarations.read_text("utf-8")
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(function, ast.FunctionDef) or f" {function.name}(" in declared:
                continue
            parameters = {each.arg for each in function.args.args} - {"self", "state", "node"}
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Store)
                    and node.attr in FRESH
                    and ast.unparse(node.value) in parameters
                ):
                    offenders.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert offenders == []


def test_sources_never_import_torch():
    pattern = re.compile(r"^\s*(import|from)\s+torch\b", re.MULTILINE)
    offenders = [path for path in PACKAGE.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert offenders == []


def test_import_leaves_optional_modules_alone():
    loaded = set(output_of("import sys, wengert; print(*sys.modules)").split())
    assert "wengert" in loaded
    forbidden = {"scipy", "matplotlib", "tqdm", "cupy", "torch", "llvmlite", "triton", "mpi4py"}
    assert not loaded & forbidden
    assert not any(name.startswith(("wengert.demo", "wengert.viz")) for name in loaded)


def test_import_leaves_what_is_rarely_used_for_its_first_use():
    """What the import takes beyond that of NumPy is judged by benchmarks/import_time.py."""
    loaded = set(output_of("import sys, wengert; print(*sys.modules)").split())
    rooms = {
        "": {"_C", "compiler", "func", "library", "nn", "ops", "overrides"},
        "autograd.": {"anomaly_mode", "function", "functional", "profiler"},
        "tape.": {"anomaly", "inspection", "workers"},
        "tensor.": {"printing", "pickling", "numpy_functions"},
    }
    later = {f"wengert.{room}{name}" for room, names in rooms.items() for name in names}
    assert all(importlib.util.find_spec(name) for name in later)
    assert not loaded & later


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("setuptools"), reason="needs setuptools")
class TestBuildWithoutCompiler:
    def build(self, folder: Path, required: str | None) -> subprocess.CompletedProcess[str]:
        """Builds from a link to the sources, so that nothing is written into the repository."""
        for name in ("src", "setup.py", "pyproject.toml", "LICENSE", "README.md"):
            if (REPOSITORY / name).exists():
                (folder / name).symlink_to(REPOSITORY / name)
        environment = {
            **os.environ,
            "CC": str(folder / "no-such-compiler"),
            "WENGERT_REQUIRE_COMPILED": required or "",
        }
        environment.pop("PYTHONPATH", None)
        return subprocess.run(
            [sys.executable, "setup.py", "--quiet", "build"],
            cwd=folder,
            capture_output=True,
            text=True,
            env=environment,
        )

    def test_installs_the_same_modules_and_says_so_in_one_line(self, tmp_path):
        done = self.build(tmp_path, required=None)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if "uncompiled" in line]
        assert lines == [
            "wengert: installed uncompiled, which is slower: no working C compiler was found"
        ]
        built = list((tmp_path / "build").rglob("*"))
        assert not [path for path in built if path.name.endswith(EXTENSIONS)]
        names = {path.name for path in built}
        assert {"tensor.py", "tensor.pxd", "loops.py", "py.typed", "page.html"} <= names

    def test_says_why_when_it_is_imported(self, tmp_path):
        assert self.build(tmp_path, required=None).returncode == 0
        (built,) = (tmp_path / "build").glob("lib*")
        program = tmp_path / "program.py"
        program.write_text("import wengert\nimport wengert\nprint(wengert.ones(1).item())\n")
        environment = {**os.environ, "PYTHONPATH": str(built)}
        done, info = (
            subprocess.run(
                [sys.executable, "-P", *what], capture_output=True, text=True, env=environment
            )
            for what in ([program], ["-W", "ignore", "-m", "wengert", "info"])
        )
        assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr
        warning, line = done.stderr.splitlines()
        assert warning.startswith(f"{program}:1: UserWarning: Wengert is not compiled")
        assert "no working C compiler was found" in warning and line.strip() == "import wengert"
        assert "no working C compiler was found" in info.stdout and not info.stderr

    def test_is_an_error_where_compilation_is_required(self, tmp_path):
        done = self.build(tmp_path, required="1")
        assert done.returncode != 0
        assert "no-such-compiler" in done.stderr
