"""Every operator, on its samples: as function, method, in-place form, and with out=."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.operands import (
    OF_KIND,
    broadcasts,
    differentiable,
    entries,
    floating,
    laid_out,
    literal,
    memory,
    number,
    operand,
    overlaps_itself,
)
from fuzz.writing import Writer, passes, step
from operators.samples import OPERATIONS, DType, Fixed, Operation, Sample
from operators.samples.factors import FACTORS
from operators.samples.linalg import LINALG
from operators.samples.special import SPECIAL

#: Operators that no expression of the form `function(arguments)` calls.
EXPRESSIONS = {
    "Tensor.T": "{0}.T",
    "Tensor.mT": "{0}.mT",
    "Tensor.H": "{0}.H",
    "Tensor.mH": "{0}.mH",
    "Tensor.fill": "{0}.clone().fill_({1})",
    "Tensor.fill by a tensor": "{0}.clone().fill_({1})",
    "Tensor.zero": "{0}.clone().zero_()",
    "Tensor.copy": "{0}.clone().copy_({1})",
    "@": "{0} @ {1}",
    "Tensor.__getitem__": "{0}[{1}]",
    "slice of a dimension": "{0}[{1}]",
}
#: Memory that is not filled.
LEFT_OUT = ("empty", "new_empty")
#: Operators whose operands must be as the samples have them: sorted, regular, within a domain.
PARTICULAR = {"bucketize", "searchsorted", *(o.name for o in (*LINALG, *SPECIAL, *FACTORS))}


def render(value: Any, operands: Any, dtype: str) -> str:
    """The source of one argument; `operands` gives names for the arrays of the sample."""
    if isinstance(value, np.ndarray):
        return next(operands)
    if isinstance(value, Fixed):
        kept = dtype if value.takes_dtype else str(value.array.dtype)
        return literal(value.array, kept)
    if isinstance(value, DType):
        return f"torch.{value.name}"
    if isinstance(value, slice):
        return f"slice({value.start}, {value.stop}, {value.step})"
    if value is Ellipsis:
        return "..."
    if type(value) in (tuple, list):
        parts = [render(item, operands, dtype) for item in value]
        inside = ", ".join(parts)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if isinstance(value, (float, complex)):
        return number(value)
    return repr(value)


def kind_of(w: Writer, operation: Operation) -> str:
    kinds = [kind for kind in ("real", "complex", "integer") if getattr(operation, kind)]
    weights = [{"real": 8, "complex": 2, "integer": 1}[kind] for kind in kinds]
    return w.rng.choices(kinds, weights)[0]


def dtype_for(w: Writer, operation: Operation, kind: str) -> str:
    dtypes = OF_KIND[kind]
    if not operation.half:
        dtypes = [d for d in dtypes if d not in ("float16", "bfloat16")]
    return w.choice(dtypes)


def call(w: Writer, operation: Operation, sample: Sample, names: list[str], dtype: str) -> str:
    """The source of a call in one of its forms."""
    operands = iter(names)
    args = [render(value, operands, dtype) for value in sample.args]
    kwargs = [f"{key}={render(value, operands, dtype)}" for key, value in sample.kwargs.items()]
    if operation.name in EXPRESSIONS:
        return EXPRESSIONS[operation.name].format(*args)
    path = operation.path or operation.name
    if not isinstance(path, str):
        return f"sampled({operation.name!r})({', '.join([*args, *kwargs])})"
    if path.startswith("Tensor."):
        return f"{args[0]}.{path[7:]}({', '.join([*args[1:], *kwargs])})"
    is_tensor = isinstance(sample.args[0], np.ndarray)
    if operation.method and is_tensor and w.chance(0.4):
        return f"{args[0]}.{path}({', '.join([*args[1:], *kwargs])})"
    return f"torch.{path}({', '.join([*args, *kwargs])})"


def sampled(w: Writer) -> tuple[Operation, Sample, str, list[str]] | None:
    """An operator, one of its samples, a dtype and names of operands."""
    operation = w.choice(OPERATIONS)
    kind = kind_of(w, operation)
    samples = operation.draw(kind)
    if operation.name in LEFT_OUT or not samples:
        return None
    sample = w.choice(samples)
    dtype = dtype_for(w, operation, kind)
    particular = operation.name in PARTICULAR
    names = [operand(w, array, dtype, particular) for array in sample.arrays()]
    return None if None in names else (operation, sample, dtype, names)


@step(weight=6, inside=True)
def operator(w: Writer) -> None:
    drawn = sampled(w)
    if drawn is not None:
        called(w, *drawn)


def called(w: Writer, operation: Operation, sample: Sample, dtype: str, names: list[str]) -> None:
    """Write the call of an operator, and give names to the parts of its result."""
    if operation.name == "Tensor.__setitem__":
        assign(w, sample, names, dtype)
        return
    name = w.fresh()
    if w.emit(f"{name} = {call(w, operation, sample, names, dtype)}"):
        take_apart(w, name)


def assign(w: Writer, sample: Sample, names: list[str], dtype: str) -> None:
    operands = iter(names)
    target, key, value = [render(part, operands, dtype) for part in sample.args]
    copy = w.make(f"{target}.clone()")
    if copy:
        w.emit(f"{copy}[{key}] = {value}")


def take_apart(w: Writer, name: str) -> None:
    """Give names to some tensors of a result that is a tuple or a list."""
    result = w.value(name)
    if isinstance(result, (tuple, list)):
        for place, part in enumerate(result[:3]):
            if isinstance(part, w.run.lib.Tensor):
                w.make(f"{name}[{place}]")


@step(weight=2, inside=True)
def in_place_form(w: Writer) -> None:
    """The in-place form of an operator, on a copy or on what is there."""
    drawn = sampled(w)
    if drawn is None:
        return
    operation, sample, dtype, names = drawn
    method = operation.name + "_"
    if not hasattr(w.run.lib.Tensor, method) or not isinstance(sample.args[0], np.ndarray):
        return
    operands = iter(names)
    args = [render(value, operands, dtype) for value in sample.args]
    kwargs = [f"{key}={render(value, operands, dtype)}" for key, value in sample.kwargs.items()]
    target = args[0]
    first = w.value(target)
    safe = not overlaps_itself(first) and all(
        name == target or memory(w.value(name)) != memory(first) for name in names
    )
    if w.chance(0.7) or not safe or target in getattr(w, "captured", ()):
        target = w.make(f"{target}.clone()" if w.chance(0.7) else f"{target} * 1")
    if target is None:
        return
    like = [
        place for place, value in enumerate(sample.args)
        if place and isinstance(value, np.ndarray) and value.shape == sample.args[0].shape
    ]  # fmt: skip
    # Of memory with gaps PyTorch does not see that it is read and written at once.
    if like and w.value(target).is_contiguous() and w.chance(0.2):
        args[w.choice(like)] = target + w.choice(["", "", "[...]", ".detach()"])
    w.emit(f"{target}.{method}({', '.join([*args[1:], *kwargs])})")


@step(weight=0.5)
def out_form(w: Writer) -> None:
    """The result goes into a tensor that is there: fitting, of another shape, or not contiguous."""
    drawn = sampled(w)
    if drawn is None or not drawn[0].out:
        return
    operation, sample, dtype, names = drawn
    operands = iter(names)
    args = [render(value, operands, dtype) for value in sample.args]
    kwargs = [f"{key}={render(value, operands, dtype)}" for key, value in sample.kwargs.items()]
    path = operation.path or operation.name
    if not isinstance(path, str):
        return
    expression = f"torch.{path}({', '.join([*args, *kwargs])}"
    with_grad = "" if w.chance(0.3) else ".detach()"
    result = w.make(f"{expression}){with_grad}")
    if result is None or not isinstance(w.value(result), w.run.lib.Tensor):
        return
    target = w.make(f"torch.zeros_like({result})")
    if target and w.value(target).dim() and w.chance(0.3):
        target = w.make(f"torch.stack([{target}, {target}], -1)[..., 1]")
    if target:
        wrapped = f"{expression}, out={target})"
        w.emit(f"with torch.no_grad():\n    {wrapped}" if w.chance(0.8) else wrapped)


# Chains of simple functions of what is there ------------------------------------------------------

UNARY = (
    "{x}.tanh()", "{x}.sin()", "-{x}", "{x}.sigmoid()", "{x}.cos()", "{x}.clone()", "{x}.atan()",
    "{x}.square()", "({x} * 0.5).exp()", "({x} * {x} + 1).log()", "({x} * {x} + 1).sqrt()",
    "({x} * {x} + 1).reciprocal()", "{x} ** 2", "{x} ** 3", "({x} * {x} + 1) ** -1.5", "{x} * 2",
    "3 - {x}", "{x} / 4", "{x} + 1", "{x} * 1", "{x}.sum()", "{x}.mean()", "{x}.abs()",
    "{x}.relu()", "{x}.contiguous()", "{x}.detach().clone()", "{x}.round()", "{x}.sign()",
    "{x}.__rsub__(2)", "2 ** {x}", "1 / ({x} * {x} + 1)", "{x}.logsumexp(0)", "{x}.amax(0)",
    "({x} * {x} + 1).prod(0)", "{x}.var(0, unbiased=False)", "{x}.softmax(0)", "{x}.cumsum(0)",
    "{x}.sort(0)[0]", "{x}.max(0)[0]", "{x}.flip(0)", "{x}.roll(1, 0)", "{x}.sum(-1, keepdim=True)",
    "{x}.masked_fill({x} > 0, 0.5)", "{x}.repeat_interleave(2, 0)", "{x}.double()", "{x}.float()",
    "{x}.to(torch.complex128)", "torch.zeros_like({x})", "{x}.new_ones({x}.shape)",
    "{x}.index_select(0, torch.tensor([0, 0]))", "{x}.clamp(-0.8, 0.7)", "{x}.norm()",
)  # fmt: skip
BINARY = (
    "{x} * {y}", "{x} + {y}", "{x} - {y}", "{x} / ({y} * {y} + 1)", "torch.atan2({x}, {y})",
    "torch.addcmul({x}, {y}, {y}, value=0.5)", "torch.add({x}, {y}, alpha=2)",
    "torch.where({x} > 0, {x}, {y})", "torch.maximum({x}, {y})", "{x}.__rsub__({y})",
    "torch.lerp({x}, {y}, 0.25)", "{x} == {y}", "{x} // ({y} * {y} + 1)", "{x} % ({y} * {y} + 1)",
    "torch.hypot({x}, {y})", "{x}.__rmul__({y})", "{x} ** {y}", "{x} > {y}",
)  # fmt: skip


@step(weight=4, inside=True)
def simple(w: Writer) -> None:
    x = w.pick()
    if x:
        w.make(w.choice(UNARY).format(x=x))


def reading(w: Writer, test: Any) -> str | None:
    """A tensor to read: inside a function, sometimes one from outside."""
    captured = [n for n in getattr(w, "captured", ()) if passes(test, w.value(n))]
    if captured and w.chance(0.3):
        return w.choice(captured)
    return w.pick(test)


@step(weight=4, inside=True)
def together(w: Writer) -> None:
    x = w.pick()
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: broadcasts(a, t))
    if y:
        x, y = (x, y) if w.chance(0.5) else (y, x)
        w.make(w.choice(BINARY).format(x=x, y=y))


@step(weight=1, inside=True)
def joined(w: Writer) -> None:
    x = w.pick(lambda t: t.dim() > 0)
    if x is None:
        return
    shape = w.value(x).shape
    y = reading(w, lambda t: t.shape == shape)
    dim = w.rng.randrange(-len(shape), len(shape))
    w.make(f"torch.{w.choice(['cat', 'stack'])}([{x}, {y}], {dim})")


@step(weight=1, inside=True)
def multiplied(w: Writer) -> None:
    x = w.pick(lambda t: 0 < t.dim() <= 2)
    if x is None:
        return
    a = w.value(x)
    y = reading(w, lambda t: 0 < t.dim() <= 2 and t.shape[0] == a.shape[-1] and t.dtype == a.dtype)
    if y:
        w.make(f"{x} @ {y}")


@step(weight=1)
def another_leaf(w: Writer) -> None:
    shape = tuple(w.value(w.choice(w.tensors())).shape) if w.tensors() and w.chance(0.5) else (3,)
    dtype = w.choice(OF_KIND[w.choice(["real", "real", "real", "complex", "integer"])])
    laid_out(w, entries(w, shape, dtype), dtype, differentiable(dtype) and w.chance(0.8))


@step(weight=0.4, inside=True)
def converted(w: Writer) -> None:
    x = w.pick(floating)
    if x:
        w.make(f"{x}.to(torch.{w.choice(OF_KIND['real'])})")
