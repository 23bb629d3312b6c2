"""Files that are cut off, forged or full of code: one error, and nothing happens."""

import io
import os
import pickle
import struct
import sys
import zipfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wengert
from serialization.support import (
    FLOATS,
    ORDERED,
    REBUILD,
    Call,
    Named,
    Persistent,
    archive,
    assembled,
    storage,
    tensor,
    there_and_back,
)

FOUR = struct.pack("4f", 1, 2, 3, 4)
#: All that a bad file may raise.
REFUSALS = (pickle.UnpicklingError, RuntimeError, EOFError)
ran = []


def leave_trace(text):
    ran.append(text)


class Intruder:
    """Leaves a trace if a pickle of it is loaded."""

    def __reduce__(self):
        return leave_trace, ("code of the file",)


class Settable:
    def __setstate__(self, state):
        ran.append("state")


@pytest.fixture(autouse=True)
def nothing_ran():
    ran.clear()
    yield
    assert ran == []


def refused(content, match=None, storages=(FOUR,)):
    with pytest.raises(pickle.UnpicklingError, match=match) as caught:
        wengert.load(archive(content, storages))
    assert str(caught.value).startswith("Weights only load failed")


def test_these_files_would_load_if_they_were_honest():
    made = wengert.load(archive(assembled(tensor()), [FOUR]))
    assert made.tolist() == [1, 2, 3, 4]
    assert there_and_back(wengert, wengert, [1]) == [1]


# Code.

NAMES = [
    ("os", "system"), ("posix", "system"), ("nt", "system"), ("sys", "exit"), ("builtins", "eval"),
    ("__builtin__", "exec"), ("builtins", "getattr"), ("builtins", "__import__"),
    ("subprocess", "Popen"), ("torch", "load"), ("torch.serialization", "load"),
    ("wengert", "save"), ("wengert.serialization", "add_safe_globals"),
    ("torch.serialization", "add_safe_globals"), ("wengert.core.loading", "load"),
    ("numpy", "load"), ("_codecs", "decode"), ("copyreg", "_reconstructor"),
    ("functools", "partial"), ("operator", "attrgetter"), ("torch.os", "system"),
    ("torch", "Tensor.__init_subclass__"), ("torch.nn.parameter", "Parameter.__new__"),
    ("collections", "OrderedDict.fromkeys"), ("", "eval"), ("builtins.eval", ""),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), NAMES)
@pytest.mark.parametrize("protocol", [2, 4])
def test_names_that_are_not_allowed(module, name, protocol):
    content = assembled(Call(Named(module, name), "echo 1"))
    if protocol == 4:
        texts = [b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, name)]
        content = b"\x80\x04" + texts[0] + texts[1] + b"\x93)R."
    refused(content, "was not an allowed global|is blocked")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_objects_that_reduce_to_calls(protocol):
    refused(pickle.dumps(Intruder(), protocol), "not an allowed global")
    refused(pickle.dumps({"a": [Intruder()]}, protocol), "not an allowed global")


def test_code_runs_only_if_asked_for():
    wengert.load(archive(pickle.dumps(Intruder())), weights_only=False)
    assert ran.pop() == "code of the file"
    with pytest.raises(pickle.UnpicklingError, match="not an allowed global"):
        wengert.load(archive(pickle.dumps(Settable(), 2)))


def test_blocked_modules_cannot_be_allowed():
    with wengert.serialization.safe_globals([(os.system, "os.system")]):
        refused(assembled(Call(Named("os", "system"), "echo 1")), "module os is blocked")


@pytest.mark.parametrize("function", [
    storage(), 3, "torch", None, FLOATS, Named("torch", "float32"), Named("torch", "Tensor"),
    tensor(), Named("torch", "contiguous_format"),
])  # fmt: skip
def test_calls_of_what_is_no_function(function):
    refused(assembled(Call(function, 2)), "Trying to call reduce for unrecognized function")


