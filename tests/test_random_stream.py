"""The same seed gives PyTorch's numbers: every sampler, state for state, on the CPU."""

import warnings

import numpy as np
import pytest

import wengert
from nn.every_module import MODULES
from nn.test_layers import LAYERS
from wengert.creation import sampling
from wengert.creation.rounding import fused

torch = pytest.importorskip("torch")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
WHOLE = ["uint8", "int8", "int16", "int32", "int64"]
SEEDS = [0, 1, 67280421310721, 2**64 - 1]


@pytest.fixture(autouse=True)
def unseen():
    """PyTorch warns of whole numbers that a type cannot tell apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def plain(value):
    """A drawn tensor as an array of doubles."""
    value = value.detach()
    library = torch if isinstance(value, torch.Tensor) else wengert
    wide = library.complex128 if value.dtype.is_complex else library.float64
    return value.to(wide).numpy()


def assert_same(draw, seeds=SEEDS, exact=True):
    """Draw by both libraries from the same seeds: values, and the generators' states after."""
    for seed in seeds:
        drawn, states = [], []
        for library in (wengert, torch):
            library.manual_seed(seed)
            drawn.append([plain(each) for each in draw(library)])
            states.append(library.get_rng_state().numpy())
        for ours, theirs in zip(*drawn, strict=True):
            assert ours.shape == theirs.shape
            if exact:
                np.testing.assert_array_equal(ours, theirs)
            else:
                np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-15)
        ours, theirs = states
        # A waiting normal number may differ by a rounding, like the others.
        waiting = slice(5024, 5032)
        np.testing.assert_allclose(
            ours[waiting].view(np.float64), theirs[waiting].view(np.float64), rtol=1e-14
        )
        ours[waiting] = theirs[waiting]
        np.testing.assert_array_equal(ours, theirs)


def typed(library, name):
    return {"dtype": getattr(library, name)}


def is_exact(name):
    """Whether double rounding hides what the libraries' float64 functions round otherwise."""
    return name not in ("float64", "complex128")


@pytest.mark.parametrize("name", FLOATS + COMPLEX)
class TestContinuous:
    def test_rand(self, name):
        assert_same(lambda lib: [lib.rand(n, **typed(lib, name)) for n in (0, 1, 15, 17, 700)])

    def test_randn(self, name):
        sizes = range(41)
        assert_same(
            lambda lib: [lib.randn(n, **typed(lib, name)) for n in sizes], exact=is_exact(name)
        )

    def test_in_place(self, name):
        def draw(lib):
            for size in ((), (3,), (17,), (20, 35)):
                yield lib.empty(size, **typed(lib, name)).normal_(-0.3, 1.45)
                yield lib.empty(size, **typed(lib, name)).uniform_(-0.3, 1.45)

        assert_same(draw, exact=is_exact(name))

    def test_order_in_memory(self, name):
        def draw(lib):
            yield lib.empty(8, 5, **typed(lib, name)).t().normal_()
            yield lib.empty(4, 6, 8, **typed(lib, name)).permute(2, 0, 1)[::2].uniform_()
            yield lib.randn_like(lib.empty(8, 5, **typed(lib, name)).t())
            yield lib.rand_like(lib.empty(8, 5, **typed(lib, name)).t())

        assert_same(draw, exact=is_exact(name))

    def test_normal_of_tensors(self, name):
        def draw(lib):
            mean, std = (lib.arange(20) / 20).to(getattr(lib, name)), lib.arange(20) / 10 + 0.5
            yield lib.normal(mean, std)
            yield lib.normal(mean, 1.7)
            yield lib.normal(mean.view(20, 1), lib.ones(3))
            if name in FLOATS:
                yield lib.normal(0.3, std.to(mean.dtype))

        assert_same(draw, exact=is_exact(name))


