"""The kinds of nodes that are not operators: constants, containers, gradients, control flow.

A kind is ``wengert::name`` for a declared operator, the qualified name for a custom one, and
``prim::name`` for what is listed here.
A primitive with a schema takes literals among its arguments as an operator does; one without takes
any number of values. What it computes is in the interpreter, or in `evaluate` if that is a plain
function of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.registry import operator_named
from ...core.tensor import Tensor
from ...creation.factories import full
from ...dispatch.schema import Schema
from ...dispatch.schema_parser import parse

OPERATOR = "wengert::"
PRIMITIVE = "prim::"

CONSTANT = "prim::Constant"
LIST_CONSTRUCT = "prim::ListConstruct"
LIST_UNPACK = "prim::ListUnpack"
TUPLE_CONSTRUCT = "prim::TupleConstruct"
TUPLE_UNPACK = "prim::TupleUnpack"
GRAD_OF = "prim::GradOf"
AUTOGRAD_ZERO = "prim::AutogradZero"
AUTOGRAD_ADD = "prim::AutogradAdd"
GRAD_OR_ZERO = "prim::GradOrZero"
SIZE = "prim::size"
SIZE_IF_NOT_EQUAL = "prim::_size_if_not_equal"
GRAD_SUM_TO_SIZE = "prim::_grad_sum_to_size"
FULL = "prim::full"
CONSTANT_CHUNK = "prim::ConstantChunk"
PROFILE = "prim::profile"
PROFILE_IVALUE = "prim::profile_ivalue"
CHECK = "prim::Check"
DIFFERENTIABLE_GRAPH = "prim::DifferentiableGraph"
REVERSE = "prim::Reverse"
COND = "prim::cond"
WHILE = "prim::while"
ROUNDS = "prim::rounds"
SCAN = "prim::scan"
MAP = "prim::map"
RANDOM = "prim::random"
FUNCTION = "prim::Function"
ONCE_DIFFERENTIABLE = "prim::OnceDifferentiable"
PARAM = "prim::Param"
RETURN = "prim::Return"

#: Loops of unknown length. What `rounds` returns is what each round began with, stacked.
LOOPS = {WHILE, ROUNDS}
#: They note what they see at run time: of tensors, and of other values.
PROFILES = {PROFILE, PROFILE_IVALUE}


class Primitive:
    """A kind of node: its schema or none, how many blocks it has, what it computes."""

    def __init__(
        self,
        kind: str,
        schema: str = "",
        evaluate: Callable[..., Any] | None = None,
        *,
        blocks: int = 0,
        attributes: tuple[str, ...] = (),
        effects: bool = False,
        stays: bool = False,
        forwards: bool = False,
        several: bool = False,
        has_gradient: bool = True,
    ) -> None:
        self.kind = kind
        self.schema: Schema | None = parse(schema) if schema else None
        self.evaluate = evaluate
        self.blocks = blocks
        self.attributes = attributes
        #: Whether two nodes with the same inputs may differ, or one may not be left out.
        self.effects = effects
        #: Whether it may not be left out, though it may be moved and run again.
        self.stays = effects or stays
        #: Whether its results may be, or contain, its inputs.
        self.forwards = forwards
        #: Whether `evaluate` returns a sequence with a result for each output.
        self.several = several
        #: Whether gradients pass through it.
        self.has_gradient = has_gradient


PRIMITIVES: dict[str, Primitive] = {}


def register_primitive(primitive: Primitive) -> Primitive:
    """Make a kind of node known to parser, verification and interpreter."""
    if primitive.kind in PRIMITIVES:
        raise ValueError(f"{primitive.kind} is declared twice")
    PRIMITIVES[primitive.kind] = primitive
    return primitive


def autograd_add(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of two gradients, of which either may be undefined."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


def grad_or_zero(g: Tensor | None, size: tuple, dtype: Any) -> Tensor:
    """A gradient, or zeros in its place if it is undefined."""
    return full(size, 0, dtype=dtype) if g is None else g


def grad_sum_to_size(g: Tensor, size: tuple | None) -> Tensor:
    """A gradient summed over what broadcasting had expanded; no size, nothing to do."""
    return g if size is None else g.sum_to_size(size)


def _full(size: tuple, fill_value: Any, dtype: Any, device: Any) -> Tensor:
    return full(size, fill_value, dtype=dtype, device=device)


def kind_of(operator: Any) -> str:
    """The kind of the nodes that call an operator."""
    return operator.name if is_custom(operator) else OPERATOR + operator.name


def is_custom(operator: Any) -> bool:
    """Whether an operator was defined at run time."""
    return getattr(operator, "family", None) == "custom"


def operator_of(kind: str) -> Any:
    """The operator that a kind names; None for a primitive."""
    if kind.startswith(PRIMITIVE):
        return None
    try:
        if kind.startswith(OPERATOR):
            return operator_named(kind[len(OPERATOR) :])
        # The library is imported once a program has custom operators.
        from ...library.functional import find_for_graph

        return find_for_graph(kind)
    except (KeyError, RuntimeError, AttributeError):
        raise LookupError(f"{kind}: no such operator is declared") from None


def identity_of(operator: Any) -> Any:
    """What tells apart the meanings that a kind has had: a custom operator may be changed."""
    if not is_custom(operator):
        return None
    return operator, operator.kernels.get("meta"), operator.backward, operator.setup_context


for _primitive in (
    Primitive(CONSTANT, attributes=("value",), has_gradient=False),
    Primitive(LIST_CONSTRUCT, evaluate=lambda *items: list(items), forwards=True),
    Primitive(LIST_UNPACK, evaluate=lambda items: tuple(items), forwards=True, several=True),
    Primitive(TUPLE_CONSTRUCT, evaluate=lambda *items: items, forwards=True),
    Primitive(TUPLE_UNPACK, evaluate=lambda items: items, forwards=True, several=True),
    Primitive(GRAD_OF, blocks=1, attributes=("name",)),
    Primitive(AUTOGRAD_ZERO, evaluate=lambda: None, has_gradient=False),
    Primitive(AUTOGRAD_ADD, evaluate=autograd_add, forwards=True),
    Primitive(
        GRAD_OR_ZERO,
        "GradOrZero(Tensor? grad, int[] size, dtype dtype) -> Tensor",
        grad_or_zero,
        forwards=True,
    ),
    Primitive(SIZE, "size(Tensor self) -> int[]", lambda x: x.array.shape, has_gradient=False),
    Primitive(
        SIZE_IF_NOT_EQUAL,
        "_size_if_not_equal(int[] self_size, int[] result_size) -> int[]?",
        lambda own, other: None if own == other else own,
        has_gradient=False,
    ),
    Primitive(
        GRAD_SUM_TO_SIZE,
        "_grad_sum_to_size(Tensor grad, int[]? size) -> Tensor",
        grad_sum_to_size,
        forwards=True,
    ),
    Primitive(
        FULL,
        "full(int[] size, Scalar fill_value, dtype dtype, Device? device=None) -> Tensor",
        _full,
        has_gradient=False,
    ),
    Primitive(
        RANDOM,
        attributes=("function", "args", "tensors", "kwargs"),
        effects=True,
        has_gradient=False,
    ),
    Primitive(CONSTANT_CHUNK, attributes=("chunks", "dim"), forwards=True),
    Primitive(PROFILE, effects=True, forwards=True),
    Primitive(PROFILE_IVALUE, effects=True, forwards=True),
    Primitive(CHECK, evaluate=lambda *values: (), stays=True, several=True),
    Primitive(DIFFERENTIABLE_GRAPH, blocks=1),
    Primitive(REVERSE, blocks=1, effects=True),
    Primitive(COND, blocks=2),
    Primitive(WHILE, blocks=2),
    Primitive(ROUNDS, blocks=2),
    Primitive(SCAN, blocks=1, attributes=("carried", "mapped", "reverse")),
    Primitive(MAP, blocks=1, attributes=("mapped",)),
    Primitive(FUNCTION, blocks=2, attributes=("name", "differentiable", "gradients")),
    Primitive(ONCE_DIFFERENTIABLE, attributes=("grads",), forwards=True),
    Primitive(PARAM),
    Primitive(RETURN),
):
    register_primitive(_primitive)
