"""Thread state: isolated between threads, gone with its thread, right in generators."""

import contextlib
import gc
import threading

import pytest

import wengert
from wengert.autograd import graph
from wengert.core.state import ThreadState, inherit, thread_state

SECONDS = 300


def in_thread(work):
    """The result of work() on a new thread."""
    results, errors = [], []

    def target():
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join(SECONDS)
    if errors:
        raise errors[0]
    return results[0]


# Isolation ----------------------------------------------------------------------------------------


def test_grad_mode_is_the_threads_own(lib):
    with lib.no_grad():
        assert in_thread(lib.is_grad_enabled)
        assert not lib.is_grad_enabled()
    lib.set_grad_enabled(False)
    try:
        assert in_thread(lib.is_grad_enabled)
    finally:
        lib.set_grad_enabled(True)
    in_thread(lambda: lib.set_grad_enabled(False))
    assert lib.is_grad_enabled()


def test_inference_mode_is_the_threads_own(lib):
    with lib.inference_mode():
        assert not in_thread(lib.is_inference_mode_enabled)
        assert not in_thread(lambda: lib.ones(2).is_inference())


def test_recording_in_one_thread_only(lib):
    x = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        here = x * 2
        there = in_thread(lambda: x * 2)
    assert not here.requires_grad
    assert there.requires_grad


def test_saved_tensor_hooks_are_the_threads_own(lib):
    packed = []
    x = lib.ones(3, requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t) or t, lambda t: t
    ):
        in_thread(lambda: x * x)
        assert not packed
        x * x
    assert packed


def test_multithreading_flag_is_the_threads_own():
    with wengert.autograd.set_multithreading_enabled(False):
        assert in_thread(wengert.autograd.is_multithreading_enabled)
        assert not wengert.autograd.is_multithreading_enabled()


def test_disabled_saved_tensor_hooks_are_the_threads_own():
    def enter():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return True

    with graph.disable_saved_tensors_hooks("not here"):
        assert in_thread(enter)
        with pytest.raises(RuntimeError, match="not here"):
            enter()


def test_running_backward_is_the_threads_own():
    x = wengert.ones(3, requires_grad=True)
    seen = []

    def hook(g):
        seen.append((graph.current_graph_task_id(), in_thread(graph.current_graph_task_id)))

    x.register_hook(hook)
    (x * 2).sum().backward()
    ((here, there),) = seen
    assert here >= 0 and there == -1


