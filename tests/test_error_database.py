"""Every call that PyTorch's database of operators lists as an error is one here, in its words."""

import importlib
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch")

TOOLS = Path(__file__).parents[1] / "tools"


def test_wrong_calls_raise_what_they_raise_in_pytorch(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    error_facts = importlib.import_module("error_facts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(error_facts.verdicts([]))
    for name in ("error_facts", "database"):
        sys.modules.pop(name)
    assert len(found) > 600  # PyTorch's database was read
    assert [each for each in found if each[1]] == []
