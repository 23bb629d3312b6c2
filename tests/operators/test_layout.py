"""Strides and offsets of results, as in PyTorch, for operands of every layout, also without data.

Dimensions of length one are not compared, nor the strides of new tensors without elements: nothing
depends on them, see docs/differences.md.
"""

import itertools
import random
import warnings

import numpy as np
import pytest

import wengert
from operators.samples import VIEWS, DType, Fixed
from operators.support import call, each, results
from width import tries


def _dense(order, shape, step=1):
    """Strides without gaps for the dimensions in an order, from the innermost one on."""
    strides = [0] * len(shape)
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return strides


def _plain(shape):
    return _dense(reversed(range(len(shape))), shape)


def _reversed(shape):
    return _dense(range(len(shape)), shape)


def _rolled(shape):
    return _dense([0, *reversed(range(1, len(shape)))], shape)


def _sliced(shape):
    return _dense(reversed(range(len(shape))), shape, 2)


def _rows_apart(shape):
    return _dense(reversed(range(len(shape))), [2 * n for n in shape])


def _expanded(shape):
    return [0, *_plain(shape[1:])] if 0 not in shape else _plain(shape)


def _columns_expanded(shape):
    return [*_plain(shape[:-1]), 0] if 0 not in shape else _plain(shape)


LAYOUTS = [
    [_plain], [_reversed], [_rolled], [_sliced], [_rows_apart], [_expanded], [_columns_expanded],
    [_plain, _reversed], [_reversed, _plain], [_expanded, _reversed], [_reversed, _expanded],
    [_expanded, _plain], [_plain, _columns_expanded], [_sliced, _reversed], [_rolled, _reversed],
]  # fmt: skip


VIEW_NAMES = {operation.name for operation in VIEWS}


class Layouts:
    """Builds the tensors of samples in a cycle of layouts."""

    def __init__(self, lib, layouts, device="cpu"):
        self.lib, self.layouts, self.device, self.count = lib, layouts, device, 0

    def tensor(self, array):
        strides = self.layouts[self.count % len(self.layouts)](array.shape) if array.ndim else []
        self.count += 1
        dtype = getattr(self.lib, str(array.dtype))
        if self.device == "meta":
            return self.lib.empty_strided(array.shape, strides, dtype=dtype, device="meta")
        reach = sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) + 1
        memory = np.zeros(max(reach, 1), array.dtype)
        if array.size:
            in_bytes = [s * array.itemsize for s in strides]
            np.lib.stride_tricks.as_strided(memory, array.shape, in_bytes)[...] = array
        return self.lib.tensor(memory).as_strided(array.shape, strides)

    def build(self, sample):
        return sample.map(
            self.tensor,
            lambda fixed: self.tensor(fixed.array) if isinstance(fixed, Fixed) else fixed,
            lambda value: getattr(self.lib, value.name) if isinstance(value, DType) else value,
        )


def _layout_of(operation, t):
    if not t.numel() and operation.name not in VIEW_NAMES:
        return tuple(t.shape)
    strides = [s for n, s in zip(t.shape, t.stride(), strict=True) if n != 1]
    return tuple(t.shape), strides, t.storage_offset()


