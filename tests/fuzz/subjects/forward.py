"""Forward mode: dual tensors, their tangents, and gradients that have tangents."""

from __future__ import annotations

from fuzz.operands import dtype_of, floating, overlaps_itself, recorded
from fuzz.writing import Writer, step


def opened(w: Writer) -> None:
    """Open the level in which the rest of the program runs."""
    w.emit("forward_ad = torch.autograd.forward_ad")
    w.emit("level = forward_ad.enter_dual_level()")


@step(weight=2)
def dual(w: Writer) -> None:
    x = w.pick(lambda t: floating(t) and t.is_leaf and not overlaps_itself(t))
    if x:
        w.make(f"forward_ad.make_dual({x}, tangent({x}))")


@step(weight=3)
def unpacked(w: Writer) -> None:
    """The tangent itself goes on in the program; one that is absent is compared as None."""
    x = w.pick(floating)
    if x:
        name = w.fresh("d")
        w.emit(f"{name} = forward_ad.unpack_dual({x}).tangent")


@step(weight=0.5)
def primal(w: Writer) -> None:
    x = w.pick(floating)
    if x:
        name = w.make(f"forward_ad.unpack_dual({x}).primal")
        if name and w.chance(0.5):
            w.emit(f"{w.fresh('d')} = forward_ad.unpack_dual({name} * 3).tangent")


@step(weight=1)
def tangents_of_gradients(w: Writer) -> None:
    x = w.pick(lambda t: recorded(t) and t.is_leaf)
    y = w.pick(lambda t: recorded(t) and not t.is_leaf)
    if x and y and dtype_of(w.value(x)) == "float64":
        g = w.fresh("g")
        call = f"torch.autograd.grad(weigh({y}), {x}, allow_unused=True, retain_graph=True)[0]"
        if w.emit(f"{g} = {call}") and w.value(g) is not None:
            w.emit(f"{w.fresh('d')} = forward_ad.unpack_dual({g}).tangent")
