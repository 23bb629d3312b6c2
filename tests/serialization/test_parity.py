"""Files of one library in the other: what PyTorch saves is loaded here, and the other way round."""

import io
from collections import Counter, OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert
from serialization.support import archive, assembled, tensor, there_and_back

torch = pytest.importorskip("torch")

DTYPES = [each.name for each in wengert.core.dtypes.ALL]
LIBRARIES = {"wengert": wengert, "torch": torch}
DIRECTIONS = [("wengert", "torch"), ("torch", "wengert"), ("wengert", "wengert")]


@pytest.fixture(params=DIRECTIONS, ids="-to-".join)
def libraries(request):
    return tuple(LIBRARIES[name] for name in request.param)


def described(t):
    """What a tensor is, apart from its library."""
    name = str(t.dtype).partition(".")[2]
    data = t.detach()
    if t.device.type != "meta":
        data = data.float() if name == "bfloat16" else data
        data = data.tolist()
    else:
        data = None
    return (name, tuple(t.shape), tuple(t.stride()), t.storage_offset(), t.requires_grad,
            t.is_leaf, str(t.device), data)  # fmt: skip


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(libraries, name, weights_only):
    writer, reader = libraries
    source = writer.tensor([[0, 1, 2], [3, 1, 0]]).to(getattr(writer, name))
    made = there_and_back(writer, reader, source, weights_only=weights_only)
    assert type(made) is reader.Tensor
    assert described(made) == described(source)


@pytest.mark.parametrize("make", [
    lambda lib: lib.tensor(2.5),
    lambda lib: lib.arange(12.0).view(3, 4).t(),
    lambda lib: lib.arange(12.0)[3:9:2],
    lambda lib: lib.arange(12.0)[12:],
    lambda lib: lib.arange(4.0).expand(3, 4),
    lambda lib: lib.empty(0, 3),
    lambda lib: lib.empty(2, 3, 0),
    lambda lib: lib.arange(12.0).as_strided((3, 3), (2, 1), 2),
    lambda lib: lib.ones(3, requires_grad=True),
    lambda lib: lib.ones(3, requires_grad=True) * 2,
    lambda lib: lib.ones(2, 3, device="meta").t(),
    lambda lib: lib.ones(2, requires_grad=True)[1],
], ids=range(12))  # fmt: skip
def test_geometry(libraries, make):
    writer, reader = libraries
    source = make(writer)
    expected = described(source.detach().requires_grad_(source.requires_grad))
    assert described(there_and_back(writer, reader, source)) == expected


def test_shared_memory_stays_shared(libraries):
    writer, reader = libraries
    base = writer.arange(12.0)
    views = {"all": base, "rows": base.view(3, 4)[1], "every": base[::3], "other": base.clone()}
    made = there_and_back(writer, reader, views)
    made["all"].add_(100)
    assert made["rows"].tolist() == [104, 105, 106, 107]
    assert made["every"].tolist() == [100, 103, 106, 109]
    assert made["other"].tolist() == list(range(12))
    assert made["rows"].storage_offset() == 4


def test_view_alone_brings_all_memory(libraries):
    writer, reader = libraries
    made = there_and_back(writer, reader, writer.arange(10.0)[4:6])
    assert made.storage_offset() == 4
    assert made.as_strided((10,), (1,), 0).tolist() == list(range(10))


def test_one_object_stays_one(libraries):
    writer, reader = libraries
    one = writer.ones(2)
    made = there_and_back(writer, reader, [one, (one, {"again": one})])
    assert made[0] is made[1][0] is made[1][1]["again"]


@pytest.mark.parametrize("requires_grad", [True, False])
def test_parameters(libraries, requires_grad):
    writer, reader = libraries
    data = writer.arange(6.0).view(2, 3)
    parameter = writer.nn.Parameter(data, requires_grad)
    made = there_and_back(writer, reader, {"data": data, "parameter": parameter})
    assert type(made["parameter"]) is reader.nn.Parameter
    assert described(made["parameter"]) == described(parameter)
    made["data"].zero_()
    assert made["parameter"].sum() == 0


def test_attributes(libraries):
    writer, reader = libraries
    tensor, parameter = writer.ones(2), writer.nn.Parameter(writer.ones(2))
    tensor.label, parameter.label = "a", {"b": 1}
    made = there_and_back(writer, reader, (tensor, parameter))
    assert type(made[0]) is reader.Tensor and made[0].label == "a"
    assert type(made[1]) is reader.nn.Parameter and made[1].label == {"b": 1}


def test_plain_values(libraries):
    writer, reader = libraries
    values = {
        "numbers": [0, -1, 255, 65536, 2**40, -(10**30), 1.5, float("inf"), 1 + 2j, True, None],
        "texts": ("", "a\u00e4\u4e2d", b"\x00\xff", bytearray(b"ab")),
        "containers": [[], (), {}, {1, 2}, frozenset({3}), OrderedDict(a=1), Counter("aab")],
        3: {(1, "a"): 2, None: [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]},
        "long": "x" * 300,
        "many": list(range(2000)),
    }
    if reader is torch:  # not among what PyTorch lets files name
        values["containers"].remove(frozenset({3}))
    made = there_and_back(writer, reader, values)
    assert made == values
    kinds = [type(each) for each in made["containers"]]
    assert kinds == [type(each) for each in values["containers"]]


