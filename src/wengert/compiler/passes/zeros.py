"""Undefined gradients: where it is known which gradients are zero, nothing is computed of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.nodes import Node, Value
from .inline import inline_block


def specialize_zeros(graph: Graph, undefined: Collection[int] = (), device: Any = None) -> Graph:
    """Resolve AutogradZero, AutogradAdd, GradOrZero and GradOf for inputs of which those numbered
    in `undefined` are undefined gradients and all others are tensors. Zeros are made on `device`.

    Gradients are linear: a GradOf of zeros alone is zero. An output that is zero remains an
    AutogradZero, that is, None.
    """
    zeros = {graph.inputs[i] for i in undefined}
    _visit(graph.block, zeros, device)
    return graph


def _visit(block: Block, zeros: set[Value], device: Any) -> None:
    for node in block.nodes():
        if node.kind == prim.AUTOGRAD_ZERO:
            zeros.add(node.output)
        elif node.kind == prim.AUTOGRAD_ADD:
            _add(node, zeros)
        elif node.kind == prim.GRAD_OR_ZERO:
            _or_zero(node, zeros, device)
        elif node.kind == prim.GRAD_OF:
            _grad_of(node, zeros, device)
        else:
            for inner in node.blocks:
                _visit(inner, zeros, device)


def _add(node: Node, zeros: set[Value]) -> None:
    a, b = node._inputs
    if a not in zeros and b not in zeros:
        with node.graph.inserting_before(node):
            total = node.graph.insert("wengert::add", a, b)
        total.copy_metadata(node.output)
    else:
        total = b if a in zeros else a
    node.output.replace_all_uses_with(total)
    node.destroy()


def _or_zero(node: Node, zeros: set[Value], device: Any) -> None:
    g = node._inputs[0]
    if g in zeros:
        _, size, dtype = node.bound_arguments()
        with node.graph.inserting_before(node):
            g = node.graph.insert(prim.FULL, size, 0, dtype, device)
        g.copy_metadata(node.output)
    node.output.replace_all_uses_with(g)
    node.destroy()


def _grad_of(node: Node, zeros: set[Value], device: Any) -> None:
    if all(value in zeros for value in node._inputs):
        with node.graph.inserting_before(node):
            zero = node.graph.insert(prim.AUTOGRAD_ZERO)
        zeros.add(zero)
        for value in node._outputs:
            value.replace_all_uses_with(zero)
        node.destroy()
        return
    _visit(node.blocks[0], zeros, device)
    inline_block(node, ())
