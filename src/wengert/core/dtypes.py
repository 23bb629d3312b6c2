"""Element types, how they promote, and the default floating-point type.

The public names of the types shadow builtins (`bool`, `int`, `float`), so this module writes
`builtins.int` where it means Python's own.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from .spelling import spelled

BOOL, INTEGRAL, FLOATING, COMPLEX = range(4)

_BY_NUMPY: dict[np.dtype[Any], dtype] = {}


class dtype:
    """The type of a tensor's elements; each type exists once and compares by identity.

    `scalar_name` is the older name that error messages and `Tensor.type()` use.
    """

    __module__ = "wengert"
    __slots__ = ("name", "scalar_name", "numpy", "itemsize", "category", "is_signed")

    name: str
    scalar_name: str
    numpy: np.dtype[Any]
    itemsize: builtins.int
    category: builtins.int
    is_signed: builtins.bool

    def __init__(
        self, name: str, scalar_name: str, category: builtins.int, itemsize: builtins.int
    ) -> None:
        self.name = name
        self.scalar_name = scalar_name
        self.category = category
        self.itemsize = itemsize
        self.is_signed = category >= INTEGRAL and name[0] != "u"
        if name != "bfloat16":
            self.numpy = np.dtype(name)
            _BY_NUMPY[self.numpy] = self

    def __getattr__(self, name: str) -> Any:
        # Only bfloat16 leaves a slot empty: importing ml_dtypes would slow every start.
        if name != "numpy":
            raise AttributeError(f"'wengert.dtype' object has no attribute {name!r}")
        import ml_dtypes

        self.numpy = np.dtype(ml_dtypes.bfloat16)
        _BY_NUMPY[self.numpy] = self
        return self.numpy

    @property
    def is_floating_point(self) -> builtins.bool:
        """Whether it is a real floating-point dtype."""
        return self.category == FLOATING

    @property
    def is_complex(self) -> builtins.bool:
        """Whether it is a complex dtype."""
        return self.category == COMPLEX

    def to_real(self) -> dtype:
        """The type of the real part of an element."""
        if self.category == COMPLEX:
            return float32 if self is complex64 else float64
        return self

    def to_complex(self) -> dtype:
        """The complex type made of two such parts; the 16-bit types give complex64."""
        if self.category < FLOATING:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.name}")
        if self.category == COMPLEX:
            return self
        return complex128 if self is float64 else complex64

    def __repr__(self) -> str:
        return spelled(self.name)

    def __reduce__(self) -> str:
        return self.name


uint8 = dtype("uint8", "Byte", INTEGRAL, 1)
int8 = dtype("int8", "Char", INTEGRAL, 1)
int16 = short = dtype("int16", "Short", INTEGRAL, 2)
int32 = int = dtype("int32", "Int", INTEGRAL, 4)
int64 = long = dtype("int64", "Long", INTEGRAL, 8)
float16 = half = dtype("float16", "Half", FLOATING, 2)
bfloat16 = dtype("bfloat16", "BFloat16", FLOATING, 2)
float32 = float = dtype("float32", "Float", FLOATING, 4)
float64 = double = dtype("float64", "Double", FLOATING, 8)
complex64 = cfloat = dtype("complex64", "ComplexFloat", COMPLEX, 8)
complex128 = cdouble = dtype("complex128", "ComplexDouble", COMPLEX, 16)
bool = dtype("bool", "Bool", BOOL, 1)
uint16 = dtype("uint16", "UInt16", INTEGRAL, 2)
uint32 = dtype("uint32", "UInt32", INTEGRAL, 4)
uint64 = dtype("uint64", "UInt64", INTEGRAL, 8)

ALL: tuple[dtype, ...] = (
    bool, uint8, int8, int16, int32, int64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
#: Types that hold elements but promote with floating-point and complex types alone.
UNSIGNED: tuple[dtype, ...] = (uint16, uint32, uint64)
EVERY = ALL + UNSIGNED

_BY_PYTHON: dict[Any, dtype] = {
    builtins.bool: bool,
    builtins.int: int64,
    builtins.float: float64,
    builtins.complex: complex128,
}


def from_numpy(array_dtype: np.dtype[Any]) -> dtype:
    """The dtype of arrays of `array_dtype`; raises for what tensors cannot hold."""
    found = _BY_NUMPY.get(array_dtype)
    if found is not None:
        return found
    if array_dtype.name == "bfloat16" and array_dtype == bfloat16.numpy:
        return bfloat16
    if not array_dtype.isnative and array_dtype.newbyteorder("=") in _BY_NUMPY:
        raise ValueError(
            "given numpy array has byte order different from the native byte order "
            f"({array_dtype.str}); convert it with array.astype(array.dtype.newbyteorder('='))"
        )
    kind = array_dtype.type
    raise TypeError(
        f"can't convert np.ndarray of type {kind.__module__}.{kind.__name__}. "
        f"The only supported types are: {', '.join(each.name for each in EVERY)}."
    )


def as_dtype(given: Any) -> dtype:
    """The dtype meant by a dtype, a Python number type, or anything NumPy calls a dtype."""
    if type(given) is dtype:
        return given
    if isinstance(given, type):
        if given in _BY_PYTHON:
            return _BY_PYTHON[given]
        if issubclass(given, np.generic) or given.__name__ == "bfloat16":
            return from_numpy(np.dtype(given))
    if isinstance(given, np.dtype):
        return from_numpy(given)
    raise TypeError(f"argument 'dtype' must be wengert.dtype, not {type(given).__name__}")


def category_of(array_dtype: np.dtype[Any]) -> builtins.int:
    """BOOL, INTEGRAL, FLOATING or COMPLEX; NumPy's own `kind` does not know bfloat16."""
    return from_numpy(array_dtype).category


