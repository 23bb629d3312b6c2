"""Backward and grad in all their forms, and derivatives to third order."""

from __future__ import annotations

from fuzz.operands import dtype_of, overlaps_itself, recorded
from fuzz.writing import Writer, step


def leaves(w: Writer) -> list[str]:
    return w.tensors(lambda t: t.requires_grad and t.is_leaf and not t._is_view())


def root(w: Writer) -> str | None:
    return w.pick(lambda t: recorded(t) and not t.is_leaf)


def weights(w: Writer, name: str) -> str:
    return f"torch.full_like({name}, 0.5)" if w.chance(0.3) else f"tangent({name})"


@step(weight=3)
def to_third_order(w: Writer) -> None:
    y, xs = root(w), leaves(w)
    if y and xs:
        coarse = any(dtype_of(w.value(name)) in ("float16", "bfloat16") for name in w.tensors())
        # Hooks see how far gradients lead on, which is a declared difference.
        order = 1 if coarse or w.facts.get("hooks") else w.choice([1, 2, 3, 3])
        w.emit(f"{w.fresh('d')} = derivatives({y}, [{', '.join(xs[:3])}], {order})")


@step(weight=2)
def backward(w: Writer) -> None:
    y = root(w) if w.chance(0.95) else w.pick()
    if y is None:
        return
    args = [weights(w, y)]
    if w.chance(0.6):
        args.append("retain_graph=True")
    if w.chance(0.1):
        args.append("create_graph=True")
    if w.chance(0.25):
        x = w.pick(recorded)
        args.append(f"inputs=[{x}]")
    w.emit(f"{y}.backward({', '.join(args)})")


@step(weight=0.7)
def backward_from_two(w: Writer) -> None:
    y, z = root(w), root(w)
    if y:
        w.emit(f"torch.autograd.backward([{y}, {z}], [{weights(w, y)}, {weights(w, z)}], "
               f"retain_graph={w.chance(0.7)})")  # fmt: skip


@step(weight=2)
def grad(w: Writer) -> None:
    y, x = root(w), w.pick(recorded)
    if y is None:
        return
    inputs = [x]
    if not w.facts.get("hooks") and w.chance(0.4):
        # With hooks PyTorch captures before or after them, as another input lies behind.
        inputs.append(w.pick(recorded))
    options = {"retain_graph": 0.7, "create_graph": 0.4, "allow_unused": 0.7}
    flags = [f"{name}=True" for name, often in options.items() if w.chance(often)]
    call = f"torch.autograd.grad({y}, [{', '.join(inputs)}], {', '.join([weights(w, y), *flags])})"
    name = w.fresh("g")
    if w.emit(f"{name} = {call}") and w.value(name)[0] is not None:
        w.emit(f"{w.fresh('g')} = {name}[0]")


@step(weight=0.6)
def between_edges(w: Writer) -> None:
    y, x = root(w), w.pick(recorded)
    if y:
        edge = "torch.autograd.graph.get_gradient_edge"
        w.emit(f"{w.fresh('g')} = torch.autograd.grad({edge}({y}), {edge}({x}), {weights(w, y)}, "
               f"retain_graph=True, allow_unused={w.chance(0.6)})")  # fmt: skip


@step(weight=0.4)
def batched(w: Writer) -> None:
    y, x = root(w), w.pick(recorded)
    if y:
        both = f"torch.stack([tangent({y}), torch.ones_like({y})])"
        w.emit(f"{w.fresh('g')} = torch.autograd.grad({y}, [{x}], {both}, is_grads_batched=True, "
               "retain_graph=True, allow_unused=True)")  # fmt: skip


@step(weight=0.5)
def of_functional(w: Writer) -> None:
    """The older functional interface, on a function of one tensor."""
    x = w.pick(lambda t: t.is_floating_point() and 0 < t.numel() < 9 and not overlaps_itself(t))
    if x is None:
        return
    f = w.function([x], {"operators": 3, "views": 1}, w.rng.randrange(1, 4))
    if f is None:
        return
    call = w.choice(("jacobian({f}, {x})", "jacobian({f}, {x}, vectorize=True)",
                     "jacobian({f}, {x}, vectorize=True, strategy='forward-mode')",
                     "hessian(lambda x: weigh({f}(x)), {x})", "vjp(lambda x: weigh({f}(x)), {x})",
                     "jvp({f}, {x}, tangent({x}))",
                     "vhp(lambda x: weigh({f}(x)), {x}, tangent({x}))",
                     "hvp(lambda x: weigh({f}(x)), {x}, tangent({x}))"))  # fmt: skip
    w.emit(f"{w.fresh('r')} = torch.autograd.functional.{call.format(f=f, x=x)}")
