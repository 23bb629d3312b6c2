"""Devices: where an array lives, and the default place for new tensors."""

from __future__ import annotations

from _thread import _local
from typing import Any

from .scopes import PlaceScope

_TYPES = ["cpu", "cuda", "meta"]


def register_device_type(name: str) -> None:
    """Let devices have a type of this name."""
    if name not in _TYPES:
        _TYPES.append(name)


class device(PlaceScope):
    """A place for tensors: a type and, where several exist, an index.

    As a context manager it is the default device of the creation functions in its body.
    """

    __module__ = "wengert"
    __slots__ = ("type", "index")

    type: str
    index: int | None

    def __init__(self, type: str | device | int, index: int | None = None) -> None:
        if isinstance(type, device):
            if index is not None:
                raise TypeError("device(): a device takes no further index")
            name, parsed = type.type, type.index
        elif isinstance(type, str):
            name, parsed = _parse(type)
        elif isinstance(type, int) and not isinstance(type, bool):
            name, parsed = "cuda", type
        else:
            raise TypeError(
                "device() received an invalid combination of arguments: expected a device, "
                f"a str or an int, got {type.__class__.__name__}"
            )
        if index is not None:
            if parsed is not None:
                raise RuntimeError(
                    "type (string) must not include an index because index was passed "
                    f"explicitly: {type}"
                )
            parsed = index
        if parsed is not None and parsed < 0:
            raise RuntimeError("Device index must not be negative")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", parsed)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attribute {name!r} of 'wengert.device' objects is not writable")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type={self.type!r})"
        return f"device(type={self.type!r}, index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self.type, self.index))


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    name, colon, digits = text.partition(":")
    if name not in _TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(_TYPES)} device type at start of device string: {text}"
        )
    if not colon:
        return name, None
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{text}'")
    return name, int(digits)


CPU = device("cpu")
META = device("meta")


class _Defaults(_local):
    """One thread's default device, and those of the contexts around the current one."""

    def __init__(self) -> None:
        self.current: device = CPU
        self.outer: list[device] = []


_defaults = PlaceScope.places = _Defaults()


def get_default_device() -> device:
    """The device of tensors made in this thread without a device argument."""
    return _defaults.current


def set_default_device(device: device | str | int | None) -> None:
    """Set the device of tensors made without a device argument; None means the CPU."""
    _defaults.current = CPU if device is None else as_device(device)


def as_device(given: Any) -> device:
    """The device meant by a device, a string or an index; None means the default device."""
    if type(given) is device:
        return given
    if given is None:
        return _defaults.current
    if not isinstance(given, (str, int)) or isinstance(given, bool):
        raise TypeError(f"argument 'device' must be wengert.device, not {type(given).__name__}")
    return CPU if given == "cpu" else device(given)

