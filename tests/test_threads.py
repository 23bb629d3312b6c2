"""Several Python threads over shared graphs and shared leaves."""

import sys
import threading

import pytest

THREADS = 4
ROUNDS = 1_000
TIMEOUT = 120


@pytest.fixture(autouse=True)
def eager_switching():
    """Threads are interrupted as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def run_in_threads(work, count=THREADS):
    """Run work(index) in threads that start together; raise what any of them raised."""
    barrier = threading.Barrier(count)
    errors = []

    def target(index):
        try:
            barrier.wait(TIMEOUT)
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=target, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if errors:
        raise errors[0]


def shared_graph(lib):
    """Two leaves and a graph in which every gradient is a whole number."""
    x = lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([4.0, 5.0, 6.0], dtype=lib.float64, requires_grad=True)
    product = x * w
    branch = product[:2] * 3
    loss = product.sum() + branch.sum() + (x * x).sum()
    return x, w, loss


X_GRADIENT = [4 * 4 + 2.0, 4 * 5 + 4.0, 6 + 6.0]
W_GRADIENT = [4.0, 8.0, 3.0]


def times(gradient, factor):
    return [value * factor for value in gradient]


def test_expected_gradients(lib):
    x, w, loss = shared_graph(lib)
    loss.backward()
    assert x.grad.tolist() == X_GRADIENT
    assert w.grad.tolist() == W_GRADIENT


def test_backward_through_a_shared_graph(lib):
    x, w, loss = shared_graph(lib)

    def work(index):
        for _ in range(ROUNDS):
            loss.backward(retain_graph=True)

    run_in_threads(work)
    assert x.grad.tolist() == times(X_GRADIENT, THREADS * ROUNDS)
    assert w.grad.tolist() == times(W_GRADIENT, THREADS * ROUNDS)


def test_grad_through_a_shared_graph(lib):
    x, w, loss = shared_graph(lib)

    def work(index):
        for _ in range(ROUNDS):
            dx, dw = lib.autograd.grad(loss, [x, w], retain_graph=True)
            assert dx.tolist() == X_GRADIENT
            assert dw.tolist() == W_GRADIENT

    run_in_threads(work)
    assert x.grad is None
    assert w.grad is None


def test_own_graphs_over_shared_leaves(lib):
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([3.0, 4.0], dtype=lib.float64, requires_grad=True)

    def work(index):
        for _ in range(ROUNDS):
            (x * w * (index + 1)).sum().backward()

    run_in_threads(work)
    total = ROUNDS * sum(range(1, THREADS + 1))
    assert x.grad.tolist() == [3.0 * total, 4.0 * total]
    assert w.grad.tolist() == [1.0 * total, 2.0 * total]


def test_first_gradient_of_a_leaf_is_not_lost(lib):
    for _ in range(200):
        x = lib.zeros(3, dtype=lib.float64, requires_grad=True)
        run_in_threads(lambda index, x=x: (x * 1).sum().backward(), count=2)
        assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_own_graphs_and_own_leaves(lib):
    def work(index):
        for i in range(ROUNDS):
            x = lib.tensor(float(i % 7), requires_grad=True)
            (x * x * (index + 1)).backward()
            assert x.grad.item() == 2.0 * (i % 7) * (index + 1)

    run_in_threads(work)


def test_shared_root_with_different_inputs(lib):
    x, w, loss = shared_graph(lib)

    def work(index):
        leaf = (x, w)[index % 2]
        for _ in range(ROUNDS // 4):
            loss.backward(retain_graph=True, inputs=[leaf])

    run_in_threads(work)
    assert x.grad.tolist() == times(X_GRADIENT, 2 * (ROUNDS // 4))
    assert w.grad.tolist() == times(W_GRADIENT, 2 * (ROUNDS // 4))


def test_double_backward_in_threads(lib):
    x = lib.tensor(3.0, dtype=lib.float64, requires_grad=True)
    y = x * x * x

    def work(index):
        for _ in range(ROUNDS // 4):
            (first,) = lib.autograd.grad(y, x, create_graph=True)
            (second,) = lib.autograd.grad(first, x, retain_graph=True)
            assert (first.item(), second.item()) == (27.0, 18.0)

    run_in_threads(work)


def test_hooks_of_a_shared_graph_run_in_every_thread(lib):
    x, _, loss = shared_graph(lib)
    calls = {}

    def count(g):
        name = threading.get_ident()
        calls[name] = calls.get(name, 0) + 1

    x.register_hook(count)

    def work(index):
        for _ in range(ROUNDS // 4):
            loss.backward(retain_graph=True)

    run_in_threads(work)
    assert sorted(calls.values()) == [ROUNDS // 4] * THREADS


def test_hooks_come_and_go_while_others_run_backward(lib):
    x, _, loss = shared_graph(lib)

    def work(index):
        for _ in range(ROUNDS // 4):
            handle = x.register_hook(lambda g: None)
            loss.backward(retain_graph=True)
            handle.remove()

    run_in_threads(work)
    assert x.grad.tolist() == times(X_GRADIENT, THREADS * (ROUNDS // 4))


def test_failing_threads_do_not_disturb_the_others(lib):
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)

    def fail(g):
        raise KeyError

    def work(index):
        for _ in range(ROUNDS // 4):
            y = (x * 2).sum()
            if index == 0:
                y.register_hook(fail)
                with pytest.raises(KeyError):
                    y.backward()
            else:
                y.backward()

    run_in_threads(work)
    expected = 2.0 * (THREADS - 1) * (ROUNDS // 4)
    assert x.grad.tolist() == [expected, expected]


def test_grad_modes_of_threads_are_independent(lib):
    x = lib.ones(2, requires_grad=True)

    def work(index):
        recording = index % 2 == 0
        with lib.set_grad_enabled(recording):
            for _ in range(ROUNDS // 4):
                assert (x * 2).requires_grad is recording

    run_in_threads(work)
    assert lib.is_grad_enabled()


def test_graph_freed_by_one_of_several_threads(lib):
    for _ in range(50):
        x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
        loss = x.exp().sin().exp().sum()

        def work(index, loss=loss):
            try:
                loss.backward()
            except RuntimeError as error:
                assert "second time" in str(error)

        run_in_threads(work, count=2)
    x = lib.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_graphs_die_in_threads_that_did_not_make_them(lib):
    graphs = []
    for _ in range(ROUNDS):
        x = lib.ones(2, requires_grad=True)
        graphs.append((x * x).exp().sum())

    def work(index):
        while True:
            try:
                graph = graphs.pop()
            except IndexError:
                return
            if index % 2:
                graph.backward()
            del graph

    run_in_threads(work)
    assert graphs == []


def test_views_and_inplace_in_threads(lib):
    def work(index):
        for _ in range(ROUNDS // 4):
            x = lib.ones(4, dtype=lib.float64, requires_grad=True)
            y = x * 1
            y[:2].mul_(index + 1)
            y.sum().backward()
            assert x.grad.tolist() == [index + 1.0, index + 1.0, 1.0, 1.0]

    run_in_threads(work)


def test_backward_of_a_graph_made_in_another_thread(lib):
    made = []

    def build():
        x = lib.tensor(3.0, requires_grad=True)
        made.append((x, x * x))

    thread = threading.Thread(target=build)
    thread.start()
    thread.join(TIMEOUT)
    x, y = made[0]
    y.backward()
    assert x.grad.item() == 6.0


def test_nested_backward_in_threads(lib):
    x = lib.tensor(3.0, dtype=lib.float64, requires_grad=True)
    other = lib.tensor(5.0, dtype=lib.float64, requires_grad=True)

    def run_inner(g):
        with lib.enable_grad():
            (other * 2).backward()

    def work(index):
        for _ in range(ROUNDS // 10):
            y = x * x
            y.register_hook(run_inner)
            y.backward()

    run_in_threads(work)
    assert x.grad.item() == 6.0 * THREADS * (ROUNDS // 10)
    assert other.grad.item() == 2.0 * THREADS * (ROUNDS // 10)
