"""Steps that run other tables of steps: loops and branches, as text for LLVM.

The slots of such a step begin with places of buffers, as those of all steps do. Numbers follow: of
each table where its records, its addresses and its arena are, then which address belongs to which
place. So the text depends on their count alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from . import host
from .emitter import SIGNATURE, Kernel
from .frames import ARENA, FLAG
from .loops import Call


class Runner:
    """What runs a table within a step; the extension has one that shares its threads."""

    address = 0


@functools.cache
def _plain_runner() -> Any:
    return host.compiled(RUN, host.native_bits())


def runner() -> int:
    """The address of a function of addresses, records, and the first and last of them."""
    return Runner.address or _plain_runner().get_function_address("run")


class Address(NamedTuple):
    """What a step is given that is another number in each process: where the runner or `realloc`
    is, or the records or the addresses (`template`) of a block, which has a number."""

    of: str
    number: int = 0


#: Of a block its number, and how many steps it has.
_Table = tuple[int, int]


class _Text:
    """A kernel as it is written: places of buffers are pointers, numbers are loaded where used."""

    def __init__(self, places: list[tuple[int, int]]) -> None:
        self.lines = [f"define void @NAME{SIGNATURE} {{", "entry:"]
        self.places = places
        self.count = 0
        #: What follows the places.
        self.numbers: list[int | Address] = []
        self.declarations: set[str] = set()
        self.pointers = [self._pointer(k) for k in range(len(places))]
        self.runner = self.address(Address("runner"))

    def value(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def move(self, target: str, source: str, size: str) -> None:
        """Copy some bytes."""
        self.declarations.add(_MOVE)
        self.do(
            f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )

    def label(self, name: str) -> None:
        self.lines.append(name + ":")
        self.before = name

    #: The block that is being written, for phi instructions.
    before = "entry"

    def _slot(self, number: int) -> str:
        at = self.value(f"getelementptr i64, ptr %slots, i64 {number}")
        return self.value(f"load i64, ptr {at}")

    def _pointer(self, k: int) -> str:
        base, offset = self._slot(2 * k), self._slot(2 * k + 1)
        place = self.value(f"getelementptr ptr, ptr %bases, i64 {base}")
        begin = self.value(f"load ptr, ptr {place}")
        return self.value(f"getelementptr i8, ptr {begin}, i64 {offset}")

    def number(self, given: int | Address) -> str:
        """A number that is given to the kernel, so that its text does not depend on it."""
        self.numbers.append(given)
        return self._slot(2 * len(self.places) + len(self.numbers) - 1)

    def address(self, given: Address) -> str:
        """A number that is an address."""
        return self.value(f"inttoptr i64 {self.number(given)} to ptr")

    def word(self, base: int) -> str:
        """Where the address of a buffer is."""
        return self.value(f"getelementptr i64, ptr %bases, i64 {self.number(base)}")

    def store(self, work: str, base: str, pointer: str) -> None:
        """Let a table find a buffer at a pointer."""
        place = self.value(f"getelementptr ptr, ptr {work}, i64 {base}")
        self.do(f"store ptr {pointer}, ptr {place}")

    def holds(self, truth: str) -> str:
        """Whether what a pointer leads to is true."""
        return self.value(f"icmp ne i8 {self.value(f'load i8, ptr {truth}')}, 0")

    def table(self, name: str, work: str, body: Any, table: _Table) -> Callable[[], None]:
        """Prepare the addresses of a table; what runs it."""
        number, length = table
        records = self.address(Address("records", number))
        steps = self.number(length)
        template = self.address(Address("template", number))
        words, header = self.number(body.layout.count), self.number(body.header)
        before = self.before
        self.do(f"br label %{name}_copy")
        self.label(f"{name}_copy")
        self.do(f"%{name}_i = phi i64 [ 0, %{before} ], [ %{name}_n, %{name}_copy ]")
        source = self.value(f"getelementptr i64, ptr {template}, i64 %{name}_i")
        word = self.value(f"load i64, ptr {source}")
        target = self.value(f"getelementptr i64, ptr {work}, i64 %{name}_i")
        self.do(f"store i64 {word}, ptr {target}")
        self.do(f"%{name}_n = add i64 %{name}_i, 1")
        again = self.value(f"icmp slt i64 %{name}_n, {words}")
        self.do(f"br i1 {again}, label %{name}_copy, label %{name}_ready")
        self.label(f"{name}_ready")
        flag = self.value(f"getelementptr ptr, ptr %bases, i64 {FLAG}")
        self.store(work, str(FLAG), self.value(f"load ptr, ptr {flag}"))
        self.store(work, str(ARENA), self.value(f"getelementptr i8, ptr {work}, i64 {header}"))

        def run() -> None:
            held = []
            for outer, inner in body.held:
                inside = self.value(f"getelementptr i64, ptr {work}, i64 {self.number(inner.base)}")
                held.append((self.word(outer.base), inside))
            self._copy(held)
            self.do(f"call void {self.runner}(ptr {work}, ptr {records}, i64 0, i64 {steps})")
            self._copy([(inside, outside) for outside, inside in held])

        return run

    def _copy(self, words: list[tuple[str, str]]) -> None:
        for source, target in words:
            self.do(f"store i64 {self.value(f'load i64, ptr {source}')}, ptr {target}")

    def block(
        self, name: str, work: str, body: Any, table: _Table, found: list[tuple[str, str]]
    ) -> None:
        """Run a table whose buffers of some numbers are where pointers lead."""
        run = self.table(name, work, body, table)
        for base, pointer in found:
            self.store(work, base, pointer)
        run()

    def grown(
        self, room: Any, held: list[tuple[Any, str]], needed: str, wanted: str
    ) -> list[str]:
        """Make room for `wanted` rounds where there is none for `needed`; the pointers to it.

        `held` are buffers with the bytes that a round takes of each. Without memory it goes on at
        the label `failed`.
        """
        room_at = self.word(room.base)
        words = [self.word(buffer.base) for buffer, _ in held]
        realloc = self.address(Address("realloc"))
        has = self.value(f"load i64, ptr {room_at}")
        enough = self.value(f"icmp sge i64 {has}, {needed}")
        self.do(f"br i1 {enough}, label %enough, label %grow0")
        for k, (_, size) in enumerate(held):
            self.label(f"grow{k}")
            bytes_needed = self.value(f"mul i64 {wanted}, {size}")
            old = self.value(f"load ptr, ptr {words[k]}")
            new = self.value(f"call ptr {realloc}(ptr {old}, i64 {bytes_needed})")
            nothing = self.value(f"icmp eq ptr {new}, null")
            self.do(f"br i1 {nothing}, label %failed, label %grown{k}")
            self.label(f"grown{k}")
            self.do(f"store ptr {new}, ptr {words[k]}")
            self.do(f"br label %{f'grow{k + 1}' if k + 1 < len(held) else 'larger'}")
        self.label("larger")
        self.do(f"store i64 {wanted}, ptr {room_at}")
        self.do("br label %enough")
        self.label("enough")
        return [self.value(f"load ptr, ptr {word}") for word in words]

    def failed(self, number: str) -> None:
        """Where to go on without memory: there are no rounds, and the call is made again."""
        self.label("failed")
        wrong = self.value(f"getelementptr ptr, ptr %bases, i64 {FLAG}")
        self.do(f"store i64 1, ptr {self.value(f'load ptr, ptr {wrong}')}")
        self.do(f"store i64 0, ptr {number}")
        self.do("ret void")

    def kernel(self) -> tuple[Kernel, list[int | Address]]:
        self.lines += ["  ret void", "}"]
        text = "\n".join(self.lines) + "\n"
        return Kernel(text, self.declarations, self.places), self.numbers


def control_kernel(call: Call, tables: list[_Table]) -> _Kernel:
    """The kernel of a step that runs tables, and the numbers after its slots.

    Of each table there is the number of its block, and how many steps it has.
    """
    kernels = {"scan": _scan, "cond": _cond, "while": _while, "rounds": _rounds}
    return kernels[call.name](call.arguments, tables)


_MOVE = "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)"
_Kernel = tuple[Kernel, list[int | Address]]


def _scan(given: dict[str, Any], tables: list[_Table]) -> _Kernel:
    """A loop through slices; the last of its rounds leaves what it carries in the final buffers."""
    entries, turns, count = given["entries"], given["turns"], given["count"]
    places = [(given["work"], 0), *[place for _, place, _, _ in entries]]
    for _, _, start, final, other, _ in turns:
        places += [start, final, other]
    if count is not None:
        places.append(count)
    text = _Text(places)
    work, *rest = text.pointers
    length = text.number(given["length"])
    if count is not None:
        length = text.value(f"load i64, ptr {rest[-1]}")
    moving = _slices_of_rounds(text, given, rest, length)
    run = text.table("body", work, given["bodies"][0], tables[0])
    carried = []
    for j, (source, target, _, _, _, size) in enumerate(turns):
        pointers = rest[len(entries) + 3 * j : len(entries) + 3 * j + 3]
        carried.append((text.number(source), text.number(target), *pointers, size))
    before = text.before
    if count is None:
        text.do("br label %head")
    else:
        some = text.value(f"icmp sgt i64 {length}, 0")
        text.do(f"br i1 {some}, label %head, label %nothing")
        text.label("nothing")
        for _, _, begin, final, _, size in carried:
            text.move(final, begin, text.number(size))
        text.do("br label %done")
    text.label("head")
    text.do(f"%i = phi i64 [ 0, %{before} ], [ %next, %head ]")
    for j, (_, _, begin, _, _, _) in enumerate(carried):
        text.do(f"%c{j} = phi ptr [ {begin}, %{before} ], [ %o{j}, %head ]")
    for base, begin, step in moving:
        distance = text.value(f"mul i64 %i, {step}")
        text.store(work, base, text.value(f"getelementptr i8, ptr {begin}, i64 {distance}"))
    text.do("%next = add i64 %i, 1")
    left = text.value(f"sub i64 {length}, %next")
    odd = text.value(f"trunc i64 {left} to i1")
    for j, (source, target, _, final, other, _) in enumerate(carried):
        text.do(f"%o{j} = select i1 {odd}, ptr {other}, ptr {final}")
        text.store(work, source, f"%c{j}")
        text.store(work, target, f"%o{j}")
    run()
    more = text.value(f"icmp slt i64 %next, {length}")
    text.do(f"br i1 {more}, label %head, label %done")
    if given["collected"]:
        text.failed(rest[-1])
    text.label("done")
    return text.kernel()


def _slices_of_rounds(
    text: _Text, given: dict[str, Any], pointers: list[str], length: str
) -> list[tuple[str, str, str]]:
    """The buffers that move on from round to round: their numbers, where the first round finds
    them, and the steps. What rounds collect gets its memory here."""
    found = [
        (text.number(base), pointer, text.number(start), text.number(step))
        for (base, _, start, step), pointer in zip(given["entries"], pointers, strict=False)
    ]
    collected = given["collected"]
    if collected:
        sizes = [text.number(size) for _, _, size in collected]
        held = [(buffer, size) for (_, buffer, _), size in zip(collected, sizes, strict=True)]
        memory = text.grown(given["room"], held, length, length)
        for (base, _, size), pointer in zip(collected, memory, strict=True):
            step = text.number(-size if given["backward"] else size)
            found.append((text.number(base), pointer, "0", step))
    begins = []
    for base, pointer, start, step in found:
        if given["count"] is not None:
            start = _far_end(text, length, step)
        begins.append((base, text.value(f"getelementptr i8, ptr {pointer}, i64 {start}"), step))
    return begins


def _far_end(text: _Text, length: str, step: str) -> str:
    """How far from its first slice a loop begins, which goes backward where a step is negative."""
    before_last = text.value(f"sub i64 1, {length}")
    distance = text.value(f"mul i64 {before_last}, {step}")
    backward = text.value(f"icmp slt i64 {step}, 0")
    return text.value(f"select i1 {backward}, i64 {distance}, i64 0")


def _cond(given: dict[str, Any], tables: list[_Table]) -> _Kernel:
    """One of two tables, as a truth value says."""
    places = [(given["work"], 0), given["condition"]]
    places += [place for entries in given["entries"] for _, place, _, _ in entries]
    text = _Text(places)
    work, condition, *rest = text.pointers
    text.do(f"br i1 {text.holds(condition)}, label %way0, label %way1")
    for j, (body, table, entries) in enumerate(
        zip(given["bodies"], tables, given["entries"], strict=True)
    ):
        text.label(f"way{j}")
        found = [(text.number(base), rest.pop(0)) for base, _, _, _ in entries]
        text.block(f"body{j}", work, body, table, found)
        text.do("br label %done")
    text.label("done")
    return text.kernel()


def _while(given: dict[str, Any], tables: list[_Table]) -> _Kernel:
    """A loop that goes on as long as its test holds, and keeps nothing of its rounds."""
    turns = given["turns"]
    places = [(given["work"], 0), given["flag"]]
    places += [place for entries in given["entries"] for _, place, _, _ in entries]
    for _, _, _, begin, out, other, _ in turns:
        places += [begin, out, other]
    text = _Text(places)
    work, flag, *rest = text.pointers
    others = rest[sum([len(entries) for entries in given["entries"]]) :]
    text.do("br label %head")
    text.label("head")
    for j in range(len(turns)):
        begin, out, other = others[3 * j : 3 * j + 3]
        # Of the two buffers, the next round writes to the one that is not being read.
        text.do(f"%c{j} = phi ptr [ {begin}, %entry ], [ %f{j}, %turn ]")
        text.do(f"%f{j} = phi ptr [ {out}, %entry ], [ %g{j}, %turn ]")
        text.do(f"%g{j} = phi ptr [ {other}, %entry ], [ %f{j}, %turn ]")
    carried = [(f"%c{j}", f"%f{j}") for j in range(len(turns))]
    _round(text, given, tables, work, flag, rest, carried)
    text.label("done")
    for j, (*_, size) in enumerate(turns):
        text.move(others[3 * j + 1], f"%c{j}", text.number(size))
    return text.kernel()


def _rounds(given: dict[str, Any], tables: list[_Table]) -> _Kernel:
    """A loop of unknown length, each round of which writes what the next begins with behind what
    it began with itself, in memory that grows."""
    turns = given["turns"]
    places = [(given["work"], 0), given["flag"], given["number"]]
    places += [place for entries in given["entries"] for _, place, _, _ in entries]
    places += [begin for _, _, _, begin, _, _ in turns]
    text = _Text(places)
    work, flag, number, *rest = text.pointers
    begins = rest[sum([len(entries) for entries in given["entries"]]) :]
    sizes = [text.number(size) for *_, size in turns]
    text.do("br label %head")
    text.label("head")
    text.do("%i = phi i64 [ 0, %entry ], [ %next, %turn ]")
    text.do("%next = add i64 %i, 1")
    needed = text.value("add i64 %i, 2")
    larger = text.value(f"shl i64 {needed}, 2")
    held = [(grown, size) for (*_, grown, _), size in zip(turns, sizes, strict=True)]
    carried = []
    for memory, size in zip(
        text.grown(given["room"], held, needed, larger), sizes, strict=True
    ):
        offset = text.value(f"mul i64 %i, {size}")
        now = text.value(f"getelementptr i8, ptr {memory}, i64 {offset}")
        carried.append((now, text.value(f"getelementptr i8, ptr {now}, i64 {size}")))
    is_first = text.value("icmp eq i64 %i, 0")
    text.do(f"br i1 {is_first}, label %first, label %test")
    text.label("first")
    for (target, _), begin, size in zip(carried, begins, sizes, strict=True):
        text.move(target, begin, size)
    text.do("br label %test")
    text.label("test")
    _round(text, given, tables, work, flag, rest, carried)
    text.failed(number)
    text.label("done")
    text.do(f"store i64 %i, ptr {number}")
    return text.kernel()


def _round(
    text: _Text, given: dict[str, Any], tables: list[_Table], work: str, flag: str,
    pointers: list[str], carried: list[tuple[str, str]],
) -> None:  # fmt: skip
    """Ask whether a loop goes on: if so a round is run, and it continues at `head`, else at `done`.

    `carried` are pointers to what the round begins with, and to where it leaves what it carries on.
    """
    test, body = given["bodies"]
    supply = iter(pointers)
    asked, inside = (
        [(text.number(base), next(supply)) for base, _, _, _ in entries]
        for entries in given["entries"]
    )
    for turn, (now, then) in zip(given["turns"], carried, strict=True):
        asked.append((text.number(turn[0]), now))
        inside += [(text.number(turn[1]), now), (text.number(turn[2]), then)]
    text.block("test", work, test, tables[0], asked)
    text.do(f"br i1 {text.holds(flag)}, label %again, label %done")
    text.label("again")
    text.block("body", work, body, tables[1], inside)
    text.do("br label %turn")
    text.label("turn")
    text.do("br label %head")


_FIELDS = """
  %slots_at = getelementptr i64, ptr %record, i64 1
  %rows_at = getelementptr i64, ptr %record, i64 2
  %chunk_at = getelementptr i64, ptr %record, i64 3
  %parts_at = getelementptr i64, ptr %record, i64 4
  %function = load ptr, ptr %record
  %slots = load ptr, ptr %slots_at
  %rows = load i64, ptr %rows_at
  %chunk = load i64, ptr %chunk_at
  %parts = load i64, ptr %parts_at