def test_threads_that_alternate_keep_their_modes():
    """The look-up remembers the last thread; it must notice every switch."""
    turns = [threading.Semaphore(1), threading.Semaphore(0)]
    failures = []

    def work(number, context):
        with context():
            for _ in range(200):
                if not turns[number].acquire(timeout=SECONDS):
                    failures.append("timeout")
                    return
                if wengert.is_grad_enabled() != (context is contextlib.nullcontext):
                    failures.append(number)
                if (wengert.ones(1, requires_grad=True) * 2).requires_grad != (number == 0):
                    failures.append(number)
                turns[1 - number].release()

    contexts = (contextlib.nullcontext, wengert.no_grad)
    threads = [
        threading.Thread(target=work, args=(number, context), daemon=True)
        for number, context in enumerate(contexts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not failures


def test_an_exception_leaves_the_mode(lib):
    def fail():
        with lib.no_grad():
            raise KeyError

    def work():
        with pytest.raises(KeyError):
            fail()
        return lib.is_grad_enabled()

    assert in_thread(work)


# Life of a state ----------------------------------------------------------------------------------


def test_one_object_per_thread():
    assert thread_state() is thread_state()
    assert isinstance(thread_state(), ThreadState)
    assert thread_state().ident == threading.get_ident()
    here = thread_state()
    assert in_thread(lambda: thread_state() is not here)


def test_a_new_thread_with_an_old_identity_starts_afresh():
    """Identities are given again after a thread's end: nothing may be left behind."""

    def work():
        state = thread_state()
        fresh = (
            wengert.is_grad_enabled()
            and not wengert.is_inference_mode_enabled()
            and not state.saved_hooks
            and state.sequence == 0
            and state.graph_task is None
        )
        wengert.set_grad_enabled(False)
        graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()
        wengert.inference_mode().__enter__()
        wengert.enable_grad().__enter__()
        wengert.ones(2, requires_grad=True) * 2
        return fresh

    for _ in range(50):
        assert in_thread(work)


def test_states_of_dead_threads_are_dropped():
    gc.collect()
    before = sum(type(value) is ThreadState for value in gc.get_objects())
    for _ in range(20):
        in_thread(lambda: (wengert.ones(2, requires_grad=True) * 2).sum().backward())
    gc.collect()
    after = sum(type(value) is ThreadState for value in gc.get_objects())
    assert after <= before + 1


def test_sequence_numbers_count_per_thread():
    def numbers():
        x = wengert.ones(2, requires_grad=True)
        return [(x * 2).grad_fn._sequence_nr() for _ in range(3)]

    assert in_thread(numbers) == [0, 1, 2]
    first, second, third = numbers()
    assert (second, third) == (first + 1, first + 2)


def test_inherit_copies_the_modes():
    parent = ThreadState(0)
    parent.grad_enabled = False
    parent.multithreading = False
    parent.saved_hooks = [("pack", "unpack")]
    parent.saved_hooks_disabled = "why"

    def work():
        state = inherit(parent)
        state.saved_hooks.append("more")
        return (
            state is thread_state(),
            state.grad_enabled,
            state.multithreading,
            state.saved_hooks_disabled,
        )

    assert in_thread(work) == (True, False, False, "why")
    assert parent.saved_hooks == [("pack", "unpack")]


# Generators ---------------------------------------------------------------------------------------


def test_interleaved_generators(lib):
    def steps():
        while True:
            yield lib.is_grad_enabled()

    off, on = lib.no_grad()(steps)(), lib.enable_grad()(steps)()
    assert [next(off), next(on), next(off), next(on)] == [False, True, False, True]
    assert lib.is_grad_enabled()
    off.close()
    on.close()


def test_generator_that_changes_its_own_mode(lib):
    """What the body sets stays in the body."""

    @lib.no_grad()
    def steps():
        lib.set_grad_enabled(True)
        yield lib.is_grad_enabled()
        yield lib.is_grad_enabled()

    walk = steps()
    assert next(walk)
    assert lib.is_grad_enabled()
    next(walk)
    walk.close()
    assert lib.is_grad_enabled()


def test_generator_advanced_on_another_thread(lib):
    @lib.no_grad()
    def steps():
        while True:
            yield lib.is_grad_enabled()

    walk = steps()
    assert next(walk) is False
    assert in_thread(lambda: (next(walk), lib.is_grad_enabled())) == (False, True)
    assert next(walk) is False and lib.is_grad_enabled()
    walk.close()


def test_plain_generator_takes_the_mode_of_the_caller(lib):
    def steps():
        while True:
            yield lib.is_grad_enabled()

    walk = steps()
    assert next(walk)
    with lib.no_grad():
        assert not next(walk)
    assert next(walk)


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "inference_mode"])
def test_recording_inside_a_generator(lib, name):
    x = lib.ones(2, requires_grad=True)

    @getattr(lib, name)()
    def steps():
        for _ in range(2):
            yield (x * 2).requires_grad

    assert list(steps()) == [name == "enable_grad"] * 2
    assert (x * 2).requires_grad


# What is active -----------------------------------------------------------------------------------


def test_layers_are_counted_again_after_every_change():
    from wengert.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    counts = []

    def note(x):
        state = thread_state()
        assert state.layers == state.layers_with(state.profiler)
        counts.append(state.layers)
        return x.sin()

    x = wengert.ones(2)
    assert thread_state().layers == 0
    with Mode(), wengert.autograd.forward_ad.dual_level(), wengert.autograd.profiler.profile():
        note(x)
        wengert.vmap(note)(x)
        wengert.func.jvp(note, (x,), (x,))
        with Mode():
            note(x)
        note(x)
    assert counts == [3, 4, 4, 4, 3]
    with pytest.raises(ZeroDivisionError), Mode():
        wengert.func.grad(lambda x: note(x) / (1 // 0))(x.sum())
    assert thread_state().layers == 0