@pytest.mark.parametrize("cls", [Named("torch", "Tensor"), Named("torch", "Size"), FLOATS, 3])
def test_new_objects_of_other_classes(cls):
    refused(assembled(cls)[:-1] + b")\x81.", "Can only create new object")


@pytest.mark.parametrize("target", [tensor(), [1], {}, Named("torch", "float32"), REBUILD])
def test_states_of_other_objects(target):
    refused(assembled(target)[:-1] + b"}b.", "Can only build")


@pytest.mark.parametrize(
    "name", ["array", "needs_grad", "node", "grad", "data", "__class__", "requires_grad", "shape"]
)
def test_attributes_that_would_break_a_tensor(name):
    made = Call(Named("torch._utils", "_rebuild_parameter_with_state"), tensor(), True, ORDERED,
                {name: 3})  # fmt: skip
    refused(assembled(made), "attribute that would change it")
    subclass = Call(Named("torch._tensor", "_rebuild_from_type_v2"), REBUILD,
                    Named("torch", "Tensor"), (storage(), 0, (4,), (1,), False, ORDERED),
                    {name: 3})  # fmt: skip
    refused(assembled(subclass), "attribute that would change it")


def test_functions_of_subclasses_make_tensors():
    rebuild = Named("torch._tensor", "_rebuild_from_type_v2")
    for function in (rebuild, Named("builtins", "set"), 3):
        refused(assembled(Call(rebuild, function, Named("torch", "Tensor"), (), {})), "no tensors")
    refused(assembled(Call(rebuild, REBUILD, Named("torch", "Size"), (), {})), "no subclass")


# Sizes.


@pytest.mark.parametrize("options", [
    {"size": (5,)}, {"offset": 1}, {"stride": (2,)}, {"size": (2, 3), "stride": (3, 1)},
    {"size": (2**62,)}, {"size": (2**62, 2), "stride": (0, 2**61)}, {"offset": 2**62},
    {"size": (2,), "stride": (2**62,)}, {"size": (1,), "offset": 4},
])  # fmt: skip
def test_tensors_beyond_their_storage(options):
    refused(assembled(tensor(**options)), "out of bounds for storage of size 16 bytes")


@pytest.mark.parametrize("options", [
    {"size": (-1,)}, {"stride": (-1,)}, {"offset": -1}, {"size": (4.0,)}, {"size": [4]},
    {"size": 4}, {"size": (True,)}, {"offset": None}, {"offset": 10**5000}, {"size": (10**5000,)},
    {"stride": ()}, {"size": (1,) * 65, "stride": (1,) * 65}, {"size": ("4",)}, {"offset": "0"},
    {"requires_grad": 1}, {"hooks": {1: 2}},
    {"size": (0,), "stride": (2**62,)},
])  # fmt: skip
def test_geometry_that_is_none(options):
    refused(assembled(tensor(**options)), "tensor")


def test_more_elements_than_can_be_counted():
    for size in ((2**62,), (2**31, 2**31), (0, 2**62, 2**62)):
        refused(assembled(tensor(size=size, stride=(0,) * len(size))), "array is too big")


def test_copies_larger_than_the_file():
    """Lazy conjugation and negation, which PyTorch has, are computed here."""
    for size in ((2**45,), (2, 4)):
        content = assembled(Call(REBUILD, storage(), 0, size, (0,) * len(size), False, ORDERED,
                                 {"neg": True}))  # fmt: skip
        refused(content, "an expanded tensor is conjugated or negated lazily")
    for metadata in ({"neg": 1}, {"other": True}, 3):
        content = Call(REBUILD, storage(), 0, (4,), (1,), False, ORDERED, metadata)
        refused(assembled(content))
    content = Call(REBUILD, storage(), 0, (4,), (1,), False, ORDERED, {"neg": True})
    assert wengert.load(archive(assembled(content), [FOUR])).tolist() == [-1, -2, -3, -4]


