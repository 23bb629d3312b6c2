"""Comparisons, and the zeros that rules need: elementwise operators without derivatives."""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..core.tensor import Tensor
from . import shapes
from .declare import ELEMENTWISE, differentiable_in_place, nondifferentiable, promote

__all__ = ["eq", "ge", "gt", "le", "lt", "ne"]


def _comparison(
    word: str, ufunc: str, summary: str, refuses: str = "", **facts: Any
) -> Any:
    operator = nondifferentiable(
        f"{word}(Tensor self, Tensor other) -> Tensor",
        ufunc,
        broadcasts=True,
        dtype=promote,
        refuses=refuses,
        batch=ELEMENTWISE,
        overload="Tensor",
        doc=summary,
        **facts,
    )
    differentiable_in_place(
        operator,
        {"self": lambda t: zeros_like(t), "other": lambda t: zeros_like(t)},
        lambda self, other: f"{word.title()}Backward{int(isinstance(other, Tensor))}",
    )
    return operator


eq = _comparison("eq", "equal", "Whether elements are equal.", numpy="equal", commutes=True)
ne = _comparison(
    "ne", "not_equal", "Whether elements differ.", also="not_equal", commutes=True
)
lt = _comparison("lt", "less", "Whether elements are smaller.", "c", also="less")
le = _comparison(
    "le", "less_equal", "Whether elements are smaller or equal.", "c", also="less_equal"
)
gt = _comparison("gt", "greater", "Whether elements are larger.", "c", also="greater")
ge = _comparison(
    "ge", "greater_equal", "Whether elements are larger or equal.", "c", also="greater_equal"
)

zeros_like = nondifferentiable(
    "_zeros_like(Tensor self) -> Tensor",
    lambda xp, x: xp.zeros(x.shape, x.dtype),
    shape=shapes.as_first,
    batch=ELEMENTWISE,
    doc="Zeros in the shape and dtype of a tensor, as gradient rules need them.",
)
new_zeros = nondifferentiable(
    "_new_zeros(Tensor self, int[] size) -> Tensor",
    lambda xp, x, size: xp.zeros(size, x.dtype),
    meta=lambda x, size: meta.empty(size, x.dtype),
    batch=lambda operator, args, dims: (operator.call(args), None),
    doc="Zeros of a size in the dtype of a tensor, as gradient rules need them.",
)
