"""Where a tensor of a program comes from: the steps that made, named and changed it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module

import wengert
from fuzz.comparison import Difference, differences
from fuzz.declared.looking import VIEW_METHODS, is_gradient
from fuzz.program import Program, Step
from fuzz.runner import Failure, Run, execute
from operators.declared import EXPRESSIONS, NODES, VIEWS

#: Another name for a tensor, or what may return it as it is.
SAME = re.compile(
    r"^\s*\w+ = (?:torch\.(?:[\w.]*dropout\w*|real)\()?(\w+)(?:, .*\)|\)|"
    r"\.(?:to|type|type_as|contiguous|"
    r"double|float|half|bfloat16|cpu|detach_|requires_grad_|resolve_conj|resolve_neg)\(.*\)|"
    r"\.real)?$",
    re.MULTILINE,
)


def names_gradient(d: Difference) -> bool:
    """Whether a name is that of a gradient, or of a tensor that is made of one."""
    text, met = naming(d, d.name), {d.name}
    # A custom Function may return what it is given; the primal of a gradient is a view of it.
    of = r"= (?:\w+\.apply\(|forward_ad\.unpack_dual\((?=\w+\)\.primal))?"
    while (made_of := re.search(rf"{of}(t\d+)\b", text)) and made_of[1] not in met:
        met.add(made_of[1])
        text = naming(d, made_of[1])
    return is_gradient(d) or bool(re.search(rf"{of}[dgr]\d", text))


def made_by(d: Difference) -> str:
    """The source of what differs: its step or the one that named it, and functions called there."""
    text = naming(d, d.name) + changing(d, d.name) if d.source == "end" else d.source
    met: set[str] = set()
    while (other := SAME.search(text)) and other[1] not in met:
        met.add(other[1])
        text = f"{naming(d, other[1])}\n{changing(d, other[1])}\n{text}"
    for step in reversed(d.program.steps):
        definition = re.match(r"(?:def|class) (\w+)", step.source)
        if definition and re.search(rf"\b{definition[1]}\b", text):
            text += "\n" + step.source
    return text


def history(d: Difference) -> str:
    """The source of what differs and of all steps that it was made of, or changed by."""
    roots = memory_of(d.program.text)

    def names(pattern: str, text: str) -> set[str]:
        return {roots.get(word, word) for word in re.findall(pattern, text)}

    found = [d.source if d.source != "end" else d.name]
    needed = names(r"\w+", found[0])
    for step in reversed(d.program.steps[: d.step + 1]):
        made = names(r"\w+", " ".join(step.targets))
        made |= names(r"^(?:def|class) (\w+)", step.source)
        made |= names(r"(\w+)(?:\.\w+_\(|\[.*\] = | [-+*/%]{1,2}= )", step.source)
        made |= names(r"out=(\w+)", step.source)
        if made & needed or step.source == d.source:
            found.append(step.source)
            needed |= names(r"\w+", step.source)
    return "\n".join(reversed(found))


def leading_to(d: Difference) -> str:
    """What may be the cause of a difference; all that uses a leaf decides about its gradient."""
    return d.program.text if d.field in ("grad", "log") else history(d)


def first_word(source: str) -> str:
    """The name that a step begins with."""
    word = re.match(r"\s*(\w+)", source)
    return word[1] if word else ""


def naming(d: Difference, name: str) -> str:
    """The source of the steps that give a name to something."""
    return "\n".join(step.source for step in d.program.steps if name in step.targets)


def origin(d: Difference, name: str) -> str:
    """The source that gives a name to something, or to the several results that it is one of."""
    text, met = naming(d, name), {name}
    while (other := SAME.fullmatch(text)) and other[1] not in met:
        met.add(other[1])
        text = naming(d, other[1])
    return "\n".join([text, *(naming(d, whole) for whole in re.findall(r"= (t\d+)\[", text))])


def changing(d: Difference, name: str) -> str:
    """The source of the steps that call an in-place form on what has a name."""
    called = re.compile(rf"\b{name.partition('[')[0]}\.\w+_\(")
    return "\n".join(step.source for step in d.program.steps if called.search(step.source))


def heard_nodes(d: Difference) -> list[str]:
    """The names of tensors whose nodes have hooks."""
    heard = re.findall(r"(\w+)\.grad_fn\.register_", d.program.text)
    return heard + re.findall(r"get_gradient_edge\((\w+)\)\.node", d.program.text)


def hears_other_nodes(d: Difference) -> bool:
    """Whether a program has a hook on a node that is declared to be another."""
    return any(OTHER_NODES.search(origin(d, name) + changing(d, name)) for name in heard_nodes(d))


def hears_nodes_of_gradients(d: Difference) -> bool:
    """Whether a program has a hook on the node of a gradient, which is of our rules."""
    return any(re.match(r"[dgr]\d", name) for name in heard_nodes(d))


def memory_of(text: str) -> dict[str, str]:
    """For each name of a tensor that shares the memory of another one, the first name of that."""
    method = rf"\.(?:{VIEW_METHODS}|detach|contiguous|resolve_\w+)\("
    part = rf"$|\[|\.(?:data|real|imag|m?[TH])\b|{method}"
    dual = r"forward_ad\.(?:make_dual\((\w+),|unpack_dual\((\w+)\)\.primal)"
    same = rf"torch\.(?:{VIEW_METHODS}|resolve_\w+|real|ravel|atleast_\dd)\((\w+)"
    shared = rf"(\w+) = (?:{dual}|{same}|(\w+)(?:{part}))"
    roots: dict[str, str] = {}
    for alias, *others in re.findall(shared, text, re.MULTILINE):
        base = next(filter(None, others))
        roots[alias] = roots.get(base, base)
    return roots


#: The name of what a view by strides is taken of.
STRIDED = re.compile(r"\b\w+(?=\.as_strided\()(?<!torch)|(?<=torch\.as_strided\()\w+")


def strides_of_view_decide(d: Difference) -> bool:
    """Whether both forms of a program agree once each view by strides is one of the whole memory.

    Such a view of a view shows the same elements then.
    """
    roots = memory_of(d.program.text)

    def of_whole(operand: re.Match) -> str:
        return roots.get(operand[0], operand[0])

    steps = [Step(STRIDED.sub(of_whole, step.source)) for step in d.program.steps]
    program = Program(steps, d.program.ours)
    ours, theirs = execute(program, wengert), execute(program, wengert, plain=True)
    return not ours[d.step].error and not any(
        other.field == d.field and other.name == d.name
        for other in differences(program, ours, theirs)
    )


def changes_memory_of_gradient(d: Difference) -> bool:
    """Whether what a step begins with shares memory with a gradient: a view, or a dual tensor."""
    name = first_word(d.source)
    return memory_of(d.program.text).get(name, name)[:1] in ("d", "g", "r")


def asks_beside_compiled(d: Difference) -> bool:
    """Whether gradients are asked for with respect to tensors that a compiled call returned or got,
    none of them a leaf."""
    roots = memory_of(d.program.text)
    compiled = "|".join(re.findall(r"^(\w+) = compiled\(", d.program.text, re.MULTILINE))
    beside: set[str] = set()
    for step in d.program.steps[: d.step]:
        call = compiled and re.fullmatch(rf"(\w+) = (?:{compiled})\((.*)\)", step.source)
        if call:
            beside |= {roots.get(name, name) for name in (call[1], *call[2].split(", "))}
    edge = r"(?:torch\.autograd\.graph\.get_gradient_edge\()?"
    asked = re.search(rf"autograd\.grad\({edge}\w+\)?, (?:\[([^\]]*)\]|{edge}(\w+)\))", d.source)
    names = (asked[1] or asked[2]).split(", ") if asked else []
    return bool(names) and all(
        roots.get(name, name) in beside
        and "requires_grad=True" not in naming(d, roots.get(name, name))
        for name in names
    )


def frees_a_graph(d: Difference) -> bool:
    """Whether a step before this one runs backward and lets go of the graph."""
    return any(
        re.search(r"\bbackward\(|autograd\.grad\(", step.source)
        and not re.search("(retain|create)_graph=True", step.source)
        for step in d.program.steps[: d.step]
    )


def goes_on_plainly(d: Difference) -> bool:
    """Whether the step raises nothing where nothing is compiled or batched."""
    return execute(d.program, wengert, plain=True)[d.step].error is None


def fails_plainly(d: Difference, failure: Failure) -> bool:
    """Whether the step fails like this where nothing is compiled or batched."""
    error = execute(d.program, wengert, plain=True)[d.step].error
    return error is not None and error.message[:60] == failure.message[:60]


def goes_without_integers(d: Difference) -> bool:
    """Whether the difference is gone where PyTorch detaches integers that require grad."""
    lib = import_module("torch")
    ours, theirs = execute(d.program, wengert), execute(d.program, lib, place=detach_integers)
    return not any(
        (other.step, other.field, other.name) == (d.step, d.field, d.name)
        for other in differences(d.program, ours, theirs)
    )


def detach_integers(run: Run) -> None:
    """Detach the tensors of a run that require grad and are not of floating point."""
    for name, value in run.space.items():
        if not isinstance(value, run.lib.Tensor) or value.is_floating_point():
            continue
        if value.requires_grad and not value.is_complex():
            run.space[name] = value.detach()


def calls(names: Iterable[str]) -> re.Pattern:
    """Finds uses of operators in source."""
    words = "|".join(sorted({name.rpartition(".")[2] for name in names}))
    return re.compile(rf"(?:\.|sampled\('(?:linalg\.)?)(?:{words})_?\b")


def writes(expressions: Iterable[str]) -> re.Pattern:
    """Finds expressions with any number for 2 and any operand for x."""
    patterns = [
        re.escape(text).replace("2", r"(?<![\w.\])])[\d.]+j?").replace("x", r"[a-z(]")
        for text in expressions
    ]
    return re.compile("|".join(patterns))


#: What uses an operator or an expression whose graph is declared to be another.
OTHER_NODES = re.compile(f"{calls(NODES).pattern}|{writes(EXPRESSIONS).pattern}")


OTHER_VIEWS = calls(VIEWS)
