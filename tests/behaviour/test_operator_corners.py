"""Corners of single operators: operands, options and dtypes at which values went wrong."""

import math

import numpy as np
import pytest

# Reflected methods --------------------------------------------------------------------------------

REFLECTED = ["__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rpow__", "__rmod__"]


@pytest.mark.parametrize("name", REFLECTED)
def test_a_reflected_method_of_two_tensors_has_both_gradients(lib, name):
    a = lib.tensor(2.0, requires_grad=True)
    b = lib.tensor(3.0, requires_grad=True)
    by_symbol = {
        "__radd__": lambda: b + a, "__rsub__": lambda: b - a, "__rmul__": lambda: b * a,
        "__rtruediv__": lambda: b / a, "__rpow__": lambda: b**a, "__rmod__": lambda: b % a,
    }  # fmt: skip
    expected = lib.autograd.grad(by_symbol[name](), (a, b))
    found = lib.autograd.grad(getattr(a, name)(b), (a, b))
    assert [g.item() for g in found] == pytest.approx([g.item() for g in expected])


def test_a_reflected_matrix_product_has_both_gradients(lib):
    a, b = lib.ones(2, 2, requires_grad=True), lib.eye(2).requires_grad_()
    found = lib.autograd.grad(a.__rmatmul__(b).sum(), (a, b))
    assert [g.tolist() for g in found] == [[[1, 1], [1, 1]], [[2, 2], [2, 2]]]


def test_node_of_a_reflected_difference(lib):
    a, b = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0)
    assert a.__rsub__(b).grad_fn.name() == "RsubBackward0"
    assert (3 - a).grad_fn.name() == "RsubBackward1"


# Cosine similarity --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "dim"),
    [((2, 1), (2, 3), 1), ((3,), (2, 3), 1), ((2, 3), (4, 1, 3), 0), ((2, 3), (4, 1, 3), -3)],
)
def test_cosine_similarity_of_operands_that_broadcast(lib, first, second, dim):
    x = (lib.arange(math.prod(first)) + 1.0).reshape(first).double().requires_grad_()
    y = (lib.arange(math.prod(second)) * 0.5 - 1.0).reshape(second).double()
    shape = np.broadcast_shapes(first, second)
    whole = lib.broadcast_to(x, shape)
    other = lib.broadcast_to(y, shape)
    product = (whole * other).sum(dim)
    expected = product / ((whole * whole).sum(dim) * (other * other).sum(dim)).sqrt()
    found = lib.nn.functional.cosine_similarity(x, y, dim=dim)
    assert found.shape == expected.shape
    assert lib.allclose(found, expected)
    weight = lib.arange(found.numel()).reshape(found.shape) + 1.0
    (gradient,) = lib.autograd.grad((found * weight).sum(), x)
    (reference,) = lib.autograd.grad((expected * weight).sum(), x)
    assert lib.allclose(gradient, reference)


def test_cosine_similarity_of_whole_numbers_with_others(lib):
    similarity = lib.nn.functional.cosine_similarity
    found = similarity(lib.tensor([1, 2]), lib.tensor([3.0, 4.0]), dim=0)
    assert found.dtype == lib.float32
    assert found.item() == pytest.approx(11 / (math.sqrt(5) * 5))
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point"):
        similarity(lib.tensor([1, 2]), lib.tensor([3, 4]), dim=0)


# Differences, sums, moments -----------------------------------------------------------------------


def test_no_differences_leave_the_tensor_alone(lib):
    x = lib.arange(6).reshape(2, 3)
    joined = lib.diff(x, n=0, dim=0, prepend=lib.ones(1, 3), append=lib.ones(2, 3))
    assert joined.tolist() == x.tolist()
    assert joined.dtype == lib.int64
    with pytest.raises(RuntimeError, match="same dimension as input"):
        lib.diff(x, n=0, append=lib.ones(3))


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8"])
def test_a_sum_to_no_dimensions_is_always_one(lib, dtype):
    total = lib.tensor(1).to(getattr(lib, dtype)).sum_to_size(())
    assert (total.item(), total.dtype) == (1, lib.int64)


