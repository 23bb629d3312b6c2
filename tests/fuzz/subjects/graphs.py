"""Compiled functions, called more than once, and control flow that is part of a graph."""

from __future__ import annotations

from fuzz.operands import entries, floating, literal, overlaps_itself
from fuzz.subjects.operators import reading
from fuzz.writing import Writer, step

INNER = {"operators": 4, "views": 3, "inplace": 3, "modes": 1, "functions": 1, "graphs": 2}
SHAPES = [(), (3,), (2, 3), (3, 2), (2, 1), (1, 3), (2, 2, 2)]


KINDS = ["leaf", "leaf", "result", "view", "plain", "plain view"]


def argument(w: Writer, shape: tuple, kind: str) -> str:
    """A leaf, a result, a view of a result, or one of these that needs no grad."""
    whole = (2, *shape) if "view" in kind else shape
    x = w.make(literal(entries(w, whole, "float64"), "float64", not kind.startswith("plain")))
    x = w.make(f"{x} * 1") if kind in ("result", "view") else x
    return w.make(f"{x}[1]") if "view" in kind else x


@step(weight=3)
def compiled(w: Writer) -> None:
    """A compiled function on one or two sets of arguments, and derivatives of its results.

    Afterwards the results are changed, which shows with what they share memory.
    """
    kinds = [(w.choice(SHAPES), w.choice(KINDS)) for _ in range(w.rng.randrange(1, 4))]
    f = None
    for _ in range(w.choice([1, 2])):
        args = [argument(w, *kind) for kind in kinds]
        if f is None:
            f = w.function(args, INNER, w.rng.randrange(2, 9), results=w.rng.randrange(1, 4))
            if f is None:
                return
            c = w.fresh("c")
            w.emit(f"{c} = compiled({f})")
        y = w.fresh("y")
        if not w.emit(f"{y} = {c}({', '.join(args)})"):
            return
        both = f"(*{y}, {', '.join(args)})"
        w.emit(f"log.append([a is b for a in {both} for b in {both}])")
        leaves = w.tensors(lambda t: t.is_leaf and t.requires_grad and not t._is_view())
        if leaves and any(t.requires_grad for t in w.value(y)):
            order = w.choice([1, 2, 2, 3])
            w.emit(f"{w.fresh('d')} = derivatives({y}, [{', '.join(leaves[-3:])}], {order})")
        if not overlaps_itself(w.value(y)[0]) and floating(w.value(y)[0]):
            w.emit(f"with torch.no_grad():\n    {y}[0].mul_(1.5)")
            w.emit(f"s{y} = [t.clone() for t in {both}]")
    w.emit(f"log.append(compilations({c}))")


@step(weight=1, inside=True)
def branched(w: Writer) -> None:
    """Results of both branches have one layout, as a graph does not know the branch."""
    x = w.pick(lambda t: floating(t) and not t.is_complex())
    if x is None:
        return
    shape = w.value(x).shape
    y = reading(w, lambda t: t.shape == shape and t.dtype == w.value(x).dtype) or x
    limit = w.choice([-0.5, 0.1, 0.6])
    a, b = w.fresh(), w.fresh()
    w.emit(f"{a}, {b} = cond({y}.sum() > {limit}, lambda a, b: (a * b, b.sin() + 0), "
           f"lambda a, b: (a.tanh() + 0, a * 1), ({x}, {y}))")  # fmt: skip


@step(weight=1, inside=True)
def repeated(w: Writer) -> None:
    """A loop of which it is not known how often it runs; it captures an operand."""
    x = w.pick(lambda t: floating(t) and not t.is_complex())
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: t.shape == a.shape and t.dtype == a.dtype) or x
    limit = w.choice([0.1, 0.5, 1.5])
    n, h = w.fresh("n"), w.fresh()
    w.emit(f"{n}, {h} = while_loop(lambda n, h: (n < 1) | ((n < 3) & (h.sum() < {limit})), "
           f"lambda n, h: (n + 1, (h * {y}).tanh() + h), (torch.tensor(0), {x} + 0))")  # fmt: skip


@step(weight=1, inside=True)
def scanned(w: Writer) -> None:
    x = w.pick(lambda t: floating(t) and t.dim() > 0 and t.shape[0] > 0 and not t.is_complex())
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: t.shape == a.shape[1:] and t.dtype == a.dtype) or f"{x}[0]"
    w.emit(f"{w.fresh()}, {w.fresh()} = scan(lambda h, row: ((h * row).sin() + row, h * row), "
           f"{y} + 0, {x}, reverse={w.chance(0.5)})")  # fmt: skip


@step(weight=1, inside=True)
def mapped(w: Writer) -> None:
    x = w.pick(lambda t: floating(t) and t.dim() > 0 and t.shape[0] > 0)
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: t.shape == a.shape[1:] and t.dtype == a.dtype) or "2"
    w.make(f"map_rows(lambda row: (row * {y}).tanh(), {x})")


@step(weight=0.5, inside=True)
def slope(w: Writer) -> None:
    """A gradient taken inside the program."""
    x = w.pick(lambda t: floating(t) and not overlaps_itself(t))
    if x:
        z = w.fresh()
        if w.emit(f"{z} = {x}.detach().clone().requires_grad_()"):
            call = w.choice(["{z} * {z}", "{z}.sin()", "{z} * {x}"]).format(z=z, x=x)
            w.emit(f"{w.fresh()} = torch.autograd.grad(({call}).sum(), {z})[0]")


@step(weight=0.5, inside=True, ours=True)
def noisy(w: Writer) -> None:
    """Random numbers; both runs begin with the same seed."""
    x = w.pick(floating)
    if x:
        draw = w.choice(["torch.rand_like({x})", "torch.randn({x}.shape, dtype={x}.dtype)"])
        w.make(f"{x} * {draw.format(x=x)}")
