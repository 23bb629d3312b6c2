"""The steps of a program as text that people read; `WENGERT_LOG=native` prints it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...core.scalar.expressions import number, operands_of
from .frames import Layout
from .loops import Access, Call, Loop, Store
from .nests import Nest, Step

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INDICES = "ijklmnpq"


def listing(layout: Layout) -> str:
    """All steps, one after the other, with those of the blocks that they run."""
    names = {b.id: f"{b.source}{b.id}" for b in layout.buffers}
    lines: list[str] = []
    for place, step in enumerate(layout.steps):
        first, *rest = _step(step, names)
        lines += [f"{place}. {first}", *[f"   {line}" for line in rest]]
    return "\n".join(lines)


def _step(step: Step, names: dict[int, str]) -> Iterator[str]:
    if isinstance(step, Nest):
        yield f"{step.rows} rows" + (f" in {step.parts} parts" if step.is_split else "")
        for loop in step.loops:
            yield from _loop(loop, names)
        return
    if step.name == "gemm":
        yield _product(step, names)
        return
    reads, writes = (
        ", ".join(sorted(names[i] for i in ids)) for ids in (step.reads, step.writes)
    )
    if step.name == "eager":
        yield f"calls {step.arguments['instruction'].text().partition('  #')[0]}"
    else:
        yield f"{step.name}: {writes or 'nothing'} from {reads or 'nothing'}"
    for body in step.arguments.get("bodies", ()):
        yield "block"
        for line in listing(body.layout).splitlines():
            yield f"  {line}"


def _product(call: Call, names: dict[int, str]) -> str:
    given = call.arguments
    shape = ", ".join(map(str, given["shape"]))
    text = f"{_matrix(given['left'], names)} @ {_matrix(given['right'], names)}"
    if given["factor"] != 1:
        text = f"{given['factor']!r} * ({text})"
    if given["start"] is not None:
        text = f"{_matrix(given['start'], names)} + {text}"
    if given["least"] > -math.inf:
        text = f"max({given['least']!r}, {text})"
    return f"product: {names[given['out']]}[{shape}] = {text}, {given['inner']} terms"


def _matrix(access: Access, names: dict[int, str]) -> str:
    begin = f" from {access.offset}" if access.offset else ""
    return f"{names[access.buffer]}({', '.join(map(str, access.strides))}{begin})"


def _loop(loop: Loop, names: dict[int, str]) -> Iterator[str]:
    indices = [f"{_INDICES[d]} < {n}" for d, n in enumerate(loop.space)]
    yield f"for {', '.join(indices)}:"
    values = [
        repr(number(args[0], kind)) if name == "const" else f"v{at}"
        for at, (name, kind, args) in enumerate(loop.code)
    ]
    for at, ((name, kind, args), needed) in enumerate(zip(loop.code, loop.used(), strict=True)):
        if needed and name != "const":
            yield f"  v{at}: {kind} = {_instruction(name, args, values, names)}"
    for store in loop.stores:
        yield f"  {_store(store, values, names)}"
    for each in loop.reductions:
        over = ", ".join(_INDICES[d] for d in sorted(each.dims))
        yield f"  {_element(each.access, names)} = {each.name} of {values[each.value]} over {over}"


def _instruction(name: str, args: tuple, values: list[str], names: dict[int, str]) -> str:
    if name == "load":
        return _element(args[0], names)
    if name == "dot":
        terms, left, right, *_ = args
        return f"sum of {terms} products of {_element(left, names)}, {_element(right, names)}"
    operands = [values[i] for i in operands_of((name, "", args))]
    listed = ", ".join(operands)
    if name == "gather":
        return f"{_element(args[0], names)} at {listed}"
    if name == "cmp":
        return f"{operands[0]} {_RELATIONS.get(args[0], args[0])} {operands[1]}"
    if name in _INFIX:
        return f"{operands[0]} {_INFIX[name]} {operands[1]}"
    if name in ("call", "rescue"):
        return f"{args[0]}({listed})"
    if name == "form":
        return f"{len(args[0].code)} instructions of {listed}"
    return f"{name}({listed})"


def _element(access: Access, names: dict[int, str]) -> str:
    terms = [
        _INDICES[d] if step == 1 else f"{step}*{_INDICES[d]}"
        for d, step in enumerate(access.strides)
        if step
    ]
    if access.offset or not terms:
        terms.append(str(access.offset))
    return f"{names[access.buffer]}[{' + '.join(terms)}]"


def _store(store: Store, values: list[str], names: dict[int, str]) -> str:
    place = _element(store.access, names)
    if store.indices:
        place += f" at {', '.join(values[i] for i in store.indices)}"
    return f"{place} {'+=' if store.adds else '='} {values[store.value]}"