@pytest.mark.parametrize("options", [
    {"count": 5}, {"count": 3}, {"count": 2**61}, {"count": 0}, {"key": "1"}, {"key": "../0"},
    {"key": "/etc/passwd"}, {"kind": Named("torch", "DoubleStorage")},
])  # fmt: skip
def test_storages_that_are_not_what_the_pickle_says(options):
    refused(assembled(storage(**options)), "failed reading zip archive")


@pytest.mark.parametrize("name", [
    (), ("storage",), ("module", 1, 2, 3, 4), ("storage", 3, "0", "cpu", 4),
    ("storage", FLOATS, 0, "cpu", 4), ("storage", FLOATS, "0", 3, 4),
    ("storage", FLOATS, "0", "cpu", -4), ("storage", FLOATS, "0", "cpu", "4"),
    ("storage", FLOATS, "0", "cpu", 4, 5), ([], FLOATS, "0", "cpu", 4), "0", 7, [1],
])  # fmt: skip
def test_names_of_storages(name):
    refused(assembled(Persistent(name)), "storage|persistent")


def test_one_storage_as_two():
    ints = Named("torch", "IntStorage")
    refused(assembled([storage(), storage(kind=ints)]), "two types or sizes")


@pytest.mark.parametrize(("module", "name", "arguments"), [
    ("builtins", "bytearray", (10**12,)), ("__builtin__", "bytearray", ([1],)),
    ("_codecs", "encode", ("a", "zlib")), ("_codecs", "encode", ("a", "rot13")),
    ("_codecs", "encode", (b"a", "latin1")), ("builtins", "complex", ("1",)),
    ("builtins", "set", ("abc",)), ("builtins", "set", ([[]],)),
    ("collections", "Counter", ("abc",)), ("collections", "OrderedDict", ([1],)),
    ("torch", "Size", (5,)), ("torch", "Size", (["a"],)), ("torch", "device", ("nowhere",)),
    ("torch", "device", ("cuda:-1",)), ("torch", "device", (None,)),
    ("torch.serialization", "_get_layout", ("torch.sparse_coo",)),
    ("torch._utils", "_rebuild_parameter", (3, True, {})),
    ("torch._utils", "_rebuild_tensor_v2", ()), ("torch._utils", "_rebuild_tensor", (3, 0, (), ())),
    ("torch._utils", "_rebuild_meta_tensor_no_storage", (3, (2,), (1,), False)),
    ("torch._utils", "_rebuild_wrapper_subclass",
     (Named("torch", "Tensor"), Named("torch", "float32"), (2,), (1,), 0, None, "cpu", False)),
    ("torch.nn.parameter", "Parameter", (3,)),
])  # fmt: skip
def test_wrong_arguments(module, name, arguments):
    refused(assembled(Call(Named(module, name), *arguments)))


def test_integers_that_require_gradients():
    longs = Named("torch", "LongStorage")
    made = tensor(size=(2,), kind=longs, count=2, requires_grad=True)
    refused(assembled(made), "can require gradients")


# Depth.