def test_types_of_the_library(libraries):
    writer, reader = libraries
    values = [writer.Size([2, 3]), writer.bfloat16, writer.bool, writer.device("cpu"),
              writer.device("cuda", 1), writer.strided]  # fmt: skip
    made = there_and_back(writer, reader, values)
    assert made == [reader.Size([2, 3]), reader.bfloat16, reader.bool, reader.device("cpu"),
                    reader.device("cuda:1"), reader.strided]  # fmt: skip
    assert type(made[0]) is reader.Size


def test_state_dict_with_its_metadata(libraries):
    writer, reader = libraries
    state = OrderedDict(weight=writer.ones(2, 3), bias=writer.zeros(2))
    state._metadata = OrderedDict({"": {"version": 1}})
    made = there_and_back(writer, reader, state)
    assert list(made) == ["weight", "bias"] and made._metadata == {"": {"version": 1}}


def test_state_of_an_optimizer():
    weights = [torch.nn.Parameter(torch.arange(3.0)), torch.nn.Parameter(torch.ones(2, 2))]
    optimizer = torch.optim.Adam(weights, lr=0.1, amsgrad=True)
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    state = optimizer.state_dict()
    ours = there_and_back(torch, wengert, {"optimizer": state, "epoch": 3})
    assert ours["optimizer"]["param_groups"] == state["param_groups"]
    assert type(ours["optimizer"]["state"][0]["step"]) is wengert.Tensor
    back = there_and_back(wengert, torch, ours)
    fresh = torch.optim.Adam([torch.nn.Parameter(w.detach()) for w in weights])
    fresh.load_state_dict(back["optimizer"])
    for i, per_weight in state["state"].items():
        for name, value in per_weight.items():
            assert torch.equal(fresh.state_dict()["state"][i][name], value)


def test_state_dict_of_a_model():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    ours = there_and_back(torch, wengert, model.state_dict())
    other = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    other.load_state_dict(there_and_back(wengert, torch, ours))
    for name, value in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)
        assert described(ours[name]) == described(value)


def test_lazily_conjugated_and_negated():
    source = torch.tensor([1 + 2j, 3 - 1j])
    assert there_and_back(torch, wengert, source.conj()).tolist() == [1 - 2j, 3 + 1j]
    assert there_and_back(torch, wengert, source.conj().imag).tolist() == [-2, 1]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_types_that_are_not_there(name):
    source = torch.zeros(2, dtype=getattr(torch, name))
    with pytest.raises(Exception, match=f"tensors of dtype {name} are not supported"):
        there_and_back(torch, wengert, source)
    with pytest.raises(ValueError, match=f"tensors of dtype {name} are not supported"):
        there_and_back(torch, wengert, source, weights_only=False)


def test_sparse_tensors_are_refused():
    with pytest.raises(Exception, match="sparse tensors are not supported"):
        there_and_back(torch, wengert, torch.eye(2).to_sparse())


def test_same_memory_as_two_types(lib):
    memory = lib.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        lib.save([memory, memory.view(lib.int32)], io.BytesIO())


def test_mapped_files(tmp_path, libraries):
    writer, reader = libraries
    path = tmp_path / "saved.pt"
    base = writer.arange(100.0)
    writer.save({"base": base, "view": base[10:20], "bytes": writer.ones(3).bool()}, path)
    before = path.read_bytes()
    made = reader.load(path, mmap=True)
    made["base"].add_(1)
    assert made["view"].tolist() == list(range(11, 21))
    assert made["bytes"].tolist() == [True] * 3
    assert made["view"].storage_offset() == 10
    del made
    assert path.read_bytes() == before


def test_pickle_protocols(libraries):
    writer, reader = libraries
    for protocol in (2, 3, 4, 5):
        file = io.BytesIO()
        writer.save({"a": writer.ones(2), "b": [writer.float32, writer.Size([1])]}, file,
                    pickle_protocol=protocol)  # fmt: skip
        file.seek(0)
        made = reader.load(file, weights_only=reader is wengert)
        assert made["a"].tolist() == [1, 1] and made["b"] == [reader.float32, reader.Size([1])]


def test_big_endian_files():
    """PyTorch's own record of the byte order, with elements swapped by hand."""
    content = assembled(tensor())
    big = np.arange(4, dtype=">f4").tobytes()
    file = archive(content, [big], extra=[("archive/byteorder", b"big")])
    assert wengert.load(file).tolist() == [0, 1, 2, 3]


SIZES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
TENSORS = st.tuples(st.sampled_from(DTYPES), SIZES, st.permutations(range(4)), st.booleans())


@settings(max_examples=60)
@given(st.lists(TENSORS, min_size=1, max_size=4), st.sampled_from(DIRECTIONS))
def test_random_views(drawn, direction):
    writer, reader = (LIBRARIES[name] for name in direction)
    sources = []
    for name, shape, order, halved in drawn:
        count = int(np.prod(shape))
        t = writer.arange(count).to(getattr(writer, name)).view(shape)
        t = t.permute([d for d in order if d < len(shape)])
        sources.append(t[::2] if halved and len(shape) else t)
    made = there_and_back(writer, reader, sources)
    assert [described(t) for t in made] == [described(t) for t in sources]
