"""What a difference looks like: its field, what was refused, what its program does."""

from __future__ import annotations

import re
from collections.abc import Iterator

import wengert
from fuzz.comparison import Difference
from fuzz.runner import FIELDS, execute
from wengert.backends.geometry import may_overlap


def strip(name: object) -> object:
    return re.sub(r"^torch::autograd::", "", name) if isinstance(name, str) else name


def is_gradient(d: Difference) -> bool:
    """Programs give such names to what backward has made."""
    return d.name[:1] in ("d", "g", "r")


def raises(d: Difference, *phrases: str) -> bool:
    """Whether PyTorch raises with one of these phrases, and we do not or otherwise."""
    return (
        d.field in ("error", "message")
        and d.theirs is not None
        and any(re.search(phrase, d.theirs.message) for phrase in phrases)
    )


def refused(d: Difference, *phrases: str) -> bool:
    """Whether PyTorch alone raises, with one of these phrases."""
    return d.field == "error" and d.ours is None and raises(d, *phrases)


def goes_on(d: Difference) -> bool:
    """Whether we raise nothing, or what a hook raises later: on purpose, or given no gradient."""
    if d.ours is None:
        return True
    return d.field == "error" and bool(re.search("^first call$|'NoneType'", d.ours.message))


def finds_change(d: Difference) -> bool:
    """Whether we find that what is saved was changed, and PyTorch does not, or meets a hook."""
    return (
        d.field == "error"
        and (d.theirs is None or d.theirs.message == "first call")
        and d.ours is not None
        and "modified by an inplace operation" in d.ours.message
    )


def is_refused_change(d: Difference) -> bool:
    """Whether PyTorch alone finds that what it has saved was changed, or has found it earlier."""
    changed = "modified by an inplace operation"
    return (
        d.field == "error" and goes_on(d) and raises(d, changed)
        or d.field in ("log", "grad") and after(d, changed)
    )


def refused_by_us(d: Difference, *phrases: str) -> bool:
    """Whether we alone raise, with one of these phrases."""
    return (
        d.field == "error"
        and d.theirs is None
        and any(re.search(phrase, d.ours.message) for phrase in phrases)
    )


def after(d: Difference, phrase: str) -> bool:
    """Whether PyTorch has raised with this phrase so far."""
    return any(re.search(phrase, message) for message in d.before)


#: Derivatives that transforms take, and their orders.
ORDERS = {
    "grad": 1, "grad_and_value": 1, "vjp": 1, "jvp": 1, "jacrev": 1, "jacfwd": 1, "hessian": 2,
    "jacobian": 1, "linearized": 1,
}  # fmt: skip


def order(d: Difference) -> int:
    """The order of the derivatives that the nested transforms of a program take."""
    return sum(
        order * len(re.findall(rf"\b{name}\(", d.program.text)) for name, order in ORDERS.items()
    )


def kinds(d: Difference) -> tuple:
    return tuple(error and error.kind for error in (d.ours, d.theirs))


def not_floating(d: Difference) -> bool:
    return not d.dtype.startswith(("float", "bfloat", "complex"))


VIEW_METHODS = (
    "as_strided|view|expand|select|narrow|diagonal|unsqueeze|squeeze|transpose|swapaxes|swapdims|"
    "movedim|permute|reshape|flatten|unfold|t"
)


#: A change of a shape in place.
RESHAPED = re.compile(r"\.(t|transpose|swapaxes|swapdims|squeeze|unsqueeze|resize|as_strided)_\(")


#: An assignment to a part of a tensor.
ASSIGNED = re.compile(r"^\s*\w+\[.*\] = ", re.MULTILINE)


def changes(d: Difference) -> bool:
    """Whether the program changes a tensor in place."""
    return bool(re.search(r"\.\w+_\(|\] = | [-+*/%]{1,2}= |out=", d.program.text))


def changes_view(d: Difference) -> bool:
    """Whether the program changes a view in place."""
    views = re.findall(rf"(\w+) = \w+(?:\[|\.(?:{VIEW_METHODS})\()", d.program.text)
    return any(
        re.search(rf"\b{name}(?:\.\w+_\(| [-+*/%]{{1,2}}= )", d.program.text) for name in views
    )


#: A tensor is made a view by strides of itself.
STRIDED = re.compile(r"\.as_strided_\(\(([\d, ]*)\), \(([\d, ]*)\)")


def makes_overlap(d: Difference) -> bool:
    """Whether the program makes elements of a tensor share memory, in place."""
    return any(
        may_overlap(*(tuple(map(int, re.findall(r"\d+", part))) for part in call.groups()))
        for call in STRIDED.finditer(d.program.text)
    )


def has_empty(d: Difference) -> bool:
    """Whether the program makes a tensor without elements, or may in one of its functions."""
    if re.search(r"tensor\(\[+\]|\(0,|, 0[,)]|\[[2-9]:\]|\[:0\]", d.program.text):
        return True
    shape = FIELDS.index("shape")
    runs = execute(d.program, wengert)
    return any(0 in tensor[shape] for seen in runs for tensor in _tensors(seen.made))


def has_nan(d: Difference) -> bool:
    """Whether a tensor of the program has an element that is not a number."""
    values = FIELDS.index("values")
    runs = execute(d.program, wengert)
    return any("nan" in repr(tensor[values]) for seen in runs for tensor in _tensors(seen.made))


def has_raised(d: Difference, phrase: str) -> bool:
    """Whether we have raised with this phrase so far."""
    seen = execute(d.program, wengert)[: d.step + 1]
    return any(step.error and phrase in step.error.message for step in seen)


def records_inference(d: Difference) -> bool:
    """Whether a tensor that was made in inference mode requires grad, as programs see it."""
    return any(
        tensor[FIELDS.index("inference")] and tensor[FIELDS.index("requires_grad")]
        for seen in execute(d.program, wengert)
        for tensor in _tensors(seen.made)
    )


def _tensors(seen: object) -> Iterator[tuple]:
    """The tensors among nested lists of what was seen."""
    if isinstance(seen, tuple) and len(seen) == len(FIELDS):
        yield seen
    elif isinstance(seen, (tuple, list)):
        for part in seen:
            yield from _tensors(part)
