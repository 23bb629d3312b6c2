"""Kernels in C by the names of operators and rules: what they compute, and that rules agree."""

import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import wengert
from native_samples import run_with
from wengert.backends.kernels import native_loop
from wengert.core.registry import operator_named
from wengert.nn import functional as F

compiled_only = pytest.mark.compiled_only


def normal(*shape, dtype=np.float32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


X = normal(3, 40, 300)
SMALL = normal(4, 5, 6)
INDEX = np.random.default_rng(2).integers(0, 40, 70)
PLACES = np.random.default_rng(3).integers(0, 40, X.shape)
CLASSES = np.random.default_rng(4).integers(0, 300, 40)
MASK = X > 0.3

#: An operator and what its kernel is given: arrays large enough for several strips and parts.
CALLS = [
    ("sum.dim_IntList", (X, (1,), False, None)),
    ("sum.dim_IntList", (X, (0, 1), True, None)),
    *[("sum.dim_IntList", (normal(rows, 1500), (0,), False, None)) for rows in (2, 34, 70, 131)],
    ("amax", (normal(70, 1500), (0,), False)),
    ("mean.dim", (X, (-1,), False, None)),
    ("mean", (X, None)),
    ("amax", (X, (1,), False)),
    ("amin", (X, (), False)),
    ("prod.dim_int", (SMALL, 1, True, None)),
    ("linalg_vector_norm", (X, 2, (1,), False, None)),
    ("var", (X, (1,), None, False)),
    ("var", (X, None, 0, False)),
    ("std", (X, (2,), 1, True)),
    ("var_mean", (X, (0, 1), None, False)),
    ("softmax", (X, 1, None)),
    ("softmax", (X, -1, None)),
    ("log_softmax", (X, 0, None)),
    ("logsumexp", (X, (1,), True)),
    ("cumsum", (X, 1, None)),
    ("cumsum", (X, 2, None)),
    ("cumprod", (X, 0, None)),
    ("cumprod", (X, 1, None)),
    ("cumprod", (X, 2, None)),
    ("_sum_to", (X[0], (300,))),
    ("argmax", (X, 1, False)),
    ("argmin", (X, None, False)),
    ("max.dim", (X, 2, False)),
    ("min.dim", (X, 1, True)),
    ("any", (MASK, (1,), False)),
    ("all", (MASK, None, False)),
    ("index_select", (X, 1, INDEX)),
    ("embedding", (X[0], INDEX.reshape(7, 10), -1, False, False)),
    ("index_add", (X, 1, INDEX, normal(3, 70, 300), 2.0)),
    ("index", (X, [None, INDEX - 40])),
    ("index", (X, [MASK])),
    ("gather", (X, 1, PLACES, False)),
    ("scatter_add", (X, 1, PLACES, normal(3, 40, 300, seed=5))),
    ("masked_fill", (X, MASK, -2.5)),
    ("masked_select", (X, MASK)),
    ("sort", (X, 2, False, None)),
    ("sort", (X, -1, True, True)),
    ("sort", (SMALL, 2, True, None)),
    ("topk", (X, 5, 2, True, True)),
    ("topk", (SMALL, 3, -1, False, True)),
    ("roll", (X, (7,), (1,))),
    ("roll", (X, (-3,), ())),
    ("flip", (X, (1,))),
    ("flip", (X, (2,))),
    ("tril", (X, 5)),
    ("triu", (X, -45)),
    ("flip", (X, (0,))),
    ("flip", (X.reshape(-1), (0,))),
    ("flip", (X[0], (-1,))),
    ("flip", (np.tile(X, (1, 1, 3)), (1,))),
    ("roll", (X, (2,), (0,))),
    ("roll", (np.tile(X, (1, 1, 3)), (1,), (-1,))),
    ("roll", (np.tile(X, 2).reshape(-1), (1,), (0,))),
    ("stack", ([X, -X, X], 2)),
    ("stack", ([X[:, 1:], X[:, :-1]], 1)),
    ("stack", ([SMALL] * 40, 0)),
    ("_cat", ([X, -X, X[:, :7]], 1, (40, 40, 7))),
    ("_cat", ([X, X[:0], SMALL[0, 0].max() * X], 0, (3, 0, 3))),
    ("_cat", ([X[:, :, 3:60], X[:, :, :40]], 2, (57, 40))),
    ("_cat", ([SMALL, SMALL[:, 1:3]] * 40, 1, (5, 2) * 40)),
    ("_cat", ([X[0]] * 40, 0, (40,) * 40)),
    ("repeat", (SMALL, (2, 1, 3, 2))),
    ("repeat", (X, (2, 1, 3))),
    ("repeat", (X[0, 0], (400,))),
    ("repeat", (X, (2, 1, 1))),
    ("repeat", (X, (3, 1, 2, 1))),
    ("repeat", (X, (2, 3, 1, 1, 2))),
    ("repeat", (X[0, :, :1].copy(), (1, 700))),
    ("repeat", (X[0, :1, :1], (50_000, 3))),
    ("repeat", (X[0, 0, :1], (200_000,))),
    ("repeat", (np.tile(X, (1, 1, 4)), (2, 1, 1))),
    ("repeat", (np.array(2.5, np.float32), (3, 4))),
    ("constant_pad_nd", (X, (1, -2, 3, 4), 1.5)),
    ("constant_pad_nd", (X[0, 0], (100, 20), 0)),
    ("constant_pad_nd", (X, (1, 1), 0.0)),
    ("constant_pad_nd", (X, (0, 0, 0, 0, 2, 1), -0.0)),
    ("constant_pad_nd", (X, (0, 3, 200, 0, -1, 2), np.inf)),
    ("constant_pad_nd", (X, (-3, -1, -2, 0), 2)),
    ("constant_pad_nd", (SMALL, (1, 2, 3, 4, 5, 6), 0)),
    ("_contiguous", (X[0].T,)),
    ("_contiguous", (X[:, 3:20],)),
    ("_contiguous", (X[:, :, 3:20],)),
    ("native_layer_norm", (X, (40, 300), None, None, 1e-5)),
    ("_normalize_channels", (X, normal(40), None, 1e-5)),
    ("_normalize_channels", (X[0], None, normal(300), 1e-5)),
    ("_nll_loss", (X[0], CLASSES, None, 1, 7)),
    ("_nll_loss", (X[0], CLASSES, None, 0, 7)),
    ("mm", (SMALL[0], SMALL[1].T)),
    ("mm", (normal(60, 30), normal(30, 37))),
    ("mm", (normal(1, 9), normal(9, 1))),
    ("_mm_right", (normal(7, 9), normal(21, 9))),
    ("_mm_left", (normal(9, 7), normal(9, 53))),
    ("addmm", (normal(21), normal(7, 9), normal(9, 21), 1, 1)),
    ("addmm", (normal(50, 40), normal(50, 60), normal(60, 40), 1, 1)),
    ("_affine", (normal(21), normal(7, 9), normal(21, 9))),
    ("_affine", (normal(65), normal(100, 90), normal(65, 90))),
    ("bmm", (normal(9, 32, 40), normal(9, 40, 33))),
    ("_bmm_left", (normal(9, 5, 4), normal(9, 5, 6))),
    ("_bmm_right", (normal(9, 5, 4), normal(9, 6, 4))),
    ("mv", (SMALL[0], SMALL[1, 0])),
    ("dot", (X[0, 0], X[1, 1])),
    ("remainder", (X, -X[::-1].copy())),
    ("remainder", (SMALL, 0.75)),
    ("remainder", (SMALL, -0.75)),
    ("fmod", (X, -X[::-1].copy())),
    *[("pow", (X, exponent)) for exponent in (2, 3, 4, 5.0, 6, -1, -2, -3)],
]


def in_double(value):
    if isinstance(value, list):
        return [in_double(each) for each in value]
    return value.astype(np.float64) if getattr(value, "dtype", None) == np.float32 else value


def assert_same(found, wanted, tolerance):
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other, tolerance)
        return
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@compiled_only
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize(
    ("name", "args"), CALLS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CALLS)]
)
def test_kernels_agree_with_those_that_are_declared(name, args, double):
    """The declared kernel, in NumPy's terms, says what the one in C has to compute."""
    wide = tuple([in_double(a) for a in args])
    found = native_loop(name).run(wide if double else args)
    if double and name == "sort" and args[0] is X:
        assert found is None  # long rows of float64 are NumPy's
        return
    assert found is not None
    wanted = operator_named(name).kernel(np, *wide)
    assert_same(found, wanted, 1e-12 if double else 3e-4)
    first = found[0] if isinstance(found, tuple) else found
    assert first.flags.c_contiguous and not any(first is a for a in args)


