"""Hash-consed scalar expressions, and values that look like NumPy's while they are written.

An expression is a list of instructions ``(name, type, arguments)``. Arguments are numbers of
earlier instructions, or literals where the name says so: ``const`` has a value, ``load`` an access
to memory, ``cmp`` a relation before its operands, ``call`` the name of a function of the C library.
Writing an instruction twice gives the first one again.

A `Scalar` stands for one instruction. It has a dtype and the operators of Python, with NumPy's
rules for promotion, so that the kernel of an elementwise operator runs on it as on an array.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np


class Unsupported(Exception):
    """Raised where a computation has no form in scalar expressions."""


#: The types of instructions by NumPy's dtypes.
TYPES: dict[Any, str] = {
    np.dtype("float32"): "f32", np.dtype("float64"): "f64", np.dtype("float16"): "f16",
    np.dtype("bool"): "bool", np.dtype("int8"): "i8", np.dtype("int16"): "i16",
    np.dtype("int32"): "i32", np.dtype("int64"): "i64", np.dtype("uint8"): "u8",
    np.dtype("uint16"): "u16", np.dtype("uint32"): "u32", np.dtype("uint64"): "u64",
}  # fmt: skip
DTYPES = {name: dtype for dtype, name in TYPES.items()}
SIZES = {name: dtype.itemsize for name, dtype in DTYPES.items()}
_COMMUTE = {"add", "mul", "and", "or", "xor"}
#: What can be done with 16-bit floats; everything else is done in float32.
_OF_HALVES = {"convert", "bits", "select"}


def type_of(dtype: Any) -> str:
    """The type of instructions whose values have a dtype of NumPy's."""
    found = TYPES.get(dtype)
    if found is None and getattr(dtype, "name", "") == "bfloat16":
        # Its dtype is made by a package that only programs with such tensors import.
        DTYPES["bf16"], SIZES["bf16"], TYPES[dtype] = dtype, 2, "bf16"
        found = "bf16"
    if found is None:
        raise Unsupported(f"there is no machine code for {dtype}")
    return found


def is_float(kind: str) -> bool:
    return kind[0] == "f"


def is_signed(kind: str) -> bool:
    return kind[0] == "i"


class Expressions:
    """A list of instructions in which none is there twice."""

    __slots__ = ("code", "_known")

    def __init__(self) -> None:
        self.code: list[tuple[str, str, tuple]] = []
        self._known: dict[tuple, int] = {}

    def write(self, name: str, kind: str, *args: Any) -> int:
        """The number of an instruction, which is added if it is new."""
        if name in _COMMUTE and args[0] > args[1]:
            args = (args[1], args[0])
        key = (name, kind, args)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.code)
            self.code.append(key)
        return found

    def constant(self, value: Any, kind: str) -> int:
        """A number in a type; integers wrap around as in C."""
        if kind == "bf16":
            return self.write("convert", kind, self.constant(value, "f32"))
        return self.write("const", kind, literal(value, kind))

    def kind(self, index: int) -> str:
        return self.code[index][1]

    def value_of(self, index: int) -> Any:
        """The number that an instruction is, None if it is none."""
        name, kind, args = self.code[index]
        return number(args[0], kind) if name == "const" else None

    def replay(self, code: list[tuple[str, str, tuple]], inputs: list[int]) -> list[int]:
        """Write other instructions, in which ``input`` stands for what is here already."""
        places: list[int] = []
        for name, kind, args in code:
            if name == "input":
                places.append(inputs[args[0]])
                continue
            first = LITERALS.get(name, 0)
            if first != ALL:
                args = (*args[:first], *[places[i] for i in args[first:]])
            places.append(self.write(name, kind, *args))
        return places


ALL = -1
#: How many arguments of an instruction are literals and no instructions, where any are.
LITERALS = {
    "const": ALL, "input": ALL, "load": ALL, "dot": ALL, "cmp": 1, "call": 1, "rescue": 1,
    "gather": 3, "form": 1,
}  # fmt: skip


def operands_of(instruction: tuple[str, str, tuple]) -> tuple[int, ...]:
    """The numbers of the instructions that one reads."""
    name, _, args = instruction
    first = LITERALS.get(name, 0)
    return () if first == ALL else args[first:]


def literal(value: Any, kind: str) -> Any:
    """A number as it stands in an instruction: floats by their bits, so that -0.0 is not 0.0."""
    if is_float(kind):
        return struct.unpack("<q", struct.pack("<d", float(DTYPES[kind].type(value))))[0]
    if kind == "bool":
        return int(bool(value))
    return int(np.asarray(value).astype(DTYPES[kind]))


