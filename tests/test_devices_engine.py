"""Backward over several devices, on the CPU: nodes are told that they belong to a fake device."""

import gc
import multiprocessing
import os
import threading
import time
import traceback
import weakref

import pytest

import wengert
from wengert.autograd import graph
from wengert.core.state import inherit
from wengert.tape.workers import _captured_modes, worker_of

FAKE = "fake:0"
OTHER = "fake:1"
SECONDS = 300


def place(device, *tensors):
    """Let the nodes of these tensors run on a device."""
    for tensor in tensors:
        tensor.grad_fn.out_device = device


def chain(devices=(None, FAKE, None)):
    """sum(sin(3 x) exp(x)) with the three middle nodes on the devices named."""
    x = wengert.tensor([0.5, -1.0, 2.0], dtype=wengert.float64, requires_grad=True)
    tripled = x * 3
    waves = tripled.sin()
    grown = x.exp()
    for device, tensor in zip(devices, (tripled, waves, grown), strict=True):
        place(device, tensor)
    return x, tripled, waves, grown, (waves * grown).sum()


def expected(x):
    """The gradient of `chain`."""
    x = x.detach()
    return ((x * 3).cos() * 3 * x.exp() + (x * 3).sin() * x.exp()).tolist()


def thread_name():
    return threading.current_thread().name


def note_threads(*tensors):
    """Names of the threads on which the nodes of these tensors ran, in order."""
    names = []
    for tensor in tensors:
        tensor.grad_fn.register_hook(lambda *_: names.append(thread_name()))
    return names


def in_time(work):
    """Run work() on a thread that is given up after a while; return its result."""
    results, errors = [], []

    def target():
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "deadlock"
    if errors:
        raise errors[0]
    return results[0]


# Where nodes run --------------------------------------------------------------------------------


def test_no_thread_is_started_on_one_device():
    before = threading.active_count()
    *_, loss = chain((None, None, None))
    loss.backward()
    assert threading.active_count() == before


def test_nodes_run_on_the_thread_of_their_device():
    x, tripled, waves, grown, loss = chain()
    there, here = note_threads(waves), note_threads(tripled, grown, loss)
    loss.backward()
    assert there == [f"wengert-device-{FAKE}"]
    assert here == [thread_name()] * 3
    assert x.grad.tolist() == pytest.approx(expected(x))


@pytest.mark.parametrize("first", [None, FAKE, OTHER])
@pytest.mark.parametrize("second", [None, FAKE, OTHER])
@pytest.mark.parametrize("third", [None, FAKE, OTHER])
def test_gradients_do_not_depend_on_the_placement(first, second, third):
    x, *_, loss = chain((first, second, third))
    loss.backward()
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_root_and_leaf_on_a_worker():
    x, *_, loss = chain((FAKE, FAKE, OTHER))
    place(FAKE, loss)
    sink = graph.get_gradient_edge(x).node
    sink.out_device = OTHER
    names = []
    sink.register_hook(lambda *_: names.append(thread_name()))
    loss.backward()
    assert names == [f"wengert-device-{OTHER}"]
    assert x.grad.tolist() == pytest.approx(expected(x))


@pytest.mark.parametrize("device", ["tpu", 7, ("fake", 1), wengert.device("cpu")], ids=repr)
def test_any_hashable_value_is_a_device(device):
    x, _, waves, _, loss = chain((None, device, None))
    names = note_threads(waves)
    loss.backward()
    assert names == [f"wengert-device-{device}"]
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_a_device_has_one_worker():
    seen = []
    for _ in range(3):
        *_, waves, _, loss = chain()
        waves.register_hook(lambda g: seen.append(threading.get_ident()))
        loss.backward()
    assert seen == [worker_of(FAKE).thread.ident] * 3


def test_worker_is_a_daemon():
    assert worker_of(FAKE).thread.daemon


def test_multithreading_disabled_keeps_all_on_the_caller():
    x, _, waves, grown, loss = chain((None, FAKE, OTHER))
    names = note_threads(waves, grown)
    with wengert.autograd.set_multithreading_enabled(False):
        loss.backward()
    assert names == [thread_name()] * 2
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_gradients_are_summed_across_devices():
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    parts = [x * factor for factor in range(1, 9)]
    place(FAKE, *parts[::2])
    place(OTHER, *parts[1::2])
    sum(parts).sum().backward()
    assert x.grad.tolist() == [36.0, 36.0]


