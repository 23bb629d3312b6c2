"""What this version is and what it was built with, under PyTorch's module name."""

from __future__ import annotations

import re
from typing import Any

from ._version import __version__ as _text

_PARTS = (
    r"v?(?P<release>\d+(?:\.\d+)*)[._-]?(?:(?P<stage>a|b|rc|alpha|beta|c|pre|preview)[._-]?"
    r"(?P<number>\d*))?[._-]?(?:(?P<post>post)[._-]?(?P<patch>\d*))?"
    r"[._-]?(?:(?P<dev>dev)[._-]?(?P<day>\d*))?(?:\+(?P<local>[a-z0-9]+(?:[._-][a-z0-9]+)*))?"
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "pre": 2, "preview": 2, "rc": 2}
_FINAL = 3


def _key(text: str) -> tuple[Any, ...] | None:
    """What versions are compared by; None for what is no version."""
    found = re.fullmatch(_PARTS, text.strip(), re.IGNORECASE)
    if found is None:
        return None
    release = [int(each) for each in found["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    if found["stage"]:
        stage = (_STAGES[found["stage"].lower()], int(found["number"] or 0))
    else:
        # A development version comes before all others of its release.
        stage = (-1, 0) if found["dev"] and not found["post"] else (_FINAL, 0)
    post = int(found["patch"] or 0) if found["post"] else -1
    dev = (0, int(found["day"] or 0)) if found["dev"] else (1, 0)
    parts = re.split(r"[._-]", found["local"] or "")
    local = [(1, int(each), "") if each.isdigit() else (0, 0, each) for each in parts if each]
    return release, stage, post, dev, local


class TorchVersion(str):
    """A string that is compared as a version, with strings and with tuples of numbers."""

    __module__ = "wengert.version"

    def _order(self, other: Any) -> int:
        text = ".".join(map(str, other)) if isinstance(other, (tuple, list)) else str(other)
        ours, theirs = _key(self), _key(text)
        if ours is None or theirs is None:  # compared as the strings that they are
            return (str(self) > text) - (str(self) < text)
        return (ours > theirs) - (ours < theirs)

    def __lt__(self, other: Any) -> bool:
        return self._order(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._order(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._order(other) > 0

    def __ge__(self, other: Any) -> bool:
        return self._order(other) >= 0

    def __eq__(self, other: object) -> bool:
        return self._order(other) == 0

    def __ne__(self, other: object) -> bool:
        return self._order(other) != 0

    __hash__ = str.__hash__


__version__ = TorchVersion(_text)
debug = False
cuda: str | None = None
git_version: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