def number(given: int, kind: str) -> Any:
    """The number that a literal stands for."""
    if is_float(kind):
        return struct.unpack("<d", struct.pack("<q", given))[0]
    return bool(given) if kind == "bool" else given


class Flags:
    """What kernels ask of the memory of an array that is not there yet: it is in rows."""

    c_contiguous = True
    writeable = True


class Scalar:
    """One element of an array that is not there yet: an instruction with a dtype.

    `ndim` is that of the array that it is an element of, which promotion asks for.
    """

    __slots__ = ("block", "at", "ndim")

    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    # NumPy's arrays and numbers leave operations with it to it.
    __array_ufunc__ = None

    def __init__(self, block: Expressions, at: int, ndim: int = 1) -> None:
        self.block = block
        self.at = at
        self.ndim = ndim

    # What it is ------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        return self.block.code[self.at][1]

    @property
    def dtype(self) -> Any:
        return DTYPES[self.kind]

    @property
    def itemsize(self) -> int:
        return SIZES[self.kind]

    @property
    def real(self) -> Scalar:
        return self

    @property
    def known(self) -> Any:
        """The number that it is, None if that is not known."""
        return self.block.value_of(self.at)

    def item(self) -> Any:
        if self.known is None:
            raise Unsupported("the value of an element is asked for")
        return self.known

    def _is_numberless(self, *_: Any, **__: Any) -> Any:
        raise Unsupported("a kernel asks for more than an element")

    __bool__ = __int__ = __float__ = __iter__ = __len__ = __getitem__ = _is_numberless
    all = any = max = min = sum = mean = reshape = transpose = take = _is_numberless
    size = T = property(_is_numberless)
    flags = Flags()

    # Making others -----------------------------------------------------------------------------

    def write(self, name: str, *args: Any, kind: str | None = None) -> Scalar:
        """The result of an instruction, of this type unless another is given."""
        if self.kind in ("f16", "bf16") and name not in _OF_HALVES:
            raise Unsupported("16-bit floats compute in float32")
        return Scalar(
            self.block,
            self.block.write(
                name, kind or self.kind, *[a.at if isinstance(a, Scalar) else a for a in args]
            ),
            self.ndim,
        )

    def number(self, value: Any, kind: str | None = None) -> Scalar:
        """A number, of this type unless another is given."""
        return Scalar(self.block, self.block.constant(value, kind or self.kind), self.ndim)

    def to(self, kind: str) -> Scalar:
        """The value in another type, as a cast in C."""
        own = self.kind
        if own == kind:
            return self
        known = self.known
        if kind == "bf16":
            wide = self.to("f32")
            return wide.write("convert", wide, kind=kind)
        if known is not None and own != "f16" and math.isfinite(known):
            return self.number(DTYPES[own].type(known).astype(DTYPES[kind]), kind)
        if kind == "bool":
            wide = self.to("f32") if own in ("f16", "bf16") else self
            return wide.compare("ne", wide.number(0))
        if own == "f16" and kind != "f32":
            return self.to("f32").to(kind)
        if kind == "f16" and own != "f32":
            return (self.rounded_to_odd() if own == "f64" else self.to("f32")).to(kind)
        return self.write("convert", self, kind=kind)

    def rounded_to_odd(self) -> Scalar:
        """A double as a float that, rounded again to fewer bits, is what it would be at once.

        Processors do not round doubles to 16 bits. A float that is not exact gets an odd last bit.
        """
        near = self.write("convert", self, kind="f32")
        wide = near.write("convert", near, kind="f64")
        bits = near.bits("i32")
        moves = (wide != self) & (self == self) & ((bits & 1) == 0)
        step = (abs(wide) < abs(self)).choose(bits.number(1), bits.number(-1))
        return moves.choose(bits + step, bits).bits("f32")

    def bits(self, kind: str) -> Scalar:
        """These bits as a value of another type of that size."""
        return self.write("bits", self, kind=kind)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Scalar:
        return self.to(type_of(np.dtype(dtype)))

    def copy(self, order: str = "C") -> Scalar:
        return Scalar(self.block, self.at, self.ndim)  # which may be written by itself

    def conj(self) -> Scalar:
        return self

    conjugate = conj

    # Arithmetic --------------------------------------------------------------------------------

    def paired(self, other: Any) -> tuple[Scalar, Scalar]:
        """This value and another one, or a number, in their common type."""
        if isinstance(other, Scalar):
            if other.kind == self.kind:
                return self, other
            kind = type_of(np.result_type(self.dtype, other.dtype))
            return self.to(kind), other.to(kind)
        if getattr(other, "ndim", -1) == 0:
            other = other[()]
        if not isinstance(other, (bool, int, float, np.generic)):
            raise Unsupported(f"an element and a {type(other).__name__}")
        kind = type_of(np.result_type(self.dtype, other))
        return self.to(kind), self.number(other, kind)

    def _arithmetic(self, name: str, other: Any, reflected: bool) -> Any:
        if isinstance(other, (list, tuple, str)):
            return NotImplemented
        x, y = self.paired(other)
        if reflected:
            x, y = y, x
        if x.kind == "bool":
            if name == "sub":
                raise Unsupported("truth values are subtracted")
            return x.write("or" if name == "add" else "and", x, y)
        return x.write(name, x, y)

    def __add__(self, other: Any) -> Scalar:
        return self._arithmetic("add", other, False)

    def __radd__(self, other: Any) -> Scalar:
        return self._arithmetic("add", other, True)

    def __sub__(self, other: Any) -> Scalar:
        return self._arithmetic("sub", other, False)

    def __rsub__(self, other: Any) -> Scalar:
        return self._arithmetic("sub", other, True)

    def __mul__(self, other: Any) -> Scalar:
        return self._arithmetic("mul", other, False)

    def __rmul__(self, other: Any) -> Scalar:
        return self._arithmetic("mul", other, True)

    def _quotient(self, other: Any, reflected: bool) -> Scalar:
        x, y = self.paired(other)
        if reflected:
            x, y = y, x
        if not is_float(x.kind):
            x, y = x.to("f64"), y.to("f64")
        return x.write("div", x, y)

    def __truediv__(self, other: Any) -> Scalar:
        return self._quotient(other, False)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._quotient(other, True)

    def __neg__(self) -> Scalar:
        if self.kind == "bool":
            raise Unsupported("a truth value is negated")
        return self.write("neg", self) if is_float(self.kind) else self.number(0) - self

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        if is_float(self.kind):
            return self.write("abs", self)
        return self if not is_signed(self.kind) else (self < 0).choose(-self, self)

    # Relations and bits ------------------------------------------------------------------------

    def compare(self, relation: str, other: Any) -> Scalar:
        x, y = self.paired(other)
        return x.write("cmp", relation, x, y, kind="bool")

    def __lt__(self, other: Any) -> Scalar:
        return self.compare("lt", other)

    def __le__(self, other: Any) -> Scalar:
        return self.compare("le", other)

    def __gt__(self, other: Any) -> Scalar:
        return self.compare("gt", other)

    def __ge__(self, other: Any) -> Scalar:
        return self.compare("ge", other)

    def __eq__(self, other: object) -> Any:
        return self.compare("eq", other)

    def __ne__(self, other: object) -> Any:
        return self.compare("ne", other)

    __hash__ = None  # type: ignore[assignment]

    def _bitwise(self, name: str, other: Any) -> Scalar:
        x, y = self.paired(other)
        if is_float(x.kind):
            raise Unsupported("the bits of floats are combined")
        return x.write(name, x, y)

    def __and__(self, other: Any) -> Scalar:
        return self._bitwise("and", other)

    def __or__(self, other: Any) -> Scalar:
        return self._bitwise("or", other)

    def __xor__(self, other: Any) -> Scalar:
        return self._bitwise("xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Scalar:
        if is_float(self.kind):
            raise Unsupported("the bits of floats are inverted")
        return self.write("xor", self, self.number(-1 if self.kind != "bool" else 1))

    def shifted(self, name: str, count: Any) -> Scalar:
        """Bits moved left (``shl``), right (``shr``), or right with the sign (``sar``)."""
        return self.write(name, self, count if isinstance(count, Scalar) else self.number(count))

    def choose(self, x: Any, y: Any) -> Scalar:
        """`x` where this truth value holds, else `y`."""
        if not isinstance(x, Scalar):
            if not isinstance(y, Scalar):
                kind = type_of(np.result_type(x, y))
                x, y = self.number(x, kind), self.number(y, kind)
            else:
                y, x = y.paired(x)
        x, y = x.paired(y)
        return x.write("select", self, x, y)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Take the value of another element; only a place that was just made is written."""
        if key is not Ellipsis:
            raise Unsupported("a part of an element")
        kind = self.kind
        given = value if isinstance(value, Scalar) else self.number(value)
        self.block = given.block
        self.at = given.to(kind).at
