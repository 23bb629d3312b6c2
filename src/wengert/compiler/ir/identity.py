"""What tells graphs apart in another process too: the name under which disks keep their code."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from ...core.tensor import Tensor
from ...dispatch.declaration import Declaration
from .blocks import Block
from .graph import Graph
from .literals import HOLE, is_printable, literal_key, literal_text
from .nodes import Node, Value

_PACKAGE = __name__.partition(".")[0] + "."
#: Classes of literals that `repr` tells apart.
_PLAIN = frozenset((int, float, complex, bool, str, type(None), type(HOLE)))


def identity_of(graph: Graph) -> str | None:
    """A digest that differs for graphs that may compute something else.

    None where another process could not tell: a graph with operators that a program has declared,
    or with literals that have no text.
    """
    try:
        said = _Wording().block(graph.block)
    except _Untold:
        return None
    return hashlib.sha256(repr(said).encode()).hexdigest()


class _Untold(Exception):
    """A graph has something that means nothing to another process."""


class _Wording:
    """Says what there is to a graph in nested tuples of texts and numbers; values are numbered."""

    def __init__(self) -> None:
        self.numbers: dict[Value, int] = {}
        self.types: dict[Any, str] = {}

    def block(self, block: Block) -> tuple:
        inputs = self.defined(block.param_node._outputs)
        nodes = [self.node(node) for node in block.nodes()]
        return inputs, nodes, self.used(block.return_node)

    def node(self, node: Node) -> tuple:
        meaning = _meaning(node)
        if meaning is None:
            raise _Untold
        blocks = [self.block(each) for each in node.blocks]
        return (
            node.kind, meaning, self.used(node), self.literal(node.arguments),
            [(name, self.literal(value)) for name, value in node.attributes.items()],
            blocks, self.defined(node._outputs),
        )  # fmt: skip

    def used(self, node: Node) -> list[int]:
        """The numbers of the values that a node reads."""
        return [self.numbers[value] for value in node._inputs]

    def defined(self, values: list[Value]) -> list[str]:
        """The types of new values, which are numbered in this order."""
        found = []
        for value in values:
            self.numbers[value] = len(self.numbers)
            text = self.types.get(value.type)
            if text is None:
                text = self.types[value.type] = str(value.type)
            found.append(text)
        return found

    def literal(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple or kind is list:
            return (kind.__name__, [self.literal(item) for item in value])
        if isinstance(value, Tensor):
            *said, elements = literal_key(value)
            return (*said, hashlib.sha256(elements).hexdigest())
        if not is_printable(value):
            raise _Untold
        return (kind.__name__, literal_text(value))


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
