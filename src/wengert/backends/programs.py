"""Programs of elementwise operations in C, which an uncompiled installation does not run.

`programs.pyx` beside this file is the compiled form.
"""

from __future__ import annotations

from typing import Any

ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, ROOT, SIZE, MAXIMUM = range(8)

#: The most registers of a program: operands, numbers and results of instructions.
MOST_REGISTERS = 48


def available() -> bool:
    """Whether programs can be run at all."""
    return False


def run_program(code: list[int], numbers: list[float], rows: list[Any], outputs: list[int]) -> list:
    """Run a program on each row of arrays; the places of those that do not suit: here all."""
    return list(range(len(rows)))