def test_deep_lists_are_no_problem():
    made = wengert.load(archive(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."))
    depth = 0
    while made:
        (made,), depth = made, depth + 1
    assert depth == 99_999


@pytest.mark.parametrize("content", [
    b"}" + b")" + b"\x85" * 1_000_000 + b"Ns.",  # hashing would overflow the stack
    b"}" + b")" + b"q\x00h\x00\x86" * 60 + b"Ns.",  # hashing would take 2**60 steps
    b"\x8f(" + b")" + b"\x85" * 1_000_000 + b"\x90.",
    b"(" + b")" + b"\x85" * 1_000_000 + b"\x91.",
])  # fmt: skip
def test_keys_that_cannot_be_hashed_in_time(content):
    refused(b"\x80\x04" + content, "nested too deeply")


def test_calls_within_calls():
    arguments = (storage(), 0, (4,), (1,), False, ORDERED)
    function = REBUILD
    for _ in range(400):
        arguments = (function, Named("torch", "Tensor"), arguments, {})
        function = Named("torch._tensor", "_rebuild_from_type_v2")
    refused(assembled(Call(function, *arguments)), "makes no tensors")


# Pickles that are none.


@pytest.mark.parametrize("content", [
    b"", b".", b"\x80\x02", b"\x80\x02.", b"\x80\x02]", b"\x80\x02a.", b"\x80\x02t.",
    b"\x80\x02\x85.", b"\x80\x02N\x86.", b"\x80\x02R.", b"\x80\x02Q.", b"\x80\x02b.",
    b"\x80\x02h\x05.", b"\x80\x02j\xff\xff\xff\xff.", b"\x80\x02q\x00.", b"\x80\x02}(Nu.",
    b"\x80\x02X\xff\xff\xff\xff.", b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    b"\x80\x04\x96" + b"\xff" * 7 + b"\x00.", b"\x80\x02\x8b\xff\xff\xff\x7f.",
    b"\x80\x02\x8b\xff\xff\xff\xff.", b"\x80\x02T\xff\xff\xff\xff.", b"\x80\x02X\x01\0\0\0\xff.",
    b"\x80\x02ctorch", b"\x80\x02ctorch\nSize", b"\x80\x02c\xff\n\xff\n.", b"\x80\x02}]Ns.",
    b"\x80\x00N.", b"\x80\x06N.", b"\x80\xffN.", b"\x80\x02Nie.", b"\x80\x02(ios\nsystem\n.",
    b"\x80\x02(cos\nsystem\nS'ls'\no.", b"\x80\x02\x82\x01.", b"\x80\x04)}\x92.",
    b"\x80\x05\x97.", b"\x80\x02P0\n.", b"\x80\x02NNs.", b"\x80\x02NNa.", b"\x80\x02N(Ne.",
    b"\x80\x04NN\x93.", b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00lsR.",
])  # fmt: skip
def test_pickles_that_make_no_sense(content):
    refused(content)


@settings(max_examples=300)
@given(st.binary(max_size=40))
@example(b"N.")
def test_random_instructions(content):
    try:
        wengert.load(archive(b"\x80\x02" + content))
    except REFUSALS as error:
        assert str(error)


VALUES = {
    "w": wengert.arange(6.0).view(2, 3), "t": wengert.arange(6.0).view(2, 3).t(), "e": [1, "a"],
    "p": wengert.nn.Parameter(wengert.ones(3)), "s": wengert.Size([2]), "c": wengert.ones(2) * 1j,
}  # fmt: skip


def saved(value=VALUES):
    file = io.BytesIO()
    wengert.save(value, file)
    return file.getvalue()


SAVED = saved()
with zipfile.ZipFile(io.BytesIO(SAVED)) as _archive:
    PICKLE = _archive.read("archive/data.pkl")
    STORAGES = [_archive.read(f"archive/data/{i}") for i in range(4)]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(PICKLE) - 1), st.integers(0, 255)), min_size=1,
                max_size=3))  # fmt: skip
def test_changed_pickles(changes):
    content = bytearray(PICKLE)
    for place, value in changes:
        content[place] = value
    try:
        wengert.load(archive(bytes(content), STORAGES))
    except REFUSALS as error:
        assert str(error)


# The archive.


@pytest.mark.parametrize("mmap", [False, True])
@settings(max_examples=100)
@given(st.integers(0, len(SAVED) - 1))
@example(0)
@example(1)
@example(4)
@example(len(SAVED) - 1)
def test_truncated_files(tmp_path_factory, mmap, length):
    path = tmp_path_factory.getbasetemp() / "truncated.pt"
    path.write_bytes(SAVED[:length])
    with pytest.raises(EOFError if not length else RuntimeError, match="zip archive|Ran out"):
        wengert.load(path, mmap=mmap)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(SAVED) - 1), st.integers(0, 255)), min_size=1,
                max_size=4), st.booleans())  # fmt: skip
