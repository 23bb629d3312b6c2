"""The architecture: imports point down, and the counts that docs/design.md quotes hold."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import house  # noqa: E402

# It is about the source, which is the same for both forms of the package.
pytestmark = pytest.mark.slow

#: Where a newcomer looks for a behaviour, by docs/design.md section 1: file and what it defines.
PLACES = {
    "what a tensor consists of": ("core/tensor.py", "class Tensor"),
    "what a thread carries": ("core/state.py", "class ThreadState"),
    "dtypes and promotion": ("core/dtypes.py", "def promote_types"),
    "modes that survive interrupts": ("core/scopes.py", "class Restoring"),
    "operators by name": ("core/registry.py", "def operator_named"),
    "which line of the program runs": ("core/frames.pyx", "cdef class Frames"),
    "loops over small arrays": ("backends/loops.pyx", "cdef class Loops"),
    "what an array class offers": ("backends/backend.py", "class Backend"),
    "shape-only arrays": ("backends/meta.py", "class MetaArray"),
    "nodes of the graph": ("tape/node.py", "class Node"),
    "what nodes save": ("tape/saved.py", "class SavedVariable"),
    "where gradients are added up": ("tape/accumulation.py", "def add_gradient"),
    "changes through views": ("tape/copy_slices.py", "class CopySlices"),
    "the walk backward": ("tape/engine.py", "def run_node"),
    "errors that name lines": ("tape/blame.py", "def modified_in_place_error"),
    "one call of an operator": ("dispatch/operator.py", "class Operator"),
    "in-place calls": ("dispatch/inplace.py", "class InplaceOperator"),
    "transform levels": ("dispatch/levels.py", "class Level"),
    "overridden functions": ("dispatch/torch_function.py", "def override_operator"),
    "batch rules": ("transforms/batching/rules.py", "def broadcast"),
    "what grad, jvp and vmap do": ("transforms/levels.py", "class VmapLevel"),
    "factories": ("creation/factories.py", "def zeros"),
    "what a declared factory is": ("creation/declare.py", "class Maker"),
    "what draws inside transforms": ("creation/drawing.py", "def sizes_drawn"),
    "factories in the eyes of modes": ("dispatch/effects.py", "class Effect"),
    "what a declaration is": ("operators/declare.py", "def elementwise"),
    "the text of a tensor": ("tensor/printing.py", "def tensor_repr"),
    "custom operators": ("library/custom_ops.py", "def custom_op"),
    "differentiation of graphs": ("compiler/autodiff/differentiate.py", "def differentiate"),
}

#: What there may be at most of what is to become less; `python tools/house.py --list` shows where.
MOST = {
    "tests of the kind of a level": 0,
    "tests for numpy.ndarray above backends/": 59,
    'docstrings that begin "The same"': 0,
    "functions named bind_*": 2,
}


@pytest.fixture(scope="module")
def imports():
    return house.imports()


def test_imports_point_down(imports):
    wrong = [f"{e.source}:{e.line} imports {e.target}" for e in house.upward(imports)]
    assert not wrong, "\n".join(wrong)


def test_allowed_exceptions_are_used(imports):
    pairs = {house.pair(each) for each in imports}
    assert set(house.ALLOWED) <= pairs


def test_every_folder_is_a_room():
    package = house.SOURCE / "wengert"
    folders = {p.name for p in package.iterdir() if (p / "__init__.py").exists()}
    assert folders <= set(house.FLOOR_OF)
    inner = {p.name for p in (package / "compiler").iterdir() if (p / "__init__.py").exists()}
    assert inner == set(house.COMPILER)


def test_the_compiler_is_in_order(imports):
    own = [each for each in imports if each.source.startswith("wengert.compiler")]
    late = [house.pair(each) for each in own if each.late]
    # Custom operators are those of programs: without any, the library is not needed.
    assert len(late) <= 3 and all(target.startswith("library.") for _, target in late), late
    assert max(map(len, house.cycles(own)), default=0) <= 3


def test_counts_do_not_grow(imports):
    assert len(house.top_level()) <= 16
    assert len([each for each in imports if each.late]) <= 30
    assert max(map(len, house.cycles(imports))) <= 3


@pytest.mark.parametrize(("counted", "most"), MOST.items())
def test_what_should_go_does_not_grow(counted, most):
    found = house.COUNTED[counted]()
    assert len(found) <= most, "\n".join(f"{f.file}:{f.line} {f.what}" for f in found)


def test_every_count_has_a_limit():
    assert MOST.keys() == house.COUNTED.keys()


BADLY_WRITTEN = '''"""A module of the tape."""
from numpy import ndarray as _ndarray
from ..core import state


def bind_hook(level, array):
    """The same as before."""
    from ..dispatch import operator
    if level.kind == "vmap" and node.kind == "add":
        return isinstance(array, (int, _ndarray)) and type(array) is not _ndarray
    declare(doc="The same again.")
'''


def test_the_counts_find_what_they_count(monkeypatch, tmp_path):
    for room in ("core", "tape", "dispatch"):
        (tmp_path / "wengert" / room).mkdir(parents=True)
    (tmp_path / "wengert" / "tape" / "written.py").write_text(BADLY_WRITTEN)
    (tmp_path / "wengert" / "core" / "below.py").write_text("f = lambda x: type(x) is ndarray\n")
    (tmp_path / "wengert" / "core" / "state.pyx").write_text("from ..tape.written cimport Node\n")
    (tmp_path / "wengert" / "core" / "state.py").write_text("")
    (tmp_path / "wengert" / "dispatch" / "operator.py").write_text("")
    monkeypatch.setattr(house, "SOURCE", tmp_path)
    counts = [len(count()) for count in house.COUNTED.values()]
    assert counts == [1, 2, 2, 1]
    imports = house.imports()
    assert sorted(house.pair(each) for each in house.upward(imports)) == [
        ("core.state", "tape.written"),
        ("tape.written", "dispatch.operator"),
    ]
    assert [each.line for each in imports if each.late] == [8]
    (cycle,) = house.cycles(imports)
    assert sorted(cycle) == ["wengert.core.state", "wengert.tape.written"]


def test_contracts_are_those_of_the_rooms():
    """`python tools/house.py --contracts` writes them; `lint-imports` judges by them."""
    assert house.contracts() in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("behaviour", PLACES)
def test_behaviours_are_where_the_page_says(behaviour):
    file, definition = PLACES[behaviour]
    source = (house.SOURCE / "wengert" / file).read_text()
    assert definition in source
    room = file.partition("/")[0]
    assert f"| `{room}/`" in (ROOT / "docs" / "design.md").read_text()


SHORT_WAY = "the short way of NumPy's arrays; others fall through to their backend"
GIVEN = "NumPy arrays that users give or get"
#: Where NumPy's array class is named outside of `backends/`, and why.
NUMPY_CLASS = {
    "autograd/__init__.py": SHORT_WAY,
    "autograd/function_call.py": SHORT_WAY,
    "autograd/function_node.py": SHORT_WAY,
    "compiler/run/compile.py": GIVEN,
    "compiler/run/guards.py": SHORT_WAY,
    "compiler/run/walk.py": GIVEN,
    "compiler/trace/level.py": "arrays of transform levels are NumPy's by construction",
    "core/arrays.py": "arrays that mark a tensor are NumPy's by construction",
    "core/dtypes.py": SHORT_WAY,
    "core/ndarrays.py": "questions about NumPy's arrays",
    "creation/conversion.py": GIVEN,
    "creation/factories.py": SHORT_WAY,
    "creation/sampling.py": "random numbers are drawn by NumPy",
    "dispatch/binding.py": GIVEN,
    "dispatch/declaration.py": SHORT_WAY,
    "dispatch/inplace.py": SHORT_WAY,
    "dispatch/levels.py": "arrays of transform levels are NumPy's by construction",
    "dispatch/operator.py": SHORT_WAY,
    "dispatch/overlap.py": SHORT_WAY,
    "dispatch/schema_values.py": GIVEN,
    "library/operator.py": SHORT_WAY,
    "operators/declare.py": SHORT_WAY,
    "operators/getitem.py": GIVEN,
    "tape/engine.py": SHORT_WAY,
    "tape/node.py": SHORT_WAY,
    "tensor/attributes.py": SHORT_WAY,
    "tensor/methods.py": GIVEN,
    "tensor/numpy_functions.py": GIVEN,
    "tensor/numpy_protocol.py": GIVEN,
    "tensor/pickling.py": SHORT_WAY,
    "utils/data/collate.py": "examples of datasets may be NumPy arrays, which become tensors",
}


def _names_numpys_class(source):
    """Whether code, annotations apart, names the class."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                setattr(node, field, ast.Constant(None))
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "ndarray")
        or (isinstance(node, ast.Name) and node.id == "_ndarray")
        for node in ast.walk(tree)
    )


def test_modules_that_name_numpys_array_class():
    package = house.SOURCE / "wengert"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] != "backends"
        and _names_numpys_class(path.read_text())
    }
    assert found <= set(NUMPY_CLASS), "ask the array's backend, or give a reason here"


@pytest.mark.full
def test_the_ways_of_backward_and_of_transforms_are_short():
    """In a process of its own, which runs the uncompiled source."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", house.__file__, "--walks"],
        env={**os.environ, "PYTHONPATH": str(house.SOURCE)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    for program, files, changes in (
        (r"backward\(\)", 14, 40),
        (r"vmap\(grad\(f\)\)\(rows\)", 36, 220),
    ):
        found = re.search(program + r": (\d+) files, (\d+) changes", done.stdout)
        assert found is not None
        assert int(found[1]) <= files and int(found[2]) <= changes
