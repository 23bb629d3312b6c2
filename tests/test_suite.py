"""The suite itself: in folders of any name, and on a machine without PyTorch."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def without_pytest() -> dict[str, str]:
    """The environment without what the running suite has put there."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}


def test_without_pytorch_the_skipped_tests_are_one_line():
    files = [str(TESTS / name) for name in ("test_printing.py", "behaviour/test_numbers.py")]
    program = (
        "import sys, pytest; sys.modules['torch'] = None; "
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *{files}]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True, text=True, cwd=TESTS.parent, env=without_pytest(),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    (line,) = re.findall("^SKIPPED.*", done.stdout, re.MULTILINE)
    assert "PyTorch, to compare with, is not installed" in line
    assert f"{re.search('[0-9]+', line)[0]} skipped" in done.stdout


@pytest.mark.parametrize(("options", "found"), [([], 0), (["--full"], 1)])
def test_what_is_marked_full_runs_with_full_alone(options, found):
    """Also where tests are chosen by their marks."""
    file = str(TESTS / "operators" / "test_layout.py")
    asked = ["-m", "full", "--collect-only", "-q", "-p", "no:cacheprovider", *options, file]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *asked],
        capture_output=True, text=True, cwd=TESTS.parent, env=without_pytest(),
    )  # fmt: skip
    assert bool(re.search("::test_results_of_all_pairs", done.stdout)) == bool(found), done.stdout


@pytest.mark.parametrize("name", ["wengert", "a b", "wengert/wengert", "it's $HOME; \"here\""])
def test_the_uncompiled_run_finds_the_source_in_any_folder(name, tmp_path):
    clone = tmp_path / name
    clone.mkdir(parents=True)
    for part in ("Makefile", "src"):
        (clone / part).symlink_to(TESTS.parent / part)
    # Stands for the interpreter of the environment: runs checks, and prints where tests would run.
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        "#!/bin/sh\n"
        'if [ "$3" = pytest ]; then printf "%s\\n" "$PYTHONPATH"; exit; fi\n'
        f'exec {shlex.quote(sys.executable)} "$@"\n'
    )
    python.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--silent", "test-uncompiled", f"BIN={python.parent}"],
        capture_output=True, text=True, cwd=clone, env={**environment, "PWD": str(clone)},
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()) == (0, [f"{clone}/src"]), done.stderr
