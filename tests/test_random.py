"""Generators, and the distributions of what they draw."""

import copy
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import wengert
from wengert.creation import sampling

MANY = 40_000
FLOATING = ["float16", "bfloat16", "float32", "float64"]


def values(tensor) -> np.ndarray:
    """The tensor's values as doubles (or complex doubles)."""
    array = tensor.array if isinstance(tensor, wengert.Tensor) else tensor
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


@pytest.fixture(autouse=True)
def seeded():
    wengert.manual_seed(20240607)


@pytest.fixture
def generator():
    return wengert.Generator().manual_seed(1)


class TestGenerator:
    def test_same_seed_same_numbers(self, lib):
        one, other = lib.Generator().manual_seed(5), lib.Generator().manual_seed(5)
        assert lib.rand(10, generator=one).tolist() == lib.rand(10, generator=other).tolist()
        assert lib.rand(10, generator=one).tolist() != lib.rand(10).tolist()

    def test_seeds(self, lib):
        made = lib.Generator()
        assert made.initial_seed() == 67280421310721
        assert made.manual_seed(7) is made
        assert made.initial_seed() == 7
        assert made.manual_seed(-1).initial_seed() == 2**64 - 1
        assert made.seed() == made.initial_seed() != 7
        assert made.device == lib.device("cpu")

    @pytest.mark.parametrize("seed, error", [(2**64, ValueError), (-(2**63) - 1, ValueError)])
    def test_seeds_have_64_bits(self, lib, seed, error):
        with pytest.raises(error, match="Overflow when unpacking long"):
            lib.Generator().manual_seed(seed)

    @pytest.mark.parametrize("seed", [1.5, "a"])
    def test_seeds_are_whole(self, lib, seed):
        with pytest.raises(RuntimeError, match="manual_seed expected a long"):
            lib.Generator().manual_seed(seed)

    def test_state_goes_back(self, lib):
        made = lib.Generator().manual_seed(3)
        lib.randint(5, (3,), generator=made)
        state = made.get_state()
        assert state.dtype == lib.uint8
        first = lib.randn(5, generator=made).tolist()
        made.set_state(state)
        assert lib.randn(5, generator=made).tolist() == first
        assert made.initial_seed() == 3

    def test_wrong_states(self, lib):
        with pytest.raises(TypeError, match="expected a .*ByteTensor, but got int"):
            lib.Generator().set_state(3)
        with pytest.raises(TypeError, match="RNG state must be a .*ByteTensor"):
            lib.Generator().set_state(lib.zeros(3))
        with pytest.raises(RuntimeError, match="RNG state size to be 3"):
            lib.Generator().set_state(lib.zeros(3, dtype=lib.uint8))
        with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
            lib.Generator().set_state(lib.zeros(5056, dtype=lib.uint8))

    def test_copies_draw_the_same(self, generator):
        wengert.rand(3, generator=generator)
        twins = [
            generator.clone_state(),
            copy.deepcopy(generator),
            pickle.loads(pickle.dumps(generator)),
        ]
        expected = wengert.rand(3, generator=generator).tolist()
        for twin in twins:
            assert twin.initial_seed() == 1
            assert wengert.rand(3, generator=twin).tolist() == expected

    def test_devices(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupy", None)
        with pytest.raises(RuntimeError, match="not compiled with CUDA"):
            wengert.Generator("cuda")
        with pytest.raises(RuntimeError, match="meta"):
            wengert.Generator("meta")

    def test_other_things_are_refused(self):
        with pytest.raises(TypeError, match="argument 'generator' must be wengert.Generator"):
            wengert.rand(2, generator=3)


class TestDefaultGenerator:
    def test_manual_seed(self, lib):
        made = lib.manual_seed(3)
        assert made is lib.default_generator
        first = lib.rand(5).tolist()
        lib.manual_seed(3)
        assert lib.rand(5).tolist() == first
        assert lib.initial_seed() == 3
        assert lib.seed() == lib.initial_seed()

    def test_state(self, lib):
        state = lib.get_rng_state()
        first = lib.rand(5).tolist()
        lib.set_rng_state(state)
        assert lib.rand(5).tolist() == first

    def test_fork_rng(self, lib):
        lib.manual_seed(0)
        expected = lib.rand(3).tolist()
        lib.manual_seed(0)
        with lib.random.fork_rng():
            lib.rand(100)
            lib.manual_seed(9)
        assert lib.rand(3).tolist() == expected
        with pytest.raises(KeyError), lib.random.fork_rng():
            raise KeyError

    def test_fork_rng_can_be_switched_off(self, lib):
        lib.manual_seed(0)
        with lib.random.fork_rng(enabled=False):
            first = lib.rand(3).tolist()
        assert lib.rand(3).tolist() != first

    def test_threads_share_one_stream(self):
        drawn = []
        threads = [
            threading.Thread(target=lambda: drawn.append(tuple(wengert.rand(4).tolist())))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(drawn)) == 8

    def test_processes_start_differently(self):
        script = "import wengert.random as r; print(r.initial_seed())"
        seeds = {
            subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
            for _ in range(2)
        }
        assert len(seeds) == 2

    def test_importing_draws_nothing(self):
        script = "import wengert.random, sys; print('numpy.random' in sys.modules)"
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert run.stdout.strip() == "False", run.stderr


class TestUniform:
    @pytest.mark.parametrize("name", FLOATING)
    def test_distribution(self, name):
        drawn = values(wengert.rand(MANY, dtype=getattr(wengert, name)))
        assert drawn.min() >= 0 and drawn.max() < 1
        assert abs(drawn.mean() - 0.5) < 0.01
        assert abs(drawn.var() - 1 / 12) < 0.005
        counts = np.histogram(drawn, 16, (0, 1))[0]
        assert np.all(abs(counts / MANY - 1 / 16) < 0.01)

    def test_complex(self):
        drawn = wengert.rand(MANY, dtype=wengert.complex64).array
        for part in (drawn.real, drawn.imag):
            assert part.min() >= 0 and part.max() < 1
            assert abs(part.mean() - 0.5) < 0.01

    def test_range(self):
        array = np.empty(MANY)
        sampling.fill_uniform(array, -3, 5)
        assert array.min() >= -3 and array.max() < 5
        assert abs(array.mean() - 1) < 0.1
        sampling.fill_uniform(array, 3, 3)
        assert np.all(array == 3)

    def test_method(self, lib):
        made = lib.empty(100)
        assert made.uniform_(3, to=4) is made
        assert all(3 <= each < 4 for each in made.tolist())

    def test_strided_target(self, generator):
        holder = np.zeros((4, 6), np.float32)
        sampling.fill_uniform(holder[:, ::2], generator=generator)
        assert np.all(holder[:, ::2] > 0)
        assert np.all(holder[:, 1::2] == 0)

    def test_0d_and_empty(self):
        assert tuple(wengert.rand(()).shape) == ()
        assert tuple(wengert.rand(0, 3).shape) == (0, 3)
        assert 0 <= wengert.rand(()).item() < 1

    @pytest.mark.parametrize(
        "low, high, phrase",
        [
            (2, 1, r"uniform_ expects to return a \[from, to\) range, but found from=2 > to=1"),
            (0, 1e39, "to is out of bounds"),
            (-math.inf, 0, "from is out of bounds"),
            (-3e38, 3e38, "uniform_ expects to-from <="),
        ],
    )
    def test_bounds(self, low, high, phrase):
        with pytest.raises(RuntimeError, match=phrase):
            sampling.fill_uniform(np.empty(2, np.float32), low, high)


class TestNormal:
    @pytest.mark.parametrize("name", FLOATING)
    def test_distribution(self, name):
        drawn = values(wengert.randn(MANY, dtype=getattr(wengert, name)))
        assert abs(drawn.mean()) < 0.02
        assert abs(drawn.std() - 1) < 0.02
        assert abs((drawn**4).mean() - 3) < 0.2
        assert abs((abs(drawn) < 1).mean() - 0.6827) < 0.01

    def test_complex_has_unit_variance_in_all(self):
        drawn = wengert.randn(MANY, dtype=wengert.complex128).array
        assert abs((abs(drawn) ** 2).mean() - 1) < 0.03
        assert abs(drawn.real.var() - 0.5) < 0.02
        assert abs((drawn.real * drawn.imag).mean()) < 0.02

    def test_numbers_and_size(self, lib):
        drawn = lib.normal(10, 0.5, (200, 100))
        assert drawn.dtype == lib.float32
        assert abs(np.asarray(drawn.tolist()).mean() - 10) < 0.02
        assert abs(np.asarray(drawn.tolist()).std() - 0.5) < 0.02
        assert lib.normal(mean=0.0, std=1.0, size=(2,), dtype=lib.float64).dtype == lib.float64

    def test_tensors(self, lib):
        mean = lib.arange(4.0, dtype=lib.float64)
        drawn = lib.normal(mean, 0.0)
        assert drawn.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert drawn.dtype == lib.float64
        assert lib.normal(mean).dtype == lib.float64
        drawn = lib.normal(5.0, lib.zeros(3))
        assert drawn.tolist() == [5.0, 5.0, 5.0]
        drawn = lib.normal(lib.zeros(2, 1), lib.ones(3, dtype=lib.float64))
        assert tuple(drawn.shape) == (2, 3)
        assert drawn.dtype == lib.float32

    def test_method(self, lib):
        made = lib.empty(100)
        assert made.normal_(mean=10, std=0.1) is made
        assert all(9 < each < 11 for each in made.tolist())

    def test_complex_means(self):
        mean = wengert.tensor([1 + 2j] * MANY)
        drawn = wengert.normal(mean, wengert.full((MANY,), 2.0)).array
        assert abs(drawn.mean() - (1 + 2j)) < 0.05
        assert abs(drawn.imag.std() - math.sqrt(2)) < 0.05

    def test_bfloat16_means(self):
        mean = wengert.tensor([3.0, 4.0], dtype=wengert.bfloat16)
        drawn = wengert.normal(mean, wengert.zeros(2))
        assert drawn.dtype is wengert.bfloat16
        assert values(drawn).tolist() == [3.0, 4.0]

    @pytest.mark.parametrize(
        "call, error, phrase",
        [
            (
                lambda lib: lib.normal(0.0, -1.0, (2,)),
                RuntimeError,
                r"std >= 0.0, but found std -1",
            ),
            (lambda lib: lib.normal(lib.zeros(2), -1.0), RuntimeError, "normal expects std >= 0.0"),
            (lambda lib: lib.normal(0.0, math.nan, (2,)), RuntimeError, "normal expects std >= 0"),
            (
                lambda lib: lib.normal(lib.zeros(2), lib.tensor([1.0, -1.0])),
                RuntimeError,
                "normal expects all elements of std >= 0.0",
            ),
            (
                lambda lib: lib.normal(lib.zeros(1), lib.ones(1, dtype=lib.complex64)),
                RuntimeError,
                "standard deviation to be non-complex",
            ),
            (
                lambda lib: lib.normal(lib.zeros(2), lib.ones(3)),
                RuntimeError,
                "must match the size",
            ),
            (lambda lib: lib.normal(0.0, 1.0), TypeError, "normal"),
            (lambda lib: lib.normal(lib.zeros(2), 1.0, (2,)), TypeError, "normal"),
            (lambda lib: lib.normal(1j, 1.0, (2,)), TypeError, "normal"),
        ],
    )
    def test_refusals(self, lib, call, error, phrase):
        with pytest.raises(error, match=phrase):
            call(lib)


class TestIntegers:
    def test_overloads(self, lib):
        for drawn in (
            lib.randint(3, (100,)),
            lib.randint(0, 3, (100,)),
            lib.randint(3, size=(100,)),
            lib.randint(high=3, size=(100,)),
            lib.randint(low=0, high=3, size=(100,)),
        ):
            assert drawn.dtype == lib.int64
            assert set(drawn.tolist()) == {0, 1, 2}

    @pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "float16", "float64"])
    def test_types(self, lib, name):
        drawn = lib.randint(2, 5, (50,), dtype=getattr(lib, name))
        assert drawn.dtype == getattr(lib, name)
        assert set(drawn.tolist()) == {2, 3, 4}

    def test_is_uniform(self):
        counts = np.bincount(wengert.randint(10, (MANY,)).array)
        assert np.all(abs(counts / MANY - 0.1) < 0.01)

    def test_full_ranges(self):
        bytes_ = wengert.randint(0, 256, (MANY,), dtype=wengert.uint8)
        assert len(set(bytes_.tolist())) == 256
        assert set(wengert.randint(0, 2, (50,), dtype=wengert.bool).tolist()) == {False, True}
        huge = wengert.randint(-(2**63), 2**63 - 1, (100,)).array
        assert huge.min() < -(2**60) and huge.max() > 2**60

    @pytest.mark.parametrize(
        "kind, last",
        [("bool", 1), ("uint8", 255), ("int8", 127), ("float16", 2048), ("bfloat16", 256)],
    )
    def test_whole_range_in_place(self, kind, last):
        array = np.zeros(MANY, getattr(wengert, kind).numpy)
        sampling.fill_integers(array)
        assert array.min() == 0 and array.max() == last

    def test_methods(self, lib):
        made = lib.zeros(200, dtype=lib.int32)
        assert made.random_(3) is made
        assert set(made.tolist()) == {0, 1, 2}
        assert set(made.random_(5, 7).tolist()) == {5, 6}
        assert set(made.random_(5, to=7).tolist()) == {5, 6}
        assert min(made.random_(2**31 - 9, None).tolist()) >= 2**31 - 9
        assert max(made.random_().tolist()) > 2**24
        with pytest.raises(TypeError, match="random_"):
            made.random_(1.5)
        with pytest.raises(TypeError, match="random_"):
            made.random_(1, 2, 3)

    def test_lower_bound_only(self):
        array = np.zeros(1000, np.int8)
        sampling.fill_range(array, 120)
        assert set(array.tolist()) == set(range(120, 128))

    @pytest.mark.parametrize(
        "call, error, phrase",
        [
            (lambda lib: lib.randint(5, 5, (2,)), RuntimeError, "'from' to be less than 'to'"),
            (lambda lib: lib.randint(0, (2,)), RuntimeError, "got from=0 >= to=0"),
            (lambda lib: lib.randint(0, 300, (2,), dtype=lib.uint8), RuntimeError, "to - 1 is out"),
            (lambda lib: lib.randint(-1, 3, (2,), dtype=lib.uint8), RuntimeError, "from is out of"),
            (lambda lib: lib.randint(2, (2,), dtype=lib.complex64), RuntimeError, "random_"),
            (lambda lib: lib.randint(5, 2), TypeError, "argument 'size'.* must be tuple of ints"),
            (lambda lib: lib.randint(0.0, 2, (2,)), TypeError, "randint"),
            (lambda lib: lib.randint(5), TypeError, "randint"),
            (lambda lib: lib.randint(5, (2,), requires_grad=True), RuntimeError, "Only Tensors of"),
        ],
    )
    def test_refusals(self, lib, call, error, phrase):
        with pytest.raises(error, match=phrase):
            call(lib)


