"""The operators of the library under PyTorch's names: namespace ``aten``, its overload names."""

from __future__ import annotations

from typing import Any

from .schema import FunctionSchema, function_schema

NAMESPACE = "aten"

_schemas: dict[Any, FunctionSchema] = {}


def overload_name(operator: Any) -> tuple[str, str]:
    """PyTorch's name of a declared operator and of its overload, empty for the default one.

    One operator here may serve what PyTorch declares several times: for numbers, for tensors, for
    one dimension and for many. It goes by the overload whose arguments it has.
    """
    name, _, overload = operator.name.partition(".")
    facts = operator.facts
    return facts.get("aten", name), overload or facts.get("overload", "")


def builtin_schema(operator: Any) -> FunctionSchema:
    """The schema of an operator of the library, read from its declaration when first asked for."""
    known = _schemas.get(operator)
    if known is None:
        name, overload = overload_name(operator)
        full = f"{NAMESPACE}::{name}" + (f".{overload}" if overload else "")
        known = _schemas[operator] = function_schema(operator.schema, full)
    return known
