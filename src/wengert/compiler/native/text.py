"""LLVM's language: types, constants and instructions, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.scalar.expressions import SIZES, is_float, is_signed, literal

#: LLVM's types in registers; in memory truth values take a byte.
REGISTER = {
    "f16": "half", "bf16": "i16", "f32": "float", "f64": "double", "bool": "i1",
    **{f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
MEMORY = {**REGISTER, "bool": "i8"}
SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}
#: How often a branch that is seldom taken is.
SELDOM = '!0 = !{!"branch_weights", i32 1, i32 1048575}'


class Text:
    """Instructions of one function as they are written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.label = "entry"
        self._count = 0

    def fresh(self) -> int:
        self._count += 1
        return self._count

    def value(self, text: str) -> str:
        """An instruction with a result, whose name is returned."""
        name = f"%v{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def begin(self, label: str) -> None:
        self.lines.append(label + ":")
        self.label = label

    def seldom(self, flag: str, label: str, otherwise: str) -> None:
        """Go on at a label that is hardly ever gone to: what it saves, it saves only there."""
        self.declarations.add(SELDOM)
        self.do(f"br i1 {flag}, label %{label}, label %{otherwise}, !prof !0")

    def loop(
        self,
        low: Any,
        high: Any,
        step: Any,
        carried: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """A loop with values that each turn hands on; what they are after the last one.

        `carried` has the types of the values and what they begin with.
        """
        if isinstance(low, int) and isinstance(high, int) and isinstance(step, int):
            if high <= low:
                return [begin for _, begin in carried]
            if high - low <= step:
                return body(str(low), [begin for _, begin in carried])
        k = self.fresh()
        before = self.label
        self.do(f"br label %head{k}")
        self.begin(f"head{k}")
        index = f"%i{k}"
        names = [f"%c{k}_{j}" for j in range(len(carried))]
        place = len(self.lines)
        self.lines += [""] * (1 + len(carried))
        more = self.value(f"icmp slt i64 {index}, {high}")
        self.do(f"br i1 {more}, label %body{k}, label %done{k}")
        self.begin(f"body{k}")
        results = body(index, names)
        # Frozen, so that LLVM does not try other ways to count, which takes half of its time.
        following = self.value(f"freeze i64 {self.value(f'add nsw i64 {index}, {step}')}")
        last = self.label
        self.do(f"br label %head{k}")
        self.begin(f"done{k}")
        self.lines[place] = (
            f"  {index} = phi i64 [ {low}, %{before} ], [ {following}, %{last} ]"
        )
        for j, (kind, begin) in enumerate(carried):
            self.lines[place + 1 + j] = (
                f"  {names[j]} = phi {kind} [ {begin}, %{before} ], [ {results[j]}, %{last} ]"
            )
        return names

    def intrinsic(self, name: str, kind: str, result: str, *args: tuple[str, str]) -> str:
        """A call of one of LLVM's functions; arguments are pairs of type and value."""
        types = ", ".join([t for t, _ in args])
        self.declarations.add(f"declare {result} @llvm.{name}.{kind}({types})")
        given = ", ".join([f"{t} {v}" for t, v in args])
        return self.value(f"call {result} @llvm.{name}.{kind}({given})")

    def any_of(self, flags: list[str], width: int) -> str:
        """Whether any of several flags is set, each a bool or a vector of them."""
        whole = vector("bool", width)
        # What follows from a value that is missing may be anything, but no reason to go wrong.
        found = self.value(f"freeze {whole} {flags[0]}")
        for flag in flags[1:]:
            found = self.value(f"or {whole} {found}, {self.value(f'freeze {whole} {flag}')}")
        if width == 1:
            return found
        bits = self.value(f"bitcast {whole} {found} to i{width}")
        return self.value(f"icmp ne i{width} {bits}, 0")


def vector(kind: str, width: int) -> str:
    """The type of a value, or of a vector of them."""
    return REGISTER[kind] if width == 1 else f"<{width} x {REGISTER[kind]}>"


def in_memory(kind: str, width: int) -> str:
    return MEMORY[kind] if width == 1 else f"<{width} x {MEMORY[kind]}>"


def constant(value: Any, kind: str, width: int) -> str:
    """A literal of an instruction, in each lane."""
    if is_float(kind):
        text = f"0x{value & 0xFFFFFFFFFFFFFFFF:016X}"
        if kind == "f16":
            bits = np.int64(value).view("float64").astype("float16").view("uint16")
            text = f"0xH{int(bits):04X}"
    else:
        text = ("true" if value else "false") if kind == "bool" else str(value)
    return lanes(text, kind, width)


def lanes(text: str, kind: str, width: int) -> str:
    if width == 1:
        return text
    return "<" + ", ".join([f"{REGISTER[kind]} {text}"] * width) + ">"


def name_of(kind: str, width: int) -> str:
    """A type as it is spelled in the names of intrinsics."""
    base = REGISTER[kind]
    base = SUFFIX.get(base, base)
    return base if width == 1 else f"v{width}{base}"


_IDENTITIES: dict[str, Callable[[str], Any]] = {
    "add": lambda kind: 0, "mul": lambda kind: 1, "and": lambda kind: 1, "or": lambda kind: 0,
    "max": lambda kind: _extreme(kind, -1), "min": lambda kind: _extreme(kind, 1),
}  # fmt: skip


def _extreme(kind: str, sign: int) -> Any:
    if is_float(kind):
        return sign * float("inf")
    if kind == "bool":
        return sign > 0
    bits = 8 * SIZES[kind]
    if is_signed(kind):
        return 2 ** (bits - 1) - 1 if sign > 0 else -(2 ** (bits - 1))
    return 2**bits - 1 if sign > 0 else 0


def identity(name: str, kind: str, width: int) -> str:
    """What a reduction begins with."""
    return constant(literal(_IDENTITIES[name](kind), kind), kind, width)
