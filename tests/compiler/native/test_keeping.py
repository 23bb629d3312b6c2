"""Programs that are kept on disk as they were lowered: the next process neither differentiates nor
lowers, and computes the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wengert
from compiler.native.support import randn
from wengert.compiler import trace
from wengert.compiler.ir.identity import identity_of
from wengert.compiler.native import cache, host, keeping, program, table
from wengert.compiler.run import executable
from wengert.operators.declare import elementwise

CASES = """
import wengert
from wengert.nn import functional


def values(x, w):
    return (x @ w).tanh().softmax(1).sum(0)


def loss(x, w):
    h = functional.layer_norm(x @ w, (4,)) * wengert.arange(4.0) + wengert.tensor([1.5, 2.5, 3, 4])
    return (h.exp() @ w.t()).square().mean()


def gradients(x, w):
    return wengert.func.grad_and_value(loss, (0, 1))(x, w)


def rounds(x, w):
    for _ in range(12):
        x = (x @ w @ w.t()).tanh() * 0.5
    return x.sum(0)


def search(x, w):
    def goes_on(s):
        return s.sum() < 30

    return wengert.compiler.while_loop(goes_on, lambda s: (s * 1.5 + 1,), (x,))[0]


def coarse(x, w):
    low = x.to(wengert.bfloat16) * wengert.tensor([1.5, 2, 3], dtype=wengert.bfloat16)
    return low.to(wengert.float32) + low.half().float()


def whole_step(x, w):
    w.grad = None
    loss(x, w).backward()
    with wengert.no_grad():
        w -= 0.1 * w.grad
    return w.grad
"""

RUN = """
import json, sys
from wengert.compiler.autodiff import differentiate
from wengert.compiler.native import program
from wengert.compiler.run import executable

program.STRICT = True
made = []


def counted(module, name):
    function = getattr(module, name)
    setattr(module, name, lambda *args, **kwargs: made.append(name) or function(*args, **kwargs))


counted(program, "lower")
counted(executable, "differentiate")
case, records = sys.argv[1], sys.argv[2] == "records"
x = wengert.linspace(-1, 1, 6).reshape(2, 3)
w = wengert.linspace(0.1, 1.1, 12).reshape(3, 4)
if records:
    x.requires_grad_(), w.requires_grad_()
compiled = wengert.compile(globals()[case], backend="native")
results = []
for _ in range(2):
    given = compiled(x, w)
    flat = [each for each in wengert.utils._pytree.tree_leaves(given)]
    if records and case != "whole_step":
        flat[0].sum().backward()
        flat += [each.grad for each in (x, w) if each.grad is not None]
    results += [each.tolist() for each in flat]
print(json.dumps({"made": made, "results": results}))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kept"))
    return tmp_path / "kept"