@pytest.mark.parametrize("name", FLOATS)
class TestFloating:
    @pytest.mark.parametrize(
        "call", ["exponential_()", "exponential_(1.5)", "cauchy_(0.3, 1.7)", "log_normal_(0.3, 1)"]
    )
    def test_sampler(self, name, call):
        def draw(lib):
            t = lib.empty(3, 17, **typed(lib, name))
            return [eval(f"t.{call}", {"t": t}), eval(f"t.{call}", {"t": t.t()})]

        assert_same(draw, exact=is_exact(name))

    def test_bernoulli_of_tensors(self, name):
        def draw(lib):
            p = (lib.arange(1, 41) / 41).to(getattr(lib, name))
            yield lib.bernoulli(p)
            yield lib.empty(3, 40, dtype=lib.int32).bernoulli_(p)
            yield lib.empty(40, 3).t().bernoulli_(p)

        assert_same(draw)

    @pytest.mark.parametrize("replacement", [True, False])
    def test_multinomial(self, name, replacement):
        def draw(lib):
            weights = lib.arange(1, 201).to(getattr(lib, name))
            yield lib.multinomial(weights, 1, replacement)
            if replacement or name in ("float32", "float64"):
                yield lib.multinomial(weights, 7, replacement)
                yield lib.multinomial(weights.view(4, 50), 7, replacement)
                yield lib.multinomial(weights.view(50, 4).t(), 7, replacement)

        assert_same(draw)


@pytest.mark.parametrize("name", [*WHOLE, *FLOATS])
def test_whole_numbers(name):
    def draw(lib):
        for bounds in ((), (50,), (3, 100), (3, None)):
            yield lib.empty(9, **typed(lib, name)).random_(*bounds)
        yield lib.empty(8, 5, **typed(lib, name)).t().random_(100)
        yield lib.randint(2, 90, (9,), **typed(lib, name))
        yield lib.empty(90, **typed(lib, name)).geometric_(0.3)

    assert_same(draw)


def test_wide_ranges():
    def draw(lib):
        for high in (2**28 - 1, 2**28, 2**32 - 1, 2**32, 2**62):
            yield lib.randint(high, (9,))
        yield lib.randint(-(2**63), 2**63 - 1, (9,))
        yield lib.empty(9, dtype=lib.int64).random_(-(2**63), None)
        yield lib.empty(9).random_(-5, 2**40)
        yield lib.empty(9).random_(-(2**40) - 3, 2**40)
        yield lib.empty(9, dtype=lib.bool).random_()

    assert_same(draw)


def test_permutations():
    assert_same(lambda lib: [lib.randperm(n) for n in (0, 1, 2, 5, 700)])
    assert_same(lambda lib: [lib.randperm(9, dtype=lib.float32)])


@pytest.mark.parametrize("name", ["bool", *WHOLE, *FLOATS])
def test_bernoulli_of_a_number(name):
    assert_same(lambda lib: [lib.empty(40, **typed(lib, name)).bernoulli_(0.3)])
    assert_same(lambda lib: [lib.bernoulli(lib.empty(40, **typed(lib, name)), 0.3)])


def test_poisson():
    def draw(lib):
        for rate in (lib.arange(40) / 1.3, lib.arange(40, dtype=lib.float64), lib.full((9,), 1e4)):
            yield lib.poisson(rate)
        yield lib.poisson(lib.full((9,), 3.0, dtype=lib.float16))
        yield lib.poisson((lib.arange(40) / 1.3).view(8, 5).t())

    assert_same(draw)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_random_slopes(name):
    def draw(lib):
        x = (lib.arange(30, **typed(lib, name)) - 20).view(6, 5)
        yield lib.nn.functional.rrelu(x, training=True)
        yield lib.nn.functional.rrelu(x.t(), 0.1, 0.7, training=True)
        yield lib.nn.RReLU()(lib.tensor([float("nan"), -1.0, 0.0, 1.0], **typed(lib, name)))

    assert_same(draw)


