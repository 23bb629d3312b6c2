"""Distributions against PyTorch: text, shapes, moments, densities, derivatives, samples, errors."""

import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import wengert

torch = pytest.importorskip("torch")

from nn.both import LIBS, assert_same  # noqa: E402

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow

# Arguments by name, and values at which densities are compared. `P` makes a positive parameter,
# `R` a real one, `S` shares, `M` a positive definite matrix and `T` its factor.
TABLE = {
    "Normal(R(3), P(3))": "R(2, 3)",
    "Normal(P(2, 1), 2.0)": "R(3)",
    "Normal(0.5, 2.0)": "R(3)",
    "Laplace(R(3), P(3))": "R(2, 3)",
    "Cauchy(R(3), P(3))": "R(2, 3)",
    "Uniform(R(3) - 2, R(3) + 2)": "R(2, 3)",
    "Exponential(P(3))": "P(2, 3)",
    "GeneralizedPareto(R(3).float() - 1, P(3).float(), lib.tensor([0.3, 0.0, -0.1]))":
        "R(3).float() / 2 + 1",
    "VonMises(R(3), P(3))": "R(2, 3)",
    "ContinuousBernoulli(lib.tensor([0.2, 0.5, 0.9], dtype=lib.float64))": "U(2, 3)",
    "ContinuousBernoulli(logits=R(3))": "U(2, 3)",
    "Gamma(P(3), P(3))": "P(2, 3)",
    "Chi2(P(3))": "P(2, 3)",
    "Beta(P(3), P(3))": "U(2, 3)",
    "Dirichlet(P(2, 3))": "S(4, 2, 3)",
    "FisherSnedecor(P(3) + 4, P(3) + 4)": "P(2, 3)",
    "FisherSnedecor(P(2), P(2))": "P(2)",
    "StudentT(P(3), R(3), P(3))": "R(2, 3)",
    "StudentT(lib.tensor([0.5, 1.5, 3.0], dtype=lib.float64))": "R(2, 3)",
    "LogNormal(R(3), P(3))": "P(2, 3)",
    "HalfNormal(P(3))": "P(2, 3)",
    "HalfCauchy(P(3))": "P(2, 3)",
    "Gumbel(R(3), P(3))": "R(2, 3)",
    "Weibull(P(3), P(3) + 1)": "P(2, 3)",
    "Pareto(P(3), P(3))": "P(3) * 1.5",
    "Kumaraswamy(P(3) + 1, P(3) + 1)": "U(2, 3)",
    "InverseGamma(P(3), P(3))": "P(2, 3)",
    "LogisticNormal(R(3), P(3))": "S(2, 4)",
    "LogitRelaxedBernoulli(lib.tensor(0.7, dtype=lib.float64), logits=R(3))": "R(2, 3)",
    "RelaxedBernoulli(lib.tensor(0.7, dtype=lib.float64), probs=U(3))": "U(2, 3)",
    "RelaxedOneHotCategorical(lib.tensor(0.7, dtype=lib.float64), logits=R(2, 3))": "S(2, 3)",
    "Bernoulli(U(3))": "B(2, 3)",
    "Bernoulli(logits=R(3))": "B(2, 3)",
    "Geometric(U(3))": "N(2, 3)",
    "Geometric(logits=R(3))": "N(2, 3)",
    "Binomial(5, U(3))": "N(2, 3)",
    "Binomial(lib.tensor([4., 6., 8.], dtype=lib.float64), logits=R(3))": "N(2, 3)",
    "NegativeBinomial(5, U(3))": "N(2, 3)",
    "NegativeBinomial(P(3), logits=R(3))": "N(2, 3)",
    "Poisson(P(3))": "N(2, 3)",
    "Categorical(P(2, 3))": "N(4, 2) % 3",
    "Categorical(logits=R(2, 3))": "N(4, 2) % 3",
    "OneHotCategorical(P(2, 3))": "lib.eye(3, dtype=lib.float64)[:2]",
    "OneHotCategoricalStraightThrough(logits=R(2, 3))": "lib.eye(3, dtype=lib.float64)[:2]",
    "Multinomial(4, P(2, 3))": "lib.tensor([1., 3., 0.], dtype=lib.float64)",
    "Multinomial(4, logits=R(3))": "lib.tensor([1., 3., 0.], dtype=lib.float64)",
    "MultivariateNormal(R(2, 3), M(3))": "R(4, 2, 3)",
    "MultivariateNormal(R(3), precision_matrix=M(2, 3))": "R(4, 2, 3)",
    "MultivariateNormal(R(3), scale_tril=T(3))": "R(2, 3)",
    "LowRankMultivariateNormal(R(2, 3), R(3, 2), P(3))": "R(4, 2, 3)",
    "Wishart(4.5, M(3))": "M(2, 3)",
    "Wishart(P(2) + 4, precision_matrix=M(3))": "M(2, 3)",
    "LKJCholesky(3, P(2))": "C(3)",
    "Independent(lib.distributions.Normal(R(2, 3), P(2, 3)), 1)": "R(4, 2, 3)",
    "MixtureSameFamily(lib.distributions.Categorical(P(2, 3)), "
    "lib.distributions.Normal(R(2, 3), P(2, 3)))": "R(4, 2)",
    "MixtureSameFamily(lib.distributions.Categorical(P(3)), "
    "lib.distributions.Independent(lib.distributions.Normal(R(3, 2), P(3, 2)), 1))": "R(4, 2)",
    "TransformedDistribution(lib.distributions.Normal(R(3), P(3)), "
    "[lib.distributions.TanhTransform(), lib.distributions.AffineTransform(1.0, -2.0)])":
        "U(2, 3) + 0.5",
}  # fmt: skip