def is_differentiable(array_dtype: np.dtype[Any]) -> builtins.bool:
    """Whether tensors of this type can require gradients."""
    return from_numpy(array_dtype).category >= FLOATING


# The default type.

_default: dtype = float32


def get_default_dtype() -> dtype:
    """The type given to Python floats and to tensors made without a dtype."""
    return _default


def get_default_complex_dtype() -> dtype:
    """The type given to Python complex numbers."""
    return _default.to_complex()


def set_default_dtype(d: dtype) -> None:
    """Set the default floating-point type; the default complex type follows it."""
    global _default
    if type(d) is not dtype or d.category != FLOATING:
        prefix = "" if type(d) is dtype else "invalid dtype object: "
        raise TypeError(prefix + "only floating-point types are supported as the default type")
    _default = d
    _RESULTS.clear()


# Promotion.


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that holds both; a higher category wins whatever its width."""
    if type1 is type2:
        return type1
    if type(type1) is not dtype or type(type2) is not dtype:
        wrong = type1 if type(type1) is not dtype else type2
        raise TypeError(
            f"promote_types(): arguments must be wengert.dtype, not {type(wrong).__name__}"
        )
    low, high = (type1, type2) if type1.category < type2.category else (type2, type1)
    if low.category < high.category:
        if high.category == INTEGRAL and high in UNSIGNED:
            raise _no_promotion(type1, type2)
        return complex128 if high is complex64 and low is float64 else high
    if low in UNSIGNED or high in UNSIGNED:
        raise _no_promotion(type1, type2)
    if low.itemsize == high.itemsize:
        # Neither holds the other: uint8 with int8, or the two 16-bit floats.
        return float32 if low.category == FLOATING else int16
    return low if low.itemsize > high.itemsize else high


def _no_promotion(type1: dtype, type2: dtype) -> RuntimeError:
    return RuntimeError(
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
        f"{type1.scalar_name} and {type2.scalar_name}"
    )


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether a result of type `from_` may be stored as `to`: categories never go down."""
    if type(from_) is not dtype or type(to) is not dtype:
        wrong = from_ if type(from_) is not dtype else to
        raise TypeError(f"can_cast(): arguments must be wengert.dtype, not {type(wrong).__name__}")
    return from_.category <= to.category


def result_type(*operands: Any) -> dtype:
    """The type of an operation on tensors and Python numbers, as promotion decides it."""
    return from_numpy(result_dtype([getattr(each, "array", each) for each in operands]))


_RESULTS: dict[tuple[Any, ...], np.dtype[Any]] = {}
_WEAK_TYPES = (builtins.bool, builtins.int, builtins.float, builtins.complex)


