"""How operators and public functions look to `help` and `inspect`: signatures and documentation.

Both come from the declaration: the schema has the arguments with types and defaults, `doc` says
what is computed. They are made when somebody looks, and cost calls and the import nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.loading import load
from .schema import REQUIRED, Argument, Schema


def public_name(argument: Argument) -> str:
    """What callers name an argument."""
    return "input" if argument.name == "self" else argument.name


def python_type(argument: Argument) -> Any:
    """What Python calls the values that an argument takes."""
    from collections.abc import Sequence
    from numbers import Number

    from ..core.dtypes import dtype
    from ..core.tensor import Tensor

    known: dict[str, Any] = {
        "Tensor": Tensor, "Tensor[]": Sequence[Tensor], "Tensor?[]": Sequence[Tensor | None],
        "int": int, "int[]": int | Sequence[int], "float": float, "Scalar": Number, "bool": bool,
        "str": str, "dtype": dtype,
    }  # fmt: skip
    found = known.get(argument.type) or known.get(argument.type.rstrip("?"), Any)
    if argument.type == "Tensor" and argument.name == "other":
        found = Tensor | Number
    return found | None if argument.type.endswith("?") and found is not Any else found


def signature_of(schema: Schema, with_out: bool = False) -> Any:
    """The schema as an `inspect.Signature`, with types and defaults."""
    from inspect import Parameter, Signature

    parameters = []
    for argument in schema.arguments:
        kind = Parameter.KEYWORD_ONLY if argument.keyword_only else Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if argument.default is REQUIRED else argument.default
        parameters.append(
            Parameter(
                public_name(argument), kind, default=default, annotation=python_type(argument)
            )
        )
    if with_out:
        parameters.append(_out_parameter())
    return Signature(parameters, return_annotation=_returned(schema))


def _out_parameter() -> Any:
    from inspect import Parameter

    from ..core.tensor import Tensor

    return Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=Tensor | None)


def _returned(schema: Schema) -> Any:
    from ..core.tensor import Tensor

    if len(schema.returns) == 1:
        return tuple[Tensor, ...] if "[]" in schema.returns[0] else Tensor
    several: Any = (Tensor,) * len(schema.returns)
    return tuple.__class_getitem__(several) if several else None


def takes_out(operator: Any) -> bool:
    """Whether the result of an operator can be written into a tensor given as ``out=``."""
    return not (operator.mutates or operator.schema.is_custom or operator.is_view)


def operator_signature(operator: Any) -> Any:
    """The signature of an operator that is called as a function."""
    return signature_of(operator.schema, takes_out(operator))


def public_signature(function: Any) -> Any:
    """The signature of what lies behind a public name."""
    from inspect import signature

    forms = getattr(function, "forms", None)
    if forms is not None:
        return _joined(*[_operator(form) for form in forms])
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None and getattr(wrapped, "schema", None) is not None:
        return _with_out(wrapped)
    return signature(function)


def _operator(form: Any) -> Any:
    """The operator of one form of a function."""
    return form if getattr(form, "schema", None) is not None else form.__wrapped__


def _with_out(operator: Any) -> Any:
    found = signature_of(operator.schema)
    return found.replace(parameters=[*found.parameters.values(), _out_parameter()])


def _joined(whole: Any, along: Any) -> Any:
    """One signature of two forms: what only one of them has to be given need not be given."""
    found = _with_out(along)
    parameters = [
        parameter.replace(default=None, annotation=_or_none(parameter.annotation))
        if parameter.default is parameter.empty and name not in _names(whole)
        else parameter
        for name, parameter in found.parameters.items()
    ]
    return found.replace(parameters=parameters)


def _names(operator: Any) -> set[str]:
    return {public_name(argument) for argument in operator.schema.arguments}


def _or_none(annotation: Any) -> Any:
    return annotation if annotation is Any else annotation | None


# Documentation ------------------------------------------------------------------------------------


def _described(argument: Argument) -> str:
    kind = python_type(argument)
    word = getattr(kind, "__name__", "") if isinstance(kind, type) else str(kind)
    for long, short in (
        ("wengert.", ""), ("core.tensor.", ""), ("core.dtypes.", ""), ("collections.abc.", ""),
        ("typing.", ""), ("numbers.", ""),
    ):  # fmt: skip
        word = word.replace(long, short)
    given = "" if argument.default is REQUIRED else f", {argument.default!r} if it is not given"
    return f"    {public_name(argument)}: {word}{given}"


def _plain(text: str) -> str:
    """A signature in words that programs use."""
    for long, short in (
        ("wengert.core.tensor.Tensor", "Tensor"), ("wengert.core.dtypes.dtype", "dtype"),
        ("wengert.Tensor", "Tensor"), ("wengert.dtype", "dtype"), ("collections.abc.", ""),
        ("numbers.Number", "Number"), ("typing.", ""),
    ):  # fmt: skip
        text = text.replace(long, short)
    return text


def documentation(name: str, operator: Any, signature: Any, doc: str) -> str:
    """The documentation of an operator: its signature, what it computes, arguments, an example."""
    lines = [f"{name}{_plain(str(signature))}", "", doc]
    if operator.schema.arguments:
        lines += ["", "Arguments:", *[_described(each) for each in operator.schema.arguments]]
    if "out" in signature.parameters:
        lines.append("    out: Tensor, None if it is not given; the result is written into it")
    example = load("operators.examples").EXAMPLES.get(name)
    if example is not None:
        lines += ["", "Example:", "", *[f"    {line}" for line in example.splitlines()]]
    return "\n".join(lines)


def operator_documentation(operator: Any) -> str:
    """The documentation of an operator that is called as a function or as a method."""
    doc = operator.doc
    if operator.mutates and not operator.schema.is_custom:
        functional = operator.functional
        doc = f"Write the result of {functional.name}() into the tensor: {_small(functional.doc)}"
    return documentation(operator.name, operator, operator_signature(operator), doc)


def _small(text: str) -> str:
    return text[:1].lower() + text[1:] if not text[:2].isupper() else text


def public_documentation(name: str, function: Any) -> str | None:
    """The documentation of what lies behind a public name."""
    forms = getattr(function, "forms", None)
    operator = _operator(forms[1]) if forms is not None else getattr(function, "__wrapped__", None)
    if getattr(operator, "schema", None) is None or getattr(operator, "family", "") == "effect":
        return function.__doc__
    return documentation(name, operator, public_signature(function), function.__doc__ or "")


class Documentation:
    """A class attribute ``__doc__``: for an instance what `find` says, for the class its own."""

    def __init__(self, own: str | None, find: Any) -> None:
        self.own = own
        self.find = find

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.own if instance is None else self.find(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError("the documentation of an operator comes from its declaration")


class ModuleName(str):
    """A class attribute ``__module__``: of the class its own, of instances that of the package."""

    def __get__(self, instance: Any, owner: Any) -> str:
        return str(self) if instance is None else "wengert"


def presented(function: Any, name: str, module: str, likeness: Any) -> Callable[..., Any]:
    """`function` under a name, with the documentation and the signature of its `likeness`."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = getattr(likeness, "doc", likeness.__doc__)
    function.__wrapped__ = likeness
    function.facts = getattr(likeness, "facts", {})
    return function