def maker(lib, seed, made=None):
    """Functions that make the same numbers in both libraries; parameters are noted in `made`."""
    generator = torch.Generator().manual_seed(seed)

    def give(values):
        t = lib.tensor(values.tolist(), dtype=lib.float64).reshape(tuple(values.shape))
        if made is None:
            return t
        made.append(t.requires_grad_())
        return t * 1  # so that none is both a leaf and changed

    def draw(*shape):
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    def matrix(*shape):
        n = shape[-1]
        root = draw(*shape, n)
        return root @ root.mT + torch.eye(n, dtype=torch.float64)

    def correlation(n):
        return torch.linalg.cholesky(torch.corrcoef(draw(n, 9)))

    return {
        "lib": lib,
        "R": lambda *shape: give(draw(*shape) * 2 - 1),
        "P": lambda *shape: give(draw(*shape) + 0.5),
        "U": lambda *shape: give(draw(*shape) * 0.9 + 0.05),
        "S": lambda *shape: give(torch.softmax(draw(*shape), -1)),
        "M": lambda *shape: give(matrix(*shape)),
        "T": lambda *shape: give(torch.linalg.cholesky(matrix(*shape))),
        "C": lambda n: give(correlation(n)),
        "B": lambda *shape: lib.tensor((draw(*shape) > 0.5).double().tolist()).double(),
        "N": lambda *shape: lib.tensor((draw(*shape) * 4).floor().tolist()).double(),
    }


def build(lib, text, made=None):
    names = maker(lib, 1, made)
    module = lib.distributions
    kind = text.partition("(")[0]
    if not hasattr(module, kind):
        module = module.relaxed_bernoulli
    return eval(f"module.{text}", {**names, "module": module})


def tolerance(text):
    """PyTorch's Bessel functions have seven digits, and it counts draws in float32."""
    if ".float()" in text:
        return 1e-5
    return 2e-6 if "VonMises" in text or "Multinomial" in text else 1e-8


def value_of(call):
    """A result, or the class of the error that says that there is none."""
    try:
        return call()
    except NotImplementedError:
        return "NotImplementedError"


