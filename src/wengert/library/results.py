"""What the kernels of custom operators return, checked against their schemas."""

from __future__ import annotations

from typing import Any

from ..dispatch.schema import Mismatch, Schema
from ..dispatch.schema_parser import parse_results
from ..dispatch.schema_values import converter_of


class Results:
    """Checks and converts what a kernel returns; None may stand for a tensor."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.name = schema.name.partition(".")[0]
        self.returns = parse_results(schema)
        self.converters = [converter_of(each) for each in self.returns]

    def convert(self, value: Any) -> Any:
        """The results of an operator: one value, a tuple of several, or None."""
        count = len(self.converters)
        if count == 1:
            return self._one(0, value)
        if count == 0:
            if value is not None:
                raise RuntimeError(
                    f"Expected the kernel of {self.name} to return None but it returned a "
                    f"value of type {type(value).__name__}: its schema is {self.schema}"
                )
            return None
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"the kernel of {self.name} returned a {type(value).__name__} where its "
                f"schema wants a tuple of {count}: {self.schema}"
            )
        if len(value) != count:
            raise RuntimeError(
                f"the kernel of {self.name} returned {len(value)} values where its schema "
                f"wants {count}: {self.schema}"
            )
        return tuple([self._one(i, item) for i, item in enumerate(value)])

    def _one(self, index: int, value: Any) -> Any:
        declared = self.returns[index]
        if value is None and declared.base == "Tensor":
            return None
        try:
            return self.converters[index](value)
        except Mismatch:
            raise RuntimeError(
                f"Unable to cast {value!r} to {declared.annotation()}: return value {index} of the "
                f"kernel of {self.name}, whose schema is {self.schema}"
            ) from None
