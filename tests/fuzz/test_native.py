"""Random programs with compiled functions and control flow, as machine code: as PyTorch does."""

import math

import pytest

from fuzz import checking
from fuzz.report import Report
from fuzz.supervision import supervise

SEED = 21
PROGRAMS, PARTS = 2000, 20


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS))
def test_programs_as_machine_code(part, monkeypatch):
    monkeypatch.setenv("WENGERT_BACKEND", "native")
    monkeypatch.setattr(checking, "ONLY", ["graph"])
    report = Report(SEED, printing=False)
    count = PROGRAMS // PARTS
    supervise(report, math.inf, first=part * count, last=(part + 1) * count - 1)
    assert not report.found, "\n".join([*report.found.values(), report.summary()])
    assert set(report.ran) == {"graph"}
    assert report.ran["graph"] > 0.95 * count  # PyTorch ends the process at some
