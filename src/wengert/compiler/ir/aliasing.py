"""Which values of a graph may share memory, and what that forbids.

A result that the caller gets must stay the only name of its memory if it was so before: the caller
may write into it. So a pass may not replace a value that leaves the graph by one that leaves it
too, that came from outside, or whose elements share memory with each other. And where the graph
itself writes in place, what may share that memory is left alone.
"""

from __future__ import annotations

from . import primitives as prim
from .blocks import Block
from .nodes import Node, Value


def shares_memory(node: Node) -> bool:
    """Whether its outputs may be, or be parts of, its inputs."""
    primitive = node.primitive
    return node.is_inplace or node.is_view or (primitive is not None and primitive.forwards)


class Aliases:
    """Classes of values that may share memory, of one block with all blocks inside it."""

    def __init__(self, block: Block) -> None:
        self.parents: dict[Value, Value] = {}
        self.outside: set[Value] = set()
        self.leaving: set[Value] = set()
        self.written: set[Value] = set()
        self.overlapping: set[Value] = set()
        self.passed_on: dict[Value, list[Value]] = {}
        self._visit(block)
        self.outside = {self.find(value) for value in (*block.inputs, *self.outside)}
        self.leaving = {self.find(value) for value in block.outputs}
        self.written = {self.find(value) for value in self.written}
        self.overlapping = {self.find(value) for value in self.overlapping}

    def find(self, value: Value) -> Value:
        """The representative of a value's class."""
        root = value
        while (parent := self.parents.get(root)) is not None:
            root = parent
        while value is not root:
            self.parents[value], value = root, self.parents[value]
        return root

    def unite(self, a: Value, b: Value) -> None:
        a, b = self.find(a), self.find(b)
        if a is b:
            return
        self.parents[a] = b
        for classes in (self.outside, self.leaving, self.written, self.overlapping):
            if a in classes:
                classes.add(b)

    def may_alias(self, a: Value, b: Value) -> bool:
        """Whether two values may share memory."""
        return self.find(a) is self.find(b)

    def leaves(self, value: Value) -> bool:
        """Whether those who get the outputs may see its memory."""
        return self.find(value) in self.leaving

    def comes_from_outside(self, value: Value) -> bool:
        """Whether its memory may be that of an input or a constant."""
        return self.find(value) in self.outside

    def is_written(self, value: Value) -> bool:
        """Whether a node writes into memory that it may share."""
        return self.find(value) in self.written

    def may_overlap(self, value: Value) -> bool:
        """Whether writing one element of it may change another one."""
        return self.find(value) in self.overlapping

    def touches_written(self, node: Node) -> bool:
        """Whether a node reads or returns memory that is written in place."""
        return bool(self.written) and any(map(self.is_written, (*node._inputs, *node._outputs)))

    def may_replace(self, old: Value, new: Value) -> bool:
        """Whether nobody outside can tell when `new` is used in the place of `old`."""
        if self.is_written(old) or self.is_written(new):
            return False
        if not self.leaves(old) or self.may_alias(old, new):
            return True
        # A view of what nobody else sees would still say that it is one.
        return not (
            self.leaves(new)
            or self.comes_from_outside(new)
            or self.may_overlap(new)
            or self.may_be_view(new)
        )

    def may_be_view(self, value: Value) -> bool:
        """Whether it is made by a view, or may be such a value that came into or out of a block."""
        met, found = {value}, [value]
        while found:
            value = found.pop()
            if value.node.is_view:
                return True
            sources = [source for source in self.passed_on.get(value, ()) if source not in met]
            met.update(sources)
            found += sources
        return False

    def replaced(self, old: Value, new: Value) -> None:
        """Keep the classes true after a replacement."""
        self._pass_on(new, old)

    def _visit(self, block: Block) -> None:
        for node in block.nodes():
            if node.kind == prim.CONSTANT:
                self.outside.add(node._outputs[0])
            elif shares_memory(node):
                sources = node._inputs[:1] if node.operator is not None else node._inputs
                for source in sources:
                    for value in node._outputs:
                        self._pass_on(source, value)
                if node.is_inplace:
                    self.written.add(node._inputs[0])
                elif node.fact("overlaps"):
                    self.overlapping.update(node._outputs)
            # A Function's second block is no part of what it does itself.
            for inner in node.blocks[:1] if node.kind == prim.FUNCTION else node.blocks:
                self._visit(inner)
                self._enter(node, inner)

    def _enter(self, node: Node, block: Block) -> None:
        """Inputs and outputs of a block may be those of its node, whichever goes where."""
        given = block.inputs
        for value, source in zip(reversed(given), reversed(node._inputs), strict=False):
            self._pass_on(source, value)
        for value, result in zip(node._outputs, block.outputs, strict=False):
            self._pass_on(result, value)

    def _pass_on(self, source: Value, value: Value) -> None:
        self.unite(value, source)
        self.passed_on.setdefault(value, []).append(source)
