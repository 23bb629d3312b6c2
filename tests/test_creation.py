"""Making tensors from data, from values and from nothing."""

import array
import math
import warnings

import numpy as np
import pytest

import wengert
from wengert.core import dtypes
from width import tries

# What each call gives: dtype, then nested values. Both libraries must agree with it.
TENSORS = [
    (lambda lib: lib.tensor(3), "int64", 3),
    (lambda lib: lib.tensor(2.5), "float32", 2.5),
    (lambda lib: lib.tensor(True), "bool", True),
    (lambda lib: lib.tensor(1 + 2j), "complex64", 1 + 2j),
    (lambda lib: lib.tensor([1, 2.5, True]), "float32", [1.0, 2.5, 1.0]),
    (lambda lib: lib.tensor([True, 2]), "int64", [1, 2]),
    (lambda lib: lib.tensor([1, 2j]), "complex64", [1, 2j]),
    (lambda lib: lib.tensor([[1, 2], (3, 4)]), "int64", [[1, 2], [3, 4]]),
    (lambda lib: lib.tensor([range(2), range(2)]), "int64", [[0, 1], [0, 1]]),
    (lambda lib: lib.tensor([]), "float32", []),
    (lambda lib: lib.tensor([[], []]), "float32", [[], []]),
    (lambda lib: lib.tensor(data=[1]), "int64", [1]),
    (lambda lib: lib.tensor(np.int8(3)), "int8", 3),
    (lambda lib: lib.tensor([np.float64(3)]), "float64", [3.0]),
    (lambda lib: lib.tensor([np.float16(3), np.float32(2)]), "float32", [3.0, 2.0]),
    (lambda lib: lib.tensor([np.int8(3), 2.5]), "float32", [3.0, 2.5]),
    (lambda lib: lib.tensor([np.bool_(True)]), "bool", [True]),
    (lambda lib: lib.tensor([np.array([1, 2], "i4"), [3, 4]]), "int64", [[1, 2], [3, 4]]),
    (lambda lib: lib.tensor(np.array([1.5, 2.0])), "float64", [1.5, 2.0]),
    (lambda lib: lib.tensor(np.array([300]), dtype=lib.uint8), "uint8", [44]),
    (lambda lib: lib.tensor([lib.tensor(1), lib.tensor(2.5)]), "float32", [1.0, 2.5]),
    (lambda lib: lib.tensor([lib.tensor(1.0, dtype=lib.float64), 2]), "float64", [1.0, 2.0]),
    (lambda lib: lib.tensor(bytearray(b"ab")), "int64", [97, 98]),
    (lambda lib: lib.tensor(array.array("i", [1, 2])), "int64", [1, 2]),
    (lambda lib: lib.tensor(2**63 - 1), "int64", 2**63 - 1),
    (lambda lib: lib.tensor(-1, dtype=lib.uint8), "uint8", 255),
    (lambda lib: lib.tensor([1.7, -1.7], dtype=lib.int64), "int64", [1, -1]),
    (lambda lib: lib.tensor([0, 5, 0.5], dtype=lib.bool), "bool", [False, True, True]),
    (lambda lib: lib.tensor(0.5, dtype=lib.bool), "bool", True),
    (lambda lib: lib.tensor([1e40, -1e40], dtype=lib.float32), "float32", [math.inf, -math.inf]),
    (lambda lib: lib.tensor(2**70, dtype=lib.float64), "float64", 2.0**70),
    (lambda lib: lib.tensor([1, 2], dtype=lib.bfloat16), "bfloat16", [1.0, 2.0]),
    (lambda lib: lib.tensor(1, dtype=lib.complex128), "complex128", 1 + 0j),
    (lambda lib: lib.as_tensor([1, 2.5]), "float32", [1.0, 2.5]),
    (lambda lib: lib.as_tensor(np.array([1, 2]), dtype=lib.float16), "float16", [1.0, 2.0]),
    (lambda lib: lib.asarray([1, 2]), "int64", [1, 2]),
    (lambda lib: lib.asarray(np.float32(1)), "float32", 1.0),
    (lambda lib: lib.asarray(array.array("f", [1, 2])), "float32", [1.0, 2.0]),
    (lambda lib: lib.from_numpy(np.array(1.0)), "float64", 1.0),
    (lambda lib: lib.from_dlpack(np.array([1.0, 2.0])), "float64", [1.0, 2.0]),
    (lambda lib: lib.zeros(2, 1), "float32", [[0.0], [0.0]]),
    (lambda lib: lib.zeros((2,), dtype=lib.int8), "int8", [0, 0]),
    (lambda lib: lib.zeros([1], dtype=float), "float64", [0.0]),
    (lambda lib: lib.zeros(size=(1,)), "float32", [0.0]),
    (lambda lib: lib.zeros(()), "float32", 0.0),
    (lambda lib: lib.zeros(np.int64(1)), "float32", [0.0]),
    (lambda lib: lib.zeros(lib.tensor(1), 1), "float32", [[0.0]]),
    (lambda lib: lib.ones(2, dtype=lib.bool), "bool", [True, True]),
    (lambda lib: lib.ones(1, dtype=lib.complex64), "complex64", [1 + 0j]),
    (lambda lib: lib.full((2,), 1), "int64", [1, 1]),
    (lambda lib: lib.full((1,), True), "bool", [True]),
    (lambda lib: lib.full((1,), 1.5), "float32", [1.5]),
    (lambda lib: lib.full((1,), 2j), "complex64", [2j]),
    (lambda lib: lib.full((1,), lib.tensor(3)), "int64", [3]),
    (lambda lib: lib.full((1,), 1.5, dtype=lib.int32), "int32", [1]),
    (lambda lib: lib.full((1,), -1, dtype=lib.uint8), "uint8", [255]),
    (lambda lib: lib.full((), 5), "int64", 5),
    (lambda lib: lib.zeros_like(lib.ones(2, dtype=lib.int8)), "int8", [0, 0]),
    (lambda lib: lib.ones_like(lib.zeros(1), dtype=lib.float64), "float64", [1.0]),
    (lambda lib: lib.full_like(lib.zeros(1, dtype=lib.int8), 5.5), "int8", [5]),
    (lambda lib: lib.zeros(2).new_tensor([1, 2]), "float32", [1.0, 2.0]),
    (lambda lib: lib.zeros(2, dtype=lib.int8).new_tensor([1.5]), "int8", [1]),
    (lambda lib: lib.zeros(2).new_tensor(np.array([1, 2])), "float32", [1.0, 2.0]),
    (lambda lib: lib.zeros(2, dtype=lib.int8).new_zeros(1, 2), "int8", [[0, 0]]),
    (lambda lib: lib.zeros(2).new_ones((1,), dtype=lib.int32), "int32", [1]),
    (lambda lib: lib.zeros(2).new_full((1,), 3), "float32", [3.0]),
    (lambda lib: lib.arange(3), "int64", [0, 1, 2]),
    (lambda lib: lib.arange(3.0), "float32", [0.0, 1.0, 2.0]),
    (lambda lib: lib.arange(1, 2, 0.5), "float32", [1.0, 1.5]),
    (lambda lib: lib.arange(5, 1, -2), "int64", [5, 3]),
    (lambda lib: lib.arange(1, 1), "int64", []),
    (lambda lib: lib.arange(start=1, end=3, step=1), "int64", [1, 2]),
    (lambda lib: lib.arange(end=2), "int64", [0, 1]),
    (lambda lib: lib.arange(lib.tensor(2.0, dtype=lib.float64)), "float32", [0.0, 1.0]),
    (lambda lib: lib.arange(0.5, 3.7, 1.5, dtype=lib.int64), "int64", [0, 1, 2]),
    (lambda lib: lib.arange(254, 258, dtype=lib.uint8), "uint8", [254, 255, 0, 1]),
    (lambda lib: lib.arange(2**63 - 3, 2**63 - 1), "int64", [2**63 - 3, 2**63 - 2]),
    (lambda lib: lib.arange(2, dtype=lib.float16), "float16", [0.0, 1.0]),
    (lambda lib: lib.linspace(0, 1, 3), "float32", [0.0, 0.5, 1.0]),
    (lambda lib: lib.linspace(0, 10, 1), "float32", [0.0]),
    (lambda lib: lib.linspace(0, 10, 0), "float32", []),
    (lambda lib: lib.linspace(-9, 9, 6, dtype=lib.int8), "int8", [-9, -5, -1, 1, 5, 9]),
    (lambda lib: lib.linspace(0, 1j, 3), "complex64", [0j, 0.5j, 1j]),
    (lambda lib: lib.linspace(lib.tensor(0), 2.0, steps=2), "float32", [0.0, 2.0]),
    (lambda lib: lib.logspace(0, 2, 3), "float32", [1.0, 10.0, 100.0]),
    (lambda lib: lib.logspace(0, 3, 4, base=-2), "float32", [1.0, -2.0, 4.0, -8.0]),
    (lambda lib: lib.logspace(0, 2, 4, dtype=lib.int64), "int64", [1, 4, 21, 100]),
    (lambda lib: lib.eye(2), "float32", [[1.0, 0.0], [0.0, 1.0]]),
    (lambda lib: lib.eye(1, 2, dtype=lib.bool), "bool", [[True, False]]),
    (lambda lib: lib.tril_indices(2, 3), "int64", [[0, 1, 1], [0, 0, 1]]),
    (lambda lib: lib.triu_indices(2, 2, 1, dtype=lib.int32), "int32", [[0], [1]]),
    (lambda lib: lib.tril_indices(row=2, col=2, offset=-1), "int64", [[1], [0]]),
]