class TestPermutation:
    def test_is_one(self, lib):
        drawn = lib.randperm(100)
        assert drawn.dtype == lib.int64
        assert sorted(drawn.tolist()) == list(range(100))
        assert drawn.tolist() != list(range(100))
        assert lib.randperm(0).tolist() == []
        assert lib.randperm(3, dtype=lib.float32).dtype == lib.float32

    def test_every_order_is_as_likely(self):
        orders = [tuple(wengert.randperm(3).tolist()) for _ in range(3000)]
        counts = [orders.count(order) for order in set(orders)]
        assert len(counts) == 6
        assert all(abs(count - 500) < 120 for count in counts)

    @pytest.mark.parametrize(
        "call, error, phrase",
        [
            (lambda lib: lib.randperm(-1), RuntimeError, "negative dimension -1"),
            (lambda lib: lib.randperm(300, dtype=lib.uint8), RuntimeError, "without overflow"),
            (lambda lib: lib.randperm(3000, dtype=lib.float16), RuntimeError, "n "),
            (lambda lib: lib.randperm(3, dtype=lib.bool), NotImplementedError, "for 'Bool'"),
            (lambda lib: lib.randperm(5.0), TypeError, "argument 'n'.* must be int, not float"),
        ],
    )
    def test_refusals(self, lib, call, error, phrase):
        with pytest.raises(error, match=phrase):
            call(lib)

    def test_largest_exact_range(self, lib):
        assert lib.randperm(2049, dtype=lib.float16).dtype == lib.float16


