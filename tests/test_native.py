"""The native loops against NumPy, and the fused differentials against the written rules.

Uncompiled, most loops are ufuncs and the others decline: the operators must agree all the same.
"""

import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import wengert
from native_samples import dtypes, needs_loops, same, sample
from wengert.backends.kernels import native_loop
from wengert.backends.loop_codes import COPY, TOTAL
from wengert.backends.loops import loops
from wengert.backends.matrices import matrices
from wengert.core.collector import collector
from wengert.core.frames import frames
from wengert.core.ndarrays import ndarrays
from width import tries

quick = settings(
    max_examples=tries(40), deadline=None, database=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)

UNARY = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "square": np.square,
    "reciprocal": lambda x: 1 / x,
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rsub": lambda x, y: np.subtract(y, x),
}
CODES = {name: code for table in (UNARY, BINARY) for code, name in enumerate(table)}


# Unary --------------------------------------------------------------------------------------------


@needs_loops
@dtypes
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize(
    "shape", [(), (1,), (4,), (2, 3), (2, 1, 3), (0,), (2, 0), (3, 0, 2)], ids=str
)
def test_unary(name, shape, dtype):
    x = sample(dtype, *shape)
    before = x.copy()
    same(loops.unary(CODES[name], x), UNARY[name](x.astype(np.float64)).astype(dtype))
    assert (x == before).all()


@needs_loops
@dtypes
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize(
    "view", [np.s_[:, 1:4], np.s_[::2, :3], np.s_[::-1, 2:], np.s_[1:2, 1:3]], ids=str
)
def test_unary_of_rows(name, view, dtype):
    x = sample(dtype, 6, 5)[view]
    found = loops.unary(CODES[name], x)
    same(found, UNARY[name](x.astype(np.float64)).astype(dtype))
    assert found.flags.c_contiguous


@needs_loops
@dtypes
@pytest.mark.parametrize("name", UNARY)
def test_unary_of_an_expanded_row(name, dtype):
    x = np.broadcast_to(sample(dtype, 3), (4, 3))
    same(loops.unary(CODES[name], x), UNARY[name](x.astype(np.float64)).astype(dtype))


@needs_loops
@pytest.mark.parametrize("name", UNARY)
def test_unary_declines(name):
    code = CODES[name]
    x = sample(np.float32, 4, 4)
    foreign = type("Foreign", (np.ndarray,), {})
    for value in (
        x.T,
        x[:, ::2],
        x[:, ::-1],
        x.astype(np.float16),
        x.astype(np.int64),
        x.astype(np.complex64),
        x.astype(x.dtype.newbyteorder()),
        x.view(foreign),
        unaligned(4),
        1.5,
        None,
        [1.0],
    ):
        assert loops.unary(code, value) is None


def unaligned(count):
    memory = np.zeros(8 * count + 1, np.uint8)
    array = memory[1:].view(np.float64)
    assert not array.flags.aligned
    return array


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e38, -1e38, 88.5, -88.5, 104.0]


@dtypes
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name, dtype):
    values = np.array(SPECIAL, dtype)
    found = getattr(wengert, name)(wengert.from_numpy(values.copy())).numpy()
    with np.errstate(all="ignore"):
        wanted = UNARY[name](values.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-37)
    if name in ("neg", "abs", "sqrt", "sin", "tanh"):
        numbers = ~np.isnan(wanted)
        assert (np.signbit(found) == np.signbit(wanted))[numbers].all()


@pytest.mark.parametrize("count", [7, 96, 97, 5000, 70_000])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "exp"])
def test_single_precision_functions_are_accurate(name, count):
    values = np.linspace(-30, 30, count, dtype=np.float32)
    found = getattr(wengert, name)(wengert.from_numpy(values)).numpy()
    wanted = UNARY[name](values.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=5 * np.finfo(np.float32).eps, atol=1e-37)


# Binary -------------------------------------------------------------------------------------------