@pytest.mark.parametrize("make, dtype, values", TENSORS)
def test_values_and_dtypes(lib, make, dtype, values):
    with warnings.catch_warnings():
        # PyTorch calls lists of arrays slow.
        warnings.simplefilter("ignore", UserWarning)
        made = make(lib)
    assert str(made.dtype).partition(".")[2] == dtype
    assert made.tolist() == values
    assert not made.requires_grad
    assert made.is_leaf


ERRORS = [
    (lambda lib: lib.tensor([[1, 2], [3]]), ValueError, r"expected sequence of length 2 at dim 1"),
    (lambda lib: lib.tensor([[[1]], [[2], [3]]]), ValueError, r"length 1 at dim 1 \(got 2\)"),
    (lambda lib: lib.tensor([[1, 2], 3]), TypeError, "not a sequence"),
    (lambda lib: lib.tensor([1.0, [3]]), TypeError, "must be"),
    (lambda lib: lib.tensor([1, None]), RuntimeError, "Could not infer dtype of NoneType"),
    (lambda lib: lib.tensor({}), RuntimeError, "Could not infer dtype of dict"),
    (lambda lib: lib.tensor("a"), TypeError, "invalid data type 'str'"),
    (lambda lib: lib.tensor([1, "a"]), TypeError, "invalid data type 'str'"),
    (lambda lib: lib.tensor(2**63), ValueError, "Overflow when unpacking long"),
    (lambda lib: lib.tensor(300, dtype=lib.uint8), RuntimeError, "without overflow"),
    (lambda lib: lib.tensor([128], dtype=lib.int8), RuntimeError, "without overflow"),
    (lambda lib: lib.tensor(math.nan, dtype=lib.int64), RuntimeError, "without overflow"),
    (lambda lib: lib.tensor(1j, dtype=lib.float32), TypeError, "must be real number, not complex"),
    (lambda lib: lib.tensor(np.array(["a"])), TypeError, "can't convert np.ndarray of type numpy"),
    (lambda lib: lib.tensor([1], requires_grad=True), RuntimeError, "Only Tensors of floating"),
    (lambda lib: lib.tensor([lib.ones(2), [1.0, 2]]), ValueError, "only one element tensors"),
    (lambda lib: lib.tensor(1, 2), TypeError, "positional argument"),
    (lambda lib: lib.from_numpy([1]), TypeError, r"expected np.ndarray \(got list\)"),
    (lambda lib: lib.from_numpy(np.float64(1)), TypeError, r"\(got numpy.float64\)"),
    (lambda lib: lib.from_numpy(lib.zeros(1)), TypeError, r"\(got Tensor\)"),
    (lambda lib: lib.from_numpy(np.zeros(3)[::-1]), ValueError, "negative"),
    (lambda lib: lib.from_numpy(np.zeros(2, ">f4")), ValueError, "byte order"),
    (lambda lib: lib.from_dlpack([1]), RuntimeError, "from_dlpack received an invalid capsule"),
    (lambda lib: lib.from_dlpack(lib.ones(1, requires_grad=True)), BufferError, "detach"),
    (lambda lib: lib.asarray([1], copy=False), ValueError, "can't alias arbitrary sequence"),
    (
        lambda lib: lib.asarray(np.ones(1), dtype=lib.float32, copy=False),
        ValueError,
        "can't alias tensor with dtype 'Double' into dtype 'Float'",
    ),
    (lambda lib: lib.zeros(), TypeError, "missing 1 required positional argument"),
    (lambda lib: lib.zeros(-1), RuntimeError, "negative"),
    (lambda lib: lib.empty(2, -1), RuntimeError, r"negative dimension -1: \[2, -1\]"),
    (lambda lib: lib.zeros(2.0), TypeError, "must be tuple of ints"),
    (lambda lib: lib.zeros((1, 2.0)), TypeError, "tuple of ints"),
    (lambda lib: lib.zeros(True), TypeError, "must be tuple of ints"),
    (lambda lib: lib.zeros((1,), (2,)), TypeError, "takes 1 positional argument but 2"),
    (lambda lib: lib.zeros(2, size=(3,)), TypeError, "multiple values for argument 'size'"),
    (lambda lib: lib.zeros(2, dtype=3), TypeError, "argument 'dtype' must be"),
    (lambda lib: lib.zeros(2, device=3.0), TypeError, "argument 'device' must be"),
    (lambda lib: lib.zeros(2, layout=3), TypeError, "argument 'layout' must be"),
    (lambda lib: lib.zeros(2, pin_memory=True), RuntimeError, "pin_memory=True"),
    (lambda lib: lib.zeros(2, dtype=lib.int8, requires_grad=True), RuntimeError, "Only Tensors of"),
    (lambda lib: lib.empty(2, memory_format=lib.preserve_format), RuntimeError, "unsupported mem"),
    (lambda lib: lib.zeros_like([1]), TypeError, "argument 'input'.* must be Tensor, not list"),
    (lambda lib: lib.full(2, 1.0), TypeError, "argument 'size'.* must be tuple of ints, not int"),
    (lambda lib: lib.full((2,), None), TypeError, "argument 'fill_value'.* must be Number"),
    (lambda lib: lib.full((2,), lib.ones(1)), TypeError, "must be Number, not Tensor"),
    (lambda lib: lib.full((2,), 300, dtype=lib.uint8), RuntimeError, "without overflow"),
    (lambda lib: lib.full((2,), 1e40), RuntimeError, "without overflow"),
    (lambda lib: lib.full((2,), 1j, dtype=lib.float32), RuntimeError, "without overflow"),
    (lambda lib: lib.full((2,), 2**63), RuntimeError, "without overflow"),
    (lambda lib: lib.empty_strided((2, 3), (1,)), RuntimeError, "dimensionality of sizes"),
    (lambda lib: lib.empty_strided((2, 3), (-1, 2)), RuntimeError, "strides"),
    (lambda lib: lib.arange(5, 1), RuntimeError, "inconsistent with step sign"),
    (lambda lib: lib.arange(1, 5, 0), RuntimeError, "step must be nonzero"),
    (lambda lib: lib.arange(math.inf), RuntimeError, "unsupported range"),
    (lambda lib: lib.arange("a"), TypeError, "must be Number, not str"),
    (lambda lib: lib.arange(), TypeError, "arange"),
    (lambda lib: lib.arange(3, dtype=lib.bool), NotImplementedError, "not implemented for 'Bool'"),
    (lambda lib: lib.arange(1j), RuntimeError, "without overflow"),
    (lambda lib: lib.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
    (lambda lib: lib.linspace(0, 1j, 3, dtype=lib.float32), RuntimeError, "can't be safely cast"),
    (lambda lib: lib.linspace(lib.ones(1), 1, 3), RuntimeError, "only supports 0-dimensional"),
    (lambda lib: lib.linspace(0, 1, 2.0), TypeError, "linspace"),
    (lambda lib: lib.eye(-1), RuntimeError, "n must be greater or equal to 0"),
    (lambda lib: lib.eye(2.0), TypeError, "argument 'n'.* must be int, not float"),
    (lambda lib: lib.triu_indices(-3, 3), RuntimeError, "row must be non-negative"),
    (lambda lib: lib.triu_indices(2, 2, dtype=lib.float32), NotImplementedError, "for 'Float'"),
    (
        lambda lib: lib.ones(3, dtype=lib.float64, out=lib.zeros(3)),
        RuntimeError,
        "dtype Double does not match dtype of out parameter",
    ),
    (
        lambda lib: lib.arange(3, out=lib.ones(3, requires_grad=True)),
        RuntimeError,
        "don't support automatic differentiation",
    ),
]


@pytest.mark.parametrize("make, error, phrase", ERRORS)
def test_errors(lib, make, error, phrase):
    with pytest.raises(error, match=phrase):
        make(lib)


class TestSharing:
    def test_tensor_copies(self, lib):
        source = np.zeros(3)
        made = lib.tensor(source)
        source[0] = 1
        assert made.tolist() == [0.0, 0.0, 0.0]

    def test_from_numpy_shares(self, lib):
        source = np.zeros((3, 2), np.float32)
        made = lib.from_numpy(source.T)
        source[0, 1] = 1
        assert made.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
        assert tuple(made.stride()) == (1, 2)

    def test_as_tensor_shares_where_it_can(self, lib):
        source = np.zeros(1, np.float32)
        shared, copied = lib.as_tensor(source), lib.as_tensor(source, dtype=lib.float64)
        source[0] = 1
        assert (shared.tolist(), copied.tolist()) == ([1.0], [0.0])

    def test_as_tensor_keeps_tensors(self, lib):
        leaf = lib.ones(1, requires_grad=True)
        assert lib.as_tensor(leaf) is leaf
        assert lib.as_tensor(leaf, dtype=lib.float32, device="cpu") is leaf
        cast = lib.as_tensor(leaf, dtype=lib.float64)
        assert cast.requires_grad
        assert cast.tolist() == [1.0]

    def test_asarray_copies_on_demand(self, lib):
        source = np.zeros(1)
        shared, copied = lib.asarray(source), lib.asarray(source, copy=True)
        source[0] = 1
        assert (shared.tolist(), copied.tolist()) == ([1.0], [0.0])

    def test_asarray_of_a_tensor(self, lib):
        leaf = lib.ones(1, requires_grad=True)
        assert lib.asarray(leaf, requires_grad=True) is leaf
        assert not lib.asarray(leaf, requires_grad=False).requires_grad
        assert lib.asarray(lib.ones(1), requires_grad=True).requires_grad
        copied = lib.asarray(leaf, copy=True, requires_grad=True)
        assert copied is not leaf and copied.requires_grad

    def test_from_dlpack_shares(self, lib):
        source = np.zeros(2)
        made = lib.from_dlpack(source)
        source[0] = 1
        assert made.tolist() == [1.0, 0.0]

    def test_asarray_takes_a_capsule(self, lib):
        source = lib.arange(3.0)
        made = lib.asarray(source.__dlpack__())
        source[0] = 5
        assert made.tolist() == [5.0, 1.0, 2.0]

    def test_from_dlpack_takes_a_capsule(self):
        source = np.zeros(2)
        made = wengert.from_dlpack(source.__dlpack__())
        source[0] = 1
        assert made.tolist() == [1.0, 0.0]

    def test_subclasses_are_seen_through(self):
        source = np.zeros(2).view(np.ma.MaskedArray)
        assert type(wengert.from_numpy(source).array) is np.ndarray

    def test_strides_that_split_elements(self):
        records = np.zeros(3, np.dtype([("flag", "i1"), ("value", "f4")]))
        with pytest.raises(ValueError, match="not a multiple of the element byte size"):
            wengert.from_numpy(records["value"])
        assert wengert.as_tensor(records["value"]).tolist() == [0.0, 0.0, 0.0]

    def test_read_only_arrays_warn(self, lib):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = lib.from_numpy(np.broadcast_to(np.zeros(1), (3,)))
        assert made.tolist() == [0.0, 0.0, 0.0]
        if lib is wengert:
            assert "not writable" in str(caught[0].message)


class TestCopyConstruction:
    def test_warns(self, lib):
        source = lib.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="To copy construct from a tensor, it is recommended"):
            made = lib.tensor(source)
        assert not made.requires_grad
        with pytest.warns(UserWarning, match="To copy construct from a tensor"):
            made = lib.zeros(1).new_tensor(source, dtype=lib.float64, requires_grad=True)
        assert made.requires_grad and made.is_leaf

    def test_keeps_device(self):
        with pytest.warns(UserWarning, match="To copy construct"):
            made = wengert.tensor(wengert.ones(2, device="meta"), dtype=wengert.float64)
        assert (made.device.type, made.dtype) == ("meta", wengert.float64)