class TestBernoulli:
    def test_probabilities(self, lib):
        drawn = lib.bernoulli(lib.tensor([0.0, 1.0]))
        assert drawn.tolist() == [0.0, 1.0]
        assert drawn.dtype == lib.float32
        drawn = lib.bernoulli(lib.zeros(50, dtype=lib.int32), 1.0)
        assert drawn.dtype == lib.int32
        assert drawn.tolist() == [1] * 50

    @pytest.mark.parametrize("p", [0.0, 1e-4, 0.25, 0.5, 0.999, 1.0])
    def test_frequency(self, p):
        for drawn in (
            wengert.bernoulli(wengert.full((10 * MANY,), p, dtype=wengert.float64)),
            wengert.bernoulli(wengert.zeros(10 * MANY), p),
        ):
            spread = math.sqrt(p * (1 - p) / (10 * MANY))
            assert abs(values(drawn).mean() - p) <= 5 * spread

    def test_in_place_with_probabilities_that_broadcast(self):
        array = np.empty((3, 2), np.int8)
        sampling.fill_bernoulli(array, np.array([0.0, 1.0]))
        assert array.tolist() == [[0, 1]] * 3

    def test_method(self, lib):
        made = lib.empty(3, 2, dtype=lib.int32)
        assert made.bernoulli_(lib.tensor([0.0, 1.0])).tolist() == [[0, 1]] * 3
        assert made.bernoulli_(p=1.0).tolist() == [[1, 1]] * 3
        with pytest.raises(RuntimeError, match="expand"):
            made.bernoulli_(lib.ones(3))

    @pytest.mark.parametrize(
        "call, error, phrase",
        [
            (lambda lib: lib.bernoulli(lib.tensor([0.5, 1.5])), RuntimeError, "p_in >= 0"),
            (lambda lib: lib.bernoulli(lib.tensor([math.nan])), RuntimeError, "p_in >= 0"),
            (lambda lib: lib.bernoulli(lib.tensor([0, 1])), NotImplementedError, "'Long'"),
            (lambda lib: lib.bernoulli(lib.zeros(2), p=2.0), RuntimeError, r"p to be in \[0, 1\]"),
            (lambda lib: lib.bernoulli([0.5]), TypeError, "must be Tensor, not list"),
        ],
    )
    def test_refusals(self, lib, call, error, phrase):
        with pytest.raises(error, match=phrase):
            call(lib)


