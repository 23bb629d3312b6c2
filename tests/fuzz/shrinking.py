"""Makes a program that shows a difference smaller, as long as it still shows it."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Callable, Iterator

from fuzz.program import Program, Step

SECONDS = 20.0


def shrink(program: Program, shows: Callable[[Program], bool], seconds: float = SECONDS) -> Program:
    """The smallest program found that still shows the difference."""
    limit = time.monotonic() + seconds

    def better(candidate: Program) -> bool:
        try:
            return shows(candidate)
        except Exception:
            return False

    changed = True
    while changed and time.monotonic() < limit:
        changed = False
        for change in (without_steps, without_aliases, simplified):
            candidates = change(program)
            while (candidate := next(candidates, None)) and time.monotonic() < limit:
                if better(candidate):
                    program, changed = candidate, True
                    candidates = change(program)
    return program


def apart(work: Callable[[], str]) -> str:
    """The result of some work in a process of its own; nothing if that dies, as PyTorch may."""
    if not hasattr(os, "fork"):
        return work()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(writing, "w") as pipe:
                pipe.write(work())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    return result


def without_steps(program: Program) -> Iterator[Program]:
    """The program without a run of steps, long runs first, late ones first."""
    count = len(program.steps)
    length = count // 2
    while length:
        for start in range(count - length, -1, -1):
            steps = program.steps[:start] + program.steps[start + length :]
            if steps:
                yield Program(steps, program.ours)
        length //= 2


def without_aliases(program: Program) -> Iterator[Program]:
    """The program without a step like `t2 = t1`, with the one name in place of the other."""
    for number, step in enumerate(program.steps):
        alias = re.fullmatch(r"(\w+) = (\w+)", step.source)
        if alias:
            rest = [
                Step(re.sub(rf"\b{alias[1]}\b", alias[2], later.source))
                for later in program.steps[number + 1 :]
            ]
            yield Program(program.steps[:number] + rest, program.ours)


def simplified(program: Program) -> Iterator[Program]:
    """The program with one step made simpler."""
    for number, step in enumerate(program.steps):
        for source in simpler(step.source):
            changed = [*program.steps[:number], Step(source), *program.steps[number + 1 :]]
            yield Program(changed, program.ours)


def simpler(source: str) -> Iterator[str]:
    """Sources with one node of the syntax tree made simpler, each shorter than before."""
    tree = ast.parse(source)
    found = set()
    for place, _ in enumerate(ast.walk(tree)):
        for choice in range(8):
            changed = ast.parse(source)
            node = next(n for i, n in enumerate(ast.walk(changed)) if i == place)
            if not simplify(node, choice):
                continue
            try:
                text = ast.unparse(ast.fix_missing_locations(changed))
                compile(text, "<step>", "exec")
            except (SyntaxError, ValueError):
                continue
            if weight(text) < weight(source) and text not in found:
                found.add(text)
                yield text


def weight(text: str) -> tuple[int, str]:
    return len(text), text


def simplify(node: ast.AST, choice: int) -> bool:
    """Make a node of a syntax tree simpler in one of several ways; False if that way is none."""
    for field in ("body", "args", "keywords", "elts", "decorator_list"):
        items = getattr(node, field, None)
        if not isinstance(items, list) or choice >= min(4, len(items)):
            continue
        if field != "body" or len(items) > 1:
            del items[len(items) - 1 - choice]  # a statement, an argument, an element, a row
            return True
    if choice == 4:
        return _flatten_block(node) or _short_number(node)
    if choice in (5, 6, 7):
        return _hoist(node, choice - 5)
    return False


def _flatten_block(node: ast.AST) -> bool:
    """`with a: b` becomes `b`."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return False
    for place, inner in enumerate(body):
        if isinstance(inner, ast.With):
            body[place : place + 1] = inner.body
            return True
    return False


def _short_number(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        node.value = round(node.value, 1) if len(repr(node.value)) > 3 else 1.0
        return True
    return False


def _hoist(node: ast.AST, place: int) -> bool:
    """Replace an expression below this node by a part of itself: `f(x).g()` by `f(x)` or `x`."""
    for field, value in ast.iter_fields(node):
        for at, item in enumerate(value if isinstance(value, list) else [value]):
            parts = _parts(item)
            if place < len(parts):
                if isinstance(value, list):
                    value[at] = parts[place]
                else:
                    setattr(node, field, parts[place])
                return True
    return False


def _parts(node: object) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        function = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*[a for a in node.args if isinstance(a, ast.expr)], *function]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return []
