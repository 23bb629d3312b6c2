"""The classes and functions that a program allows files to name."""

from __future__ import annotations

from typing import Any

from .names import full_name

_allowed: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow files that are loaded with ``weights_only=True`` to make and call these.

    Each is a class, a function, or a pair of one and the name by which files know it.
    """
    for each in safe_globals:
        name_and_value(each)
    _allowed.extend(each for each in safe_globals if each not in _allowed)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has allowed."""
    return list(_allowed)


def clear_safe_globals() -> None:
    """Allow nothing but what is always allowed."""
    _allowed.clear()


class safe_globals:
    """Allows classes and functions in a ``with`` block, as `add_safe_globals` does."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals
        self._before: list[list[Any]] = []

    def __enter__(self) -> None:
        self._before.append(get_safe_globals())
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception: object) -> None:
        _allowed[:] = self._before.pop()


def name_and_value(entry: Any) -> tuple[str, Any]:
    """The name by which files know what is allowed, and what it is."""
    if isinstance(entry, tuple):
        if len(entry) != 2 or not callable(entry[0]) or not isinstance(entry[1], str):
            raise ValueError(
                "expected a tuple of a class or function and its full name as a string"
            )
        module, _, name = entry[1].rpartition(".")
        return full_name(module, name), entry[0]
    if not callable(entry) or not hasattr(entry, "__qualname__"):
        raise TypeError(f"expected classes and functions, got {type(entry).__name__}")
    return full_name(entry.__module__, entry.__qualname__), entry


def allowed_by_name() -> dict[str, Any]:
    """What the program has allowed, by the names in files."""
    return dict(map(name_and_value, _allowed))