def test_sum_to_size_of_a_scalar_is_recorded(lib):
    assert lib.tensor(1.0, requires_grad=True).sum_to_size(()).grad_fn.name() == "SumBackward0"


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@pytest.mark.parametrize("dim", [None, 0])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_the_mean_of_one_element_has_a_gradient(lib, name, dim):
    x = lib.tensor([3.0], requires_grad=True)
    spread, mean = getattr(lib, name)(x, dim)
    assert lib.autograd.grad(mean, x, retain_graph=True)[0].tolist() == [1.0]
    assert math.isnan(lib.autograd.grad(spread, x)[0].item())


# Products into places -----------------------------------------------------------------------------


def product_by_hand(x, src, index, include_self):
    """scatter_reduce by prod, written out in products of numbers."""
    out = list(x.unbind(0))
    fresh = [not include_self] * len(out)
    for place, value in zip(index, src.unbind(0), strict=True):
        out[place] = value if fresh[place] else out[place] * value
        fresh[place] = False
    return out


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    ("x", "src"),
    [
        ([0.0, 2.0, 3.0], [4.0, 2.0, 4.0, 5.0]),
        ([1.5, 2.0, 3.0], [0.0, 2.0, 4.0, 5.0]),
        ([1.5, 0.0, 3.0], [0.5, 2.0, 4.0, 5.0]),
    ],
)
def test_second_derivative_of_scattered_products_with_zeros(lib, x, src, include_self):
    index = [0, 0, 1, 1]

    def second(compute):
        a = lib.tensor(x, dtype=lib.float64, requires_grad=True)
        b = lib.tensor(src, dtype=lib.float64, requires_grad=True)
        total = sum((i + 1) * value for i, value in enumerate(compute(a, b)))
        first = lib.autograd.grad(total, (a, b), create_graph=True)
        weighted = (first[0] * lib.arange(1.0, 4)).sum() + (first[1] * lib.arange(2.0, 6)).sum()
        again = lib.autograd.grad(weighted, (a, b), allow_unused=True)
        return [[0.0] * 3 if g is None else g.tolist() for g in (*first, *again)]

    found = second(
        lambda a, b: a.scatter_reduce(0, lib.tensor(index), b, "prod", include_self=include_self)
    )
    expected = second(lambda a, b: product_by_hand(a, b, index, include_self))
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other)


# Numbers that scale whole and short numbers -------------------------------------------------------


@pytest.mark.parametrize(("value", "expected"), [(0.5, [1, 2]), (1.7, [4, 10]), (-1.7, [-2, -6])])
def test_a_fraction_that_scales_whole_numbers_is_cut_off(lib, value, expected):
    x = lib.tensor([1, 2])
    assert lib.addcmul(x, x, lib.tensor([3, 4]), value=value).tolist() == expected
    assert x.addcmul_(x.clone(), lib.tensor([3, 4]), value=value).tolist() == expected


def test_a_scale_that_does_not_fit_is_refused(lib):
    x = lib.tensor([1, 2], dtype=lib.uint8)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t"):
        lib.addcmul(x, x, x, value=300)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t"):
        x.index_add(0, lib.tensor([0]), x[:1], alpha=300)


def test_index_add_with_a_negative_factor_wraps_around(lib):
    x = lib.tensor([1, 2], dtype=lib.uint8)
    source = lib.tensor([1, 5], dtype=lib.uint8)
    assert x.index_add_(0, lib.tensor([0, 0]), source, alpha=-1).tolist() == [251, 2]


def test_index_add_cuts_the_factor_off(lib):
    found = lib.tensor([1, 2]).index_add(0, lib.tensor([0]), lib.tensor([3]), alpha=0.5)
    assert found.tolist() == [1, 2]