class TestDefaults:
    def test_dtype(self, lib):
        lib.set_default_dtype(lib.float64)
        try:
            made = [lib.tensor(1.0), lib.zeros(1), lib.arange(2.0), lib.full((1,), 1.0)]
            assert all(each.dtype == lib.float64 for each in made)
            assert lib.tensor([1j]).dtype == lib.complex128
            assert lib.tensor([1]).dtype == lib.int64
        finally:
            lib.set_default_dtype(lib.float32)

    def test_device(self, lib):
        with lib.device("meta"):
            made = [lib.tensor([1.0]), lib.zeros(2), lib.arange(3), lib.eye(2), lib.rand(2)]
            assert all(each.device.type == "meta" for each in made)
            assert lib.zeros(2, device="cpu").device.type == "cpu"
            assert lib.from_numpy(np.zeros(2)).device.type == "cpu"
        assert lib.zeros(2).device.type == "cpu"

    def test_requires_grad(self, lib):
        for make in (lib.zeros, lib.ones, lib.empty, lib.rand, lib.randn):
            made = make(2, requires_grad=True)
            assert made.requires_grad and made.is_leaf
        assert lib.tensor([1.0], requires_grad=True).requires_grad
        assert lib.zeros_like(lib.zeros(1), requires_grad=True).requires_grad
        assert not lib.zeros_like(lib.zeros(1, requires_grad=True)).requires_grad

    def test_cuda_without_cupy(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "cupy", None)
        with pytest.raises(RuntimeError, match="not compiled with CUDA"):
            wengert.zeros(2, device="cuda")


