"""The suite itself: what it prints on a machine without PyTorch."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_without_pytorch_the_skipped_tests_are_one_line():
    files = [str(TESTS / name) for name in ("test_printing.py", "behaviour/test_numbers.py")]
    program = (
        "import sys, pytest; sys.modules['torch'] = None; "
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *{files}]))"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True, text=True, cwd=TESTS.parent, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    (line,) = re.findall("^SKIPPED.*", done.stdout, re.MULTILINE)
    assert "PyTorch, to compare with, is not installed" in line
    assert f"{re.search('[0-9]+', line)[0]} skipped" in done.stdout