KINDS = (np.bool_, np.int8, np.float16, np.int32, np.float64, np.complex64, np.complex128)


@compiled_only
@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_all_kinds_of_elements(kind):
    x = (10 * X).astype(kind)
    for name, *args in (
        ("clone",),
        ("flip", (1,)),
        ("flip", (2,)),
        ("roll", (7,), (1,)),
        ("roll", (-3,), (2,)),
        ("roll", (1,), ()),
        ("tril", 5),
    ):
        found = native_loop(name).run((x, *args))
        np.testing.assert_array_equal(found, operator_named(name).kernel(np, x, *args), strict=True)
    for joined, dim in (([x, x[:, 3:], x[:, :1]], 1), ([x, x[:, :, 1:]], 2), ([x[:1], x], 0)):
        found = native_loop("_cat").run((joined, dim, None))
        np.testing.assert_array_equal(found, np.concatenate(joined, dim), strict=True)


@compiled_only
def test_copies_of_all_lengths_between_all_places():
    """Both ends of what is copied may lie anywhere in a vector, and in the part of a thread."""
    random = np.random.default_rng(7)
    data = random.integers(0, 256, 400_000).astype(np.uint8)
    lengths = [*range(1, 100, 3), *range(60, 70), *range(600, 680, 7), 4000]
    lengths += [131_072, 131_073, 262_145, 300_000]
    for length in lengths:
        for before in (0, 1, 4, 15, 31, 32, 63):
            start = int(random.integers(0, 64))
            parts = [data[:before], data[start : start + length], data[:5]]
            found = native_loop("_cat").run((parts, 0, None))
            np.testing.assert_array_equal(found, np.concatenate(parts))
            for shift in (1, before):
                found = native_loop("roll").run((parts[1], (shift,), (0,)))
                np.testing.assert_array_equal(found, np.roll(parts[1], shift))