SUMS_OF_PRODUCTS = {
    "addmm": ((2, 3), (2, 4), (4, 3)),
    "addmv": ((2,), (2, 4), (4,)),
    "baddbmm": ((5, 2, 3), (5, 2, 4), (5, 4, 3)),
    "addbmm": ((2, 3), (1, 2, 4), (1, 4, 3)),
    "addr": ((2, 3), (2,), (3,)),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", SUMS_OF_PRODUCTS)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 0.5), (0.5, 1), (0.25, 0.5), (0, 0.5)])
def test_a_scaled_product_keeps_its_type(lib, name, dtype, beta, alpha):
    operands = [
        (lib.arange(math.prod(shape)) % 3 + 1).reshape(shape).to(getattr(lib, dtype))
        for shape in SUMS_OF_PRODUCTS[name]
    ]
    found = getattr(lib, name)(*operands, beta=beta, alpha=alpha)
    assert found.dtype == getattr(lib, dtype)
    wide = getattr(lib, name)(*[each.double() for each in operands], beta=beta, alpha=alpha)
    assert found.double().tolist() == wide.tolist()
    assert getattr(operands[0].clone(), name + "_")(
        *operands[1:], beta=beta, alpha=alpha
    ).dtype == getattr(lib, dtype)


@pytest.mark.parametrize("name", ["addmm", "baddbmm"])
def test_a_half_precision_product_is_rounded_once(lib, name):
    batch = (1,) if name == "baddbmm" else ()
    x = lib.full((*batch, 1, 1), 2.0**-8).bfloat16()
    row = lib.tensor([1.0, 2.0**-9]).bfloat16().reshape(*batch, 1, 2)
    found = getattr(lib, name)(x, row, lib.ones(*batch, 2, 1).bfloat16())
    assert found.item() == 1 + 2.0**-7  # 1, if the product were rounded first


@pytest.mark.parametrize("name", SUMS_OF_PRODUCTS)
def test_a_complex_factor_of_a_real_product_is_refused(lib, name):
    operands = [lib.ones(shape) for shape in SUMS_OF_PRODUCTS[name]]
    for factor in ({"alpha": 1j}, {"beta": 1j}):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float"):
            getattr(lib, name)(*operands, **factor)


@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_factors_of_an_outer_product_are_of_its_kind(lib, factor):
    x, v = lib.ones(2, 2, dtype=lib.int16), lib.ones(2, dtype=lib.int16)
    with pytest.raises(RuntimeError, match=f"argument {factor} must not be a floating point"):
        lib.addr(x, v, v, **{factor: 0.5})
    with pytest.raises(RuntimeError, match=f"Boolean {factor} only supported for Boolean"):
        lib.addr(x, v, v, **{factor: True})
    assert lib.addr(x, v, v, **{factor: 2}).tolist() == [[3, 3], [3, 3]]


# Limits in half precision -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_limit_of_hardshrink_is_rounded_as_the_elements_are(lib, dtype):
    x = lib.tensor([0.3, -0.3, 0.2, 0.4], dtype=getattr(lib, dtype), requires_grad=True)
    found = lib.nn.functional.hardshrink(x, 0.3)
    assert (found != 0).tolist() == [False, False, False, True]
    (gradient,) = lib.autograd.grad(found.sum(), x)
    assert gradient.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_threshold_has_a_gradient_where_it_lets_through(lib, dtype):
    x = lib.tensor([0.3, 0.2], dtype=getattr(lib, dtype), requires_grad=True)
    found = lib.nn.functional.threshold(x, 0.3, 7.0)
    assert (found == 7).tolist() == [False, True]
    assert lib.autograd.grad(found.sum(), x)[0].tolist() == [1, 0]


# logcumsumexp -------------------------------------------------------------------------------------


def running_weights(x):
    """How each running logarithm of a sum depends on each element, in double precision."""
    lower = np.where(np.tri(len(x), dtype=bool), x[None, :], -np.inf)
    weights = np.exp(lower - lower.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def test_tangent_of_logcumsumexp_keeps_its_digits(lib):
    generator = np.random.default_rng(0)
    x = (generator.standard_normal(50) + 100).astype(np.float32)
    t = generator.standard_normal(50).astype(np.float32)
    with lib.autograd.forward_ad.dual_level():
        dual = lib.autograd.forward_ad.make_dual(lib.tensor(x), lib.tensor(t))
        tangent = lib.autograd.forward_ad.unpack_dual(lib.logcumsumexp(dual, 0)).tangent
    expected = running_weights(x.astype(np.float64)) @ t
    assert np.abs(tangent.numpy() - expected).max() < 5e-7


# Losses with targets of truth values --------------------------------------------------------------


@pytest.mark.parametrize(("name", "expected"), [("mse_loss", [0, 2]), ("smooth_l1_loss", [0, 0.5])])
def test_gradient_of_a_loss_with_truth_values(lib, name, expected):
    x, flags = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([True, False])
    loss = getattr(lib.nn.functional, name)
    assert lib.autograd.grad(loss(x, flags), x)[0].tolist() == expected
    assert lib.autograd.grad(loss(flags, x), x)[0].tolist() == expected


# Powers that are products -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("exponent", [-4, -3, -2, -1, 3, 4, 5, 6, 3.0])
def test_small_powers(lib, dtype, exponent):
    values = np.array([-2.5, -1.0, -0.25, 0.5, 1.0, 3.0])
    x = lib.tensor(values).to(getattr(lib, dtype)).requires_grad_()
    tolerance = 1e-6 if dtype in ("float32", "complex64") else 1e-14
    out = x**exponent
    assert out.dtype == x.dtype
    assert np.allclose(out.detach().numpy(), values**exponent, tolerance, 0)
    (gradient,) = lib.autograd.grad(out, x, lib.ones_like(x), create_graph=True)
    slope = exponent * values ** (exponent - 1)
    assert np.allclose(gradient.detach().numpy(), slope, tolerance, 0)
    (second,) = lib.autograd.grad(gradient, x, lib.ones_like(x))
    bend = exponent * (exponent - 1) * values ** (exponent - 2)
    assert np.allclose(second.numpy(), bend, tolerance, 0)


@pytest.mark.parametrize("exponent", [-2, -1, 3, 4])
def test_small_powers_of_special_values(lib, exponent):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(values.astype(np.float64), exponent)
    found = (lib.tensor(values) ** exponent).numpy()
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found[:4]), np.signbit(expected[:4]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_small_powers_of_whole_numbers(lib, dtype):
    kind = getattr(lib, dtype)
    x = lib.tensor([1, 2, 3, 7], dtype=kind)
    for exponent in (3, 4, 5, 6):
        wrapped = np.array([1, 2, 3, 7], np.int64) ** exponent
        assert (x**exponent).tolist() == wrapped.astype(dtype).tolist()
        assert (x ** lib.tensor(exponent, dtype=kind)).tolist() == wrapped.astype(dtype).tolist()
    with pytest.raises(RuntimeError, match="negative integer powers"):
        x**-2


# Numbers beside short floats ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda lib, x: x * 0.3, 2.09375),
        (lambda lib, x: 0.3 * x, 2.09375),
        (lambda lib, x: x * lib.tensor(0.3), 2.09375),
        (lambda lib, x: x.mul_(0.3), 2.09375),
        (lambda lib, x: x / 0.3, 23.375),
        (lambda lib, x: x.div_(0.3), 23.375),
        (lambda lib, x: (x * 0 - 0.30078125) // 0.3, -2),
    ],
)
def test_a_number_beside_half_precision_is_not_rounded(lib, compute, expected):
    found = compute(lib, lib.full((1,), 7.0, dtype=lib.bfloat16))
    assert found.dtype == lib.bfloat16
    assert found.item() == expected  # as 0.30078125, the number would give another neighbour


def test_a_batched_number_beside_half_precision_leaves_the_type(lib):
    x, factors = lib.ones(2, 3, dtype=lib.bfloat16), lib.tensor([0.5, 2.0])
    found = lib.vmap(lambda row, factor: row * factor)(x, factors)
    assert found.dtype == lib.bfloat16
    assert found[:, 0].tolist() == [0.5, 2.0]


@pytest.mark.parametrize("exponent", [-0.3, -1, -2, -1 + 1j])
def test_a_negative_power_of_a_complex_zero_is_infinite(lib, exponent):
    zero, exponents = lib.zeros(1, dtype=lib.complex128), lib.tensor([exponent])
    for power in (zero**exponent, zero**exponents, 0j**exponents):
        assert str(power.item()) == "(inf+nanj)"


def test_a_negative_base_of_a_complex_power(lib):
    base = lib.tensor([-0.3, 0.4])
    exponent = lib.tensor(0.609j, requires_grad=True)
    (base**exponent).abs().sum().backward()
    assert abs(exponent.grad.item() - (-1.0940 - 0.4637j)) < 1e-4
    wide = exponent.detach().to(lib.complex128).requires_grad_()
    assert lib.autograd.gradcheck(lambda e: base.double() ** e, wide)


# Integers beside floating point numbers -----------------------------------------------------------


@pytest.mark.parametrize("value", [20, 130])
@pytest.mark.parametrize("order", [1, -1])
def test_atan2_of_small_integers_has_the_gradient_of_the_numbers(value, order):
    """PyTorch computes squares and signs in the integers, where they overflow."""
    import wengert as lib

    x = lib.tensor([0.7], dtype=lib.float64, requires_grad=True)
    whole = lib.tensor([value], dtype=lib.uint8)

    def slope(other):
        return lib.autograd.grad(lib.atan2(*(x, other)[::order]), x)[0].item()

    assert slope(whole) == pytest.approx(slope(whole.double()))


def test_conj_physical_of_bools_in_place_changes_nothing(lib):
    x = lib.tensor([True, False])
    assert x.conj_physical_() is x
    assert x.dtype == lib.bool and x.tolist() == [True, False]


# Tensors without elements -------------------------------------------------------------------------


def test_diff_of_nothing_is_the_tensor_itself(lib):
    x = lib.zeros(0, requires_grad=True)
    assert lib.diff(x) is x
    assert lib.diff(x, n=0) is not x


def test_nothing_can_be_selected_from_an_empty_dimension(lib):
    for x, dim in ((lib.zeros(0, 2), 0), (lib.zeros(3, 0), 1)):
        with pytest.raises(RuntimeError, match="self indexing axis dim should be positive"):
            x.index_select(dim, lib.tensor([0]))
        assert x.index_select(dim, lib.tensor([], dtype=lib.int64)).numel() == 0


def test_divergence_where_there_is_no_logarithm(lib):
    """An element of which nothing is used gets no gradient, though its value is not a number."""
    x = lib.tensor([-1.0, 2.0], requires_grad=True)
    loss = lib.nn.functional.kl_div(x, x, reduction="none")
    assert loss[0].isnan()
    loss[1].backward()
    assert x.grad[0] == 0
    assert lib.allclose(x.grad[1], x[1].log() + 1 - 2 * x[1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_distance_of_equal_vectors(lib, dtype):
    """The distance is so small that one over it may not be a number of the dtype."""
    x = lib.tensor([[1.0, 2.0]], dtype=getattr(lib, dtype), requires_grad=True)
    lib.nn.functional.pairwise_distance(x, x).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]
    y = x.detach().clone()
    lib.nn.functional.pairwise_distance(x, y).sum().backward()
    assert lib.isfinite(x.grad).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize("length", [3, 6, 7])
def test_equal_numbers_have_no_variance(dtype, length):
    """Their mean may be rounded; PyTorch gives the square of that error for some lengths."""
    import wengert

    x = wengert.full((2, length), 0.1, dtype=getattr(wengert, dtype))
    assert x.var().item() == 0 and x.std(1).tolist() == [0.0, 0.0]
    assert wengert.var_mean(x, 1, keepdim=True)[0].tolist() == [[0.0], [0.0]]
    x.requires_grad_()
    x.std(1).sum().backward()
    assert not x.grad.any()
    mixed = wengert.tensor([[0.1] * 3, [0.1, 0.1, 0.2]], dtype=getattr(wengert, dtype))
    assert [v > 0 for v in mixed.var(1).tolist()] == [False, True]


# Which error comes first --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "median", "mode"])
def test_an_empty_dimension_is_refused_before_complex_numbers(lib, name):
    nothing = lib.zeros(0, dtype=lib.complex64)
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        getattr(nothing, name)(0)
    with pytest.raises(RuntimeError):
        getattr(lib.zeros(1, dtype=lib.complex64), name)(0)


def test_an_empty_dimension_is_refused_before_complex_numbers_by_options(lib):
    nothing = lib.zeros(0, dtype=lib.complex64)
    for call in (lambda: nothing.kthvalue(1), lambda: nothing.aminmax(dim=0)):
        with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x: abs(x),
        lambda lib, x: lib.abs(x),
        lambda lib, x: x.abs_(),
        lambda lib, x: lib.nn.functional.softsign(x),
    ],
)
def test_truth_has_no_absolute_value(lib, call):
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        call(lib, lib.tensor([True]))