@needs_loops
@dtypes
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (2, 1, 3), (0,), (0, 3)], ids=str)
def test_binary_of_arrays(name, shape, dtype):
    x, y = sample(dtype, *shape), sample(dtype, *shape, low=1.3)
    same(loops.binary(CODES[name], x, y), BINARY[name](x, y))


@needs_loops
@dtypes
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [3, -2, 0.7, 2.5, 2**40, 0], ids=str)
def test_binary_with_a_number(name, number, dtype):
    x = sample(dtype, 2, 3)
    with np.errstate(all="ignore"):
        same(loops.binary(CODES[name], x, number), BINARY[name](x, dtype(number)))
        same(loops.binary(CODES[name], number, x), BINARY[name](dtype(number), x))


@needs_loops
@dtypes
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_binary_with_a_row(name, rows, dtype):
    matrix, row = sample(dtype, rows, 3), sample(dtype, 3, low=1.3)
    same(loops.binary(CODES[name], matrix, row), BINARY[name](matrix, row))


@needs_loops
@pytest.mark.parametrize("name", BINARY)
def test_binary_declines(name):
    code = CODES[name]
    x = sample(np.float32, 4, 3)
    row, column = sample(np.float32, 3), sample(np.float32, 4, 1)
    for a, b in (
        (row, x),
        (x, column),
        (x, sample(np.float32, 2)),
        (x, x.astype(np.float64)),
        (x, x.T),
        (x.T, x.T),
        (x, x.astype(np.int64)),
        (x, True),
        (x, 1j),
        (x, np.float32(2)),
        (x, None),
        (2.0, 3.0),
        (sample(np.float32, 2, 4, 3), row),
        (np.ones(40_000), np.ones(40_000)),
    ):
        assert loops.binary(code, a, b) is None


def test_a_number_too_large_for_a_float():
    for function in (
        lambda x: x * 10**400,
        lambda x: 10**400 - x,
        lambda x: x.detach().mul_(10**400),
    ):
        with pytest.raises(OverflowError):
            function(wengert.ones(3))


# In place -----------------------------------------------------------------------------------------


@needs_loops
@dtypes
@pytest.mark.parametrize("name", BINARY)
def test_binary_into(name, dtype):
    y = sample(dtype, 2, 3, low=1.3)
    for other in (y, y[0].copy(), 2.5, 3):
        x = sample(dtype, 2, 3)
        wanted = BINARY[name](x, dtype(other) if isinstance(other, (int, float)) else other)
        assert loops.binary_into(CODES[name], x, other)
        same(x, wanted)


@needs_loops
@dtypes
@pytest.mark.parametrize("alpha", [0.0, 0.25, -3.0])
def test_binary_into_with_a_factor(alpha, dtype):
    x, y = sample(dtype, 2, 3), sample(dtype, 2, 3, low=1.3)
    wanted = x + dtype(alpha) * y
    assert loops.binary_into(CODES["add"], x, y, alpha)
    same(x, wanted)
    assert not loops.binary_into(CODES["add"], x, y[0].copy(), alpha)
    wanted = x + dtype(alpha) * dtype(2)
    assert loops.binary_into(CODES["add"], x, 2, alpha)
    same(x, wanted)


@needs_loops
@dtypes
@pytest.mark.parametrize("name", BINARY)
def test_binary_into_itself(name, dtype):
    x = sample(dtype, 2, 3)
    wanted = BINARY[name](x, x)
    assert loops.binary_into(CODES[name], x, x)
    same(x, wanted)


@needs_loops
@pytest.mark.parametrize("name", BINARY)
def test_overlap_is_declined(name):
    memory = sample(np.float64, 8)
    before = memory.copy()
    matrix = memory.reshape(2, 4)
    for a, b in ((memory[1:], memory[:-1]), (memory[:4], memory[2:6]), (matrix, matrix[0])):
        assert not loops.binary_into(CODES[name], a, b)
        assert not loops.binary_into(CODES[name], a, b, 0.5)
    assert (memory == before).all()


