"""Changes in place: of results, views, expanded tensors, leaves; by numbers, tensors and parts."""

from __future__ import annotations

from typing import Any

from fuzz.operands import apart, fits_into, memory, overlaps_itself
from fuzz.subjects.operators import reading
from fuzz.writing import Writer, step

BY_NOTHING = ("tanh_()", "sin_()", "zero_()", "neg_()", "sigmoid_()", "exp_()", "square_()",
              "mul_(2)", "add_(1)", "div_(2)", "sub_(0.5)", "clamp_(-0.5, 0.5)", "fill_(0.75)",
              "abs_()", "masked_fill_({x} > 0, 0.25)", "relu_()", "pow_(2)", "addcmul_({x}, {x})",
              "copy_({x} * 2)", "mul_({x})")  # fmt: skip
BY_ANOTHER = ("mul_({y})", "add_({y})", "copy_({y})", "sub_({y})", "add_({y}, alpha=2)",
              "addcmul_({y}, {y})", "lerp_({y}, 0.25)", "div_({y} * {y} + 1)", "atan2_({y})",
              "masked_fill_({y} > 0, 0.5)", "fmod_({y} * {y} + 1)")  # fmt: skip


def target(w: Writer, test: Any = None) -> str | None:
    """A tensor to change; most often one that no error awaits."""

    def changeable(t: Any) -> bool:
        leaf = t.requires_grad and (t.is_leaf or t._is_view() and t._base.is_leaf)
        if overlaps_itself(t) and (overlaps_itself(t, False) or not w.chance(0.1)):
            return False
        return (not leaf or w.chance(0.05)) and (test is None or test(t))

    try:
        return w.pick(changeable, edge=False)
    except RuntimeError:
        return None


@step(weight=3, inside=True)
def alone(w: Writer) -> None:
    x = target(w)
    if x:
        w.emit(f"{x}." + w.choice(BY_NOTHING).format(x=x))


@step(weight=4, inside=True)
def by_another(w: Writer) -> None:
    x = target(w)
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: fits_into(a, t) and apart(a, t))
    if y:
        w.emit(f"{x}." + w.choice(BY_ANOTHER).format(y=y))


@step(weight=2, inside=True)
def assigned(w: Writer) -> None:
    x = target(w, lambda t: t.dim() > 0 and t.numel() > 0)
    if x is None:
        return
    row = w.value(x).detach()[0]
    y = reading(w, lambda t: fits_into(row, t) and memory(row) != memory(t))
    y = y if w.chance(0.7) else None
    place = w.choice(["0", "-1", "...", ":1", "[0]", "torch.tensor([0])", "None", "True"])
    w.emit(f"{x}[{place}] = {y or 0.5}")


@step(weight=1.5, inside=True)
def augmented(w: Writer) -> None:
    x = target(w)
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: fits_into(a, t) and apart(a, t)) if w.chance(0.6) else None
    part = "[:1]" if a.dim() and w.chance(0.4) else ""
    w.emit(f"{x}{part} {w.choice(['+=', '*=', '-=', '/='])} {y if y and not part else 2}")


@step(weight=1, inside=True)
def by_index(w: Writer) -> None:
    x = target(w, lambda t: t.dim() > 0 and t.numel() > 0)
    if x:
        calls = ("index_fill_(0, torch.tensor([0]), 0.25)",
                 "index_add_(0, torch.tensor([0]), {x}[:1] + 1)",
                 "index_put_((torch.tensor([0]),), {x}[-1] * 2)",
                 "index_copy_(0, torch.tensor([0]), {x}[:1] * 2)",
                 "scatter_(0, torch.zeros_like({x}[:1], dtype=torch.int64), 0.5)")  # fmt: skip
        w.emit(f"{x}." + w.choice(calls).format(x=x))


@step(weight=0.7)
def turned(w: Writer) -> None:
    """Another shape in place; PyTorch loses track of hooks and retained gradients here."""
    if w.facts.get("hooks"):
        return
    x = target(w, lambda t: not t.retains_grad)
    if x:
        calls = ["unsqueeze_(0)", "squeeze_()", "t_()", "transpose_(0, -1)", "swapaxes_(0, -1)"]
        w.emit(f"{x}.{w.choice(calls)}")
