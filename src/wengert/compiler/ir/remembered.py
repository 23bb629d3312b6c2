"""What was computed once and may be asked for again, up to a number of items."""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Results by what they were computed from; the oldest is forgotten where there are too many.

    Programs may compile without end, each time with other numbers: what is remembered of each for
    the sake of others must not add up.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: dict[Any, T] = {}
        self._lock = threading.Lock()
        #: The item under a key, or None.
        self.get = self._items.get

    def __setitem__(self, key: Any, item: T) -> None:
        items = self._items
        with self._lock:
            if len(items) >= self._most and key not in items:
                self.forget_oldest()
            items[key] = item

    def forget_oldest(self) -> None:
        """Drop the item that has been there for longest."""
        del self._items[next(iter(self._items))]

    def __len__(self) -> int:
        return len(self._items)
