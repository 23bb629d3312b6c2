"""The architecture: imports point down, and the counts that docs/design.md quotes hold."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import house  # noqa: E402

#: Where a newcomer looks for a behaviour, by docs/design.md section 1: file and what it defines.
PLACES = {
    "what a tensor consists of": ("core/tensor.py", "class Tensor"),
    "what a thread carries": ("core/state.py", "class ThreadState"),
    "dtypes and promotion": ("core/dtypes.py", "def promote_types"),
    "modes that survive interrupts": ("core/scopes.py", "class Restoring"),
    "operators by name": ("core/registry.py", "def operator_named"),
    "what an array class offers": ("backends/backend.py", "class Backend"),
    "shape-only arrays": ("backends/meta.py", "class MetaArray"),
    "nodes of the graph": ("tape/node.py", "class Node"),
    "what nodes save": ("tape/saved.py", "class SavedVariable"),
    "where gradients are added up": ("tape/accumulation.py", "class AccumulateGrad"),
    "changes through views": ("tape/copy_slices.py", "class CopySlices"),
    "the walk backward": ("tape/engine.py", "def run_node"),
    "errors that name lines": ("tape/blame.py", "def modified_in_place_error"),
    "one call of an operator": ("dispatch/operator.py", "class Operator"),
    "in-place calls": ("dispatch/inplace.py", "class InplaceOperator"),
    "transform levels": ("dispatch/levels.py", "class Level"),
    "overridden functions": ("dispatch/torch_function.py", "def override_operator"),
    "batch rules": ("transforms/batching/rules.py", "def broadcast"),
    "factories": ("creation/factories.py", "def zeros"),
    "what a declaration is": ("operators/declare.py", "def elementwise"),
    "the text of a tensor": ("tensor/printing.py", "def tensor_repr"),
    "custom operators": ("library/custom_ops.py", "def custom_op"),
    "differentiation of graphs": ("compiler/autodiff/differentiate.py", "def differentiate"),
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


def test_counts_do_not_grow(imports):
    assert len(house.top_level()) <= 16
    assert len([each for each in imports if each.late]) <= 128
    assert max(map(len, house.cycles(imports))) <= 14


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
    "autograd/function_node.py": SHORT_WAY,
    "compiler/run/compile.py": GIVEN,
    "compiler/run/guards.py": SHORT_WAY,
    "compiler/run/walk.py": GIVEN,
    "core/arrays.py": "arrays that mark a tensor are NumPy's by construction",
    "core/dtypes.py": SHORT_WAY,
    "core/native.py": "loops of NumPy's arrays",
    "creation/conversion.py": GIVEN,
    "creation/factories.py": SHORT_WAY,
    "creation/sampling.py": "random numbers are drawn by NumPy",
    "dispatch/binding.py": GIVEN,
    "dispatch/declaration.py": SHORT_WAY,
    "dispatch/inplace.py": SHORT_WAY,
    "dispatch/levels.py": "arrays of transform levels are NumPy's by construction",
    "dispatch/operator.py": SHORT_WAY,
    "dispatch/overlap.py": SHORT_WAY,
    "library/arguments.py": GIVEN,
    "library/operator.py": SHORT_WAY,
    "operators/declare.py": SHORT_WAY,
    "operators/getitem.py": GIVEN,
    "tape/engine.py": SHORT_WAY,
    "tensor/attributes.py": SHORT_WAY,
    "tensor/methods.py": GIVEN,
    "tensor/numpy_functions.py": GIVEN,
    "tensor/numpy_protocol.py": GIVEN,
    "tensor/pickling.py": SHORT_WAY,
    "transforms/access.py": "arrays of transform levels are NumPy's by construction",
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
