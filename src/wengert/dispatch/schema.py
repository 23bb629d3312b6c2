"""Schemas as calls read them: ``name(Tensor(a) self, int[] dims, *, bool keep=False) -> Tensor``.

`schema_parser.py` makes them from text; `library/schema.py` shows them under PyTorch's names.
"""

from __future__ import annotations

from typing import Any

# What an argument takes, as a number that binding can switch on.
(TENSOR, TENSORS, INTS, INTEGER, FLOAT, SCALAR, BOOLEAN, STRING, DTYPE, ANYTHING) = range(10)
_CODES = {
    "Tensor": TENSOR,
    "Tensor[]": TENSORS,
    "int[]": INTS,
    "int": INTEGER,
    "float": FLOAT,
    "Scalar": SCALAR,
    "bool": BOOLEAN,
    "str": STRING,
    "dtype": DTYPE,
}
#: What PyTorch calls the types whose words differ from its own names.
ANNOTATIONS = {"Scalar": "number", "SymInt": "int"}
# Words of schemas that mean the same to a call.
_PLAINER = {"SymInt": "int", "ScalarType": "dtype"}


class Required:
    """The default of an argument that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED = Required()


class Mismatch(Exception):
    """A value is not of its schema type."""


class Argument:
    """One argument: what it is called, what it takes, and what it is if it is not given.

    `base` is the word for its type and `suffixes` what follows it, such as ``("[]", "?")``; `size`
    is the fixed length of a list. `type` joins them in the words that calls look at. `alias` is the
    annotation of the memory that it shares, without its brackets.
    """

    def __init__(
        self,
        name: str,
        base: str,
        suffixes: tuple[str, ...] = (),
        size: int | None = None,
        default: Any = REQUIRED,
        keyword_only: bool = False,
        alias: str | None = None,
    ) -> None:
        self.name = name
        self.base = base
        self.suffixes = suffixes
        self.size = size
        self.default = default
        self.keyword_only = keyword_only
        self.alias = alias
        self.converter: Any = None  # what binding found for values of this type
        self.type = _PLAINER.get(base, base) + "".join(suffixes)
        self.optional = self.type.endswith("?") or self.type == "Tensor?[]"
        self.code = _CODES.get(self.type.replace("?", ""), ANYTHING)

    def is_written(self) -> bool:
        """Whether the operator changes it."""
        return self.alias is not None and "!" in self.alias

    def fresh_default(self) -> Any:
        """The default as a kernel of a program may keep and change it."""
        return list(self.default) if type(self.default) is tuple else self.default

    def annotation(self) -> str:
        """The type in PyTorch's words: ``List[int]``, ``Optional[Tensor]``."""
        text = ANNOTATIONS.get(self.base, self.base)
        for suffix in self.suffixes:
            text = f"List[{text}]" if suffix == "[]" else f"Optional[{text}]"
        return text

    def with_alias(self, alias: str) -> Argument:
        """This argument with another annotation of the memory that it shares."""
        return Argument(
            self.name, self.base, self.suffixes, self.size, self.default, self.keyword_only, alias
        )


class Schema:
    """The name of an operator with that of its overload, its arguments and what it returns.

    That of an operator which a program defines has a namespace; its kernels are the program's.
    """

    def __init__(
        self, name: str, arguments: tuple[Argument, ...], returns: tuple[str, ...], text: str
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.returns = returns
        self.text = text
        self.positional = sum([not a.keyword_only for a in arguments])
        self.is_custom = "::" in name
        self.names = {a.name: i for i, a in enumerate(arguments)}

    def __str__(self) -> str:
        return self.text