def test_targets_of_cross_entropy_are_probabilities(lib):
    x = lib.tensor([0.5, 0.5])
    loss = lib.nn.functional.binary_cross_entropy
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
            loss(x, lib.tensor([0.5, wrong]))
    assert loss(x, lib.tensor([0.0, 1.0])).item() == pytest.approx(math.log(2))


class TestClampedFlags:
    """Tensors of bools are limited by one tensor, and by nothing else."""

    @pytest.mark.parametrize("name", ["clamp_min", "clamp_max"])
    def test_by_a_tensor(self, lib, name):
        flags, limits = lib.tensor([True, False]), lib.tensor([False, True])
        want = [True, True] if name == "clamp_min" else [False, False]
        assert getattr(lib, name)(flags, limits).tolist() == want
        assert getattr(flags.clone(), name + "_")(limits).tolist() == want
        assert lib.clamp(flags, **{name[-3:]: limits}).tolist() == want

    @pytest.mark.parametrize(
        "call",
        [lambda x: x.clamp(x, x), lambda x: x.clamp(min=True), lambda x: x.clamp_max(False)],
    )
    def test_refused(self, lib, call):
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            call(lib.tensor([True]))


def test_threshold_of_bytes(lib):
    bytes_ = lib.tensor([0, 2], dtype=lib.uint8)
    assert lib.nn.functional.threshold(bytes_, 0, -1).tolist() == [255, 2]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t"):
        lib.nn.functional.threshold(bytes_, 0, 300)


