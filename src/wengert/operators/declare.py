"""What a declaration is: five families, and what each of them derives.

- `elementwise`: the differential per argument, ``lambda t, other: t * other``: how a small change
  `t` of that argument changes the result. It is linear in `t`, so it is the forward rule as it
  stands and, conjugated, the reverse rule too. The engine undoes broadcasting and dtype promotion.
- `linear`: the transpose per argument in which the operator is linear. The forward rule is the
  operator itself, applied to one tangent at a time.
- `primitive`: reverse rules and a forward rule, both written in operators.
- `nondifferentiable`: a kernel.
- a composite is a plain function over operators and needs no declaration.

The name of an operator's nodes is its own in title case with ``Backward0``; `name` gives another
one, as a string or as a function of the arguments. `inplace` declares the in-place form too; a
string names its nodes, where PyTorch has a rule of its own for it.

`batch` says what becomes of a batch of examples, see `batching`: elementwise operators broadcast,
for all others it has to be said. None is a loop over the examples, which warns.

What any declaration may say besides stands in `Facts`: other names, PyTorch's name for the
overload, whether it is a function, a method or both, what the compiler may do with calls. A
composite says it by `composite`.

`shape` computes the shape of the result, or a list of shapes, from what the kernel gets, see
`shapes`: what a meta tensor needs beside the kernel, which it runs on a few elements. Where that
says nothing, `meta` computes the whole result. Elementwise operators and views need neither.

The parameter names of a rule say what it reads and therefore what is saved: an argument by its
name, ``out`` (``out0``, ``out1``) for results, ``self_shape`` for only a shape.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, TypeVar, Unpack

import numpy as np

from ..backends.backend import backend_of, is_array
from ..backends.kernels import native_loop
from ..backends.layout import copied
from ..backends.meta import sampled
from ..core import dtypes
from ..core.dtypes import result_dtype
from ..core.registry import register
from ..dispatch.inplace import InplaceOperator
from ..dispatch.operator import Operator
from ..dispatch.schema import Schema
from ..dispatch.schema_parser import parse
from ..tape.plans import rule_reads, slot_of

Rules = Callable | dict[str, Callable | None]

#: The rule for batches of operators that broadcast, which is imported when a batch comes.
ELEMENTWISE = "transforms.batching.rules.elementwise"

_LOOPS: dict[Callable, int] = {}


class Facts(TypedDict, total=False):
    """What a declaration may say of an operator beside what its family asks for."""

    #: The name of its nodes, or a function of the arguments that gives it.
    name: str | Callable[..., str]
    doc: str
    #: Other words for its arguments, beside those that all operators know.
    aliases: dict[str, str]
    #: ``function`` or ``method`` where it is only one of them, empty where it is neither.
    public: str
    #: Further public names, separated by blanks.
    also: str
    #: Names of NumPy's ufuncs that mean it, where no public name of that spelling does.
    numpy: str
    #: PyTorch's name, if the operator lies behind a function and has one of its own.
    aten: str
    #: PyTorch's name for the overload whose arguments it has, and for that of the in-place form.
    overload: str
    inplace_overload: str
    #: What a tensor given as ``out=`` may be: of another dtype (``casts``), of bools (``flags``),
    #: of the dtype of the result (``exact``), or of one in which the operator then computes
    #: (``typed``). Where nothing is said, elementwise operators cast, and others do not.
    out: str
    #: The methods of Tensor that overrides are told of, for it and for a number as first operand.
    overridden_as: str
    reflected: str
    #: Whether its two operands can change places, exactly.
    commutes: bool
    #: A number, and the operands that can be left out where they are that number.
    neutral: tuple[int, ...]
    #: Whether it changes nothing if it is applied twice.
    involution: bool
    #: Whether it is a view in which one place in memory may stand for several elements.
    overlaps: bool
    #: Where it depends on values whether it raises: ``values``, or ``integers`` if only where its
    #: results are such.
    raises: str
    #: What computing it again costs: as much as a ``product`` of matrices, or it is ``slow``.
    cost: str
    #: Whether its kernel runs machine code that loops made from its array operations cannot match,
    #: so that compiled functions call it.
    called: bool


Function = TypeVar("Function", bound=Callable)


def composite(**facts: Unpack[Facts]) -> Callable[[Function], Function]:
    """Say facts of a function that is made of operators."""

    def declare(function: Function) -> Function:
        function.facts = facts  # type: ignore[attr-defined]
        return function

    return declare


def by_loop(loop: int, rule: Callable) -> Callable:
    """A rule that comes down to a loop in loops.py, of the gradient and the first value it reads.

    Where nothing is recorded the engine runs that loop and does not call the rule.
    """
    _LOOPS[rule] = loop
    return rule


def elementwise(
    schema: str,
    kernel: str | Callable,
    differentials: Rules | None = None,
    *,
    dtype: Callable | None = None,
    native: int = -1,
    refuses: str = "",
    refusal: str = "",
    inplace: bool | str = True,
    ordering: Callable[..., tuple] | None = None,
    batch: Callable | str | None = None,
    **facts: Unpack[Facts],
) -> Operator:
    """Declare a broadcasting operator. `kernel` is a ufunc's name or a function of (xp, *args).

    `refuses` names the NumPy kinds of dtypes (b, i, u, f, c) that it is not defined for; `refusal`
    says so for the first of them in words of its own. `ordering`
    picks the operands that decide on the order of the result in memory; by default all do, in turn.
    """
    operator = _operator(schema, "elementwise", kernel, differentials, facts)
    operator.batch = batch or ELEMENTWISE
    operator.broadcasts = True
    operator.dtype_rule = dtype or promote
    operator.native_code = native
    operator.refuses, operator.refusal = refuses, refusal
    operator.ordering = ordering
    return _known(operator, inplace, facts)


def linear(
    schema: str,
    kernel: str | Callable,
    transpose: Rules,
    *,
    view: bool = False,
    inplace: bool | str = False,
    widens: bool = False,
    guarded: bool = True,
    shape: Callable | None = None,
    meta: Callable | None = None,
    batch: Callable | str | None,
    **facts: Unpack[Facts],
) -> Operator:
    """Declare an operator that is linear in each argument that has a transpose.

    A kernel that cannot meet NumPy's floating-point warnings need not be `guarded` from them.
    """
    operator = _operator(schema, "linear", kernel, transpose, facts)
    operator.batch = batch
    operator.is_view = view
    operator.widens = widens
    operator.guarded = guarded
    operator.meta_rule = meta or _by_shape(operator, shape)
    return _known(operator, inplace, facts)


def primitive(
    schema: str,
    kernel: str | Callable,
    vjp: Rules,
    jvp: Callable | None,
    *,
    nondifferentiable_outputs: tuple[int, ...] = (),
    undefined: bool = False,
    dtype: Callable | None = None,
    inplace: bool = False,
    widens: bool = True,
    guarded: bool = True,
    shape: Callable | None = None,
    meta: Callable | None = None,
    batch: Callable | str | None,
    **facts: Unpack[Facts],
) -> Operator:
    """Declare an operator by its reverse rules and its forward rule.

    A reverse rule takes the gradient of the output (a list for several outputs, with zeros for
    those that have none, or with None if they may be `undefined`). The forward rule takes a
    dictionary from argument name to tangent (absent where there is none), then what it reads, and
    returns the tangent of the output (a tuple for several).
    """
    operator = _operator(schema, "primitive", kernel, vjp, facts)
    operator.batch = batch
    operator.jvp_rule = jvp
    operator.dtype_rule = dtype
    operator.nondifferentiable_outputs = nondifferentiable_outputs
    operator.takes_undefined = undefined
    operator.widens = widens
    operator.guarded = guarded
    operator.meta_rule = meta or _by_shape(operator, shape)
    return _known(operator, inplace, facts)


def nondifferentiable(
    schema: str,
    kernel: str | Callable,
    *,
    broadcasts: bool = False,
    dtype: Callable | None = None,
    refuses: str = "",
    inplace: bool = False,
    view: bool = False,
    shape: Callable | None = None,
    meta: Callable | None = None,
    batch: Callable | str | None,
    **facts: Unpack[Facts],
) -> Operator:
    """Declare an operator whose results carry no gradient: comparisons, indices, samplers."""
    operator = _operator(schema, "nondifferentiable", kernel, None, facts)
    operator.batch = batch
    operator.refuses = refuses
    operator.broadcasts = broadcasts
    operator.dtype_rule = dtype
    operator.is_view = view
    operator.meta_rule = meta or _by_shape(operator, shape)
    return _known(operator, inplace, facts)


def differentiable_in_place(operator: Operator, differentials: dict, name: Callable) -> None:
    """Declare the in-place form of an elementwise operator that alone has no derivative.

    Its result is of a type without gradients, but it may be written into a tensor that has some.
    """
    _declare_inplace(_twin(operator, "elementwise", differentials, name))


def _twin(operator: Operator, family: str, rules: Rules, name: str | Callable) -> Operator:
    """A copy of an operator with rules or names of nodes of its own."""
    twin = _operator(
        operator.schema.text, family, operator.kernel, rules, {**operator.facts, "name": name}
    )
    for field in (
        "ufunc", "batch", "broadcasts", "dtype_rule", "refuses", "refusal", "meta_rule",
        "ordering", "native_code", "vector_loop", "widens", "guarded", "jvp_rule",
    ):  # fmt: skip
        setattr(twin, field, getattr(operator, field))
    return twin


def _operator(
    schema: str,
    family: str,
    kernel: str | Callable,
    rules: Rules | None,
    facts: Any,
) -> Operator:
    parsed = parse(schema)
    function = _named_kernel(kernel) if isinstance(kernel, str) else kernel
    operator = Operator(parsed.name, parsed, family, function)
    if isinstance(kernel, str):
        operator.ufunc = getattr(np, kernel)
    operator.vector_loop = native_loop(parsed.name)
    operator.facts = facts
    operator.doc = facts.get("doc", "")
    operator.aliases = facts.get("aliases", {})
    node_name = facts.get("name")
    if isinstance(node_name, str):
        operator.node_name = node_name
    elif node_name is not None:
        operator.namer = node_name
    if rules is not None:
        operator.rules = rules if isinstance(rules, dict) else {parsed.arguments[0].name: rules}
        unknown = set(operator.rules) - set(parsed.names)
        if unknown:
            raise TypeError(f"{parsed.name}: rules for unknown arguments {sorted(unknown)}")
        operator.grad_positions = tuple(
            i for i, a in enumerate(parsed.arguments) if operator.rules.get(a.name) is not None
        )
        for argument, rule in operator.rules.items():
            if rule is not None:
                operator.loops[argument] = _LOOPS.get(rule, -1)
                operator.vector_loops[argument] = native_loop(f"{parsed.name}.{argument}")
                for read in rule_reads(rule):
                    slot_of(operator, read)
    return operator


def _known(operator: Operator, inplace: bool | str, facts: Facts) -> Operator:
    """Make a finished operator known by name; only then, as other threads may be looking."""
    unknown = facts.keys() - Facts.__annotations__.keys()
    if unknown:
        raise TypeError(f"{operator.name}: a declaration has no keyword {sorted(unknown)}")
    operator.facts.update(facts)
    register(operator)
    if isinstance(inplace, str):
        _declare_inplace(_twin(operator, operator.family, operator.rules, inplace))
    elif inplace:
        _declare_inplace(operator)
    return operator


def _by_shape(operator: Operator, shape: Callable | None) -> Callable | None:
    return shape and partial(sampled, operator.kernel, shape)


def _named_kernel(name: str) -> Callable:
    def kernel(xp: Any, *args: Any) -> Any:
        return getattr(xp, name)(*args)

    return kernel


def _declare_inplace(operator: Operator) -> None:
    schema = operator.schema
    first = schema.arguments[0]
    target = first.with_alias("a!")
    text = schema.text.replace("(Tensor self", "_(Tensor(a!) self", 1).replace(
        "-> Tensor", "-> Tensor(a!)", 1
    )
    register(
        InplaceOperator(
            operator,
            Schema(schema.name + "_", (target, *schema.arguments[1:]), ("Tensor(a!)",), text),
        )
    )


# Dtype rules: what becomes of the operands before an elementwise kernel sees them -----------------


def _cast(operands: tuple, dtype: Any, count: int) -> tuple:
    return tuple(
        [
            (a if a.dtype == dtype else copied(a, dtype))
            if is_array(a)
            else (_number(a, dtype, operands) if i < count and a is not None else a)
            for i, a in enumerate(operands)
        ]
    )


def _number(value: Any, dtype: Any, operands: tuple) -> Any:
    """A Python number as a 0-d array of the result's dtype; integers wrap around as in C."""
    for operand in operands:
        if type(operand) is not np.ndarray and is_array(operand):
            return backend_of(operand).number(value, dtype, operand)
    return np.asarray(value).astype(dtype)


