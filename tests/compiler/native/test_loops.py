"""Native code equals the interpreter: operators, shapes, strides, dtypes and widths of vectors."""

import numpy as np
import pytest

import wengert
import wengert.nn.functional as F
from compiler.native.support import assert_alike, assert_native, programs_of, randn, reasons
from wengert.compiler.native import host

X, Y, V = randn(5, 7), randn(5, 7, seed=1), randn(7, seed=2)
P = X.abs() + 0.5
I = wengert.tensor([[0, 3, 2], [4, 1, 1]])
LABELS = wengert.tensor([0, 6, 2, 2, 5])

#: Functions that run natively as a whole, with their inputs.
FUNCTIONS = {
    "arithmetic": (lambda x, y, v: (x * y - v) / (y * y + 1) + 2 - 3 * x, X, Y, V),
    "functions": (lambda x: x.exp() + x.sin() * x.cos() + x.tanh() + x.sigmoid(), X),
    "more functions": (lambda p: p.log() + p.sqrt() + p.rsqrt() + p.log1p() + p.expm1(), P),
    "library": (lambda x: x.atan() + x.sinh() + x.tan() + wengert.hypot(x, x + 1), X),
    "erf": (lambda x: x.erf() + F.gelu(x) + F.silu(x) + F.softplus(x), X),
    "powers": (lambda p, y: p**y + p**3 + p**-0.5 + 2.0**y, P, Y),
    "rounding": (lambda x: x.floor() + x.ceil() * x.trunc() + x.round() + x.sign(), X * 3),
    "choices": (lambda x, y: wengert.where(x > y, x.clamp(-0.5, 0.5), wengert.maximum(x, -y)),
                X, Y),
    "truth": (lambda x, y: ((x > 0) & (y > 0)) | ~(x <= y), X, Y),
    "sums": (lambda x: (x.sum(), x.sum(0), x.sum(1, keepdim=True), x.mean(1), x.amax(0)), X),
    "variances": (lambda x: (x.var(), x.std(1), x.norm(), x.logsumexp(1)), X),
    "softmax": (lambda x: (x.softmax(1), x.log_softmax(0)), X),
    "layer_norm": (lambda x, v: F.layer_norm(x, (7,), v, v), X, V),
    "losses": (lambda x, y: F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + F.l1_loss(x, y), X, Y),
    "cross entropy": (lambda x, i: F.cross_entropy(x, i), X, LABELS),
    "small product": (lambda x, y: x @ y.t(), X, Y),
    "vector product": (lambda x, v: (x @ v, v @ v), X, V),
    "batched product": (lambda a, b: a @ b, randn(3, 2, 4), randn(3, 4, 5)),
    "linear": (lambda x, w, v: F.linear(x, w, v[:3]), X, randn(3, 7), V),
    "views": (lambda x: x.t().reshape(-1)[3:20:2] + x[1:4].flatten()[:9], X),
    "permuted": (lambda x: (x.permute(2, 0, 1) * 2).sum((0, 2)), randn(2, 3, 4)),
    "joined": (lambda x, y: (wengert.cat([x, y * 2], 1), wengert.stack([x, y], 1)), X, Y),
    "indexed": (lambda x, i: (x[i], x[i, 2], F.embedding(i, x), x.index_select(0, i[0])), X, I),
    "gathered": (lambda x, i: x.gather(0, i), X, I),
    "flipped": (lambda x: x.flip(0) + x.roll(2, 1), X),
    "triangles": (lambda x: x.tril() - x.triu(1), X),
    "repeated": (lambda v: v.repeat(2, 3) + v.expand(2, 7).repeat(1, 3), V),
    "masked": (lambda x: x.masked_fill(x > 0, -1.0), X),
    "padded": (lambda x: F.pad(x, (1, 2)), X),
    "written": (lambda x: _written(x), X),
    "casts": (lambda x: (x.float(), x.int(), x.bool(), x.double()), X * 5),
    "integers": (lambda i: (i * 3 // 2, i % 4, -i, i.sum(), i.float() / 2, i << 1), I - 2),
    "logical": (lambda x: (x.isnan(), (x > 0).any(), (x > -9).all(1), (x > 0).sum()), X),
}  # fmt: skip


def _written(x):
    z = x * 1
    z[1:3] = 0.5
    z[:, 2] += 1
    return z


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_the_interpreter(name):
    function, *inputs = FUNCTIONS[name]
    assert_native(function, *inputs, tolerance=1e-11)


@pytest.mark.parametrize(
    "dtype, tolerance", [("float32", 2e-6), ("bfloat16", 2e-2), ("float16", 2e-3)]
)
@pytest.mark.parametrize(
    "name", ["arithmetic", "functions", "sums", "softmax", "layer_norm", "joined"]
)
def test_other_floats(name, dtype, tolerance):
    function, *inputs = FUNCTIONS[name]
    inputs = [x.to(getattr(wengert, dtype)) for x in inputs]
    assert_native(function, *inputs, tolerance=tolerance)


def test_doubles_are_rounded_to_halves_at_once():
    """Rounded to a float first, some would lie in the middle of two halves."""
    near = [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40, 65519.999, 1e30, 2.0**-26]
    x = wengert.tensor(near, dtype=wengert.float64)
    x = wengert.cat([x, -x, wengert.tensor([0.0, np.nan, np.inf]).double()])
    x = wengert.cat([x, randn(500) * 3, randn(500) * 1e-5])
    (y,) = programs_of(lambda x: x.half(), x)[0](x)
    with np.errstate(over="ignore"):
        assert np.array_equal(y.numpy(), x.numpy().astype("float16"), equal_nan=True)


@pytest.mark.parametrize("bits", host.WIDTHS)
@pytest.mark.parametrize("name", ["functions", "softmax", "small product", "casts", "indexed"])
def test_every_width_of_vectors(monkeypatch, name, bits):
    function, *inputs = FUNCTIONS[name]
    expected = programs_of(function, *inputs)[1](*inputs)
    monkeypatch.setenv(host.VARIABLE, str(bits))
    native = assert_native(function, *inputs, tolerance=1e-11)
    assert all(variant.table.bits == bits for variant in native.variants.values())
    assert_alike(native(*inputs), expected, 1e-11)


def test_a_width_that_there_is_not_is_refused(monkeypatch):
    monkeypatch.setenv(host.VARIABLE, "192")
    with pytest.raises(ValueError, match="192"):
        programs_of(lambda x: x + 1, X)[0](X)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 1000, 9001])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths(size, dtype):
    x = randn(size, dtype=dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-12

    def f(x):
        return x * 2 + 1, (x * x).sum(), x.exp().mean(0, True)

    assert_native(f, x, tolerance=tolerance)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 3), (3, 0), (2, 1, 3), (4, 1), (1, 4)])