class TestExponential:
    @pytest.mark.parametrize("name", FLOATING)
    def test_distribution(self, name):
        array = np.empty(MANY, getattr(wengert, name).numpy)
        sampling.fill_exponential(array, 2.0)
        drawn = values(array)
        assert drawn.min() > 0
        assert abs(drawn.mean() - 0.5) < 0.02
        assert abs(drawn.std() - 0.5) < 0.02

    def test_method(self, lib):
        assert min(lib.zeros(50).exponential_(lambd=3.0).tolist()) > 0

    def test_refusals(self):
        with pytest.raises(RuntimeError, match="exponential_ expects lambda > 0.0, but found"):
            sampling.fill_exponential(np.empty(2), 0)
        with pytest.raises(RuntimeError, match="dtype must be a floating point"):
            sampling.fill_exponential(np.empty(2, np.int32))


class TestMultinomial:
    def test_shapes(self, lib):
        drawn = lib.multinomial(lib.ones(4), 3)
        assert drawn.dtype == lib.int64
        assert len(set(drawn.tolist())) == 3
        assert tuple(lib.multinomial(lib.ones(2, 3), 2).shape) == (2, 2)
        assert tuple(lib.multinomial(lib.ones(2, 3), 7, True).shape) == (2, 7)
        assert tuple(lib.multinomial(lib.ones(0, 2), 1).shape) == (0, 1)

    def test_zero_weights_come_last(self, lib):
        for _ in range(20):
            drawn = lib.multinomial(lib.tensor([1.0, 0.0, 3.0]), 3).tolist()
            assert sorted(drawn) == [0, 1, 2] and drawn[2] == 1
            assert set(lib.multinomial(lib.tensor([0.0, 1.0, 0.0]), 9, True).tolist()) == {1}

    @pytest.mark.parametrize("name", FLOATING)
    def test_frequency_with_replacement(self, name):
        weights = wengert.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]], dtype=getattr(wengert, name))
        drawn = wengert.multinomial(weights, MANY, replacement=True).array
        for row, expected in zip(drawn, [[0.25, 0, 0.75], [0.5, 0.5, 0]], strict=True):
            assert np.all(abs(np.bincount(row, minlength=3) / MANY - expected) < 0.01)

    def test_frequency_of_one(self):
        rows = wengert.full((MANY, 2), 1.0)
        rows.array[:, 1] = 3.0
        assert abs(wengert.multinomial(rows, 1).array.mean() - 0.75) < 0.01

    def test_frequency_without_replacement(self):
        rows = wengert.tensor([[1.0, 2.0, 3.0, 4.0]] * MANY)
        drawn = wengert.multinomial(rows, 2).array
        assert np.all(drawn[:, 0] != drawn[:, 1])
        first = np.bincount(drawn[:, 0], minlength=4) / MANY
        assert np.all(abs(first - [0.1, 0.2, 0.3, 0.4]) < 0.01)
        second = np.bincount(drawn[drawn[:, 0] == 3, 1], minlength=3) / (drawn[:, 0] == 3).sum()
        assert np.all(abs(second - [1 / 6, 2 / 6, 3 / 6]) < 0.02)

    @pytest.mark.parametrize(
        "call, error, phrase",
        [
            (lambda lib: lib.multinomial(lib.ones(2), 3), RuntimeError, "without replacement"),
            (lambda lib: lib.multinomial(lib.ones(2), 0), RuntimeError, "n_sample <= 0"),
            (lambda lib: lib.multinomial(lib.zeros(2), 1), RuntimeError, "sum of probabilities"),
            (lambda lib: lib.multinomial(lib.tensor([1.0, -1.0]), 1), RuntimeError, "element < 0"),
            (lambda lib: lib.multinomial(lib.tensor([math.nan, 1]), 1), RuntimeError, "`nan`"),
            (lambda lib: lib.multinomial(lib.tensor([1, 1]), 1), RuntimeError, "got: Long"),
            (lambda lib: lib.multinomial(lib.ones(2, 2, 2), 1), RuntimeError, "1 or 2 dim"),
            (lambda lib: lib.multinomial(lib.ones(2), 1.0), TypeError, "must be int, not float"),
            (lambda lib: lib.multinomial([1.0], 1), TypeError, "must be Tensor, not list"),
        ],
    )
    def test_refusals(self, lib, call, error, phrase):
        with pytest.raises(error, match=phrase):
            call(lib)


