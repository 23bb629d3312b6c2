"""Numbers that kernels read, so that one kernel serves nests that differ in them alone.

The lengths of what computed indices lead into always are such numbers. Constants are at first part
of the text, where LLVM can make most of them, and so are extents of inner dimensions and steps,
which are called lengths here. Where a nest is met again with other constants, as a mean is over
another number of rows, or a program with other lengths, those that differ are read from then on.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Hashable, Sequence

#: Types of constants that may be read.
KINDS = {"f32", "f64", "i32", "i64"}
#: With more constants that differ than this two nests have nothing in common.
_MOST = 8
#: So many nests are remembered, the first ones are forgotten.
_MOST_MET = 4096
_Met = dict[int, tuple[tuple[int, ...], frozenset[int]]]
#: The constants of nests, and the lengths of nests in their places within programs: those that were
#: met last, and which have differed so far.
_met: _Met = {}
_met_lengths: _Met = {}
_lock = threading.Lock()


def _differing(met: _Met, key: int, values: tuple[int, ...]) -> frozenset[int]:
    """Which of some values have differed so far."""
    with _lock:
        known, differing = met.pop(key, (values, frozenset()))
        if len(known) == len(values):
            differing |= {i for i, value in enumerate(values) if value != known[i]}
        if len(met) >= _MOST_MET:
            del met[next(iter(met))]
        met[key] = values, differing
    return differing


class Numbers:
    """The numbers that a kernel reads, each a type and a literal, and those that it might read."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], int] = {}
        #: What might be read: where it stands in the nest, its type, its literal.
        self._constants: list[tuple[Hashable, str, int]] = []
        self._lengths: list[tuple[Hashable, str, int]] = []
        self._read: set[Hashable] = set()

    def place(self, kind: str, literal: int) -> int:
        """The place of a number among those that are read."""
        return self._places.setdefault((kind, literal), len(self._places))

    def note(self, where: Hashable, length: int) -> None:
        """Note an extent or a step."""
        self._lengths.append((where, "i64", length))

    def note_constant(self, where: Hashable, kind: str, literal: int) -> None:
        """Note a constant of a loop."""
        self._constants.append((where, kind, literal))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that were noted."""
        return tuple([length for _, _, length in self._lengths])

    def choose(self, nest: int, site: int) -> tuple:
        """Read those constants that have had other values in nests which were like this one but for
        constants, and those lengths that have at its site in programs which were like this one but
        for lengths. What the text depends on: the places of these, and the other numbers."""
        constants = tuple([literal for _, _, literal in self._constants])
        differing = _differing(_met, nest, constants)
        if len(differing) > _MOST:
            differing = frozenset()
        found = self._chosen(self._constants, differing)
        return found, self._chosen(
            self._lengths, _differing(_met_lengths, site, self.lengths)
        )

    def _chosen(
        self, noted: list[tuple[Hashable, str, int]], differing: frozenset[int]
    ) -> tuple[tuple[str, int], ...]:
        found: list[tuple[str, int]] = []
        for i, (where, kind, literal) in enumerate(noted):
            if i in differing:
                self._read.add(where)
                found.append(("read", self.place(kind, literal)))
            else:
                found.append(("is", literal))
        return tuple(found)

    def name(self, where: Hashable, kind: str, literal: int) -> str | None:
        """The name of a noted number in the text if it is read, else None."""
        return name_of(self.place(kind, literal)) if where in self._read else None

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