def _layouts_of(lib, operation, sample, layouts, device="cpu"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = results(call(operation, lib, Layouts(lib, layouts, device).build(sample)))
    return [_layout_of(operation, t) for t in found if isinstance(t, lib.Tensor)]


#: Operations whose results lie otherwise than PyTorch's, and why.
DECLARED = {
    **dict.fromkeys(["conj", "adjoint", "Tensor.H", "Tensor.mH"], "a conjugate is a copy"),
    **dict.fromkeys(
        ["linalg.solve", "linalg.solve_ex"], "PyTorch lays out a batch of vectors as a matrix"
    ),
    "triangular_solve": "the copy of the matrix is in row-major order, as other copies are",
    "cholesky_inverse": "the result of a product, in row-major order",
    "linalg.lstsq": "PyTorch's solution is a part of a larger tensor",
    **dict.fromkeys(
        ["select_scatter", "slice_scatter", "diagonal_scatter"], "gaps in memory are not copied"
    ),
    "fill": "one value in row-major order, as other results of no order are",
    **dict.fromkeys(
        ["linalg.householder_product", "orgqr", "ormqr"], "made of products, in row-major order"
    ),
    **dict.fromkeys(
        ["fft.hfftn", "fft.ihfft2", "fft.ihfftn"], "transforms of conjugates, in another order"
    ),
    **dict.fromkeys(
        ["unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"], "copies of the parts"
    ),
}


SINGLE = [layouts[0] for layouts in LAYOUTS if len(layouts) == 1]
OTHER_LAYOUTS = [[*pair] for pair in itertools.permutations(SINGLE, 2) if [*pair] not in LAYOUTS]


def _compared(operation, among=LAYOUTS):
    """Samples, layouts of their tensors, and how PyTorch lays out the results."""
    torch = pytest.importorskip("torch")
    for kind in ("real", "complex"):
        for sample in operation.draw(kind) if getattr(operation, kind) else ():
            for layouts in among:
                try:
                    want = _layouts_of(torch, operation, sample, layouts)
                except (RuntimeError, NotImplementedError, IndexError):
                    continue
                yield sample, layouts, want


def _check(operation, sample, layouts, want):
    try:
        got = _layouts_of(wengert, operation, sample, layouts)
    except wengert.linalg.LinAlgError:
        # A matrix whose rows or columns are one in memory is singular, which rounding hides on some
        # processors.
        if not {_expanded, _columns_expanded} & {*layouts}:
            raise
    else:
        assert got == want, (sample, [layout.__name__ for layout in layouts])


@each(lambda o: o.name not in DECLARED)
def test_results_are_laid_out_as_in_pytorch(operation):
    for sample, layouts, want in _compared(operation):
        _check(operation, sample, layouts, want)


@pytest.mark.full
@each(lambda o: o.name not in DECLARED and o.operands > 1)
def test_results_of_all_pairs_of_layouts_are_laid_out_as_in_pytorch(operation):
    for sample, layouts, want in _compared(operation, OTHER_LAYOUTS):
        _check(operation, sample, layouts, want)


@each(lambda o: not o.needs_data)
def test_results_without_data_are_laid_out_as_those_with_data(operation):
    for kind in ("real", "complex"):
        for sample in operation.draw(kind) if getattr(operation, kind) else ():
            for layouts in LAYOUTS:
                try:
                    want = _layouts_of(wengert, operation, sample, layouts)
                except (RuntimeError, NotImplementedError, IndexError):
                    continue
                got = _layouts_of(wengert, operation, sample, layouts, "meta")
                assert got == want, (sample, [layout.__name__ for layout in layouts])


# Elementwise operators on operands of any strides -------------------------------------------------


ELEMENTWISE = {
    "exp": lambda lib, x, y, z: lib.exp(x),
    "floor": lambda lib, x, y, z: lib.floor(x),
    "clone": lambda lib, x, y, z: lib.clone(x),
    "to": lambda lib, x, y, z: x.to(lib.float32),
    "zeros_like": lambda lib, x, y, z: lib.zeros_like(x),
    "number added": lambda lib, x, y, z: x + 1,
    "taken from number": lambda lib, x, y, z: 1 - x,
    "power": lambda lib, x, y, z: x**2,
    "power of number": lambda lib, x, y, z: 2**x,
    "add": lambda lib, x, y, z: x + y,
    "mul": lambda lib, x, y, z: x * y,
    "rsub": lambda lib, x, y, z: lib.rsub(x, y),
    "atan2": lambda lib, x, y, z: lib.atan2(x, y),
    "eq": lambda lib, x, y, z: x == y,
    "of another type": lambda lib, x, y, z: x * y.to(lib.float32),
    "mask": lambda lib, x, y, z: lib.logical_and(x > 1, y),
    "where": lambda lib, x, y, z: lib.where(x > 1, y, z),
    "lerp": lambda lib, x, y, z: lib.lerp(x, y, z),
    "clamp": lambda lib, x, y, z: lib.clamp(x, y, z),
    "addcmul": lambda lib, x, y, z: lib.addcmul(x, y, z),
}


def _random_strides(draw, shape):
    """Strides of a tensor that was permuted, sliced and expanded, or that overlaps itself."""
    if 1 not in shape and draw.random() < 0.1:
        return [draw.choice([1, 2])] * len(shape)
    order = draw.sample(range(len(shape)), len(shape))
    strides = _dense(order, [n * draw.choice([1, 1, 2]) for n in shape])
    expanded = draw.random() < 0.3
    return [0 if expanded and draw.random() < 0.4 else s for s in strides]


def _random_operands(draw):
    shape = [draw.choice([2, 3]) for _ in range(draw.choice([2, 3, 3, 4]))]
    operands = []
    for _ in range(3):
        own = [1 if draw.random() < 0.15 else n for n in shape][draw.choice([0, 0, 0, 1]) :]
        operands.append((own, _random_strides(draw, own)))
    return operands


def _built(lib, shape, strides, device):
    if device == "meta":
        return lib.empty_strided(shape, strides, dtype=lib.float64, device="meta")
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
    memory = np.random.default_rng(reach).uniform(0.5, 2.0, reach)
    return lib.tensor(memory).as_strided(shape, strides)


@pytest.mark.wide
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_results_follow_their_operands(name):
    torch = pytest.importorskip("torch")
    draw = random.Random(name)
    for _ in range(tries(60)):
        operands = _random_operands(draw)
        got, meta, want = [
            ELEMENTWISE[name](lib, *[_built(lib, *operand, device) for operand in operands])
            for lib, device in ((wengert, "cpu"), (wengert, "meta"), (torch, "cpu"))
        ]
        strides = [
            [s for n, s in zip(want.shape, t.stride(), strict=True) if n != 1]
            for t in (got, meta, want)
        ]
        assert strides[0] == strides[1] == strides[2], operands
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)


