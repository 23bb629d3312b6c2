"""Types of all values from the types of the inputs, by running the operators on meta tensors.

Where a shape is not fully known, an operator is tried on two examples; what both results agree on
holds for all shapes.
"""

from __future__ import annotations

import itertools
from typing import Any

from ...autograd.grad_mode import no_grad
from ...backends import meta
from ...core import dtypes
from ...core.tensor import wrap
from ...dispatch.levels import OutsideAllLevels
from ...dispatch.operator import Operator
from ..interpret.meanings import callable_of
from ..ir import primitives as prim
from ..ir.blocks import Block
from ..ir.graph import Graph
from ..ir.literals import HOLE, literal_key
from ..ir.nodes import Node
from ..ir.remembered import Remembered
from ..ir.types import (
    ANY,
    INT,
    NONE,
    TENSOR,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    join,
    length_of,
    slice_of,
    stacked,
    type_of,
    without_grad,
)

#: Lengths that stand for unknown ones in the two examples, and the numbers of dimensions.
EXAMPLES = (((2, 3, 5, 7, 11, 13), 2), ((17, 19, 23, 29, 31, 37), 3))
#: Each round of a loop can make unknown one more length of a carried shape, then its rank.
MOST_ROUNDS = 10
_FAILED = object()
_known: Remembered[Any] = Remembered(4096)


def propagate_shapes(graph: Graph) -> Graph:
    """Set dtype and shape of every value that follows from those of the inputs."""
    with no_grad():
        visit(graph.block)
    return graph


def visit(block: Block) -> None:
    """Set the types of the values of a block, whose inputs have theirs."""
    for node in block.nodes():
        if node.blocks:
            _through_blocks(node)
            continue
        for value, found in zip(node._outputs, output_types(node), strict=True):
            value.type = refined(value.type, found)


def refined(old: Type, new: Type) -> Type:
    """What two descriptions of one value say together; the newer one wins."""
    if not (isinstance(old, TensorType) and isinstance(new, TensorType)):
        return old if new is ANY or new == TENSOR else new
    dtype = new.dtype or old.dtype
    shape = new.shape
    if shape is None:
        shape = old.shape
    elif old.shape is not None and len(old.shape) == len(shape):
        shape = tuple(a if a is not None else b for a, b in zip(shape, old.shape, strict=True))
    return TensorType(dtype, shape, old.requires_grad)


def output_types(node: Node) -> list[Type]:
    """The types of a node's outputs, as far as those of its inputs tell."""
    rule = _RULES.get(node.kind)
    if rule is not None:
        return rule(node)
    function = _function(node)
    if function is None:
        return [ANY] * len(node._outputs)
    types = [without_grad(value.type) for value in node._inputs]
    if all(not isinstance(t, TensorType) or t.is_complete for t in types):
        results = call_on_types(node, types)
    elif isinstance(node.operator, Operator) and node.operator.broadcasts:
        results = _broadcast_types(node, types)
    else:
        results = _agreed_types(node, types)
    return results if len(results) == len(node._outputs) else [TENSOR] * len(node._outputs)


def call_on_types(node: Node, types: list[Type]) -> list[Type]:
    """What the operator makes of meta tensors of these types; unknown where it needs data."""
    key = (
        node.kind, prim.identity_of(node.operator), literal_key(node.arguments or ()), *types
    )  # fmt: skip
    found = _known.get(key)
    if found is None:
        found = _known[key] = _call(node, types)
    if isinstance(found, Exception):
        raise type(found)(*found.args)
    return list(found) if found is not _FAILED else [TENSOR] * len(node._outputs)


def _call(node: Node, types: list[Type]) -> Any:
    inputs = [example_of(t) for t in types]
    if any(value is _FAILED for value in inputs):
        return _FAILED
    try:
        with OutsideAllLevels():  # a trace that asks for types is not to see these calls
            result = _function(node)(_call_arguments(node, inputs))  # type: ignore[misc]
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError) as error:
        if "meta" in str(error):
            return _FAILED
        return error
    several = isinstance(result, (tuple, list)) and not (
        len(node._outputs) == 1 and node.operator is None
    )
    results = result if several else (result,)
    return [without_grad(type_of(value)) for value in results]


def _call_arguments(node: Node, inputs: list[Any]) -> tuple:
    """Arguments in schema order, lists of tensors as lists."""
    if node.arguments is None:
        return tuple(inputs)
    supply = iter(inputs)
    out = []
    for argument, item in zip(node.schema.arguments, node.arguments, strict=True):
        if item is HOLE:
            out.append(next(supply))
        elif argument.type.startswith("Tensor") and isinstance(item, tuple):
            out.append([next(supply) if part is HOLE else part for part in item])
        else:
            out.append(item)
    return tuple(out)


