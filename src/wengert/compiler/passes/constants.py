"""Constants: computed where everything is known, and kept once each."""

from __future__ import annotations

from ..interpret.program import run
from ..ir import primitives as prim
from ..ir.aliasing import Aliases
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.literals import literal_key
from ..ir.nodes import Node
from .cse import literal_is_large

#: Results larger than their operands are folded only up to this many bytes.
LIMIT = 1 << 16
#: These make something of nothing: as a constant it would only need memory.
_NOT_FOLDED = {prim.CONSTANT, prim.FULL, prim.AUTOGRAD_ZERO}


def fold_constants(graph: Graph, limit: int = LIMIT) -> Graph:
    """Replace nodes that depend on constants alone by their results, unless those are larger than
    `limit` bytes and larger than the operands; choose the branch of a `cond` that is known.

    What leaves the graph is computed each time: the caller may write into it.
    """
    _fold(graph.block, limit, Aliases(graph.block))
    return graph


def _fold(block: Block, limit: int, aliases: Aliases) -> None:
    for node in block.nodes():
        for inner in node.blocks:
            _fold(inner, limit, aliases)
        if node.kind == prim.COND and _is_constant(node._inputs[0].node):
            _choose(node)
        elif _foldable(node) and not any(
            aliases.leaves(value) or aliases.is_written(value) for value in node._outputs
        ):
            _evaluate(node, limit)


def _is_constant(node: Node) -> bool:
    return node.kind == prim.CONSTANT


def _foldable(node: Node) -> bool:
    return (
        node.kind not in _NOT_FOLDED
        and not node.blocks
        and bool(node._inputs)
        and not node.has_effects
        and all(_is_constant(value.node) for value in node._inputs)
    )


def _evaluate(node: Node, limit: int) -> None:
    alone = Graph()
    values = {}
    for value in node._inputs:
        values[value] = alone.add_input(value.type)
    copy = alone.insert_node(alone.create_clone(node, values))
    for value in copy._outputs:
        alone.register_output(value)
    operands = [value.node.attributes["value"] for value in node._inputs]
    results = run(alone, *operands)
    if _bytes(results) > max(limit, _bytes(operands)):
        return
    graph = node.graph
    with graph.inserting_before(node):
        for value, result in zip(node._outputs, results, strict=True):
            fresh = graph.constant(result)
            fresh.name = value.name
            value.replace_all_uses_with(fresh)
    node.destroy()


def _bytes(values: object) -> int:
    if isinstance(values, (tuple, list)):
        return sum(map(_bytes, values))
    array = getattr(values, "array", None)
    return 0 if array is None else array.nbytes


def _choose(node: Node) -> None:
    """Put the branch that a constant condition chooses in the place of the node."""
    block = node.blocks[0 if node._inputs[0].node.attributes["value"] else 1]
    graph = node.graph
    values = dict(zip(block.inputs, node._inputs[1:], strict=True))
    with graph.inserting_before(node):
        for inner in block.nodes():
            graph.insert_node(graph.create_clone(inner, values))
    for value, result in zip(node._outputs, block.outputs, strict=True):
        value.replace_all_uses_with(values.get(result, result))
    node.destroy()


def pool_constants(graph: Graph) -> Graph:
    """Keep one node per constant, at the beginning of the graph."""
    known: dict = {}
    aliases = Aliases(graph.block)
    last = graph.block.param_node
    for node in list(graph.all_nodes()):
        if node.kind != prim.CONSTANT:
            continue
        value = node.attributes["value"]
        key = id(value) if literal_is_large(value) else literal_key(value)
        if key in known and aliases.may_replace(node.output, known[key]):
            node.output.replace_all_uses_with(known[key])
            node.destroy()
        else:
            node.move_after(last)
            last = node
            known.setdefault(key, node.output)
    return graph
