"""Compiled functions on machine code: derivatives, threads, processes, memory, what is said."""

import gc
import multiprocessing
import threading
import weakref

import numpy as np
import pytest

import wengert
import wengert.nn.functional as F
from compiler.native.support import assert_alike, programs_of, randn
from wengert.compiler import explain
from wengert.compiler.native import nests
from wengert.compiler.native import program as native_program
from wengert.compiler.run import backends


def loss(x, w, b):
    h = F.layer_norm(x @ w + b, (6,))
    return (h.tanh() * F.softmax(h, 1)).sum() + F.gelu(h).square().mean()


def inputs():
    shapes = ((4, 5), (5, 6), (6,))
    return [randn(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)]


def derivatives(function, tensors):
    value = function(*tensors)
    first = wengert.autograd.grad(value, tensors, create_graph=True)
    second = wengert.autograd.grad(sum((g * g).sum() for g in first), tensors)
    return [value, *first, *second]


def test_values_and_two_derivatives():
    compiled = wengert.compile(loss, backend="native")
    assert_alike(derivatives(compiled, inputs()), derivatives(loss, inputs()), 1e-10)
    text = explain(compiled, details=True)
    assert "forward: " in text and "second order, reverse: " in text
    assert "calls wengert" not in text


def test_gradcheck():
    compiled = wengert.compile(loss, backend="native")
    assert wengert.autograd.gradcheck(compiled, inputs())
    assert wengert.autograd.gradgradcheck(compiled, inputs())


def test_gradients_taken_inside_and_parameters_changed():
    def step(w, x):
        value = (x @ w).square().mean()
        (g,) = wengert.autograd.grad(value, w)
        with wengert.no_grad():
            w -= 0.1 * g
        return value.detach()

    compiled = wengert.compile(step, backend="native")
    mine, its = (randn(5, 3).requires_grad_() for _ in range(2))
    x = randn(4, 5, seed=9)
    for _ in range(4):
        assert_alike([compiled(mine, x)], [step(its, x)], 1e-12)
    assert_alike([mine], [its], 1e-12)


def test_modules_and_an_argument_of_another_size():
    nn = wengert.nn
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    compiled = wengert.compile(model, backend="native")
    for size in (4, 9, 4):
        x = randn(size, 3, dtype="float32")
        assert_alike([compiled(x)], [model(x)], 1e-5)


def test_another_number_of_rows_needs_no_new_kernels():
    def f(x):
        return (x * 2).tanh() + x.softmax(1)

    native, _ = programs_of(f, randn(200, 40))
    native(randn(200, 40))
    other, _ = programs_of(f, randn(300, 40))
    other(randn(300, 40))
    codes = [set(next(iter(p.variants.values())).table.codes) for p in (native, other)]
    assert codes[0] == codes[1]


def test_repeated_calls_take_the_short_way_and_notice_changes():
    scale = [2.0]
    compiled = wengert.compile(lambda x, y: x * y * scale[0], backend="native")
    x, y = randn(6), randn(6, seed=1)
    for _ in range(5):
        assert_alike([compiled(x, y)], [x * y * 2], 1e-15)
    scale[0] = 3.0
    assert_alike([compiled(x, y)], [x * y * 3], 1e-15)
    assert_alike([compiled(x, x)], [x * x * 3], 1e-15)
    assert_alike([compiled(x[::2], y[::2])], [x[::2] * y[::2] * 3], 1e-15)
    leaf = x.clone().requires_grad_()
    assert compiled(leaf, y).requires_grad and not compiled(x, y).requires_grad
    with wengert.inference_mode():
        assert compiled(x, y).is_inference()
    assert not compiled(x, y).is_inference()
    assert_alike([wengert.vmap(compiled)(x[:, None], y[:, None])[:, 0]], [x * y * 3], 1e-15)


# Threads and processes ----------------------------------------------------------------------------


def test_split_nests_give_what_others_give(monkeypatch):
    def f(x, y):
        return (x * y).sin().sum(0), (x + y).exp().sum(), x.softmax(1), (x - y).amax(0)

    x, y = randn(3000, 50), randn(3000, 50, seed=1)
    native, interpreted = programs_of(f, x, y)
    expected = interpreted(x, y)
    assert_alike(native(x, y), expected, 1e-11)
    (variant,) = native.variants.values()
    assert any(getattr(step, "is_split", False) for step in variant.layout.steps)
    again = native(x, y)
    for a, b in zip(again, native(x, y)):
        assert wengert.equal(a, b)
    monkeypatch.setattr(nests, "WORTH_SPLITTING", 1 << 60)
    alone, _ = programs_of(f, x, y)
    assert_alike(alone(x, y), expected, 1e-11)


