"""Where the storages of a file go: what `map_location` means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.devices import as_device, device
from .storage import Storage

Restore = Callable[[Storage, str], Storage]


def restore_default(storage: Storage, location: str) -> Storage:
    """The storage on the device that it was saved from, or that a program names."""
    if location == "cpu":
        return storage
    kind = location.partition(":")[0]
    try:
        return storage.to(as_device(location))
    except Exception as error:
        if kind == "cuda":
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device, and there is none here "
                f"({error}). If you are running on a CPU-only machine, please use load with "
                "map_location='cpu' to map your storages to the CPU"
            ) from error
        raise RuntimeError(
            f"don't know how to restore data location of Storage (tagged with {location})"
        ) from error


def restore_function(map_location: Any) -> Restore:
    """The function that `map_location` stands for."""
    if map_location is None:
        return restore_default
    if isinstance(map_location, dict):
        return lambda storage, location: restore_default(
            storage, str(map_location.get(location, location))
        )
    if isinstance(map_location, str):
        return lambda storage, location: restore_default(storage, map_location)
    if isinstance(map_location, device):
        return lambda storage, location: restore_default(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(
            "load(): argument 'map_location' must be a device, a str, a dict or a function, not "
            f"{type(map_location).__name__}"
        )

    def restore(storage: Storage, location: str) -> Storage:
        placed = map_location(storage, location)
        if placed is None:
            return restore_default(storage, location)
        if not isinstance(placed, Storage):
            raise TypeError(
                "load(): the function map_location must return a storage or None, not "
                f"{type(placed).__name__}"
            )
        if len(placed) != len(storage) or placed.dtype is not storage.dtype:
            raise ValueError("load(): the function map_location returned another storage")
        return placed

    return restore


def is_meta(map_location: Any) -> bool:
    """Whether nothing of the memory in the file is needed."""
    if isinstance(map_location, (str, device)):
        return str(map_location).partition(":")[0] == "meta"
    return False