@compiled_only
def test_copies_decline_what_is_unusual():
    arguments = {"flip": ((0,),), "roll": ((1,), (0,)), "repeat": ((2, 1),), "tril": (0,)}
    for name in ("clone", *arguments):
        args = arguments.get(name, ())
        for x in (X[0].T, X[0, ::-1], X[0, :0], X[0].astype(">f4"), X[0].astype(object)):
            assert native_loop(name).run((x, *args)) is None
    assert native_loop("flip").run((X, (0, 1))) is None
    assert native_loop("flip").run((X, (3,))) is None
    assert native_loop("flip").run((X[0, 0, 0], (0,))) is None
    assert native_loop("roll").run((X, (1, 2), (0, 1))) is None
    assert native_loop("roll").run((X, (1,), (3,))) is None


def test_copies_of_views_are_those_of_numpy():
    for x in (X[0].T, X[0, ::2], X[0, :, 5:9], X[0, :0], X[:, 1].T):
        t = wengert.from_numpy(x)
        for dims in ((0,), (1,), (-1,), (0, 1)):
            np.testing.assert_array_equal(t.flip(dims).numpy(), np.flip(x, dims))
            shifts = (3, -5)[: len(dims)]
            np.testing.assert_array_equal(t.roll(shifts, dims).numpy(), np.roll(x, shifts, dims))
        np.testing.assert_array_equal(t.roll(2).numpy(), np.roll(x, 2))
        np.testing.assert_array_equal(t.repeat(2, 3, 1).numpy(), np.tile(x, (2, 3, 1)))
        np.testing.assert_array_equal(wengert.cat([t, t], 1).numpy(), np.concatenate([x, x], 1))
        np.testing.assert_array_equal(wengert.stack([t, t], 1).numpy(), np.stack([x, x], 1))
        np.testing.assert_array_equal(F.pad(t, (2, 1, 1, 0)).numpy(), np.pad(x, ((1, 0), (2, 1))))