def test_threads_compile_and_call_at_once():
    compiled = wengert.compile(lambda x: (x.exp() * 2).softmax(0).sum(1), backend="native")
    failures = []

    def work(seed):
        for i in range(12):
            x = randn(20 + (seed + i) % 3, 300, seed=seed)
            if not np.allclose(compiled(x).numpy(), compiled.function(x).numpy()):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(compiled.compilations) == 3


def test_short_ways_that_other_threads_replace_are_held():
    """Three shapes take turns, so that each call may replace what another thread is using."""
    for _ in range(15):
        test_threads_compile_and_call_at_once()


def _child(compiled, x, expected, queue):
    queue.put(bool(np.allclose(compiled(x).numpy(), expected)))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_after_compiling():
    compiled = wengert.compile(lambda x: (x.sin() * x).sum(0), backend="native")
    x = randn(40000, 30)
    expected = compiled(x).numpy()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_child, args=(compiled, x, expected, queue))
    child.start()
    child.join(60)
    assert child.exitcode == 0 and queue.get()
    assert np.allclose(compiled(x).numpy(), expected)


# Memory -------------------------------------------------------------------------------------------


def test_programs_are_freed_with_their_code():
    def compiled_once(scale):
        native, _ = programs_of(lambda x: (x * scale).exp().sum(), randn(50))
        native(randn(50))
        (variant,) = native.variants.values()
        return weakref.ref(native), [weakref.ref(code) for code in variant.table.codes]

    references = [compiled_once(i + 0.5) for i in range(20)]
    gc.collect()
    for program, codes in references:
        assert program() is None and all(code() is None for code in codes)


def test_results_outlive_the_program():
    native, interpreted = programs_of(lambda x: x * 2, randn(50))
    results, expected = native(randn(50)), interpreted(randn(50))
    del native
    gc.collect()
    assert_alike(results, expected, 1e-15)


# What is said -----------------------------------------------------------------------------------


def test_explain_names_what_calls_operators():
    compiled = wengert.compile(lambda x: (x * 2).argsort(0) + 1, backend="native")
    compiled(randn(5))
    text = explain(compiled, details=True)
    assert "2 of 3 nodes" in text and "calls wengert::argsort: " in text and "arena" in text
    interpreted = wengert.compile(lambda x: x * 2, backend="interpreter")
    interpreted(randn(5))
    assert "runs on the interpreter" in explain(interpreted, details=True)


def test_without_llvm_the_interpreter_runs_and_says_so_once(monkeypatch):
    monkeypatch.setattr(backends, "is_available", lambda: False)
    backends._warn_of_missing_llvm.cache_clear()
    with pytest.warns(UserWarning, match="llvmlite"):
        compiled = wengert.compile(lambda x: x * 2, backend="native")
    wengert.compile(lambda x: x * 3, backend="native")  # a warning would be an error here
    x = randn(3)
    assert wengert.equal(compiled(x), x * 2)
    assert "interpreter" in explain(compiled, details=True)


def test_a_graph_that_fails_to_become_code_is_interpreted(monkeypatch, caplog):
    monkeypatch.setattr(native_program, "STRICT", False)
    monkeypatch.setattr(native_program, "lower", lambda *args: 1 / 0)
    native, interpreted = programs_of(lambda x: x * 2, randn(5))
    for _ in range(2):
        assert_alike(native(randn(5)), interpreted(randn(5)), 0)
    assert [r.message for r in caplog.records if "ZeroDivisionError" in r.message]


def test_backends_by_name(monkeypatch):
    with pytest.raises(ValueError, match="not supported; there are native, interpreter"):
        wengert.compile(lambda x: x, backend="other")
    monkeypatch.setenv(backends.VARIABLE, "interpreter")
    compiled = wengert.compile(lambda x: x * 2)
    compiled(randn(3))
    assert not isinstance(
        compiled.compilations[0].executable.program, native_program.NativeProgram
    )
