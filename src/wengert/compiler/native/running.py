"""Cumulative sums, products and extrema as text for LLVM: each element from the one before it."""

from __future__ import annotations

from ...core.scalar.expressions import is_float, is_signed
from .emitter import Kernel, kernel_head
from .loops import Call
from .nests import CHUNKS, WORTH_SPLITTING
from .text import MEMORY

NAMES = {"add", "multiply", "maximum", "minimum"}


def _combined(name: str, kind: str) -> list[str]:
    """Instructions that make %new of %old, the element before, and %x."""
    type_ = MEMORY[kind]
    if name in ("add", "multiply"):
        word = {"add": "add", "multiply": "mul"}[name]
        return [f"  %new = {'f' if is_float(kind) else ''}{word} {type_} %old, %x"]
    larger = name == "maximum"
    if is_float(kind):  # what is no number stays
        return [
            f"  %before = fcmp {'oge' if larger else 'ole'} {type_} %old, %x",
            f"  %none = fcmp uno {type_} %old, %old",
            "  %stays = or i1 %before, %none",
            f"  %new = select i1 %stays, {type_} %old, {type_} %x",
        ]
    word = ("s" if is_signed(kind) else "u") + ("ge" if larger else "le")
    return [
        f"  %stays = icmp {word} {type_} %old, %x",
        f"  %new = select i1 %stays, {type_} %old, {type_} %x",
    ]


def running_kernel(call: Call) -> tuple[Kernel, list[int]]:
    """The kernel of a step, and the numbers after its slots."""
    given = call.arguments
    type_ = MEMORY[given["kind"]]
    lines = kernel_head(2)
    for k, name in enumerate(("row", "inner")):
        lines += [
            f"  %n{k} = getelementptr i64, ptr %slots, i64 {4 + k}",
            f"  %{name} = load i64, ptr %n{k}",
        ]
    lines += [
        "  %begin = mul i64 %lo, %row",
        "  %end = mul i64 %hi, %row",
        "  br label %rows",
        "rows:",
        "  %start = phi i64 [ %begin, %entry ], [ %stop, %next_row ]",
        "  %some = icmp slt i64 %start, %end",
        "  br i1 %some, label %set_up, label %done",
        "set_up:",
        "  %stop = add i64 %start, %row",
        "  %second = add i64 %start, %inner",
        "  br label %first",
        "first:",
        "  %i = phi i64 [ %start, %set_up ], [ %i_next, %first ]",
        f"  %fa = getelementptr {type_}, ptr %p0, i64 %i",
        f"  %fx = load {type_}, ptr %fa",
        f"  %fb = getelementptr {type_}, ptr %p1, i64 %i",
        f"  store {type_} %fx, ptr %fb",
        "  %i_next = add i64 %i, 1",
        "  %i_more = icmp slt i64 %i_next, %second",
        "  br i1 %i_more, label %first, label %others",
        "others:",
        "  %j = phi i64 [ %second, %first ], [ %j_next, %body ]",
        "  %j_more = icmp slt i64 %j, %stop",
        "  br i1 %j_more, label %body, label %next_row",
        "body:",
        f"  %xa = getelementptr {type_}, ptr %p0, i64 %j",
        f"  %x = load {type_}, ptr %xa",
        "  %before_j = sub i64 %j, %inner",
        f"  %oa = getelementptr {type_}, ptr %p1, i64 %before_j",
        f"  %old = load {type_}, ptr %oa",
        *_combined(given["operation"], given["kind"]),
        f"  %na = getelementptr {type_}, ptr %p1, i64 %j",
        f"  store {type_} %new, ptr %na",
        "  %j_next = add i64 %j, 1",
        "  br label %others",
        "next_row:",
        "  br label %rows",
        "done:",
        "  ret void",
        "}",
    ]
    slots = [given["source"], (given["out"], 0)]
    return Kernel("\n".join(lines) + "\n", set(), slots), [given["row"], given["inner"]]


def running_chunks(call: Call) -> tuple[int, int, int]:
    """The rows of a step, how many make a chunk, and how many chunks there are."""
    rows, row = call.arguments["rows"], call.arguments["row"]
    if rows * row < WORTH_SPLITTING:
        return rows, rows, 1
    chunk = -(-rows // CHUNKS)
    return rows, chunk, -(-rows // chunk)