def run(case, folder, records=False):
    """What a fresh process says of one of the cases."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", CASES + RUN, case, "records" if records else ""],
        capture_output=True, text=True, env={**os.environ, cache.FOLDER: str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "records"),
    [
        ("values", False), ("gradients", False), ("rounds", False), ("search", False),
        ("coarse", False), ("loss", True), ("rounds", True), ("coarse", True),
        ("whole_step", True),
    ],
)  # fmt: skip
def test_a_second_process_makes_nothing_but_the_trace(case, records, folder):
    first, second = (run(case, folder, records) for _ in range(2))
    assert "lower" in first["made"]
    assert second["made"] == []
    assert second["results"] == first["results"]
    without = run(case, "", records)
    assert without["results"] == first["results"]


def compiled_anew(function, *inputs):
    """The result of a new compilation, and whether its graph was lowered."""
    lowered = []
    plain = program.lower

    def counting(*args):
        lowered.append(1)
        return plain(*args)

    program.lower = counting
    try:
        result = wengert.compile(function, backend="native")(*inputs)
    finally:
        program.lower = plain
    return result.tolist(), bool(lowered)


def test_without_its_machine_code_a_program_is_made_again(folder):
    def function(x):
        return (x * 7.25).cos()

    x = randn(5)
    expected = function(x).tolist()
    assert compiled_anew(function, x) == (pytest.approx(expected), True)
    assert compiled_anew(function, x)[1] is False
    program_files = [p for p in folder.iterdir() if b"places" in p.read_bytes()]
    assert program_files
    for path in folder.iterdir():
        if path not in program_files:
            path.unlink()
    host._kept.clear()
    table._codes.clear()
    assert compiled_anew(function, x) == (pytest.approx(expected), True)
    assert compiled_anew(function, x)[1] is False


def test_a_damaged_program_is_made_again(folder):
    def function(x):
        return (x * 7.5).cos()

    x = randn(5)
    expected = compiled_anew(function, x)[0]
    (path,) = [p for p in folder.iterdir() if b"places" in p.read_bytes()]
    path.write_bytes(path.read_bytes()[:-3])
    cache._warn.cache_clear()
    with pytest.warns(UserWarning, match="is damaged"):
        assert compiled_anew(function, x) == (expected, True)
    assert compiled_anew(function, x) == (expected, False)


def test_another_state_of_the_package_finds_nothing(folder, monkeypatch):
    def function(x):
        return (x * 7.75).cos()

    x = randn(5)
    assert compiled_anew(function, x)[1]
    assert not compiled_anew(function, x)[1]
    monkeypatch.setattr(keeping, "_makers", lambda: ("another version",))
    assert compiled_anew(function, x)[1]


def test_all_files_of_the_package_count():
    (files,) = [part for part in keeping._makers() if "compiler" in part]
    root = Path(wengert.__file__).parent
    for name in ("compiler/native/keeping.py", "operators/activations.py"):
        status = (root / name).stat()
        assert repr((name.replace("/", os.sep), status.st_size, status.st_mtime_ns)) in files


def test_inputs_of_another_kind_have_programs_of_their_own(folder):
    def function(x):
        return (x * 8.25).cos()

    for x in (randn(4, 4), randn(4, 4).t(), randn(4, 4).float(), randn(2, 4)):
        made, again = (compiled_anew(function, x) for _ in range(2))
        assert made[1] and not again[1]
        assert again[0] == made[0]
        assert wengert.allclose(wengert.tensor(made[0], dtype=x.dtype), function(x))


def test_what_a_program_declares_is_not_kept(folder):
    cube = elementwise(
        "kept_cube(Tensor self) -> Tensor", lambda xp, x: x * x * x, lambda t, self: 3 * t * self
    )

    def function(x):
        return cube(x) + 8.5

    x = randn(3)
    assert compiled_anew(function, x)[1]
    assert compiled_anew(function, x)[1]


def test_steps_that_call_operators_are_not_kept(folder):
    def function(x):
        return (x * 8.75).sort()[0] + 1

    x = randn(6)
    expected = function(x).tolist()
    for _ in range(2):
        assert compiled_anew(function, x) == (pytest.approx(expected), True)


def test_passes_of_a_program_have_no_name(folder):
    def own_pass(graph):
        return graph

    assert executable.names_of([own_pass]) is None
    assert executable.names_of(executable.DEFAULT_PASSES)


def test_who_wants_to_read_loops_has_them_made(folder, caplog):
    def function(x):
        return (x * 9.25).cos()

    x = randn(5)
    compiled_anew(function, x)
    with caplog.at_level("INFO", "wengert.compiler.native"):
        assert compiled_anew(function, x)[1]
    assert "cos" in caplog.text or "rows" in caplog.text


def identity(function, *inputs):
    return identity_of(trace(function, *inputs).graph)


def test_graphs_that_compute_something_else_have_other_names():
    x = wengert.ones(3)
    large = wengert.arange(100.0)
    functions = [
        lambda x: x + 1,
        lambda x: x + 1.0,
        lambda x: x + True,
        lambda x: x - 1,
        lambda x: x * 0.0,
        lambda x: x * -0.0,
        lambda x: (x + 1).sum(),
        lambda x: (x + 1).sum(0, keepdim=True),
        lambda x: (x.double() + 1),
        lambda x: x + wengert.tensor([1.0, 2, 3]),
        lambda x: x + wengert.tensor([1.0, 2, 4]),
        lambda x: x + wengert.tensor([1, 2, 4]),
        lambda x: x.sum() + large,
        lambda x: x.sum() + large.flip(0),
        lambda x: (x.sin(), x.cos()),
        lambda x: (x.cos(), x.sin()),
    ]
    names = [identity(function, x) for function in functions]
    assert None not in names
    assert len(set(names)) == len(names)
    assert names == [identity(function, x) for function in functions]
    assert identity(functions[0], wengert.ones(4)) != names[0]
    assert identity(functions[0], wengert.ones(3, dtype=wengert.float64)) != names[0]


def test_where_a_program_stands_does_not_matter():
    def first(x):
        return x.sin() * 2

    def second(x):
        y = x.sin()
        return y * 2

    x = wengert.ones(3)
    assert identity(first, x) == identity(second, x)
