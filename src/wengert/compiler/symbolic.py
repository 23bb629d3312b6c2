"""Gradient rules as graphs: a rule is a Python function over operators, so it is run and recorded.

A rule runs on meta tensors while a `Recorder` writes down the operators it calls. That happens once
per operator, literals, and dtypes and shapes of its inputs; the graph is remembered. If shapes are
not fully known, the rule is recorded for two examples. Where the two graphs agree they hold for all
shapes; a literal that is in both the shape of the same value stands for the size of that value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..autograd.grad_mode import set_grad_enabled
from ..backends.meta import MetaArray
from ..dispatch import rule_reads
from ..operators.fitting import reduce_gradient
from ..tensor import Tensor
from ..utils._python_dispatch import TorchDispatchMode
from . import primitives as prim
from .ir import Graph
from .nodes import HOLE, Node, Value, fill, split_arguments
from .passes.cse import merge_equal_nodes
from .passes.dce import remove_dead_nodes
from .passes.shapes import (
    broadcasting_example_types,
    call_on_types,
    example_of,
    example_types,
    without_grad,
)
from .printer import literal_key
from .types import INT, ListType, OptionalType, TensorType, Type, type_of

_SHAPE_SLOT = 1000


class NotDifferentiable(RuntimeError):
    """The gradient of a node cannot be written as a graph."""


class Recorder(TorchDispatchMode):
    """Writes the operators that are called while it is active into a graph.

    Tensors that it did not give out or see made are constants. A tensor that is written in place
    stands for its new value from then on, as long as no view of it is around.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values: dict[int, Value] = {}
        self.tensors: list[Tensor] = []

    def note(self, tensor: Tensor, value: Value) -> Tensor:
        """From now on `tensor` is `value`."""
        self.values[id(tensor)] = value
        self.tensors.append(tensor)  # its id is not to be given to another one
        return tensor

    def value_of(self, tensor: Tensor) -> Value:
        """The value that a tensor stands for."""
        value = self.values.get(id(tensor))
        if value is None:
            if isinstance(tensor.array, MetaArray):
                raise NotDifferentiable(
                    "a tensor without data was made otherwise than by an operator"
                )
            value = self.graph.constant(tensor.detach())
            self.note(tensor, value)
        return value

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        names = [argument.name for argument in func.schema.arguments]
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        bound = tuple(
            [given.get(argument.name, argument.default) for argument in func.schema.arguments]
        )
        if not func.mutates:
            out = func.call(bound)
            self.write(func, [self.operand(item) for item in bound], out)
            return out
        target = bound[0]
        if target.view_meta is not None or any(
            t.view_meta is not None and t.view_meta.base is target for t in self.tensors
        ):
            raise NotDifferentiable(f"{func.name} writes into memory that has several names")
        operands = [self.operand(item) for item in bound]
        func.call(bound)
        self.write(func.functional, operands, target)
        return target

    def operand(self, item: Any) -> Any:
        """An argument as a node has it: values for tensors."""
        if isinstance(item, Tensor):
            return self.value_of(item)
        return tuple([self.operand(part) for part in item]) if isinstance(item, list) else item

    def write(self, operator: Any, operands: list, out: Any) -> None:
        """Append the node of one call."""
        arguments, inputs = split_arguments(operands)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        node = self.graph.create(
            prim.OPERATOR + operator.name,
            inputs,
            [without_grad(type_of(t)) for t in outs],
            arguments=arguments,
        )
        self.graph.insert_node(node)
        for t, value in zip(outs, node.outputs, strict=True):
            self.note(t, value)


class Source(NamedTuple):
    """What an input of a rule's graph is: the gradient of an output, an input or output of the
    node, its size, or the size of an input if that is not the size of the result."""

    kind: str
    number: int


class RuleGraph(NamedTuple):
    """The gradient of one node: where the graph's inputs come from, and for each of the node's
    inputs which of the graph's outputs is its gradient (None: it has none)."""

    graph: Graph
    sources: tuple[Source, ...]
    results: tuple[int | None, ...]


_rules: dict[Any, RuleGraph | NotDifferentiable] = {}


def differentiable_outputs(node: Node) -> list[int]:
    """The outputs of an operator's node that can have a gradient."""
    fixed = node.operator.nondifferentiable_outputs
    return [
        i
        for i, value in enumerate(node._outputs)
        if i not in fixed
        and isinstance(value.type, TensorType)
        and value.type.can_require_grad
    ]


