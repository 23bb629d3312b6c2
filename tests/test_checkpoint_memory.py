"""Checkpointing lowers the peak of memory, and the gradients stay what they are."""

import gc
import tracemalloc

import wengert
from wengert.utils.checkpoint import checkpoint

LAYERS, SEGMENT, WIDTH, BATCH = 64, 8, 64, 512


def layers():
    generator = wengert.Generator().manual_seed(0)
    return [
        wengert.randn(WIDTH, WIDTH, generator=generator).div_(WIDTH**0.5).requires_grad_()
        for _ in range(LAYERS)
    ]


def forward(x, weights):
    for w in weights:
        x = (x @ w).tanh()
    return x


def checkpointed(x, weights):
    for start in range(0, LAYERS, SEGMENT):
        x = checkpoint(forward, x, weights[start : start + SEGMENT], use_reentrant=False)
    return x


def peak_and_gradients(run):
    weights = layers()
    x = wengert.ones(BATCH, WIDTH)
    for w in weights:  # what both runs hold in the end is not what is measured
        w.grad = wengert.zeros_like(w)
    gc.collect()
    tracemalloc.start()
    try:
        run(x, weights).sum().backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak, [w.grad for w in weights]


def test_peak_memory_of_a_deep_network():
    plain, expected = peak_and_gradients(forward)
    lower, gradients = peak_and_gradients(checkpointed)
    assert all(wengert.equal(a, b) for a, b in zip(gradients, expected, strict=True))
    assert lower <= 0.35 * plain, f"{lower} of {plain} bytes: {lower / plain:.2f}"