def test_the_first_of_two_orders_wins(lib):
    assert (lib.ones(2, 3).t() * lib.ones(3, 2)).stride() == (1, 3)
    assert (lib.ones(3, 2) * lib.ones(2, 3).t()).stride() == (2, 1)
    x = lib.ones(2, 3, requires_grad=True)
    assert (x.t() * lib.ones(3, 2)).stride() == (1, 3)


def test_channels_may_lie_innermost(lib):
    x = lib.ones(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert x.sin().stride() == (x + lib.ones(3, 1, 1)).stride() == (60, 1, 15, 3)


@pytest.mark.parametrize(
    "size, strides", [((1, 5), (5, 1)), ((1, 1, 5), (5, 5, 1)), ((2, 1, 5), (0, 5, 1))]
)
def test_dimensions_of_length_one_that_expand_adds(lib, size, strides):
    x = lib.ones(5).expand(*size)
    assert x.stride() == strides
    assert lib.ones(()).expand(1, 1).stride() == (0, 0)
    assert (x.sin().is_contiguous(), (x + 1).is_contiguous()) == (True, True)
    assert x.sin().stride() == (x + x).stride() == lib.empty(size).stride()


def test_unsqueezed_tensors_that_are_not_contiguous(lib):
    x = lib.ones(2, 3).t()
    assert [x.unsqueeze(dim).stride() for dim in range(3)] == [(3, 1, 3), (1, 6, 3), (1, 3, 1)]


INDEXED = [
    "x[True]", "x[(True,)]", "x[False]", "x[rows]", "x[:, rows]", "x[..., rows]", "x[pairs]",
    "x[pairs.t()]", "x[:, pairs.t()]", "x[None, rows]", "x[:, :, None, rows]", "x[rows, :, rows]",
    "x[rows, rows]", "x[pairs.t(), rows]", "x[rows > 0]",
]  # fmt: skip


@pytest.mark.parametrize("expression", INDEXED)
def test_what_indices_select_keeps_the_order_of_whole_dimensions(expression):
    torch = pytest.importorskip("torch")

    def strides(lib, order):
        x = lib.arange(8.0).reshape(2, 2, 2).permute(order)
        names = {"x": x, "rows": lib.tensor([0, 1]), "pairs": lib.tensor([[0, 1], [1, 0]])}
        y = eval(expression, names)
        return [step for step, size in zip(y.stride(), y.shape, strict=True) if size != 1]

    for order in itertools.permutations(range(3)):
        assert strides(wengert, order) == strides(torch, order)


def test_nothing_that_is_left_keeps_place_and_step(lib):
    x = lib.ones(4, 6)
    for part, strides, offset in (
        (x[2:2], (6, 1), 12),
        (x[4:], (6, 1), 24),
        (x[3:1], (6, 1), 18),
        (x[1:1:3], (18, 1), 6),
        (x[:, 2:2:2], (6, 2), 2),
        (x.t()[5:5], (1, 6), 5),
        (x.narrow(1, 6, 0), (6, 1), 6),
    ):
        assert part.numel() == 0
        assert (part.stride(), part.storage_offset()) == (strides, offset)


def test_nothing_beyond_the_end_of_the_memory(lib):
    x = lib.ones(4, 6, requires_grad=True)
    for part, strides in ((x[:, 5][4:], (6,)), (x.t()[5:, 4:], (1, 6)), (x[3:, 6::2], (6, 2))):
        assert part.numel() == 0
        assert part.stride() == strides
        assert part.sum().item() == 0
        (grad,) = lib.autograd.grad(part.sum(), x)
        assert not grad.any()


def test_views_of_nothing(lib):
    x = lib.ones(0, 6)
    assert x.stride() == (6, 1)
    assert x.t().stride() == (1, 6)
    assert x[:, ::2].stride() == (6, 2)
    assert x[:, ::2].unsqueeze(0).stride() == (0, 6, 2)
    assert x.permute(1, 0).unsqueeze(1).stride() == (1, 0, 6)
    assert lib.ones(2, 0, 3).transpose(0, 2).stride() == (1, 3, 3)
    assert x.expand(2, 0, 6).stride() == (0, 6, 1)
    assert x.view(3, 0).stride() == (1, 1)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_strides_of_single_rows_of_contiguous_operands_do_not_decide(device):
    """Loops do not look at them, so what is known of results without computing must not either."""
    x = wengert.ones(2, 1, device=device)
    y = x.unfold(0, 2, 1)
    assert y.is_contiguous()
    assert (x * y * x).stride() == (4, 2, 1)


def test_addr_of_bools_lies_as_its_operand_does(lib):
    x = lib.ones(3, 2, dtype=lib.bool).t()
    assert x.addr(x[:, 0], x[0]).stride() == (1, 2)
