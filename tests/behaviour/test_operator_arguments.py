"""Arguments of operators at their limits: what PyTorch refuses is refused, the rest agrees."""

import cmath

import numpy as np
import pytest

OVERFLOW = "value cannot be converted to type .* without overflow"


# Numbers that do not fit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: x**300,
        lambda lib, x: x.pow_(300),
        lambda lib, x: x.clamp(max=300),
        lambda lib, x: x.clamp_(-300, 3),
        lambda lib, x: x.clamp_max(300),
        lambda lib, x: x.clamp_min_(-300),
        lambda lib, x: lib.where(x > 0, x, 300),
        lambda lib, x: lib.where(x > 0, 300, x),
        lambda lib, x: x.add(1, alpha=300),
        lambda lib, x: x.index_fill(0, lib.tensor([0]), 300),
        lambda lib, x: x.scatter(0, lib.tensor([0]), 300),
    ],
)
def test_a_number_out_of_range_is_refused(lib, compute):
    with pytest.raises(RuntimeError, match=OVERFLOW):
        compute(lib, lib.ones(2, dtype=lib.int8))


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: lib.addcmul(x, x, x, value=1j),
        lambda lib, x: lib.addcdiv(x, x, x, value=1j),
    ],
)
def test_a_complex_factor_of_real_tensors_is_refused(lib, compute):
    with pytest.raises(RuntimeError, match=OVERFLOW):
        compute(lib, lib.ones(2))


@pytest.mark.parametrize("size", [2, 40000])
@pytest.mark.parametrize(
    "limit",
    [
        lambda x: x.clamp(max=1e300),
        lambda x: x.clamp(-1e300, 1e300),
        lambda x: x.clamp_(min=-1e300),
        lambda x: x.clamp_max(1e300),
    ],
)
def test_limits_beyond_single_precision_are_refused(lib, limit, size):
    with pytest.raises(RuntimeError, match=OVERFLOW):
        limit(lib.ones(size))
    assert limit(lib.ones(size, dtype=lib.float64)).sum() == size
    assert (lib.ones(size) + 1e300).min() == float("inf")


def test_limits_of_half_precision(lib):
    x = lib.ones(2, dtype=lib.float16)
    with pytest.raises(RuntimeError, match=OVERFLOW):
        x.clamp(max=1e6)
    assert lib.where(x > 1, x, 1e6).tolist() == [float("inf")] * 2


@pytest.mark.parametrize("name", ["add", "sub", "rsub"])
def test_alpha_is_of_the_kind_of_the_operands(lib, name):
    function = getattr(lib, name)
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        function(lib.ones(2, dtype=lib.int64), 1, alpha=0.5)
    with pytest.raises(RuntimeError, match="alpha must not be a complex number"):
        function(lib.ones(2), 1, alpha=1j)
    with pytest.raises(RuntimeError, match="alpha must not be a complex number"):
        function(lib.ones(2), lib.ones(2), alpha=1j)
    mixed = function(lib.ones(2, dtype=lib.int64), lib.ones(2), alpha=0.5)
    assert mixed.tolist() == {"add": [1.5] * 2, "sub": [0.5] * 2, "rsub": [0.5] * 2}[name]


def test_negative_alpha_wraps_around(lib):
    assert lib.full((2,), 3, dtype=lib.uint8).add(1, alpha=-1).tolist() == [2, 2]


def test_truth_values_have_no_negative_powers(lib):
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        lib.tensor([True, False]) ** -3


@pytest.mark.parametrize(
    "divide",
    [
        lambda lib, x: x // 0,
        lambda lib, x: x % x,
        lambda lib, x: x.fmod(0),
        lambda lib, x: lib.div(x, 0, rounding_mode="trunc"),
    ],
)
def test_nothing_can_be_divided_by_zero(lib, divide):
    assert divide(lib, lib.zeros(0, dtype=lib.int64)).tolist() == []


# Complex numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda lib, x: x.bool(),
        lambda lib, x: x.to(lib.bool),
        lambda lib, x: lib.empty(3, dtype=lib.bool).copy_(x),
        lambda lib, x: lib.stack([x.prod(0, dtype=lib.bool) for x in x]),
        lambda lib, x: lib.stack([lib.empty((), dtype=lib.bool).fill_(x) for x in x]),
        lambda lib, x: lib.tensor([lib.full((), v, dtype=lib.bool).item() for v in x.tolist()]),
    ],
)
def test_an_imaginary_number_is_true(lib, convert):
    assert convert(lib, lib.tensor([1j, 0, 1])).tolist() == [True, False, True]