class TestMeta:
    @pytest.mark.parametrize(
        "make",
        [
            lambda lib: lib.empty(2, 3, device="meta"),
            lambda lib: lib.zeros(2, 3, device="meta", dtype=lib.int8),
            lambda lib: lib.full((4,), 3, device="meta"),
            lambda lib: lib.tensor([1.0, 2.0], device="meta"),
            lambda lib: lib.arange(3, device="meta"),
            lambda lib: lib.linspace(0, 1, 5, device="meta"),
            lambda lib: lib.eye(3, device="meta"),
            lambda lib: lib.zeros_like(lib.zeros(2, 2), device="meta"),
            lambda lib: lib.ones_like(lib.zeros(2, 2, device="meta")),
            lambda lib: lib.randn(2, device="meta"),
            lambda lib: lib.randperm(3, device="meta"),
            lambda lib: lib.zeros(2, device="meta").new_full((3,), 2),
        ],
    )
    def test_parity(self, make):
        torch = pytest.importorskip("torch")
        ours, theirs = make(wengert), make(torch)
        assert ours.device.type == "meta"
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert f"torch.{ours.dtype.name}" == str(theirs.dtype)

    def test_like_keeps_the_order_of_dimensions(self):
        from wengert.backends.allocation import new_array_like

        source = np.zeros((2, 3, 4), np.float32).transpose(2, 0, 1)
        made = new_array_like(source, wengert.float64, wengert.device("meta"))
        assert made.strides == np.empty_like(source, np.float64).strides


