"""Modes around steps: no_grad, inference mode, enable_grad; `.data`, detached and shared memory."""

from __future__ import annotations

import copy

from fuzz.operands import fits_into, memory, overlaps_itself
from fuzz.writing import Body, Writer, has_edge, step

MODES = ("no_grad()", "inference_mode()", "enable_grad()", "set_grad_enabled(False)",
         "inference_mode(False)", "no_grad()", "inference_mode()")  # fmt: skip
INNER = {"operators": 4, "views": 3, "inplace": 2}


@step(weight=4, inside=True)
def under_a_mode(w: Writer) -> None:
    """A few steps in a block.

    A leaf made in inference mode does not require grad here, which is a declared difference.
    """
    block, mode = Block(w), w.choice(MODES)
    block.facts["inside"] = w.facts.get("inside") or mode == "inference_mode()"
    for _ in range(w.rng.randrange(1, 4)):
        block.write(INNER)
    if block.lines:
        inner = "\n".join("    " + line for text in block.lines for line in text.split("\n"))
        w.emit(f"with torch.{mode}:\n{inner}")


class Block(Body):
    """Steps tried on copies of all tensors, which share memory as the tensors do."""

    def __init__(self, outer: Writer) -> None:
        super().__init__(outer, [])
        names = outer.tensors(has_edge)
        copies = copy.deepcopy([outer.value(name).detach() for name in names])
        self.run.space.update(zip(names, copies))
        self.names = names
        self.captured = []


@step(weight=1.5, inside=True)
def by_data(w: Writer) -> None:
    """Reading and writing past autograd."""
    x = w.pick()
    if x is None:
        return
    calls = ("{x}.data", "{x} * {x}.data", "{x}.data.clone()", "{x}.detach() * {x}", "{x}.data + 1",
             "{x}.detach().view({x}.shape)", "{x}.data.exp()")  # fmt: skip
    if w.chance(0.6) or isinstance(w, Body):
        w.make(w.choice(calls).format(x=x))
    elif not overlaps_itself(w.value(x)):
        change = w.choice(["mul_(2)", "add_(1)", "zero_()"])
        w.emit(f"{x}.{w.choice(['data', 'detach()'])}.{change}")


@step(weight=0.5)
def data_set(w: Writer) -> None:
    x = w.pick(lambda t: not t._is_view() and not t.is_inference())
    if x:
        w.emit(f"{x}.data = {w.choice([f'tangent({x})', f'torch.ones_like({x})', f'{x} * 2'])}")


@step(weight=0.5)
def copied_without_grad(w: Writer) -> None:
    """An update of a leaf as an optimizer does it."""
    x = w.pick(lambda t: t.is_leaf and t.requires_grad and not overlaps_itself(t))
    if x is None:
        return
    a = w.value(x)
    y = w.pick(lambda t: fits_into(a, t) and memory(t) != memory(a))
    change = w.choice([f"copy_({y})" if y else "mul_(2)", "sub_(0.1)", "mul_(0.5)", "zero_()"])
    w.emit(f"with torch.no_grad():\n    {x}.{change}")
