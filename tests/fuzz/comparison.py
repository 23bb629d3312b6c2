"""Compares what two runs of a program have seen, and finds the first difference that counts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from fuzz.program import Program
from fuzz.runner import FIELDS, Seen

#: Relative tolerance by the coarsest dtype that takes part, for derivatives to third order.
TOLERANCES = {"float64": 1e-6, "float32": 4e-3, "half": 0.3}
COARSE = re.compile(r"\b(float32|complex64)\b")
COARSEST = re.compile(r"\b(float16|bfloat16|half)\b")
#: Helpers that make a graph: what it computes is compared, not how its results lie in memory.
GRAPHS = ("compiled", "cond", "while_loop", "scan", "map_rows")
OF_GRAPHS = ("shape", "dtype", "values", "grad", "value")
LARGE = {"float64": 1e8, "float32": 1e4, "half": 1e2}


#: Phrases of messages that programs match on: where PyTorch's message has one, ours has it too.
PHRASES = (
    "returns multiple views",
    "modified by an inplace operation",
    "a second time",
    "A different number of tensors was saved",
    "does not require grad",
    "appears to not have been used in the graph",
    "leaf Variable that requires grad",
    "view was created in no_grad mode",
    "doesn't match the broadcast shape",
    "more than one element of the written-to tensor",
    "can't retain_grad",
    "cannot register a hook",
    "leaf variables",
    "leaf variable has been moved into the graph interior",
    "leaf node was passed to _will_engine_execute_node",
    "Can't detach views in-place",
    "not possible to get the gradient edge",
    "post accumulate grad hooks cannot be registered on non-leaf",
    "derivative for aten::floor_divide",
    "Inplace update to inference tensor",
    "Inference tensors cannot be saved for backward",
)


def phrase(message: str) -> str:
    """The phrase of a message that both libraries share, if it has one."""
    if re.search("its base or another view of its base has|has been detached in-place", message):
        return "modified by an inplace operation"  # it depends on the order of two checks
    return next((known for known in PHRASES if known in message), "")


@dataclass
class Difference:
    """One thing that two libraries show differently.

    `before` has the messages of the errors that the expected run has met so far; `integers` tells
    whether an integer tensor requires grad at its end, as PyTorch lets it; `laid_out` whether a
    tensor has been seen to lie otherwise in memory.
    """

    step: int
    field: str
    name: str
    ours: Any
    theirs: Any
    dtype: str
    source: str
    program: Program
    before: list[str]
    integers: bool
    laid_out: bool = False

    def __str__(self) -> str:
        where = f" of {self.name}" if self.name else ""
        return f"{self.field}{where}: wengert {self.ours!r}, expected {self.theirs!r}"


def differences(program: Program, ours: list[Seen], theirs: list[Seen]):
    """All differences, in the order of the steps."""
    precision = Precision(program.text)
    before: list[str] = []
    graphs = program.uses(*GRAPHS)
    integers = any(_requires_grad_wrongly(seen) for _, seen in theirs[-1].made)
    for number, (mine, other) in enumerate(zip(ours, theirs)):
        source = program.steps[number].source if number < len(program.steps) else "end"

        def found(field, name, a, b, dtype="", number=number, source=source):
            return Difference(number, field, name, a, b, dtype, source, program, before, integers)

        if other.error:
            before.append(other.error.message)

        if (mine.error and mine.error.kind) != (other.error and other.error.kind):
            yield found("error", "", mine.error, other.error)
        elif mine.error and phrase(other.error.message) not in ("", phrase(mine.error.message)):
            yield found("message", "", mine.error, other.error)
        if not precision.same(mine.log, other.log):
            yield found("log", "", mine.log, other.log)
        expected = dict(other.made)
        for name, a in mine.made:
            b = expected.get(name, a)  # missing where only one of them has failed
            for field, x, y, dtype in fields(a, b, precision):
                if field in OF_GRAPHS or not graphs:
                    yield found(field, name, x, y, dtype)


def _requires_grad_wrongly(seen: Any) -> bool:
    dtype, requires_grad = seen[FIELDS.index("dtype")], seen[FIELDS.index("requires_grad")]
    return requires_grad and not dtype.startswith(("float", "bfloat", "complex"))


def fields(a: Any, b: Any, precision: Precision):
    """Fields in which two observations differ."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for x, y in zip(a, b):
            yield from fields(x, y, precision)
    elif isinstance(a, tuple) and isinstance(b, tuple):
        precision.meet(b[1])
        for field, x, y in zip(FIELDS, a, b):
            numbers = field in ("values", "grad")
            if x is not y and not (precision.same(x, y) if numbers else x == y):
                yield field, x, y, b[1]
    elif not (precision.same(a, b) or _nothing(a) and _nothing(b)):
        yield "value", a, b, ""


def _nothing(seen: Any) -> bool:
    """Whether there is no tangent, or one of zeros."""
    if isinstance(seen, tuple):
        numbers: list = []
        return _flatten(seen[2], seen[2], numbers, []) and not any(numbers)
    return seen is None


class Precision:
    """How closely numbers must agree, which the dtypes that a program has met decide."""

    def __init__(self, text: str) -> None:
        self.kind = "float64"
        self.meet("float32" if COARSE.search(text) else "")
        self.meet("bfloat16" if COARSEST.search(text) else "")

    def meet(self, dtype: str) -> None:
        if dtype in ("float16", "bfloat16"):
            self.kind = "half"
        elif dtype in ("float32", "complex64") and self.kind == "float64":
            self.kind = "float32"

    def same(self, a: Any, b: Any) -> bool:
        """Whether two nested values agree, numbers relative to the largest beside them."""
        if a == b:
            return True
        mine, other = [], []
        if not _flatten(a, b, mine, other):
            return False
        large = LARGE[self.kind]
        finite = [abs(v) for v in other if _finite(v) and abs(v) < large]
        tolerance = TOLERANCES[self.kind] * max([1.0, *finite])
        return all(_close(x, y, tolerance, large) for x, y in zip(mine, other))


def _flatten(a: Any, b: Any, mine: list, other: list) -> bool:
    """Collect the numbers of two nested values; False where their structures differ."""
    if isinstance(a, (list, tuple)):
        return (
            isinstance(b, (list, tuple))
            and len(a) == len(b)
            and all(_flatten(x, y, mine, other) for x, y in zip(a, b))
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, (float, complex)):
        mine.append(a)
        other.append(b)
        return True
    return a == b


def _finite(v: Any) -> bool:
    return math.isfinite(v.real) and math.isfinite(v.imag)


def _close(x: Any, y: Any, tolerance: float, large: float) -> bool:
    if isinstance(x, complex):
        if not (_finite(x) and _finite(y)):
            return not (_finite(x) and abs(x) < large) and not (_finite(y) and abs(y) < large)
        return abs(x - y) <= tolerance or (abs(x) > large / 2 and abs(y) > large / 2)
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) == math.isnan(y)
    if abs(x) > large / 2 and abs(y) > large / 2:
        return True
    return abs(x - y) <= tolerance
