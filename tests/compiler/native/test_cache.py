"""Machine code that is kept on disk."""

import os
import subprocess
import sys
import warnings

import pytest

import wengert
from compiler.native.support import randn
from wengert.compiler.native import cache, host

PROGRAM = """
import wengert
from wengert.compiler.native import host
made = []
plain = host._engine
host._engine = lambda text, *rest: made.append(bool(text)) or plain(text, *rest)
f = wengert.compile(lambda x, w: (x @ w).tanh().softmax(1).sum(0), backend="native")
x, w = wengert.arange(64.0).reshape(2, 32) / 64, wengert.ones(32, 512) / 32
print(any(made) if f(x, w).sum() > 0 else None, f(x, w)[:3].tolist())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kept"))
    cache._warn.cache_clear()
    return tmp_path / "kept"


def compiled_anew(scale):
    """A function that is compiled as if for the first time in the process."""
    text = f"""define float @NAME() {{
      ret float {scale:.1f}
    }}"""
    engine = host.compiled(text.replace("NAME", "given"), 128)
    return engine.get_function_address("given") != 0


def test_a_second_process_compiles_nothing(folder):
    runs = [
        subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=True,
            env={**os.environ, cache.FOLDER: str(folder)},
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    assert runs[0].startswith("True") and runs[1].startswith("False")
    assert runs[0].split("[")[1] == runs[1].split("[")[1]


def test_a_damaged_file_is_made_again(folder):
    assert compiled_anew(1)
    (path,) = folder.glob("*.code")
    sound = path.read_bytes()
    for damaged in (sound[:-5], b"", b"x" * len(sound), sound[:-1] + bytes([sound[-1] ^ 1])):
        path.write_bytes(damaged)
        cache._warn.cache_clear()
        with pytest.warns(UserWarning, match="is damaged"):
            assert compiled_anew(1)
        assert path.read_bytes() == sound


def test_a_folder_that_cannot_be_used(folder):
    folder.write_text("a file")
    with pytest.warns(UserWarning, match="machine code is not kept"):
        assert compiled_anew(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled_anew(2)  # it is said once


def test_a_full_disk(folder, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    with pytest.warns(UserWarning, match="No space left"):
        assert compiled_anew(3)
    assert list(folder.iterdir()) == []


def test_the_oldest_files_go(folder, monkeypatch):
    monkeypatch.setenv(cache.LIMIT, "0.003")
    for i in range(4):
        cache.store(f"{i}", bytes(1000))
        os.utime(folder / f"{i}.code", (i, i))
    assert cache.fetch("0") is None and cache.fetch("3") == bytes(1000)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3000 + 1100


def test_a_limit_that_is_no_number(folder, monkeypatch):
    monkeypatch.setenv(cache.LIMIT, "much")
    cache._warn.cache_clear()
    with pytest.warns(UserWarning, match="WENGERT_CACHE_MB='much' is no number"):
        assert compiled_anew(4)


WRITER = """
from wengert.compiler.native import cache
for i in range(300):
    cache.store("shared", bytes([i % 256]) * 5000)
    found = cache.fetch("shared")
    assert found is not None and len(found) == 5000 and len(set(found)) == 1
"""


def test_processes_that_write_at_once(folder):
    processes = [subprocess.Popen([sys.executable, "-c", WRITER]) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert [path.name for path in folder.iterdir()] == ["shared.code"]


def test_without_the_variable_nothing_is_kept(folder, monkeypatch):
    monkeypatch.delenv(cache.FOLDER)
    wengert.compile(lambda x: x * 3.25, backend="native")(randn(3))
    assert not folder.exists()