class TestLayout:
    def test_like_keeps_the_order_of_dimensions(self, lib):
        source = lib.from_numpy(np.zeros((3, 2)).T)
        assert tuple(lib.zeros_like(source).stride()) == (1, 2)
        contiguous = lib.zeros_like(source, memory_format=lib.contiguous_format)
        assert tuple(contiguous.stride()) == (3, 1)
        preserved = lib.empty_like(source, memory_format=lib.preserve_format)
        assert tuple(preserved.stride()) == (1, 2)

    def test_like_of_gaps_is_dense(self, lib):
        source = lib.from_numpy(np.zeros((3, 4, 5))[:, ::2])
        assert tuple(lib.ones_like(source).stride()) == (10, 5, 1)

    def test_like_of_expanded_is_plain(self):
        from wengert.backends.allocation import new_array_like

        source = np.broadcast_to(np.zeros((3, 1, 2)), (3, 4, 2))
        made = new_array_like(source, wengert.float64, wengert.device("cpu"))
        assert made.flags.c_contiguous and made.flags.owndata

    def test_empty_strided(self, lib):
        assert tuple(lib.empty_strided((2, 3), (1, 2)).stride()) == (1, 2)
        assert tuple(lib.empty_strided((2, 3), (0, 1), dtype=lib.int8).stride()) == (0, 1)
        assert tuple(lib.empty_strided((2, 0), (1, 1)).shape) == (2, 0)

    def test_formats_have_names(self, lib):
        assert repr(lib.contiguous_format).endswith(".contiguous_format")
        assert repr(lib.strided).endswith(".strided")
        assert lib.zeros(1, layout=lib.strided).tolist() == [0.0]

    def test_unknown_format(self):
        with pytest.raises(RuntimeError, match="unsupported memory format"):
            wengert.zeros_like(wengert.zeros(1), memory_format="channels_last")