def test_shapes(shape):
    x = randn(*shape)
    dim = len(shape) - 1
    assert_native(lambda x: (x.exp() + 1, x.sum()), x)
    if shape:
        assert_native(lambda x: (x.sum(dim), (x * 2).sum(0, keepdim=True)), x)


def strided():
    """Inputs that lie otherwise in memory than row by row."""
    base = randn(6, 8, 4)
    yield base.permute(2, 0, 1)
    yield base[::2, 1::3]
    yield base.flip(1).transpose(0, 2)
    yield randn(8, 1).expand(8, 5)
    yield randn(1).expand(3, 4)


@pytest.mark.parametrize("x", list(strided()))
def test_strides(x):
    def f(x):
        product = x @ x.transpose(-1, -2)
        return x * 2 + x.exp(), x.sum(0), x.sum(-1), x.reshape(-1)[1:], product

    native = assert_native(f, x)
    y = x.contiguous()  # other strides at the next call
    assert len(native.variants) == 1
    native(y)
    assert len(native.variants) == (1 if y.stride() == x.stride() else 2)


def test_long_sums_of_single_precision_are_accurate():
    x = randn(1 << 20, dtype="float32") + 1
    (total,) = programs_of(lambda x: x.sum(), x)[0](x)
    exact = x.numpy().astype("float64").sum()
    assert abs(float(total) - exact) / exact < 3e-7


@pytest.mark.compiled_only
def test_large_products_are_steps():
    a, b = randn(40, 50), randn(50, 60)
    native = assert_native(lambda a, b: (a @ b, a.t() @ (a @ b), (b.t() @ a.t()).t()), a, b)
    (variant,) = native.variants.values()
    assert sum(getattr(step, "name", "") == "gemm" for step in variant.layout.steps) >= 3
    batch = randn(2, 3, 30, 31)
    assert_native(lambda x: x @ x.transpose(-1, -2), batch)
    assert_native(lambda x: x.transpose(0, 1) @ x.transpose(0, 1).mT.contiguous(), batch)


def test_maxima_pass_nan_on():
    x = randn(3, 40)
    x[1, 17] = float("nan")
    assert_native(lambda x: (x.amax(1), x.amin(0), x.clamp(-1, 1), x.relu()), x)


