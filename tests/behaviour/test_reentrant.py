"""Backward inside backward."""

import threading

import pytest


def test_hook_runs_backward_of_another_graph(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)

    def run(g):
        with lib.enable_grad():
            (other * other).backward()

    x.register_hook(run)
    (x * x).backward()
    assert x.grad.item() == 4.0
    assert other.grad.item() == 6.0


def test_hook_runs_backward_of_a_graph_made_before(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    ready = other * other
    x.register_hook(lambda g: ready.backward())
    (x * x).backward()
    assert other.grad.item() == 6.0


def test_hook_uses_grad(lib):
    x = lib.tensor(2.0, requires_grad=True)

    def scale(g):
        with lib.enable_grad():
            z = lib.tensor(5.0, requires_grad=True)
            (dz,) = lib.autograd.grad(z * z, z)
        return g * dz

    x.register_hook(scale)
    (x * 3).backward()
    assert x.grad.item() == 30.0


def test_nested_backward_into_the_same_leaf(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * 3

    def run(g):
        with lib.enable_grad():
            (x * 100).backward()

    y.register_hook(run)
    y.backward()
    assert x.grad.item() == 103.0


def test_nested_backward_in_node_hook(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    y = x * x

    def run(gi, go):
        with lib.enable_grad():
            (other * 7).backward()

    y.grad_fn.register_hook(run)
    y.backward()
    assert (x.grad.item(), other.grad.item()) == (4.0, 7.0)


def test_nested_backward_in_node_prehook(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    y = x * x

    def run(go):
        with lib.enable_grad():
            (other * 7).backward()

    y.grad_fn.register_prehook(run)
    y.backward()
    assert (x.grad.item(), other.grad.item()) == (4.0, 7.0)


def test_nested_backward_in_post_accumulate_hook(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)

    def run(p):
        with lib.enable_grad():
            (other * 7).backward()

    x.register_post_accumulate_grad_hook(run)
    (x * x).backward()
    assert (x.grad.item(), other.grad.item()) == (4.0, 7.0)


def test_nested_backward_on_retained_part_of_the_running_graph(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * 5
    z.register_hook(lambda g: y.backward(retain_graph=True))
    z.backward()
    assert x.grad.item() == 4.0 + 20.0


def test_nested_backward_does_not_run_outer_nodes(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    y = x * x
    seen = []

    def run(g):
        with lib.enable_grad():
            inner = other * 2
        seen.append("before")
        inner.backward()
        seen.append("after")

    y.register_hook(run)
    x.register_hook(lambda g: seen.append("outer"))
    (y * 3).backward()
    assert seen == ["before", "after", "outer"]


def test_mode_inside_hook_is_restored_after_nested_backward(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)
    seen = []

    def run(g):
        seen.append(lib.is_grad_enabled())
        with lib.enable_grad():
            inner = other * other
        lib.autograd.grad(inner, other, create_graph=True)
        seen.append(lib.is_grad_enabled())

    x.register_hook(run)
    (x * x).backward()
    assert seen == [False, False]
    assert lib.is_grad_enabled()


def test_nested_create_graph_result_can_be_used(lib):
    x = lib.tensor(2.0, requires_grad=True)
    w = lib.tensor(3.0, requires_grad=True)
    second = []

    def run(g):
        with lib.enable_grad():
            (first,) = lib.autograd.grad(w * w * w, w, create_graph=True)
            second.append(lib.autograd.grad(first, w)[0].item())

    x.register_hook(run)
    (x * x).backward()
    assert second == [18.0]


def test_each_element_of_a_list_runs_its_own_backward(lib):
    leaves = [lib.tensor(float(i), requires_grad=True) for i in range(5)]
    x = lib.tensor(2.0, requires_grad=True)
    for leaf in leaves:

        def run(g, leaf=leaf):
            with lib.enable_grad():
                (leaf * leaf).backward()

        x.register_hook(run)
    (x * x).backward()
    assert [leaf.grad.item() for leaf in leaves] == [0.0, 2.0, 4.0, 6.0, 8.0]


def nest(lib, depth, reached):
    """Backward of a small graph whose hook nests once more until depth is zero."""
    x = lib.tensor(2.0, requires_grad=True)

    def deeper(g):
        reached.append(depth)
        if depth:
            with lib.enable_grad():
                return g * nest(lib, depth - 1, reached)

    x.register_hook(deeper)
    (x * 1).backward()
    return x.grad / x.grad


@pytest.mark.parametrize("depth", [1, 2, 10, 100])
def test_nested_to_a_depth(lib, depth):
    reached = []
    assert nest(lib, depth, reached).item() == 1.0
    assert reached == list(range(depth, -1, -1))


def test_engine_works_after_deep_nesting(lib):
    nest(lib, 60, [])
    x = lib.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_exception_at_the_bottom_of_deep_nesting(lib):
    def descend(depth):
        x = lib.tensor(2.0, requires_grad=True)

        def deeper(g):
            if not depth:
                raise KeyError("bottom")
            with lib.enable_grad():
                descend(depth - 1)

        x.register_hook(deeper)
        (x * x).backward()

    with pytest.raises(KeyError, match="bottom"):
        descend(50)
    x = lib.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_nested_backward_in_several_threads(lib):
    results = []

    def work():
        results.append(nest(lib, 20, []).item())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert results == [1.0] * 3


def test_hook_that_runs_backward_in_a_thread(lib):
    x, other = lib.tensor(2.0, requires_grad=True), lib.tensor(3.0, requires_grad=True)

    def run(g):
        thread = threading.Thread(target=lambda: (other * other).backward())
        thread.start()
        thread.join(300)

    x.register_hook(run)
    (x * x).backward()
    assert (x.grad.item(), other.grad.item()) == (4.0, 6.0)