@compiled_only
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "repeats"),
    [
        ((40, 300), (2, 1)),
        ((40, 300), (1, 3)),
        ((40, 300), (2, 3)),
        ((40, 300), (2, 1, 3, 2)),
        ((5, 40, 300), (2, 1, 3)),
        ((5, 40, 300), (1, 2, 1)),
        ((70_001,), (3,)),
        ((70_001,), (2, 4)),
        ((300, 400), (2, 1)),
        ((3, 1, 50_000), (1, 4, 2)),
        ((9,), (1, 16)),
    ],
)
def test_sums_of_repeated_elements(shape, repeats, dtype):
    """One pass adds the copies in their order, on any number of threads."""
    padded = (1,) * (len(repeats) - len(shape)) + shape
    g = normal(*[n * size for n, size in zip(repeats, padded, strict=True)], dtype=dtype)
    pairs = g.reshape([n for pair in zip(repeats, padded, strict=True) for n in pair])
    wanted = 0
    for place in np.ndindex(*repeats):
        wanted = wanted + pairs[tuple([each for i in place for each in (i, slice(None))])]
    before = wengert.get_num_threads()
    try:
        for threads in (1, 2, 5):
            wengert.set_num_threads(threads)
            found = native_loop("repeat.self").run((g, shape, repeats))
            np.testing.assert_array_equal(found, wanted.reshape(shape), strict=True)
    finally:
        wengert.set_num_threads(before)


@compiled_only
def test_sums_of_many_or_short_copies_are_left_to_the_rule():
    run = native_loop("repeat.self").run
    assert run((normal(30, 9), (9,), (30, 1))) is None
    assert run((normal(4, 5), (4, 5), (1, 1))) is None
    assert run((normal(8, 5), (4, 5), (2, 1))) is not None
    assert run((normal(4, 10), (4, 5), (1, 2))) is None
    assert run((normal(2, 0), (0,), (2, 1))) is None
    assert run((normal(9, 8).T, (9,), (8, 1))) is None
    assert run((normal(2, 9).astype(np.int64), (9,), (2, 1))) is None
    assert run((normal(3, 9), (9,), (2, 1))) is None