def test_third_derivative_where_hardswish_is_zero(lib):
    x = lib.tensor(-3.7, dtype=lib.float64, requires_grad=True)
    y = lib.nn.functional.hardswish(x)
    found = y**y  # the second derivative of the power is not a number
    for _ in range(3):
        (found,) = lib.autograd.grad(found, x, create_graph=True)
        assert found.item() == 0


@pytest.mark.parametrize("number", [-4.0, -3.0, 3.0, 4.0])
def test_where_hardswish_is_straight_it_has_no_second_derivative(lib, number):
    x = lib.tensor(number, requires_grad=True)
    t = lib.tensor(math.nan, requires_grad=True)
    (gradient,) = lib.autograd.grad(lib.nn.functional.hardswish(x), x, t, create_graph=True)
    (second,) = lib.autograd.grad(gradient, x)
    assert second.item() == 0


def test_second_derivative_of_huber_loss_at_its_width(lib):
    x = lib.tensor([-2.0, -1.0, 0.5, 1.0, 2.0], requires_grad=True)
    loss = lib.nn.functional.huber_loss(x, lib.zeros(5), reduction="sum")
    (first,) = lib.autograd.grad(loss, x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert first.tolist() == [-1.0, -1.0, 0.5, 1.0, 1.0]
    assert second.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


# Singular factors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("upper", [False, True])
def test_a_singular_factor_has_no_inverse(lib, upper):
    factor = lib.tensor([[1.0, 0.5], [0.5, 0.0]])
    with pytest.raises(RuntimeError, match="cholesky_inverse: The diagonal element 2 is zero"):
        lib.cholesky_inverse(factor, upper=upper)
    several = lib.stack([lib.eye(2), factor])
    with pytest.raises(RuntimeError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        lib.cholesky_inverse(several)


@pytest.mark.parametrize("number", [0.0, 2.0])
def test_the_sign_of_a_real_determinant_has_no_gradient(lib, number):
    x = (number * lib.eye(2)).requires_grad_()
    sign, size = lib.linalg.slogdet(x)
    assert lib.autograd.grad(sign.abs(), x, allow_unused=True, retain_graph=True) == (None,)
    if number:
        assert lib.autograd.grad(sign + size, x)[0].tolist() == [[0.5, 0.0], [0.0, 0.5]]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "shape"), [("dropout1d", (2, 3)), ("dropout3d", (2, 1, 1, 3))])
