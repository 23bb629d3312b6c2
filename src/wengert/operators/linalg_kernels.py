"""What the kernels of linear algebra share: checks, memory order, matrices that fail.

NumPy's gufuncs compute whole batches. Where one of them refuses a batch because of a single matrix,
LAPACK is asked matrix by matrix through SciPy, which says which one it is and why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends import meta
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..dispatch.out import copy_to_out
from ..transforms.batching.moving import batch_size, padded, rank_of, reshaped, with_batch
from .along import is_half, scalar_name

INFO = np.dtype(np.int32)


class LinAlgError(RuntimeError):
    """Raised where a matrix has no inverse, no factor or no solution, or nothing converges."""


# Checks -------------------------------------------------------------------------------------------


def check_matrices(name: str, x: Any, argument: str = "A") -> None:
    """Refuse what is no batch of matrices of floating-point or complex numbers."""
    check_floating(name, x)
    if x.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions."
        )


def check_floating(name: str, x: Any) -> None:
    """Refuse types that LAPACK has no routines for."""
    if is_half(x.dtype):
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {scalar_name(x.dtype)}"
        )
    if x.dtype.kind in "biu":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            + scalar_name(x.dtype)
        )


def check_square(name: str, x: Any, argument: str = "A") -> None:
    """Refuse what is no batch of square matrices."""
    check_matrices(name, x, argument)
    check_shape_square(name, x.shape, argument)


def check_shape_square(name: str, shape: tuple, argument: str = "A") -> None:
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {shape[-2]} by "
            f"{shape[-1]} matrices"
        )


def check_same_type(name: str, a: Any, b: Any) -> None:
    """Refuse two operands of different types."""
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{scalar_name(a.dtype)} and B of type {scalar_name(b.dtype)} instead"
        )


def check_equation(name: str, a: Any, b: Any, left: bool) -> None:
    """Refuse matrices that do not fit into one equation."""
    check_square(name, a)
    check_same_type(name, a, b)
    if b.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if a.shape[-1] != b.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({a.shape[-2]}x{a.shape[-1]} and "
            f"{b.shape[-2]}x{b.shape[-1]})"
        )


# Memory order -------------------------------------------------------------------------------------


def columns(x: Any) -> Any:
    """The matrices in column-major order, in which LAPACK and PyTorch give them."""
    turned = x.swapaxes(-1, -2)
    return (turned if turned.flags.c_contiguous else turned.copy("C")).swapaxes(-1, -2)


def meta_columns(shape: tuple[int, ...], dtype: Any) -> Any:
    """A shape-only array of matrices in column-major order."""
    return meta.empty((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def real_dtype(dtype: Any) -> Any:
    """The type of the absolute values of numbers of a type."""
    return np.empty(0, dtype).real.dtype


def complex_dtype(dtype: Any) -> Any:
    """The complex type with the precision of a type."""
    return np.result_type(dtype, np.complex64)


# Failures -----------------------------------------------------------------------------------------


def raise_first(name: str, info: Any, text: Callable[[int], str]) -> None:
    """Raise for the first matrix whose `info` is not zero, if there is one."""
    failed = np.flatnonzero(info)
    if failed.size:
        raise failure(name, info.ndim > 0, int(failed[0]), text(int(info.reshape(-1)[failed[0]])))


def failure(name: str, in_batch: bool, index: int, text: str) -> LinAlgError:
    """The error of one matrix, with its place if it is in a batch."""
    place = f"(Batch element {index}): " if in_batch else ""
    return LinAlgError(f"{name}: {place}{text}")


def each_matrix(function: Callable, x: Any) -> list:
    """What `function` makes of every matrix."""
    return [function(matrix) for matrix in x.reshape(-1, *x.shape[-2:])]


def first_failing(xp: Any, function: Callable, x: Any) -> int:
    """The number of the first matrix that `function` refuses."""
    for index, matrix in enumerate(x.reshape(-1, *x.shape[-2:])):
        try:
            function(matrix)
        except xp.linalg.LinAlgError:
            return index
    return 0


def zero_pivots(x: Any) -> Any:
    """For every matrix the first pivot that is zero, counted from one; zero if none is."""
    from scipy.linalg import lapack

    (getrf,) = lapack.get_lapack_funcs(("getrf",), (x,))
    found = each_matrix(lambda matrix: getrf(matrix)[2], x)
    return np.array(found, INFO).reshape(x.shape[:-2])


# Batches ------------------------------------------------------------------------------------------


def equations(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """The batch rule of two operands whose leading dimensions broadcast.

    Results after the first one belong to the first operand.
    """
    size = batch_size(args[:2], dims[:2])
    own = rank_of(args[0], dims[0])
    rank = max(own, rank_of(args[1], dims[1]))
    a = padded(with_batch(args[0], dims[0], size), 0, rank)
    b = padded(with_batch(args[1], dims[1], size), 0, rank)
    out = operator.call((a, b, *args[2:]))
    if isinstance(out, Tensor) or own == rank:
        return out, 0
    rest = [reshaped(x, (size, *x.array.shape[1 + rank - own :])) for x in out[1:]]
    return (out[0], *rest), 0


def is_recorded(x: Tensor) -> bool:
    """Whether something may ask for derivatives of what is computed from `x` now."""
    state = thread_state()
    return bool(
        state.layers or state.dual_level >= 0 or (state.grad_enabled and x.requires())
    )


def by_columns(result: Tensor) -> Tensor:
    """The result of a composition, copied into the order of columns that LAPACK has."""
    return result.mT.contiguous().mT.clone()


def into(name: str, result: Any, out: Any, exact: bool = True) -> Any:
    """The result, or `out` with the result written into it: of its own type, if `exact`."""
    return result if out is None else copy_to_out(name, result, out, (), exact, True)


