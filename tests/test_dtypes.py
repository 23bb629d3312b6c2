"""Element types and their promotion."""

import copy
import itertools
import pickle

import numpy as np
import pytest

from wengert.core import dtypes

NAMES = [each.name for each in dtypes.ALL]


def zeros(name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, getattr(dtypes, name).numpy)


@pytest.fixture(params=["float16", "bfloat16", "float32", "float64"])
def default_name(request):
    dtypes.set_default_dtype(getattr(dtypes, request.param))
    yield request.param
    dtypes.set_default_dtype(dtypes.float32)


@pytest.fixture
def torch(request):
    module = pytest.importorskip("torch")
    yield module
    module.set_default_dtype(module.float32)


class TestDtype:
    @pytest.mark.parametrize("name", NAMES)
    def test_is_one_object_however_it_is_reached(self, name):
        kind = getattr(dtypes, name)
        assert dtypes.from_numpy(kind.numpy) is kind
        assert dtypes.as_dtype(kind) is kind
        assert dtypes.as_dtype(kind.numpy) is kind
        assert dtypes.as_dtype(kind.numpy.type) is kind
        assert pickle.loads(pickle.dumps(kind)) is kind
        assert copy.deepcopy(kind) is kind
        assert {kind: 1}[kind] == 1

    @pytest.mark.parametrize("name", NAMES)
    def test_describes_itself(self, name):
        kind = getattr(dtypes, name)
        assert repr(kind) == f"wengert.{name}"
        assert kind.itemsize == kind.numpy.itemsize
        assert kind.is_floating_point == ("float" in name)
        assert kind.is_complex == ("complex" in name)
        assert kind.is_signed == (name not in ("bool", "uint8"))

    def test_aliases(self):
        assert dtypes.float is dtypes.float32
        assert dtypes.double is dtypes.float64
        assert dtypes.half is dtypes.float16
        assert dtypes.short is dtypes.int16
        assert dtypes.int is dtypes.int32
        assert dtypes.long is dtypes.int64
        assert dtypes.cfloat is dtypes.complex64
        assert dtypes.cdouble is dtypes.complex128

    def test_real_and_complex_partners(self):
        assert dtypes.complex64.to_real() is dtypes.float32
        assert dtypes.complex128.to_real() is dtypes.float64
        assert dtypes.int8.to_real() is dtypes.int8
        assert dtypes.float64.to_complex() is dtypes.complex128
        assert dtypes.bfloat16.to_complex() is dtypes.complex64
        assert dtypes.complex64.to_complex() is dtypes.complex64
        with pytest.raises(RuntimeError, match="Unknown Complex ScalarType"):
            dtypes.int64.to_complex()

    def test_python_types_name_dtypes(self):
        assert dtypes.as_dtype(float) is dtypes.float64
        assert dtypes.as_dtype(int) is dtypes.int64
        assert dtypes.as_dtype(bool) is dtypes.bool
        assert dtypes.as_dtype(complex) is dtypes.complex128

    @pytest.mark.parametrize("wrong", ["float32", 3, None, [], str])
    def test_other_things_do_not(self, wrong):
        with pytest.raises(TypeError, match="must be wengert.dtype"):
            dtypes.as_dtype(wrong)

    @pytest.mark.parametrize("array_type", ["U1", "O", "M8[s]", "g", "V2"])
    def test_unsupported_array_types(self, array_type):
        with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy"):
            dtypes.from_numpy(np.dtype(array_type))

    @pytest.mark.parametrize("array_type", [">f4", ">i8", ">c16"])
    def test_foreign_byte_order(self, array_type):
        with pytest.raises(ValueError, match="byte order different"):
            dtypes.from_numpy(np.dtype(array_type))

    def test_unknown_attribute(self):
        with pytest.raises(AttributeError, match="nonsense"):
            dtypes.float32.nonsense


class TestDefault:
    def test_complex_follows_floating(self):
        assert dtypes.get_default_dtype() is dtypes.float32
        assert dtypes.get_default_complex_dtype() is dtypes.complex64
        dtypes.set_default_dtype(dtypes.float64)
        try:
            assert dtypes.get_default_dtype() is dtypes.float64
            assert dtypes.get_default_complex_dtype() is dtypes.complex128
            assert dtypes.result_dtype([zeros("int32", (2,)), 1.0]) == np.float64
        finally:
            dtypes.set_default_dtype(dtypes.float32)
        assert dtypes.result_dtype([zeros("int32", (2,)), 1.0]) == np.float32

    @pytest.mark.parametrize("wrong", [dtypes.int32, dtypes.complex64, 3, "float32"])
    def test_only_floating_types(self, wrong):
        with pytest.raises(TypeError, match="only floating-point types are supported"):
            dtypes.set_default_dtype(wrong)


