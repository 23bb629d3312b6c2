"""register_multi_grad_hook: one call for the gradients of several tensors."""

import pickle
import threading
from collections import OrderedDict

import pytest


def leaf(lib, *values):
    return lib.tensor(values or [1.0, 2.0], requires_grad=True)


def register(lib, tensors, fn, **options):
    return lib.autograd.graph.register_multi_grad_hook(tensors, fn, **options)


def noting(log):
    return lambda grads: log.append([None if g is None else g.tolist() for g in grads])


def test_all_gradients_at_once(lib):
    a, b, log = leaf(lib), leaf(lib, 3.0, 4.0), []
    register(lib, (a, b), noting(log))
    (a * b).sum().backward()
    assert log == [[[3.0, 4.0], [1.0, 2.0]]]


def test_hook_receives_a_list(lib):
    a, kinds = leaf(lib), []
    register(lib, [a], lambda grads: kinds.append(type(grads)))
    a.sum().backward()
    assert kinds == [list]


def test_intermediates_and_leaves(lib):
    a, log = leaf(lib), []
    b = a * 2
    register(lib, (b, a), noting(log))
    (b * 3).sum().backward()
    assert log == [[[3.0, 3.0], [6.0, 6.0]]]


def test_tensor_outside_the_graph_is_not_waited_for(lib):
    a, b, log = leaf(lib), leaf(lib), []
    c, d = a * b, a * b
    register(lib, (a, b, c, d), noting(log))
    c.sum().backward(retain_graph=True)
    assert log == [[[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], None]]


def test_tensor_not_on_the_way_to_the_inputs_is_not_waited_for(lib):
    a, b, log = leaf(lib), leaf(lib), []
    c = a * b
    register(lib, (a, b, c), noting(log))
    c.sum().backward(inputs=(a,))
    assert log == [[[1.0, 2.0], None, [1.0, 1.0]]]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("kind", ["leaf", "result"])
def test_what_is_asked_for_and_out_of_reach_is_not_waited_for(lib, kind, accumulate):
    a, log, engine = leaf(lib), [], lib._C
    b, c = a * 2, leaf(lib) if kind == "leaf" else a * 3
    outside = lib.autograd.graph.get_gradient_edge(c).node
    register(lib, (b, c), noting(log))
    b.register_hook(lambda g: log.append(engine._will_engine_execute_node(outside)))
    if accumulate:
        b.sum().backward(inputs=[a, c])
    else:
        found = lib.autograd.grad(b.sum(), [a, c], allow_unused=True)
        assert found[1] is None
    assert log == [[[1.0, 1.0], None], False]


def test_hook_is_not_called_without_any_gradient(lib):
    a, b, log = leaf(lib), leaf(lib), []
    register(lib, (a,), noting(log))
    (b * 2).sum().backward()
    assert log == []


def test_intermediate_captured_by_grad(lib):
    a, log = leaf(lib), []
    c = a * 2
    register(lib, (c,), noting(log))
    lib.autograd.grad((c * 3).sum(), c)
    assert log == [[[3.0, 3.0]]]


def test_leaf_captured_by_grad_is_refused(lib):
    a, b = leaf(lib), leaf(lib)
    register(lib, (a, b), noting([]))
    with pytest.raises(RuntimeError, match="leaf node was passed to _will_engine_execute_node"):
        lib.autograd.grad((a * b).sum(), a)


def test_each_backward_calls_once(lib):
    a, b, log = leaf(lib), leaf(lib), []
    register(lib, (a, b), noting(log))
    for _ in range(3):
        (a * b).sum().backward()
    assert log == [[[1.0, 2.0], [1.0, 2.0]]] * 3


def test_backward_inside_backward_counts_for_itself(lib):
    a, b, log = leaf(lib), leaf(lib), []
    c = a * b
    register(lib, (a, b), noting(log))

    def hook(gradient):
        with lib.enable_grad():
            inner = (a * 3).sum()
        inner.backward()

    c.register_hook(hook)
    c.sum().backward()
    assert log == [[[3.0, 3.0], None], [[1.0, 2.0], [1.0, 2.0]]]


def test_backward_in_several_threads(lib):
    a, b, log = leaf(lib), leaf(lib), []
    register(lib, (a, b), noting(log))

    def run():
        for _ in range(20):
            (a * b).sum().backward()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log == [[[1.0, 2.0], [1.0, 2.0]]] * 80


def test_several_outputs_of_one_node(lib):
    x, log = lib.ones(2, 2, requires_grad=True), []
    first, second = x.unbind(0)
    register(lib, (first, second), noting(log))
    (first + second * 2).sum().backward()
    assert log == [[[1.0, 1.0], [2.0, 2.0]]]


def test_one_tensor_twice(lib):
    a, log = leaf(lib), []
    register(lib, (a, a), noting(log))
    (a * 2).sum().backward()
    assert log == [[[2.0, 2.0], [2.0, 2.0]]]


def test_tensor_changed_in_place_later(lib):
    b, log = leaf(lib) * 1, []
    register(lib, (b,), noting(log))
    b.mul_(2)
    b.sum().backward()
    assert log == [[[2.0, 2.0]]]