def test_several_outputs_on_a_worker():
    x = wengert.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, _ = x.sort()
    place(FAKE, values)
    (values * wengert.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_wide_graph():
    x = wengert.ones(3, requires_grad=True)
    parts = [x * i for i in range(300)]
    for i, part in enumerate(parts):
        place((None, FAKE, OTHER)[i % 3], part)
    wengert.stack(parts).sum().backward()
    assert x.grad.tolist() == [sum(range(300))] * 3


def test_deep_graph_in_zigzag():
    x = y = wengert.ones(2, requires_grad=True)
    for i in range(200):
        y = y * 1.0
        place((None, FAKE, OTHER)[i % 3], y)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_newest_node_runs_first_on_a_worker():
    x = wengert.ones(2, requires_grad=True)
    parts = [x * i for i in range(1, 6)]
    place(FAKE, *parts)
    order = []
    for i, part in enumerate(parts):
        part.register_hook(lambda g, i=i: order.append(i))
    total = wengert.stack(parts).sum()
    place(FAKE, total)
    stacked = total.grad_fn.next_functions[0][0]
    stacked.out_device = FAKE
    total.backward()
    assert order == [4, 3, 2, 1, 0]


# Arguments --------------------------------------------------------------------------------------


def test_grad_captures_on_a_worker():
    x, tripled, waves, grown, loss = chain((None, FAKE, FAKE))
    found = wengert.autograd.grad(loss, (x, waves, grown))
    assert found[0].tolist() == pytest.approx(expected(x))
    assert found[1].tolist() == grown.tolist()
    assert found[2].tolist() == waves.tolist()
    assert x.grad is None


def test_inputs_restrict_what_runs():
    x, _, waves, grown, loss = chain((None, FAKE, FAKE))
    names = note_threads(waves, grown)
    wengert.autograd.grad(loss, waves)
    assert names == []


def test_needless_gradients_are_not_computed_on_a_worker():
    a = wengert.ones(2, requires_grad=True)
    b = wengert.ones(2, requires_grad=True)
    product = a * b
    place(FAKE, product)
    seen = []
    product.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in gi]))
    product.sum().backward(inputs=[b])
    assert seen == [[True, False]]
    assert a.grad is None and b.grad.tolist() == [1.0, 1.0]


def test_retain_graph_and_second_backward():
    x, _, waves, _, loss = chain()
    loss.backward(retain_graph=True)
    loss.backward()
    assert x.grad.tolist() == pytest.approx([2 * g for g in expected(x)])
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_create_graph_records_on_the_worker():
    x, _, waves, _, loss = chain()
    modes = []
    waves.register_hook(lambda g: modes.append(wengert.is_grad_enabled()))
    (first,) = wengert.autograd.grad(loss, x, create_graph=True)
    assert modes == [True] and first.requires_grad
    (second,) = wengert.autograd.grad(first.sum(), x)
    x0, *_, plain = chain((None, None, None))
    (reference,) = wengert.autograd.grad(plain, x0, create_graph=True)
    (reference,) = wengert.autograd.grad(reference.sum(), x0)
    assert second.tolist() == pytest.approx(reference.tolist())


def test_nothing_is_recorded_without_create_graph():
    x, _, waves, _, loss = chain()
    seen = []
    waves.register_hook(lambda g: seen.append((wengert.is_grad_enabled(), g.requires_grad)))
    loss.backward()
    assert seen == [(False, False)] and not x.grad.requires_grad


# The caller's modes -------------------------------------------------------------------------------


def test_saved_tensor_hooks_of_the_caller_hold_on_the_worker():
    x, _, waves, _, loss = chain()
    packed_on = set()

    def pack(tensor):
        packed_on.add(thread_name())
        return tensor

    with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        wengert.autograd.grad(loss, x, create_graph=True)
    assert f"wengert-device-{FAKE}" in packed_on


def test_saved_tensor_hooks_end_with_the_call():
    packed_on = set()

    def pack(tensor):
        packed_on.add(thread_name())
        return tensor

    x, *_, loss = chain()
    with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss.backward()
    packed_on.clear()
    x, *_, loss = chain()
    wengert.autograd.grad(loss, x, create_graph=True)
    assert not packed_on