@needs_loops
def test_read_only_target_is_declined():
    x = sample(np.float64, 3)
    x.flags.writeable = False
    assert not loops.binary_into(CODES["add"], x, 1.0)


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_overlapping_operands_are_computed_before_written(name):
    memory = wengert.arange(1.0, 9.0)
    wanted = memory.clone()
    with wengert.no_grad():
        try:
            getattr(memory[1:], name)(memory[:-1])
        except RuntimeError as error:
            assert "single memory location" in str(error)
        else:
            expected = getattr(wanted[1:].clone(), name)(wanted[:-1].clone())
            assert memory[1:].tolist() == expected.tolist()


# Parts --------------------------------------------------------------------------------------------


@needs_loops
@pytest.mark.parametrize("kind", [np.float32, np.int8, np.complex128, bool])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("dim", "sizes"), [(0, [1, 1]), (1, [2, 2]), (2, [0, 1, 3]), (2, [4])])
def test_cut_and_join(dim, sizes, kind, turned):
    x = np.arange(24).reshape(2, 3, 4).astype(kind)
    if turned:
        x = np.asfortranarray(x)
    references = sys.getrefcount(x.dtype)
    parts = ndarrays.cut(x, dim, sizes)
    assert sum(part.shape[dim] for part in parts) == x.shape[dim]
    for part, wanted in zip(parts, np.split(x, np.cumsum(sizes)[:-1], dim), strict=True):
        assert np.array_equal(part, wanted)
        assert part.shape == wanted.shape and part.dtype == wanted.dtype
        assert part.size == 0 or part.strides == wanted.strides
        assert part.flags.writeable and np.shares_memory(part, x) == (part.size > 0)
    joined = native_loop("_cat").run(([part.copy() for part in parts], dim, sizes))
    assert np.array_equal(joined, x) and joined.dtype == x.dtype and joined.flags.c_contiguous
    del parts, part, wanted, joined
    assert sys.getrefcount(x.dtype) <= references + 1


@needs_loops
def test_cut_keeps_what_it_cuts():
    parts = ndarrays.cut(np.arange(6.0), 0, [2, 4])
    assert parts[1].tolist() == [2, 3, 4, 5]
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    assert not ndarrays.cut(frozen, 0, [6])[0].flags.writeable


@needs_loops
def test_join_declines():
    x = sample(np.float64, 2, 3)
    foreign = x.view(type("Foreign", (np.ndarray,), {}))
    assert ndarrays.cut(foreign, 0, [2]) is None
    for arrays_ in (
        [],
        [x, x.astype(np.float32)],
        [x.T, x.T],
        [x, x[0]],
        [x, sample(np.float64, 2, 2)],
        [foreign, x],
        [x, foreign],
        [x.astype(object)],
        [np.float64(1.0)],
    ):
        assert native_loop("_cat").run((arrays_, 0, ())) is None


# Sums ---------------------------------------------------------------------------------------------


@needs_loops
@dtypes
@pytest.mark.parametrize("shape", [(), (1,), (64,), (8, 8), (0,), (2, 3, 4)], ids=str)
def test_sum_all(shape, dtype):
    x = sample(dtype, *shape)
    found = loops.unary(TOTAL, x)
    assert isinstance(found, np.ndarray) and found.shape == ()
    same(found, np.asarray(x.sum(dtype=np.float64)).astype(dtype))


@needs_loops
@dtypes
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (64, 2), (0, 3), (3, 0)], ids=str)
def test_sum_rows(shape, dtype):
    x = sample(dtype, *shape)
    same(loops.sum_rows(x), x.sum(axis=0), units=64)


@needs_loops
@dtypes
def test_copy(dtype):
    x, y = sample(dtype, 4, 3), sample(dtype, 4, 3)[::-1].copy()
    assert loops.binary_into(COPY, x, y)
    same(x, y, units=0)
    assert loops.binary_into(COPY, x, x)
    memory, before = sample(dtype, 6), sample(dtype, 6)
    for source in (memory[1:5], y[0], y.astype(np.float16), y.T, 1.0, None):
        assert not loops.binary_into(COPY, memory[:4], source)
    same(memory, before, units=0)
    assert loops.binary(COPY, x, y) is None


