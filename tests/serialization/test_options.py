"""What save and load take beside an object and a file."""

import io
import mmap
import os
import pickle
import warnings
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import wengert
from serialization.support import archive, assembled, tensor, there_and_back
from standin.backend import PLACE
from wengert import serialization
from wengert.core.devices import CPU


class Point:
    """A class of a program, without a tensor in it."""

    def __init__(self, x, y):
        self.x, self.y = x, y


class Slotted:
    __slots__ = ("x",)


class Stateful:
    def __getstate__(self):
        return {"kept": self.kept}

    def __setstate__(self, state):
        self.kept = state["kept"] + 1


def doubled(x):
    return 2 * x


class Reduced:
    def __reduce__(self):
        return doubled, (21,)


class Special(wengert.Tensor):
    """A subclass that a pickle can name."""


class Wrapped(wengert.Tensor):
    """A subclass whose elements are those of another tensor."""

    @staticmethod
    def __new__(cls, inner):
        made = wengert.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


@pytest.fixture
def file():
    made = io.BytesIO()
    wengert.save({"a": wengert.arange(4.0), "b": wengert.ones(2)}, made)
    made.seek(0)
    return made


# Files.


@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_paths(lib, tmp_path, kind):
    path = tmp_path / "saved.pt"
    if kind is os.fsencode:
        with pytest.raises(AttributeError, match="'write'"):
            lib.save([1], kind(path))
        return
    lib.save([lib.ones(2)], kind(path))
    assert lib.load(kind(path))[0].tolist() == [1, 1]


def test_files_that_can_only_be_written_to():
    class Written:
        content = b""

        def write(self, data):
            self.content += bytes(data)

    written = Written()
    wengert.save(wengert.arange(3), written)
    assert wengert.load(io.BytesIO(written.content)).tolist() == [0, 1, 2]


def test_files_without_readinto(file):
    class Plain:
        read, seek, tell = file.read, file.seek, file.tell

    assert wengert.load(Plain())["a"].tolist() == [0, 1, 2, 3]


def test_what_is_no_file(lib):
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        lib.save([1], 3)
    with pytest.raises(AttributeError, match="seek"):
        lib.load(3)
    with pytest.raises(FileNotFoundError):
        lib.load("/nowhere/to/be/found")


