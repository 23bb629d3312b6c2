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
    monkeypatch.setattr(numbers, "_met_lengths", {})


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


def attention(x, w):
    """Copies, products of rows, reductions and rows of a length that varies."""
    heads = (x @ w).unflatten(-1, (2, 4)).transpose(1, 2)
    mixed = functional.softmax(heads @ heads.mT, -1) @ heads
    return functional.layer_norm(mixed.transpose(1, 2).flatten(2) + x, (8,)).amax(1)


def test_a_third_length_of_rows_needs_no_kernels_of_its_own(compiled_texts):
    compiled = wengert.compile(attention, backend="native")
    w = wengert.randn(8, 8, dtype=wengert.float64)
    made = []
    for rows in (50, 61, 55, 57, 62):
        x = wengert.randn(3, rows, 8, dtype=wengert.float64, requires_grad=True)
        known = len(compiled_texts)
        found, expected = compiled(x, w), attention(x, w)
        assert wengert.allclose(found, expected, rtol=1e-12)
        weights = wengert.randn(3, 8, dtype=wengert.float64)
        slopes = [wengert.autograd.grad(y, x, weights)[0] for y in (found, expected)]
        assert wengert.allclose(*slopes, rtol=1e-10, atol=1e-13)
        made.append(len(compiled_texts) - known)
    assert made[0] and made[1] and made[2:] == [0, 0, 0]


def test_one_program_reads_none_of_its_lengths(compiled_texts):
    """Two parts of it that differ in lengths alone have code of their own, which is faster."""

    def function(x, y):
        return functional.softmax(x, -1), functional.softmax(y, -1)

    compiled = wengert.compile(function, backend="native")
    x, y = wengert.randn(30, 40), wengert.randn(30, 50)
    for found, expected in zip(compiled(x, y), function(x, y)):
        assert wengert.allclose(found, expected)
    assert "%q0 =" not in "".join(compiled_texts)


LENGTHS = [1, 2, 3, 5, 8, 9, 16, 17, 31, 33, 64, 65, 100]
SHAPED = {
    "rows": lambda x, y: functional.softmax(x * 2, -1) + y,
    "columns": lambda x, y: functional.log_softmax(x, 0) * y,
    "turned": lambda x, y: (x.permute(2, 0, 1).exp() + 1).permute(1, 2, 0).contiguous() * y,
    "sums": lambda x, y: (x * y).sum(1) + x.amax(1) + y.mean((1,)),
    "both ends": lambda x, y: (x.tanh() * y).sum((0, 2)),
    "products": lambda x, y: functional.softmax(x @ y.mT, -1) @ y,
    "parts": lambda x, y: x[:, ::2].sum(1) + y.flip(1)[:, -1] + x[..., :1].sum(1),
    "joined": lambda x, y: wengert.cat([x, y * 2, x.sin()], 1),
    "chosen": lambda x, y: x[:, wengert.tensor([0, -1, 0])] * y[:, :1],
    "whole": lambda x, y: ((x * 8).to(wengert.int32) + (y * 8).to(wengert.int64)).sum(1),
    "truths": lambda x, y: ((x > y) & (x > 0)).any(1),
}


@pytest.mark.parametrize("name", SHAPED)
def test_kernels_that_read_lengths_compute_the_same(name):
    """Of all classes of lengths, in turns, so that kernels of one serve others."""
    function, rng = SHAPED[name], np.random.default_rng(len(name))
    for dtype in (wengert.float32, wengert.float64):
        for i in range(12):
            shape = tuple(rng.choice(LENGTHS, 3 if i % 2 else 2).tolist())
            shape = (3, *shape) if len(shape) == 2 else (min(shape[0], 9), *shape[1:])
            x, y = (wengert.randn(shape, dtype=dtype) for _ in range(2))
            if i % 3 == 0:
                x = x.mT.contiguous().mT
            x.requires_grad_()
            compiled = wengert.compile(function, backend="native")
            found, expected = compiled(x, y), function(x, y)
            near = {"rtol": 1e-4, "atol": 1e-5} if dtype is wengert.float32 else {"rtol": 1e-10}
            assert wengert.allclose(found, expected, **near), shape
            if expected.requires_grad:
                weights = wengert.randn(expected.shape, dtype=dtype)
                slopes = [wengert.autograd.grad(y, x, weights)[0] for y in (found, expected)]
                assert wengert.allclose(*slopes, rtol=near["rtol"], atol=1e-5), shape


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