def test_result_is_ignored(lib):
    a, b = leaf(lib), leaf(lib)
    register(lib, (a, b), lambda grads: grads[0] * 100)
    register(lib, (a, b), lambda gradient: gradient * 100, mode="any")
    (a * b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0, 2.0], [1.0, 2.0])


def test_registered_under_no_grad(lib):
    a, log = leaf(lib), []
    with lib.no_grad():
        register(lib, (a,), noting(log))
    a.sum().backward()
    assert log == [[[1.0, 1.0]]]


def test_error_in_the_hook(lib):
    a, b, calls = leaf(lib), leaf(lib), []

    def hook(grads):
        calls.append([g.tolist() for g in grads])
        if len(calls) == 1:
            raise KeyError("first")

    register(lib, (a, b), hook)
    c = a * b
    with pytest.raises(KeyError, match="first"):
        c.sum().backward(retain_graph=True)
    c.sum().backward()
    assert calls == [[[1.0, 2.0], [1.0, 2.0]]] * 2


def test_failed_backward_leaves_nothing_behind(lib):
    a, b, log, broken = leaf(lib), leaf(lib), [], [True]
    register(lib, (a, b), noting(log))

    def fail(gradient):
        if broken:
            raise KeyError

    c = a * 1
    c.register_hook(fail)
    for _ in range(2):
        with pytest.raises(KeyError):
            (b * 1 + c).sum().backward(retain_graph=True)
    broken.clear()
    (b + c).sum().backward()
    assert log == [[[1.0, 1.0], [1.0, 1.0]]]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_removal(lib, mode):
    a, b, calls = leaf(lib), leaf(lib), []
    handle = register(lib, (a, b), lambda grads: calls.append(1), mode=mode)
    (a * b).sum().backward()
    handle.remove()
    (a * b).sum().backward()
    handle.remove()
    assert calls == [1]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_handle_as_context_manager(lib, mode):
    a, calls = leaf(lib), []
    with register(lib, (a,), lambda grads: calls.append(1), mode=mode):
        a.sum().backward()
    a.sum().backward()
    assert calls == [1]


def test_handle_has_one_part_per_tensor(lib):
    a, b = leaf(lib), leaf(lib)
    assert len(register(lib, (a, b), len).handles) == 2
    assert len(register(lib, (a, b), len, mode="any").handles) == 2
    assert register(lib, (), len).handles == ()


def test_state_of_a_handle(lib):
    a, calls = leaf(lib), []
    handle = register(lib, (a,), lambda grads: calls.append(1))
    copy = type(handle).__new__(type(handle))
    copy.__setstate__(handle.__getstate__())
    copy.remove()
    a.sum().backward()
    assert calls == []


def test_pickled_handle_has_lost_its_hook(lib):
    stored = OrderedDict()
    handle = type(leaf(lib).register_hook(len))(stored)
    stored[handle.id] = "hook"
    restored = pickle.loads(pickle.dumps(handle))
    assert restored.id == handle.id
    restored.remove()
    assert stored == {handle.id: "hook"}


# any ----------------------------------------------------------------------------------------------


def test_any_calls_with_the_first_gradient(lib):
    a, log = leaf(lib), []
    b = a * 2
    register(lib, (a, b), lambda g: log.append(g.tolist()), mode="any")
    (b * 3).sum().backward()
    assert log == [[3.0, 3.0]]


def test_any_calls_once_per_backward(lib):
    a, b, log = leaf(lib), leaf(lib), []
    register(lib, (a, b), lambda g: log.append(1), mode="any")
    c = (a * b).sum()
    c.backward(retain_graph=True)
    c.backward(retain_graph=True)
    c.backward(inputs=[b])
    assert len(log) == 3


def test_any_passes_over_constants(lib):
    a, log = leaf(lib), []
    handle = register(lib, (lib.ones(2), a), lambda g: log.append(g.tolist()), mode="any")
    (a * 2).sum().backward()
    assert log == [[2.0, 2.0]]
    assert len(handle.handles) == 1


def test_any_of_constants_only(lib):
    assert register(lib, (lib.ones(2),), len, mode="any").handles == ()


def test_any_in_several_threads(lib):
    a, b, log = leaf(lib), leaf(lib), []
    register(lib, (a, b), lambda g: log.append(1), mode="any")

    def run():
        for _ in range(20):
            (a * b).sum().backward()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log) == 80


def test_any_captured_by_grad(lib):
    a, b, log = leaf(lib), leaf(lib), []
    register(lib, (a, b), lambda g: log.append(g.tolist()), mode="any")
    lib.autograd.grad((a * b).sum(), a)
    assert log == [[1.0, 2.0]]


@pytest.mark.parametrize("mode", ["first", None, ""])
def test_unknown_mode(lib, mode):
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        register(lib, (), len, mode=mode)


def test_nothing_is_registered_if_one_tensor_cannot_have_hooks(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises((RuntimeError, AssertionError)):
        lib.autograd.graph.register_multi_grad_hook([x, lib.ones(2)], lambda grads: None)
    assert not x._backward_hooks