def test_dropout_of_one_example_is_a_view_of_that_of_a_batch(lib, name, shape, training):
    dropout = getattr(lib.nn.functional, name)
    x = lib.ones(shape, requires_grad=True) * 1
    found = dropout(x, training=training)
    assert found.grad_fn.name() == "SqueezeBackward1"
    assert found._is_view()
    batch = lib.ones(1, *shape)
    assert dropout(batch, training=False) is batch
    assert dropout(x, training=training, inplace=True) is x
    assert x.shape == shape


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_what_is_reduced_without_self_sends_it_nothing(lib, reduce):
    """Not even where what arrives is no number."""
    x = lib.ones(3, dtype=lib.float64, requires_grad=True)
    index, src = lib.tensor([1]), lib.ones(1, dtype=lib.float64)
    y = x.scatter_reduce(0, index, src, reduce, include_self=False)
    g = lib.tensor([1.0, float("nan"), 1.0], dtype=lib.float64)
    assert lib.autograd.grad(y, x, g, retain_graph=True)[0].tolist() == [1, 0, 1]
    assert lib.autograd.grad(y, x, g, create_graph=True)[0].tolist() == [1, 0, 1]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("name", "argument", "shape"),
    [
        ("pixel_shuffle", 1, (1, 4, 2, 2)), ("pixel_shuffle", 2, (1, 4, 1, 1)),
        ("pixel_unshuffle", 1, (1, 4, 2, 2)), ("pixel_unshuffle", 2, (1, 1, 2, 2)),
        ("channel_shuffle", 1, (1, 4, 2, 2)), ("channel_shuffle", 4, (1, 4, 2, 2)),
    ],
)  # fmt: skip
def test_what_is_shuffled_is_a_copy(lib, name, argument, shape, recorded):
    """Also where nothing changes its place."""
    x = lib.zeros(shape, requires_grad=recorded) * 1
    found = getattr(lib.nn.functional, name)(x, argument)
    assert not found._is_view()
    with lib.no_grad():
        found.add_(1)
    assert not x.any()


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x: lib.nn.functional.group_norm(x, 2),
        lambda lib, x: lib.nn.functional.group_norm(x.transpose(1, 2), 2),
        lambda lib, x: lib.nn.functional.pixel_shuffle(x, 2),
        lambda lib, x: lib.nn.functional.grid_sample(x[None], x[None, 0, :, :, None] + x[0, 0, :2]),
        lambda lib, x: lib.linalg.solve(x[0] + 3 * lib.eye(4), x[0, 0]),
        lambda lib, x: lib.linalg.solve_ex(x + 3 * lib.eye(4), x[:, 0])[0],
        lambda lib, x: lib.linalg.lstsq(x, x[:, 0])[0],
        lambda lib, x: lib.linalg.lu_solve(*lib.linalg.lu_factor(x[0]), x[1, :1], left=False),
        lambda lib, x: lib.ormqr(x[0], x[0, 0], x[0], left=False),
        lambda lib, x: lib.stft(x[0].flatten(), 8, window=lib.ones(8), return_complex=True),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_new_results_are_no_views(lib, function):
    """So they can be detached in place."""
    lib.manual_seed(0)
    x = lib.rand(4, 4, 4).requires_grad_()
    found = function(lib, x)
    assert not found._is_view()
    found.detach_()
    assert found.is_leaf


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=1),
        lambda lib, x: lib.nn.functional.interpolate(x, (2, 2), mode="nearest-exact"),
        lambda lib, x: lib.nn.functional.interpolate(x, (2, 2), mode="bilinear"),
        lambda lib, x: lib.nn.functional.interpolate(x, (2, 2), mode="bilinear", antialias=True),
        lambda lib, x: lib.nn.functional.interpolate(x, (2, 2), mode="bicubic"),
        lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x.float(), (2, 2)).to(x.dtype),
        lambda lib, x: lib.nn.functional.adaptive_max_pool2d(x.float(), (2, 2)).to(x.dtype),
        lambda lib, x: lib.nn.functional.unfold(x.float(), 1).to(x.dtype),
        lambda lib, x: lib.nn.functional.fold(x.float().flatten(2), (2, 2), 1).to(x.dtype),
        lambda lib, x: lib.nn.functional.avg_pool2d(x.float(), 1).to(x.dtype),
        lambda lib, x: lib.nn.functional.max_pool2d(x, 1),
        lambda lib, x: lib.nn.functional.pad(x, (0, 0)),
    ],
)
def test_pictures_that_stay_as_they_are_are_copied(lib, function, dtype):
    x = lib.ones(1, 4, 2, 2, dtype=getattr(lib, dtype))
    function(lib, x).add_(1)
    assert x.eq(1).all()