"""
_CHUNK = """
  %lo = mul i64 %part, %chunk
  %hi_raw = add i64 %lo, %chunk
  %over = icmp sgt i64 %hi_raw, %rows
  %hi = select i1 %over, i64 %rows, i64 %hi_raw
  call void %function(ptr %bases, ptr %slots, i64 %lo, i64 %hi, i64 %part)
"""


def _with_parts(text: str) -> str:
    """The text with the fields of a record read, and a chunk of a step run, where it names them."""
    return text.replace("FIELDS", _FIELDS.strip("\n")).replace("CHUNK", _CHUNK.strip("\n"))


#: Runs the steps from one number to another, the chunks of each one after the other.
RUN = _with_parts("""
define void @run(ptr %bases, ptr %steps, i64 %begin, i64 %end) {
entry:
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %following, %stepped ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %step, label %done
step:
  %record = getelementptr [5 x i64], ptr %steps, i64 %i
FIELDS
  br label %chunks
chunks:
  %part = phi i64 [ 0, %step ], [ %next, %chunks ]
CHUNK
  %next = add i64 %part, 1
  %again = icmp slt i64 %next, %parts
  br i1 %again, label %chunks, label %stepped
stepped:
  %following = add i64 %i, 1
  br label %head
done:
  ret void
}

define void @work(ptr %bases, ptr %record, ptr %counter) {
entry:
FIELDS
  br label %take
take:
  %part = atomicrmw add ptr %counter, i64 1 seq_cst
  %left = icmp slt i64 %part, %parts
  br i1 %left, label %run, label %done
run:
CHUNK
  br label %take
done:
  ret void
}
""")