def test_gradient_of_a_negative_base_with_complex_exponents(lib):
    x = lib.tensor([1 + 1j, 0.5j], dtype=lib.complex128, requires_grad=True)
    y = (-2.0) ** x
    (slope,) = lib.autograd.grad(y, x, lib.ones_like(y))
    expected = [(v * cmath.log(-2)).conjugate() for v in y.tolist()]
    np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-12)


# Types and shapes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: x.amax(0, 1),
        lambda lib, x: x.all(0, 1),
        lambda lib, x: x.argmax(0, 1),
        lambda lib, x: x.copy_(x, 1),
        lambda lib, x: x.float(3),
        lambda lib, x: x.contiguous(3),
        lambda lib, x: x.cpu(3),
        lambda lib, x: lib.nn.functional.gelu(x, "tanh"),
        lambda lib, x: lib.where(True, x, x),
    ],
)
def test_an_argument_of_another_type_is_refused(lib, compute):
    with pytest.raises(TypeError):
        compute(lib, lib.ones(2, 3))


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: lib.exp(3),
        lambda lib, x: lib.neg(3),
        lambda lib, x: lib.max(3),
        lambda lib, x: lib.outer(x, 3),
        lambda lib, x: lib.outer(3, x),
        lambda lib, x: lib.reshape(3, (1,)),
        lambda lib, x: lib.flatten(3),
        lambda lib, x: lib.real(3),
        lambda lib, x: lib.imag(3),
        lambda lib, x: lib.conj(3),
        lambda lib, x: lib.chunk(3, 2),
        lambda lib, x: lib.nonzero(3),
        lambda lib, x: x.masked_fill(True, 0),
        lambda lib, x: x.masked_select(True),
        lambda lib, x: x.index_fill(0, 0, 1),
        lambda lib, x: lib.nn.functional.linear(x, 3),
        lambda lib, x: lib.nn.functional.linear(3, x),
        lambda lib, x: lib.nn.functional.nll_loss(x, 0),
        lambda lib, x: lib.nn.functional.cross_entropy(3, x),
    ],
)
def test_a_number_is_no_tensor(lib, compute):
    with pytest.raises(TypeError, match="must be Tensor, not (int|bool)|invalid combination"):
        compute(lib, lib.ones(2))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_only_whole_numbers_have_bits_to_invert(lib, dtype):
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type tensors"):
        ~lib.ones(2, dtype=getattr(lib, dtype))


def test_nonzero_into_a_given_tensor(lib):
    out = lib.empty(0, dtype=lib.int64)
    assert lib.nonzero(lib.tensor([0, 3, 4]), out=out) is out
    assert out.tolist() == [[1], [2]]


@pytest.mark.parametrize("other", [2, "tensor"])
def test_the_condition_of_where_is_a_truth_value(lib, other):
    other = lib.ones(2) if other == "tensor" else other
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor"):
        lib.where(lib.ones(2), lib.ones(2), other)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_error_function_of_shapes_alone(lib, dtype):
    x = lib.ones(2, dtype=getattr(lib, dtype), device="meta")
    assert lib.erf(x).dtype == x.dtype


@pytest.mark.parametrize("join", ["cat", "stack"])
def test_tensors_of_two_devices_are_not_joined(lib, join):
    with pytest.raises(RuntimeError, match="device"):
        getattr(lib, join)([lib.ones(1), lib.ones(1, device="meta")])


def test_type_of_a_meta_tensor_names_its_device(lib):
    assert lib.ones(2, device="meta").type().endswith(".meta.FloatTensor")
    assert lib.ones(2).type() == f"{lib.__name__}.FloatTensor"


def test_flip_without_dimensions(lib):
    x = lib.tensor(5.0)
    assert x.flip(0).item() == x.flip(-1).item() == x.flip(()).item() == 5.0
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.flip(7)
    with pytest.raises(RuntimeError, match="appears multiple times in the list of dims"):
        x.flip(0, 0)


def test_roll_wants_a_shift(lib):
    with pytest.raises(RuntimeError, match="`shifts` required"):
        lib.ones(3).roll(())