class TestPromotion:
    @pytest.mark.parametrize(
        "one, other, result",
        [
            ("bool", "uint8", "uint8"),
            ("uint8", "int8", "int16"),
            ("uint8", "int16", "int16"),
            ("int64", "float16", "float16"),
            ("float16", "bfloat16", "float32"),
            ("float32", "float64", "float64"),
            ("complex64", "float64", "complex128"),
            ("complex64", "float32", "complex64"),
            ("complex64", "int64", "complex64"),
            ("complex64", "complex128", "complex128"),
        ],
    )
    def test_pairs(self, one, other, result):
        one, other = getattr(dtypes, one), getattr(dtypes, other)
        assert dtypes.promote_types(one, other).name == result
        assert dtypes.promote_types(other, one).name == result

    @pytest.mark.parametrize(
        "operands, result",
        [
            ((("float32", (2,)), ("float64", ())), "float32"),
            ((("float32", ()), ("float64", ())), "float64"),
            ((("int32", (2,)), ("float64", ())), "float64"),
            ((("int8", (2,)), ("int64", ())), "int8"),
            ((("bool", (2,)), ("int8", ())), "int8"),
            ((("float64", (2,)), ("complex64", ())), "complex128"),
            ((("int8", (2,)), 1), "int8"),
            ((("bool", (2,)), 1), "int64"),
            ((("int8", ()), 1.5), "float32"),
            ((("float64", (2,)), 1j), "complex128"),
            ((("float16", (2,)), 1.5), "float16"),
            ((("bfloat16", (0,)), 3), "bfloat16"),
            ((("uint8", (2,)), np.int64(3)), "uint8"),
            ((("int8", (2,)), np.float64(3)), "float32"),
            ((1, 2.0), "float32"),
            ((True, 2), "int64"),
            ((("int8", (2,)), ("float64", ()), ("float16", (1,))), "float16"),
        ],
    )
    def test_weights(self, operands, result):
        values = [zeros(*each) if isinstance(each, tuple) else each for each in operands]
        for order in itertools.permutations(values):
            assert dtypes.from_numpy(dtypes.result_dtype(order)).name == result
        assert dtypes.result_type(*values).name == result

    def test_same_type_is_immediate(self):
        array = zeros("float32", (2,))
        assert dtypes.result_dtype((array, array)) is array.dtype

    def test_refuses_other_things(self):
        with pytest.raises(TypeError, match="expected a Tensor or a number, not str"):
            dtypes.result_type(zeros("int8", ()), "3")
        with pytest.raises(TypeError, match="promote_types"):
            dtypes.promote_types(3, dtypes.int8)
        with pytest.raises(TypeError, match="can_cast"):
            dtypes.can_cast(dtypes.int8, 3)
        with pytest.raises(ValueError, match="at least one operand"):
            dtypes.result_type()

    def test_can_cast_never_lowers_the_category(self):
        assert dtypes.can_cast(dtypes.float64, dtypes.float16)
        assert dtypes.can_cast(dtypes.int64, dtypes.uint8)
        assert not dtypes.can_cast(dtypes.float32, dtypes.int64)
        assert not dtypes.can_cast(dtypes.complex64, dtypes.float64)
        assert not dtypes.can_cast(dtypes.int8, dtypes.bool)


class TestParity:
    def test_pairs(self, torch):
        for one, other in itertools.product(NAMES, NAMES):
            ours = dtypes.promote_types(getattr(dtypes, one), getattr(dtypes, other))
            theirs = torch.promote_types(getattr(torch, one), getattr(torch, other))
            assert str(theirs) == f"torch.{ours.name}", (one, other)
            assert dtypes.can_cast(getattr(dtypes, one), getattr(dtypes, other)) == torch.can_cast(
                getattr(torch, one), getattr(torch, other)
            ), (one, other)

    def test_operands(self, torch, default_name):
        torch.set_default_dtype(getattr(torch, default_name))
        operands = [(value, value) for value in (True, 1, 1.0, 1j)]
        for name, shape in itertools.product(NAMES, [(2,), ()]):
            operands.append((zeros(name, shape), torch.zeros(shape, dtype=getattr(torch, name))))
        for (one, torch_one), (other, torch_other) in itertools.product(operands, operands):
            ours = dtypes.from_numpy(dtypes.result_dtype([one, other]))
            theirs = str(torch.result_type(torch_one, torch_other))
            # There is no complex type with 16-bit parts here.
            theirs = theirs.replace("complex32", "complex64")
            assert theirs == f"torch.{ours.name}", (one, other)

    def test_limits(self, torch):
        for name in NAMES:
            kind, theirs = getattr(dtypes, name), getattr(torch, name)
            if kind.is_floating_point or kind.is_complex:
                ours, expected = dtypes.finfo(kind), torch.finfo(theirs)
                fields = ["bits", "dtype", "eps", "max", "min", "smallest_normal", "tiny"]
                assert repr(ours) == repr(expected)
            elif name == "bool":
                continue
            else:
                ours, expected = dtypes.iinfo(kind), torch.iinfo(theirs)
                fields = ["bits", "dtype", "max", "min"]
            for field in fields:
                assert getattr(ours, field) == getattr(expected, field), (name, field)


class TestLimits:
    def test_values(self):
        assert dtypes.finfo().eps == 2.0**-23
        assert dtypes.finfo(dtypes.bfloat16).eps == 2.0**-7
        assert dtypes.finfo(dtypes.complex128).max == np.finfo(np.float64).max
        assert dtypes.finfo(dtypes.float16).resolution == 1e-3
        assert (dtypes.iinfo(dtypes.int8).min, dtypes.iinfo(dtypes.uint8).max) == (-128, 255)
        assert dtypes.iinfo(dtypes.int64).bits == 64

    def test_wrong_kinds(self):
        with pytest.raises(TypeError, match="requires a floating point input type"):
            dtypes.finfo(dtypes.int8)
        with pytest.raises(TypeError, match="requires an integer input type"):
            dtypes.iinfo(dtypes.float32)
        with pytest.raises(TypeError, match="wengert.bool is not supported"):
            dtypes.iinfo(dtypes.bool)