def test_binomial():
    def draw(lib):
        shares = lib.arange(41) / 40
        yield lib.binomial(lib.full((41,), 50.0), shares)
        yield lib.binomial(lib.tensor(5.0), shares)
        yield lib.binomial(lib.arange(100.0), lib.tensor(0.4))
        yield lib.binomial(lib.full((3, 41), 500.0, dtype=lib.float64), shares.double())

    assert_same(draw)


def test_gamma():
    """What distributions are sampled by: it has no function of its own."""

    def draw(lib):
        given = lib.arange(50, dtype=lib.float64) / 10
        if lib is torch:
            return [torch._standard_gamma(given)]
        made = wengert.empty_like(given)
        sampling.fill_gamma(made.array, given.array)
        return [made]

    assert_same(draw, exact=False)


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        ("lib.empty(3).cauchy_(0, -1)", RuntimeError, "cauchy_ expects sigma > 0.0"),
        ("lib.empty(3, dtype=lib.int64).cauchy_()", RuntimeError, "must be a floating point"),
        ("lib.empty(3).log_normal_(0, -1)", RuntimeError, "log_normal_ expects std > 0.0"),
        ("lib.empty(3, dtype=lib.int64).log_normal_()", NotImplementedError, "for 'Long'"),
        ("lib.empty(3).geometric_(1.0)", RuntimeError, r"geometric_ expects p to be in \(0, 1\)"),
        ("lib.empty(3, dtype=lib.bool).geometric_(0.5)", NotImplementedError, "for 'Bool'"),
        ("lib.poisson(lib.tensor([-1.0]))", RuntimeError, "invalid Poisson rate"),
        ("lib.poisson(lib.tensor([1]))", NotImplementedError, "\"poisson_cpu\" not impl.* 'Long'"),
        ("lib.binomial(lib.tensor([3]), lib.tensor([0.5]))", ValueError, "for count, got: Long"),
        ("lib.binomial(lib.ones(2), lib.ones(2).double())", RuntimeError, "Found dtype Double"),
        ("lib.binomial(lib.ones(2).half(), lib.ones(2).half())", NotImplementedError, "'Half'"),
    ],
)
def test_refusals(lib, call, error, phrase):
    with pytest.raises(error, match=phrase):
        eval(call, {"lib": lib})


def test_draws_follow_each_other():
    """Small normal draws leave one of a pair behind, which the next takes."""

    def draw(lib):
        for size in (3, 4, 20, 1):
            yield lib.randn(size)
            yield lib.rand(size)
            yield lib.empty(size).log_normal_()
        yield lib.nn.functional.dropout(lib.ones(50), 0.3)
        yield lib.nn.functional.dropout(lib.ones(8, 5).t(), 0.3)
        yield lib.nn.functional.dropout2d(lib.ones(2, 10, 3, 3), 0.3)

    assert_same(draw)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 5), (2, 3, 2, 2), (2, 3, 2, 2, 2)])
def test_dropout_of_channels(shape):
    def draw(lib):
        functions = ["dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"]
        for name in functions + ["dropout1d"] * (len(shape) < 4):
            yield getattr(lib.nn.functional, name)(lib.ones(shape), 0.5, True)

    assert_same(draw)


class TestStates:
    def test_bytes_are_exchanged(self):
        torch.manual_seed(5)
        torch.randn(7)
        state = wengert.from_numpy(torch.get_rng_state().numpy().copy())
        made = wengert.Generator().set_state(state)
        assert made.initial_seed() == 5
        assert made.get_state().tolist() == state.tolist()
        expected = torch.randn(21).tolist()
        assert wengert.randn(21, generator=made).tolist() == expected
        back = torch.Generator().set_state(torch.tensor(made.get_state().tolist()).byte())
        assert torch.rand(1, generator=back).item() == wengert.rand(1, generator=made).item()

    @pytest.mark.parametrize("words", [0, 1, 623, 624, 625, 1300])
    def test_at_every_place(self, words):
        states = []
        for library in (torch, wengert):
            generator = library.Generator().manual_seed(3)
            library.randint(5, (words,), generator=generator)
            states.append(generator.get_state().numpy())
        np.testing.assert_array_equal(*states)

    def test_seeds_are_taken_modulo_2_to_the_32(self, lib):
        one, other = lib.Generator().manual_seed(2**40 + 5), lib.Generator().manual_seed(5)
        assert lib.rand(3, generator=one).tolist() == lib.rand(3, generator=other).tolist()


