"""Whole programs written for PyTorch print through `as_torch` what they print there.

The programs are in `programs/`, what PyTorch prints in `programs/printed/`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wengert

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
LOSS = re.compile(rf"\b[Ll]oss\b\W*?({NUMBER.pattern})")


def run(*arguments):
    """What a program prints, in a process of its own that sees the tested package alone."""
    path = str(Path(wengert.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=FOLDER, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(printed, name):
    """Losses agree to 1e-4, other numbers in what is printed of them, and all other text."""
    expected = (FOLDER / "printed" / f"{name}.txt").read_text(encoding="utf-8")
    its_losses = [float(loss) for loss in LOSS.findall(expected)]
    assert len(its_losses) == (0 if name == "idioms" else 10)
    assert [float(loss) for loss in LOSS.findall(printed)] == pytest.approx(its_losses, rel=1e-4)
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    numbers, its_numbers = ([float(n) for n in NUMBER.findall(t)] for t in (printed, expected))
    assert numbers == pytest.approx(its_numbers, rel=1e-2, abs=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_through_as_torch(name):
    check(run("-m", "wengert.as_torch", f"{name}.py"), name)


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_expected_is_what_pytorch_prints(name):
    pytest.importorskip("torch")
    check(run(f"{name}.py"), name)


def test_all_programs_are_there():
    assert len(PROGRAMS) == 18 + 1  # programs, and a collection of idioms
