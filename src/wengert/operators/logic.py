"""Logic, bits and questions about numbers: elementwise operators without derivatives."""

from __future__ import annotations

from typing import Any

from ..core.dtypes import from_numpy
from ..transforms.batching.rules import elementwise as batched
from .declare import keep, nondifferentiable, promote

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "isfinite", "isinf", "isnan", "logical_and", "logical_not", "logical_or",
    "logical_xor",
]  # fmt: skip


def _logical(name: str, operands: str, doc: str, **facts: Any) -> Any:
    return nondifferentiable(
        f"{name}({operands}) -> Tensor",
        name,
        broadcasts=True,
        dtype=keep,
        inplace=True,
        batch=batched,
        doc=doc,
        **facts,
    )


_TWO = "Tensor self, Tensor other"
logical_and = _logical("logical_and", _TWO, "Both are non-zero.", commutes=True)
logical_or = _logical("logical_or", _TWO, "One is non-zero.", commutes=True)
logical_xor = _logical("logical_xor", _TWO, "Exactly one is non-zero.", commutes=True)
logical_not = _logical("logical_not", "Tensor self", "Is zero.", involution=True)


def _bitwise(
    word: str, ufunc: str, operands: str, dtype: Any, summary: str, **facts: Any
) -> Any:
    kinds = "iu" if word.endswith("shift") else "biu"

    def kernel(xp: Any, *args: Any) -> Any:
        for a in args:
            if hasattr(a, "dtype") and a.dtype.kind not in kinds:
                kind = from_numpy(a.dtype).scalar_name
                raise NotImplementedError(f"\"{word}_cpu\" not implemented for '{kind}'")
        return getattr(xp, ufunc)(*args)

    return nondifferentiable(
        f"{word}({operands}) -> Tensor",
        kernel,
        broadcasts=True,
        dtype=dtype,
        inplace=True,
        batch=batched,
        doc=summary,
        **facts,
    )


bitwise_and = _bitwise(
    "bitwise_and", "bitwise_and", _TWO, promote, "Bits set in both.",
    overload="Tensor", commutes=True,
)
bitwise_or = _bitwise(
    "bitwise_or", "bitwise_or", _TWO, promote, "Bits set in one.",
    overload="Tensor", commutes=True,
)
bitwise_xor = _bitwise(
    "bitwise_xor", "bitwise_xor", _TWO, promote, "Bits set in exactly one.",
    overload="Tensor", commutes=True,
)
bitwise_not = _bitwise(
    "bitwise_not", "invert", "Tensor self", keep, "Bits inverted.",
    numpy="invert", involution=True, out="exact",
)
bitwise_left_shift = _bitwise(
    "bitwise_left_shift", "left_shift", _TWO, promote, "Bits moved left.",
    overload="Tensor", numpy="left_shift", reflected="__rlshift__",
)  # fmt: skip
bitwise_right_shift = _bitwise(
    "bitwise_right_shift", "right_shift", _TWO, promote, "Bits moved right.",
    overload="Tensor", numpy="right_shift", reflected="__rrshift__",
)  # fmt: skip


def _predicate(name: str, doc: str) -> Any:
    return nondifferentiable(
        f"{name}(Tensor self) -> Tensor", name, dtype=keep, batch=batched, doc=doc
    )


isnan = _predicate("isnan", "Whether elements are NaN.")
isinf = _predicate("isinf", "Whether elements are infinite.")
isfinite = _predicate("isfinite", "Whether elements are neither infinite nor NaN.")
