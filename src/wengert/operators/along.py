"""What operators that work along dimensions share: reductions, scans, sorts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import dtypes
from ..core.errors import dimension_error
from ..core.tensor import Tensor
from ..dispatch.out import APART_PAIRS, copy_to_out
from ..dispatch.presentation import presented
from .pointwise import isnan, new_zeros, where

if TYPE_CHECKING:
    from ..return_types import NamedResult

# Dimensions --------------------------------------------------------------------------------------


def normal_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; a 0-d tensor takes 0 and -1, as if it had one dimension."""
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        raise dimension_error(dim, ndim)
    return dim % ndim if ndim else 0


def normal_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """`dim` (None, an int or several) as a tuple of non-negative dimensions; None means all."""
    if dim is None or (isinstance(dim, tuple) and not dim):
        return tuple(range(ndim))
    result: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        d = normal_dim(d, ndim)
        if d in result:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        result.append(d)
    return tuple(result) if ndim else ()


def restore_dims(g: Tensor, shape: tuple, dim: Any, keepdim: bool) -> Tensor:
    """A reduced tensor with the reduced dimensions back as ones."""
    if keepdim or not shape:
        return g
    dims = normal_dims(dim, len(shape))
    return g.reshape(tuple(1 if i in dims else n for i, n in enumerate(shape)))


def reduced_size(shape: tuple, dim: Any) -> int:
    """How many elements are reduced to one."""
    return math.prod(shape[d] for d in normal_dims(dim, len(shape)))


def reduced(x: Any, dim: Any, keepdim: bool = False, *rest: Any) -> tuple[int, ...]:
    """The shape of `x` after a reduction over `dim`."""
    dims = normal_dims(dim, x.ndim)
    if keepdim:
        return tuple([1 if i in dims else n for i, n in enumerate(x.shape)])
    return tuple([n for i, n in enumerate(x.shape) if i not in dims])


def reduced_pair(x: Any, dim: Any, keepdim: bool, *rest: Any) -> list[tuple[int, ...]]:
    """The shapes of two results that are both reduced over `dim`."""
    return [reduced(x, dim, keepdim)] * 2


# Types -------------------------------------------------------------------------------------------


def is_half(dtype: Any) -> bool:
    """Whether arrays of this type are 16-bit floats, which compute in float32."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def working_dtype(dtype: Any) -> Any:
    """The type in which results of type `dtype` are computed."""
    return dtypes.float32.numpy if is_half(dtype) else dtype


def widened(x: Any) -> Any:
    """The array in the type it computes in."""
    return x.astype(dtypes.float32.numpy) if is_half(x.dtype) else x


def mean_kept(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """The mean along dimensions that stay; that of nothing is zero, and nothing warns of it."""
    total = xp.sum(x, axis=dims, keepdims=True)
    total /= max(reduced_size(x.shape, dims), 1)
    return total


def in_dtype(x: Any, dtype: Any) -> Any:
    """The array in another type; the imaginary part is dropped where that type is a real number."""
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return x.astype(dtype, copy=False)


def scalar_name(dtype: Any) -> str:
    """The word that error messages use for an array's type."""
    return dtypes.from_numpy(dtype).scalar_name


def sum_dtype(x: Any, dtype: Any) -> Any:
    """The result type of sums and products: integers are added up as int64."""
    if dtype is not None:
        return dtype.numpy
    return dtypes.int64.numpy if x.dtype.kind in "biu" else x.dtype


# Memory order ------------------------------------------------------------------------------------


def packed(x: Any) -> Any:
    """The array in row-major order, as PyTorch's results along dimensions are."""
    return x if x.flags.c_contiguous else x.copy("C")


# Refusals ----------------------------------------------------------------------------------------


def check_ordered(name: str, x: Any) -> None:
    if x.dtype.kind == "c":
        raise NotImplementedError(f'"{name}" not implemented for \'{scalar_name(x.dtype)}\'')


def check_not_empty(name: str, x: Any, dims: tuple[int, ...]) -> None:
    """Refuse to reduce over nothing where the operation has no identity."""
    for d in dims:
        if x.ndim and x.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


# Gradients of selected elements ------------------------------------------------------------------


def shared_evenly(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """The gradient of a value taken from all of `x`, in equal parts to the elements with it."""
    chosen = (x == out) | (isnan(x) & isnan(out))
    return where(chosen, g / chosen.sum(), 0)


def shared_tangent(t: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """The mean tangent of the elements of `x` that have the value `out`."""
    chosen = (x == out) | (isnan(x) & isnan(out))
    return where(chosen, t, 0).sum() / chosen.sum()


def put_along(g: Tensor, shape: tuple, dim: int, index: Tensor, keepdim: bool) -> Tensor:
    """Zeros of `shape` with `g` at the indices it was taken from along `dim`, each one once."""
    if shape and not keepdim:
        g, index = g.unsqueeze(dim), index.unsqueeze(dim)
    return new_zeros.call((g, shape)).scatter(dim, index, g)


def take_along(t: Tensor, dim: int, index: Tensor, keepdim: bool) -> Tensor:
    """The elements at the given indices along `dim`, as a reduction of that dimension."""
    if not t.array.ndim or keepdim:
        return t.gather(dim, index)
    return t.gather(dim, index.unsqueeze(dim)).squeeze(dim)


# Functions made of operators ---------------------------------------------------------------------


def returning(kind: type[NamedResult], operator: Any) -> Callable[..., Any]:
    """`operator` as a function whose results come as `kind`, with ``out=`` for all of them."""

    def function(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result, name = kind(operator(*args, **kwargs)), kind.__name__
        if out is None:
            return result
        operands = (*args, *kwargs.values()) if name in APART_PAIRS else ()
        return copy_to_out(name, result, out, operands, True, True)

    return presented(function, kind.__name__, operator.kernel.__module__, operator)
