"""Comparisons: elementwise operators without derivatives."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .copying import zeros_like
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
