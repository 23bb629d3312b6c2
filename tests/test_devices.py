"""Devices and the default device."""

import copy
import pickle
import threading

import numpy as np
import pytest

import wengert
from wengert.backends import placement
from wengert.core import devices
from wengert.core.devices import device, get_default_device, set_default_device


class TestDevice:
    @pytest.mark.parametrize(
        "arguments, kind, index",
        [
            (("cpu",), "cpu", None),
            (("cpu:0",), "cpu", 0),
            (("meta",), "meta", None),
            (("cuda",), "cuda", None),
            (("cuda:11",), "cuda", 11),
            (("cuda", 1), "cuda", 1),
            ((2,), "cuda", 2),
            ((device("cuda:3"),), "cuda", 3),
        ],
    )
    def test_construction(self, arguments, kind, index):
        made = device(*arguments)
        assert (made.type, made.index) == (kind, index)

    def test_text(self):
        assert repr(device("cpu")) == "device(type='cpu')"
        assert repr(device("cuda:1")) == "device(type='cuda', index=1)"
        assert str(device("cuda:1")) == "cuda:1"
        assert str(device("meta")) == "meta"

    def test_equality(self):
        assert device("cuda:1") == device("cuda", 1)
        assert hash(device("cuda:1")) == hash(device("cuda", 1))
        assert device("cuda") != device("cuda:0")
        assert device("cpu") != "cpu"

    def test_is_immutable(self):
        with pytest.raises(AttributeError, match="not writable"):
            device("cpu").index = 2

    def test_copies(self):
        assert pickle.loads(pickle.dumps(device("cuda:1"))) == device("cuda:1")
        assert copy.deepcopy(device("meta")) == device("meta")

    @pytest.mark.parametrize(
        "arguments, error, phrase",
        [
            (("foo",), RuntimeError, "Expected one of .* device type at start of device string"),
            (("",), RuntimeError, "must not be empty"),
            (("cuda:-1",), RuntimeError, "Invalid device string: 'cuda:-1'"),
            (("cuda:01",), RuntimeError, "Invalid device string"),
            (("cuda:",), RuntimeError, "Invalid device string"),
            (("cuda", -1), RuntimeError, "must not be negative"),
            (("cuda:1", 2), RuntimeError, "must not include an index"),
            ((3.0,), TypeError, "invalid combination of arguments"),
            ((None,), TypeError, "invalid combination of arguments"),
            ((device("cuda"), 1), TypeError, "no further index"),
        ],
    )
    def test_refusals(self, arguments, error, phrase):
        with pytest.raises(error, match=phrase):
            device(*arguments)

    def test_as_device(self):
        cpu = device("cpu")
        assert devices.as_device(cpu) is cpu
        assert devices.as_device("cuda:1") == device("cuda", 1)
        assert devices.as_device(None) == cpu
        with pytest.raises(TypeError, match="argument 'device' must be wengert.device, not float"):
            devices.as_device(1.0)


class TestDefault:
    def test_context_nests_and_survives_errors(self):
        meta = device("meta")
        with meta:
            assert get_default_device() == meta
            with meta, device("cuda:1"):
                assert get_default_device() == device("cuda:1")
            assert get_default_device() == meta
        with pytest.raises(KeyError), meta:
            raise KeyError
        assert get_default_device() == device("cpu")

    def test_set_and_reset(self):
        set_default_device("meta")
        try:
            assert get_default_device() == device("meta")
        finally:
            set_default_device(None)
        assert get_default_device() == device("cpu")

    def test_belongs_to_the_thread(self):
        seen = []
        with device("meta"):
            thread = threading.Thread(target=lambda: seen.append(get_default_device()))
            thread.start()
            thread.join()
        assert seen == [device("cpu")]


class TestArrays:
    def test_of_array(self):
        assert placement.of_array(np.zeros(2)) == device("cpu")
        assert placement.of_array(np.zeros(2).view(np.matrix)) == device("cpu")

    def test_meta_arrays(self):
        from wengert.backends import meta

        shape_only = placement.transfer(np.zeros((2, 3), np.int8), device("meta"))
        assert isinstance(shape_only, meta.MetaArray)
        assert (shape_only.shape, shape_only.dtype) == ((2, 3), np.int8)
        assert placement.of_array(shape_only) == device("meta")
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            placement.transfer(shape_only, device("cpu"))

    def test_transfer_to_where_it_is(self):
        array = np.zeros(2)
        assert placement.transfer(array, device("cpu")) is array
        assert placement.transfer(array, device("cpu:0")) is array

    def test_cuda_is_refused_and_nothing_to_install_is_advised(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "cupy", None)
        for use in (
            lambda: placement.transfer(np.zeros(2), device("cuda")),
            lambda: wengert.ones(2).cuda(),
        ):
            with pytest.raises(RuntimeError, match="not compiled with CUDA enabled") as refused:
                use()
            assert "CuPy" not in str(refused.value) and "pip" not in str(refused.value)


def test_programs_that_prefer_cuda_find_none():
    assert not wengert.cuda.is_available() and wengert.cuda.device_count() == 0
    chosen = wengert.device("cuda" if wengert.cuda.is_available() else "cpu")
    assert wengert.ones(2, device=chosen).sum() == 2
