"""What tells graphs apart in another process too: the name under which disks keep their code."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import Any

from ...core.tensor import Tensor
from ...dispatch.declaration import Declaration
from .graph import Graph
from .literals import HOLE, is_printable, literal_key
from .nodes import Node
from .printer import Printer

_PACKAGE = __name__.partition(".")[0] + "."


def identity_of(graph: Graph) -> str | None:
    """A digest that differs for graphs that may compute something else.

    None where another process could not tell: a graph with operators that a program has declared,
    or with literals that have no text.
    """
    digest = hashlib.sha256()
    for node in graph.all_nodes():
        meaning = _meaning(node)
        if meaning is None:
            return None
        digest.update(meaning.encode())
        for value in _literals(node):
            if isinstance(value, Tensor):
                for part in literal_key(value):
                    digest.update(part if isinstance(part, bytes) else repr(part).encode())
            elif value is not HOLE and not is_printable(value):
                return None
    text = Printer(graph.block.names(), [], False).block(graph.block, "graph", "")
    digest.update(text.encode())
    return digest.hexdigest()


def _literals(node: Node) -> Iterator[Any]:
    """What a node has apart from its inputs, with what lies in tuples."""
    waiting = [*(node.arguments or ()), *node.attributes.values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (tuple, list)):
            waiting += value
        else:
            yield value


def _meaning(node: Node) -> str | None:
    """What there is to say of a node's kind beside its name; None where a program has made it."""
    operator = node.operator
    if operator is None:
        return "" if node.primitive is not None else None
    return _declared_here(operator) if isinstance(operator, Declaration) else None


@functools.cache
def _declared_here(operator: Declaration) -> str | None:
    """The function of NumPy's that a declaration names, if any; None where a function of the
    declaration is not this package's."""
    functions = (
        operator.kernel, operator.dtype_rule, *operator.rules.values(), *operator.facts.values()
    )  # fmt: skip
    if not all(
        str(getattr(each, "__module__", "")).startswith(_PACKAGE)
        for each in functions
        if callable(each)
    ):
        return None
    return getattr(operator.ufunc, "__name__", "")