INITIALISERS = [
    "uniform_(t, -2.0, 2.0)", "normal_(t, 1.0, 3.0)", "xavier_uniform_(t)", "xavier_normal_(t)",
    "kaiming_uniform_(t, 5 ** 0.5)", "kaiming_normal_(t, mode='fan_out')", "sparse_(t, 0.3)",
    "trunc_normal_(t)", "trunc_normal_(t, 0.2, 0.4, 0.4, 0.5)",
]  # fmt: skip


@pytest.mark.parametrize("call", INITIALISERS)
def test_initial_values(call):
    def draw(lib):
        for shape in ((3, 4), (17, 5)):
            t = lib.empty(shape)
            yield eval(f"init.{call}", {"init": lib.nn.init, "t": t})

    assert_same(draw)


def test_orthogonal_initial_values():
    """Values of which the decomposition decides the last digits."""
    for seed in SEEDS:
        drawn = []
        for library in (wengert, torch):
            library.manual_seed(seed)
            for shape in ((3, 4), (17, 5)):
                t = library.empty(shape, dtype=library.float64)
                drawn.append(library.nn.init.orthogonal_(t, 2.0).numpy())
        np.testing.assert_allclose(drawn[0], drawn[2], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(drawn[1], drawn[3], rtol=1e-10, atol=1e-12)


def state_of(layer):
    return list(layer.state_dict().values())


@pytest.mark.parametrize("call", LAYERS)
def test_initial_parameters(call):
    def draw(lib):
        return state_of(eval(f"nn.{call}", {"nn": lib.nn, "torch": lib, "lib": lib}))

    assert_same(draw, seeds=[0, 3])


class TestInsideOthers:
    def test_compiled(self):
        def noisy(lib, x):
            return x * lib.randn(5) + lib.nn.functional.dropout(x, 0.4) + lib.rand(5)

        compiled = wengert.compile(lambda x: noisy(wengert, x))
        for _ in range(2):
            wengert.manual_seed(11)
            torch.manual_seed(11)
            drawn = [compiled(wengert.ones(5)).tolist() for _ in range(2)]
            assert drawn == [noisy(torch, torch.ones(5)).tolist() for _ in range(2)]

    @pytest.mark.parametrize("randomness", ["different", "same"])
    def test_vmap(self, randomness):
        def draw(lib):
            def f(x):
                yield lib.randn(3)
                yield lib.rand(2, 2)
                yield lib.randint(9, (4,))
                yield lib.randperm(5)
                yield lib.randn_like(x)
                yield x.clone().exponential_()
                yield lib.normal(lib.ones(3), 2.0)
                yield lib.bernoulli(lib.arange(4) / 4)
                yield lib.multinomial(lib.arange(1.0, 6.0), 2)
                yield lib.nn.functional.dropout(x, 0.3)

            mapped = lib.func.vmap(lambda x: tuple(f(x)), randomness=randomness)
            yield from mapped(lib.ones(4, 3))
            if randomness == "different":
                p = (lib.arange(12) / 12).view(4, 3)
                yield lib.func.vmap(lib.bernoulli, randomness=randomness)(p)

        assert_same(draw)

    @pytest.mark.parametrize("name", ["poisson", "binomial"])
    def test_vmap_of_parameters(self, name):
        def draw(lib):
            t = (lib.arange(12) / 12).view(4, 3)
            if name == "poisson":
                return [lib.func.vmap(lib.poisson, randomness="different")(t * 20)]
            both = lib.func.vmap(lib.binomial, randomness="different")
            left = lib.func.vmap(lib.binomial, (0, None), randomness="different")
            return [both(t * 50, t), left(t * 50, t[2])]

        assert_same(draw)
        with pytest.raises(RuntimeError, match="randomness error mode"):
            wengert.func.vmap(wengert.poisson)(wengert.ones(3))

    def test_random_slopes_of_a_batch(self):
        def slopes(x):
            return wengert.nn.functional.rrelu(x, training=True)

        x = -wengert.ones(4, 3)
        wengert.manual_seed(0)
        found = wengert.func.vmap(slopes, randomness="different")(x)
        wengert.manual_seed(0)
        assert wengert.equal(found, slopes(x))
        with pytest.raises(RuntimeError, match="randomness error mode"):
            wengert.func.vmap(slopes)(x)
        compiled = wengert.compile(slopes)
        for _ in range(2):
            wengert.manual_seed(3)
            found = compiled(x)
            wengert.manual_seed(3)
            assert wengert.equal(found, slopes(x))

    def test_gradient(self):
        def draw(lib):
            return [lib.func.grad(lambda x: (x * lib.poisson(3 * lib.ones(4))).sum())(lib.ones(4))]

        assert_same(draw)

    def test_checkpoint(self):
        def gradient(lib):
            lib.manual_seed(4)
            x = lib.ones(30, requires_grad=True)
            from importlib import import_module

            checkpoint = import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
            y = checkpoint(lambda x: lib.nn.functional.dropout(x, 0.5), x, use_reentrant=False)
            y.sum().backward()
            return x.grad.tolist()

        assert gradient(wengert) == gradient(torch)


def all_of_them(lib):
    """Every sampler once, and what is initialised by them."""
    for name in (*FLOATS, *COMPLEX):
        for size in range(1, 41):
            yield lib.rand(size, **typed(lib, name))
            yield lib.randn(size, **typed(lib, name))
        yield lib.empty(23, **typed(lib, name)).uniform_(-1, 3)
        yield lib.empty(23, **typed(lib, name)).normal_(-1, 3)
    for name in WHOLE:
        yield lib.randint(3, 90, (21,), **typed(lib, name))
    yield lib.randint(2**40, (21,))
    yield lib.randperm(37)
    yield lib.bernoulli(lib.arange(30) / 30)
    yield lib.empty(30).bernoulli_(0.2)
    yield lib.nn.functional.dropout(lib.ones(40), 0.3)
    yield lib.normal(lib.arange(20.0), lib.arange(20.0))
    yield lib.empty(30).exponential_(2.0)
    yield lib.multinomial(lib.arange(1.0, 30.0), 5)
    yield lib.multinomial(lib.arange(1.0, 30.0), 50, True)
    for call in INITIALISERS:
        yield eval(f"init.{call}", {"init": lib.nn.init, "t": lib.empty(9, 7)})
    for call in MODULES:
        if "Lazy" not in call:  # they draw in the first call, as the layers they become
            yield from state_of(eval(f"nn.{call}", {"nn": lib.nn, "torch": lib, "lib": lib}))


def test_two_seeds():
    assert_same(all_of_them, seeds=[12, 123456789012], exact=False)


@pytest.mark.full
def test_a_hundred_seeds():
    assert_same(all_of_them, seeds=range(100), exact=False)


def test_products_are_rounded_once():
    x = np.array([1 + 2.0**-30])
    assert fused(x, x[0], -1.0).tolist() == [2.0**-29 + 2.0**-60]
    assert fused(np.array([1e300]), 1e300, 1.0).tolist() == [np.inf]
    small = np.array([1 + 2.0**-20], np.float32)
    assert fused(small, small[0], np.float32(-1)).tolist() == [2.0**-19 + 2.0**-40]
