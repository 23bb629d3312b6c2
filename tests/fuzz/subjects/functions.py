"""Custom Functions, one feature each, and checkpointed regions."""

from __future__ import annotations

from typing import Any

from fuzz.operands import apart, broadcasts, fits_into, floating, overlaps_itself, recorded
from fuzz.subjects.operators import reading
from fuzz.writing import Writer, step


def function(name: str, forward: str, backward: str, extra: str = "") -> str:
    def block(text: str) -> str:
        return "\n".join("        " + line for line in text.split("; "))

    head = forward.split(": ", 1)
    parts = [
        f"class {name}(torch.autograd.Function):",
        extra,
        "    @staticmethod",
        f"    def forward({head[0]}):",
        block(head[1]),
        "    @staticmethod",
        f"    def backward({backward.split(': ', 1)[0]}):",
        block(backward.split(": ", 1)[1]),
    ]
    return "\n".join(part for part in parts if part)


SETUP = """    @staticmethod
    def setup_context(ctx, inputs, output):
        {}"""
ONE = {
    "Square": function("Square", "ctx, x: ctx.save_for_backward(x); return x * x",
                       "ctx, g: (x,) = ctx.saved_tensors; return 2 * g * x"),
    "Exponential": function("Exponential", "x: return (x * 0.5).exp()",
                            "ctx, g: (out,) = ctx.saved_tensors; return 0.5 * g * out",
                            SETUP.format("ctx.save_for_backward(output)")),
    "Whole": function("Whole", "ctx, x: return x.view_as(x)", "ctx, g: return g * 2"),
    "Sparing": function("Sparing",
                        "ctx, x: ctx.set_materialize_grads(False); return x * 2, x * 4",
                        "ctx, g, h: if g is None or h is None:;     "
                        "return None if h is None else h * 7; return g * 2 + h * 4"),
    "WithInput": function("WithInput", "ctx, x: return x, x.sin()",
                          "ctx, g, h: return g + h * 0.5"),
    "WithRounded": function("WithRounded",
                            "ctx, x: r = x.round(); ctx.mark_non_differentiable(r); "
                            "return x * 3, r",
                            "ctx, g, _: return g * 3"),
    "Once": function("Once", "ctx, x: return x * 3",
                     "ctx, g: return g * 3").replace(
        "    def backward", "    @torch.autograd.function.once_differentiable\n    def backward"),
}  # fmt: skip
DIRTY = {
    "Doubled": function("Doubled", "ctx, x: ctx.mark_dirty(x); return x.mul_(2)",
                        "ctx, g: return g * 2"),
    "Multiplied": function(
        "Multiplied",
        "ctx, x, y: ctx.save_for_backward(x.clone(), y); ctx.mark_dirty(x); return x.mul_(y)",
        "ctx, g: x, y = ctx.saved_tensors; return g * y, (g * x).sum_to_size(y.shape)",
    ),
}  # fmt: skip
PRODUCT = function(
    "Product",
    "ctx, x, y, factor: ctx.save_for_backward(x, y); ctx.factor = factor; return x * y * factor",
    "ctx, g: x, y = ctx.saved_tensors; g = g * ctx.factor; need = ctx.needs_input_grad; "
    "return g * y if need[0] else None, g * x if need[1] else None, None",
)
#: A derivative that is not that of what it computes, and has a derivative of its own.
PRETENDED = function(
    "Pretended",
    "ctx, x, y: inner = (x * y).sin(); ctx.save_for_backward(inner, y); "
    "return inner.round(decimals=1), inner * 2",
    "ctx, g, h: inner, y = ctx.saved_tensors; return g * inner * y, h * inner",
)
#: sqrt(1 + x^2) with rules for both modes, batched by a rule that is derived.
ROOT = """class Root(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return (1 + x * x).sqrt()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)
    @staticmethod
    def backward(ctx, g):
        x, root = ctx.saved_tensors
        return g * x / root
    @staticmethod
    def jvp(ctx, t):
        x, root = ctx.saved_tensors
        return t * x / root"""


def plain(t: Any) -> bool:
    """Floating and with an edge, as operands of Functions must be."""
    return floating(t) and (recorded(t) or not t.requires_grad)


@step(weight=3)
def custom(w: Writer) -> None:
    x = w.pick(plain)
    if x is None:
        return
    name = w.choice(sorted(ONE))
    w.define(name, ONE[name])
    made = w.fresh()
    if name in ("Sparing", "WithInput", "WithRounded"):
        w.emit(f"{made}, {w.fresh()} = {name}.apply({x})")
    else:
        w.emit(f"{made} = {name}.apply({x})")


@step(weight=1)
def custom_of_two(w: Writer) -> None:
    x = w.pick(plain)
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: plain(t) and broadcasts(a, t))
    if y:
        w.define("Product", PRODUCT)
        w.make(f"Product.apply({x}, {y}, 0.5)")


@step(weight=1, inside=True)
def pretended(w: Writer) -> None:
    x = w.pick(plain)
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: plain(t) and a.shape == t.shape and not t.is_complex())
    if y and not a.is_complex():
        w.define("Pretended", PRETENDED)
        w.emit(f"{w.fresh()}, {w.fresh()} = Pretended.apply({x}, {y})")


@step(weight=1, inside=True, ours=True)
def root(w: Writer) -> None:
    """PyTorch has no second tangent of it."""
    x = w.pick(plain)
    if x:
        w.define("Root", ROOT)
        w.make(f"Root.apply({x})")


@step(weight=1.5)
def custom_in_place(w: Writer) -> None:
    """PyTorch drops a retained gradient of a view if it refuses the call."""

    def changeable(t: Any) -> bool:
        return plain(t) and not overlaps_itself(t) and not (t.retains_grad and t._is_view())

    x = w.pick(changeable)
    if x is None:
        return
    a = w.value(x)
    name = w.choice(sorted(DIRTY))
    w.define(name, DIRTY[name])
    if name == "Doubled":
        w.make(f"Doubled.apply({x})")
    else:
        y = w.pick(lambda t: plain(t) and fits_into(a, t) and apart(a, t) and t is not a)
        if y:
            w.make(f"Multiplied.apply({x}, {y})")


@step(weight=2, inside=True)
def checkpointed(w: Writer) -> None:
    """A region that is computed again in backward; it may change its own results in place."""
    x = w.pick(plain)
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: plain(t) and broadcasts(a, t)) or x
    name = w.fresh("f")
    inner = w.choice(["z", "z", "checkpoint(lambda z: z.cos() * z, z)"])
    last = w.choice(["z", "z.mul_(2)", "z * x", "z.exp_()"])
    w.emit(f"def {name}(x, y):\n    z = (x * y).tanh() * x\n    z = {inner}\n    return {last}")
    w.make(f"checkpoint({name}, {x}, {y})")