class TestCommon:
    def test_like(self, lib):
        source = lib.zeros(2, 3, dtype=lib.float64)
        for drawn in (
            lib.rand_like(source),
            lib.randn_like(source),
            lib.randint_like(source, 5),
            lib.randint_like(source, 2, 5),
            lib.randint_like(source, low=2, high=5),
        ):
            assert drawn.dtype == lib.float64
            assert tuple(drawn.shape) == (2, 3)
        assert lib.rand_like(source, dtype=lib.float32).dtype == lib.float32
        assert lib.randn_like(source, requires_grad=True).requires_grad
        with pytest.raises(TypeError, match="must be Tensor, not list"):
            lib.rand_like([1.0])

    @pytest.mark.parametrize(
        "call",
        [
            lambda lib: lib.rand(2, dtype=lib.int32),
            lambda lib: lib.randn(2, dtype=lib.int32),
            lambda lib: lib.rand_like(lib.zeros(2, dtype=lib.int32)),
            lambda lib: lib.normal(lib.zeros(2, dtype=lib.int32), 1.0),
        ],
    )
    def test_continuous_draws_need_floats(self, lib, call):
        with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
            call(lib)

    def test_out(self, lib):
        out = lib.zeros(3, dtype=lib.float64)
        assert lib.rand(3, out=out) is out
        assert all(0 < each < 1 for each in out.tolist())
        assert lib.randperm(2, out=lib.empty(0, dtype=lib.int64)).tolist() in ([0, 1], [1, 0])

    def test_meta(self):
        weights = wengert.ones(4, 3, device="meta")
        for drawn, shape in (
            (wengert.bernoulli(weights), (4, 3)),
            (wengert.normal(weights, 2.0), (4, 3)),
            (wengert.multinomial(weights, 2), (4, 2)),
            (wengert.randint(3, (2,), device="meta"), (2,)),
            (wengert.rand(2, device="meta"), (2,)),
        ):
            assert drawn.device.type == "meta"
            assert tuple(drawn.shape) == shape
        sampling.fill_exponential(weights.array)
        with pytest.raises(RuntimeError, match="std >= 0"):
            wengert.normal(weights, -1.0)
