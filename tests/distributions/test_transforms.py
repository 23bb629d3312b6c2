"""Transforms and constraints against PyTorch."""

import copy
import pickle

import pytest

import wengert

torch = pytest.importorskip("torch")

from nn.both import LIBS, assert_same, tensors  # noqa: E402

# Transforms, and what they are applied to: x stands for (2, 3) real numbers.
TRANSFORMS = {
    "ExpTransform()": "x",
    "PowerTransform(lib.tensor(2.5).double())": "x.exp()",
    "SigmoidTransform()": "x",
    "SoftplusTransform()": "x",
    "TanhTransform()": "x",
    "AbsTransform()": "x.exp()",
    "AffineTransform(1.0, -2.0)": "x",
    "AffineTransform(lib.ones(3).double(), lib.tensor([1., -2., 3.]).double(), 1)": "x",
    "SoftmaxTransform()": "x",
    "StickBreakingTransform()": "x",
    "ReshapeTransform((3,), (3, 1))": "x",
    "LowerCholeskyTransform()": "x[:, :2]",
    "PositiveDefiniteTransform()": "x[:, :2]",
    "CorrCholeskyTransform()": "x",
    "IndependentTransform(d.ExpTransform(), 1)": "x",
    "ComposeTransform([d.TanhTransform(), d.AffineTransform(1.0, 2.0), d.ExpTransform()])": "x",
    "ComposeTransform([d.ExpTransform(), d.IndependentTransform(d.ExpTransform().inv, 1)])": "x",
    "ComposeTransform([])": "x",
    "CatTransform([d.ExpTransform(), d.TanhTransform()], dim=1, lengths=[1, 2])": "x",
    "StackTransform([d.ExpTransform(), d.AffineTransform(0.0, 3.0)], dim=0)": "x",
    "CumulativeDistributionTransform(d.Normal(lib.zeros(()).double(), 2.0))": "x",
    "ExpTransform().inv": "x.exp()",
}


def value_of(call):
    """A result, or the class of the error that says that there is none."""
    try:
        return call()
    except (NotImplementedError, AttributeError):
        return "none"


@pytest.mark.parametrize("text", TRANSFORMS)
def test_transforms(text):
    found = []
    for lib in LIBS:
        names = {"lib": lib, "d": lib.distributions}
        t = eval(f"d.{text}", names)
        (leaf,) = tensors(lib, (2, 3))
        x = eval(TRANSFORMS[text], {"x": leaf})
        y = t(x)
        results = [
            y, t.inv(y), value_of(lambda t=t, x=x, y=y: t.log_abs_det_jacobian(x, y)),
            value_of(lambda t=t, x=x, y=y: t.inv.log_abs_det_jacobian(y, x)),
            tuple(t.forward_shape(x.shape)), tuple(t.inverse_shape(y.shape)),
            t.domain.event_dim, t.codomain.event_dim, t.bijective, repr(t), repr(t.inv),
            value_of(lambda t=t: t.sign), t == t, t == eval(f"d.{text}", names),
            t.inv.inv is t, bool(t.domain.check(x).all()), bool(t.codomain.check(y).all()),
        ]  # fmt: skip
        floats = [each for each in results[:4] if hasattr(each, "sum") and each.requires_grad]
        total = sum(each.sum() for each in floats)
        (first,) = lib.autograd.grad(total, leaf, create_graph=True)
        results.append(first)
        if first.requires_grad:
            (second,) = lib.autograd.grad((first * first).sum(), leaf, allow_unused=True)
            results.append(0 if second is None else second)
        cached = value_of(lambda t=t: t.with_cache(1))
        if cached != "none":
            image = cached(x)
            results.append(cached(x) is image or not cached._cache_size)
            results.append(cached.inv(image) is x)
        found.append(results)
    assert_same(*found, tolerance=1e-8)


@pytest.mark.parametrize("text", TRANSFORMS)
def test_copies(text):
    t = eval(f"d.{text}", {"lib": wengert, "d": wengert.distributions})
    (x,) = tensors(wengert, (2, 3), grad=False)
    x = eval(TRANSFORMS[text], {"x": x})
    for other in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert_same(other(x), t(x))


