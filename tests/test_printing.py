"""The text of a tensor."""

import math
import re

import numpy as np
import pytest

import wengert
from wengert.tensor.printing import set_printoptions
from width import tries


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


TEXTS = [
    (lambda lib: lib.tensor(3), "tensor(3)"),
    (lambda lib: lib.tensor(2.5), "tensor(2.5000)"),
    (lambda lib: lib.tensor(True), "tensor(True)"),
    (lambda lib: lib.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda lib: lib.tensor([1.5, -20.25]), "tensor([  1.5000, -20.2500])"),
    (lambda lib: lib.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda lib: lib.tensor([1e9, 1.0]), "tensor([1.0000e+09, 1.0000e+00])"),
    (lambda lib: lib.tensor([math.nan, -math.inf, 0.0]), "tensor([nan, -inf, 0.])"),
    (lambda lib: lib.tensor([math.nan, 1.5]), "tensor([   nan, 1.5000])"),
    (lambda lib: lib.tensor([True, False]), "tensor([ True, False])"),
    (lambda lib: lib.tensor([[1, -2], [30, 4]]), "tensor([[ 1, -2],\n        [30,  4]])"),
    (lambda lib: lib.tensor([1 + 2j, -0.5 - 1j]), "tensor([ 1.0000+2.j, -0.5000-1.j])"),
    (lambda lib: lib.zeros(1, 1, 1), "tensor([[[0.]]])"),
    (lambda lib: lib.zeros(2, 1, 1), "tensor([[[0.]],\n\n        [[0.]]])"),
    (lambda lib: lib.tensor([]), "tensor([])"),
    (lambda lib: lib.zeros(2, 0), "tensor([], size=(2, 0))"),
    (lambda lib: lib.zeros(0, dtype=lib.int64), "tensor([], dtype=LIB.int64)"),
    (lambda lib: lib.tensor([1], dtype=lib.int8), "tensor([1], dtype=LIB.int8)"),
    (lambda lib: lib.tensor([1.0], dtype=lib.bfloat16), "tensor([1.], dtype=LIB.bfloat16)"),
    (lambda lib: lib.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (
        lambda lib: lib.arange(1001),
        "tensor([   0,    1,    2,  ...,  998,  999, 1000])",
    ),
    (
        lambda lib: lib.zeros(1001, 2, dtype=lib.int32),
        "tensor([[0, 0],\n        [0, 0],\n        [0, 0],\n        ...,\n        [0, 0],\n"
        "        [0, 0],\n        [0, 0]], dtype=LIB.int32)",
    ),
    (lambda lib: lib.zeros(2, device="meta"), "tensor(..., device='meta', size=(2,))"),
    (
        lambda lib: lib.zeros((), device="meta", dtype=lib.int64),
        "tensor(..., device='meta', size=(), dtype=LIB.int64)",
    ),
    (
        lambda lib: lib.arange(30),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
]


@pytest.mark.parametrize("make, text", TEXTS)
def test_text(lib, make, text):
    assert repr(make(lib)) == text.replace("LIB", lib.__name__)


def test_history_of_a_result(lib):
    result = lib.ones(2, requires_grad=True) * 2
    assert repr(result) == "tensor([2., 2.], grad_fn=<MulBackward0>)"


def test_long_notes_go_to_a_new_line():
    made = wengert.full((2, 6), 1.5, dtype=wengert.float64, requires_grad=True)
    assert repr(made) == (
        "tensor([[1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000],\n"
        "        [1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000]],\n"
        "       dtype=wengert.float64, requires_grad=True)"
    )


def test_default_dtype_goes_unsaid(lib):
    lib.set_default_dtype(lib.float64)
    try:
        assert repr(lib.tensor([0.5])) == "tensor([0.5000])"
        assert "float32" in repr(lib.tensor([0.5], dtype=lib.float32))
        assert "complex64" in repr(lib.tensor([1j], dtype=lib.complex64))
    finally:
        lib.set_default_dtype(lib.float32)


def test_subclasses_show_their_name():
    class Special(wengert.Tensor):
        pass

    class Parameter(wengert.Tensor):
        pass

    assert repr(Special([1.0])) == "Special([1.])"
    assert repr(Parameter([1.0])) == "Parameter containing:\ntensor([1.])"


class TestOptions:
    @pytest.mark.parametrize(
        "options, text",
        [
            ({"precision": 1}, "tensor([0.1, 0.2, 0.3, 0.4, 0.5])"),
            ({"threshold": 4, "edgeitems": 1}, "tensor([0.1000,  ..., 0.5000])"),
            ({"threshold": 4, "edgeitems": 0}, "tensor([...], size=(5,))"),
            (
                {"linewidth": 24},
                "tensor([0.1000, 0.2000,\n        0.3000, 0.4000,\n        0.5000])",
            ),
            (
                {"sci_mode": True, "precision": 0},
                "tensor([1e-01, 2e-01, 3e-01, 4e-01, 5e-01])",
            ),
            ({"profile": "short"}, "tensor([0.10, 0.20, 0.30, 0.40, 0.50])"),
            ({"profile": "full"}, "tensor([0.1000, 0.2000, 0.3000, 0.4000, 0.5000])"),
        ],
    )
    def test_each(self, lib, options, text):
        try:
            lib.set_printoptions(**options)
            assert repr(lib.tensor([0.1, 0.2, 0.3, 0.4, 0.5])) == text
        finally:
            lib.set_printoptions(profile="default")

    def test_unknown_profile(self):
        with pytest.raises(ValueError, match="unknown profile 'long'"):
            set_printoptions(profile="long")


def sample(random, names) -> tuple[str, np.ndarray]:
    """A type and doubles of some random shape and scale, with special values at times."""
    shape = random.choice([0, 1, 2, 3, 7, 12, 31], size=random.integers(0, 4))
    array = random.standard_normal(shape) * 10.0 ** random.integers(-7, 11)
    style = random.integers(5)
    if style == 0:
        array = np.round(array)
    elif style == 1:
        special = random.choice([math.nan, math.inf, -math.inf, 0.0, -0.0])
        array = np.where(random.random(shape) < 0.3, special, array)
    elif style == 2:
        array = array * 10.0 ** random.integers(-4, 4, shape)
    name = str(random.choice(names))
    if "complex" in name:
        imag = random.standard_normal(shape) * 10.0 ** random.integers(-6, 6)
        array = array + 1j * (np.round(imag) if style == 3 else imag)
    elif "float" not in name:
        array = np.clip(np.nan_to_num(array), 0, 100)
    return name, np.asarray(array)


@pytest.mark.wide
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": 2, "linewidth": 50},
        {"threshold": 20, "edgeitems": 2},
        {"threshold": 5, "edgeitems": 1, "linewidth": 120, "precision": 6},
        {"sci_mode": True},
        {"sci_mode": False},
    ],
)
def test_agrees_with_pytorch(options):
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    torch.set_printoptions(**options)
    set_printoptions(**options)
    try:
        for _ in range(tries(150)):
            name, array = sample(random, [each.name for each in wengert.core.dtypes.ALL])
            theirs = repr(torch.tensor(array).to(getattr(torch, name)))
            ours = repr(wengert.tensor(array, dtype=getattr(wengert, name)))
            # The notes break lines elsewhere because the two names differ in length.
            ours, theirs = (re.sub(r",\s+dtype=", ", dtype=", text) for text in (ours, theirs))
            assert ours == theirs.replace("torch.", "wengert.")
    finally:
        torch.set_printoptions(profile="default")
