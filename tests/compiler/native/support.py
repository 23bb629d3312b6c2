"""What tests of native code share."""

import numpy as np

import wengert
from wengert.compiler import trace
from wengert.compiler.interpret.program import Program
from wengert.compiler.native.program import NativeProgram


def programs_of(function, *inputs):
    """A traced function as a native program and as an interpreted one."""
    graph = trace(function, *inputs).graph
    return NativeProgram(graph), Program(graph)


def reasons(program):
    """Why nodes of a program are called as they are, by kind."""
    found = {}
    for variant in program.variants.values():
        found.update({} if variant is None else variant.interface.reasons)
    return found


def assert_alike(mine, its, tolerance):
    """Results have the same kinds and nearly the same values; NaN where the other is NaN."""
    assert len(mine) == len(its)
    for a, b in zip(mine, its):
        assert a.dtype is b.dtype and a.shape == b.shape
        x, y = ((t.float() if t.dtype.itemsize == 2 else t).detach().numpy() for t in (a, b))
        scale = float(np.max(np.abs(y[np.isfinite(y)]), initial=1.0)) if y.dtype.kind == "f" else 1
        assert np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True), (x, y)


def assert_native(function, *inputs, tolerance=1e-12):
    """A function runs natively as a whole, and gives what the interpreter gives."""
    native, interpreted = programs_of(function, *inputs)
    assert_alike(native(*inputs), interpreted(*inputs), tolerance)
    assert reasons(native) == {}
    return native


def randn(*shape, seed=0, dtype="float64"):
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return wengert.from_numpy(np.asarray(values))
