"""Hooks on tensors, nodes, accumulation and saving; flags and gradients of tensors."""

from __future__ import annotations

from fuzz.operands import recorded
from fuzz.writing import Writer, step

#: A gradient that a hook returns, or nothing.
CHANGES = ("None", "None", "g * 2", "g.clone()", "-g")


def hooked(w: Writer) -> int:
    w.facts["hooks"] = w.facts.get("hooks", 0) + 1
    return w.facts["hooks"]


@step(weight=3)
def on_tensor(w: Writer) -> None:
    x = w.pick(recorded)
    if x:
        n = hooked(w)
        w.emit(f"def h{n}(g):\n    log.append(('h{n}', seen(g)))\n    return {w.choice(CHANGES)}")
        w.emit(f"k{n} = {x}.register_hook(h{n})")


def made_again(t) -> bool:
    """A view of a changed base: which node it has is a declared difference."""
    return t._is_view() and t._version > 0


@step(weight=2)
def on_node(w: Writer) -> None:
    x = w.pick(lambda t: recorded(t) and not t.is_leaf and not made_again(t))
    if x is None:
        return
    n = hooked(w)
    changed = "tuple(None if g is None else g * 2 for g in {})"
    if w.chance(0.5):
        result = changed.format("grads") if w.chance(0.3) else "None"
        w.emit(f"def h{n}(grads):\n    log.append(('h{n}', seen(*grads)))\n    return {result}")
        w.emit(f"k{n} = {x}.grad_fn.register_prehook(h{n})")
    else:
        result = changed.format("inputs") if w.chance(0.3) else "None"
        note = f"log.append(('h{n}', seen(*inputs), seen(*outputs)))"
        w.emit(f"def h{n}(inputs, outputs):\n    {note}\n    return {result}")
        w.emit(f"k{n} = {x}.grad_fn.register_hook(h{n})")


def is_leaf(t) -> bool:
    return t.requires_grad and t.is_leaf and not t._is_view()


@step(weight=1)
def on_accumulation(w: Writer) -> None:
    x = w.pick(is_leaf)
    if x:
        n = hooked(w)
        forget = "\n    leaf.grad = None" if w.chance(0.3) else ""
        w.emit(f"def h{n}(leaf):\n    log.append(('h{n}', seen(leaf.grad))){forget}")
        w.emit(f"k{n} = {x}.register_post_accumulate_grad_hook(h{n})")


@step(weight=0.7)
def on_sink(w: Writer) -> None:
    """Hooks on an accumulator, which the program keeps: PyTorch drops its hooks with it."""
    x = w.pick(is_leaf)
    if x:
        n = hooked(w)
        w.emit(f"def h{n}(*grads):\n    log.append(('h{n}', len(grads)))")
        w.emit(f"n{n} = torch.autograd.graph.get_gradient_edge({x}).node")
        w.emit(f"k{n} = n{n}.register_{w.choice(['hook', 'prehook'])}(h{n})")


@step(weight=0.7)
def common(w: Writer) -> None:
    """One hook for two tensors that are no roots of backward: PyTorch does not count these."""
    x, y = w.pick(recorded), w.pick(recorded)
    if x is None:
        return
    n = hooked(w)
    a, b = w.make(f"{x} * 1"), w.make(f"{y} * 1")
    if not (a and b):
        return
    one = w.chance(0.5)
    show = "g" if one else "*g"
    w.emit(f"def h{n}(g):\n    log.append(('h{n}', seen({show})))")
    w.emit(f"k{n} = torch.autograd.graph.register_multi_grad_hook([{a}, {b}], h{n}, "
           f"mode={'any' if one else 'all'!r})")  # fmt: skip
    w.make(f"{a} + 0")
    w.make(f"{b} + 0")
    w.names = [name for name in w.names if name not in (a, b)]


