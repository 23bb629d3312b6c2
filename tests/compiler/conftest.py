"""Where compiled functions run in these tests.

Machine code is what `compile` makes by default. It takes time to make, so the uncompiled run tests
what is around it on the interpreter, and all operators are crossed with it in the full run only;
`native/` tests machine code itself.
"""

import os

import pytest

from wengert.compiler.native import program
from wengert.core.classes import COMPILED

#: Files with so many functions that making machine code of all takes too long.
WIDE = (
    "test_compiled_operators.py", "test_raising.py", "test_control_functions.py",
    "test_surroundings.py", "test_surroundings_kinds.py",
)  # fmt: skip


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """A failure to make machine code is an error here, not a reason to take the interpreter."""
    monkeypatch.setattr(program, "STRICT", True)


@pytest.fixture(autouse=True)
def backend(request, monkeypatch):
    path = request.node.path
    if "WENGERT_BACKEND" in os.environ or path.parent.name == "native":
        return
    if not COMPILED or (path.name in WIDE and not request.config.getoption("--full")):
        monkeypatch.setenv("WENGERT_BACKEND", "interpreter")