@pytest.mark.parametrize("name", ["linalg.eig", "linalg.eigh", "linalg.svd"])
def test_vectors_of_no_determined_phase_refuse_gradients_that_are_not_numbers(lib, name):
    x = lib.eye(2, dtype=lib.complex128) * lib.tensor([1.0, 2.0]) + 0.1j
    x = x.requires_grad_()
    module, _, function = name.partition(".")
    found = getattr(getattr(lib, module), function)(x)
    vectors = found[0 if name == "linalg.svd" else 1]
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        vectors.backward(lib.full_like(vectors, float("nan")))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_products_of_several_matrices_are_views(lib):
    x, y, v = lib.ones(2, 3, requires_grad=True), lib.ones(3, 2), lib.ones(2)
    for found, shape in (
        (lib.linalg.multi_dot([x, y]), (2, 2)), (lib.linalg.multi_dot([v, x, y]), (2,)),
        (lib.linalg.multi_dot([x, y, v]), (2,)), (lib.linalg.multi_dot([v, x, y, v]), ()),
        (lib.chain_matmul(x, y), (2, 2)),
    ):  # fmt: skip
        assert found.shape == shape
        assert found.grad_fn.name() == "ViewBackward0"
        assert found._is_view()


def test_padding_takes_away_no_more_than_there_is(lib):
    """What one side adds, the other cannot take away."""
    x, pad = lib.ones(8, 1), lib.nn.functional.pad
    assert pad(x, (-1, 1, -8, 8)).tolist() == [[0.0]] * 8
    for widths in ((3, -2), (-2, 3), (-1, -1), (0, 0, 2, -9)):
        with pytest.raises(RuntimeError, match="length must be non-negative|negative output size"):
            pad(x, widths)


