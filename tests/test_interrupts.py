"""Ctrl-C, wherever it lands: no mode outlives its block.

Python runs signal handlers between instructions of Python code, so an exception can come between
any two lines, those that enter or leave a mode included.
"""

import gc
import random
import signal
import warnings

import pytest

import wengert
from wengert.autograd import forward_ad, graph, profiler
from wengert.autograd.grad_mode import _force_original_view_tracking
from wengert.core.state import ThreadState, anomaly, thread_state
from wengert.func import grad, jvp, vmap
from wengert.overrides import TorchFunctionMode
from wengert.overrides import _pop_mode_temporarily as without_innermost_function_mode
from wengert.utils import checkpoint
from wengert.utils._python_dispatch import (
    BaseTorchDispatchMode,
    _disable_current_modes,
    _pop_mode_temporarily,
)

LANDINGS = 1_500
NOT_A_MODE = {"ident", "sequence"}
FIELDS = sorted(
    name
    for name in dir(ThreadState)
    if not name.startswith("_") and not callable(getattr(ThreadState, name)) or name == "node"
)


def modes():
    """Everything that a mode may have changed."""
    state = thread_state()
    fields = {name: getattr(state, name) for name in FIELDS if name not in NOT_A_MODE}
    fields["anomaly"] = anomaly.enabled, anomaly.check_nan
    fields["device"] = wengert.get_default_device()
    fields["watched"] = wengert.core.state.overriding.possible
    fields["checkpoint"] = checkpoint.recomputation._running.group, checkpoint._early_stop
    return fields


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def anomaly_detection():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return wengert.autograd.detect_anomaly()


DETECT = anomaly_detection()
MODES = {
    "no_grad": wengert.no_grad,
    "enable_grad": wengert.enable_grad,
    "inference_mode": wengert.inference_mode,
    "set_grad_enabled": lambda: wengert.set_grad_enabled(False),
    "set_multithreading_enabled": lambda: wengert.autograd.set_multithreading_enabled(False),
    "enforce_grad_layout_policy": lambda: wengert.autograd.enforce_grad_layout_policy(False),
    "view_tracking": lambda: _force_original_view_tracking(True),
    "saved_tensors_hooks": lambda: graph.saved_tensors_hooks(str, str),
    "save_on_cpu": graph.save_on_cpu,
    "disable_saved_tensors_hooks": lambda: graph.disable_saved_tensors_hooks("no"),
    "allow_mutation": graph.allow_mutation_on_saved_tensors,
    "dual_level": forward_ad.dual_level,
    "forward_grad": lambda: forward_ad._set_fwd_grad_enabled(False),
    "detect_anomaly": lambda: DETECT,
    "set_detect_anomaly": lambda: wengert.autograd.set_detect_anomaly(True),
    "profile": profiler.profile,
    "function_mode": FunctionMode,
    "dispatch_mode": BaseTorchDispatchMode,
    "no_dispatch_modes": _disable_current_modes,
    "no_function_overrides": wengert._C.DisableTorchFunction,
    "no_class_overrides": wengert._C.DisableTorchFunctionSubclass,
    "no_dispatch_by_class": wengert._C._DisableTorchDispatch,
    "below_autograd": wengert._C._AutoDispatchBelowAutograd,
    "device": lambda: wengert.device("meta"),
    "early_stop": lambda: checkpoint.set_checkpoint_early_stop(False),
    "one_backward": checkpoint.GraphExecGroup,
}
# Each of these is made anew in the `with` statement itself, as programs write it.
STATEMENTS = {
    "set_grad_enabled": "wengert.set_grad_enabled(False)",
    "set_multithreading_enabled": "wengert.autograd.set_multithreading_enabled(False)",
    "set_detect_anomaly": "wengert.autograd.set_detect_anomaly(True)",
}


def land_everywhere(block, landings=LANDINGS, span=15e-6):
    """Run `block` again and again, let an interrupt land somewhere, and compare the modes."""
    fired = False

    def interrupt(number, frame):
        nonlocal fired
        fired = True
        raise KeyboardInterrupt

    def run_until_fired():  # a loop's own jump may lie outside of the `try` around it
        while not fired:
            block()

    block()
    before, seed = modes(), random.Random(0)
    # Python cannot raise what lands in a callback of its collector, such as that of Hypothesis.
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for landing in range(landings):
            fired = False
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + span * seed.random())
                run_until_fired()
            except KeyboardInterrupt:
                pass
            after = modes()
            assert after == before, f"landing {landing}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        gc.callbacks[:] = callbacks


@pytest.mark.compiled_only
@pytest.mark.parametrize("name", MODES)
def test_no_mode_outlives_its_block(name):
    make = MODES[name]

    def block():
        with make():
            pass

    land_everywhere(block)


@pytest.mark.compiled_only
@pytest.mark.parametrize("name", STATEMENTS)
def test_switch_that_is_set_when_it_is_made(name):
    names = {"wengert": wengert}
    exec(f"def block():\n    with {STATEMENTS[name]}:\n        pass", names)
    land_everywhere(names["block"], landings=2 * LANDINGS)


@pytest.mark.compiled_only
def test_no_decorated_function_leaves_its_mode():
    @wengert.no_grad()
    @wengert.inference_mode()
    def function():
        return wengert.is_grad_enabled()

    @wengert.set_grad_enabled(False)
    def generator():
        yield 1
        yield 2

    land_everywhere(lambda: (function(), list(generator())))


@pytest.mark.compiled_only
@pytest.mark.parametrize(
    "transform",
    [
        lambda x: grad(lambda x: (x * x).sum())(x),
        lambda x: vmap(lambda x: x * 2)(x),
        lambda x: jvp(lambda x: x * x, (x,), (x,)),
        lambda x: vmap(grad(lambda x: x * x))(x),
    ],
    ids=["grad", "vmap", "jvp", "vmap of grad"],
)
def test_no_transform_leaves_its_level(transform):
    x = wengert.ones(2)
    land_everywhere(lambda: transform(x), span=400e-6)


@pytest.mark.compiled_only
@pytest.mark.parametrize("mode", [FunctionMode, BaseTorchDispatchMode])
def test_handlers_put_their_mode_back(mode):
    x = wengert.ones(2)

    def block():
        with mode(), mode():
            x.add(1)

    land_everywhere(block, span=60e-6)


@pytest.mark.compiled_only
def test_modes_put_aside_come_back():
    def block():
        with BaseTorchDispatchMode(), _pop_mode_temporarily():
            pass
        with FunctionMode(), without_innermost_function_mode():
            pass

    land_everywhere(block)


@pytest.mark.compiled_only
def test_forward_mode_and_backward():
    x = wengert.ones(2, requires_grad=True)

    def block():
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, x)
            forward_ad.unpack_dual(dual * dual)
        (x * x).sum().backward()
        x.grad = None

    land_everywhere(block, span=100e-6)


@pytest.mark.compiled_only
def test_selective_checkpoint():
    x = wengert.ones(2, requires_grad=True)

    def contexts():
        return checkpoint.create_selective_checkpoint_contexts([wengert.ops.aten.mul.Tensor])

    def block():
        out = checkpoint.checkpoint(
            lambda x: (x * x).sum(), x, use_reentrant=False, context_fn=contexts
        )
        out.backward()
        x.grad = None

    land_everywhere(block, span=500e-6)


@pytest.mark.compiled_only
def test_tracing():
    x = wengert.ones(2)
    land_everywhere(
        lambda: wengert.compiler.trace(lambda x: (x * 2).sum(), x), landings=300, span=2e-3
    )