@pytest.mark.parametrize("text", TABLE)
def test_moments_and_text(text):
    found = []
    for lib in LIBS:
        d = build(lib, text)
        larger = d.expand((5, *d.batch_shape))
        results = [
            type(d).__name__, tuple(d.batch_shape), tuple(d.event_shape), d.has_rsample,
            d.has_enumerate_support, tuple(larger.batch_shape), tuple(larger.event_shape),
            type(larger) is type(d),
        ]  # fmt: skip
        for each in (d, larger):
            for name in ("mean", "mode", "variance", "stddev"):
                results.append(value_of(lambda each=each, name=name: getattr(each, name)))
        results.append(value_of(d.entropy))
        results.append(value_of(d.perplexity))
        if d.has_enumerate_support:
            results.append(value_of(d.enumerate_support))
            results.append(value_of(lambda d=d: d.enumerate_support(expand=False)))
        found.append((results, repr(d), repr(d.support)))
    (ours, text_ours, support_ours), (theirs, text_theirs, support_theirs) = found
    if "Uniform(-" not in text_ours and "\n" not in support_theirs:
        assert support_ours.replace("wengert.", "torch.") == support_theirs
    assert text_ours.replace("wengert.", "torch.") == text_theirs
    assert_same(ours, theirs, tolerance=tolerance(text))


@pytest.mark.parametrize("text", TABLE)
def test_densities_and_derivatives(text):
    found = []
    for lib in LIBS:
        made = []
        d = build(lib, text, made)
        value = eval(TABLE[text], maker(lib, 2))
        if value.dim() and "Categorical" not in text and "Multinomial" not in text:
            value = value.requires_grad_() if value.is_leaf else value
        log_prob = d.log_prob(value)
        whole = len(d.batch_shape) + len(d.event_shape)
        single = value if value.dim() <= whole else value[0]
        results = [log_prob, d.expand((2, *d.batch_shape)).log_prob(single)]
        leaves = [*made, *([value] if value.requires_grad else [])]
        inverted = lib.tensor([0.3], dtype=value.dtype)
        for name, given in (("cdf", value), ("icdf", inverted)):
            def call(d=d, name=name, given=given):
                return getattr(d, name)(given)
            results.append(value_of(call))
        if leaves and log_prob.requires_grad:
            first = lib.autograd.grad(log_prob.sum(), leaves, create_graph=True, allow_unused=True)
            slope = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
            if "Binomial" not in text:  # PyTorch's second slope there is that of a clamp
                results.append(list(first))
            if hasattr(slope, "requires_grad") and slope.requires_grad and "Wishart" not in text:
                second = lib.autograd.grad(slope, leaves, allow_unused=True, retain_graph=True)
                results.append([0 if g is None else g.abs().sum() for g in second])
        entropy = value_of(d.entropy)
        if hasattr(entropy, "requires_grad") and entropy.requires_grad and made:
            slopes = lib.autograd.grad(entropy.sum(), made, allow_unused=True)
            results.append([0 if g is None else g for g in slopes])
        found.append(results)
    assert_same(*found, tolerance=tolerance(text) * 10)


@pytest.mark.parametrize("text", TABLE)
def test_samples(text):
    wengert.manual_seed(0)
    made = []
    d = build(wengert, text, made)
    few = d.sample((2, 3))
    assert few.shape == (2, 3, *d.batch_shape, *d.event_shape) and not few.requires_grad
    assert d.sample().shape == (*d.batch_shape, *d.event_shape)
    assert str(few.dtype)[8:] == str(build(torch, text).sample().dtype)[6:]
    assert bool(d.support.check(few).all())
    assert bool(d.log_prob(few).isfinite().all())
    if d.has_rsample or "LogitRelaxed" in text:
        sample = d.rsample((2,))
        assert sample.requires_grad == bool(made)
        assert sample.shape == (2, *d.batch_shape, *d.event_shape)
        slopes = wengert.autograd.grad(sample.sum(), made, allow_unused=True) if made else [sample]
        assert any(g is not None and bool(g.isfinite().all()) for g in slopes)
    else:
        with pytest.raises(NotImplementedError):
            d.rsample()


