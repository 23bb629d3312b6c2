"""Kernels that read numbers in place of having them in their text: one kernel for many sizes."""

import math

import numpy as np
import pytest

import wengert
from wengert.compiler import trace
from wengert.compiler.native import host, numbers
from wengert.compiler.native.program import NativeProgram
from wengert.nn import functional


@pytest.fixture(autouse=True)
def nothing_met(monkeypatch):
    monkeypatch.setattr(numbers, "_met", {})


@pytest.fixture
def compiled_texts(monkeypatch):
    """The texts that LLVM is given."""
    texts = []
    plain = host.compiled

    def compiled(text, bits):
        texts.append(text)
        return plain(text, bits)

    monkeypatch.setattr(host, "compiled", compiled)
    return texts


def loss(x, w):
    labels = wengert.zeros(x.shape[0], dtype=wengert.int64)
    rows = functional.layer_norm((x @ w).tanh(), (16,))
    return functional.cross_entropy(rows, labels) + x.square().mean()


def test_a_mean_over_other_rows_needs_no_kernels_of_its_own(compiled_texts):
    gradients = wengert.func.grad(loss, (0, 1))
    compiled = wengert.compile(gradients, backend="native")
    w = wengert.randn(8, 16, dtype=wengert.float64)
    for rows in (100, 210, 150, 333, 460):
        x = wengert.randn(rows, 8, dtype=wengert.float64)
        known = len(compiled_texts)
        for found, expected in zip(compiled(x, w), gradients(x, w)):
            assert wengert.allclose(found, expected, rtol=1e-12)
        assert len(compiled_texts) == known + (rows in (100, 210))


def test_lengths_of_what_indices_lead_into_are_read(compiled_texts):
    i = wengert.tensor([0, 5, -1, 7, 3])
    for rows in (70, 90, 110, 300):
        x = wengert.randn(rows, dtype=wengert.float64)
        compiled = wengert.compile(lambda x, i: x[i] * 2, backend="native")
        assert compiled(x, i).tolist() == (x[i] * 2).tolist()
        with pytest.raises(IndexError):
            compiled(x, i + rows)
    assert len(set(compiled_texts)) == 1


def bits(t):
    """The bytes of all elements; what is no number has one form."""
    array = t.detach().numpy().copy()
    if array.dtype.kind == "f":
        array[np.isnan(array)] = np.nan
    return array.tobytes()


NUMBERS = [0.1, -3.75, 1e-30, -0.0, 0.0, math.inf, -math.inf, math.nan, 104, 1 / 3, 1e30]
WHOLE = [3, -7, 2**31 - 1, -(2**31), 0, 100]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_a_number_that_is_read_gives_the_same_bits(dtype, monkeypatch):
    dtype = getattr(wengert, dtype)
    floats = dtype.is_floating_point
    x = wengert.arange(-50, 51).to(dtype) * (0.37 if floats else 3)
    given = NUMBERS if floats else WHOLE

    def function(number):
        def affine(x):
            return wengert.where(x > number, x * number, x - number) + x

        return affine

    def result(number):
        function_of = function(number)
        return bits(NativeProgram(trace(function_of, x).graph)(x)[0])

    plain = []
    for number in given:
        numbers._met.clear()
        plain.append(result(number))
    numbers._met.clear()
    assert [result(number) for number in given] == plain
    assert any(differing for _, differing in numbers._met.values())


def test_to_divide_by_a_power_of_two_is_to_multiply(compiled_texts):
    x = wengert.linspace(-1, 1, 100)
    for number in (8.0, 16.0, 3.0, 5.0, 7.0):
        compiled = wengert.compile(lambda x, n=number: (x + 1) / n, backend="native")
        assert compiled(x).tolist() == ((x + 1).numpy() / np.float32(number)).tolist()
    assert "fdiv <16 x float>" in compiled_texts[-1] or host.vector_bits() < 512


def test_nests_with_other_numbers_everywhere_keep_theirs(compiled_texts):
    def polynomial(x, seed):
        y = x
        for i in range(12):
            y = y * x + (seed + i) / 7
        return y

    x = wengert.linspace(-1, 1, 100)
    for seed in (0.5, 20.5, 40.5):
        compiled = wengert.compile(lambda x, s=seed: polynomial(x, s), backend="native")
        assert wengert.allclose(compiled(x), polynomial(x, seed), rtol=1e-4)
    assert len(compiled_texts) == 3
    assert "%q0 =" not in "".join(compiled_texts)


def test_only_so_many_nests_are_remembered(monkeypatch):
    monkeypatch.setattr(numbers, "_MOST_MET", 3)
    for i in range(6):
        wengert.compile(lambda x, n=i + 2: sum(x.sin() ** k for k in range(n)), backend="native")(
            wengert.ones(100)
        )
    assert len(numbers._met) <= 3