FUNCTIONS = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean((0, 1)),
    "amax": lambda x: x.round().amax(1),
    "prod": lambda x: x.prod(1),
    "prod with a zero": lambda x: (x * (x.detach() > -1)).prod(1),
    "norm": lambda x: x.norm(dim=1),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std((0, 1)),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1) + x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(1) + (x * (x.detach() > -1)).cumprod(-1) + x.cumprod(0),
    "bias": lambda x: x[0] + x[1, 0] + x[2, 1],
    "split": lambda x: wengert.cat([p * i for i, p in enumerate(x.split(2, -2))], 1),
    "unbind": lambda x: sum(p * p for p in x.unbind(-1)),
    "max": lambda x: x.max(1).values,
    "sort": lambda x: x.sort(-1, True).values,
    "topk": lambda x: x.topk(2, -1).values,
    "index": lambda x: x[:, wengert.tensor([0, 4, 0, -1])],
    "mask": lambda x: x[x.detach() > 0],
    "masked_fill": lambda x: x.masked_fill(x.detach() > 0, 1.0),
    "gather": lambda x: x.gather(1, wengert.tensor(PLACES[0, :3, :30].reshape(3, 5, 6) % 5)),
    "roll": lambda x: x.roll(2, 1),
    "flip": lambda x: x.flip(1),
    "tril": lambda x: x.tril(),
    "pad": lambda x: F.pad(x, (1, 2, -1, 1)),
    "repeat": lambda x: x.repeat(2, 2, 1) * x.repeat(2, 1, 2, 1)[1, 0],
    "batch_norm": lambda x: F.batch_norm(x, None, None, x[0, :, 0], x[0, :, 1], True),
    "layer_norm": lambda x: F.layer_norm(x, (6,), x[0, 0], x[0, 1]),
    "nll_loss": lambda x: F.nll_loss(x[0], wengert.tensor([0, 1, -100, 3, 5])),
    "bmm": lambda x: x @ x.transpose(1, 2),
    "mm": lambda x: x[0] @ x[1].t(),
    "linear": lambda x: F.linear(x[0], x[1], x[2, :, 0]),
    "cat": lambda x: wengert.cat([x[:, 1:], x, x[:, :2]], 1),
    "stack": lambda x: wengert.stack([x, x[:1].expand(3, 5, 6)], 1),
    "pow": lambda x: x**3 + x**-2 + x**5,
    "mv": lambda x: x[0] @ x[1, 0],
    "dot": lambda x: x[0, 0] @ x[1, 0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_by_kernels_are_those_of_the_rules(name):
    """With the graph of the gradient, rules run; without it, kernels where there are any."""
    function = FUNCTIONS[name]
    x = wengert.tensor(normal(3, 5, 6, dtype=np.float64), requires_grad=True)
    out = function(x)
    g = wengert.tensor(normal(*out.shape, dtype=np.float64, seed=9))
    (wanted,) = wengert.autograd.grad(out, x, g, create_graph=True)
    (found,) = wengert.autograd.grad(function(x), x, g)
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-10, atol=1e-12)
    doubled = x * 1.0
    total = function(doubled).reshape(-1) @ g.reshape(-1) + doubled.sum()
    (shared,) = wengert.autograd.grad(total, x)
    np.testing.assert_allclose(shared.numpy(), found.numpy() + 1, rtol=1e-10, atol=1e-12)


@compiled_only
def test_kernels_decline_what_is_wrong():
    """Errors are raised by what is declared, in its words."""
    assert native_loop("sum.dim_IntList").run((X, (3,), False, None)) is None
    assert native_loop("sum.dim_IntList").run((X, (0, 0), False, None)) is None
    assert native_loop("index_select").run((X, 1, np.array([0, 40]))) is None
    assert native_loop("index_select").run((X, 1, np.array([0, -1]))) is None
    assert native_loop("gather").run((X, 1, PLACES[:, :, :5], False)) is None
    assert native_loop("topk").run((SMALL, 7, 2, True, True)) is None
    assert native_loop("_nll_loss").run((X[0], CLASSES + 300, None, 1, 7)) is None
    assert native_loop("bmm").run((X, X)) is None
    assert native_loop("softmax").run((X.astype(np.int64), 1, None)) is None
    assert native_loop("mean").run((X[:, :, :0], None)) is None