def test_modes_are_those_at_the_call():
    """A hook that changes modes on the caller meanwhile does not reach the worker."""
    x = wengert.ones(2, requires_grad=True)
    slow, quick = x * 2, x * 3
    total = slow + quick
    place(FAKE, slow)
    entered, looked = threading.Event(), threading.Event()
    seen = []

    def on_caller(g):
        with wengert.inference_mode(), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            entered.set()
            assert looked.wait(SECONDS)

    def on_worker(g):
        assert entered.wait(SECONDS)
        seen.append((wengert.is_inference_mode_enabled(), wengert.is_grad_enabled()))
        looked.set()

    quick.register_hook(on_caller)
    slow.register_hook(on_worker)
    total.sum().backward()
    assert seen == [(False, False)]


def test_node_and_task_are_known_on_the_worker():
    x, _, waves, _, loss = chain()
    node = waves.grad_fn
    seen = []

    def look(*_):
        node = wengert.tape.tasks.current_autograd_node()
        seen.append((graph.current_graph_task_id(), node))

    loss.register_hook(look)
    waves.register_hook(look)
    loss.backward()
    (here, root), (there, inner) = seen
    assert here == there >= 0
    assert inner is node and root is loss.grad_fn


def test_worker_is_left_clean():
    *_, waves, _, loss = chain()
    loss.backward()
    seen = []

    def look(g):
        seen.append(wengert.autograd.is_multithreading_enabled())

    *_, waves, _, loss = chain()
    waves.register_hook(look)
    loss.backward()
    assert seen == [True]


# Hooks --------------------------------------------------------------------------------------------


def test_hooks_run_in_order_on_the_worker():
    x, _, waves, _, loss = chain()
    order = []
    waves.register_hook(lambda g: order.append("tensor"))
    waves.retain_grad()
    waves.grad_fn.register_prehook(lambda go: order.append(("before", waves.grad is not None)))
    waves.grad_fn.register_hook(lambda gi, go: order.append("after"))
    x.register_hook(lambda g: order.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: order.append("accumulated"))
    loss.backward()
    assert order == ["tensor", ("before", True), "after", "leaf", "accumulated"]


def test_hooks_replace_gradients_on_the_worker():
    x, _, waves, grown, loss = chain((None, FAKE, FAKE))
    waves.register_hook(lambda g: g * 0)
    grown.grad_fn.register_hook(lambda gi, go: (gi[0] * 2,))
    loss.backward()
    wanted = ((x.detach() * 3).sin() * x.detach().exp() * 2).tolist()
    assert x.grad.tolist() == pytest.approx(wanted)


def test_multi_grad_hook_across_devices():
    x, tripled, waves, grown, loss = chain((None, FAKE, OTHER))
    calls = []
    graph.register_multi_grad_hook([tripled, waves, grown], lambda grads: calls.append(len(grads)))
    loss.backward(retain_graph=True)
    loss.backward()
    assert calls == [3, 3]


def test_callback_queued_on_a_worker_runs_on_the_caller():
    x, _, waves, _, loss = chain()
    calls = []

    def queue(g):
        wengert.autograd.Variable._execution_engine.queue_callback(
            lambda: calls.append((thread_name(), x.grad is not None))
        )

    waves.register_hook(queue)
    loss.backward()
    assert calls == [(thread_name(), True)]


# Exceptions ---------------------------------------------------------------------------------------


class Failure(Exception):
    """Raised by the hooks of these tests."""


def fail_on_purpose(*_):
    raise Failure("the hook failed")


def place_of_failure(kind, x, waves):
    if kind == "tensor hook":
        waves.register_hook(fail_on_purpose)
    elif kind == "prehook":
        waves.grad_fn.register_prehook(fail_on_purpose)
    elif kind == "hook":
        waves.grad_fn.register_hook(fail_on_purpose)
    elif kind == "hook of the caller's node":
        x.register_hook(fail_on_purpose)


@pytest.mark.parametrize("kind", ["tensor hook", "prehook", "hook", "hook of the caller's node"])
def test_exception_reaches_the_caller(kind):
    x, _, waves, _, loss = chain()
    place_of_failure(kind, x, waves)
    with pytest.raises(Failure, match="the hook failed") as caught:
        in_time(loss.backward)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "fail_on_purpose"
    assert x.grad is None
    x, *_, loss = chain()
    in_time(loss.backward)
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_exception_of_a_rule_reaches_the_caller():
    x = wengert.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    place(FAKE, z)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    x, *_, loss = chain()
    loss.backward()
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_exception_of_an_unpack_hook_reaches_the_caller():
    with graph.saved_tensors_hooks(lambda t: t, fail_on_purpose):
        x, *_, loss = chain((None, FAKE, None))
    with pytest.raises(Failure):
        loss.backward()


