"""Refusing to write where elements share memory, with each other or with another operand.

The rules are PyTorch's: what cannot be told from sizes and strides at once is let through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.backend import backend_of, has_elements, is_array

_ndarray = np.ndarray


def check_not_overlapping(name: str, array: Any) -> None:
    """Refuse to write to an expanded tensor: its elements share memory."""
    if is_expanded(array):
        raise RuntimeError(
            f"{name}(): unsupported operation: more than one element of the written-to tensor "
            "refers to a single memory location, as in an expanded tensor. Please clone() it "
            "first"
        )


def is_expanded(array: Any) -> bool:
    """Whether elements along some dimension are one and the same."""
    strides = array.strides
    if 0 not in strides or not array.size:
        return False
    return any(s == 0 and n > 1 for s, n in zip(strides, array.shape))


def may_overlap(array: Any) -> bool:
    """Whether two elements may be one in memory: some dimension steps into the reach of others."""
    if not array.size:
        return False
    reach = array.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1):
        if stride < reach:
            return True
        reach += stride * (length - 1)
    return False


def check_sources(name: str, target: Any, sources: tuple | list, apart: bool = False) -> None:
    """Refuse to write to `target` while reading another part of the same memory.

    Reading the very elements that are written is fine, unless the two must be `apart`.
    """
    if type(target) is not _ndarray and not has_elements(target):
        return  # it only seems to be somewhere in memory
    owns = target.base is None
    for source in sources:
        kind = type(source)
        if kind is float or kind is int:
            continue
        if kind is _ndarray or is_array(source):
            if source is target:
                shared = apart
            elif owns and source.base is None:
                continue
            else:
                shared = _share(target, source, apart)
            if shared:
                raise RuntimeError(
                    f"{name}(): unsupported operation: some elements of the input tensor and the "
                    "written-to tensor refer to a single memory location. Please clone() the "
                    "tensor before performing the operation"
                )
        elif kind is list:
            check_sources(name, target, source, apart)


def _share(target: Any, source: Any, apart: bool) -> bool:
    """Whether two dense arrays have memory in common but are not the same elements."""
    backend = backend_of(target)
    if type(source) is not type(target) or not backend.may_share_memory(target, source):
        return False
    if not (is_dense(target) and is_dense(source)):
        return False
    return apart or not (
        _same_steps(target, source)
        and target.nbytes == source.nbytes
        and backend.address(target) == backend.address(source)
    )


def _same_steps(one: Any, other: Any) -> bool:
    """Whether strides are the same, but for those of single rows, which mean nothing."""
    return one.strides == other.strides or (
        one.shape == other.shape
        and all(a == b or n == 1 for a, b, n in zip(one.strides, other.strides, one.shape))
    )


def same_array(one: Any, other: Any) -> bool:
    """Whether two arrays are the very same elements in the same places."""
    return (
        type(one) is type(other)
        and (type(one) is _ndarray or has_elements(one))
        and one.dtype == other.dtype
        and one.shape == other.shape
        and one.strides == other.strides
        and backend_of(one).may_share_memory(one, other)
        and backend_of(one).address(one) == backend_of(one).address(other)
    )


def is_dense(array: Any) -> bool:
    """Whether the elements fill a piece of memory without gaps, each in a place of its own."""
    if array.flags.forc:
        return True
    step = array.itemsize
    for stride, length in sorted(zip(array.strides, array.shape)):
        if length > 1:
            if stride != step:
                return False
            step *= length
    return True
