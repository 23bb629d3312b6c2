"""What matrix products are made of: their kernels with the checks, sizes and adjoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.matrices import matrices
from ..backends.numpy import quiet
from ..core import dtypes
from ..core.errors import shape_text
from ..core.tensor import Tensor
from .views import transpose

# dot has less to set up, but it clears its result before it fills it.
_DOT_LIMIT = 4096
_C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half"}


def total_size(lengths: Sequence[int]) -> int:
    """The number of elements of a shape."""
    total = 1
    for length in lengths:
        total *= length
    return total


def adjoint_view(x: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    turned = transpose.call((x, 0, 1))
    return turned if x.array.dtype.kind != "c" else turned.conj()


def multiply(xp: Any, a: Any, b: Any) -> Any:
    """xp.matmul without warnings, in which 16-bit floats are summed as float32."""
    kind = a.dtype
    if kind.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    token = quiet.set(quiet.ignore)
    try:
        if kind.itemsize == 2 and kind.kind not in "iu":
            return xp.matmul(a.astype(xp.float32), b.astype(xp.float32)).astype(kind)
        if a.ndim == 2 and b.ndim == 2 and a.shape[0] * b.shape[1] <= _DOT_LIMIT:
            return xp.dot(a, b)
        return xp.matmul(a, b)
    finally:
        quiet.reset(token)


def adjoint(a: Any) -> Any:
    """The conjugate transpose of the last two dimensions of an array."""
    return a.swapaxes(-1, -2) if a.dtype.kind != "c" else a.swapaxes(-1, -2).conj()


def scalar_name(array: Any) -> str:
    """The name of an array's type in error messages."""
    return dtypes.from_numpy(array.dtype).scalar_name


def _c_name(array: Any) -> str:
    name = dtypes.from_numpy(array.dtype).name
    return _C_NAMES.get(name, name)


def mm_right(xp: Any, a: Any, b: Any) -> Any:
    """Product of a matrix with the adjoint of another."""
    out = matrices.product(a, b, False, True)
    return mm(xp, a, adjoint(b)) if out is None else out


def mm_left(xp: Any, a: Any, b: Any) -> Any:
    """Product of the adjoint of a matrix with another."""
    out = matrices.product(a, b, True, False)
    return mm(xp, adjoint(a), b) if out is None else out


def mm(xp: Any, a: Any, b: Any) -> Any:
    """Product of two matrices."""
    out = matrices.product(a, b, False, False)
    if out is not None:
        return out
    for name, matrix in (("self", a), ("mat2", b)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{_c_name(a)} != {_c_name(b)}"
        )
    return multiply(xp, a, b)


def bmm(xp: Any, a: Any, b: Any) -> Any:
    """Products of the matrices of two batches."""
    for name, batch in (("batch1", a), ("batch2", b)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"{shape_text((a.shape[0], a.shape[2]))} but got: {shape_text(b.shape[:2])}."
        )
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(a)} but found {scalar_name(b)}")
    return multiply(xp, a, b)


def check_matrix_vector(rows: int, a: Any, v: Any, ndim: int = 1) -> None:
    """Refuse what is no matrix and no vector, or does not fit a result of `rows` elements."""
    if a.ndim != 2 or v.ndim != 1 or ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {ndim}, {a.ndim}, {v.ndim}")
    if a.shape[1] != v.shape[0] or rows not in (1, a.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({a.shape[0] if rows == 1 else rows}), mat "
            f"({a.shape[0]}x{a.shape[1]}), vec ({v.shape[0]})"
        )


def mv(xp: Any, a: Any, v: Any) -> Any:
    """Product of a matrix with a vector."""
    check_matrix_vector(1, a, v)
    if a.dtype != v.dtype:
        raise RuntimeError(
            f"mv input tensors must have the same dtype, but got {scalar_name(a)} and "
            f"{scalar_name(v)}"
        )
    return multiply(xp, a, v)


def check_vectors(name: str, a: Any, b: Any) -> None:
    """Refuse anything but two vectors of the same type and length."""
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found {scalar_name(a)} and "
            f"{scalar_name(b)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {shape_text(a.shape)} and src "
            f"{shape_text(b.shape)} to have the same number of elements, but got {a.size} and "
            f"{b.size} elements respectively"
        )
