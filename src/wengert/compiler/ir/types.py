"""Types of the values of a graph: tensors of which something or nothing is known, and the rest.

A type is immutable and compares by what it says. ``str`` of it is its text in a graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core import dtypes
from ...core.devices import device
from ...core.tensor import Tensor

Shape = tuple[int | None, ...] | None


class Type:
    """What is known of a value before the graph runs."""

    __slots__ = ()

    def accepts(self, other: Type) -> bool:
        """Whether every value of type `other` is a value of this type."""
        return self in (other, ANY)


class Plain(Type):
    """A type with a name and nothing more to say: numbers, strings, None."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def accepts(self, other: Type) -> bool:
        if self is ANY or self is other:
            return True
        return self is NUMBER and other in (INT, FLOAT, COMPLEX, BOOL)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<type {self.name}>"


INT, FLOAT, COMPLEX, BOOL, STR, NONE, DTYPE, DEVICE, NUMBER, ANY = (
    Plain(name)
    for name in (
        "int", "float", "complex", "bool", "str", "None", "dtype", "Device", "Scalar", "Any",
    )
)  # fmt: skip
PLAIN = {t.name: t for t in (INT, FLOAT, COMPLEX, BOOL, STR, NONE, DTYPE, DEVICE, NUMBER, ANY)}


class TensorType(Type):
    """A tensor; dtype, shape, single lengths and requires_grad may each be unknown (None)."""

    __slots__ = ("dtype", "shape", "requires_grad", "_hash")

    dtype: dtypes.dtype | None
    shape: Shape
    requires_grad: bool | None

    def __init__(
        self,
        dtype: dtypes.dtype | None = None,
        shape: Iterable[int | None] | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = None if shape is None else tuple(shape)
        self.requires_grad = requires_grad
        self._hash = hash((dtype, self.shape, requires_grad))

    @property
    def concrete_shape(self) -> tuple[int, ...] | None:
        """The shape if every length of it is known."""
        shape = self.shape
        return None if shape is None or None in shape else shape  # type: ignore[return-value]

    @property
    def is_complete(self) -> bool:
        """Whether dtype and shape are known."""
        return self.dtype is not None and self.concrete_shape is not None

    @property
    def can_require_grad(self) -> bool:
        """Whether the dtype, as far as it is known, allows gradients."""
        return self.dtype is None or self.dtype.category >= dtypes.FLOATING

    @property
    def nbytes(self) -> int | None:
        """Memory of such a tensor, if dtype and shape are known."""
        shape = self.concrete_shape
        if self.dtype is None or shape is None:
            return None
        size = self.dtype.itemsize
        for length in shape:
            size *= length
        return size

    def with_requires_grad(self, requires_grad: bool | None) -> TensorType:
        """This type with another answer to whether gradients are wanted."""
        if requires_grad is self.requires_grad:
            return self
        return TensorType(self.dtype, self.shape, requires_grad)

    def accepts(self, other: Type) -> bool:
        return isinstance(other, TensorType) and (
            self.dtype in (None, other.dtype)
            and _shape_accepts(self.shape, other.shape)
            and self.requires_grad in (None, other.requires_grad)
        )

    def join(self, other: TensorType) -> TensorType:
        """What both types say."""
        shape: Shape = None
        if (
            self.shape is not None
            and other.shape is not None
            and len(self.shape) == len(other.shape)
        ):
            pairs = zip(self.shape, other.shape, strict=True)
            shape = tuple(a if a == b else None for a, b in pairs)
        return TensorType(
            self.dtype if self.dtype is other.dtype else None,
            shape,
            self.requires_grad if self.requires_grad is other.requires_grad else None,
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TensorType)
            and self.dtype is other.dtype
            and self.shape == other.shape
            and self.requires_grad is other.requires_grad
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        name = "Tensor" if self.dtype is None else self.dtype.name
        if self.shape is None and self.requires_grad is None and name not in PLAIN:
            return name
        inside = "..."
        if self.shape is not None:
            inside = ", ".join("*" if n is None else str(n) for n in self.shape)
        if self.requires_grad is not None:
            inside += "; grad" if self.requires_grad else "; no_grad"
        return f"{name}[{inside}]"

    __repr__ = __str__


def _shape_accepts(known: Shape, other: Shape) -> bool:
    if known is None or other is None:
        return known is None
    return len(known) == len(other) and all(
        a is None or a == b for a, b in zip(known, other, strict=True)
    )


class Container(Type):
    """A type made of others."""

    __slots__ = ("elements",)
    name = ""

    def __init__(self, *elements: Type) -> None:
        self.elements = elements

    def accepts(self, other: Type) -> bool:
        return (
            type(other) is type(self)
            and len(other.elements) == len(self.elements)  # type: ignore[attr-defined]
            and all(
                a.accepts(b)
                for a, b in zip(self.elements, other.elements, strict=True)  # type: ignore[attr-defined]
            )
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.elements == other.elements  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.name, self.elements))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.elements))})"

    __repr__ = __str__


