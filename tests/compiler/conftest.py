"""Where compiled functions run in these tests.

Machine code is what `compile` makes by default. Uncompiled, the tests of everything around it are
run on the interpreter, which takes no time to prepare; `native/` tests machine code itself.
"""

import pytest

from wengert.core.classes import COMPILED


@pytest.fixture(autouse=True)
def backend(request, monkeypatch):
    if not COMPILED and "compiler/native" not in request.node.path.as_posix():
        monkeypatch.setenv("WENGERT_BACKEND", "interpreter")
