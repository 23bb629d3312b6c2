"""Transforms nested up to three deep, over functions that are made of any operators.

Each transform makes a function of one tensor out of a function of that tensor, so they nest in any
order. What they return is one tensor.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz.operands import dtype_of, entries, floating, leaf, literal, operand
from fuzz.subjects.operators import OPERATIONS, PARTICULAR, called
from fuzz.writing import Writer, step

INNER = {"operators": 5, "views": 2, "inplace": 2, "modes": 1}
SHAPES = [(3,), (2, 3), (2, 2), (), (3, 2), (4,), (2, 1), (2, 3, 4), (3, 4), (2, 6), (3, 3)]

#: Of (name of a function f): another function of x.
TRANSFORMS = {
    "grad": "torch.func.grad(lambda x: weigh({f}(x)))(x)",
    "grad_and_value": "torch.func.grad_and_value(lambda x: weigh({f}(x)))(x)[0]",
    "captured": "x * torch.func.grad(lambda y: weigh({f}(x * y)) + weigh(x * y))(tangent(x))",
    "jvp": "torch.func.jvp({f}, (x,), (tangent(x),))[1]",
    "jvp along itself": "torch.func.jvp({f}, (x,), (x.sin(),))[1]",
    "value of jvp": "torch.func.jvp({f}, (x,), (tangent(x),))[0]",
    "vjp": "(lambda y, pull: pull(tangent(y))[0])(*torch.func.vjp({f}, x))",
    "vjp of itself": "(lambda y, pull: pull(y)[0])(*torch.func.vjp({f}, x))",
    "jacrev": "jacobian({f})(x)",
    "chunked": "torch.func.jacrev({f}, chunk_size=2)(x)",
    "jacfwd": "torch.func.jacfwd({f})(x)",
    "hessian": "torch.func.hessian(lambda x: weigh({f}(x)))(x)",
    "vmap": "vmap({f})(torch.stack([x, x * 0.5]))",
    "vmap at the end": "vmap({f}, in_dims=-1, out_dims=1)(torch.stack([x, x + 0.5], -1))",
    "vmap of a captured": "vmap(lambda a: {f}(x * a))(torch.tensor([0.7, -0.4], dtype=x.dtype))",
    "vmap with a shared": "vmap(lambda a, b: {f}(a) * weigh(b), (0, None))(torch.stack([x, x]), x)",
}
#: PyTorch's linearize traces, which not all that nests survives.
OURS = {"linearize": "linearized({f}, x)"}
COMPLEX = ("vjp", "vjp of itself", "vmap", "vmap at the end", "value of jvp")
#: How many times a result has the dimensions of the operand once more.
JACOBIANS = {"jacrev": 1, "chunked": 1, "jacfwd": 1, "hessian": 2}
LARGEST = 100_000  # elements of a result, roughly: some have taken minutes


def begun(w: Writer) -> tuple[str, Callable] | None:
    """An operand of one call of an operator, and what writes that call in a function of it."""
    operation = w.choice([o for o in OPERATIONS if o.differentiable and (o.real or o.complex)])
    kind = "real" if operation.real and not (operation.complex and w.chance(0.07)) else "complex"
    samples = [s for s in operation.draw(kind) if any(a.size < 30 for a in s.arrays())]
    if not samples:
        return None
    sample = w.choice(samples)
    dtype = w.choice(["float64"] * 6 + ["float32"]) if kind == "real" else "complex128"
    arrays = sample.arrays()
    place = w.rng.randrange(len(arrays))
    x = w.make(literal(arrays[place], dtype, grad=w.chance(0.15)))

    def begin(body: Writer) -> None:
        names = [
            body.names[0]
            if i == place
            else operand(body, array, dtype, operation.name in PARTICULAR)
            for i, array in enumerate(arrays)
        ]
        if None not in names:
            called(body, operation, sample, dtype, names)

    return None if x is None else (x, begin)


@step()
def nested(w: Writer) -> None:
    drawn = begun(w) if w.chance(0.8) else (leaf(w, "float64", w.choice(SHAPES)), None)
    if drawn is None or drawn[0] is None:
        return
    x, begin = drawn
    f = w.function([x], INNER, w.rng.randrange(0, 3) if begin else w.rng.randrange(1, 5), begin)
    if f is None:
        return
    if w.chance(0.25):
        c = w.fresh("c")
        w.emit(f"{c} = compiled({f})")
        f = c
    dtype = dtype_of(w.value(x))
    names = list(TRANSFORMS | OURS if w.ours else TRANSFORMS)
    if dtype.startswith("complex"):
        names = list(COMPLEX)
    count = max(w.value(x).numel(), 1)
    size = count
    for _ in range(w.rng.randrange(1, 2 if dtype == "float32" else 4)):
        names = [name for name in names if size * count ** JACOBIANS.get(name, 0) <= LARGEST]
        outer, name = w.fresh("f"), w.choice(names)
        size *= count ** JACOBIANS.get(name, 0)
        if name == "chunked":
            names.remove(name)  # around another, each of its chunks goes through all of the other's
        body = (TRANSFORMS | OURS)[name].format(f=f)
        w.emit(f"def {outer}(x):\n    return {body}")
        f = outer
    w.emit(f"{w.fresh('r')} = {f}({x})")


@step(weight=0.3)
def over_two(w: Writer) -> None:
    """A function of two arguments, with argnums and several results."""
    x = w.make(literal(entries(w, (3,), "float64"), "float64"))
    y = w.make(literal(entries(w, w.choice([(3,), (2, 3), ()]), "float64"), "float64"))
    f = x and y and w.function([x, y], INNER, w.rng.randrange(1, 5))
    if f is None:
        return
    call = w.choice((
        "torch.func.grad(lambda x, y: weigh({f}(x, y)), argnums=(0, 1))({x}, {y})",
        "torch.func.grad(lambda x, y: weigh({f}(x, y)), argnums=1)({x}, {y})",
        "torch.func.jacrev({f}, argnums=(0, 1))({x}, {y})",
        "torch.func.jacfwd({f}, argnums=(0, 1))({x}, {y})",
        "torch.func.hessian(lambda x, y: weigh({f}(x, y)), argnums=(0, 1))({x}, {y})",
        "torch.func.jvp({f}, ({x}, {y}), (tangent({x}), tangent({y})))",
        "torch.func.grad(lambda x, y: (weigh({f}(x, y)), {f}(x, y)), has_aux=True)({x}, {y})",
        "torch.func.vjp({f}, {x}, {y})[1](tangent({f}({x}, {y})))",
        "vmap({f}, (None, 0))({x}, torch.stack([{y}, {y}]))",
        "vmap(vmap({f}, (0, None)), (None, 0))(torch.stack([{x}, {x}]), torch.stack([{y}, {y}]))",
        "vmap(torch.func.grad(lambda x, y: weigh({f}(x, y))), (None, 0))"
        "({x}, torch.stack([{y}, {y}]))",
    ))  # fmt: skip
    w.emit(f"{w.fresh('r')} = {call.format(f=f, x=x, y=y)}")


@step(weight=0.3)
def inside_eager(w: Writer) -> None:
    """A transform within a recorded program, whose own gradient goes through the transform."""
    x = w.pick(lambda t: floating(t) and not t.is_complex() and t.requires_grad and t.numel())
    f = x and w.function([x], INNER, w.rng.randrange(1, 4))
    if f:
        body = TRANSFORMS[w.choice(list(TRANSFORMS))].format(f=f).replace("(x)", f"({x})")
        name = w.fresh()
        w.emit(f"def g{name}(x):\n    return {body}")
        if w.emit(f"{name} = g{name}({x})"):
            w.write({"derivatives": 1})
