"""What graphs hold for backward: as data, as a page, and as advice that holds when followed."""

import gc
import sys
import tracemalloc

import pytest

import wengert
from pages import Page
from viz.models import CNN, GPT, MLP, tokens
from wengert import viz
from wengert.autograd.graph import memory, save_on_cpu, saved_tensors_hooks


def test_rows_name_node_tensor_and_line():
    x = wengert.ones(10, 5, requires_grad=True)
    w = wengert.ones(5, 2, requires_grad=True)
    y = (x @ w).exp()
    line = sys._getframe().f_lineno - 1
    table = memory(y.sum())
    found = {(row.node, row.name): row.held for row in table}
    assert found == {("MmBackward0", "self"): 0, ("MmBackward0", "mat2"): 0,
                     ("ExpBackward0", "result"): 80}  # fmt: skip
    assert table.total == 80
    ((where, held),) = [item for item in table.by_line().items() if item[1]]
    assert where[:2] == (__file__, line) and held == 80
    assert f"{__file__}:{line}" in str(table)


def test_shared_memory_counts_once_and_views_hold_the_whole():
    x = wengert.ones(100, requires_grad=True)
    y = x * 2
    table = memory((y[:10].exp() + y[10:20].sin()).sum())
    # The sine saves a slice and so all of y; the exponential its own result.
    assert table.total == 40 + 400
    assert memory((y.sin() + y.cos()).sum()).total == 400


def test_known_tensors_are_not_counted():
    x, data = wengert.ones(50, requires_grad=True), wengert.ones(50)
    loss = (x * data).sum()
    assert memory(loss).total == 200
    assert memory(loss, known=[data]).total == 0
    assert memory([loss, (x * 3).exp()]).total == 400


def test_packed_tensors_are_found_and_freed_ones_are_not():
    x = wengert.ones(50, requires_grad=True)
    with save_on_cpu(pin_memory=True):
        y = x.exp().sum()
    assert memory(y).total == 200
    with saved_tensors_hooks(lambda t: t.tolist(), wengert.tensor):
        assert memory(x.exp().sum()).total == 0
    y.backward()
    assert memory(y).total == 0


def test_custom_functions_count():
    class Twice(wengert.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    (row,) = memory(Twice.apply(wengert.ones(4, requires_grad=True)).sum())
    assert (row.node, row.name, row.held) == ("TwiceBackward", "saved_tensors[0]", 16)


def held_by(run):
    """What the allocator says is held when `run` has returned and its graph lives, and the peak."""
    gc.collect()
    tracemalloc.start()
    try:
        result = run()
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.requires_grad
    return held, peak


MODELS = {
    "MLP": (lambda checkpointed: MLP(256, checkpointed), (wengert.ones(512, 256),)),
    "CNN": (lambda checkpointed: CNN(16, checkpointed), (wengert.ones(8, 3, 32, 32),)),
    "GPT": (lambda checkpointed: GPT(4, 128, checkpointed), tokens()),
}


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_the_allocator_and_its_advice_saves_what_it_says(name):
    make, inputs = MODELS[name]
    plain, checkpointed = make(False), make(True)
    plain(*inputs), checkpointed(*inputs)  # what is imported and cached is not what is measured
    footprint = viz.memory(make(False), inputs, peak=True)
    held, peak = held_by(lambda: plain(*inputs))
    less, _ = held_by(lambda: checkpointed(*inputs))
    assert footprint.total == pytest.approx(held, rel=0.1)
    assert footprint.peak == pytest.approx(peak, rel=0.1)
    assert f"{footprint.peak:,}  bytes at the peak of the run" in str(footprint)
    blocks = {"MLP": "Sequential", "CNN": "Sequential", "GPT": "Block"}[name]
    (advice,) = [each for each in footprint.advice if each.block == blocks]
    assert footprint.advice[0] is advice
    assert advice.saves == pytest.approx(held - less, rel=0.1)
    assert advice.again < advice.saves
    assert str(advice).startswith(f"checkpoint {advice.calls} calls of {blocks}: saves ")


def test_the_peak_has_what_is_dropped_again():
    def program(x):
        large = wengert.ones(1_000_000)
        return (x * large.sum()).sum()

    x = wengert.ones(1000, requires_grad=True)
    assert viz.memory(program, x).peak is None
    tracemalloc.start()
    try:
        footprint = viz.memory(program, x, peak=True)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    assert 4_000_000 <= footprint.peak < 4_200_000 and footprint.total < 10_000


def test_functions_are_blocks_too():
    def layer(x):
        return x.sin().exp().tanh().cos()

    def program(x):
        for _ in range(6):
            x = layer(x)
        return x.sum()

    footprint = viz.memory(program, wengert.ones(1000, requires_grad=True))
    (advice,) = footprint.advice
    assert advice.block.endswith("layer") and advice.calls == 6
    # Each call saves two results, and all but the first their inputs, which stay.
    assert footprint.total == 17 * 4000
    assert (advice.saves, advice.again) == (12 * 4000, 3 * 4000)


def test_what_a_function_closes_over_is_the_programs():
    mask = wengert.ones(1000)
    footprint = viz.memory(lambda x: (x * mask).sum(), wengert.ones(1000, requires_grad=True))
    assert footprint.total == 0


def test_the_page_stands_alone_and_the_text_has_everything(tmp_path):
    footprint = viz.memory(MLP(8), wengert.ones(2, 8))
    page = Page(footprint.save(tmp_path / "memory.html").read_text("utf-8"))
    assert page.open == [] and page.references == []
    assert {"lines", "advice", "rows", "curve"} <= set(page.ids)
    text = footprint.save(tmp_path / "memory.txt").read_text("utf-8")
    assert "bytes in total" in text and "models.py" in text
    assert repr(footprint).startswith("<Footprint of MLP: ")
    assert footprint._repr_html_().startswith("<iframe")
