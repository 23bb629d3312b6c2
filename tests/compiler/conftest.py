"""Where compiled functions run in these tests.

Machine code is what `compile` makes by default. Uncompiled, the tests of everything around it are
run on the interpreter, which takes no time to prepare; `native/` tests machine code itself.
"""

import os

import pytest

from wengert.core.classes import COMPILED


@pytest.fixture(autouse=True)
def backend(request, monkeypatch):
    chosen = "WENGERT_BACKEND" in os.environ or "compiler/native" in request.node.path.as_posix()
    if not COMPILED and not chosen:
        monkeypatch.setenv("WENGERT_BACKEND", "interpreter")
