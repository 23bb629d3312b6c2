"""The memory that the arrays of a step of training take at most, against PyTorch's.

`tracemalloc` counts the bytes of all arrays, whatever the allocator keeps, so a step takes the same
each time. The bounds are what PyTorch 2.13 takes for the same steps, by the events of its profiler
(`profile_memory=True`), with a margin for the objects of Python that are counted here too.
"""

import os
import subprocess
import sys
import tracemalloc

import pytest

import wengert
from wengert.core import memory

nn = wengert.nn
MARGIN = 1.02


def training(model, loss, optimizer):
    def step():
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()

    return step


def perceptron():
    """Layers of 256 on 256 examples, with SGD."""
    layers = [nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10)]
    x, y = wengert.randn(256, 64), wengert.arange(256) % 10
    model = nn.Sequential(*layers)
    optimizer = wengert.optim.SGD(model.parameters(), lr=0.1)
    return training(model, lambda model: nn.functional.cross_entropy(model(x), y), optimizer)


def normalised():
    """Layers with normalisation and dropout on 128 examples, with Adam."""
    layers = [nn.Linear(128, 256), nn.LayerNorm(256), nn.GELU(), nn.Dropout(0.5)]
    x = wengert.randn(128, 128)
    model = nn.Sequential(*layers, nn.Linear(256, 128))
    optimizer = wengert.optim.Adam(model.parameters(), lr=0.1)
    return training(model, lambda model: nn.functional.mse_loss(model(x), x), optimizer)


def recurrent():
    """A cell written by hand over twenty steps, with SGD."""
    cell = nn.Linear(16 + 32, 4 * 32)
    x = wengert.randn(20, 512, 16)

    def loss(cell):
        h = c = wengert.zeros(512, 32)
        for row in x:
            i, f, g, o = cell(wengert.cat([row, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h.square().mean()

    return training(cell, loss, wengert.optim.SGD(cell.parameters(), lr=0.1))


def peak_of(step):
    """Bytes above those before a step, of a step that is not the first."""
    for _ in range(2):
        step()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


BOUNDS = {"perceptron": 1_059_888, "normalised": 919_044, "recurrent": 10_289_168}


@pytest.fixture(scope="module")
def peaks():
    """The peaks in a process of their own: what else was used decides which way some calls go."""
    code = "import test_step_memory as t\nfor name in t.BOUNDS: print(t.peak_of(vars(t)[name]()))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=environment
    )
    assert found.returncode == 0, found.stderr
    return dict(zip(BOUNDS, map(int, found.stdout.split()), strict=True))


@pytest.mark.compiled_only
@pytest.mark.parametrize("program", BOUNDS)
def test_peak_of_a_step(program, peaks):
    assert peaks[program] <= MARGIN * BOUNDS[program]


@pytest.mark.compiled_only
def test_steps_keep_no_more_blocks_than_one_needs():
    """What is kept for the next arrays does not grow from step to step."""
    step = perceptron()
    memory.release_blocks()
    step()
    step()
    kept = memory.kept_bytes()
    for _ in range(5):
        step()
    assert memory.kept_bytes() == kept