def result_dtype(operands: Sequence[Any]) -> np.dtype[Any]:
    """The array type of an operation on arrays and Python numbers.

    Arrays with dimensions outweigh 0-d arrays, which outweigh numbers; the lighter ones count
    only if their category is higher.
    """
    key: tuple[Any, ...]
    if len(operands) == 2:
        one, other = operands
        if type(one) is np.ndarray and type(other) is np.ndarray:
            if one.dtype is other.dtype:
                found: np.dtype[Any] = one.dtype
                return found
            key = (
                one.dtype if one.ndim else (one.dtype,),
                other.dtype if other.ndim else (other.dtype,),
            )
        else:
            key = (_weight(one), _weight(other))
    else:
        key = tuple([_weight(each) for each in operands])
    result = _RESULTS.get(key)
    if result is None:
        result = _RESULTS[key] = _promote_weights(key).numpy
    return result


def _weight(operand: Any) -> Any:
    """What of an operand matters: a Python type, a dtype, or a dtype in a tuple if 0-d."""
    kind = type(operand)
    if kind is not np.ndarray:
        if kind in _WEAK_TYPES:
            return kind
        if isinstance(operand, np.generic):
            return _WEAK_TYPES[category_of(operand.dtype)]
        for weak in _WEAK_TYPES:
            if isinstance(operand, weak):
                return weak
        if not hasattr(operand, "dtype"):
            raise TypeError(f"expected a Tensor or a number, not {kind.__name__}")
    return operand.dtype if operand.ndim else (operand.dtype,)


def _promote_weights(weights: Sequence[Any]) -> dtype:
    numbers: dtype | None = None
    points: dtype | None = None
    arrays: dtype | None = None
    for weight in weights:
        if isinstance(weight, type):
            numbers = _promote_known(numbers, _of_python_number(weight))
        elif isinstance(weight, tuple):
            points = _promote_known(points, from_numpy(weight[0]))
        else:
            arrays = _promote_known(arrays, from_numpy(weight))
    result = _outweigh(arrays, _outweigh(points, numbers))
    if result is None:
        raise ValueError("result_type(): at least one operand is needed")
    return result


def _promote_known(one: dtype | None, other: dtype) -> dtype:
    return other if one is None else promote_types(one, other)


def _outweigh(heavy: dtype | None, light: dtype | None) -> dtype | None:
    if heavy is None or light is None:
        return heavy or light
    if light.category <= heavy.category:
        return heavy
    if heavy.category == FLOATING:
        return heavy.to_complex()
    return light


def _of_python_number(kind: Any) -> dtype:
    if kind is builtins.float:
        return _default
    if kind is builtins.complex:
        return _default.to_complex()
    return _BY_PYTHON[kind]


# Limits.


class finfo:
    """Limits of a floating-point type; of its parts, for a complex type."""

    __module__ = "wengert"
    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        kind = _default if type is None else as_dtype(type)
        if kind.category < FLOATING:
            raise TypeError(
                "wengert.finfo() requires a floating point input type. "
                f"Use wengert.iinfo to handle '{kind}'"
            )
        real = kind.to_real()
        limits: Any
        if real is bfloat16:
            import ml_dtypes

            limits = ml_dtypes.finfo(real.numpy)  # type: ignore[no-untyped-call]
        else:
            limits = np.finfo(real.numpy)
        self.bits: builtins.int = real.itemsize * 8
        self.dtype: str = real.name
        self.eps = builtins.float(limits.eps)
        self.max = builtins.float(limits.max)
        self.min = builtins.float(limits.min)
        self.resolution = 10.0 ** -builtins.int(limits.precision)
        self.smallest_normal = builtins.float(limits.smallest_normal)
        self.tiny = self.smallest_normal

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({values}, dtype={self.dtype})"

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> builtins.int:
        return hash((finfo, self.dtype))


class iinfo:
    """Limits of an integer type."""

    __module__ = "wengert"
    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype) -> None:
        kind = as_dtype(type)
        if kind.category >= FLOATING:
            raise TypeError(
                "wengert.iinfo() requires an integer input type. "
                f"Use wengert.finfo to handle '{kind}'"
            )
        if kind is bool:
            raise TypeError("wengert.bool is not supported by wengert.iinfo")
        self.bits: builtins.int = kind.itemsize * 8
        self.dtype: str = kind.name
        self.max: builtins.int = 2 ** (self.bits - kind.is_signed) - 1
        self.min: builtins.int = -self.max - 1 if kind.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> builtins.int:
        return hash((iinfo, self.dtype))