# PyTorch draws a Wishart matrix again unless it is singular.
@pytest.mark.parametrize("text", [text for text in TABLE if "Wishart" not in text])
def test_samples_are_those_of_pytorch(text):
    found = []
    for lib in (torch, wengert):
        d = build(lib, text)
        lib.manual_seed(5)
        found.append(d.sample((5,)).detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


MANY = [text for text in TABLE if not any(
    name in text for name in ("Cauchy", "Categorical(", "Relaxed", "LKJ", "LogisticNormal", "Tanh",
                              "VonMises", "InverseGamma", "Pareto(P", "lib.tensor([0.5, 1.5")
)]  # fmt: skip


@pytest.mark.parametrize("text", MANY)
def test_samples_have_the_moments(text):
    wengert.manual_seed(1)
    d = build(wengert, text)
    count = 3000
    samples = d.sample((count,)).double()
    mean, spread = samples.mean(0), d.variance
    error = (mean - d.mean).abs() / (spread / count).sqrt().clamp(min=1e-9)
    assert float(error.nan_to_num(0).max()) < 6


def test_distribution_functions_of_samples():
    """Where moments do not exist: samples through their own distribution function are uniform."""
    wengert.manual_seed(2)
    for text in ("Cauchy(R(3), P(3))", "HalfCauchy(P(3))", "Gumbel(R(3), P(3))",
                 "Pareto(P(3), P(3))", "StudentT(P(3))", "Gamma(P(3) / 20, P(3))"):  # fmt: skip
        d = build(wengert, text)
        samples = d.sample((2000,))
        if text.startswith("StudentT"):
            scipy = pytest.importorskip("scipy.special")
            uniform = scipy.stdtr(d.df.tolist(), samples.numpy())
        else:
            uniform = d.cdf(samples).numpy()
        assert abs(uniform.mean(0) - 0.5).max() < 0.04
        assert abs(uniform.var(0) - 1 / 12).max() < 0.01


def test_samples_in_transforms():
    """Each example has numbers of its own, or all the same, as vmap is asked to."""
    for text in ("Gamma(P(3), P(3))", "Poisson(P(3))", "Binomial(5, U(3))", "Normal(R(3), P(3))",
                 "Categorical(P(3))"):  # fmt: skip
        d = build(wengert, text)
        x = wengert.zeros(4)
        drawn = wengert.vmap(lambda x, d=d: d.sample() + 0 * x.sum(), randomness="different")(x)
        same = wengert.vmap(lambda x, d=d: d.sample() + 0 * x.sum(), randomness="same")(x)
        assert drawn.shape == (4, *d.batch_shape) and wengert.equal(same[0], same[3])


def test_slopes_of_gamma_samples():
    """Samples move with the concentration so that their probability stays the same."""
    scipy = pytest.importorskip("scipy.special")
    for a, x in [(0.01, 1e-9), (0.1, 0.02), (0.7, 0.5), (1.0, 3.0), (2.5, 0.2), (30.0, 41.0),
                 (500.0, 480.0)]:  # fmt: skip
        concentration = wengert.tensor(a, dtype=wengert.float64)
        from wengert.operators.gamma_samples import standard_gamma_grad

        slope = float(standard_gamma_grad(concentration, wengert.tensor(x).double()))
        sample = torch.tensor(x, dtype=torch.float64)
        theirs = float(torch._standard_gamma_grad(torch.tensor(a, dtype=torch.float64), sample))
        assert abs(slope - theirs) < 5e-3 * abs(theirs)
        h = 1e-5 * a
        u = scipy.gammainc(a, x)
        numeric = (scipy.gammaincinv(a + h, u) - scipy.gammaincinv(a - h, u)) / (2 * h)
        if x > 1e-6:
            assert abs(slope - numeric) < 1e-5 * abs(numeric)
    parameter = wengert.tensor([0.5, 2.0], dtype=wengert.float64, requires_grad=True)
    sample = wengert.distributions.Gamma(parameter, parameter).rsample()
    (first,) = wengert.autograd.grad(sample.sum(), parameter, create_graph=True)
    with pytest.raises((NotImplementedError, RuntimeError), match="_standard_gamma_grad"):
        first.sum().backward()


def test_reparametrized_moments():
    """The gradient of a sample's mean is that of the mean."""
    wengert.manual_seed(3)
    for text in ("Gamma(P(2), P(2))", "Beta(P(2), P(2))", "StudentT(P(2) + 4, R(2), P(2))",
                 "Dirichlet(P(3))", "Weibull(P(2), P(2) + 1)", "Laplace(R(2), P(2))"):  # fmt: skip
        made = []
        d = build(wengert, text, made)
        weights = wengert.arange(1.0, 1 + math.prod((*d.batch_shape, *d.event_shape))).double()
        weights = weights.reshape((*d.batch_shape, *d.event_shape))
        estimate = (d.rsample((6000,)).mean(0) * weights).sum()
        exact = (d.mean * weights).sum()
        one, other = (
            wengert.autograd.grad(t, made, allow_unused=True) for t in (estimate, exact)
        )
        for left, right in zip(one, other, strict=True):
            if right is not None and left is not None:
                assert float((left - right).abs().max()) < 0.2


# Checks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("Normal(0.0, -1.0)", ValueError, "Expected parameter scale .Tensor of shape ... of dist"),
        ("Normal(0.0, -1.0)", ValueError, "satisfy the constraint GreaterThan.lower_bound=0.0."),
        ("Uniform(1.0, 0.0)", ValueError, "to satisfy the constraint"),
        ("Normal('a', 1.0)", ValueError, "Input arguments must all be instances of Number"),
        ("Bernoulli()", ValueError, "Either `probs` or `logits` must be specified, but not both"),
        ("Bernoulli(0.5, 0.5)", ValueError, "Either `probs` or `logits` must be specified"),
        ("Categorical(lib.tensor(0.5))", ValueError, "must be at least one-dimensional"),
        ("Dirichlet(lib.tensor(0.5))", ValueError, "must be at least one-dimensional"),
        ("Geometric(0.0)", ValueError, "to be positive but found invalid values"),
        ("Bernoulli(0.5).log_prob(lib.tensor(0.3))", ValueError, "within the support .Boolean.."),
        ("Normal(0.0, 1.0).log_prob(1.0)", ValueError, "argument to log_prob must be a Tensor"),
        ("Normal(lib.zeros(3), 1.0).log_prob(lib.zeros(2))", ValueError, "not broadcastable with"),
        ("Dirichlet(lib.ones(3)).log_prob(lib.ones(2) / 2)", ValueError, "right-most size of val"),
        ("Multinomial(lib.tensor(3), lib.ones(2))", NotImplementedError, "inhomogeneous total_co"),
        ("Binomial(lib.tensor([1., 2.]), 0.5).entropy()", NotImplementedError, "Inhomogeneous"),
        ("MultivariateNormal(lib.zeros(2))", ValueError, "Exactly one of covariance_matrix or"),
        ("MultivariateNormal(lib.tensor(0.0), lib.eye(2))", ValueError, "loc must be at least"),
        ("MultivariateNormal(lib.zeros(2), lib.ones(2))", ValueError, "must be at least two-dim"),
        ("MultivariateNormal(lib.zeros(2), -lib.eye(2))", ValueError, "constraint PositiveDefin"),
        ("LowRankMultivariateNormal(lib.zeros(2), lib.ones(3, 1), lib.ones(2))", ValueError,
         "cov_factor must be a batch of matrices with shape 2 x m"),
        ("Wishart(1.0, lib.eye(3))", ValueError, "expected to be greater than ndim - 1 = 2"),
        ("LKJCholesky(1)", ValueError, "greater than or equal to 2. Found dim=1"),
        ("Independent(d.Normal(0.0, 1.0), 1)", ValueError, "Expected reinterpreted_batch_ndims"),
        ("TransformedDistribution(d.Normal(0.0, 1.0), 3)", ValueError, "must be a Transform or l"),
        ("TransformedDistribution(d.Normal(0.0, 1.0), [3])", ValueError, "a list of Transforms"),
        ("MixtureSameFamily(d.Normal(0., 1.), d.Normal(0., 1.))", ValueError, "Mixture distribut"),
        ("MixtureSameFamily(d.Categorical(lib.ones(2)), d.Normal(lib.zeros(3), 1.))", ValueError,
         "does not equal"),
        ("Normal(0.0, 1.0).enumerate_support()", NotImplementedError, "^$"),
        ("kl_divergence(d.Laplace(0., 1.), d.Poisson(0.5))", NotImplementedError, "No KL.p .. q"),
        ("kl_divergence(d.Gamma(1., 1.), d.Poisson(0.5))", NotImplementedError, "Bregman"),
        ("Distribution.set_default_validate_args(3)", ValueError, ".*"),
    ],
)  # fmt: skip
def test_errors(lib, text, kind, phrase):
    # PyTorch's compiler, which another test may have imported, switches these checks off.
    lib.distributions.Distribution.set_default_validate_args(True)
    with pytest.raises(kind, match=phrase):
        eval(f"d.{text}", {"lib": lib, "d": lib.distributions})


