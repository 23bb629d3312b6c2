"""The command line: what it prints and how it exits."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy
import pytest

import wengert
from wengert import cli


def rows_of(text: str) -> dict[str, str]:
    return {line.split(maxsplit=1)[0]: line.split(maxsplit=1)[1] for line in text.splitlines()}


def test_info_names_version_build_backends_devices_and_threads(capsys):
    assert cli.main(["info"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert list(rows) == ["wengert", "location", "python", "backends", "devices", "threads"]
    assert rows["wengert"].startswith(wengert.__version__)
    assert ("not compiled" in rows["wengert"]) != wengert.__compiled__
    assert numpy.__version__ in rows["backends"]
    assert rows["devices"] == "cpu, meta"


def test_info_takes_the_thread_count_from_the_environment(capsys, monkeypatch):
    for variable in cli.THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cli.describe_threads().startswith("3 (OMP_NUM_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert "all usable processors" in cli.describe_threads()


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["demo", "--unknown"]])
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 2
    assert "usage: wengert" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["info", "--help"]])
def test_help_exits_with_zero(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 0
    assert capsys.readouterr().out.startswith("usage: wengert")


def test_version(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.strip() == f"wengert {wengert.__version__}"


def test_demo_names_what_is_missing_and_how_to_get_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["demo", "--output", str(tmp_path / "demo")]) == 1
    message = capsys.readouterr().err
    assert "jinja2, llvmlite, matplotlib, pygments, pygraphviz, tqdm" in message
    assert f"{sys.executable} -m pip install {' '.join(cli.DEMO_NEEDS)}" in message
    assert not (tmp_path / "demo").exists()


def test_the_extra_installs_what_the_demo_asks_for():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    names = {extra: {re.match(r"[\w-]+", line)[0] for line in extras[extra]} for extra in extras}
    assert names["demo"] == set(cli.DEMO_NEEDS)
    assert names["demo"] <= names["test"]


def test_an_interrupt_exits_with_130(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "describe_installation", interrupted)
    assert cli.main(["info"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-P", "-m", "wengert", "info"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=True,
    )
    assert rows_of(done.stdout)["wengert"].startswith(wengert.__version__)


def test_output_that_nobody_reads_ends_the_command_without_a_word():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "wengert", "info"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