@needs_loops
def test_sums_decline():
    x = sample(np.float64, 4, 4)
    for value in (x.T[1:], x[:, :2], x.astype(np.int64), x.astype(np.float16), 1.0, None):
        assert loops.unary(TOTAL, value) is None
        assert loops.sum_rows(value) is None
    assert loops.unary(TOTAL, np.ones(65)) is None
    assert loops.sum_rows(np.ones((65, 2))) is None
    assert loops.sum_rows(np.ones(4)) is None


@needs_loops
@dtypes
def test_logistic_tail(dtype):
    e = np.exp(-np.linspace(-30, 30, 200_000).astype(dtype))
    wanted = 1 / (1 + e)
    assert loops.logistic_tail(e)
    same(e, wanted)


@needs_loops
def test_logistic_tail_declines():
    x = np.ones((4, 4))
    x.flags.writeable = False
    for value in (x, np.ones((4, 4)).T[1:], np.ones(3, np.float16), np.ones(3, complex), 1.0):
        assert not loops.logistic_tail(value)


# Differentials ------------------------------------------------------------------------------------

DIFFERENTIALS = {
    "tanh": lambda t, y: t * (1 - y * y),
    "sigmoid": lambda t, y: t * ((1 - y) * y),
    "relu": lambda t, y: np.where(y <= 0, 0, t),
}


@needs_loops
@dtypes
@pytest.mark.parametrize("name", DIFFERENTIALS)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)], ids=str)
def test_differential(name, shape, dtype):
    t, y = sample(dtype, *shape, low=-1.0), np.asarray(np.tanh(sample(dtype, *shape, low=-0.6)))
    found = loops.differential(CODES[name], t, y)
    wanted = DIFFERENTIALS[name](t.astype(np.float64), y.astype(np.float64)).astype(dtype)
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-7)
    assert found.dtype == dtype


@needs_loops
@pytest.mark.parametrize("name", DIFFERENTIALS)
def test_differential_declines(name):
    t = sample(np.float64, 2, 3)
    for a, b in (
        (t, t.astype(np.float32)),
        (t, t[0].copy()),
        (t.T, t.T),
        (t, t.astype(np.complex128)),
        (1.0, t),
    ):
        assert loops.differential(CODES[name], a, b) is None


shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


@pytest.mark.wide
@quick
@given(
    data=st.data(),
    name=st.sampled_from(sorted(DIFFERENTIALS)),
    dtype=st.sampled_from([np.float32, np.float64]),
    shape=shapes,
)
def test_fused_differential_is_the_rule(data, name, dtype, shape):
    """Without recording the fused loop serves, with create_graph the rule in operators."""
    numbers = st.floats(-20, 20, width=32)
    x = data.draw(arrays.arrays(dtype, shape, elements=numbers))
    g = data.draw(arrays.arrays(dtype, shape, elements=numbers))

    def gradient(create_graph):
        leaf = wengert.tensor(x, requires_grad=True)
        out = getattr(leaf, name)()
        (found,) = wengert.autograd.grad(
            out, leaf, wengert.tensor(g), create_graph=create_graph
        )
        return found.detach().numpy()

    eps = np.finfo(dtype).eps
    found, wanted = gradient(False), gradient(True)
    assert found.dtype == wanted.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=8 * eps, atol=40 * eps)


@pytest.mark.parametrize("name", DIFFERENTIALS)
def test_fused_differential_of_special_values(name):
    def gradient(create_graph):
        leaf = wengert.tensor(SPECIAL, requires_grad=True)
        (found,) = wengert.autograd.grad(
            getattr(leaf, name)(), leaf, wengert.ones(len(SPECIAL)), create_graph=create_graph
        )
        return found.detach().numpy()

    np.testing.assert_allclose(gradient(False), gradient(True), rtol=1e-6)