@step(weight=0.7)
def with_backward(w: Writer) -> None:
    """A hook that runs another backward, and asks for a call at the end of the outer one."""
    x = w.pick(recorded)
    if x:
        n = hooked(w)
        w.emit(f"i{n} = torch.ones(2, dtype=torch.float64, requires_grad=True)")
        w.emit(f"""def h{n}(g):
    with torch.enable_grad():
        (i{n} * i{n} * (1 if g is None else g.detach().sum())).sum().backward()
    log.append(('h{n}', seen(i{n}.grad)))
    engine = torch.autograd.Variable._execution_engine
    engine.queue_callback(lambda: log.append(('end {n}',)))""")
        w.emit(f"k{n} = {x}.register_hook(h{n})")


@step(weight=0.5)
def failing(w: Writer) -> None:
    """A hook that raises the first time."""
    x = w.pick(recorded)
    if x:
        n = hooked(w)
        w.emit(f"c{n} = []")
        w.emit(f"""def h{n}(g):
    log.append(('h{n}', len(c{n})))
    c{n}.append(1)
    if len(c{n}) == 1:
        raise ValueError('first call')""")
        w.emit(f"k{n} = {x}.register_hook(h{n})")


@step(weight=0.5)
def removed(w: Writer) -> None:
    n = w.facts.get("hooks", 0)
    if n:
        w.emit(f"k{w.rng.randrange(1, n + 1)}.remove()")


@step(weight=1)
def on_saving(w: Writer) -> None:
    """Saved tensors go through hooks, and may come back changed."""
    x = w.pick(recorded)
    if x:
        n = hooked(w)
        factor = w.choice(["", " * 2"])
        call = w.choice(["{x}.exp()", "{x}.tanh()", "{x} * {x}", "{x}.sigmoid()", "{x}.var()"])
        name = w.fresh()
        w.emit(f"def h{n}(t):\n    log.append(('h{n}', seen(t)))\n    return t.detach().clone()")
        w.emit(f"with torch.autograd.graph.saved_tensors_hooks(h{n}, lambda t: t{factor}):\n"
               f"    {name} = {call.format(x=x)}")  # fmt: skip


# Flags and gradients ------------------------------------------------------------------------------


@step(weight=1)
def retained(w: Writer) -> None:
    """Not of a second output, which PyTorch stumbles over when it is changed in place later."""
    x = w.pick(lambda t: recorded(t) and not (t.output_nr and not t._is_view()))
    if x:
        w.emit(f"{x}.retain_grad()")


@step(weight=0.5)
def required(w: Writer) -> None:
    x = w.names[-1] if w.names else None
    if x and not w.value(x)._is_view():
        w.emit(f"{x}.requires_grad_()")


def bare(w: Writer, t) -> bool:
    """Neither hooks nor views, which in PyTorch keep a history that leads nowhere."""
    others = [w.value(name) for name in w.tensors()]
    return not w.facts.get("hooks") and not t.retains_grad and not t._is_view() and not any(
        other._base is t or other.grad_fn is not None and other.is_leaf for other in others
    )


@step(weight=0.4)
def released(w: Writer) -> None:
    x = w.pick()
    if x and bare(w, w.value(x)):
        w.emit(f"{x}.{w.choice(['requires_grad_(False)', 'detach_()'])}")


@step(weight=0.4)
def forgotten(w: Writer) -> None:
    x = w.pick(is_leaf)
    if x:
        w.emit(f"{x}.grad = {w.choice(['None', f'torch.ones_like({x})', f'tangent({x})'])}")


@step(weight=0.4)
def reused(w: Writer) -> None:
    x = w.pick(lambda t: t.is_leaf and t.grad is not None)
    if x:
        w.emit(f"{w.fresh('g')} = {x}.grad")


@step(weight=0.3)
def counted(w: Writer) -> None:
    x = w.pick(lambda t: not t.is_inference())
    if x:
        w.emit(f"torch.autograd.graph.increment_version([{x}])")