class ListType(Container):
    """A list of values of one type."""

    __slots__ = ()
    name = "List"

    @property
    def element(self) -> Type:
        return self.elements[0]


class TupleType(Container):
    """A fixed number of values, each of its own type."""

    __slots__ = ()
    name = "Tuple"


class OptionalType(Container):
    """A value of one type, or None."""

    __slots__ = ()
    name = "Optional"

    @property
    def element(self) -> Type:
        return self.elements[0]

    def accepts(self, other: Type) -> bool:
        return other is NONE or self.element.accepts(other) or Container.accepts(self, other)


CONTAINERS = {t.name: t for t in (ListType, TupleType, OptionalType)}

#: A tensor of which nothing is known.
TENSOR = TensorType()

_OF_PYTHON: dict[type, Type] = {
    bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX, str: STR, type(None): NONE,
    dtypes.dtype: DTYPE, device: DEVICE,
}  # fmt: skip


def type_of(value: Any) -> Type:
    """The most precise type of a Python value."""
    if isinstance(value, Tensor):
        return TensorType(value.dtype, value.array.shape, value.requires_grad)
    if isinstance(value, list):
        element = type_of(value[0]) if value else ANY
        for item in value[1:]:
            element = join(element, type_of(item))
        return ListType(element)
    if isinstance(value, tuple):
        if value and all(type(item) is int for item in value):
            return ListType(INT)
        return TupleType(*map(type_of, value))
    return _OF_PYTHON.get(type(value), ANY)


def without_grad(type: Type) -> Type:
    """A type that says nothing of gradients."""
    return type.with_requires_grad(None) if isinstance(type, TensorType) else type


def stacked(type: Type, length: int | None) -> Type:
    """The type of several values of one type, joined along a new first dimension."""
    if not isinstance(type, TensorType):
        return type
    return TensorType(type.dtype, None if type.shape is None else (length, *type.shape))


def slice_of(type: Type) -> Type:
    """The type of one slice along the first dimension."""
    if not isinstance(type, TensorType):
        return type
    return TensorType(type.dtype, None if type.shape is None else type.shape[1:])


def length_of(type: Type) -> int | None:
    """The length of the first dimension, None if it is not known."""
    return type.shape[0] if isinstance(type, TensorType) and type.shape else None


def join(a: Type, b: Type) -> Type:
    """The most precise type that accepts what either type accepts."""
    if a.accepts(b):
        return a
    if b.accepts(a):
        return b
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.join(b)
    if a is NONE or b is NONE:
        return OptionalType(b if a is NONE else a)
    return NUMBER if NUMBER.accepts(a) and NUMBER.accepts(b) else ANY


#: What a schema says of an argument, as a type.
_OF_SCHEMA: dict[str, Type] = {
    "Tensor": TENSOR, "int": INT, "float": FLOAT, "bool": BOOL, "str": STR, "Scalar": NUMBER,
    "dtype": DTYPE, "Device": DEVICE,
}  # fmt: skip


def of_schema(text: str) -> Type:
    """The type that a schema's type text stands for; ANY for what graphs do not know."""
    if text.endswith("?"):
        return OptionalType(of_schema(text[:-1]))
    if text.endswith("[]"):
        return ListType(of_schema(text[:-2]))
    return _OF_SCHEMA.get(text, ANY)