@compiled_only
@pytest.mark.parametrize("name", ["remainder", "fmod"])
def test_remainders_of_special_values(name):
    values = np.array([0.0, -0.0, 1.5, -1.5, 3.0, np.inf, -np.inf, np.nan], np.float32)
    x, y = [a.reshape(-1).copy() for a in np.meshgrid(values, values)]
    with np.errstate(all="ignore"):
        wanted = operator_named(name).kernel(np, x, y)
    found = native_loop(name).run((x, y))
    np.testing.assert_array_equal(found, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


@compiled_only
def test_sorting_knows_nan_and_both_zeros():
    row = np.array([3, np.nan, -0.0, 0.0, -np.inf, np.inf, 3, -1] * 10, np.float32)
    for x in (row, row[:20], row.astype(np.float64)[:20]):
        for descending in (False, True):
            values, order = wengert.sort(wengert.tensor(x), descending=descending, stable=True)
            wanted = operator_named("sort").kernel(np, x, 0, descending, True)
            np.testing.assert_array_equal(order.numpy(), wanted[1])
            np.testing.assert_array_equal(np.signbit(values.numpy()), np.signbit(wanted[0]))


@compiled_only
def test_kernels_give_the_same_bits_on_any_number_of_threads():
    before = wengert.get_num_threads()
    try:
        kept = {}
        for threads in (1, 2, 5):
            wengert.set_num_threads(threads)
            for place, (name, args) in enumerate(CALLS):
                found = native_loop(name).run(args)
                found = found if isinstance(found, tuple) else (found,)
                for one, other in zip(found, kept.setdefault(place, found), strict=True):
                    np.testing.assert_array_equal(one, other)
    finally:
        wengert.set_num_threads(before)


@compiled_only
@pytest.mark.parametrize("instructions", ["plain", "avx2", "none"])
def test_other_instructions_compute_the_same(instructions):
    """Loops in plain C stand in where the processor or the compiler has no vectors."""
    program = (
        "import numpy as np, wengert as w; from wengert.backends.kernels import native_loop\n"
        "x = w.linspace(-4, 4, 3000).reshape(60, 50)\n"
        "found = [x.exp(), x.erf(), w.tanh(x), x.softmax(0), x.log_softmax(1), x.var(0),"
        " x.cumsum(0), x.sum(1), w.nn.functional.gelu(x), x.sigmoid().log(), x.amax(0),"
        " x[:, :7] @ x[:7, :19], x[:9] @ x.t(), x.double()[:30, :20] @ x.double()[:20, :33],"
        " x**3, x**-2, x.double().sin(), x.double().exp(), (x * x + 1).log().sqrt()]\n"
        "assert (native_loop('exp') is None) == (%r == 'none')\n"
        "np.save(%r, np.concatenate([t.double().numpy().ravel() for t in found]))"
    )
    with tempfile.TemporaryDirectory() as folder:
        kept = []
        for wish in (instructions, ""):
            path = str(Path(folder, f"found{wish}.npy"))
            run_with(wish, program % (wish, path))
            kept.append(np.load(path))
    np.testing.assert_allclose(*kept, rtol=2e-6, atol=2e-5)  # cumulative sums by NumPy are rough


#: Prints the keys of the kernels that come with the package, and of those of one module more.
KEYS = """
import sys, wengert
from wengert.backends import kernels
print(*kernels.kernel_keys())
before = kernels.kernel_keys()
print(*[name for name in kernels.KERNELS if "wengert.backends." + name in sys.modules])
import wengert.backends.{0}
print(*(kernels.kernel_keys() - before))
"""


def names_of(keys):
    return {key.split(".")[0] for key in keys.split()}


@compiled_only
def test_modules_of_kernels_are_known_by_all_their_operators():
    from wengert.backends import kernels

    for module, names in kernels.KERNELS.items():
        done = subprocess.run(
            [sys.executable, "-c", KEYS.format(module)], capture_output=True, text=True, check=True
        )
        first, early, more = done.stdout.split("\n")[:3]
        known = [name for each in early.split() for name in kernels.KERNELS[each].split()]
        assert names_of(first) == set(known)
        assert names_of(more) == (set() if module in early.split() else set(names.split())), module


@pytest.mark.compiled_only
@pytest.mark.parametrize("wrong", [-(2**63), -4, 3, 2**63 - 1])
@pytest.mark.parametrize("place", [0, 40_000, 69_999])
def test_wrong_indices_are_found_wherever_they_are(wrong, place):
    x = wengert.ones(3, 2)
    index = wengert.zeros(70_000, dtype=wengert.int64)
    index[place] = wrong
    for call in (
        lambda: x.index_select(0, index),
        lambda: x[index],
        lambda: x.t().contiguous().gather(1, index.expand(2, 70_000).contiguous()),
        lambda: x.index_add(0, index, wengert.ones(70_000, 2)),
    ):
        with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
            call()


@pytest.mark.compiled_only
def test_large_indexed_sums_have_the_same_bits_on_any_number_of_threads():
    random = np.random.default_rng(3)
    x = wengert.tensor(random.standard_normal((300, 257)).astype(np.float32))
    rows = wengert.tensor(random.integers(0, 300, 900))
    more = wengert.tensor(random.standard_normal((900, 257)).astype(np.float32))
    places = wengert.tensor(random.integers(0, 257, (300, 400)))
    values = wengert.tensor(random.standard_normal((300, 400)).astype(np.float32))
    mask = wengert.tensor(random.random((300, 257)) < 0.5)
    vector = wengert.tensor(random.standard_normal(300).astype(np.float32))
    found = []
    before = wengert.get_num_threads()
    try:
        for threads in (1, 2, 5):
            wengert.set_num_threads(threads)
            a = x.detach().requires_grad_()
            (a[rows].sin().sum() + a.gather(1, places).cos().sum()).backward()
            v = vector.detach().requires_grad_()
            (a.detach().t().contiguous() @ v).square().sum().backward()
            results = (
                x.index_add(0, rows, more, alpha=0.5), x.scatter_add(1, places, values),
                x.masked_fill(mask, 2.5), a.grad, v.grad, more.flatten().dot(more.flatten()),
            )  # fmt: skip
            found.append([t.numpy().tobytes() for t in results])
    finally:
        wengert.set_num_threads(before)
    expected = x.numpy().copy()
    np.add.at(expected, rows.numpy(), np.float32(0.5) * more.numpy())
    np.testing.assert_array_equal(results[0].numpy(), expected)
    np.testing.assert_array_equal(results[2].numpy(), np.where(mask.numpy(), 2.5, x.numpy()))
    assert found[1:] == found[:-1]


def test_masks_may_have_any_bytes():
    """Bytes seen as bools are true unless they are zero, and count once."""
    data = np.array([[255, 1, 0, 2], [0, 128, 3, 0], [0, 0, 0, 0], [7, 7, 7, 7]], np.uint8)
    mask, plain = data.view(bool), data != 0
    seen = wengert.from_numpy(data).view(wengert.bool)
    x = wengert.arange(16.0).reshape(4, 4).requires_grad_()
    chosen = x.masked_select(seen)
    assert chosen.tolist() == x.detach().numpy()[plain].tolist()
    chosen.sum().backward()
    assert x.grad.tolist() == plain.tolist()
    assert x.detach()[seen].tolist() == chosen.tolist()
    for dim in (0, 1):
        assert seen.any(dim).tolist() == plain.any(dim).tolist()
        assert seen.all(dim).tolist() == plain.all(dim).tolist()
    for row, is_true in zip(mask, plain, strict=True):
        one = wengert.from_numpy(row)
        assert one.any().item() == is_true.any() and one.all().item() == is_true.all()


@pytest.mark.compiled_only
def test_products_have_the_same_bits_while_other_threads_multiply():
    """BLAS is left with one thread until the last of the products that share it is done."""
    a, b = wengert.tensor(normal(600, 700)), wengert.tensor(normal(700, 500, seed=2))
    before = wengert.get_num_threads()
    wengert.set_num_threads(2)
    try:
        expected = (a @ b).numpy().tobytes()
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda _: (a @ b).numpy().tobytes(), range(60)))
    finally:
        wengert.set_num_threads(before)
    assert found == [expected] * 60


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
@pytest.mark.parametrize("step", [1, 2])
def test_products_of_infinities_do_not_warn(dtype, step):
    """Neither do those of rows that lie apart, of which BLAS needs a copy."""
    a, b = [wengert.full((80, 80), n, dtype=getattr(wengert, dtype)) for n in (np.inf, 0)]
    a, b = a[::step, ::step], b[::step, ::step]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for product in (a @ b, b[0] @ a, wengert.addmm(b[0], a, b), F.linear(a, b, b[0])):
            assert product.isnan().all()