def promote(args: tuple, count: int) -> tuple:
    """All operands to their common dtype."""
    operands = [a for a in args[:count] if a is not None]
    return _cast(args, result_dtype(operands), count)


def promote_float(args: tuple, count: int) -> tuple:
    """All operands to their common dtype, integers to the default floating-point one."""
    dtype = result_dtype([a for a in args[:count] if a is not None])
    if dtype.kind in "biu":
        dtype = dtypes.get_default_dtype().numpy
    return _cast(args, dtype, count)


def promote_factors(args: tuple, count: int) -> tuple:
    """As `promote`, but numbers beside 16-bit floats are not rounded: 0.999 would become 1."""
    return _with_exact_numbers(args, promote(args, count))


def promote_quotient(args: tuple, count: int) -> tuple:
    """As `promote_float`, with numbers as in `promote_factors`."""
    return _with_exact_numbers(args, promote_float(args, count))


# These leave numbers exact; the rules that give every operand the dtype that it counts for:
promote_factors.rounded = promote  # type: ignore[attr-defined]
promote_quotient.rounded = promote_float  # type: ignore[attr-defined]


def _with_exact_numbers(args: tuple, promoted: tuple) -> tuple:
    dtype = promoted[0].dtype
    if dtype.itemsize != 2 or dtype.kind in "iu":
        return promoted
    first, second, *rest = args
    exact = np.dtype(np.float32)  # what kernels compute in
    if not is_array(first):
        first = _number(first, exact, args)
    else:
        first = promoted[0]
    if not is_array(second):
        second = _number(second, exact, args)
    elif second.ndim == 0 and second.dtype != dtype:
        second = second.astype(exact)
    else:
        second = promoted[1]
    return (first, second, *rest)


def keep(args: tuple, count: int) -> tuple:
    """Operands as they are."""
    return args