def test_no_memory_can_be_taken_for_any_type(lib):
    assert lib.zeros(0).view(lib.float64).shape == (0,)
    assert lib.zeros(2, 0, 3).view(lib.uint8).shape == (2, 0, 12)


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremum_of_nothing(lib, name):
    with pytest.raises(RuntimeError, match="Expected reduction dim to be specified"):
        getattr(lib, name)(lib.zeros(2, 0), dim=None)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_view_begins_inside_the_memory(lib, device):
    with pytest.raises(RuntimeError, match="storage offset"):
        lib.ones(6, device=device).as_strided((2,), (1,), -1)


# Comparisons in place -----------------------------------------------------------------------------

COMPARISONS = ["eq_", "ne_", "lt_", "le_", "gt_", "ge_"]


@pytest.mark.parametrize("other", ["number", "tensor"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_in_place_has_the_gradient_zero(lib, name, other):
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    getattr(y, name)(4 if other == "number" else lib.full((3,), 4.0))
    assert y.grad_fn.name() == f"{name[:2].title()}Backward{int(other == 'tensor')}"
    assert y.tolist() == [float(v) for v in getattr(x * 2, name[:2])(4).tolist()]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_in_place_of_a_leaf_is_refused(lib, name):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(x, name)(1)
    assert not getattr(x, name[:2])(1).requires_grad


def test_a_comparison_in_place_in_forward_mode(lib):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(lib.ones(2), lib.full((2,), 5.0))
        y = (x * 2).eq_(2)
        tangent = forward_ad.unpack_dual(y).tangent
        assert y.tolist() == [1.0, 1.0]
        assert tangent is None or tangent.tolist() == [0.0, 0.0]


# Memory order -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("square", "bool"), ("angle", "bool"), ("angle", "uint8"), ("round", "int64"),
     ("square", "int64"), ("round", "float32"), ("angle", "float32")],
)  # fmt: skip
def test_result_of_an_expanded_tensor_is_in_row_major_order(lib, name, dtype):
    x = lib.ones(2, 1, 4, dtype=getattr(lib, dtype)).expand(2, 3, 4)
    assert getattr(lib, name)(x).stride() == (12, 4, 1)


# Memory formats -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda lib, x: x.double(memory_format=lib.contiguous_format),
        lambda lib, x: x.to(lib.float64, memory_format=lib.contiguous_format),
        lambda lib, x: x.to(copy=True, dtype=x.dtype, memory_format=lib.contiguous_format),
        lambda lib, x: x.contiguous(memory_format=lib.contiguous_format),
    ],
)
def test_a_copy_in_row_major_order(lib, convert):
    x = lib.arange(6.0).reshape(2, 3).t().requires_grad_()
    y = convert(lib, x)
    assert y.stride() == (2, 1)
    assert y.tolist() == x.tolist()
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize(
    "convert",
    [
        lambda lib, x: x.double(),
        lambda lib, x: x.to(lib.float64, memory_format=lib.preserve_format),
        lambda lib, x: x.to(x.dtype, copy=True),
        lambda lib, x: x.float(memory_format=lib.contiguous_format),
    ],
)
def test_a_copy_in_the_order_of_its_source(lib, convert):
    assert convert(lib, lib.ones(2, 3).t()).stride() == (1, 3)


def test_preserving_is_no_order_of_its_own(lib):
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported"):
        lib.ones(2, 3).t().contiguous(memory_format=lib.preserve_format)


# Losses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_one_example_has_one_target(lib, name):
    loss = getattr(lib.nn.functional, name)
    assert loss(lib.ones(3), lib.tensor([1])).shape == ()
    with pytest.raises(ValueError, match="For 1D input, 1D target must have size 1"):
        loss(lib.ones(3), lib.tensor([0, 1]))


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_class_weights_have_the_type_of_the_input(lib, name):
    loss = getattr(lib.nn.functional, name)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        loss(lib.ones(2, 3), lib.tensor([0, 1]), weight=lib.ones(3, dtype=lib.float64))


def test_one_target_for_each_row(lib):
    with pytest.raises(RuntimeError, match="multi-target not supported"):
        lib.nn.functional.nll_loss(lib.ones(2, 3), lib.zeros(2, 4, dtype=lib.int64))