def _function(node: Node) -> Any:
    """The node as a function of a tuple of arguments, None if it has no such."""
    if node.operator is not None:
        return callable_of(node)
    primitive = node.primitive
    if primitive is None or primitive.evaluate is None:
        return None
    evaluate = primitive.evaluate
    return lambda args: evaluate(*args)


def example_of(type: Type) -> Any:
    """A value of a type that can stand for all others: a meta tensor, None."""
    if isinstance(type, TensorType) and type.is_complete:
        return wrap(meta.empty(type.concrete_shape, type.dtype.numpy))  # type: ignore[arg-type,union-attr]
    return None if type is NONE else _FAILED


# Shapes that are not fully known ------------------------------------------------------------------


def example_types(types: list[Type], number: int) -> list[Type]:
    """The types with unknown lengths replaced by those of one of the examples, all different."""
    lengths, rank = EXAMPLES[number]
    supply = itertools.cycle(lengths)
    out: list[Type] = []
    for t in types:
        if isinstance(t, TensorType) and t.dtype is not None and not t.is_complete:
            shape = (None,) * rank if t.shape is None else t.shape
            t = TensorType(t.dtype, [next(supply) if n is None else n for n in shape])
        out.append(t)
    return out


def broadcasting_example_types(types: list[Type], number: int) -> list[Type]:
    """The types with shapes that are the ends of one shape; their numbers of dimensions stay."""
    lengths, rank = EXAMPLES[number]
    ranks = [len(t.shape) for t in types if isinstance(t, TensorType) and t.shape is not None]
    whole = lengths[: max([rank, *ranks])]
    out: list[Type] = []
    for t in types:
        if isinstance(t, TensorType):
            own = len(whole) if t.shape is None else len(t.shape)
            t = TensorType(t.dtype, whole[len(whole) - own :])
        out.append(t)
    return out


def _agreed_types(node: Node, types: list[Type]) -> list[Type]:
    unknown: list[Type] = [TENSOR] * len(node._outputs)
    try:
        one = call_on_types(node, example_types(types, 0))
        other = call_on_types(node, example_types(types, 1))
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
        return unknown
    if len(one) != len(other):
        return unknown
    return [join(a, b) for a, b in zip(one, other, strict=True)]


def _broadcast_types(node: Node, types: list[Type]) -> list[Type]:
    """Elementwise operators: the dtype from single elements, the shape by broadcasting."""
    small: list[Type] = []
    shapes = []
    for t in types:
        if isinstance(t, TensorType):
            shapes.append(t.shape)
            rank = 1 if t.shape is None else len(t.shape)
            t = TensorType(t.dtype, (1,) * rank)
        small.append(t)
    if any(isinstance(t, TensorType) and t.dtype is None for t in small):
        found: list[Type] = [TENSOR]
    else:
        found = call_on_types(node, small)
    shape = _broadcast(shapes) if None not in shapes else None
    return [TensorType(t.dtype if isinstance(t, TensorType) else None, shape) for t in found]


def _broadcast(shapes: list) -> tuple[int | None, ...]:
    rank = max((len(shape) for shape in shapes), default=0)
    out: list[int | None] = []
    for i in range(1, rank + 1):
        lengths = {shape[-i] for shape in shapes if len(shape) >= i}
        known = lengths - {1, None}
        if known:
            out.append(known.pop())
        else:
            out.append(None if None in lengths else 1)
    return tuple(reversed(out))


# Primitives ---------------------------------------------------------------------------------------


def _size_type(node: Node) -> list[Type]:
    return [ListType(INT)]


def _full_type(node: Node) -> list[Type]:
    size, _, dtype, _ = node.bound_arguments()
    known = isinstance(size, tuple) and all(isinstance(n, int) for n in size)
    return [TensorType(dtype if isinstance(dtype, dtypes.dtype) else None, size if known else None)]


def _grad_or_zero_type(node: Node) -> list[Type]:
    _, size, dtype = node.bound_arguments()
    return [TensorType(dtype, size if isinstance(size, tuple) else None)]


def _grad_sum_type(node: Node) -> list[Type]:
    given = node._inputs[0].type
    size = node.bound_arguments()[1]
    dtype = given.dtype if isinstance(given, TensorType) else None
    if size is None:
        return [without_grad(given)]
    return [TensorType(dtype, size if isinstance(size, tuple) else None)]


def _same_type(node: Node) -> list[Type]:
    return [without_grad(node._inputs[0].type)]


