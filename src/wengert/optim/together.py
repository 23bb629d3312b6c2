"""The update of all parameters of a group in one call, by the program that a rule comes down to.

A rule is called once with placeholders, which note what is done to them; options and the counter
of steps are numbers in it. What it computes is then done to each parameter, block by block, in C.
Rules that do more than arithmetic on elements, such as reductions, are not for this.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..backends import programs
from ..core.state import overriding, thread_state
from ..core.tensor import Tensor, bump_version


class Unsuited(Exception):
    """A rule does something that a program does not know."""


class Program:
    """The instructions that placeholders have noted, and the numbers in them."""

    def __init__(self, operands: int) -> None:
        self.operands = operands
        self.code: list[tuple[int, int, int]] = []
        self.numbers: list[float] = []

    def note(self, operation: int, a: Any, b: Any) -> Placeholder:
        self.code.append((operation, self._place(a), self._place(b)))
        return Placeholder(self, len(self.code) - 1, True)

    def _place(self, value: Any) -> int:
        """An operand, a number or a result; the last two are told apart by their signs."""
        if isinstance(value, Placeholder):
            return value.at if not value.computed else -1 - value.at
        if type(value) is not float and type(value) is not int:
            raise Unsuited
        self.numbers.append(float(value))
        return self.operands + len(self.numbers) - 1

    def registers(self) -> list[int]:
        """The instructions with the numbers of registers, results behind operands and numbers."""
        behind = self.operands + len(self.numbers)
        found = []
        for place, (operation, *operands) in enumerate(self.code):
            found += [operation, behind + place]
            found += [at if at >= 0 else behind - 1 - at for at in operands]
        return found

    def register_of(self, value: Placeholder) -> int:
        return self.operands + len(self.numbers) + value.at if value.computed else value.at


class Placeholder:
    """An operand of a program, or the result of one of its instructions."""

    __slots__ = ("at", "computed", "program")

    def __init__(self, program: Program, at: int, computed: bool = False) -> None:
        self.program = program
        self.at = at
        self.computed = computed

    def __add__(self, other: Any) -> Placeholder:
        return self.program.note(programs.ADD, self, other)

    def __radd__(self, other: Any) -> Placeholder:
        return self.program.note(programs.ADD, other, self)

    def __sub__(self, other: Any) -> Placeholder:
        return self.program.note(programs.SUBTRACT, self, other)

    def __rsub__(self, other: Any) -> Placeholder:
        return self.program.note(programs.SUBTRACT, other, self)

    def __mul__(self, other: Any) -> Placeholder:
        return self.program.note(programs.MULTIPLY, self, other)

    def __rmul__(self, other: Any) -> Placeholder:
        return self.program.note(programs.MULTIPLY, other, self)

    def __truediv__(self, other: Any) -> Placeholder:
        return self.program.note(programs.DIVIDE, self, other)

    def __rtruediv__(self, other: Any) -> Placeholder:
        return self.program.note(programs.DIVIDE, other, self)

    def __neg__(self) -> Placeholder:
        return self.program.note(programs.NEGATE, self, self)

    def sqrt(self) -> Placeholder:
        return self.program.note(programs.ROOT, self, self)

    def abs(self) -> Placeholder:
        return self.program.note(programs.SIZE, self, self)

    def maximum(self, other: Any) -> Placeholder:
        return self.program.note(programs.MAXIMUM, self, other)

    def __getattr__(self, name: str) -> Any:
        raise Unsuited

    def __bool__(self) -> bool:
        raise Unsuited


def update_together(rule: Any, params: list, states: list[dict], o: Any, maximize: bool) -> list:
    """Change parameters of one group as `rule` does each; those that it is not for are returned.

    All have state of the same names, in which counters are tensors without dimensions.
    """
    if not programs.available() or overriding.possible or thread_state().layers:
        return params
    names = [name for name in states[0] if name != "step"]
    rows = []
    steps = []
    for p, state in zip(params, states, strict=True):
        row = [p.array]
        tensors = [p.grad]
        for name in names:
            tensors.append(state.get(name))
        for t in tensors:
            if not isinstance(t, Tensor) or t.inference:
                return params
            row.append(t.array)
        if p.inference:
            return params
        rows.append(tuple(row))
        steps.append(state["step"].array.item() + 1 if "step" in state else None)
    left: list = []
    for step in set(steps):
        chosen = [i for i, own in enumerate(steps) if own == step]
        program = _program(rule, names, step, o, maximize)
        if program is None:
            left += [params[i] for i in chosen]
            continue
        unsuited = programs.run_program(
            program[0], program[1], [rows[i] for i in chosen], program[2]
        )
        left += [params[chosen[place]] for place in unsuited]
        for place, i in enumerate(chosen):
            if place in unsuited:
                continue
            if step is not None:
                states[i]["step"] += 1
            bump_version(params[i], "copy_")
            for name in program[3]:
                bump_version(states[i][name], "copy_")
    return left


def _program(
    rule: Any, names: list[str], step: Any, o: Any, maximize: bool
) -> tuple[list[int], list[float], list[int], list[str]] | None:
    """Instructions, numbers, what to write where, and which state that is."""
    program = Program(2 + len(names))
    p, g = Placeholder(program, 0), Placeholder(program, 1)
    state: dict[str, Any] = {
        name: Placeholder(program, 2 + i) for i, name in enumerate(names)
    }
    if step is not None:
        state["step"] = step
    s = SimpleNamespace(**state)
    try:
        new = rule.update(*rule.decayed(p, -g if maximize else g, o), s, o)
    except (Unsuited, TypeError):
        return None
    changed = {name: value for name, value in vars(s).items() if value is not state.get(name)}
    if not isinstance(new, Placeholder) or not new.computed:
        return None
    outputs = [program.register_of(new), 0]
    for name, value in changed.items():
        if name not in names or not isinstance(value, Placeholder) or not value.computed:
            return None
        outputs += [program.register_of(value), 2 + names.index(name)]
    registers = program.registers()
    if program.operands + len(program.numbers) + len(program.code) > programs.MOST_REGISTERS:
        return None
    return registers, program.numbers, outputs, list(changed)
