"""On which device an array lives, and how it gets to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.devices import CPU, META, device

_CUDA: dict[int, device] = {}


def of_array(array: Any) -> device:
    """The device on which an array lives."""
    if type(array) is np.ndarray:
        return CPU
    from .meta import MetaArray

    if isinstance(array, MetaArray):
        return META
    if isinstance(array, np.ndarray):
        inside: Any = array  # of a tensor inside a transform, perhaps
        if getattr(inside, "level", None) is None or inside.level.traces:
            return getattr(inside, "place", CPU)
        return of_array(inside.value.array)
    index = array.device.id
    found = _CUDA.get(index)
    if found is None:
        found = _CUDA[index] = device("cuda", index)
    return found


def require_cupy() -> Any:
    """The cupy module, which will hold the arrays of cuda devices."""
    try:
        import cupy  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise RuntimeError(
            "Wengert is not compiled with CUDA enabled: it computes on the CPU, and support for "
            "cuda devices is planned. Programs that run anywhere choose the device by "
            "wengert.cuda.is_available(), which is False"
        ) from None
    return cupy


def transfer(array: Any, target: device) -> Any:
    """The same values on `target`; the array itself if it is already there."""
    source = of_array(array)
    if target.type == source.type == "cuda":
        if target.index is None or target.index == source.index:
            return array
    elif target.type == source.type:
        return array
    if target.type == "meta":
        from . import meta

        return meta.like(array)
    if source.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    cupy = require_cupy()
    if target.type == "cpu":
        return cupy.asnumpy(array)
    with cupy.cuda.Device(target.index):
        return cupy.asarray(array)