CONSTRAINTS = {
    "boolean": "[0., 1., 0.5]",
    "one_hot": "[[0., 1.], [1., 1.], [0.5, 0.5]]",
    "nonnegative_integer": "[0., 1., -1., 0.5]",
    "positive_integer": "[0., 1., -1., 0.5]",
    "integer_interval(1, 3)": "[0., 1., 3., 2.5, 4.]",
    "real": "[0., float('inf'), float('nan')]",
    "real_vector": "[[0., 1.], [0., float('nan')]]",
    "positive": "[0., 1., -1.]",
    "nonnegative": "[0., 1., -1.]",
    "greater_than(0.5)": "[0., 1., 0.5]",
    "greater_than_eq(0.5)": "[0., 1., 0.5]",
    "less_than(0.5)": "[0., 1., 0.5]",
    "multinomial(3)": "[[1., 2.], [3., 1.], [-1., 1.]]",
    "unit_interval": "[0., 1., -1.]",
    "interval(-1.0, 2.0)": "[0., 2., -2.]",
    "half_open_interval(-1.0, 2.0)": "[0., 2., -2.]",
    "simplex": "[[0.5, 0.5], [0.2, 0.2], [-1., 2.]]",
    "lower_triangular": "[[1., 0.], [1., -1.]]",
    "lower_cholesky": "[[1., 0.], [1., -1.]]",
    "corr_cholesky": "[[1., 0.], [0.6, 0.8]]",
    "square": "[[1., 0.], [1., -1.]]",
    "symmetric": "[[1., 0.], [0., -1.]]",
    "positive_semidefinite": "[[1., 1.], [1., 1.]]",
    "positive_definite": "[[2., 1.], [1., 2.]]",
    "independent(c.positive, 1)": "[[1., 2.], [-1., 1.]]",
    "cat([c.positive, c.real], 0, [1, 2])": "[-1., 2., -2.]",
    "stack([c.positive, c.real], 0)": "[[-1., 2.], [-2., 1.]]",
    "MixtureSameFamilyConstraint(c.positive)": "[1., -1.]",
}


@pytest.mark.parametrize("text", CONSTRAINTS)
def test_constraints(text):
    found = []
    for lib in LIBS:
        constraints = lib.distributions.constraints
        prefix = "" if text.startswith("c.") else "c."
        constraint = eval(prefix + text, {"c": constraints})
        value = lib.tensor(eval(CONSTRAINTS[text]), dtype=lib.float64)
        results = [constraint.check(value), constraint.is_discrete, constraint.event_dim]
        if "cat(" not in text and "stack(" not in text:
            results.append(repr(constraint))
        for registry in (lib.distributions.biject_to, lib.distributions.transform_to):
            transform = value_of(lambda c=constraint, r=registry: r(c))
            if transform == "none":
                results.append("none")
                continue
            (x,) = tensors(lib, (3,) if transform.domain.event_dim < 2 else (3, 3), grad=False)
            if "stack" in text:
                x = x[:2]
            y = transform(x)
            results += [repr(transform), y, transform.inv(y)]
        found.append(results)
    assert_same(*found)


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("ExpTransform(cache_size=2)", ValueError, "cache_size must be 0 or 1"),
        ("ReshapeTransform((2,), (3,))", ValueError, "have different numbers of elements"),
        ("ReshapeTransform((2,), (2, 1)).forward_shape((3,))", ValueError, "Shape mismatch"),
        ("StickBreakingTransform().forward_shape(())", ValueError, "Too few dimensions on input"),
        ("CorrCholeskyTransform().forward_shape((2,))", ValueError, "not a flattened lower-diag"),
        ("CorrCholeskyTransform().inverse_shape((2, 3))", ValueError, "Input is not square"),
        ("CatTransform([3])", AssertionError, "must be Transform instances"),
        ("constraints.cat([3])", AssertionError, "must be Constraint instances"),
        ("constraints.dependent.check(3)", ValueError, "Cannot determine validity of dependent"),
        ("constraints.dependent.event_dim", NotImplementedError, "cannot be determined statically"),
        ("biject_to(d.constraints.boolean)", NotImplementedError, "Cannot transform _Boolean"),
        ("biject_to.register(3, 4)", TypeError, "Constraint subclass or instance, but got"),
        ("utils.tril_matrix_to_vec(lib.ones(2, 2), 2)", ValueError, "provided is outside"),
    ],
)
def test_errors(lib, text, kind, phrase):
    with pytest.raises(kind, match=phrase):
        eval(f"d.{text}", {"lib": lib, "d": lib.distributions})


def test_no_triangle():
    with pytest.raises(ValueError, match="cannot be expressed as the lower triangular part"):
        wengert.distributions.utils.vec_to_tril_matrix(wengert.ones(4))


def test_triangles():
    found = []
    for lib in LIBS:
        (x,) = tensors(lib, (2, 6), grad=False)
        utils = lib.distributions.utils
        matrix = utils.vec_to_tril_matrix(x)
        results = [matrix, utils.tril_matrix_to_vec(matrix)]
        for diag in (-1, 1):
            vector = utils.tril_matrix_to_vec(matrix, diag)
            results += [vector, utils.vec_to_tril_matrix(vector, diag)]
        found.append(results)
    assert_same(*found)


def test_own_transforms(lib):
    d = lib.distributions

    @d.transform_to.register(d.constraints.integer_interval)
    def to_numbers(constraint):
        return d.AffineTransform(constraint.lower_bound, 1)

    made = d.transform_to(d.constraints.integer_interval(2, 5))
    assert made(lib.tensor(1.0)).item() == 3
