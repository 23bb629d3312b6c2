"""Numbers that kernels read, so that one kernel serves nests that differ in them alone.

The lengths of what computed indices lead into always are such numbers. Constants are at first part
of the text, where LLVM can make most of them. Where a nest is met again with other constants, as a
mean is over another number of rows, those that differ are read from then on.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence

from .loops import Loop

#: Types of constants that may be read.
KINDS = {"f32", "f64", "i32", "i64"}
#: With more differences than this two nests have nothing in common.
_MOST = 8
#: So many nests are remembered, the first ones are forgotten.
_MOST_MET = 4096
_met: dict[int, tuple[tuple[int, ...], frozenset[int]]] = {}
_lock = threading.Lock()


class Numbers:
    """The numbers that a kernel reads, each a type and a literal, and the constants that it might
    read."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], int] = {}
        self._constants: list[tuple[Loop, str, int]] = []
        self._read: set[tuple[int, str, int]] = set()

    def place(self, kind: str, literal: int) -> int:
        """The place of a number among those that are read."""
        return self._places.setdefault((kind, literal), len(self._places))

    def add_constant(self, loop: Loop, kind: str, literal: int) -> None:
        """Note a constant of a loop."""
        self._constants.append((loop, kind, literal))

    def choose(self, likeness: tuple) -> tuple:
        """Read those constants that have had other values in nests which were like this one but for
        constants. What the text depends on: the places of these, and the other constants."""
        key, values = hash(likeness), tuple([literal for _, _, literal in self._constants])
        with _lock:
            known, differing = _met.pop(key, (values, frozenset()))
            if len(known) == len(values):
                differing |= {i for i, value in enumerate(values) if value != known[i]}
            if len(_met) >= _MOST_MET:
                del _met[next(iter(_met))]
            _met[key] = values, differing
        if len(differing) > _MOST:
            differing = frozenset()
        found: list[tuple[str, int]] = []
        for i, (loop, kind, literal) in enumerate(self._constants):
            if i in differing:
                self._read.add((id(loop), kind, literal))
                found.append(("read", self.place(kind, literal)))
            else:
                found.append(("is", literal))
        return tuple(found)

    def constant(self, loop: Loop, kind: str, literal: int) -> str | None:
        """The name of a loop's constant in the text if it is read, else None."""
        if (id(loop), kind, literal) not in self._read:
            return None
        return name_of(self.place(kind, literal))

    @property
    def kinds(self) -> list[str]:
        """The types of all that is read."""
        return [kind for kind, _ in self._places]

    @property
    def words(self) -> list[int]:
        """What is read as kernels find it: 64 bits each, of which shorter types take the lower."""
        return [_word(kind, literal) for kind, literal in self._places]


def _word(kind: str, literal: int) -> int:
    if kind != "f32":
        return literal
    # Literals of floats are the bits of a float64.
    (value,) = struct.unpack("<d", struct.pack("<q", literal))
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return int(bits)


def name_of(place: int) -> str:
    """The name that the text has for the number at a place."""
    return f"%q{place}"


def reading(kinds: Sequence[str], slots: int) -> list[str]:
    """Instructions that read numbers of these types, which stand behind a number of slots."""
    lines = []
    for k, kind in enumerate(kinds):
        name = name_of(k)
        whole = name if kind == "i64" else f"%qb{k}"
        lines.append(f"  %qa{k} = getelementptr i64, ptr %slots, i64 {2 * slots + k}")
        lines.append(f"  {whole} = load i64, ptr %qa{k}")
        if kind == "f64":
            lines.append(f"  {name} = bitcast i64 {whole} to double")
        elif kind == "i32":
            lines.append(f"  {name} = trunc i64 {whole} to i32")
        elif kind == "f32":
            lines.append(f"  %qc{k} = trunc i64 {whole} to i32")
            lines.append(f"  {name} = bitcast i32 %qc{k} to float")
    return lines
