"""Graphs of a million nodes, and wide ones: built, differentiated, destroyed."""

import sys
import threading

import pytest

import wengert
from line_counts import lines_run

# Python 3.13 limits how deep deallocations nest by a count that half a megabyte is too little for.
SMALL_STACK = (1024 if sys.version_info[:2] == (3, 13) else 512) * 1024


def scaled(lib, compiled, uncompiled, reference=20_000):
    """How many nodes to use: the full number only where a node costs little."""
    compiled_here = getattr(lib, "__compiled__", None)
    if compiled_here is None:
        return reference
    return compiled if compiled_here else uncompiled


def chain(start, length):
    value = start
    for _ in range(length):
        value = value + 1
    return value


# Long chains


def test_million_nodes(lib):
    length = scaled(lib, 1_000_000, 50_000)
    x = lib.ones((), requires_grad=True)
    y = chain(x, length)
    assert y.item() == length + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y


def test_long_chain_with_saved_values(lib):
    length = scaled(lib, 200_000, 20_000)
    x = lib.ones((), requires_grad=True)
    factor = lib.ones((), requires_grad=True)
    y = x
    for _ in range(length):
        y = y * factor
    y.backward()
    assert x.grad.item() == 1.0
    assert factor.grad.item() == length


def test_long_chain_is_destroyed_without_backward(lib):
    length = scaled(lib, 300_000, 50_000)
    y = chain(lib.ones((), requires_grad=True), length)
    assert y.requires_grad
    del y


def test_long_chain_is_destroyed_from_the_middle(lib):
    length = scaled(lib, 100_000, 20_000)
    x = lib.ones((), requires_grad=True)
    middle = chain(x, length)
    end = chain(middle, length)
    del end
    middle.backward()
    assert x.grad.item() == 1.0


def test_long_chain_is_destroyed_in_a_thread_with_a_small_stack(lib):
    length = scaled(lib, 200_000, 20_000)
    results = []

    def work():
        x = lib.ones((), requires_grad=True)
        y = chain(x, length)
        y.backward()
        del y
        abandoned = chain(x, length)
        del abandoned
        results.append(x.grad.item())

    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join(300)
    assert results == [1.0]


def test_long_chain_as_input_of_grad(lib):
    length = scaled(lib, 100_000, 20_000)
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    y = chain(x, length) * chain(other, length)
    (dx,) = lib.autograd.grad(y, x)
    assert dx.item() == length + 1


def test_long_chain_of_inplace_operations(lib):
    length = scaled(lib, 100_000, 20_000)
    x = lib.ones((), requires_grad=True)
    y = x * 1
    for _ in range(length):
        y.add_(1)
    y.backward()
    assert x.grad.item() == 1.0


def test_long_chain_of_changes_of_a_view(lib):
    length = scaled(lib, 20_000, 2_000, reference=2_000)
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(length):
        y[0] += 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_long_chain_of_views(lib):
    length = scaled(lib, 50_000, 5_000)
    x = lib.ones(2, 3, requires_grad=True)
    y = x
    for _ in range(length):
        y = y.t()
    y.sum().backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2
    del y


def test_long_chain_with_retained_gradients_and_hooks(lib):
    length = scaled(lib, 50_000, 5_000)
    x = lib.ones((), requires_grad=True)
    y, calls = x, []
    for i in range(length):
        y = y + 1
        if i % 100 == 0:
            y.register_hook(calls.append)
    y.backward()
    assert len(calls) == length // 100
    assert x.grad.item() == 1.0


def test_long_chain_differentiated_twice(lib):
    length = scaled(lib, 20_000, 2_000, reference=2_000)
    x = lib.ones((), dtype=lib.float64, requires_grad=True)
    y = x
    for _ in range(length):
        y = y * 1.0
    (first,) = lib.autograd.grad(y * y, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert (first.item(), second.item()) == (2.0, 2.0)


def test_long_chain_after_an_exception(lib):
    length = scaled(lib, 100_000, 20_000)
    x = lib.ones((), requires_grad=True)

    def fail(g):
        raise KeyError

    handle = x.register_hook(fail)
    y = chain(x, length)
    with pytest.raises(KeyError):
        y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert x.grad.item() == 1.0


# Many paths and many edges


def test_ladder_with_very_many_paths(lib):
    x = lib.ones((), dtype=lib.float64, requires_grad=True)
    y = x
    for _ in range(1_000):
        y = y * 0.5 + y * 0.5
    y.backward()
    assert x.grad.item() == 1.0


def test_leaf_used_very_often(lib):
    uses = scaled(lib, 100_000, 10_000)
    x = lib.ones((), dtype=lib.float64, requires_grad=True)
    total = x * 0
    for _ in range(uses):
        total = total + x
    total.backward()
    assert x.grad.item() == uses


def test_intermediate_used_very_often(lib):
    uses = scaled(lib, 50_000, 5_000)
    x = lib.ones((), dtype=lib.float64, requires_grad=True)
    shared = x * 2
    total = shared * 0
    for _ in range(uses):
        total = total + shared
    total.backward()
    assert x.grad.item() == 2.0 * uses


def test_very_many_leaves(lib):
    count = scaled(lib, 50_000, 5_000)
    leaves = [lib.ones((), requires_grad=True) for _ in range(count)]
    total = leaves[0]
    for leaf in leaves[1:]:
        total = total + leaf
    total.backward()
    assert all(leaf.grad.item() == 1.0 for leaf in leaves)


def test_node_with_very_many_inputs(lib):
    count = scaled(lib, 20_000, 5_000, reference=5_000)
    leaves = [lib.ones(1, requires_grad=True) for _ in range(count)]
    (lib.cat(leaves) * lib.arange(float(count))).sum().backward()
    assert [leaf.grad.item() for leaf in leaves[:3]] == [0.0, 1.0, 2.0]
    assert leaves[-1].grad.item() == count - 1


def test_node_with_very_many_outputs(lib):
    count = scaled(lib, 20_000, 5_000, reference=5_000)
    x = lib.ones(count, requires_grad=True)
    parts = x.unbind()
    total = parts[0]
    for part in parts[1::1000]:
        total = total + part
    total.backward()
    assert x.grad.sum().item() == 1 + len(parts[1::1000])


def test_very_many_roots(lib):
    count = scaled(lib, 20_000, 5_000)
    x = lib.ones((), dtype=lib.float64, requires_grad=True)
    lib.autograd.backward([x * 1.0 for _ in range(count)])
    assert x.grad.item() == count


def test_balanced_tree(lib):
    level = [lib.ones((), requires_grad=True) for _ in range(2**12)]
    leaves = level
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    level[0].backward()
    assert all(leaf.grad.item() == 1.0 for leaf in leaves)


# Cost


@pytest.mark.parametrize(
    "step",
    [lambda y: y + 1, lambda y: y.t(), lambda y: y.add_(1) if y.grad_fn else y * 1],
    ids=["add", "view", "inplace"],
)
def test_work_grows_in_proportion(step):
    def program(length):
        y = x = wengert.ones(2, 3, requires_grad=True)
        for _ in range(length):
            y = step(y)
        y.sum().backward()
        assert x.grad.tolist() == [[1.0] * 3] * 2

    short, long = 200, 2_000
    program(short)
    # Proportional work is 10 times as much, quadratic work 100 times.
    assert lines_run(program, long) < 12 * lines_run(program, short)