def test_system_exit_in_a_hook_reaches_the_caller():
    x, _, waves, _, loss = chain()

    def leave(g):
        raise SystemExit(3)

    waves.register_hook(leave)
    with pytest.raises(SystemExit):
        loss.backward()
    assert worker_of(FAKE).thread.is_alive()


def test_the_graph_is_usable_after_a_failure():
    x, _, waves, _, loss = chain()
    handle = waves.register_hook(fail_on_purpose)
    with pytest.raises(Failure):
        loss.backward(retain_graph=True)
    handle.remove()
    loss.backward()
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_nodes_queued_behind_a_failure_do_not_run():
    x = wengert.ones(2, requires_grad=True)
    parts = [x * i for i in range(1, 6)]
    ran = []
    for part in parts:
        part.register_hook(lambda g: ran.append(1))
    parts[-1].register_hook(fail_on_purpose)
    total = wengert.stack(parts)
    place(FAKE, *parts, total)
    with pytest.raises(Failure):
        total.sum().backward()
    assert ran == [1]


def test_first_of_several_exceptions_is_raised():
    x, _, waves, grown, loss = chain((None, FAKE, OTHER))
    waves.register_hook(fail_on_purpose)
    grown.register_hook(fail_on_purpose)
    for _ in range(20):
        with pytest.raises(Failure):
            in_time(lambda: loss.backward(retain_graph=True))


def test_callbacks_do_not_run_after_a_failure():
    x, _, waves, _, loss = chain()
    calls = []

    def queue(g):
        wengert.autograd.Variable._execution_engine.queue_callback(lambda: calls.append(1))
        raise Failure

    waves.register_hook(queue)
    with pytest.raises(Failure):
        loss.backward()
    assert not calls


# Backward inside backward -------------------------------------------------------------------------


def nested(device, found):
    """A hook that runs backward over `device`."""

    def hook(g):
        with wengert.enable_grad():
            x, *_, loss = chain((None, device, None))
        loss.backward()
        found.append(x.grad.tolist() == pytest.approx(expected(x)))

    return hook


@pytest.mark.parametrize("inner", [None, FAKE, OTHER])
@pytest.mark.parametrize("outer", [None, FAKE])
def test_hook_runs_backward(outer, inner):
    found = []
    x, _, waves, _, loss = chain((OTHER, outer, None))
    waves.register_hook(nested(inner, found))
    in_time(loss.backward)
    assert found == [True]
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_two_workers_wait_for_each_other():
    """A hook on each device runs backward over the other one, both at once."""
    found = []
    both = threading.Barrier(2)
    x, _, waves, grown, loss = chain((None, FAKE, OTHER))

    def meet(g):
        both.wait(SECONDS)

    waves.register_hook(meet)
    waves.register_hook(nested(OTHER, found))
    grown.register_hook(meet)
    grown.register_hook(nested(FAKE, found))
    in_time(loss.backward)
    assert found == [True, True]
    assert x.grad.tolist() == pytest.approx(expected(x))


@pytest.mark.parametrize("depth", [3, 60, 130])
def test_deep_reentrance_over_one_device(depth):
    """Deeper than the stack allows: the engine goes on with fresh threads."""
    reached = []

    def level(n):
        x = wengert.ones(2, requires_grad=True)
        y = x * 2
        place(FAKE, y)

        def hook(g):
            reached.append(n)
            if n < depth:
                with wengert.enable_grad():
                    level(n + 1)

        y.register_hook(hook)
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    in_time(lambda: level(1))
    assert reached == list(range(1, depth + 1))


def test_deep_reentrance_over_alternating_devices():
    depth = 90
    reached = []

    def level(n):
        x = wengert.ones(2, requires_grad=True)
        y = x * 2
        place((None, FAKE, OTHER)[n % 3], y)

        def hook(g):
            reached.append(n)
            if n < depth:
                with wengert.enable_grad():
                    level(n + 1)

        y.register_hook(hook)
        y.sum().backward()

    in_time(lambda: level(1))
    assert reached == list(range(1, depth + 1))


def test_exception_in_a_nested_backward():
    x, _, waves, _, loss = chain()

    def hook(g):
        with wengert.enable_grad():
            _, _, inner, _, inner_loss = chain()
        inner.register_hook(fail_on_purpose)
        inner_loss.backward()

    waves.register_hook(hook)
    with pytest.raises(Failure):
        in_time(loss.backward)
    x, *_, loss = chain()
    in_time(loss.backward)
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_task_and_modes_return_after_a_nested_backward():
    x, _, waves, _, loss = chain()
    seen = []

    def hook(g):
        before = graph.current_graph_task_id()
        with wengert.enable_grad():
            leaf, *_, inner_loss = chain()
            wengert.autograd.grad(inner_loss, leaf, create_graph=True)
        seen.append(graph.current_graph_task_id() == before)
        seen.append(wengert.is_grad_enabled())

    waves.register_hook(hook)
    in_time(loss.backward)
    assert seen == [True, False]


