"""Gradient rules as graphs: a rule is a Python function over operators, so it is run and recorded.

A rule is traced like any function, once per operator, literals, and dtypes and shapes of its
inputs; the graph is remembered. If shapes are not fully known, the rule is traced for two examples.
Where the two graphs agree they hold for all shapes; a literal that is in both the shape of the same
value stands for the size of that value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...autograd.grad_mode import set_grad_enabled
from ...backends.meta import MetaArray
from ...core.state import ThreadState, thread_state
from ...core.tensor import Tensor
from ...dispatch.levels import OutsideAllLevels
from ...operators.fitting import reduce_gradient
from ...tape.plans import values_read
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.literals import HOLE, fill, literal_key
from ..ir.nodes import Node, Value, split_arguments
from ..ir.remembered import Remembered
from ..ir.types import INT, NONE, ListType, OptionalType, TensorType, Type, without_grad
from ..passes.barriers import drop_barriers
from ..passes.cse import merge_equal_nodes
from ..passes.dce import remove_dead_nodes
from ..passes.shapes import broadcasting_example_types, call_on_types, example_of, example_types
from ..trace.blocks import BlockLevel


class NotDifferentiable(RuntimeError):
    """The gradient of a node cannot be written as a graph."""


class RuleLevel(BlockLevel):
    """The level at which rules run. What they make otherwise than by operators is a constant."""

    fixes_what_is_read = False
    __slots__ = ()

    def lift(self, t: Tensor) -> Tensor:
        if isinstance(t.array, MetaArray):
            raise NotDifferentiable("a tensor without data was made otherwise than by an operator")
        if id(t) not in self.stand_ins:
            self.stand_ins[id(t)] = self.made(t)
            self.originals.append(t)  # its id is not to be given to another one
        return self.stand_ins[id(t)]

    def cut_off(self, value: Value) -> Value:
        return value  # a rule that runs without recording is a formula all the same

    def apply_graph(self, graph: Graph, tensors: Sequence[Tensor]) -> tuple:
        if thread_state().levels[-1] is not self:
            raise NotDifferentiable("a rule differentiates through control flow of its own")
        return self.call_graph(graph, tensors)

    def call_function(self, function: Any, state: ThreadState, args: tuple, setup: Any) -> Any:
        raise NotDifferentiable(
            f"a rule calls the autograd Function {function.__name__}, whose own derivative would "
            "be lost"
        )

    def placeholder(self, type: TensorType, value: Value) -> Tensor:
        """A tensor of a type without data that stands for a value of the graph."""
        return self.stand_in(value, example_of(type).array)

    def value_of(self, t: Tensor) -> Value:
        """The value that a tensor stands for."""
        return self.symbol_of(self.inside(t))


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


_rules: Remembered[RuleGraph | NotDifferentiable] = Remembered(512)


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

    `once` says that they will not be differentiated again, which makes some rules shorter. Raises
    NotDifferentiable with the reason if there is no such graph.
    """
    types = tuple([without_grad(value.type) for value in node._inputs])
    results = tuple([without_grad(value.type) for value in node._outputs])
    identity = prim.identity_of(node.operator)
    key = (node.kind, identity, literal_key(node.arguments), types, results, needs, once)
    found = _rules.get(key)
    if found is None:
        try:
            # What is remembered for all must not depend on where a rule is asked for first.
            with OutsideAllLevels(), set_grad_enabled(not once):
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
    """Trace the rules. `loose` leaves the sizes of sums to the time of running."""
    operator = node.operator
    graph = Graph()
    level = RuleLevel(graph)
    sources: list[Source] = []

    def placeholder(type: Type, kind: str, index: int) -> Any:
        if type is NONE:
            return None
        if not isinstance(type, TensorType):
            raise NotDifferentiable(f"an input is a {type}")
        sources.append(Source(kind, index))
        return level.placeholder(type, graph.add_input(type))

    grads: list[Any] = [None] * len(results)
    for i in differentiable_outputs(node):
        grads[i] = placeholder(results[i], "grad", i)
    inputs = [placeholder(t, "input", i) for i, t in enumerate(types)]
    outputs = [placeholder(t, "output", i) for i, t in enumerate(results)]
    args = _as_lists(operator, fill(node.arguments, inputs))  # type: ignore[arg-type]
    gradient: Any = grads[0]
    if len(operator.schema.returns) != 1 or operator.schema.returns[0].endswith("[]"):
        gradient = grads
    conjugates = operator.family == "elementwise" and _is_complex(results[0])
    values: list[Tensor | None] = [None] * len(types)
    with level.released(), level.entered():
        if conjugates:
            gradient = gradient.conj()
        if prim.is_custom(operator):
            values = _run_formula(operator, args, outputs, grads, needs)
        for position in () if prim.is_custom(operator) else operator.grad_positions:
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
                values[i] = _fitted(level, part, i, types[i], operator, sources, loose)
        index: list[int | None] = []
        for part in values:
            index.append(None if part is None else graph.register_output(level.value_of(part)))
    return RuleGraph(graph, tuple(sources), tuple(index))


def _is_complex(type: Type) -> bool:
    return isinstance(type, TensorType) and type.dtype is not None and type.dtype.is_complex


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
    reads = values_read(operator, rule, args, outputs)
    try:
        return rule(gradient, *reads)
    except (NotDifferentiable, RecursionError):  # the latter tells of the stack, not of the rule
        raise
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        raise NotDifferentiable(str(error)) from error


def _run_formula(
    operator: Any, args: list, outputs: list, grads: list, needs: tuple
) -> list[Tensor | None]:
    """The gradients of a custom operator by its registered formula."""
    # The library is imported once a program has custom operators.
    from ...library.node import formula_gradients

    out: Any = outputs
    if not operator.schema.returns[0].endswith("[]"):
        out = tuple(outputs) if len(operator.schema.returns) > 1 else outputs[0]
    try:
        found = formula_gradients(operator, operator.converted(args), out, grads, needs)
    except (NotDifferentiable, RecursionError):  # the latter tells of the stack, not of the rule
        raise
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        raise NotDifferentiable(str(error)) from error
    return [part if need else None for part, need in zip(found, needs, strict=True)]


def _fitted(
    level: RuleLevel,
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
        size = level.graph.add_input(OptionalType(ListType(INT)))
        sources.append(Source("fit", index))
        value = level.graph.insert(prim.GRAD_SUM_TO_SIZE, level.value_of(g), size)
        value.type = TensorType(g.dtype, shape)
        g = level.placeholder(value.type, value)
    return reduce_gradient(None, index, g, shape, type.dtype.numpy)


def _pruned(rule: RuleGraph) -> RuleGraph:
    """Without nodes and inputs that the gradients do not depend on."""
    graph = drop_barriers(rule.graph)
    for node in graph.nodes():
        node.source = None
        for value in node._outputs:
            value.type = without_grad(value.type)
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
