"""Memory of tensors: storages, types of tensors, resizing, sharing."""

import os

import pytest


def test_storages_are_the_memory_of_tensors(lib):
    x = lib.arange(6.0).reshape(2, 3)
    memory = x.untyped_storage()
    assert memory.nbytes() == len(memory) == 24 and memory.data_ptr() == x.data_ptr()
    assert x[1:].untyped_storage() is memory and x[1:].storage_offset() == 3
    assert x.storage().tolist() == x.T.storage().tolist() == [0, 1, 2, 3, 4, 5]
    assert isinstance(x.storage(), lib.FloatStorage)
    assert not isinstance(x.storage(), lib.LongStorage)
    x.storage().fill_(2)
    assert x.tolist() == [[2, 2, 2], [2, 2, 2]]
    memory.fill_(0)
    assert not x.any()
    assert memory.clone() != memory and lib.is_storage(memory)
    assert lib.TypedStorage([1, 2], dtype=lib.int64).double().tolist() == [1.0, 2.0]
    assert lib.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert "of size 24]" in repr(memory)


def test_a_storage_of_another_size_is_refused():
    import wengert

    with pytest.raises(RuntimeError, match="not resizable"):
        wengert.zeros(2).untyped_storage().resize_(100)


def test_types_of_tensors(lib):
    assert lib.FloatTensor([1, 2]).dtype is lib.float32
    assert lib.LongTensor([1.5, 2]).tolist() == [1, 2]
    assert lib.ByteTensor(2, 3).shape == (2, 3)
    assert lib.FloatTensor(lib.Size([2])).shape == (2,)
    x = lib.ones(2)
    assert isinstance(x, lib.FloatTensor) and not isinstance(x, lib.DoubleTensor)
    assert x.type(lib.IntTensor).dtype is lib.int32
    assert lib.FloatTensor(x.storage()).data_ptr() == x.data_ptr()
    assert x.new([1, 2]).dtype is lib.float32 and x.new(2, 3).shape == (2, 3)
    with pytest.raises(TypeError):
        lib.FloatTensor(lib.ones(1, dtype=lib.int64))
    lib.set_default_tensor_type(lib.DoubleTensor)
    try:
        assert lib.ones(1).dtype is lib.float64
    finally:
        lib.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError, match="floating-point"):
        lib.set_default_tensor_type(lib.LongTensor)


def test_resizing(lib):
    x = lib.arange(4.0)
    pointer = x.data_ptr()
    assert x.resize_(2, 1).tolist() == [[0], [1]] and x.data_ptr() == pointer
    assert x.resize_(6).shape == (6,) and x[:4].tolist() == [0, 1, 2, 3]
    assert lib.arange(3.0).resize_as_(lib.zeros(1, 2)).tolist() == [[0, 1]]
    with pytest.raises(RuntimeError, match="require grad"):
        lib.ones(2, requires_grad=True).resize_(3)


def test_looking_at_other_memory(lib):
    x, other = lib.zeros(2), lib.arange(4.0)
    x.set_(other)
    other[0] = 7
    assert x.tolist() == [7, 1, 2, 3]
    assert x.set_(other.untyped_storage(), 1, (2,), (2,)).tolist() == [1, 3]
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="Could not set tensor"):
        x.set_(other.double())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes to share with")
def test_shared_memory_is_seen_by_other_processes(lib):
    x = lib.zeros(3)
    assert not x.is_shared()
    assert x.share_memory_() is x and x.is_shared()
    child = os.fork()
    if not child:
        x.fill_(5)
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [5, 5, 5]


def test_python_functions_of_elements(lib):
    assert lib.arange(3.0).apply_(lambda v: v + 1).tolist() == [1, 2, 3]
    assert lib.arange(3.0).map_(lib.ones(3), lambda a, b: a + b).tolist() == [1, 2, 3]
    found = lib.arange(2.0).map2_(lib.ones(2), lib.ones(2), lambda a, b, c: a + b + c)
    assert found.tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="requires grad"):
        lib.ones(2, requires_grad=True).apply_(abs)


def test_orders_and_diagonals(lib):
    x = lib.zeros(3, 3)
    assert x.dim_order() == (0, 1) and x.T.dim_order() == (1, 0)
    assert x.fill_diagonal_(2).sum() == 6
    assert lib.zeros(5, 2).fill_diagonal_(1, wrap=True).sum(1).tolist() == [1, 1, 0, 1, 1]
    assert lib.zeros(2, 2, 2).fill_diagonal_(1).sum() == 2
    y = lib.ones(2, 2, requires_grad=True)
    y.clone().fill_diagonal_(0).sum().backward()
    assert y.grad.tolist() == [[0, 1], [1, 0]]
    assert x.new_empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    with pytest.raises(RuntimeError, match="larger than 1"):
        lib.zeros(2).fill_diagonal_(1)
    assert lib.tensor([-2.0, 1]).prelu(lib.tensor(0.5)).tolist() == [-1, 1]