def test_nothing_is_checked_if_not_asked(lib):
    d = lib.distributions
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    assert d.Bernoulli(0.5, validate_args=False).log_prob(lib.tensor(0.5)).isfinite()
    try:
        d.Distribution.set_default_validate_args(False)
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(True)


def test_subclasses_of_programs(lib):
    d = lib.distributions

    class Twice(d.Normal):
        def __init__(self, scale):
            super().__init__(0.0, 2 * scale)

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Twice(1.0).expand((2,))

    class Own(d.Distribution):
        arg_constraints = {}

        def __init__(self):
            super().__init__((2,), (3,))

        def rsample(self, sample_shape=()):
            return lib.ones(self._extended_shape(sample_shape))

    assert Own().sample((4,)).shape == (4, 2, 3)
    with pytest.warns(FutureWarning, match="sample_n"):
        assert Own().sample_n(2).shape == (2, 2, 3)
    for name in ("log_prob", "cdf", "icdf"):
        with pytest.raises(NotImplementedError):
            getattr(Own(), name)(lib.ones(1))


@pytest.mark.parametrize("text", TABLE)
def test_copies(text):
    d = build(wengert, text)
    value = eval(TABLE[text], maker(wengert, 2))
    for other in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert_same(other.log_prob(value), d.log_prob(value))


