"""Tensors turned into other dtypes, layouts, devices and Python objects."""

import warnings

import pytest

import wengert


def silently(function, *arguments):
    """The result of a call that may warn once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


class TestMemoryFormat:
    def test_a_copy_is_in_row_major_order_if_asked_for(self, lib):
        x = lib.ones(2, 3).t()
        order = {"memory_format": lib.contiguous_format}
        assert x.to(lib.float64).stride() == (1, 3)
        assert x.to(lib.float64, **order).stride() == (2, 1)
        assert x.to(lib.float32, copy=True, **order).stride() == (2, 1)
        assert x.double(**order).stride() == (2, 1)
        assert x.to(**order) is x

    def test_contiguous_needs_an_order(self, lib):
        x = lib.ones(2, 3)
        assert x.contiguous(memory_format=lib.preserve_format) is x
        with pytest.raises(RuntimeError, match="preserve memory format is unsupported"):
            x.t().contiguous(memory_format=lib.preserve_format)


class TestTypes:
    @pytest.mark.parametrize("kind", [int, float, bool, complex])
    def test_types_of_python_numbers(self, lib, kind):
        assert lib.ones(2).to(kind).dtype == lib.tensor(0, dtype=kind).dtype
        assert lib.ones(2).to("cpu", kind).dtype == lib.tensor(0, dtype=kind).dtype

    def test_names_of_tensor_types(self, lib):
        x = lib.ones(2)
        assert x.type("torch.LongTensor").dtype == lib.int64
        for name in ("torch.FooTensor", "LongTensor", "torch.Long"):
            with pytest.raises(ValueError, match="invalid type"):
                x.type(name)
        with pytest.raises(ValueError, match="invalid type: 'float'"):
            x.type(float)
        with pytest.raises(TypeError, match="dtype must be a"):
            x.type(3)


class TestComplex:
    def test_either_part_makes_a_number_true(self, lib):
        numbers = lib.tensor([1j, 1, 0])
        assert numbers.bool().tolist() == [True, True, False]
        assert lib.zeros(3, dtype=lib.bool).copy_(numbers).tolist() == [True, True, False]
        mask = lib.zeros(2, dtype=lib.bool)
        mask[0] = 1j
        assert mask.tolist() == [True, False]
        assert lib.full((2,), 1j, dtype=lib.bool).all()
        assert lib.zeros(2, dtype=lib.bool).fill_(lib.tensor(1j)).all()

    def test_real_types_keep_the_real_part(self, lib):
        numbers = lib.tensor([1 + 2j])
        assert silently(numbers.to, lib.int32).tolist() == [1]
        assert silently(lib.zeros(1).copy_, numbers).tolist() == [1.0]

    def test_losing_the_imaginary_part_warns(self):
        # PyTorch warns once in a process
        numbers = wengert.tensor([1 + 2j])
        target = wengert.zeros(1)
        for call in (numbers.float, numbers.int, lambda: target.copy_(numbers)):
            with pytest.warns(UserWarning, match="discards the imaginary part"):
                call()


class TestMeta:
    def test_there_are_no_values_to_read(self, lib):
        x = lib.ones(2, device="meta")
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            x.tolist()
        with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
            x[0].item()
        assert x.data_ptr() == 0

    def test_nor_to_write_into_memory(self, lib):
        x = lib.ones(2)
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            x[0] = lib.ones((), device="meta")
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            x.data = lib.ones(2, device="meta")

    def test_nor_to_index_with(self):
        # PyTorch reads whatever is at address 0
        with pytest.raises(RuntimeError, match="indices should be on the same device"):
            wengert.ones(3)[wengert.tensor([0, 1], device="meta")]


class TestMemory:
    def test_the_same_part_of_the_same_memory(self, lib):
        x = lib.ones(2, 2)
        assert x.is_set_to(x.detach()) and x.is_set_to(x[:])
        assert not x.is_set_to(x.t()) and not x.is_set_to(x[0]) and not x.is_set_to(x.clone())

    def test_small_facts(self, lib):
        x = lib.ones(2, 3)
        assert x.is_same_size(lib.zeros(2, 3)) and not x.is_same_size(lib.zeros(6))
        assert x.get_device() == lib.ones(2, device="meta").get_device() == -1
        assert not x.is_pinned() and not x.is_shared()
        assert lib.zeros(0).data_ptr() == 0

    @pytest.mark.parametrize("dim", ["a", 1.0])
    def test_dimensions_are_whole_numbers(self, lib, dim):
        with pytest.raises(TypeError, match="must be int, not"):
            lib.ones(2, 3).size(dim)


class TestSize:
    def test_arithmetic_gives_sizes(self, lib):
        size = lib.Size([2, 3])
        for made, expected in (
            (size + (1,), (2, 3, 1)),
            ((1,) + size, (1, 2, 3)),
            (2 * size, (2, 3, 2, 3)),
            (size * 2, (2, 3, 2, 3)),
            (size[1:], (3,)),
        ):
            assert type(made) is lib.Size and made == expected
        with pytest.raises(TypeError):
            [1] + size


def test_requires_grad_takes_a_bool(lib):
    for wrong in (1, "a", None):
        with pytest.raises(TypeError, match="must be bool"):
            lib.ones(2).requires_grad_(wrong)


def test_dlpack_capsules(lib):
    x = lib.arange(3)
    y = lib.utils.dlpack.from_dlpack(lib.utils.dlpack.to_dlpack(x))
    y[0] = 7
    assert x.tolist() == [7, 1, 2]
    capsule = x.__dlpack__()
    lib.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="invalid capsule"):
        lib.from_dlpack(capsule)
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        lib.ones(2, device="meta").__dlpack__()