@pytest.mark.wide
@quick
@given(
    data=st.data(),
    name=st.sampled_from([*UNARY, *BINARY]),
    dtype=st.sampled_from([np.float32, np.float64]),
    shape=shapes,
    turned=st.booleans(),
)
def test_operators_agree_with_numpy(data, name, dtype, shape, turned):
    """Whichever way an operator goes, by a loop or by NumPy, the result is NumPy's."""
    numbers = st.floats(0.25, 10, width=32)
    operands = [data.draw(arrays.arrays(dtype, shape, elements=numbers))]
    if name in BINARY:
        operands.append(data.draw(arrays.arrays(dtype, shape, elements=numbers)))
    if turned:
        operands = [operand.T for operand in operands]
    reference = UNARY.get(name) or BINARY[name]
    found = getattr(wengert, name)(*map(wengert.from_numpy, operands)).numpy()
    wanted = reference(*[operand.astype(np.float64) for operand in operands])
    assert found.dtype == dtype
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-6)


# Shapes and views ---------------------------------------------------------------------------------


def test_shape_of():
    for shape in [(), (3,), (3,), (2, 3), (3, 2), (2, 3), (0,), (1,) * 9, (1,) * 10, (1,) * 9]:
        assert ndarrays.shape_of(np.empty(shape)) == shape


def test_has_shape():
    for shape in [(), (3,), (2, 3), (0, 2), (1,) * 9]:
        array = np.empty(shape)
        assert ndarrays.has_shape(array, shape)
        for other in [(), (3,), (2, 3), (0, 2), (3, 2), (1,) * 9, (1,) * 8]:
            assert ndarrays.has_shape(array, other) == (shape == other)


def test_shapes_of_what_is_not_an_array():
    class Other:
        shape = (2, 3)
        dtype = np.dtype(np.float32)

    assert ndarrays.shape_of(Other()) == (2, 3)
    assert ndarrays.has_shape(Other(), (2, 3)) and not ndarrays.has_shape(Other(), (3, 2))
    assert ndarrays.is_differentiable(Other()) and ndarrays.is_real_float(Other())


def test_same_view():
    x = np.arange(12.0).reshape(3, 4)
    assert ndarrays.same_view(x, x[:])
    assert ndarrays.same_view(x[1:], x[1:3])
    for other in (x.copy(), x[:2], x.T, x.reshape(4, 3), x[::-1], x[:, ::2]):
        assert not ndarrays.same_view(x, other)
    assert not ndarrays.same_view(x[:, :2], x[:, ::2])


@pytest.mark.parametrize(
    ("dtype", "differentiable", "real"),
    [
        (np.float16, True, False),
        (np.float32, True, True),
        (np.float64, True, True),
        (np.complex64, True, False),
        (np.complex128, True, False),
        (np.int64, False, False),
        (np.uint8, False, False),
        (np.bool_, False, False),
    ],
)
def test_kinds_of_dtypes(dtype, differentiable, real):
    array = np.zeros(2, dtype)
    assert ndarrays.is_differentiable(array) == differentiable
    assert ndarrays.is_real_float(array) == real
    assert ndarrays.is_half(array) == (dtype == np.float16)


def test_bfloat16_is_differentiable_and_half():
    array = wengert.zeros(2, dtype=wengert.bfloat16).array
    assert ndarrays.is_differentiable(array)
    assert ndarrays.is_half(array)
    assert not ndarrays.is_real_float(array)


# Frames, threads, references ----------------------------------------------------------------------


def test_caller_is_the_innermost_frame_outside_the_package():
    code = frames.caller()
    assert code is sys._getframe().f_code
    line = sys._getframe().f_lineno - 2
    starts = [entry for entry in code.co_lines() if entry[0] <= frames.lasti < entry[1]]
    assert [entry[2] for entry in starts] == [line]


def test_caller_of_different_functions():
    def first():
        return frames.caller()

    def second():
        return frames.caller()

    for _ in range(3):
        assert first() is first.__code__
        assert second() is second.__code__


