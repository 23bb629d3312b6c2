"""Cost of calling a custom operator on small tensors, as a ratio to PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from harness import Program, Work, run_benchmark

LOOP = 100
TARGET = 0.5


def mul_operator(lib: Any) -> Any:
    """A product of two tensors with its derivative."""
    mul = lib.library.custom_op(
        "benchmark::mul",
        lambda x, y: x * y,
        mutates_args=(),
        schema="(Tensor x, Tensor y) -> Tensor",
    )

    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, grad: Any) -> tuple:
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    mul.register_autograd(backward, setup_context=setup_context)
    return mul


def scale_operator(lib: Any) -> Any:
    """A product with numbers, one of them keyword-only; ctx keeps plain attributes."""
    scale = lib.library.custom_op(
        "benchmark::scale",
        lambda x, factor, *, shift: x * factor + shift,
        mutates_args=(),
        schema="(Tensor x, float factor, *, float shift=1.0) -> Tensor",
    )

    def setup_context(ctx: Any, inputs: tuple, keyword_only_inputs: dict, output: Any) -> None:
        ctx.factor = inputs[1]

    def backward(ctx: Any, grad: Any) -> tuple:
        return grad * ctx.factor, None

    scale.register_autograd(backward, setup_context=setup_context)
    return scale


def lists_operator(lib: Any) -> Any:
    """A list of tensors in and out."""
    twice = lib.library.custom_op(
        "benchmark::twice",
        lambda xs: [x * 2 for x in xs],
        mutates_args=(),
        schema="(Tensor[] xs) -> Tensor[]",
    )
    twice.register_autograd(lambda ctx, grads: [g * 2 for g in grads])
    return twice


def pair(lib: Any) -> tuple[Any, Any]:
    """Two small leaves."""
    x = lib.tensor([0.5, -1.0, 2.0, 0.25], requires_grad=True)
    y = lib.tensor([1.5, 0.75, -0.5, 1.0], requires_grad=True)
    return x, y


def mul_forward(lib: Any) -> Work:
    """A recorded call, its node freed at once."""
    mul = mul_operator(lib)
    x, y = pair(lib)

    def run() -> Any:
        for _ in range(LOOP):
            product = mul(x, y)
        return product

    return Work(run)


def mul_unrecorded(lib: Any) -> Work:
    """The same where nothing requires grad."""
    mul = mul_operator(lib)
    x, y = (t.detach() for t in pair(lib))

    def run() -> Any:
        for _ in range(LOOP):
            product = mul(x, y)
        return product

    return Work(run)


def mul_forward_backward(lib: Any) -> Work:
    """A chain of recorded calls and its backward."""
    mul = mul_operator(lib)
    x, y = pair(lib)

    def run() -> Any:
        x.grad = y.grad = None
        out = x
        for _ in range(LOOP):
            out = mul(out, y)
        out.sum().backward()
        return [x.grad, y.grad]

    return Work(run)


def keyword_forward(lib: Any) -> Work:
    """A recorded call with a number and a keyword-only argument."""
    scale = scale_operator(lib)
    x, _ = pair(lib)

    def run() -> Any:
        for _ in range(LOOP):
            out = scale(x, 2.0, shift=0.5)
        return out

    return Work(run)


def lists_forward(lib: Any) -> Work:
    """A recorded call with a list of two tensors."""
    twice = lists_operator(lib)
    x, y = pair(lib)

    def run() -> Any:
        for _ in range(LOOP):
            out = twice([x, y])
        return out

    return Work(run)


PROGRAMS = [
    Program("mul_forward", mul_forward, TARGET, operations=LOOP),
    Program("mul_unrecorded", mul_unrecorded, TARGET, operations=LOOP),
    Program("mul_forward_backward", mul_forward_backward, TARGET, operations=LOOP),
    Program("keyword_forward", keyword_forward, TARGET, operations=LOOP),
    Program("lists_forward", lists_forward, TARGET, operations=LOOP),
]


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__, PROGRAMS))
