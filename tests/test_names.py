"""Names of PyTorch: those that are there, and those that say why they are not."""

from types import ModuleType

import pytest

import wengert
from wengert.tensor.out_of_scope import ABSENT_VALUES, OUT_OF_SCOPE

#: Names that PyTorch's package has because its source imports them, and others of its inside.
INSIDE = {"TYPE_CHECKING", "StorageBase", "to_dlpack"}
#: Beginnings of names of families that are not complete yet.
LATER = (
    "adaptive_", "alpha_dropout", "autocast", "avg_pool", "batch_norm", "bilinear", "binary_cross",
    "binomial", "celu_", "channel", "clear_autocast", "conv", "cosine_emb", "ctc_loss", "dropout",
    "embedding_bag", "feature_", "get_autocast", "group_norm", "gru", "GradScaler", "hinge_emb",
    "instance_norm", "is_autocast", "kl_div", "layer_norm", "lstm", "margin_ranking", "max_pool",
    "pixel_", "poisson", "rnn_", "rrelu", "selu_", "set_autocast", "threshold_", "triplet_margin",
)  # fmt: skip


def _missing(owner, other):
    return {
        name
        for name in dir(other)
        if name[0] != "_"
        and not hasattr(owner, name)
        and not isinstance(getattr(other, name), ModuleType)
    }


def test_every_name_of_the_package_is_there_or_says_why_not():
    torch = pytest.importorskip("torch")
    missing = _missing(wengert, torch) - INSIDE - set(ABSENT_VALUES)
    assert not {name for name in missing if not name.startswith(LATER)}


def test_every_name_of_tensors_is_there_or_says_why_not():
    torch = pytest.importorskip("torch")
    missing = _missing(wengert.Tensor, torch.Tensor)
    assert missing <= {"cauchy_", "geometric_", "log_normal_"}


@pytest.mark.parametrize("key", OUT_OF_SCOPE, ids=".".join)
def test_what_is_out_of_scope_is_a_name_of_pytorchs_and_says_why(key):
    owner = wengert
    for part in filter(None, key[0].split(".")):
        owner = getattr(owner, part)
    stand_in = getattr(owner, key[1])
    with pytest.raises(NotImplementedError, match=f"{key[1]} is out of scope: "):
        stand_in()
    assert stand_in.__doc__.startswith("Out of scope: ")


def test_out_of_scope_are_only_names_that_pytorch_has():
    torch = pytest.importorskip("torch")
    for place, name in OUT_OF_SCOPE:
        owner = torch
        for part in filter(None, place.split(".")):
            owner = getattr(owner, part)
        assert hasattr(owner, name) or name == "nested_tensor", name
    assert all(hasattr(torch, name) for name in ABSENT_VALUES)


def test_absent_values_say_why():
    assert not hasattr(wengert, "float8_e4m3fn")
    with pytest.raises(AttributeError, match="8-bit floats"):
        wengert.float8_e4m3fn
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'"):
        wengert.nosuch


def test_classes_that_are_out_of_scope_have_no_instances():
    assert not isinstance(3, wengert.SymInt)
    assert not isinstance(wengert.ones(1), wengert.masked.MaskedTensor)


def test_settings(lib):
    assert lib.get_float32_matmul_precision() == "highest"
    lib.set_float32_matmul_precision("high")
    assert lib.get_float32_matmul_precision() == "high"
    lib.set_float32_matmul_precision("highest")
    lib.use_deterministic_algorithms(True, warn_only=True)
    assert lib.are_deterministic_algorithms_enabled()
    assert lib.is_deterministic_algorithms_warn_only_enabled()
    assert lib.get_deterministic_debug_mode() == 1
    lib.set_deterministic_debug_mode("default")
    assert not lib.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        lib.set_deterministic_debug_mode("x")
    before = lib.get_num_threads()
    lib.set_num_threads(1)
    assert lib.get_num_threads() == 1
    lib.set_num_threads(before)
    for wrong in (0, -1):
        with pytest.raises(RuntimeError, match="positive integer"):
            lib.set_num_threads(wrong)
    lib.set_warn_always(True)
    assert lib.is_warn_always_enabled()
    lib.set_warn_always(False)
    lib.set_anomaly_enabled(True, check_nan=False)
    assert lib.is_anomaly_enabled() and not lib.is_anomaly_check_nan_enabled()
    lib.set_anomaly_enabled(False)


def test_unsigned_types(lib):
    x = lib.tensor([1, 65535], dtype=lib.uint16)
    assert x.to(lib.uint64).tolist() == [1, 65535]
    assert (x + 1.5).dtype is lib.float32 and (x * 2).tolist() == [2, 65534]
    assert lib.tensor(2**64 - 1, dtype=lib.uint64).item() == 2**64 - 1
    assert lib.iinfo(lib.uint32).max == 2**32 - 1 and not lib.uint16.is_signed
    assert lib.from_numpy(x.numpy()).dtype is lib.uint16
    assert lib.promote_types(lib.uint32, lib.float16) is lib.float16
    for other in (lib.uint8, lib.int64, lib.uint64, lib.bool):
        with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64"):
            lib.promote_types(lib.uint16, other)


def test_makers_of_few_programs(lib, tmp_path):
    memory = bytearray(8)
    seen = lib.frombuffer(memory, dtype=lib.int16, count=2, offset=2)
    seen.fill_(1)
    assert memory == bytearray([0, 0, 1, 0, 1, 0, 0, 0])
    with pytest.raises(ValueError, match="multiple of element size"):
        lib.frombuffer(bytearray(7), dtype=lib.int16)
    assert lib.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
    file = str(tmp_path / "numbers")
    lib.from_file(file, shared=True, size=3).copy_(lib.arange(3.0))
    assert lib.from_file(file, size=3).tolist() == [0, 1, 2]
    assert lib.fill(lib.zeros(2), 3).tolist() == [3, 3]
    assert lib.typename(3) == "int" and lib.get_device(lib.zeros(1)) == -1
    assert lib.norm_except_dim(lib.ones(2, 4), 2, 0).tolist() == [[2.0], [2.0]]


def test_control_flow_has_its_names_in_the_package():
    x = wengert.ones(2)
    assert wengert.cond(x.sum() > 0, wengert.sin, wengert.cos, (x,)).equal(x.sin())
    assert wengert.while_loop(lambda i: i < 5, lambda i: (i + 2,), (wengert.tensor(0),))[0] == 6


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_limits_of_floating_types(name):
    torch = pytest.importorskip("torch")
    mine, other = (lib.finfo(getattr(lib, name)) for lib in (wengert, torch))
    for fact in ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny"):
        assert getattr(mine, fact) == getattr(other, fact)
    assert mine == wengert.finfo(getattr(wengert, name)) and mine != "finfo"


@pytest.mark.parametrize("name", ["int8", "uint8", "int64", "uint16", "uint64"])
def test_limits_of_whole_numbers(name):
    torch = pytest.importorskip("torch")
    mine, other = (lib.iinfo(getattr(lib, name)) for lib in (wengert, torch))
    assert [getattr(mine, fact) for fact in ("bits", "dtype", "max", "min")] == [
        getattr(other, fact) for fact in ("bits", "dtype", "max", "min")
    ]
    assert mine == wengert.iinfo(getattr(wengert, name)) and len({mine, mine}) == 1
