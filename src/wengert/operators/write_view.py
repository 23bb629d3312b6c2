"""Writing to a part of a tensor without changing it: what an in-place change of a view means."""

from __future__ import annotations

from ast import literal_eval
from functools import lru_cache
from typing import Any

from ..core.registry import operator_named
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.moving import at_front, batch_size, padded, with_batch
from .copying import pack
from .declare import primitive
from .getitem import tangent_of
from .pointwise import new_zeros

__all__ = []


def step_text(name: str, args: tuple) -> str:
    """One step towards a view, such as ``select(0, 1)``."""
    return f"{name}{args!r}"


@lru_cache(maxsize=1024)
def _step(text: str) -> tuple[Any, tuple]:
    name, _, args = text.partition("(")
    return operator_named(name), literal_eval("(" + args)


def _write_view(xp: Any, x: Any, src: Any, steps: tuple) -> Any:
    out = x.copy("K")
    part = out
    for step in steps:
        operator, args = _step(step)
        part = operator.kernel(xp, part, *args)
    part[...] = src
    return out


def view_by(x: Tensor, steps: tuple) -> Tensor:
    """The view of `x` that the steps lead to."""
    for step in steps:
        operator, args = _step(step)
        x = operator.call((x, *args))
    return x


def _write_view_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """Every step is taken by the rule of its operator."""
    x, src, steps = args
    out = part = with_batch(x, dims[0], batch_size(args, dims)).clone()
    dim = 0
    for step in steps:
        view, rest = _step(step)
        part, dim = view.batch_rule(view, (part, *rest), (dim, *[None] * len(rest)))
    part = at_front(part, dim)
    part.copy_(padded(src, dims[1], part.array.ndim - 1) if dims[1] is not None else src)
    return out, 0


write_view: Operator = primitive(
    "_write_view(Tensor self, Tensor src, str[] steps) -> Tensor",
    _write_view,
    {
        "self": lambda g, src_shape, steps: write_view.call(
            (pack.call1(g), new_zeros.call((g, src_shape)), steps)
        ),
        "src": lambda g, steps: view_by(pack.call1(g), steps),
    },
    lambda tangents, self, src, steps: write_view.call(
        (tangent_of(tangents, "self", self), tangent_of(tangents, "src", src), steps)
    ),
    widens=False,
    meta=lambda x, src, steps: x.copy("K"),
    batch=_write_view_batched,
    doc="A copy in which the view that the steps lead to has other values.",
)
