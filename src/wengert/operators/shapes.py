"""Shapes of results, for the `shape` of a declaration: functions of a kernel's arguments.

Several results have a list of shapes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends import meta

Shape = tuple[int, ...]


def check_size(shape: Shape, itemsize: int) -> None:
    """Refuse a shape whose bytes cannot be counted, which NumPy does not always notice."""
    if max((math.prod(shape) * itemsize, *shape)) >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


def as_first(x: Any, *rest: Any) -> Shape:
    """That of the first argument."""
    return x.shape


def pair_as_first(x: Any, *rest: Any) -> list[Shape]:
    """Two results, each in the shape of the first argument."""
    return [x.shape, x.shape]


def number(*args: Any) -> Shape:
    """No dimensions."""
    return ()


def broadcast(x: Any, y: Any, *rest: Any) -> Shape:
    """What the first two arguments broadcast to."""
    return np.broadcast_shapes(x.shape, y.shape)


def product(x: Any, y: Any, *rest: Any) -> Shape:
    """Matrices, or equally many of them, multiplied."""
    return (*x.shape[:-1], y.shape[-1])


def product_right(x: Any, y: Any) -> Shape:
    """Matrices multiplied, the second turned into its adjoint first."""
    return (*x.shape[:-1], y.shape[-2])


def product_left(x: Any, y: Any) -> Shape:
    """Matrices multiplied, the first turned into its adjoint first."""
    return (*x.shape[:-2], x.shape[-1], y.shape[-1])


def replaced(x: Any, dim: int, length: int) -> Shape:
    """The shape of `x` with another length of one dimension."""
    if not x.ndim:
        return ()
    dim %= x.ndim
    return (*x.shape[:dim], length, *x.shape[dim + 1 :])


def sized(x: Any, size: Shape, *rest: Any) -> Any:
    """For `meta`: a result in row-major order whose size is the second argument."""
    return meta.empty(tuple(size), x.dtype)