class TestOut:
    def test_writes(self, lib):
        out = lib.zeros(3, dtype=lib.float64)
        assert lib.ones(3, out=out) is out
        assert out.tolist() == [1.0, 1.0, 1.0]
        assert lib.arange(3, out=out) is out
        assert out.tolist() == [0.0, 1.0, 2.0]
        assert lib.eye(1, out=lib.zeros(1, 1)).tolist() == [[1.0]]

    def test_counts_as_a_change(self, lib):
        out = lib.zeros(3)
        before = out._version
        lib.ones(3, out=out)
        assert out._version > before

    def test_resizes(self, lib):
        out = lib.empty(0)
        assert lib.arange(3, out=out).tolist() == [0.0, 1.0, 2.0]
        assert tuple(out.shape) == (3,)
        assert lib.linspace(0, 1, 2, out=lib.ones(2, 2)).tolist() == [0.0, 1.0]

    def test_a_range_of_another_length_warns(self):
        out = wengert.ones(2, 2)
        with pytest.warns(UserWarning, match="resized"):
            wengert.arange(3, out=out)
        assert out.tolist() == [0.0, 1.0, 2.0]

    def test_may_become_a_leaf_that_requires_grad(self, lib):
        assert lib.zeros(3, out=lib.ones(3), requires_grad=True).requires_grad