def test_one_weight_for_each_class(lib):
    x = lib.ones(2, 3)
    with pytest.raises(RuntimeError, match="should be defined either for all 3 classes"):
        lib.nn.functional.cross_entropy(x, x, weight=lib.ones(2))


def test_slice_without_dimensions(lib):
    with pytest.raises(IndexError, match="cannot be applied to a 0-dim tensor"):
        lib.tensor(5.0)[1:]


# Memory by strides --------------------------------------------------------------------------------


def test_as_strided_may_reach_all_of_the_memory(lib):
    base = lib.arange(6.0)
    assert base[:2].as_strided((6,), (1,)).tolist() == [0, 1, 2, 3, 4, 5]
    assert base[2:4].as_strided((2, 2), (2, 1)).tolist() == [[2, 3], [4, 5]]
    base[4:].as_strided((6,), (1,), 0).add_(1)
    assert base.tolist() == [1, 2, 3, 4, 5, 6]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        base[:2].as_strided((7,), (1,))


def test_gradient_of_as_strided_beyond_its_operand(lib):
    x = lib.arange(6.0, requires_grad=True)
    (gradient,) = lib.autograd.grad((x * 1)[:2].as_strided((6,), (1,)).sum(), x)
    assert gradient.tolist() == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_empty_part_knows_where_it_begins(lib, device):
    base = lib.empty(3, 4, device=device)
    assert base[3:].storage_offset() == 12
    assert base[1:1, 2:].storage_offset() == 6
    assert base[:, 4:].storage_offset() == 4
    assert base.narrow(1, 3, 0)[1:].storage_offset() == 7
    assert [part.storage_offset() for part in base.split([1, 0, 2, 0])] == [0, 4, 4, 12]


def test_as_strided_of_an_empty_part_begins_where_that_does(lib):
    with pytest.raises(RuntimeError, match="storage offset 6, .* out of bounds"):
        lib.arange(6.0)[6:].as_strided((2,), (1,))
    assert lib.arange(6.0)[4:4].as_strided((2,), (1,)).tolist() == [4, 5]


def test_as_strided_to_nothing_may_begin_anywhere(lib):
    nothing = lib.tensor([1.0]).as_strided((0,), (1,), 2)
    assert (nothing.tolist(), nothing.storage_offset()) == ([], 2)


# Indices into nothing, and no indices -------------------------------------------------------------


@pytest.mark.parametrize(
    "select",
    [
        lambda lib: lib.zeros(0, 0)[:, [0]],
        lambda lib: lib.zeros(0, 0)[[0]],
        lambda lib: lib.zeros(0, 3)[[0], [1]],
        lambda lib: lib.zeros(2, 0, 3)[:, [0], [1]],
        lambda lib: lib.zeros(0, 3).__setitem__([0], 1.0),
        lambda lib: lib.zeros(0, 3).index_put_((lib.tensor([0]),), lib.tensor(1.0)),
        lambda lib: lib.vmap(lambda x, i: x[i])(lib.zeros(2, 0), lib.tensor([[0], [0]])),
    ],
)
def test_nothing_can_be_selected_from_a_dimension_of_size_zero(lib, select):
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        select(lib)