@pytest.mark.parametrize("shape", [(100,), (100, 3)])
@pytest.mark.parametrize("count", [0, 2, 90])
def test_selected_elements_do_not_keep_the_memory_of_all(lib, shape, count):
    x = lib.ones(shape)
    for found in (*lib.topk(x, count, 0), *lib.kthvalue(x, 2, 0), *lib.kthvalue(x, 2, 0, True)):
        assert found.untyped_storage().nbytes() == found.numel() * found.element_size()


# Pairs of numbers in memory -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "stride", "steps"),
    [((1, 1, 2), (2, 1, 1), (1, 0)), ((1, 2, 2), (3, 4, 1), (1, 2)), ((1, 2), (7, 1), (3,))],
)
def test_strides_of_single_rows_do_not_keep_pairs_from_being_complex(lib, size, stride, steps):
    x = lib.arange(20.0).as_strided(size, stride)
    found = lib.view_as_complex(x)
    assert found.stride() == steps
    assert lib.view_as_real(found).tolist() == x.tolist()


def test_pairs_that_do_not_lie_like_complex_numbers_are_refused(lib):
    x = lib.arange(20.0)
    with pytest.raises(RuntimeError, match="stride divisible by 2"):
        lib.view_as_complex(x.as_strided((2, 1, 2), (3, 2, 1)))
    with pytest.raises(RuntimeError, match="last dimension with stride 1"):
        lib.view_as_complex(x.as_strided((1, 2), (7, 2)))


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 1), (1, 2), (3, 1, 1), (2, 2)])
def test_gradient_of_transposed_parts_of_complex_numbers(lib, shape):
    x = lib.ones(shape, dtype=lib.complex64, requires_grad=True)
    parts = lib.view_as_real(x).transpose(-1, -2)
    parts.backward(lib.full_like(parts, 0.5))
    assert lib.view_as_real(x.grad).flatten().tolist() == [0.5] * (2 * x.numel())


def test_terms_of_the_phase_of_singular_vectors_cancel_to_rounding(lib):
    """A large gradient of the product of both sides, which no phase changes."""
    x = lib.tensor([[1.7, 0.3], [0.2, 0.9]], dtype=lib.complex64) * (1 + 0.4j)
    x.requires_grad_()
    u, s, vh = lib.linalg.svd(x)
    (u * s.to(u.dtype) @ vh * 1e7 * (0.3 - 0.7j)).real.sum().backward()
    assert lib.isfinite(lib.view_as_real(x.grad)).all()
    u, s, vh = lib.linalg.svd(x)
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        ((u.sum() + vh.sum() * 2) * 1e7).real.backward()
