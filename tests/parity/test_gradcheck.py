"""gradcheck and gradgradcheck on a grid of right and wrong functions: the verdicts of PyTorch."""

import importlib
import sys

import pytest

from parity.outcomes import libraries, outcome

PHRASES = (
    "Jacobian mismatch for output 0 with respect to input 0",
    "Jacobian mismatch for output 1 with respect to input 0",
    "computed with forward mode mismatch",
    "While considering the real part of complex outputs only",
    "While considering the imaginary part of complex outputs only",
    "While considering the real part of complex inputs only",
    "Backward is not reentrant",
    "backward not multiplied by grad_output",
    "numerical:",
    "analytical:",
)


class Calls:
    count = 0


def hooked(x, hook):
    y = x * 1
    if y.requires_grad:
        y.register_hook(hook)
    return y


def unsteady(x, size):
    """Doubles; every other backward is off by `size`."""

    def hook(gradient):
        Calls.count += 1
        return gradient + size * (Calls.count % 2)

    return hooked(x, hook) * 2


FUNCTIONS = {
    "square": lambda lib, x: x * x,
    "scalar": lambda lib, x: x.sum() ** 2,
    "two": lambda lib, x: (x * x, x.exp()),
    "list": lambda lib, x: [x * x, x.exp()],
    "partly constant": lambda lib, x: (x * 2, lib.ones(2, dtype=lib.float64)),
    "unused": lambda lib, x: (x[0] * 1, x[1] * 1),
    "wrong": lambda lib, x: hooked(x, lambda g: g * 1.5) * x,
    "wrong second output": lambda lib, x: (x * 2, hooked(x, lambda g: g * 1.5) * 2),
    "slightly wrong": lambda lib, x: hooked(x, lambda g: g * (1 + 5e-4)) * 2,
    "not multiplied": lambda lib, x: hooked(x, lambda g: lib.ones_like(g)).sum(),
    "unsteady": lambda lib, x: unsteady(x, 1e-2),
    "slightly unsteady": lambda lib, x: unsteady(x, 1e-7),
    "view": lambda lib, x: x[1:],
    "in place": lambda lib, x: (x * 1).mul_(x),
    "zero": lambda lib, x: x * 0,
    "identity": lambda lib, x: x,
    "empty": lambda lib, x: x[:0],
    "absolute": lambda lib, x: x.abs(),
    "complex": lambda lib, x: x * (1 + 2j),
    "complex and real": lambda lib, x: (x * (1 + 2j), x.abs()),
    "real part": lambda lib, x: (x * (1 + 2j)).real,
    "conjugate": lambda lib, x: (x * 1j).conj() * x,
    "product": lambda lib, x: x.reshape(1, 2) @ x.reshape(2, 1),
    "low precision": lambda lib, x: x.to(lib.complex64) if x.is_complex() else x.float(),
}
ONCE_ONLY = {
    "constant": lambda lib, x: lib.ones(2, dtype=lib.float64),
    "detached": lambda lib, x: x.detach() * 2,
    "none": lambda lib, x: (),
}
OPTIONS = {
    "plain": {},
    "fast": {"fast_mode": True},
    "forward": {"check_forward_ad": True},
    "forward, fast": {"check_forward_ad": True, "fast_mode": True},
    "forward only": {"check_forward_ad": True, "check_backward_ad": False},
    "no exception": {"raise_exception": False},
    "no exception, fast": {"raise_exception": False, "fast_mode": True},
    "nondet_tol": {"nondet_tol": 1e-5},
    "undefined": {"check_undefined_grad": False},
    "dtypes": {"check_grad_dtypes": True},
    "loose": {"atol": 1, "rtol": 1},
    "wide step": {"eps": 1e-2, "atol": 1e-1},
    "masked": {"masked": True},
}
INPUTS = {
    "real": lambda lib: lib.tensor([0.5, 1.5], dtype=lib.float64, requires_grad=True),
    "complex": lambda lib: lib.tensor(
        [0.5 + 1j, 1.5 - 0.3j], dtype=lib.complex128, requires_grad=True
    ),
}


def compare(check, function, inputs, options):
    results = []
    for lib in libraries():
        importlib.import_module(f"{lib.__name__}.autograd.gradcheck")
        run = getattr(sys.modules[f"{lib.__name__}.autograd.gradcheck"], check)
        Calls.count = 0

        def call(run=run, lib=lib):
            return run(lambda x: function(lib, x), INPUTS[inputs](lib), **options)

        results.append(outcome(call, PHRASES))
    assert results[0] == results[1]


def applies(function, inputs, options):
    # PyTorch stumbles over the types in fast mode
    return function != "low precision" or not options.get("fast_mode")


@pytest.mark.parametrize("function", {**FUNCTIONS, **ONCE_ONLY})
@pytest.mark.parametrize("options", OPTIONS)
def test_gradcheck(function, options):
    given = {**FUNCTIONS, **ONCE_ONLY}[function]
    for inputs in INPUTS:
        if applies(function, inputs, OPTIONS[options]):
            compare("gradcheck", given, inputs, OPTIONS[options])


SECOND_ORDER = {"check_forward_ad": "check_fwd_over_rev", "check_backward_ad": "check_rev_over_rev"}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "options", ["plain", "fast", "forward", "forward, fast", "forward only", "no exception"]
)
def test_gradgradcheck(function, options):
    chosen = {SECOND_ORDER.get(key, key): value for key, value in OPTIONS[options].items()}
    if options == "forward only":
        chosen["check_undefined_grad"] = False
    for inputs in INPUTS:
        if applies(function, inputs, chosen):
            compare("gradgradcheck", FUNCTIONS[function], inputs, chosen)
