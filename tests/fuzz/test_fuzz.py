"""Random programs do what they do on PyTorch, or where there is none, what they plainly mean."""

from pathlib import Path

import pytest

from fuzz.checking import check
from fuzz.declared import TABLE
from fuzz.report import Report
from fuzz.seed import of_commit
from fuzz.supervision import supervise

SECONDS = 30  # of the compiled and of the uncompiled package each


def test_programs_of_this_commit():
    """A difference comes with a seed and a number, which `python -m fuzz` can run again."""
    report = Report(of_commit(), printing=False)
    supervise(report, SECONDS)
    assert not report.found, "\n".join([*report.found.values(), report.summary()])


def test_a_number_is_a_program():
    first, again = (check(1, 7)[0].program.text for _ in range(2))
    assert first == again


@pytest.mark.parametrize("reason", sorted({entry.reason for entry in TABLE}))
def test_declared_differences_are_documented(reason):
    page = Path(__file__).parents[2] / "docs" / "differences.md"
    text = " ".join(page.read_text(encoding="utf-8").replace("`", "").replace("*", "").split())
    assert reason.rstrip(".") in text
