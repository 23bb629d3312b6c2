"""Asserting that tensors, numbers and collections of them are close."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core import dtypes
from ..core.tensor import Tensor
from ..creation.conversion import as_tensor

_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
_NUMBERS = (bool, int, float, complex)


class Tolerance(NamedTuple):
    """How far values may be apart, and what else has to agree."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool
    allow_subclasses: bool

    def of(self, *kinds: dtypes.dtype) -> tuple[float, float]:
        """The relative and absolute tolerance for values of these types."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(each[0] for each in found), max(each[1] for each in found)


class Mismatch(Exception):
    """Two values differ: why, and where among the items of collections."""

    def __init__(self, kind: type[Exception], text: str, place: tuple = ()) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.place = place

    def within(self, key: Any) -> Mismatch:
        """The mismatch, seen from a collection that holds the item."""
        return Mismatch(self.kind, self.text, (key, *self.place))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that ``|actual - expected| <= atol + rtol * |expected|`` for all elements.

    Tolerances depend on the types unless both are given. Sequences and mappings are compared item
    by item.
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        given = "rtol" if atol is None else "atol"
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or unspecified, but got only "
            f"{given!r}"
        )
    tolerance = Tolerance(
        rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride,
        allow_subclasses,
    )  # fmt: skip
    try:
        _compare(actual, expected, tolerance)
    except Mismatch as mismatch:
        text = mismatch.text
        if mismatch.place:
            items = "".join(f"[{key!r}]" for key in mismatch.place)
            text = f"{text}\n\nThe failure occurred for item {items}"
        if mismatch.kind is AssertionError and msg is not None:
            text = msg(text) if callable(msg) else msg
        raise mismatch.kind(text) from None


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older form of `assert_close`, which compares values alone and warns."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    assert_close(
        as_tensor(actual), as_tensor(expected), rtol=rtol, atol=atol, equal_nan=equal_nan,
        check_device=True, check_dtype=False, check_stride=False, msg=msg or None,
    )  # fmt: skip


def _compare(actual: Any, expected: Any, tolerance: Tolerance) -> None:
    if _is_collection(actual) and _is_collection(expected):
        _compare_sequences(actual, expected, tolerance)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _compare_mappings(actual, expected, tolerance)
    elif actual is None or expected is None:
        if actual is not expected:
            raise Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")
    elif isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
        if tolerance.check_dtype and type(actual) is not type(expected):
            raise Mismatch(
                AssertionError,
                "The (d)types do not match: "
                f"{type(actual)} != {type(expected)}.",
            )
        _compare_numbers(actual, expected, tolerance)
    else:
        _compare_tensors(*_tensors(actual, expected, tolerance), tolerance)


def _is_collection(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare_sequences(actual: Sequence, expected: Sequence, tolerance: Tolerance) -> None:
    if len(actual) != len(expected):
        raise Mismatch(
            AssertionError,
            f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
        )
    for index, pair in enumerate(zip(actual, expected, strict=True)):
        _compare_item(index, *pair, tolerance)


def _compare_mappings(actual: Mapping, expected: Mapping, tolerance: Tolerance) -> None:
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        raise Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing, key=repr)}\n"
            f"Additional keys in the actual mapping: {sorted(additional, key=repr)}",
        )
    for key in expected:
        _compare_item(key, actual[key], expected[key], tolerance)


def _compare_item(key: Any, actual: Any, expected: Any, tolerance: Tolerance) -> None:
    try:
        _compare(actual, expected, tolerance)
    except Mismatch as mismatch:
        raise mismatch.within(key) from None


def _compare_numbers(actual: complex, expected: complex, tolerance: Tolerance) -> None:
    kinds = {bool: dtypes.bool, int: dtypes.int64, float: dtypes.float64}
    rtol, atol = tolerance.of(
        *[kinds.get(type(each), dtypes.complex128) for each in (actual, expected)]
    )
    if actual == expected or tolerance.equal_nan and actual != actual and expected != expected:
        return
    difference = abs(actual - expected)
    if difference <= atol + rtol * abs(expected) and difference < float("inf"):
        return
    relative = difference / abs(expected) if expected else float("inf")
    if rtol == atol == 0:
        raise Mismatch(
            AssertionError,
            f"Scalars are not equal!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {difference}\nRelative difference: {relative}",
        )
    raise Mismatch(
        AssertionError,
        f"Scalars are not close!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference} (up to {atol} allowed)\n"
        f"Relative difference: {relative} (up to {rtol} allowed)",
    )


def _tensors(actual: Any, expected: Any, tolerance: Tolerance) -> tuple[Tensor, Tensor]:
    """Both values as tensors; numbers and arrays become such."""
    if isinstance(actual, Tensor) != isinstance(expected, Tensor) and not (
        hasattr(actual, "__array__") and hasattr(expected, "__array__")
    ):
        numbers = isinstance(actual, _NUMBERS) or isinstance(expected, _NUMBERS)
        raise Mismatch(
            TypeError if not numbers else AssertionError,
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}."
            if not numbers
            else f"Tensors and numbers do not match: {type(actual)} != {type(expected)}.",
        )
    same = type(actual) is type(expected) or tolerance.allow_subclasses
    if not same:
        raise Mismatch(
            TypeError,
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}.",
        )
    try:
        return as_tensor(actual).detach(), as_tensor(expected).detach()
    except (TypeError, ValueError, RuntimeError):
        raise Mismatch(
            TypeError,
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}.",
        ) from None


def _compare_tensors(actual: Tensor, expected: Tensor, tolerance: Tolerance) -> None:
    _check_attribute("shape", actual.shape, expected.shape)
    if tolerance.check_device:
        _check_attribute("device", actual.device, expected.device)
    if tolerance.check_layout:
        _check_attribute("layout", actual.layout, expected.layout)
    if tolerance.check_dtype:
        _check_attribute("dtype", actual.dtype, expected.dtype)
    if tolerance.check_stride:
        _check_attribute("stride()", actual.stride(), expected.stride())
    rtol, atol = tolerance.of(actual.dtype, expected.dtype)
    common = dtypes.promote_types(actual.dtype, expected.dtype)
    if common.itemsize < 8 and common.category >= dtypes.FLOATING:
        common = dtypes.complex128 if common.is_complex else dtypes.float64
    actual, expected = actual.to(common), expected.to(common)
    near = actual.isclose(expected, rtol, atol, equal_nan=tolerance.equal_nan)
    if not near.all():
        _raise_difference(actual, expected, ~near, rtol, atol)


def _check_attribute(name: str, actual: Any, expected: Any) -> None:
    if actual != expected:
        raise Mismatch(
            AssertionError,
            f"The values for attribute {name!r} do not match: {actual} != {expected}.",
        )


def _raise_difference(
    actual: Tensor, expected: Tensor, differs: Tensor, rtol: float, atol: float
) -> None:
    """Say how many elements differ, and which one the most."""
    if actual.dtype.category < dtypes.FLOATING:
        actual, expected = actual.double(), expected.double()
    count, total = int(differs.sum()), actual.numel()
    absolute = (actual - expected).abs()
    # Elements that agree do not count, whatever the quotient of zeros would be.
    absolute = absolute.masked_fill(~differs, 0.0)
    relative = (absolute / expected.abs()).masked_fill(~differs, 0.0)
    equal = rtol == atol == 0
    lines = [f"Tensor-likes are not {'equal' if equal else 'close'}!", ""]
    if total > 1:
        lines.append(f"Mismatched elements: {count} / {total} ({count / total:.1%})")
    for name, size, allowed in (
        ("absolute", absolute, atol),
        ("relative", relative, rtol),
    ):
        flat = size.reshape(-1)
        index = int(flat.argmax())
        text = f"Greatest {name} difference: {flat[index].item()}"
        if total > 1:
            place: list[int] = []
            for extent in reversed(actual.shape):
                index, last = divmod(index, extent)
                place.insert(0, last)
            text += f" at index {tuple(place)}"
        lines.append(text if equal else f"{text} (up to {allowed} allowed)")
    if total == 1 and not actual.shape:
        lines[0] = lines[0].replace("Tensor-likes", "Scalars")
        lines.insert(2, f"Expected {expected.item()} but got {actual.item()}.")
    raise Mismatch(AssertionError, "\n".join(lines))
