"""Loops in C over arrays of floats: what they compute, on which operands, on how many threads."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import wengert
from native_samples import run_with
from wengert.backends.vector_loops import vector_loop
from wengert.core import memory
from wengert.core.registry import operator_named
from wengert.nn import functional as F

compiled_only = pytest.mark.compiled_only

#: Operators of one array, and how far their loops are from NumPy's in units in the last place.
UNARY = {
    "exp": 3, "exp2": 3, "expm1": 3, "log": 3, "log2": 3, "log10": 3, "log1p": 3, "tanh": 3,
    "sin": 3, "cos": 3, "sigmoid": 4, "erf": 5, "sqrt": 1, "rsqrt": 2, "reciprocal": 1, "square": 0,
    "neg": 0, "relu": 0,
}  # fmt: skip
SIZES = (0, 1, 7, 8, 15, 16, 17, 33, 1000, 40_000)
DTYPES = ("float32", "float64")


@pytest.fixture
def threads():
    """`wengert.set_num_threads`, undone at the end."""
    before = wengert.get_num_threads()
    yield wengert.set_num_threads
    wengert.set_num_threads(before)


def values(size, dtype, seed=1):
    """Numbers of all sizes, and among them infinities, NaN, zeros of both signs, subnormals."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    x = (rng.standard_normal(size) * 10.0 ** rng.uniform(-3, 1.5, size)).astype(dtype)
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1, -1],
        dtype,
    )
    places = rng.permutation(size)[: min(size // 2, len(special))]
    x[places] = special[: len(places)]
    return x


def assert_close(found, wanted, units):
    """Equal, or different by so many units in the last place; then zeros have one sign."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    finite = np.isfinite(wanted) & np.isfinite(found)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    zero = (wanted == 0) & (found == 0) & (units > 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))
    with np.errstate(all="ignore"):  # the spacing of the largest number is none
        apart = abs(found[finite] - wanted[finite])
        assert not (apart > units * np.spacing(abs(wanted[finite]))).any()


@compiled_only
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_loops_agree_with_numpy(name, dtype):
    operator = operator_named(name)
    loop = vector_loop(name)
    for size in SIZES:
        x = values(size, dtype)
        with np.errstate(all="ignore"):
            wanted = operator.kernel(np, x)
        found = loop.run((x,))
        assert_close(found, wanted, UNARY[name])


@compiled_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "rest"),
    [("_gelu", ("none",)), ("_gelu", ("tanh",)), ("_silu", ()), ("_softplus", (2.0, 5.0)),
     ("_elu", (1.5, 1.2, 0.7)), ("_leaky_relu", (0.1,)), ("_hardswish", ()), ("_mish", ()),
     ("clamp", (-0.5, 0.7)), ("clamp", (None, 0.7)), ("clamp", (-0.5, None))],
)  # fmt: skip
def test_activations_agree_with_their_kernels(name, rest, dtype):
    operator, x = operator_named(name), values(1000, dtype)
    x = np.clip(x, -80, 80)
    with np.errstate(all="ignore"):
        wanted = operator.kernel(np, x, *rest)
    found = vector_loop(name).run((x, *rest))
    limits = np.finfo(dtype)
    np.testing.assert_allclose(found, wanted, rtol=100 * limits.eps, atol=20 * limits.eps)


@compiled_only
def test_a_loop_declines_what_it_does_not_suit():
    loop = vector_loop("maximum")
    x = np.ones((4, 8), np.float32)
    assert loop.run((x, x.astype(np.float64))) is None
    assert loop.run((x, np.ones((3, 8), np.float32))) is None
    assert loop.run((x, "1")) is None
    assert loop.run((x,)) is None
    assert loop.run((1.0, 2.0)) is None
    assert loop.run((x, 10**400)) is None
    assert loop.run((x.T, np.ones((8, 4), np.float32))) is None
    assert vector_loop("_gelu").run((x, "other")) is None
    np.testing.assert_array_equal(vector_loop("clamp").run((2 * x, x, x)), x)  # bounds as arrays
    assert vector_loop("no such operator") is None


def test_operands_of_all_layouts(lib):
    """Results and their strides are the same for contiguous and for other operands."""
    rng = np.random.default_rng(2)
    x = lib.tensor(rng.standard_normal((6, 40, 30)).astype(np.float32))
    row, column = x[0, 0], x[0, :, :1]
    for function in (lib.tanh, lib.nn.functional.gelu, lib.exp, lambda t: lib.maximum(t, row[:1])):
        for view in (
            x.transpose(0, 1), x.permute(2, 1, 0), x[:, ::2], x[..., ::3], x[:, :, 3:20],
            x.expand(2, 6, 40, 30), x[:0], x[2, 3, 4], x.flip(2), x[::2].transpose(1, 2),
        ):  # fmt: skip
            assert lib.allclose(function(view), function(view.contiguous()), rtol=1e-5, atol=1e-6)
    for other in (row, column, x[0], x[:, :1], x[:, :, :1], x.new_tensor(0.3), 0.3):
        expanded = other if isinstance(other, float) else other.expand(x.shape).contiguous()
        assert lib.add(x, other).tolist() == (x + expanded).tolist()
        if not isinstance(other, float):
            assert lib.maximum(x, other).tolist() == lib.maximum(x, expanded).tolist()
            assert lib.maximum(other, x).stride() == x.stride()
    turned = x.transpose(0, 2)
    assert lib.tanh(turned).stride() == turned.stride()


@compiled_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [8, 9, 20, 64, 513, 1024, 1025])
def test_short_rows_pass_through_blocks_together(length, dtype):
    """Whatever is broadcast along rows, and wherever a block ends among them."""
    rng = np.random.default_rng(3)
    shapes = [
        (7, 150, 1), (7, 1, length), (1, 150, length), (150, 1), (7, 150, length),
        (3, 7, 150, length), (3, 1, 1, 1),
    ]  # fmt: skip
    operands = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    operands += [np.repeat(operands[4], 2, axis=2)[..., ::2], operands[4][::-1]]
    for x in operands:
        for y in operands:
            found = vector_loop("sub").run((x, y, 1))
            if found is not None:
                np.testing.assert_array_equal(found, x - y)
    assert vector_loop("sub").run((operands[0], operands[1], 1)) is not None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_floats_compute_in_single_precision(dtype):
    kind = getattr(wengert, dtype)
    x = wengert.linspace(-4, 4, 1001).to(kind)
    for function in (F.gelu, F.silu, wengert.exp, wengert.tanh, lambda t: t.softmax(0)):
        wanted = function(x.to(wengert.float32)).to(kind)
        assert wengert.equal(function(x), wanted)


def test_writing_into_operands():
    x = wengert.linspace(-2, 2, 5000)
    wanted = wengert.tanh(x).tolist()
    target = wengert.empty(5000)
    wengert.tanh(x, out=target)
    assert target.tolist() == wanted
    base = wengert.cat([x, x[:1]])
    shifted = base[1:] + base[:-1]
    base[1:].add_(base[:-1].clone())
    assert base[1:].tolist() == shifted.tolist()
    x.tanh_()
    assert x.tolist() == wanted


def test_no_warnings_leak():
    x = wengert.tensor([0.0, -1.0, float("inf"), float("nan")] * 20)
    with np.errstate(all="raise"):
        for function in (wengert.log, wengert.reciprocal, F.gelu, wengert.exp):
            function(x * 1e30)


def test_rules_as_loops_equal_rules_in_operators():
    """The gradient by a loop is that of the rule, which runs if it is recorded."""
    x = wengert.linspace(-3, 3, 999, dtype=wengert.float64).requires_grad_()
    y = wengert.linspace(1, 2, 999, dtype=wengert.float64).requires_grad_()
    for function in (
        lambda: F.gelu(x), lambda: F.gelu(x, approximate="tanh"), lambda: F.silu(x),
        lambda: F.softplus(x), lambda: wengert.where(x > 0, x, y), lambda: x / y,
        lambda: F.mish(x), lambda: x.clamp(-1, 2), lambda: wengert.maximum(x, y),
        lambda: x.reshape(27, 37).softmax(1), lambda: x.reshape(27, 37).log_softmax(1),
        lambda: F.layer_norm(x.reshape(27, 37), (37,), y[:37], y[:37]),
        lambda: x.reshape(27, 37).cumsum(1), lambda: F.smooth_l1_loss(x, y),
    ):  # fmt: skip
        seed = wengert.linspace(-1, 1, function().numel(), dtype=x.dtype).reshape(function().shape)
        plain = wengert.autograd.grad(function(), (x, y), seed, allow_unused=True)
        recorded = wengert.autograd.grad(
            function(), (x, y), seed, allow_unused=True, create_graph=True
        )
        for a, b in zip(plain, recorded, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert wengert.allclose(a, b.detach(), rtol=1e-12, atol=1e-12)


def computed():
    """The bytes of results of many kinds, all large enough for several threads."""
    rng = np.random.default_rng(4)
    x = wengert.from_numpy(rng.standard_normal((301, 1203)).astype(np.float32)).requires_grad_()
    weight = wengert.from_numpy(rng.standard_normal(1203).astype(np.float32)).requires_grad_()
    parts = [
        x.exp(), F.gelu(x), x * weight, x * x[:, :1], x.sum(), x.sum(0), x.sum(1), x.mean(),
        x.amax(0), x.amin(), x.norm(), x.softmax(1), x.log_softmax(1), x.logsumexp(1), x.cumsum(1),
        F.layer_norm(x, (1203,), weight, weight), x.sigmoid().prod(1),
        wengert.where(x > 0, x, weight),
    ]  # fmt: skip
    wengert.autograd.backward(parts, [wengert.ones_like(p) for p in parts])
    return b"".join(p.detach().numpy().tobytes() for p in [*parts, x.grad, weight.grad])


def test_bits_do_not_depend_on_the_number_of_threads(threads):
    threads(1)
    assert wengert.get_num_threads() == 1
    alone = computed()
    for count in (2, 3, 7):
        threads(count)
        assert wengert.get_num_threads() == count
        assert computed() == alone


def test_many_python_threads_share_the_pool(threads):
    threads(3)
    wanted, found = computed(), []
    workers = [threading.Thread(target=lambda: found.append(computed())) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [wanted] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_has_a_pool_of_its_own(threads):
    threads(2)
    wanted = computed()
    child = os.fork()
    if child == 0:
        os._exit(0 if computed() == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@compiled_only
@pytest.mark.parametrize("instructions", ["avx2", "none"])
def test_other_instructions_give_the_same_numbers(instructions):
    """The loops that a lesser processor would run, and what runs without any."""
    program = (
        "import sys, numpy as np; sys.path.insert(0, 'tests'); import test_vector_loops as t;"
        "print(np.frombuffer(t.computed(), np.float32).astype(np.float64).sum())"
    )
    environment = {**os.environ, "WENGERT_INSTRUCTIONS": instructions}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    own = np.frombuffer(computed(), np.float32).astype(np.float64).sum()
    assert float(done.stdout) == pytest.approx(own, rel=1e-4)


def extrema():
    """The bytes of the larger and lesser of all pairs of special values, and of limited ones."""
    special = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan], np.float32)
    x, y = [wengert.from_numpy(a.ravel().copy()) for a in np.meshgrid(special, special)]
    found = [wengert.maximum(x, y), wengert.minimum(x, y), x.clamp(y, -y), x.clamp(min=y)]
    found += [F.relu(x), F.relu6(x), F.hardswish(x), F.hardtanh(x)]
    found += [x.clamp(low, high) for low in (-0.0, 0.0, -1.0) for high in (0.0, -0.0, 2.0)]
    return b"".join(t.nan_to_num(7.0, np.inf, -np.inf).numpy().tobytes() for t in found)


@compiled_only
@pytest.mark.parametrize("instructions", ["plain", "avx2", "none"])
def test_extrema_of_special_values(instructions):
    """Of two zeros the same, and nothing is larger than what is no number."""
    program = (
        "import sys; sys.path.insert(0, 'tests'); import test_vector_loops as t;"
        "sys.stdout.write(t.extrema().hex())"
    )
    assert run_with(instructions, program) == extrema().hex()


@pytest.mark.parametrize("length", [8, 100, 255, 256, 257, 1000, 1025, 4095, 4097, 40_000])
def test_elements_that_are_repeated_along_rows(length):
    x = np.random.default_rng(5).standard_normal((7, length))
    for dtype in DTYPES:
        a = x.astype(dtype)
        t, column = wengert.from_numpy(a), wengert.from_numpy(a[:, :1].copy())
        np.testing.assert_array_equal((t * column).numpy(), a * a[:, :1])
        np.testing.assert_array_equal((column - t).numpy(), a[:, :1] - a)
        wide = a[:, ::2]
        found = wengert.from_numpy(a)[:, ::2] * column
        np.testing.assert_array_equal(found.numpy(), wide * a[:, :1])
        np.testing.assert_array_equal(t.clamp(-0.5, 0.5).numpy(), a.clip(-0.5, 0.5))


# Memory -------------------------------------------------------------------------------------------


@compiled_only
def test_freed_blocks_are_used_again_and_released():
    memory.release_blocks()
    x = wengert.empty(100_000)
    address = x.data_ptr()
    del x
    assert memory.kept_bytes() >= 400_000
    assert wengert.empty(100_003).data_ptr() == address  # a size of the same class
    y = wengert.empty(100_000)
    y.fill_(3)
    del y
    assert wengert.zeros(100_000).abs().sum().item() == 0
    kept = memory.kept_bytes()
    assert memory.release_blocks() == kept
    assert memory.kept_bytes() == 0


@compiled_only
def test_kept_memory_is_bounded():
    memory.release_blocks()
    try:
        memory.limit_kept_bytes(1 << 20)
        blocks = [wengert.empty(1 << 16) for _ in range(10)]
        del blocks
        assert 0 < memory.kept_bytes() <= 1 << 20
        memory.limit_kept_bytes(0)
        assert memory.kept_bytes() == 0
        wengert.empty(1 << 16)
        assert memory.kept_bytes() == 0
    finally:
        memory.limit_kept_bytes(256 << 20)


@compiled_only
@pytest.mark.skipif(os.name != "posix", reason="memory is aligned by a function of POSIX")
def test_blocks_begin_with_cache_lines_and_large_pages():
    memory.release_blocks()
    assert wengert.empty(100_000).data_ptr() % 64 == 0
    for size in (1 << 19, 1_000_000, 3_000_000):
        assert wengert.empty(size).data_ptr() % (1 << 21) == 0
    memory.release_blocks()


@compiled_only
@pytest.mark.parametrize(("most", "count"), [(1 << 20, 300), (1 << 23, 60)])
def test_arrays_of_other_sizes_are_not_mixed_up(most, count):
    """Blocks of all sizes around the limits of classes, written to their ends."""
    rng = np.random.default_rng(6)
    alive = []
    for size in rng.integers((1 << 16) - 300, most, count):
        array = np.full(size, size % 251, np.uint8)
        if size % 3 == 0:
            array.resize(size + 70_000, refcheck=False)
            array[size:] = size % 251
        alive.append((array, size % 251))
        if len(alive) > 12:
            array, value = alive.pop(int(rng.integers(len(alive))))
            assert (array == value).all()


@compiled_only
def test_other_threads_keep_blocks_too():
    memory.release_blocks()

    def work():
        wengert.empty(100_000)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert memory.kept_bytes() >= 400_000