def test_caller_without_a_python_frame_outside():
    found = []
    thread = threading.Thread(target=lambda: found.append(frames.caller()))
    thread.start()
    thread.join()
    assert found[0].co_name == "<lambda>"


def test_thread_ident():
    assert frames.thread_ident() == threading.get_ident()


def test_refcount_grows_with_references():
    value = np.zeros(2)
    if not wengert.__compiled__ and sys.version_info >= (3, 14):
        assert collector.refcount(value) == sys.maxsize
        return
    before = collector.refcount(value)
    another = value
    assert collector.refcount(value) == before + 1
    del another
    assert collector.refcount(value) == before


def test_compiled_is_told():
    assert wengert.__compiled__ is wengert.__compiled__


without_loops = pytest.mark.skipif(wengert.__compiled__, reason="the uncompiled package")


@without_loops
@dtypes
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)], ids=str)
def test_uncompiled_loops_are_numpy(shape, dtype):
    x, y = sample(dtype, *shape), np.asarray(sample(dtype, *shape, low=1.3))
    for name in UNARY.keys() - {"sigmoid", "relu"}:
        same(loops.unary(CODES[name], x), UNARY[name](x.astype(np.float64)).astype(dtype))
    for name in BINARY:
        same(loops.binary(CODES[name], x, y), np.asarray(BINARY[name](x, y)))
        same(loops.binary(CODES[name], x, 2.5), np.asarray(BINARY[name](x, dtype(2.5))))
        same(loops.binary(CODES[name], 3, x), np.asarray(BINARY[name](dtype(3), x)))
    target = x.copy()
    assert loops.binary_into(CODES["sub"], target, y)
    same(target, np.asarray(x - y))
    for name in DIFFERENTIALS:
        out = np.asarray(np.tanh(x - 1))
        same(loops.differential(CODES[name], y, out), np.asarray(DIFFERENTIALS[name](y, out)))


@without_loops
def test_uncompiled_loops_decline():
    x = sample(np.float64, 2, 2)
    before = x.copy()
    foreign = x.view(type("Foreign", (np.ndarray,), {}))
    for value in (foreign, x.astype(np.float32), x.astype(np.float16), x.astype(int), True, 1j):
        assert loops.binary(CODES["add"], x, value) is None
        assert loops.binary(CODES["add"], value, x) is None
        assert loops.differential(CODES["tanh"], x, value) is None
        assert not loops.binary_into(CODES["add"], x, value)
    assert loops.binary(CODES["add"], x, sample(np.float64, 3)) is None
    assert not loops.binary_into(CODES["add"], x, sample(np.float64, 3))
    assert not loops.binary_into(CODES["add"], x, x, 2.0)
    for value in (foreign, x.astype(np.float16), x.astype(int), 1.0):
        assert loops.unary(CODES["exp"], value) is None
    expanded = np.broadcast_to(x, (2, 2, 2))
    assert not loops.binary_into(CODES["add"], expanded, expanded)
    assert matrices.product(x, x, False, True) is None
    assert matrices.addmm(x, x, x) is None
    same(loops.unary(TOTAL, x), np.asarray(x.sum()))
    assert loops.sum_rows(x) is None
    assert not loops.logistic_tail(x)
    assert (x == before).all()


@without_loops
def test_uncompiled_loops_are_quiet_and_not_entered_twice():
    """They share one context, which no second call may enter: that one goes the long way."""
    from wengert.backends import loops as module

    x = wengert.tensor([1e38, -1.0, 0.0])
    with np.errstate(all="raise"):
        assert (x * 1e30).tolist() == [float("inf"), pytest.approx(-1e30), 0.0]
        inside = module._quietly(lambda: x * 1e30)
        assert inside.tolist() == (x * 1e30).tolist()
        assert module._quietly(lambda: loops.binary(CODES["mul"], x.array, x.array)) is None
        with pytest.raises(FloatingPointError):
            x.array / 0