def test_no_indices_into_nothing(lib):
    assert lib.zeros(0, 3)[[]].shape == (0, 3)
    assert lib.zeros(2, 0)[:, lib.tensor([], dtype=lib.int64)].shape == (2, 0)
    assert lib.zeros(0, 3)[lib.zeros(0, dtype=lib.bool)].shape == (0, 3)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_empty_index_may_be_of_any_type(lib, dtype):
    x, none = lib.ones(2, requires_grad=True), lib.tensor([], dtype=getattr(lib, dtype))
    picked = x.gather(0, none)
    assert picked.tolist() == []
    assert lib.autograd.grad(picked.sum(), x)[0].tolist() == [0, 0]
    assert x.scatter(0, none, 5.0).tolist() == [1, 1]
    assert x.scatter_add(0, none, lib.ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Expected dtype int32/int64 for index"):
        x.gather(0, lib.zeros(1, dtype=getattr(lib, dtype)))


def test_take_along_dim_wants_long_indices(lib):
    with pytest.raises(RuntimeError, match="dtype of indices should be Long but got Int"):
        lib.take_along_dim(lib.ones(2), lib.tensor([1], dtype=lib.int32), 0)


def test_index_copy_into_a_scalar(lib):
    x, y = lib.tensor(1.0, requires_grad=True), lib.tensor([5.0], requires_grad=True)
    out = x.index_copy(0, lib.tensor([0]), y)
    assert (out.item(), out.shape) == (5.0, ())
    assert [g.tolist() for g in lib.autograd.grad(out, (x, y))] == [0.0, [1.0]]
    assert lib.tensor(1.0).index_copy_(0, lib.tensor([0, 0]), lib.tensor([5.0, 6.0])).item() == 6
    with pytest.raises(RuntimeError, match="same slice shapes"):
        lib.tensor(1.0).index_copy(0, lib.tensor([0]), lib.tensor([[5.0]]))


@pytest.mark.parametrize(
    ("sequence", "values"), [((0, 0), (0, 0)), ((0, 3), (0, 0)), ((2, 0), (2, 3)), ((2, 3), (2, 0))]
)
def test_searching_in_empty_sequences(lib, sequence, values):
    found = lib.searchsorted(lib.zeros(sequence), lib.zeros(values))
    assert (found.shape, found.dtype) == (values, lib.int64)
    assert not found.any()


def test_asarray_takes_a_capsule(lib):
    array = np.arange(3.0)
    shared = lib.asarray(array.__dlpack__())
    array[0] = 7
    assert shared.tolist() == [7, 1, 2]
    assert lib.asarray(array.__dlpack__(), dtype=lib.int64).tolist() == [7, 1, 2]


# Types that are refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda lib, x: lib.maximum(x.cfloat(), x.cfloat()), "maximum not implemented for complex"),
        (lambda lib, x: lib.minimum(x.cfloat(), x.cfloat()), "minimum not implemented for complex"),
        (lambda lib, x: lib.relu(x.bool()), "Boolean inputs not supported for relu"),
        (lambda lib, x: lib.nn.functional.relu6(x.bool()), "inputs not supported for hardtanh"),
        (lambda lib, x: lib.nn.functional.dropout(x.long()), "result type Float can't be cast"),
    ],
)
def test_types_that_are_refused_in_words_of_their_own(lib, compute, words):
    with pytest.raises(RuntimeError, match=words) as raised:
        compute(lib, lib.ones(2))
    assert raised.type is RuntimeError


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda lib, x: lib.nn.functional.hardshrink(x.long()), "\"hardshrink_cpu\" .* 'Long'"),
        (lambda lib, x: lib.nn.functional.elu(x.long()), "\"elu_cpu\" .* 'Long'"),
        (lambda lib, x: lib.searchsorted(x.bool(), x.bool()), "not implemented for 'Bool'"),
        (lambda lib, x: x.cfloat() < 1, "\"lt_cpu\" not implemented for 'ComplexFloat'"),
    ],
)
def test_types_without_a_kernel(lib, compute, words):
    with pytest.raises(NotImplementedError, match=words):
        compute(lib, lib.ones(2))


@pytest.mark.parametrize(
    "compute",
    [
        lambda lib, x: (x * 2).backward(lib.ones(3)),
        lambda lib, x: lib.autograd.grad(x * 2, x, lib.ones(3)),
        lambda lib, x: lib.func.vjp(lambda t: t * 2, x)[1](lib.ones(3)),
    ],
)
def test_shapes_of_a_gradient_that_does_not_fit(lib, compute):
    words = r"grad_output\[0\] has a shape of \w+.Size\(\[3\]\) and output\[0\] has a shape of "
    with pytest.raises(RuntimeError, match=words + r"\w+.Size\(\[2\]\)"):
        compute(lib, lib.ones(2, requires_grad=True))


def test_sizes_of_a_copy_that_does_not_fit(lib):
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor"):
        lib.ones(2).copy_(lib.ones(3))
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast"):
        lib.ones(2).copy_(lib.ones(2, 2))


@pytest.mark.parametrize("name", ["hsplit", "vsplit", "dsplit", "tensor_split"])
def test_numbers_of_parts_of_any_type(lib, name):
    x = lib.ones(4, 4, 4)
    for number in (2, np.int64(2), lib.tensor(2)):
        parts = getattr(lib, name)(x, number)
        assert [part.numel() for part in parts] == [32, 32]
    with pytest.raises(TypeError):
        getattr(lib, name)(x, 2.0)