def test_names():
    public = set(torch.distributions.__all__)
    assert not [name for name in public if not hasattr(wengert.distributions, name)]
    for name in public:
        ours, theirs = getattr(wengert.distributions, name), getattr(torch.distributions, name)
        if inspect.isclass(theirs):
            names = [list(inspect.signature(c).parameters) for c in (ours, theirs)]
            assert names[0] == names[1], name
            assert ours.__doc__
    from wengert.distributions.categorical import Categorical
    from wengert.distributions.normal import Normal

    assert Normal is wengert.distributions.Normal
    assert Categorical is wengert.distributions.Categorical


# Divergences --------------------------------------------------------------------------------------

FAMILIES = {
    "Bernoulli": "Bernoulli(U(3))",
    "Beta": "Beta(P(3), P(3))",
    "Binomial": "Binomial(5, U(3))",
    "Categorical": "Categorical(P(3, 2))",
    "Cauchy": "Cauchy(R(3), P(3))",
    "ContinuousBernoulli": "ContinuousBernoulli(U(3))",
    "Dirichlet": "Dirichlet(P(3, 2))",
    "Exponential": "Exponential(P(3))",
    "Gamma": "Gamma(P(3) + 1, P(3))",
    "Geometric": "Geometric(U(3))",
    "Gumbel": "Gumbel(R(3), P(3))",
    "HalfNormal": "HalfNormal(P(3))",
    "Independent": "Independent(lib.distributions.Normal(R(3, 2), P(3, 2)), 1)",
    "Laplace": "Laplace(R(3), P(3))",
    "LogNormal": "LogNormal(R(3), P(3))",
    "LowRankMultivariateNormal": "LowRankMultivariateNormal(R(3, 2), R(2, 2), P(2))",
    "MultivariateNormal": "MultivariateNormal(R(3, 2), M(2))",
    "Normal": "Normal(R(3), P(3))",
    "OneHotCategorical": "OneHotCategorical(P(3, 2))",
    "Pareto": "Pareto(P(3), P(3) + 2)",
    "Poisson": "Poisson(P(3))",
    "Uniform": "Uniform(U(3) / 2, U(3) / 2 + 0.5)",
    "Wishart": "Wishart(4.5, M(3, 2))",
}