def test_failed_save_leaves_the_file(tmp_path):
    path = tmp_path / "saved.pt"
    wengert.save([1], path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        wengert.save([lambda: 0], path)
    assert wengert.load(path) == [1]


def test_memory_begins_at_multiples_of_64(tmp_path):
    path = tmp_path / "saved.pt"
    wengert.save([wengert.ones(n, dtype=wengert.complex128) for n in (1, 3, 5)], path)
    for made in wengert.load(path, mmap=True):
        assert made.data_ptr() % 64 == 0


def test_archive_is_what_zipfile_reads(file):
    with zipfile.ZipFile(file) as made:
        assert made.testzip() is None
        assert made.read("archive/version") == b"3\n"


# Pickle.


def test_arguments_of_save(lib):
    with pytest.raises(NotImplementedError, match="another pickle_module is not supported"):
        wengert.save([1], io.BytesIO(), pickle_module=object)
    with pytest.raises(NotImplementedError, match="older format"):
        wengert.save([1], io.BytesIO(), _use_new_zipfile_serialization=False)
    for protocol in (0, 1, 6, None, "2"):
        with pytest.raises(ValueError, match="pickle_protocol must be between 2 and 5"):
            wengert.save([1], io.BytesIO(), pickle_protocol=protocol)
    made = io.BytesIO()
    lib.save([1], made, pickle, 2)
    made.seek(0)
    assert lib.load(made) == [1]


def test_without_the_record_of_the_byte_order():
    made = io.BytesIO()
    wengert.save(wengert.ones(2), made, _disable_byteorder_record=True)
    assert b"byteorder" not in made.getvalue()
    made.seek(0)
    assert wengert.load(made).tolist() == [1, 1]


def test_arguments_of_load(lib, file):
    with pytest.raises(RuntimeError, match="explicit pickle_module is specified"):
        lib.load(file, pickle_module=pickle, weights_only=True)
    assert lib.load(file, pickle_module=pickle)["b"].tolist() == [1, 1]
    file.seek(0)
    assert lib.load(file, weights_only=False, encoding="ascii")["b"].tolist() == [1, 1]
    file.seek(0)
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap"):
        lib.load(file, mmap=True)


def test_arguments_for_an_unpickler_that_does_not_run(file):
    with pytest.raises(TypeError, match="only work if weights_only=False: encoding"):
        wengert.load(file, encoding="ascii")


def test_environment(monkeypatch, file):
    content = archive(pickle.dumps(Reduced()))
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        assert wengert.load(content) == 42
    with pytest.raises(pickle.UnpicklingError, match="doubled"):
        wengert.load(content, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(RuntimeError, match="Only one of"):
        wengert.load(content)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError, match="doubled"):
        wengert.load(content, weights_only=False)


# What a program allows.


def test_classes_of_programs(lib):
    value = {"point": Point(1, lib.ones(2)), "call": Reduced()}
    made = there_and_back(lib, lib, value, weights_only=False)
    assert (made["point"].x, made["point"].y.tolist(), made["call"]) == (1, [1, 1], 42)
    with pytest.raises(pickle.UnpicklingError, match="Point was not an allowed global by default"):
        there_and_back(lib, lib, value)
    with lib.serialization.safe_globals([Point, doubled]):
        made = there_and_back(lib, lib, value)
        assert (made["point"].x, made["point"].y.tolist(), made["call"]) == (1, [1, 1], 42)
    assert Point not in lib.serialization.get_safe_globals()


def test_states_of_allowed_classes(lib):
    slotted, stateful = Slotted(), Stateful()
    slotted.x, stateful.kept = 3, 4
    with lib.serialization.safe_globals([Slotted, Stateful]):
        made = there_and_back(lib, lib, [slotted, stateful])
    assert (made[0].x, made[1].kept) == (3, 5)


def test_dictionaries_of_allowed_classes():
    with serialization.safe_globals([defaultdict, dict]):
        made = there_and_back(wengert, wengert, defaultdict(dict, a={}))
    assert type(made) is defaultdict and made["b"] == {}
    with pytest.raises(pickle.UnpicklingError, match="defaultdict was not an allowed global"):
        there_and_back(wengert, wengert, defaultdict(dict, a={}))


def test_list_of_allowed_globals(lib):
    allowed = lib.serialization
    before = allowed.get_safe_globals()
    allowed.add_safe_globals([Point])
    with allowed.safe_globals([doubled]):
        assert {Point, doubled} <= set(allowed.get_safe_globals())
    allowed.get_safe_globals().clear()
    assert Point in allowed.get_safe_globals() and doubled not in allowed.get_safe_globals()
    allowed.clear_safe_globals()
    assert allowed.get_safe_globals() == []
    allowed.add_safe_globals(before)


def test_allowed_by_another_name():
    content = archive(assembled_point("elsewhere", "Place"))
    with serialization.safe_globals([(Point, "elsewhere.Place")]):
        assert wengert.load(content).x == 5


def assembled_point(module, name):
    return b"\x80\x02" + f"c{module}\n{name}\n".encode() + b")\x81}X\x01\0\0\0xK\x05sb."


def test_what_cannot_be_allowed():
    for wrong in ([3], [("a", "b")], [(Point,)], [(Point, 3)]):
        with pytest.raises((TypeError, ValueError), match="expected"):
            serialization.add_safe_globals(wrong)
    assert serialization.get_safe_globals() == []


def test_names_of_this_package_are_those_of_pytorch():
    """A class is allowed under the name that PyTorch gives it in files."""
    content = archive(b"\x80\x02ctorch.random\nfork_rng\n.")
    with pytest.raises(pickle.UnpicklingError, match="not an allowed global"):
        wengert.load(content)
    with serialization.safe_globals([(Point, "wengert.random.fork_rng")]):
        assert wengert.load(content) is Point


def test_unsafe_names_of_a_file(lib):
    made = io.BytesIO()
    lib.save({"a": Point(1, 2), "b": {1}, "t": lib.ones(2), "r": Reduced()}, made)

    def found():
        made.seek(0)
        return lib.serialization.get_unsafe_globals_in_checkpoint(made)

    assert sorted(found()) == [f"{__name__}.Point", f"{__name__}.doubled"]
    with lib.serialization.safe_globals([Point]):
        assert found() == [f"{__name__}.doubled"]


def test_unsafe_names_of_a_forged_file():
    with pytest.raises(pickle.UnpicklingError, match="protocols 2 and 3"):
        serialization.get_unsafe_globals_in_checkpoint(archive(pickle.dumps(Reduced(), 4)))
    with pytest.raises(pickle.UnpicklingError):
        serialization.get_unsafe_globals_in_checkpoint(archive(b"\x80\x02X\xff\xff\xff\xff"))


def test_names_of_pytorch_that_are_public_here():
    content = archive(b"\x80\x02ctorch.nn.modules.none.such\nParameter\n.")
    assert wengert.load(content, weights_only=False) is wengert.nn.Parameter
    content = archive(b"\x80\x02ctorch.nn.modules\nNoSuchLayer\n.")
    with pytest.raises(AttributeError, match="torch.nn.modules.NoSuchLayer"):
        wengert.load(content, weights_only=False)


# Subclasses.


def test_subclasses():
    source = Special([1.0, 2.0])
    source.label = "a"
    made = there_and_back(wengert, wengert, source, weights_only=False)
    assert type(made) is Special and made.label == "a" and made.tolist() == [1, 2]
    with pytest.raises(pickle.UnpicklingError, match="Special was not an allowed global"):
        there_and_back(wengert, wengert, source)
    with serialization.safe_globals([Special]):
        assert type(there_and_back(wengert, wengert, source)) is Special


def test_subclasses_without_memory():
    source = Wrapped(wengert.arange(3.0))
    with serialization.safe_globals([Wrapped]):
        made = there_and_back(wengert, wengert, source)
    assert type(made) is Wrapped and made.inner.tolist() == [0, 1, 2]
    assert (made.shape, made.dtype) == (source.shape, source.dtype)


def test_tensors_of_transforms_are_refused():
    def saved(x):
        wengert.save(x, io.BytesIO())
        return x

    with pytest.raises(NotImplementedError, match="Cannot access storage of a tensor inside vmap"):
        wengert.vmap(saved)(wengert.ones(2))


def test_hooks_stay_behind(lib):
    source = lib.ones(2, requires_grad=True)
    source.register_hook(lambda gradient: gradient)
    with pytest.warns(UserWarning, match="backward hook"):
        made = there_and_back(lib, lib, source)
    assert made.requires_grad and not made._backward_hooks


def test_foreign_memory():
    """Arrays with gaps, of other owners and read-only ones are saved like any others."""
    rows = np.arange(12.0).reshape(3, 4)
    frozen = np.arange(3)
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sources = [
            wengert.from_numpy(rows[:, 1]), wengert.from_numpy(rows.T), wengert.from_numpy(frozen),
            wengert.from_numpy(np.frombuffer(b"abcd", np.uint8)),
        ]  # fmt: skip
    made = there_and_back(wengert, wengert, sources)
    assert [m.tolist() for m in made] == [s.tolist() for s in sources]
    assert made[0].stride() == (4,) and made[0].storage_offset() == 1
    made[1].zero_()
    assert made[0].tolist() == [0, 0, 0]


# Places.


@pytest.mark.parametrize("place", [
    "cpu", lambda lib: lib.device("cpu"), {"cpu": "cpu"}, {"cuda:0": "cpu"}, {},
    lambda lib: lambda storage, location: storage,
    lambda lib: lambda storage, location: storage.cpu(), lambda lib: lambda storage, location: None,
])  # fmt: skip
def test_map_location_to_the_host(lib, file, place):
    place = place(lib) if callable(place) else place
    assert lib.load(file, map_location=place)["a"].tolist() == [0, 1, 2, 3]


def test_map_location_to_meta(lib, file):
    for place in ("meta", lib.device("meta"), {"cpu": "meta"}):
        file.seek(0)
        made = lib.load(file, map_location=place)
        assert made["a"].device.type == "meta" and made["a"].shape == (4,)


def test_function_is_called_once_per_storage(lib):
    base = lib.arange(6.0)
    calls = []

    def place(storage, location):
        calls.append((location, storage.nbytes(), str(storage.device)))

    there_and_back(lib, lib, [base, base[2:], lib.ones(2)], map_location=place)
    assert calls == [("cpu", 24, "cpu"), ("cpu", 8, "cpu")]


def test_errors_of_the_function_are_its_own(lib, file):
    def place(storage, location):
        raise KeyError("mine")

    for weights_only in (True, False):
        file.seek(0)
        with pytest.raises(KeyError, match="mine"):
            lib.load(file, map_location=place, weights_only=weights_only)


def test_wrong_places(file):
    with pytest.raises(TypeError, match="must be a device, a str, a dict or a function, not int"):
        wengert.load(file, map_location=3)

    def shorter(storage, location):
        return serialization.Storage(storage.array[1:], storage.dtype)

    for place, error, message in (
        ("nowhere", RuntimeError, "don't know how to restore data location"),
        (lambda storage, location: 3, TypeError, "must return a storage or None, not int"),
        (shorter, ValueError, "returned another storage"),
    ):
        file.seek(0)
        with pytest.raises(error, match=message):
            wengert.load(file, map_location=place)


def test_tensors_of_devices_that_are_not_here():
    four = bytes(16)
    for place, message in (("cuda:0", "Attempting to deserialize object on a CUDA device"),
                           ("mps", "don't know how to restore data location")):  # fmt: skip
        content = archive(assembled(tensor(location=place)), [four])
        if place == "mps" or not wengert.cuda.is_available():
            with pytest.raises(RuntimeError, match=message):
                wengert.load(content)
        for target in ("cpu", {place: "cpu"}, lambda storage, location: storage):
            content.seek(0)
            assert wengert.load(content, map_location=target).device.type == "cpu"


@pytest.mark.parametrize(("target", "expected"), [
    (None, PLACE), (PLACE, PLACE), ("standin:0", PLACE), ("cpu", CPU), ({"standin:0": "cpu"}, CPU),
    (lambda storage, _: storage.cpu(), CPU), (lambda storage, _: storage.to(PLACE), PLACE),
])  # fmt: skip
def test_tensors_of_another_device(target, expected):
    base = wengert.arange(6.0, device=PLACE)
    value = [base, base.view(2, 3).t()[1:]]
    made = there_and_back(wengert, wengert, value, map_location=target)
    assert made[0].device == made[1].device == expected
    assert made[1].tolist() == [[1, 4], [2, 5]] and made[1].storage_offset() == 1
    made[0].zero_()
    assert made[1].tolist() == [[0, 0], [0, 0]]


def test_storages():
    seen = []
    there_and_back(wengert, wengert, wengert.ones(3), map_location=lambda s, _: seen.append(s))
    (storage,) = seen
    assert (len(storage), storage.size(), storage.nbytes(), storage.element_size()) == (3, 3, 12, 4)
    assert repr(storage) == "<Storage of 3 wengert.float32 on cpu>"
    assert storage.to("meta").device.type == "meta" and storage.cpu() is storage


# Mapped files.


def test_mapped_files_change_only_if_shared(lib, tmp_path):
    path = tmp_path / "saved.pt"
    lib.save(lib.arange(4.0), path)
    assert lib.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    lib.load(path, mmap=True).fill_(7)
    assert lib.load(path).tolist() == [0, 1, 2, 3]
    with lib.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        made = lib.load(path, mmap=True)
        made.fill_(7)
        del made
    assert lib.load(path).tolist() == [7, 7, 7, 7]
    assert lib.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        lib.serialization.set_default_mmap_options(77)


def test_mapped_files_without_alignment(tmp_path):
    """Such memory is copied: the loops of operators read whole elements."""
    path = tmp_path / "saved.pt"
    content = archive(assembled(tensor()), [np.arange(4, dtype=np.float32).tobytes()], folder="a")
    path.write_bytes(content.getvalue())
    made = wengert.load(path, mmap=True)
    assert made.tolist() == [0, 1, 2, 3] and made.data_ptr() % 4 == 0


def test_mapped_tensors_are_saved_alone(tmp_path):
    path, again = tmp_path / "saved.pt", tmp_path / "again.pt"
    wengert.save([wengert.zeros(100_000), wengert.ones(2)], path)
    wengert.save(wengert.load(path, mmap=True)[1], again)
    assert again.stat().st_size < 2000
    assert wengert.load(again).tolist() == [1, 1]


def test_large_records_are_aligned(lib, monkeypatch, tmp_path):
    """The header of a record beyond two gigabytes is longer; here beyond a thousand bytes."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    path = tmp_path / "saved.pt"
    wengert.save([wengert.arange(300), wengert.ones(2), wengert.arange(500.0)], path)
    for options in ({}, {"mmap": True}):
        made = lib.load(path, **options)
        assert [len(t) for t in made] == [300, 2, 500] and made[2][499] == 499
    assert all(t.data_ptr() % 64 == 0 for t in made)
