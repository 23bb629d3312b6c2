"""Programs written for PyTorch, run unchanged: this package under the name `torch`.

    python -m wengert.as_torch program.py arguments      runs a program
    pytest -p wengert.as_torch                           runs its tests
    wengert.as_torch.install()                           in a program, before it imports torch

`import torch`, `import torch.nn.functional as F` and `from torch.func import vmap` then give this
package and its modules, in this process. What is missing says so where it is imported.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import wengert

from .core.missing import explanation, reason_of
from .core.spelling import call_package
from .version import TorchVersion

#: The version of PyTorch whose names, signatures and behaviour are followed.
FOLLOWED = "2.13.0"


class _Alias:
    """Loads a module of this package under its other name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.module = import_module(self.name)
        self.own_spec = self.module.__spec__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.own_spec  # the import system has put the alias there


class _Names:
    """Finds `torch.x.y` as `wengert.x.y`, ahead of other finders."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("torch."):
            return None
        below = name.removeprefix("torch.")
        ours = f"wengert.{below}"
        if ours not in sys.modules and not _exists(ours):
            raise _missing(name)
        module_loader: Any = _Alias(ours)
        return ModuleSpec(name, module_loader, is_package=True)


class _Explanations:
    """Says of names that no other finder has found what they are."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("wengert.") and _called_for_a_name():
            raise _missing("torch." + name.removeprefix("wengert."))


def _called_for_a_name() -> bool:
    """Whether ``from module import name`` looks for a module: its error would tell nothing."""
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _missing(name: str) -> ModuleNotFoundError:
    parent, _, last = name.rpartition(".")
    ours = "wengert" + parent.removeprefix("torch")
    below = name.removeprefix("torch.")
    for length in range(1, below.count(".") + 2):  # the reason may be one of what is around it
        outer = ".".join(below.split(".")[:length])
        if reason_of(outer)[0]:
            within, _, last = f"wengert.{outer}".rpartition(".")
            return ModuleNotFoundError(explanation(within, last), name=name)
    return ModuleNotFoundError(explanation(ours, last), name=name)


_names, _explanations = _Names(), _Explanations()


def install() -> None:
    """Let `import torch` give this package from now on, in this process."""
    present = sys.modules.get("torch")
    if present is wengert:
        return
    if present is not None:
        raise RuntimeError(
            "wengert.as_torch: PyTorch itself is imported already, as "
            f"{getattr(present, '__file__', 'torch')}; install before anything imports torch"
        )
    sys.modules["torch"] = wengert
    finders: list[Any] = sys.meta_path
    finders.insert(0, _names)
    finders.append(_explanations)
    call_package("torch")
    wengert.__version__ = TorchVersion(f"{FOLLOWED}+wengert.{wengert.__version__}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program with its arguments, or a module after ``-m``."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help") or given == ["-m"]:
        print("usage: python -m wengert.as_torch (program.py | -m module) [arguments ...]")
        return 0 if given and given[0] in ("-h", "--help") else 2
    install()
    if given[0] == "-m":
        sys.argv[:] = given[1:]
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)
        return 0
    sys.argv[:] = given
    sys.path.insert(0, str(Path(given[0]).resolve().parent))
    runpy.run_path(given[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    # Installed by the module that others import, not by the copy that Python runs.
    sys.exit(import_module("wengert.as_torch").main())


def pytest_load_initial_conftests() -> None:
    """Installed for `pytest -p wengert.as_torch`, before any test is imported."""
    install()
