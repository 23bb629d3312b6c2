"""How tensors of a trace come to share memory, step by step, and how often it was changed."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ...core.tensor import Tensor
from ...operators.write_view import step_text
from ..interpret.meanings import function_of


class Memory:
    """What tensors of a trace share that would share memory: how often it was changed.

    The version counter does not tell, because `.data` has one of its own.
    """

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes = 0


class Step(NamedTuple):
    """One step from a tensor to one that shares its memory: the call of a view operator (`part` is
    the place among several results), or where there is no operator `detach`, or `.data` if changes
    are not tracked."""

    operator: Any
    args: tuple = ()
    part: int | None = None
    recorded: bool = True
    tracked: bool = True

    def take(self, t: Tensor) -> Tensor:
        """Go this step from a tensor."""
        if self.operator is None:
            return t.detach() if self.tracked else t.data
        with set_grad_enabled(self.recorded and is_grad_enabled()):
            made = function_of(self.operator)((t, *self.args))
        return made if self.part is None else made[self.part]


def way_back(t: Tensor) -> tuple[Tensor, list[tuple[Tensor, Step]]]:
    """From a view to what it is a view of, as far as the steps were recorded; the steps from there,
    each with the tensor that it starts from."""
    steps: list[tuple[Tensor, Step]] = []
    while (origin := t.array.__dict__["origin"]) is not None:
        source, step = origin
        if step.operator is None or not step.recorded:
            break
        steps.append((source, step))
        t = source
    return t, steps[::-1]


def text_of_step(step: Step, array: Any) -> str:
    """A step as `_write_view` reads it."""
    return step_text(*single_step(step, array.shape))


def single_step(step: Step, shape: tuple[int, ...]) -> tuple[str, tuple]:
    """The operator that makes one view only, by name, and its arguments."""
    name, args, part = step.operator.name, step.args, step.part
    if part is None:
        return name, args
    sizes, dim = args[0], args[-1] % len(shape)
    if name == "unbind":
        return "select", (dim, part)
    if name == "split":
        sizes = (sizes,) * (part + 1)
    start = sum(sizes[:part])
    return "slice", (dim, start, min(start + sizes[part], shape[dim]), 1)
