"""From the annotations of a Python function to a schema."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ..core.devices import device
from ..core.dtypes import dtype
from ..core.tensor import Tensor
from .schema import literal_text, parse_schema

_WORDS: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    dtype: "ScalarType",
    device: "Device",
}
_NUMBER = frozenset((int, float, bool))
_IN_LISTS = ("Tensor", "Tensor?", "SymInt", "float", "bool", "Scalar")
_OPTIONAL = (
    "Tensor", "SymInt", "float", "bool", "str", "Scalar", "ScalarType", "Device", "SymInt[]",
    "float[]", "bool[]",
)  # fmt: skip
_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")
_ARGUMENTS_HELP = (
    "Valid are Tensor, int, float, bool, str, dtype, device and int | float | bool; lists of "
    "Tensor, Optional[Tensor], int, float, bool and int | float | bool; and Optional of all these "
    "but lists of tensors and of mixed numbers"
)
_RETURNS_HELP = (
    "Valid are None, Tensor, list[Tensor], int, float, bool, int | float | bool, and tuples of "
    "these"
)
_DEFAULTS = (type(None), int, float, bool, str, dtype, device)


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The schema that the annotations of a function describe, as text.

    `mutates_args` names the arguments that the function changes; ``"unknown"`` means every tensor.

    >>> from wengert import Tensor
    >>> from wengert.library import infer_schema
    >>> def scale(x: Tensor, *, by: float = 2.0) -> Tensor: ...
    >>> infer_schema(scale, mutates_args=())
    '(Tensor x, *, float by=2.0) -> Tensor'
    """
    return _Prototype(prototype_function).schema(mutates_args, op_name)


class _Prototype:
    """A function whose signature is being read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.signature = inspect.signature(function)
        self.scope = getattr(inspect.unwrap(function), "__globals__", {})

    def fail(self, reason: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {reason}. Got func with signature {self.signature}")

    def schema(self, mutates_args: str | Iterable[str], op_name: str | None) -> str:
        parameters = self.signature.parameters
        mutated = self.mutated(mutates_args)
        parts: list[str] = []
        for index, parameter in enumerate(parameters.values()):
            if parameter.kind in (
                parameter.POSITIONAL_ONLY,
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                self.fail(
                    "positional-only args, varargs, or varkwargs are not supported; parameter "
                    f"{parameter.name} is one"
                )
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
                parts.append("*")
            parts.append(self.argument(index, parameter, mutated))
        returns = self.returns()
        text = f"({', '.join(parts)}) -> {returns}"
        try:
            parse_schema("f" + text)
        except RuntimeError as error:
            self.fail(f"a default value does not fit its type: {error}")
        return text if op_name is None else op_name + text

    def mutated(self, mutates_args: str | Iterable[str]) -> set[str] | None:
        """The names of the mutated arguments, None for all tensors."""
        if isinstance(mutates_args, str):
            if mutates_args == "unknown":
                return None
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are "
                f"mutated or the string 'unknown', not {mutates_args!r}"
            )
        names = set(mutates_args)
        unknown = names - set(self.signature.parameters)
        if unknown:
            self.fail(
                f"{unknown} in mutates_args were not found in the custom op's signature; it names "
                "the arguments that the operator changes"
            )
        return names

    def argument(self, index: int, parameter: inspect.Parameter, mutated: set[str] | None) -> str:
        if parameter.annotation is parameter.empty:
            self.fail(f"Parameter {parameter.name} must have a type annotation")
        annotation = self.resolve(parameter.annotation)
        text = argument_type(annotation)
        if text is None:
            hint = ""
            if annotation is tuple or typing.get_origin(annotation) is tuple:
                hint = "Tuple inputs are not part of schemas, a List is. "
            self.fail(
                f"Parameter {parameter.name} has unsupported type {annotation}. "
                f"{hint}{_ARGUMENTS_HELP}"
            )
        if text.startswith("Tensor"):
            if mutated is None or parameter.name in mutated:
                text = text.replace("Tensor", f"Tensor(a{index}!)")
        elif mutated is not None and parameter.name in mutated:
            self.fail(
                f"Parameter {parameter.name} is in mutable_args but only Tensors or collections of "
                "Tensors can be mutated"
            )
        text += f" {parameter.name}"
        if parameter.default is parameter.empty:
            return text
        if not isinstance(parameter.default, _DEFAULTS):
            self.fail(
                f"Parameter {parameter.name} has an unsupported default value type "
                f"{type(parameter.default)}; defaults are None, numbers, strings, dtypes and "
                "devices"
            )
        return f"{text}={_default_text(parameter.default)}"

    def returns(self) -> str:
        annotation = self.signature.return_annotation
        if annotation is self.signature.empty:
            self.fail("No return type annotation was provided. An operator needs one")
        annotation = self.resolve(annotation)
        if annotation is None or annotation is type(None):
            return "()"
        if typing.get_origin(annotation) is not tuple:
            return self.result(annotation)
        parts = typing.get_args(annotation)
        if Ellipsis in parts:
            self.fail(f"Return has unsupported type {annotation}. {_RETURNS_HELP}")
        results = [self.result(part) for part in parts]
        return results[0] if len(results) == 1 else f"({', '.join(results)})"

    def result(self, annotation: Any) -> str:
        text = argument_type(annotation)
        if text not in _RETURNED or _is_sequence(annotation):
            self.fail(f"Return has unsupported type {annotation}. {_RETURNS_HELP}")
        return text

    def resolve(self, annotation: Any) -> Any:
        """An annotation that was written as a string, evaluated where the function is defined."""
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, dict(self.scope))
        except Exception as error:
            self.fail(
                f"Unsupported type annotation {annotation}. It is not a type ({error}); under "
                "`from __future__ import annotations` all names in annotations must be known in "
                "the module, not only in a function"
            )


def argument_type(annotation: Any) -> str | None:
    """The schema's word for an annotation, None if there is none."""
    try:
        word = _WORDS.get(annotation)
    except TypeError:
        return None
    if word is not None:
        return word
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        return _union_type(parts)
    if origin in (list, collections.abc.Sequence) and len(parts) == 1:
        element = argument_type(parts[0])
        return f"{element}[]" if element in _IN_LISTS else None
    return None


def _union_type(parts: tuple) -> str | None:
    members = [part for part in parts if part is not type(None)]
    if frozenset(members) == _NUMBER:
        word: str | None = "Scalar"
    else:
        word = argument_type(members[0]) if len(members) == 1 else None
    if len(members) == len(parts):
        return word
    return f"{word}?" if word in _OPTIONAL else None


def _is_sequence(annotation: Any) -> bool:
    """Whether an annotation promises some sequence, where a result must be a list."""
    return typing.get_origin(annotation) is collections.abc.Sequence


def _default_text(value: Any) -> str:
    return repr(value) if type(value) is float else literal_text(value)