def test_nested_backward_through_the_same_graph():
    x, _, waves, _, loss = chain()
    handle = None

    def hook(g):
        handle.remove()
        loss.backward(retain_graph=True)

    handle = waves.register_hook(hook)
    in_time(lambda: loss.backward(retain_graph=True))
    assert x.grad.tolist() == pytest.approx([2 * g for g in expected(x)])


# Several callers ----------------------------------------------------------------------------------


def test_tasks_of_two_threads_share_a_worker():
    meeting = threading.Event()
    names = []

    def first():
        x, _, waves, _, loss = chain()
        waves.register_hook(lambda g: names.append(thread_name()))
        waves.register_hook(lambda g: meeting.set())
        loss.backward()
        return x.grad.tolist() == pytest.approx(expected(x))

    def second():
        assert meeting.wait(SECONDS)
        return first()

    results = []
    threads = [
        threading.Thread(target=lambda work=work: results.append(work()), daemon=True)
        for work in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert results == [True, True]
    assert names == [f"wengert-device-{FAKE}"] * 2


def test_threads_share_a_graph_and_leaves():
    x, *_, loss = chain((None, FAKE, OTHER))
    rounds, count = 25, 4

    def work():
        for _ in range(rounds):
            loss.backward(retain_graph=True)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    wanted = [g * rounds * count for g in expected(x)]
    assert x.grad.tolist() == pytest.approx(wanted)


def test_a_failure_concerns_its_own_task_only():
    x, *_, loss = chain()
    broken = chain()
    broken[2].register_hook(fail_on_purpose)
    failures = []

    def fail_often():
        for _ in range(20):
            try:
                broken[-1].backward(retain_graph=True)
            except Failure:
                failures.append(1)

    thread = threading.Thread(target=fail_often, daemon=True)
    thread.start()
    for _ in range(20):
        loss.backward(retain_graph=True)
    thread.join(SECONDS)
    assert len(failures) == 20
    assert x.grad.tolist() == pytest.approx([20 * g for g in expected(x)])


# Memory, fork -------------------------------------------------------------------------------------


def test_an_idle_worker_keeps_nothing_alive():
    class Mark:
        pass

    def run():
        mark = Mark()
        x, _, waves, _, loss = chain()
        waves.grad_fn.metadata["mark"] = mark
        loss.backward()
        return weakref.ref(mark)

    reference = run()
    deadline = time.monotonic() + SECONDS
    while reference() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.001)
    assert reference() is None


def backward_in_child(connection):
    x, _, waves, _, loss = chain((None, FAKE, OTHER))
    names = note_threads(waves)
    loss.backward()
    connection.send((x.grad.tolist(), names))
    connection.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_child_starts_workers_of_its_own():
    x, *_, loss = chain((None, FAKE, OTHER))
    loss.backward()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=backward_in_child, args=(theirs,), daemon=True)
    child.start()
    try:
        assert ours.poll(SECONDS), "the child hangs"
        found, names = ours.recv()
    finally:
        child.kill()
        child.join()
    assert found == pytest.approx(expected(x))
    assert names == [f"wengert-device-{FAKE}"]
    x, *_, loss = chain()
    loss.backward()
    assert x.grad.tolist() == pytest.approx(expected(x))


def test_batched_gradients_travel_over_devices():
    x, _, waves, _, _ = chain((FAKE, OTHER, None))
    vectors = wengert.eye(3, dtype=wengert.float64)
    (found,) = wengert.autograd.grad(waves, x, vectors, is_grads_batched=True)
    assert found.sum(0).tolist() == pytest.approx(((x.detach() * 3).cos() * 3).tolist())


def test_a_thread_that_helps_out_gets_all_of_its_modes_back():
    """Whoever runs a node for another call puts its own modes aside meanwhile."""

    def helped(x):
        inherit(_captured_modes())
        return x.exp()

    with wengert.autograd.profiler.profile() as profile:
        result = wengert.vmap(helped)(wengert.zeros(2))
    assert result.tolist() == [1.0, 1.0]
    assert any("exp" in event.name for event in profile.function_events)