def test_one_loop_for_a_chain_of_elementwise_operators():
    def chain(x, y):
        for _ in range(4):
            x = (x * y).tanh() + x
        return x

    x, y = randn(50), randn(50)
    native = assert_native(chain, x, y)
    (variant,) = native.variants.values()
    assert variant.table.steps == 1


def test_rows_of_a_softmax_are_one_nest():
    native = assert_native(lambda x: x.softmax(1), randn(20, 30))
    (variant,) = native.variants.values()
    assert variant.table.steps == 1 and len(variant.layout.steps[0].loops) > 1


def test_steps_alike_share_a_kernel():
    def layers(x, *weights):
        for w in weights:
            x = (x @ w).tanh()
        return x

    inputs = [randn(4, 4, seed=i) for i in range(6)]
    native = assert_native(layers, *inputs)
    (variant,) = native.variants.values()
    assert variant.table.kernels < variant.table.steps


def test_scratch_memory_is_shared():
    def f(x):
        for _ in range(8):
            x = x.softmax(0)
        return x

    (variant,) = assert_native(f, randn(60, 50)).variants.values()
    assert variant.plan.arena < variant.interface.unshared / 2


# What is called as it is -------------------------------------------------------------------------


def test_other_operators_are_steps():
    def f(x):
        y = (x * 2).exp()
        z = wengert.linalg.inv(y @ y.t() + wengert.eye(5, dtype=x.dtype))
        return (z * 3).sum(0), y.argsort(1), y

    native, interpreted = programs_of(f, X)
    assert_alike(native(X), interpreted(X), 1e-9)
    assert set(reasons(native)) == {"wengert::_linalg_inv", "wengert::argsort"}


def test_complex_numbers_are_left_to_the_operators():
    def f(x):
        z = wengert.complex(x, x * 2)
        return (z * z).real + x, z.abs()

    native, interpreted = programs_of(f, X)
    assert_alike(native(X), interpreted(X), 1e-12)


def test_random_numbers_are_drawn_anew():
    def f(x):
        return x + wengert.rand(5, 7, dtype=x.dtype)

    native, interpreted = programs_of(f, X)
    wengert.manual_seed(3)
    first, second = native(X), native(X)
    wengert.manual_seed(3)
    assert_alike(first, interpreted(X), 1e-15)
    assert_alike(second, interpreted(X), 1e-15)
    assert not wengert.equal(first[0], second[0])


@pytest.mark.parametrize("index", [7, -8])
def test_an_index_out_of_range_raises_what_the_operator_raises(index):
    native, interpreted = programs_of(lambda x, i: x[:, i] * 2, X, wengert.tensor([0, 1]))
    wrong = wengert.tensor([0, index])
    with pytest.raises(IndexError) as expected:
        interpreted(X, wrong)
    with pytest.raises(IndexError) as found:
        native(X, wrong)
    assert str(found.value) == str(expected.value)
    assert_alike(native(X, wrong * 0 - 1), interpreted(X, wrong * 0 - 1), 1e-15)


def test_a_class_out_of_range_raises():
    native, _ = programs_of(lambda x, i: F.cross_entropy(x, i), X, LABELS)
    native(X, LABELS)
    with pytest.raises(IndexError, match="out of bounds"):
        native(X, LABELS + 3)
    native(X, LABELS)


def test_division_of_integers_by_zero_raises():
    i = wengert.tensor([4, 5, 6])
    native, _ = programs_of(lambda a, b: a // b, i, i)
    assert native(i, i)[0].tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="ZeroDivision"):
        native(i, i - 5)
    least = wengert.tensor([-(2**63), 7, -7])
    assert native(least, wengert.tensor([-1, -2, 2]))[0].tolist() == [-(2**63), -4, -4]


def test_results_share_memory_as_those_of_the_interpreter_do():
    native, interpreted = programs_of(lambda x: ((x * 2).t(), x[1:]), X)
    for program in (native, interpreted):
        turned, part = program(X)
        assert turned.stride() == (1, 7)
        assert np.shares_memory(part.numpy(), X.numpy())


def test_results_do_not_share_memory_from_call_to_call():
    native, _ = programs_of(lambda x: (x * 2, x.clone()), X)
    first, second = native(X), native(X)
    for a, b in zip(first, second):
        assert not np.shares_memory(a.numpy(), b.numpy())
    assert not np.shares_memory(first[1].numpy(), X.numpy())
