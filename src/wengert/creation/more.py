"""Makers that few programs use: memory of other objects, strided orders, ranges with their end."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..backends.casting import retype
from ..backends.geometry import strided
from ..core import dtypes
from ..core.size import sequence_size
from ..core.tensor import Tensor, wrap
from ..dispatch.overridable import Overridable
from ..tape.leaves import require_grad
from .arguments import number
from .declare import OPTIONS, Blank, maker
from .factories import empty
from .ranges import refuse


def frombuffer(
    buffer: Any,
    *,
    dtype: dtypes.dtype,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A vector that looks at the memory of an object, such as a bytearray.

    It has `count` elements, or as many as there are, from the byte `offset` on.
    """
    kind = dtypes.as_dtype(dtype)
    size, item = memoryview(buffer).nbytes, kind.itemsize
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({size} bytes) minus 1"
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({item})"
        )
    if count > 0 and offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({size} bytes)"
        )
    array = np.frombuffer(buffer, kind.numpy, count if count > 0 else -1, offset)
    if not array.flags.writeable:
        warnings.warn(
            "The given buffer is not writable, and tensors are: writing to this one raises. Copy "
            "the buffer to make it writable, for example bytearray(buffer)",
            UserWarning,
            stacklevel=2,
        )
    made = wrap(array)
    return require_grad(made, True) if requires_grad else made


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A vector of `size` elements that looks at a file; changes are written to it if `shared`.

    A shared file that is too short is made longer.
    """
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    count = size or 0
    if shared:
        with open(filename, "ab") as file:
            missing = count * kind.itemsize - file.tell()
            file.write(bytes(max(missing, 0)))
    mode: Any = "r+" if shared else "c"
    array = np.memmap(filename, kind.numpy, mode, shape=(count,)) if count else np.empty(0)
    made = wrap(np.array(array, copy=False)).to(device if device is not None else "cpu")
    return require_grad(made, True) if requires_grad else made


@maker(f"empty_permuted(SymInt[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor",
       without=("out",))  # fmt: skip
def _empty_permuted(blank: Blank, size: Any, physical_layout: Any) -> Any:
    """An uninitialised tensor whose dimensions lie in memory in the given order."""
    shape = sequence_size("empty_permuted", size)
    order = list(physical_layout)
    if len(order) != len(shape):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    if len(set(order)) < len(order):
        raise RuntimeError(f"Duplicate dim not allowed: physical_layout is {order}")
    for dim in order:
        if not 0 <= dim < len(shape):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and "
                               f"{len(shape) - 1}, but got {dim})")  # fmt: skip
    steps, step = [0] * len(shape), blank.dtype().itemsize
    for dim in reversed(order):
        steps[dim] = step
        step *= max(shape[dim], 1)
    flat = empty(step // blank.dtype().itemsize if 0 not in shape else 0, dtype=blank.dtype(),
                 device=blank.asked_device)  # fmt: skip
    return strided(flat.array, tuple(shape), tuple(steps))


@maker(
    f"range(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor",
    f"range.step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor",
)
def _range(blank: Blank, start: Any = 0, end: Any = None, step: Any = 1) -> Any:
    """The numbers from `start` up to and with `end`, `step` apart; `arange` leaves out the end."""
    first, last, apart = (
        number("range", name, value)
        for name, value in (("start", start), ("end", end), ("step", step))
    )
    kind = blank.dtype()
    refuse("range", kind, dtypes.BOOL, dtypes.COMPLEX)
    if not (apart > 0 or apart < 0):
        raise RuntimeError("step must be nonzero")
    if (apart > 0 and last < first) or (apart < 0 and last > first):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((last - first) / apart) + 1
    return blank.moved(retype(first + apart * np.arange(count, dtype=np.float64), kind))


empty_permuted = Overridable(_empty_permuted, name="empty_permuted")
range = Overridable(_range, name="range")
