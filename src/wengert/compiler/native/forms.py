"""The scalar form of an elementwise operator: its kernel, called with elements for arrays."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.scalar.expressions import DTYPES, Expressions, Scalar, Unsupported
from ...core.scalar.namespace import scalar_namespace
from ..ir.literals import literal_key
from ..ir.remembered import Remembered

#: Instructions, operands included, of what is worth a function.
LONG_FORM = 10


class Form:
    """Instructions with ``input`` for the operands, and which of them are results."""

    def __init__(self, code: list, results: list[int], kinds: list[str]) -> None:
        self.code = code
        self.results = results
        self.kinds = kinds

    @property
    def is_function(self) -> bool:
        """Whether a call of it is shorter than it is itself."""
        return len(self.code) > LONG_FORM and len(self.results) == 1

    @functools.cached_property
    def name(self) -> str:
        """What it is called by, in all processes."""
        return "form" + hashlib.sha256(repr((self.code, self.results)).encode()).hexdigest()[:16]


class Operand:
    """Stands among the arguments of an operator for an array: its type, and whether it is 0-d."""

    __slots__ = ("kind", "is_number")

    def __init__(self, kind: str, is_number: bool) -> None:
        self.kind = kind
        self.is_number = is_number


_FORMS: Remembered[Form | str] = Remembered(1024)


def form_of(operator: Any, arguments: Sequence[Any], goals: Sequence[Any]) -> Form:
    """The form of an operator for arguments, in which operands stand for arrays.

    `goals` are the dtypes of its results. Raises `Unsupported` where there is none.
    """
    key = (
        operator,
        tuple([(a.kind, a.is_number) if isinstance(a, Operand) else None for a in arguments]),
        literal_key(tuple([None if isinstance(a, Operand) else a for a in arguments])),
        tuple(goals),
    )
    found = _FORMS.get(key)
    if found is None:
        try:
            found = _made(operator, arguments, goals)
        except Unsupported as error:
            found = str(error)
        except Exception as error:
            # A kernel that cannot do with elements may fail in any way; the operator itself, which
            # is called instead, then raises what is wrong with its arguments, if anything is.
            found = f"{type(error).__name__}: {error}"
        _FORMS[key] = found
    if isinstance(found, str):
        raise Unsupported(found)
    return found


def _made(operator: Any, arguments: Sequence[Any], goals: Sequence[Any]) -> Form:
    block = Expressions()
    given: list[Any] = []
    kinds: list[str] = []
    for a in arguments:
        if isinstance(a, Operand):
            at = block.write("input", a.kind, len(kinds))
            given.append(Scalar(block, at, 0 if a.is_number else 1))
            kinds.append(a.kind)
        else:
            given.append(a)
    args = tuple(given)
    with np.errstate(all="ignore"):
        if operator.dtype_rule is not None:
            args = operator.promoted(args)
        out = operator.compute(scalar_namespace, args)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    results = []
    for value, goal in zip(outs, goals, strict=True):
        if not isinstance(value, Scalar):
            value = _number(block, value, goal)
        if value.dtype != goal:
            raise Unsupported(f"a result of {value.dtype} in place of {goal}")
        results.append(value.at)
    return Form(block.code, results, kinds)


def _number(block: Expressions, value: Any, goal: Any) -> Scalar:
    kind = next((name for name, dtype in DTYPES.items() if dtype == goal), None)
    if kind is None or not isinstance(value, (bool, int, float, np.generic)):
        raise Unsupported("a result that is no element")
    return Scalar(block, block.constant(value, kind))