def rule_graph(node: Node, needs: tuple[bool, ...], once: bool = False) -> RuleGraph:
    """The gradients of an operator's node with respect to the inputs that `needs` marks.

    `once` says that they will not be differentiated again, which allows some rules to use values
    that carry no history. Raises NotDifferentiable with the reason if there is no such graph.
    """
    types = tuple([without_grad(value.type) for value in node._inputs])
    results = tuple([without_grad(value.type) for value in node._outputs])
    key = (node.kind, literal_key(node.arguments), types, results, needs, once)
    found = _rules.get(key)
    if found is None:
        try:
            with set_grad_enabled(not once):
                found = _make(node, list(types), list(results), needs)
        except NotDifferentiable as error:
            found = error.with_traceback(None)
        _rules[key] = found
    if isinstance(found, NotDifferentiable):
        raise NotDifferentiable(*found.args)
    return found


def _make(node: Node, types: list[Type], results: list[Type], needs: tuple) -> RuleGraph:
    for t in (*types, *results):
        if isinstance(t, TensorType) and t.dtype is None:
            raise NotDifferentiable("a dtype is not known")
    if all(not isinstance(t, TensorType) or t.is_complete for t in (*types, *results)):
        return _pruned(_record(node, types, results, needs))
    examples_of = broadcasting_example_types if node.operator.broadcasts else example_types
    examples = []
    for number in (0, 1):
        given = examples_of(types, number)
        try:
            made = call_on_types(node, given)
        except (RuntimeError, TypeError, ValueError, IndexError):
            made = []
        if len(made) != len(results) or not all(_complete(t) for t in (*given, *made)):
            raise NotDifferentiable("a shape is not known")
        record = _record(node, given, made, needs, loose=True)
        examples.append((record, given, made))
    return _pruned(_agreement(*examples))


def _complete(t: Type) -> bool:
    return not isinstance(t, TensorType) or t.is_complete


def _record(
    node: Node, types: list[Type], results: list[Type], needs: tuple, loose: bool = False
) -> RuleGraph:
    """Run the rules under a recorder. `loose` leaves the sizes of sums to the time of running."""
    operator = node.operator
    graph = Graph()
    recorder = Recorder(graph)
    sources: list[Source] = []

    def placeholder(type: Type, kind: str, index: int) -> Any:
        value = example_of(type)
        if isinstance(value, Tensor):
            recorder.note(value, graph.add_input(type))
            sources.append(Source(kind, index))
        elif value is not None:
            raise NotDifferentiable(f"an input is a {type}")
        return value

    grads: list[Any] = [None] * len(results)
    for i in differentiable_outputs(node):
        grads[i] = placeholder(results[i], "grad", i)
    inputs = [placeholder(t, "input", i) for i, t in enumerate(types)]
    outputs = [placeholder(t, "output", i) for i, t in enumerate(results)]
    args = _as_lists(operator, fill(node.arguments, inputs))  # type: ignore[arg-type]
    gradient: Any = grads[0]
    if operator.outputs != 1 or operator.schema.returns[0].endswith("[]"):
        gradient = [_unusable(t) if g is None else g for g, t in zip(grads, results, strict=True)]
    conjugates = operator.family == "elementwise" and _is_complex(results[0])
    values: list[Tensor | None] = [None] * len(types)
    with recorder:
        if conjugates:
            gradient = gradient.conj()
        for position in operator.grad_positions:
            places = _places(node, position)
            if not any(i >= 0 and needs[i] for i in places):
                continue
            given = _run_rule(operator, position, gradient, args, outputs)
            parts = given if isinstance(args[position], list) else [given]
            for place, part in zip(places, parts, strict=True):
                if part is not None and place >= 0 and needs[place]:
                    values[place] = part.conj() if conjugates else part
        for i, part in enumerate(values):
            if part is not None:
                values[i] = _fitted(recorder, part, i, types[i], operator, sources, loose)
    index: list[int | None] = []
    for part in values:
        index.append(None if part is None else graph.register_output(recorder.value_of(part)))
    return RuleGraph(graph, tuple(sources), tuple(index))


def _is_complex(type: Type) -> bool:
    return isinstance(type, TensorType) and type.dtype is not None and type.dtype.is_complex


def _unusable(type: Type) -> Any:
    """In the place of the gradient of an output that has none; rules do not read it."""
    return example_of(type)


def _as_lists(operator: Any, args: tuple) -> list:
    return [
        list(item) if position in operator.list_positions and isinstance(item, tuple) else item
        for position, item in enumerate(args)
    ]


def _places(node: Node, position: int) -> list[int]:
    """Which inputs of the node are, or are in, one of its arguments; -1 for what is no input."""
    count = 0
    for i, item in enumerate(node.arguments or ()):
        parts = item if type(item) is tuple else (item,)
        if i == position:
            found = []
            for part in parts:
                found.append(count if part is HOLE else -1)
                count += part is HOLE
            return found
        count += sum(part is HOLE for part in parts)
    raise IndexError(position)


