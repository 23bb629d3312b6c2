"""Cost of recording and differentiating small operations, as a ratio to PyTorch eager."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Program, Work, add_program_options, arguments, run_programs, select

SOURCE = Path(__file__).resolve().parent.parent / "src"
CHAIN = 1000
LOOP = 1000


def uniform(lib: Any, shape: tuple[int, ...], bound: float, seed: int) -> Any:
    """A float32 tensor of values in [-bound, bound], the same under every library."""
    generator = random.Random(seed)
    values = [generator.uniform(-bound, bound) for _ in range(math.prod(shape))]
    return lib.tensor(values, dtype=lib.float32).reshape(shape)


def leaf(lib: Any, shape: tuple[int, ...], bound: float, seed: int) -> Any:
    """The same as a leaf that requires grad."""
    return uniform(lib, shape, bound, seed).requires_grad_()


def take_gradients(parameters: list[Any]) -> list[Any]:
    """The gradients of the parameters, which are left without."""
    gradients = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    return gradients


def mul_forward(lib: Any) -> Work:
    """A recorded product of two 4-element leaves, its node freed at once."""
    x, y = leaf(lib, (4,), 1.0, 0), leaf(lib, (4,), 1.0, 1)

    def run() -> Any:
        for _ in range(LOOP):
            product = x * y
        return product

    return Work(run)


def near_one(lib: Any) -> Any:
    """A 4-element factor whose powers stay far from overflow and from denormal numbers."""
    return lib.tensor([0.9999, 1.0001, 1.0, 0.9998], dtype=lib.float32)


Chain = tuple[Callable[[], Any], list[Any]]


def constant_chain(lib: Any) -> Chain:
    """CHAIN products with a constant: one gradient per node."""
    x, factor = leaf(lib, (4,), 1.0, 0), near_one(lib)

    def build() -> Any:
        y = x
        for _ in range(CHAIN):
            y = y * factor
        return y

    return build, [x]


def learned_chain(lib: Any) -> Chain:
    """CHAIN products with a parameter: two gradients per node, one of them summed up."""
    x, factor = leaf(lib, (4,), 1.0, 0), near_one(lib).requires_grad_()

    def build() -> Any:
        y = x
        for _ in range(CHAIN):
            y = y * factor
        return y

    return build, [x, factor]


def mixed_chain(lib: Any) -> Chain:
    """CHAIN operations in turn: product, sum, tanh."""
    x, factor = leaf(lib, (4,), 1.0, 0), near_one(lib).requires_grad_()
    shift = leaf(lib, (4,), 0.01, 1)
    tanh = lib.tanh

    def build() -> Any:
        y = x * factor
        for _ in range((CHAIN - 1) // 3):
            y = tanh(y * factor + shift)
        return y

    return build, [x, factor, shift]


def custom_chain(lib: Any) -> Chain:
    """CHAIN calls of a custom Function that multiplies: both factors saved, two gradients."""
    x, factor = leaf(lib, (4,), 1.0, 0), near_one(lib).requires_grad_()

    class Multiply(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y, g * x

    def build() -> Any:
        y = x
        for _ in range(CHAIN):
            y = Multiply.apply(y, factor)
        return y

    return build, [x, factor]


def forward_backward(chain: Callable[[Any], Chain]) -> Callable[[Any], Work]:
    """Time the chain built, differentiated and destroyed."""

    def program(lib: Any) -> Work:
        build, parameters = chain(lib)
        seed = lib.ones(4)

        def run() -> list[Any]:
            build().backward(seed)
            return take_gradients(parameters)

        return Work(run)

    return program


def backward_alone(chain: Callable[[Any], Chain]) -> Callable[[Any], Work]:
    """Time the backward pass only: the chain is built before and destroyed after."""

    def program(lib: Any) -> Work:
        build, parameters = chain(lib)
        seed = lib.ones(4)

        def run(y: Any) -> list[Any]:
            y.backward(seed)
            return take_gradients(parameters)

        return Work(run, prepare=build)

    return program


def rk4_neural_ode(lib: Any) -> Work:
    """Gradient through 200 RK4 steps of a 4-dimensional state with a 4-16-4 tanh network."""
    state = leaf(lib, (1, 4), 1.0, 0)
    w1, b1 = leaf(lib, (4, 16), 0.5, 1), leaf(lib, (16,), 0.5, 2)
    w2, b2 = leaf(lib, (16, 4), 0.25, 3), leaf(lib, (4,), 0.25, 4)
    addmm, tanh = lib.addmm, lib.tanh
    step = 0.01

    def slope(y: Any) -> Any:
        return addmm(b2, tanh(addmm(b1, y, w1)), w2)

    def run() -> list[Any]:
        y = state
        for _ in range(200):
            k1 = slope(y)
            k2 = slope(y + k1 * (step / 2))
            k3 = slope(y + k2 * (step / 2))
            k4 = slope(y + k3 * step)
            y = y + (k1 + (k2 + k3) * 2 + k4) * (step / 6)
        (y * y).sum().backward()
        return take_gradients([state, w1, b1, w2, b2])

    return Work(run)


def lstm(lib: Any) -> Work:
    """Gradient through 100 steps of an LSTM cell: batch 16, 32 inputs, hidden size 64."""
    batch, inputs, hidden, steps = 16, 32, 64, 100
    sequence = [uniform(lib, (batch, inputs), 1.0, 10 + step) for step in range(steps)]
    bound = hidden**-0.5
    w_input = leaf(lib, (inputs, 4 * hidden), bound, 0)
    w_hidden = leaf(lib, (hidden, 4 * hidden), bound, 1)
    bias = leaf(lib, (4 * hidden,), bound, 2)
    zero = lib.zeros(batch, hidden)
    addmm, sigmoid, tanh = lib.addmm, lib.sigmoid, lib.tanh

    def run() -> list[Any]:
        h = c = zero
        for x in sequence:
            gates = addmm(addmm(bias, x, w_input), h, w_hidden)
            i, f, g, o = gates.chunk(4, 1)
            c = sigmoid(f) * c + sigmoid(i) * tanh(g)
            h = sigmoid(o) * tanh(c)
        (h * h).mean().backward()
        return take_gradients([w_input, w_hidden, bias])

    return Work(run)


def mlp_adam_step(lib: Any) -> Work:
    """One step of Adam, written out, on a 2-16-16-1 network and a batch of 32."""
    points, labels = uniform(lib, (32, 2), 1.0, 0), uniform(lib, (32, 1), 1.0, 1)
    sizes = (2, 16, 16, 1)
    parameters = []
    for layer, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:], strict=False)):
        parameters.append(leaf(lib, (fan_in, fan_out), fan_in**-0.5, 2 + 2 * layer))
        parameters.append(leaf(lib, (fan_out,), fan_in**-0.5, 3 + 2 * layer))
    w1, b1, w2, b2, w3, b3 = parameters
    state = [(p, lib.zeros_like(p), lib.zeros_like(p)) for p in parameters]
    addmm, tanh = lib.addmm, lib.tanh
    rate, decay1, decay2, epsilon = 1e-3, 0.9, 0.999, 1e-8
    steps = 0

    def run() -> list[Any]:
        nonlocal steps
        error = addmm(b3, tanh(addmm(b2, tanh(addmm(b1, points, w1)), w2)), w3) - labels
        (error * error).mean().backward()
        steps += 1
        size = rate / (1 - decay1**steps)
        root = math.sqrt(1 - decay2**steps)
        with lib.no_grad():
            for parameter, first, second in state:
                gradient = parameter.grad
                first.mul_(decay1).add_(gradient, alpha=1 - decay1)
                second.mul_(decay2).add_(gradient * gradient, alpha=1 - decay2)
                denominator = second.sqrt().div_(root).add_(epsilon)
                parameter.add_(first / denominator, alpha=-size)
                parameter.grad = None
        return parameters

    return Work(run)


def small_powers(lib: Any) -> Work:
    """Gradients of x**3, x**4, x**-1 and x**-2 of 100,000 numbers, half of them negative."""
    x = leaf(lib, (100_000,), 2.0, 0)

    def run() -> list[Any]:
        for exponent in (3, 4, -1, -2):
            (x**exponent).sum().backward()
        return take_gradients([x])

    return Work(run)


PROGRAMS = [
    Program("mul_forward (per op)", mul_forward, 0.30, operations=LOOP),
    Program("chain_constant (per op)", forward_backward(constant_chain), 0.30, 1.3, CHAIN),
    Program("chain_learned (per op)", forward_backward(learned_chain), 0.30, 1.3, CHAIN),
    Program("chain_mixed (per op)", forward_backward(mixed_chain), 0.30, 1.3, CHAIN),
    Program("backward_constant (per op)", backward_alone(constant_chain), 0.30, operations=CHAIN),
    Program("backward_learned (per op)", backward_alone(learned_chain), 0.30, operations=CHAIN),
    Program("backward_mixed (per op)", backward_alone(mixed_chain), 0.30, operations=CHAIN),
    Program("chain_custom (per op)", forward_backward(custom_chain), 0.50, operations=CHAIN),
    Program("rk4_neural_ode", rk4_neural_ode, 0.45),
    Program("lstm", lstm, 0.45),
    Program("mlp_adam_step", mlp_adam_step, 0.45),
    Program("small_powers", small_powers, 1.5),
]


def main() -> int:
    """Run the programs; with --uncompiled those that have a target for the source tree."""
    parser = arguments(__doc__)
    add_program_options(parser)
    parser.add_argument(
        "--uncompiled", action="store_true", help="run the source tree instead of the installed one"
    )
    options = parser.parse_args()
    programs = select(PROGRAMS, options.only)
    if not options.uncompiled:
        return run_programs(programs, options)
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if path[:1] != [str(SOURCE)]:
        # The path must be in force when the interpreter starts: run this script again under it.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), *path])}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    if not options.only:
        programs = [program for program in programs if program.uncompiled_target is not None]
    return run_programs(programs, options, uncompiled=True)


if __name__ == "__main__":
    sys.exit(main())