def _chunk_types(node: Node) -> list[Type]:
    """Equal parts but for the last, which may be smaller."""
    given = node._inputs[0].type
    count = len(node._outputs)
    if not isinstance(given, TensorType) or given.shape is None:
        return [TensorType(getattr(given, "dtype", None))] * count
    shape, dim = given.shape, node.attributes["dim"]
    length = shape[dim]
    most = None if length is None else -(-length // node.attributes["chunks"])
    found: list[Type] = []
    for i in range(count):
        part = None
        if length is not None and most is not None:
            part = max(0, min(most, length - i * most))
        sizes = list(shape)
        sizes[dim] = part
        found.append(TensorType(given.dtype, tuple(sizes)))
    return found


def _once_types(node: Node) -> list[Type]:
    return [without_grad(value.type) for value in node._inputs[node.attributes["grads"] :]]


def _add_type(node: Node) -> list[Type]:
    a, b = (without_grad(value.type) for value in node._inputs)
    return [b if a == TENSOR else a]


def _unpack_types(node: Node) -> list[Type]:
    given = node._inputs[0].type
    if isinstance(given, TupleType) and len(given.elements) == len(node._outputs):
        return list(given.elements)
    if isinstance(given, ListType):
        return [given.element] * len(node._outputs)
    return [ANY] * len(node._outputs)


def _list_type(node: Node) -> list[Type]:
    element: Type = ANY
    for i, value in enumerate(node._inputs):
        element = value.type if i == 0 else join(element, value.type)
    return [ListType(element)]


_RULES: dict[str, Any] = {
    prim.CONSTANT: lambda node: [type_of(node.attributes["value"])],
    prim.SIZE: _size_type,
    prim.SIZE_IF_NOT_EQUAL: lambda node: [OptionalType(ListType(INT))],
    prim.FULL: _full_type,
    prim.GRAD_OR_ZERO: _grad_or_zero_type,
    prim.GRAD_SUM_TO_SIZE: _grad_sum_type,
    prim.AUTOGRAD_ZERO: lambda node: [TENSOR],
    prim.AUTOGRAD_ADD: _add_type,
    prim.PROFILE: _same_type,
    prim.PROFILE_IVALUE: _same_type,
    prim.CONSTANT_CHUNK: _chunk_types,
    prim.ONCE_DIFFERENTIABLE: _once_types,
    prim.LIST_CONSTRUCT: _list_type,
    prim.TUPLE_CONSTRUCT: lambda node: [TupleType(*[value.type for value in node._inputs])],
    prim.LIST_UNPACK: _unpack_types,
    prim.TUPLE_UNPACK: _unpack_types,
}


# Nodes with blocks --------------------------------------------------------------------------------


def _through_blocks(node: Node) -> None:
    types = [without_grad(value.type) for value in node._inputs]
    if node.kind in (prim.SCAN, prim.MAP):
        found_types = _through_scan(node, types)
    elif node.kind in prim.LOOPS:
        condition, body = node.blocks
        found_types = _until_stable(body, types, len(node._outputs))
        if node.kind == prim.ROUNDS:
            found_types = [stacked(t, None) for t in found_types]
        _enter(condition, [without_grad(value.type) for value in body.inputs])
    elif node.kind == prim.FUNCTION:
        forward, backward = node.blocks
        _enter(forward, types)
        found_types = [without_grad(value.type) for value in forward.outputs]
        received = [found_types[i] for i in node.attributes["differentiable"]]
        _enter(backward, [*types, *found_types, *received])
    else:
        for block in node.blocks:
            _enter(block, types[1:] if node.kind == prim.COND else types)
        results = [[without_grad(v.type) for v in block.outputs] for block in node.blocks]
        found_types = results[0]
        if node.kind == prim.COND:
            found_types = [join(a, b) for a, b in zip(*results, strict=True)]
    for value, found in zip(node._outputs, found_types, strict=True):
        value.type = refined(value.type, found)


def _enter(block: Block, types: list[Type]) -> None:
    for value, found in zip(block.inputs, types, strict=False):
        value.type = refined(value.type, found)
    visit(block)


def _until_stable(block: Block, types: list[Type], carried: int) -> list[Type]:
    """Types of a loop's block; those of the carried values hold before and after each round."""
    _enter(block, types)
    for _ in range(MOST_ROUNDS):
        before = [without_grad(value.type) for value in block.inputs[:carried]]
        after = [without_grad(value.type) for value in block.outputs[:carried]]
        both = [join(a, b) for a, b in zip(before, after, strict=True)]
        if both == before:
            break
        for value, found in zip(block.inputs, both, strict=False):
            value.type = found
        visit(block)
    return [without_grad(value.type) for value in block.inputs[:carried]]


def _through_scan(node: Node, types: list[Type]) -> list[Type]:
    carried, mapped = node.attributes.get("carried", 0), node.attributes["mapped"]
    length = length_of(types[carried])
    block = node.blocks[0]
    found = _until_stable(
        block,
        [slice_of(t) if carried <= i < carried + mapped else t for i, t in enumerate(types)],
        carried,
    )
    rest = [stacked(without_grad(v.type), length) for v in block.outputs[carried:]]
    return [*found, *rest]