def _run_rule(operator: Any, position: int, gradient: Any, args: list, outputs: list) -> Any:
    rule: Callable | None = operator.rules.get(operator.schema.arguments[position].name)
    if rule is None:
        return None
    reads: list[Any] = []
    for name in rule_reads(rule):
        slot = operator._slot(name)
        if slot >= _SHAPE_SLOT:
            reads.append(args[slot - _SHAPE_SLOT].array.shape)
        else:
            reads.append(args[slot] if slot >= 0 else outputs[-1 - slot])
    try:
        return rule(gradient, *reads)
    except NotDifferentiable:
        raise
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        raise NotDifferentiable(str(error)) from error


def _fitted(
    recorder: Recorder,
    g: Tensor,
    index: int,
    type: Type,
    operator: Any,
    sources: list[Source],
    loose: bool,
) -> Tensor:
    """A gradient in the shape and dtype of its input, as the engine would bring it there."""
    assert isinstance(type, TensorType) and type.dtype is not None
    shape = type.concrete_shape
    assert shape is not None
    if loose and operator.broadcasts and operator.operands > 1:
        size = recorder.graph.add_input(OptionalType(ListType(INT)))
        sources.append(Source("fit", index))
        value = recorder.graph.insert(prim.GRAD_SUM_TO_SIZE, recorder.value_of(g), size)
        fitted: Any = example_of(TensorType(g.dtype, shape))
        value.type = without_grad(type_of(fitted))
        g = recorder.note(fitted, value)
    return reduce_gradient(None, index, g, shape, type.dtype.numpy)


def _pruned(rule: RuleGraph) -> RuleGraph:
    """Without nodes and inputs that the gradients do not depend on."""
    graph = rule.graph
    merge_equal_nodes(graph.block, None)
    remove_dead_nodes(graph.block)
    sources = list(rule.sources)
    for i in range(len(sources) - 1, -1, -1):
        if not graph.inputs[i].is_used:
            graph.block.erase_input(i)
            del sources[i]
    return RuleGraph(graph.claim("the gradient rules"), tuple(sources), rule.results)


# Two examples -------------------------------------------------------------------------------------


def _agreement(one: tuple, other: tuple) -> RuleGraph:
    """The graph that two recordings are instances of."""
    (first, *types), (second, *other_types) = one, other
    if first.sources != second.sources or first.results != second.results:
        raise NotDifferentiable("a shape is not known")
    graph: Graph = first.graph
    sources = list(first.sources)
    sizes: dict[Source, Value] = {}
    nodes = list(zip(graph.nodes(), second.graph.nodes(), strict=False))
    if len(nodes) != len(list(graph.nodes())) or len(nodes) != len(list(second.graph.nodes())):
        raise NotDifferentiable("a shape is not known")
    places = {value: i for i, value in enumerate(_all_values(graph))}
    others = {value: i for i, value in enumerate(_all_values(second.graph))}
    shapes = [_shapes(*types), _shapes(*other_types)]
    for a, b in nodes:
        same = a.kind == b.kind and literal_key(a.attributes.get("value")) == literal_key(
            b.attributes.get("value")
        )
        if not same or [places[v] for v in a._inputs] != [others[v] for v in b._inputs]:
            raise NotDifferentiable("a shape is not known")
        if a.arguments is not None:
            _agree_on_arguments(a, b, shapes, graph, sizes, sources)
    for value in _all_values(graph):
        if isinstance(value.type, TensorType):
            value.type = TensorType(value.type.dtype)
    return RuleGraph(graph, tuple(sources), first.results)


def _all_values(graph: Graph) -> list[Value]:
    return [*graph.inputs, *(value for node in graph.nodes() for value in node._outputs)]


def _shapes(types: list[Type], results: list[Type]) -> dict[Source, Any]:
    found = {}
    for kind, given in (("input_size", types), ("output_size", results)):
        for i, t in enumerate(given):
            if isinstance(t, TensorType):
                found[Source(kind, i)] = t.shape
    return found


def _agree_on_arguments(
    a: Node, b: Node, shapes: list, graph: Graph, sizes: dict, sources: list[Source]
) -> None:
    inputs = list(a._inputs)
    supply = iter(inputs)
    bound: list[Any] = []
    for x, y in zip(a.arguments or (), b.arguments or (), strict=True):
        if literal_key(x) == literal_key(y):
            bound.append(_refill(x, supply))
            continue
        alike = [s for s, shape in shapes[0].items() if shape == x and shapes[1][s] == y]
        if len(alike) != 1:
            raise NotDifferentiable("a shape is not known")
        source = alike[0]
        if source not in sizes:
            sizes[source] = graph.add_input(ListType(INT))
            sources.append(source)
        bound.append(sizes[source])
    arguments, values = split_arguments(bound)
    a.remove_all_inputs()
    a.arguments = arguments
    for value in values:
        a.add_input(value)


def _refill(item: Any, supply: Any) -> Any:
    if item is HOLE:
        return next(supply)
    return tuple([_refill(part, supply) for part in item]) if type(item) is tuple else item
