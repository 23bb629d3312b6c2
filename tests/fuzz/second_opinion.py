"""Transforms by reverse mode and loops alone: PyTorch's second opinion on its own rules.

Its rules for forward mode and for batches are written apart from those for gradients. Where the
two contradict each other, one of them is a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class SecondOpinion:
    """A library whose `func` knows reverse mode only, and takes one row or example at a time."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        own = lib.func

        def jacrev(f: Callable, argnums: Any = 0, *, chunk_size: int | None = None) -> Callable:
            return own.jacrev(f, argnums, chunk_size=1)

        def hessian(f: Callable, argnums: Any = 0) -> Callable:
            return jacrev(jacrev(f, argnums), argnums)

        def jvp(f: Callable, primals: tuple, tangents: tuple) -> tuple:
            value, pull = own.vjp(f, *primals)
            nothing = _each(lib.zeros_like, value)
            _, pull_again = own.vjp(pull, nothing)
            return value, pull_again(tuple(tangents))[0]

        self.func = SimpleNamespace(
            grad=own.grad, grad_and_value=own.grad_and_value, vjp=own.vjp, jvp=jvp, jacrev=jacrev,
            jacfwd=jacrev, hessian=hessian, vmap=own.vmap, linearize=own.linearize,
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)


def _each(function: Callable, value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_each(function, item) for item in value)
    return function(value)