def test_changed_files(changes, at_the_end):
    """Most of the bytes that matter to the archive are in its directory, at the end."""
    content = bytearray(SAVED)
    for place, value in changes:
        content[-1 - place % 900 if at_the_end else place] = value
    try:
        wengert.load(io.BytesIO(bytes(content)))
    except REFUSALS as error:
        assert str(error)


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_random_files(content):
    for begin in (b"", b"PK\x03\x04", b"PK\x05\x06"):
        with pytest.raises(REFUSALS, match="zip archive|older format|Ran out of input"):
            wengert.load(io.BytesIO(begin + content))


@pytest.mark.parametrize("name", [
    "../evil", "/etc/passwd", "archive/../../evil", "archive//evil", "other/file", "archive/./x",
    "C:\\evil", "archive\\..\\evil", "archive/data/", "evil",
])  # fmt: skip
def test_paths_out_of_the_archive(name):
    file = archive(assembled(1), extra=[(name, b"x")])
    with pytest.raises(RuntimeError, match="does not lie in its folder"):
        wengert.load(file)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_records_of_one_name():
    with pytest.raises(RuntimeError, match="two records"):
        wengert.load(archive(assembled(1), extra=[("archive/data.pkl", assembled(2))]))


def test_compressed_records():
    file = archive(assembled([0] * 1000), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="compressed, which saved files are not"):
        wengert.load(file)


def directory_entry(content, name):
    return content.rindex(name.encode()) - 46


@pytest.mark.parametrize(("place", "layout", "value", "match"), [
    (20, "<I", 2**31, "compressed"), (24, "<I", 2**31, "compressed"),
    (20, "<II", (2**31, 2**31), "beyond the end of the file"),
    (42, "<I", 2**31, "beyond the end of the file|central directory"),
    (42, "<I", 5, "overlaps|not where the directory says"), (8, "<H", 1, "encrypted"),
    (42, "<I", 0, "overlaps|two records"),
])  # fmt: skip
def test_forged_directories(place, layout, value, match):
    content = bytearray(archive(assembled(tensor()), [FOUR]).getvalue())
    value = value if isinstance(value, tuple) else (value,)
    struct.pack_into(layout, content, directory_entry(content, "archive/data/0") + place, *value)
    with pytest.raises(RuntimeError, match=match):
        wengert.load(io.BytesIO(bytes(content)))


def test_missing_records():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/version", b"3\n")
    file.seek(0)
    with pytest.raises(RuntimeError, match="no record 'data.pkl'"):
        wengert.load(file)


def test_byte_order():
    with pytest.raises(RuntimeError, match="byte order"):
        wengert.load(archive(assembled(1), extra=[("archive/byteorder", b"middle")]))


def test_file_that_becomes_shorter_while_it_is_read():
    class Shrinking(io.BytesIO):
        def readinto(self, target):
            return 0

    with pytest.raises(pickle.UnpicklingError, match="the file ends too early"):
        wengert.load(Shrinking(SAVED))


def test_older_format():
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save([torch.ones(2)], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    with pytest.raises(RuntimeError, match="older format.*Load it with PyTorch and save it again"):
        wengert.load(file)


def test_torchscript():
    with pytest.raises(RuntimeError, match="TorchScript archive, which is not supported"):
        wengert.load(archive(assembled(1), extra=[("archive/constants.pkl", b"")]))


def test_memory_is_taken_for_what_is_there_only():
    """A file of a few bytes that declares terabytes takes nothing."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    huge = 2**40
    for content in (assembled(storage(count=huge)),
                    assembled(tensor(size=(huge,), count=huge)),
                    b"\x80\x04\x8e" + struct.pack("<Q", huge) + b"."):  # fmt: skip
        refused(content)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 100_000_000