def kl_pairs():
    registered = torch.distributions.kl._KL_REGISTRY
    pairs = {(p.__name__, q.__name__) for p, q in registered}
    pairs |= {("LogNormal", "LogNormal"), ("Wishart", "Wishart")}
    return sorted((p, q) for p, q in pairs if p in FAMILIES and q in FAMILIES)


@pytest.mark.parametrize("p, q", kl_pairs())
def test_divergences(p, q):
    found = []
    for lib in LIBS:
        made = []
        names = {**maker(lib, 3, made), "d": lib.distributions}
        one = eval(f"d.{FAMILIES[p]}", names)
        names = {**maker(lib, 4, made), "d": lib.distributions}
        other = eval(f"d.{FAMILIES[q]}", names)
        result = lib.distributions.kl_divergence(one, other)
        results = [result]
        finite = result.isfinite()
        if bool(finite.all()) and result.requires_grad:
            results.append([
                0 if g is None else g
                for g in lib.autograd.grad(result.sum(), made, allow_unused=True)
            ])
        found.append(results)
    assert_same(*found, tolerance=1e-7)


def test_divergences_at_the_edges():
    found = []
    for lib in LIBS:
        d, kl = lib.distributions, lib.distributions.kl_divergence
        ends = lib.tensor([0.0, 0.3, 1.0], dtype=lib.float64)
        pairs = [(a, b) for a in ends for b in ends]
        p, q = (lib.stack([pair[i] for pair in pairs]) for i in (0, 1))
        results = [kl(d.Bernoulli(p), d.Bernoulli(q))]
        shares = lib.tensor([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], dtype=lib.float64)
        results.append(kl(d.Categorical(shares.unsqueeze(0)), d.Categorical(shares.unsqueeze(1))))
        results.append(kl(d.Uniform(ends, ends + 2), d.Uniform(ends.flip(0), ends.flip(0) + 2.5)))
        results.append(kl(d.Uniform(ends - 0.5, ends + 1), d.Exponential(ends + 1)))
        results.append(kl(d.Uniform(ends, ends + 1), d.Pareto(ends + 0.2, ends + 1)))
        results.append(kl(d.Binomial(5, ends), d.Binomial(lib.tensor([5.0, 4.0, 5.0]), ends)))
        found.append(results)
    assert_same([found[0]], [found[1]])


def test_registered_divergences(lib):
    d = lib.distributions

    class One(d.Normal):
        pass

    class Two(d.Normal):
        pass

    @d.register_kl(One, d.Normal)
    def left(p, q):
        return 1

    @d.register_kl(d.Normal, Two)
    def right(p, q):
        return 2

    assert d.kl_divergence(One(0.0, 1.0), d.Normal(0.0, 1.0)) == 1
    assert d.kl_divergence(d.Normal(0.0, 1.0), Two(0.0, 1.0)) == 2
    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence.One, Two."):
        d.kl_divergence(One(0.0, 1.0), Two(0.0, 1.0))


def test_registered_classes_are_checked():
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass but got"):
        wengert.distributions.register_kl(int, wengert.distributions.Normal)


@pytest.mark.parametrize(
    "text",
    ["Normal(0.5, 2.0)", "Uniform(-1.0, 3.0)", "Exponential(2.0)", "Poisson(4.0)", "Poisson(30.0)",
     "Bernoulli(0.3)", "Binomial(10, 0.25)", "Geometric(0.2)", "Gamma(2.5, 3.0)", "Gamma(0.5, 1.0)",
     "Laplace(0.0, 1.0)", "Categorical([0.2, 0.3, 0.5])"],
)  # fmt: skip
def test_the_same_seed_gives_the_same_samples(text):
    torch = pytest.importorskip("torch")
    name, _, arguments = text.partition("(")
    drawn = []
    for lib in (wengert, torch):
        lib.manual_seed(3)
        given = [
            lib.tensor(each, dtype=lib.float64) for each in eval(f"[{arguments[:-1]}]")
        ]
        drawn.append(getattr(lib.distributions, name)(*given).sample((5,)).tolist())
    assert drawn[0] == pytest.approx(drawn[1], rel=1e-12)