class TestLegacyConstructor:
    def test_sizes_and_data(self, lib):
        assert tuple(lib.Tensor().shape) == (0,)
        assert tuple(lib.Tensor(2, 3).shape) == (2, 3)
        assert lib.Tensor([1, 2]).tolist() == [1.0, 2.0]
        assert lib.Tensor([1, 2]).dtype == lib.float32
        assert tuple(lib.Tensor(np.int64(3)).shape) == (3,)
        assert lib.Tensor(np.array(2.0)).tolist() == 2.0

    def test_a_tensor_gives_a_view_of_itself(self, lib):
        integers = lib.arange(3)
        view = lib.Tensor(integers)
        view[0] = 7
        assert integers.tolist() == [7, 1, 2] and integers._version == 1
        assert view.dtype == lib.int64
        leaf = lib.ones(2, requires_grad=True)
        assert lib.Tensor(leaf).grad_fn.name() == "AliasBackward0"

    @pytest.mark.parametrize("data", [2.5, 1j, True, None, np.float32(2), {}, object()])
    def test_what_is_no_sequence_is_no_data(self, lib, data):
        with pytest.raises(TypeError, match="data must be a sequence"):
            lib.Tensor(data)

    def test_refusals(self, lib):
        with pytest.raises(RuntimeError, match="Legacy tensor constructor"):
            lib.Tensor(lib.ones(2), device="cpu")
        with pytest.raises(TypeError):
            lib.Tensor(2, 3.0)


@pytest.mark.wide
def test_ranges_agree_with_pytorch():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    for _ in range(tries(300)):
        first, last = (float(x) for x in random.uniform(-10, 10, 2).round(2))
        step = float(random.uniform(0.05, 3)) * (1 if last > first else -1)
        name = str(random.choice(["float32", "float64", "int32", "int8"]))
        kind, theirs = getattr(dtypes, name), getattr(torch, name)
        np.testing.assert_allclose(
            wengert.arange(first, last, step, dtype=kind).tolist(),
            torch.arange(first, last, step, dtype=theirs).tolist(),
            rtol=1e-6,
            atol=1e-5,
        )
        if kind.is_floating_point:
            np.testing.assert_allclose(
                wengert.linspace(first, last, 17, dtype=kind).tolist(),
                torch.linspace(first, last, 17, dtype=theirs).tolist(),
                rtol=1e-5,
                atol=1e-5,
            )


