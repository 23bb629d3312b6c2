"""What tests of native loops share: numbers to compute with, and how results are compared."""

import os
import subprocess
import sys

import numpy as np
import pytest

import wengert

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def needs_loops(test):
    """Marks what only the compiled package has."""
    reason = "the loops exist in the compiled package only"
    return pytest.mark.compiled_only(
        pytest.mark.skipif(not wengert.__compiled__, reason=reason)(test)
    )


def run_with(instructions, program):
    """What a program prints in a process whose loops have these instructions."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, "WENGERT_INSTRUCTIONS": instructions},
    )  # fmt: skip
    return done.stdout


def sample(dtype, *shape, low=0.2):
    """Positive numbers, all different."""
    count = int(np.prod(shape))
    return (low + 0.37 * np.arange(count)).reshape(shape).astype(dtype)


def same(found, wanted, units=4):
    """Equal to a few units in the last place, in dtype and shape too."""
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=units * np.finfo(wanted.dtype).eps, atol=1e-37)
