"""A forked child starts with a working engine."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import pytest

import wengert

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

CHILD_SECONDS = 300


def check_backward():
    """A few gradients that must come out right anywhere."""
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (second,) = wengert.autograd.grad((x**3).sum(), x, create_graph=True)
    (third,) = wengert.autograd.grad(second.sum(), x)
    assert third.tolist() == [6.0, 12.0]


def succeeds_in_time(pid):
    """Wait for a child, kill it when it hangs, and return whether it exited with 0."""
    deadline = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def run_in_child(function):
    """Fork, run function in the child and return whether it succeeded in time."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return succeeds_in_time(pid)


def test_child_of_fresh_process():
    assert run_in_child(check_backward)


def test_child_after_backward_in_the_parent():
    check_backward()
    assert run_in_child(check_backward)
    check_backward()


def test_child_continues_a_graph_of_the_parent():
    x = wengert.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()

    def finish():
        y.backward()
        assert x.grad.tolist() == [2.0, 4.0]

    assert run_in_child(finish)
    assert x.grad is None
    finish()


def test_fork_inside_a_hook():
    x = wengert.tensor(3.0, requires_grad=True)
    succeeded = []
    record = wengert.enable_grad()(check_backward)
    x.register_hook(lambda g: succeeded.append(run_in_child(record)))
    (x * x).backward()
    assert succeeded == [True]
    assert x.grad.item() == 6.0


def test_child_forked_inside_a_hook_finishes_the_running_backward():
    x = wengert.tensor(3.0, requires_grad=True)
    y = x * x
    pids = []
    y.register_hook(lambda g: pids.append(os.fork()))
    try:
        y.backward()
    finally:
        if pids[0] == 0:
            os._exit(0 if x.grad is not None and x.grad.item() == 6.0 else 1)
    assert succeeds_in_time(pids[0])
    assert x.grad.item() == 6.0


def test_fork_while_another_thread_is_in_backward():
    inside, leave = threading.Event(), threading.Event()
    x = wengert.tensor(3.0, requires_grad=True)

    def wait(g):
        inside.set()
        assert leave.wait(CHILD_SECONDS)

    x.register_hook(wait)
    y = x * x
    thread = threading.Thread(target=y.backward, daemon=True)
    thread.start()
    assert inside.wait(CHILD_SECONDS)
    assert run_in_child(check_backward)
    leave.set()
    thread.join(CHILD_SECONDS)
    assert x.grad.item() == 6.0


def test_fork_while_other_threads_accumulate():
    x = wengert.tensor([1.0, 2.0], dtype=wengert.float64, requires_grad=True)
    stop = threading.Event()
    rounds = []

    def work():
        count = 0
        while not stop.is_set():
            (x * 1).sum().backward()
            count += 1
        rounds.append(count)

    def use_shared_leaf():
        check_backward()
        x.grad = None
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0, 4.0]

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        results = [run_in_child(use_shared_leaf) for _ in range(10)]
    finally:
        stop.set()
    for thread in threads:
        thread.join(CHILD_SECONDS)
    assert results == [True] * 10
    assert x.grad.tolist() == [float(sum(rounds))] * 2


def test_child_starts_threads_of_its_own():
    check_backward()

    def work():
        errors = []

        def guarded():
            try:
                check_backward()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(CHILD_SECONDS)
        assert not errors
        assert not any(thread.is_alive() for thread in threads)

    assert run_in_child(work)


def test_child_after_deep_nesting_in_the_parent():
    def nest(depth):
        x = wengert.tensor(2.0, requires_grad=True)

        def deeper(g):
            if depth:
                with wengert.enable_grad():
                    nest(depth - 1)

        x.register_hook(deeper)
        (x * x).backward()
        assert x.grad.item() == 4.0

    nest(100)
    assert run_in_child(lambda: nest(100))
    nest(100)


def test_grandchild():
    assert run_in_child(lambda: run_in_child(check_backward) or os._exit(1))


def test_grad_mode_is_inherited():
    def check():
        assert not wengert.is_grad_enabled()

    with wengert.no_grad():
        assert run_in_child(check)
    assert run_in_child(check_backward)


def test_forked_workers():
    context = multiprocessing.get_context("fork")

    def work(value, channel):
        x = wengert.tensor(value, requires_grad=True)
        (x * x).backward()
        channel.send(x.grad.item())

    gradients = []
    for i in range(3):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(float(i), sender), daemon=True)
        process.start()
        assert receiver.poll(CHILD_SECONDS)
        gradients.append(receiver.recv())
        process.join(CHILD_SECONDS)
    assert gradients == [0.0, 2.0, 4.0]


@pytest.mark.compiled_only
def test_processes_fork_while_threads_multiply():
    """Products on other threads tell BLAS how many threads it may use; forking must not wait."""
    program = (
        "import os, threading, time, wengert\n"
        "x, done = wengert.ones(500, 500), threading.Event()\n"
        "def multiply():\n"
        "    while not done.is_set(): x @ x\n"
        "others = [threading.Thread(target=multiply, daemon=True) for _ in range(2)]\n"
        "for other in others: other.start()\n"
        "for _ in range(40):\n"
        "    time.sleep(0.005)\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "done.set()\n"
        "for other in others: other.join()\n"
    )
    command = [sys.executable, "-W", "ignore", "-P", "-c", program]
    subprocess.run(command, check=True, timeout=CHILD_SECONDS / 3)