# Declarations -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def twos():
    """A factory and a draw that are declared here, with the forms that are derived from them."""
    from wengert.creation.declare import (
        GENERATOR,
        LIKE,
        OPTIONS,
        Like,
        LikeDraw,
        New,
        Sized,
        SizedDraw,
        maker,
        variant,
    )
    from wengert.creation.drawing import DRAWS
    from wengert.dispatch.effects import OVERLOADS

    @maker(f"twos(SymInt[] size, *, {OPTIONS}) -> Tensor", kind=Sized)
    def twos(blank):
        """A tensor of twos."""
        return blank.filled(2)

    @maker(f"coins(SymInt[] size, *, {OPTIONS}, {GENERATOR}) -> Tensor", kind=SizedDraw)
    def coins(blank, *, generator=None):
        """Heads and tails."""
        from wengert.creation.sampling import fill_bernoulli

        array = blank.empty()
        fill_bernoulli(array, 0.5, generator)
        return array

    class Forms:
        pass

    forms = Forms()
    forms.twos = twos
    forms.twos_like = variant(
        twos, "twos_like", Like, f"twos_like(Tensor self, *, {LIKE}) -> Tensor", doc="Twos."
    )
    forms.new_twos = variant(
        twos, "new_twos", New, f"new_twos(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor",
        doc="Twos.",
    )  # fmt: skip
    forms.coins = coins
    forms.coins_like = variant(
        coins, "coins_like", LikeDraw, f"coins_like(Tensor self, *, {LIKE}) -> Tensor", doc="Coins."
    )
    yield forms
    for name in vars(forms):
        del OVERLOADS[name]
        DRAWS.pop(name, None)


def test_declared_factory_alone(twos):
    assert twos.twos(2, 1).tolist() == [[2.0], [2.0]]
    assert twos.twos((2,), dtype=wengert.int64).dtype is wengert.int64
    assert twos.twos(3, device="meta").is_meta
    out = wengert.zeros(2)
    assert twos.twos(2, out=out) is out
    assert out.tolist() == [2.0, 2.0]
    assert twos.twos(2, requires_grad=True).requires_grad
    like = wengert.ones(2, 3, dtype=wengert.float64).t()
    assert twos.twos_like(like).stride() == (1, 3)
    assert twos.twos_like(like).dtype is wengert.float64
    assert twos.new_twos(like, 4).dtype is wengert.float64
    assert twos.twos.__doc__ == "A tensor of twos."


def test_declared_factory_refuses_what_it_does_not_take(twos):
    with pytest.raises(TypeError, match=r"twos\(\) got an unexpected keyword argument 'side'"):
        twos.twos(2, side=1)
    with pytest.raises(TypeError, match=r"twos_like\(\) takes 1 positional argument but 2 were"):
        twos.twos_like(wengert.ones(2), 3)
    with pytest.raises(TypeError, match=r"new_twos\(\) got an unexpected keyword argument 'out'"):
        twos.new_twos(wengert.ones(2), 3, out=wengert.ones(3))


def test_declared_factory_inside_transforms(twos):
    rows = wengert.ones(2, 3)
    assert wengert.vmap(lambda row: twos.twos_like(row).add_(row))(rows).tolist() == [[3.0] * 3] * 2
    assert wengert.vmap(lambda row: twos.new_twos(row, 1) + row[0])(rows).tolist() == [[3.0]] * 2
    assert wengert.func.grad(lambda x: twos.twos(3).mul_(x).sum())(rows[0]).tolist() == [2.0] * 3


def test_declared_draw_inside_transforms(twos):
    rows = wengert.ones(40, 3)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        wengert.vmap(lambda row: twos.coins_like(row))(rows)
    for draw in (lambda row: twos.coins(3) * row, twos.coins_like):
        wengert.manual_seed(0)
        same = wengert.vmap(draw, randomness="same")(rows)
        different = wengert.vmap(draw, randomness="different")(rows)
        assert all(row == same.tolist()[0] for row in same.tolist())
        assert len({tuple(row) for row in different.tolist()}) > 1


def test_declared_draw_is_traced(twos):
    from wengert.compiler import trace

    traced = trace(lambda x: x + twos.coins_like(x), wengert.zeros(50))
    drawn = [tuple(traced(wengert.zeros(50)).tolist()) for _ in range(2)]
    assert drawn[0] != drawn[1]


def test_declared_factory_is_seen_by_modes(twos):
    from wengert.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), args, kwargs))
            return func(*args, **(kwargs or {}))

    overload = twos.twos.overloads[0]
    with Log():
        made = overload(2, 3, dtype=wengert.int64, requires_grad=False)
    assert made.tolist() == [[2] * 3] * 2
    assert seen == [("aten.twos.default", ([2, 3],), {"dtype": wengert.int64})]


def test_every_effect_has_a_schema():
    from wengert.dispatch.effects import OVERLOADS
    from wengert.library.builtin import builtin_schema

    for name, overload in OVERLOADS.items():
        assert overload.schema.name == name
        assert str(builtin_schema(overload)).startswith(f"aten::{name}(")
        assert overload.effect.overload_for(overload.positional) is overload
