"""Steps that run other tables of steps: loops and branches, as text for LLVM.

The slots of such a step begin with places of buffers, as those of all steps do. Numbers follow: of
each table where its records, its addresses and its arena are, then which address belongs to which
place. So the text depends on their count alone.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import host
from .emitter import SIGNATURE, Kernel
from .frames import ARENA, FLAG, realloc_address
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


class _Text:
    """A kernel as it is written: places of buffers are pointers, numbers are loaded where used."""

    def __init__(self, pairs: int) -> None:
        self.lines = [f"define void @NAME{SIGNATURE} {{", "entry:"]
        self.pairs = pairs
        self.count = 0
        self.numbers = 0
        self.declarations: set[str] = set()
        self.pointers = [self._pointer(k) for k in range(pairs)]

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

    def _slot(self, number: int) -> str:
        at = self.value(f"getelementptr i64, ptr %slots, i64 {number}")
        return self.value(f"load i64, ptr {at}")

    def _pointer(self, k: int) -> str:
        base, offset = self._slot(2 * k), self._slot(2 * k + 1)
        place = self.value(f"getelementptr ptr, ptr %bases, i64 {base}")
        begin = self.value(f"load ptr, ptr {place}")
        return self.value(f"getelementptr i8, ptr {begin}, i64 {offset}")

    def number(self) -> str:
        """The next of the numbers."""
        self.numbers += 1
        return self._slot(2 * self.pairs + self.numbers - 1)

    def address(self) -> str:
        """The next of the numbers, which is an address."""
        return self.value(f"inttoptr i64 {self.number()} to ptr")

    def store(self, work: str, base: str, pointer: str) -> None:
        """Let a table find a buffer at a pointer."""
        place = self.value(f"getelementptr ptr, ptr {work}, i64 {base}")
        self.do(f"store ptr {pointer}, ptr {place}")

    def table(self, name: str, work: str) -> tuple[str, str]:
        """Prepare the addresses of a table; its records and how many there are."""
        records, steps, template, words, header = (
            self.address(), self.number(), self.address(), self.number(), self.number(),
        )  # fmt: skip
        self.do(f"br label %{name}_copy")
        self.label(f"{name}_copy")
        before = self.before
        self.do(f"%{name}_i = phi i64 [ 0, %{before} ], [ %{name}_n, %{name}_copy ]")
        source = self.value(f"getelementptr i64, ptr {template}, i64 %{name}_i")
        word = self.value(f"load i64, ptr {source}")
        target = self.value(f"getelementptr i64, ptr {work}, i64 %{name}_i")
        self.do(f"store i64 {word}, ptr {target}")
        self.do(f"%{name}_n = add i64 %{name}_i, 1")
        again = self.value(f"icmp slt i64 %{name}_n, {words}")
        self.do(f"br i1 {again}, label %{name}_copy, label %{name}_ready")
        self.label(f"{name}_ready")
        self.before = f"{name}_ready"
        flag = self.value(f"getelementptr ptr, ptr %bases, i64 {FLAG}")
        self.store(work, str(FLAG), self.value(f"load ptr, ptr {flag}"))
        self.store(work, str(ARENA), self.value(f"getelementptr i8, ptr {work}, i64 {header}"))
        return records, steps

    #: The block before the next one, for phi instructions.
    before = "entry"

    def run(self, runner: str, work: str, table: tuple[str, str]) -> None:
        records, steps = table
        self.do(f"call void {runner}(ptr {work}, ptr {records}, i64 0, i64 {steps})")

    def kernel(self, places: list[tuple[int, int]]) -> Kernel:
        self.lines += ["  ret void", "}"]
        return Kernel("\n".join(self.lines) + "\n", self.declarations, places)


def _numbers_of(body: Any, table: Any) -> list[int]:
    return [
        ctypes.addressof(table.records), table.steps, ctypes.addressof(body.layout.template),
        body.layout.count, body.header,
    ]  # fmt: skip


def control_kernel(call: Call, tables: list[Any]) -> tuple[Kernel, list[int]]:
    """The kernel of a step that runs tables, and the numbers after its slots."""
    kernels = {"scan": _scan, "cond": _cond, "while": _while, "rounds": _rounds}
    return kernels[call.name](call, tables)


_MOVE = "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)"


def _scan(call: Call, tables: list[Any]) -> tuple[Kernel, list[int]]:
    given = call.arguments
    (body,), (table,) = given["bodies"], tables
    entries, turns = given["entries"], given["turns"]
    places = [(given["work"], 0), *[place for _, place, _, _ in entries]]
    for _, _, start, final, other, _ in turns:
        places += [start, final, other]
    if given["count"] is not None:
        places.append(given["count"])
    text = _Text(len(places))
    work, rest = text.pointers[0], text.pointers[1:]
    call_runner = text.address()
    length = text.number()
    if given["count"] is not None:
        length = text.value(f"load i64, ptr {rest[-1]}")
    inside = text.table("body", work)
    moving = []
    for pointer in rest[: len(entries)]:
        base, start, step = text.number(), text.number(), text.number()
        if given["count"] is not None:
            start = _far_end(text, length, step)
        moving.append((base, text.value(f"getelementptr i8, ptr {pointer}, i64 {start}"), step))
    carried = []
    for j in range(len(turns)):
        begin, final, other = rest[len(entries) + 3 * j : len(entries) + 3 * j + 3]
        carried.append((text.number(), text.number(), begin, final, other))
    before = text.before
    if given["count"] is None:
        text.do("br label %head")
    else:
        some = text.value(f"icmp sgt i64 {length}, 0")
        text.do(f"br i1 {some}, label %head, label %nothing")
        text.label("nothing")
        for _, _, begin, final, _ in carried:
            text.move(final, begin, text.number())
        text.do("br label %done")
    text.label("head")
    text.do(f"%i = phi i64 [ 0, %{before} ], [ %next, %head ]")
    for j, (_, _, begin, _, _) in enumerate(carried):
        text.do(f"%c{j} = phi ptr [ {begin}, %{before} ], [ %o{j}, %head ]")
    for base, start, step in moving:
        distance = text.value(f"mul i64 %i, {step}")
        text.store(work, base, text.value(f"getelementptr i8, ptr {start}, i64 {distance}"))
    text.do("%next = add i64 %i, 1")
    left = text.value(f"sub i64 {length}, %next")
    odd = text.value(f"trunc i64 {left} to i1")
    for j, (source, target, _, final, other) in enumerate(carried):
        text.do(f"%o{j} = select i1 {odd}, ptr {other}, ptr {final}")
        text.store(work, source, f"%c{j}")
        text.store(work, target, f"%o{j}")
    text.run(call_runner, work, inside)
    more = text.value(f"icmp slt i64 %next, {length}")
    text.do(f"br i1 {more}, label %head, label %done")
    text.label("done")
    numbers = [runner(), given["length"], *_numbers_of(body, table)]
    for base, _, start, step in entries:
        numbers += [base, start, step]
    for source, target, *_ in turns:
        numbers += [source, target]
    if given["count"] is not None:
        numbers += [size for *_, size in turns]
    return text.kernel(places), numbers


def _far_end(text: _Text, length: str, step: str) -> str:
    """How far from its first slice a loop begins, which goes backward where a step is negative."""
    before_last = text.value(f"sub i64 1, {length}")
    distance = text.value(f"mul i64 {before_last}, {step}")
    backward = text.value(f"icmp slt i64 {step}, 0")
    return text.value(f"select i1 {backward}, i64 {distance}, i64 0")


def _rounds(call: Call, tables: list[Any]) -> tuple[Kernel, list[int]]:
    """A loop of unknown length, each round of which writes what the next begins with behind what
    it began with itself, in memory that grows."""
    given = call.arguments
    turns, room = given["turns"], given["room"]
    places = [(given["work"], 0), given["flag"], given["number"]]
    places += [place for entries in given["entries"] for _, place, _, _ in entries]
    places += [begin for _, _, _, begin, _, _ in turns]
    text = _Text(len(places))
    work, flag, number, *rest = text.pointers
    begins = rest[sum([len(entries) for entries in given["entries"]]) :]
    numbers = [runner(), realloc_address(), room.base]
    call_runner, realloc = text.address(), text.address()
    room_at = text.value(f"getelementptr i64, ptr %bases, i64 {text.number()}")
    carried, held = [], []
    for asked, source, target, _, grown, size in turns:
        numbers += [asked, source, target, size, grown.base]
        carried.append([text.number() for _ in range(4)])
        held.append(text.value(f"getelementptr ptr, ptr %bases, i64 {text.number()}"))
    text.do("br label %head")
    text.label("head")
    text.do("%i = phi i64 [ 0, %entry ], [ %next, %turn ]")
    text.do("%next = add i64 %i, 1")
    needed = text.value("add i64 %i, 2")
    has = text.value(f"load i64, ptr {room_at}")
    larger = text.value(f"shl i64 {needed}, 2")
    enough = text.value(f"icmp sge i64 {has}, {needed}")
    text.do(f"br i1 {enough}, label %enough, label %grow0")
    for k, place in enumerate(held):
        text.label(f"grow{k}")
        size = text.value(f"mul i64 {larger}, {carried[k][3]}")
        old = text.value(f"load ptr, ptr {place}")
        new = text.value(f"call ptr {realloc}(ptr {old}, i64 {size})")
        failed = text.value(f"icmp eq ptr {new}, null")
        text.do(f"br i1 {failed}, label %failed, label %grown{k}")
        text.label(f"grown{k}")
        text.do(f"store ptr {new}, ptr {place}")
        text.do(f"br label %{f'grow{k + 1}' if k + 1 < len(held) else 'larger'}")
    text.label("larger")
    text.do(f"store i64 {larger}, ptr {room_at}")
    text.do("br label %enough")
    text.label("enough")
    now, then = [], []
    for place, (*_, size) in zip(held, carried, strict=True):
        memory = text.value(f"load ptr, ptr {place}")
        offset = text.value(f"mul i64 %i, {size}")
        now.append(text.value(f"getelementptr i8, ptr {memory}, i64 {offset}"))
        then.append(text.value(f"getelementptr i8, ptr {now[-1]}, i64 {size}"))
    is_first = text.value("icmp eq i64 %i, 0")
    text.do(f"br i1 {is_first}, label %first, label %test")
    text.label("first")
    for target, begin, (*_, size) in zip(now, begins, carried, strict=True):
        text.move(target, begin, size)
    text.do("br label %test")
    text.label("test")
    text.before = "test"
    for j, (body, table, entries) in enumerate(
        zip(given["bodies"], tables, given["entries"], strict=True)
    ):
        numbers += _numbers_of(body, table)
        inside = text.table(f"body{j}", work)
        for base, _, _, _ in entries:
            text.store(work, text.number(), rest.pop(0))
            numbers.append(base)
        for k, (asked, source, target, _) in enumerate(carried):
            text.store(work, asked if j == 0 else source, now[k])
            if j == 1:
                text.store(work, target, then[k])
        text.run(call_runner, work, inside)
        if j == 0:
            byte = text.value(f"load i8, ptr {flag}")
            holds = text.value(f"icmp ne i8 {byte}, 0")
            text.do(f"br i1 {holds}, label %again, label %done")
            text.label("again")
            text.before = "again"
    text.do("br label %turn")
    text.label("turn")
    text.do("br label %head")
    text.label("failed")
    wrong = text.value(f"getelementptr ptr, ptr %bases, i64 {FLAG}")
    text.do(f"store i64 1, ptr {text.value(f'load ptr, ptr {wrong}')}")
    text.do(f"store i64 0, ptr {number}")
    text.do("ret void")
    text.label("done")
    text.do(f"store i64 %i, ptr {number}")
    return text.kernel(places), numbers


def _cond(call: Call, tables: list[Any]) -> tuple[Kernel, list[int]]:
    given = call.arguments
    places = [(given["work"], 0), given["condition"]]
    places += [place for entries in given["entries"] for _, place, _, _ in entries]
    text = _Text(len(places))
    work, condition, *rest = text.pointers
    numbers = [runner()]
    call_runner = text.address()
    byte = text.value(f"load i8, ptr {condition}")
    holds = text.value(f"icmp ne i8 {byte}, 0")
    text.do(f"br i1 {holds}, label %way0, label %way1")
    for j, (body, table, entries) in enumerate(
        zip(given["bodies"], tables, given["entries"], strict=True)
    ):
        text.label(f"way{j}")
        text.before = f"way{j}"
        numbers += _numbers_of(body, table)
        inside = text.table(f"body{j}", work)
        for base, _, _, _ in entries:
            text.store(work, text.number(), rest.pop(0))
            numbers.append(base)
        text.run(call_runner, work, inside)
        text.do("br label %done")
    text.label("done")
    return text.kernel(places), numbers


def _while(call: Call, tables: list[Any]) -> tuple[Kernel, list[int]]:
    given = call.arguments
    turns = given["turns"]
    places = [(given["work"], 0), given["flag"]]
    places += [place for entries in given["entries"] for _, place, _, _ in entries]
    for _, _, _, begin, out, other, _ in turns:
        places += [begin, out, other]
    text = _Text(len(places))
    work, flag, *rest = text.pointers
    numbers = [runner()]
    call_runner = text.address()
    carried = []
    for asked, source, target, _, _, _, size in turns:
        numbers += [asked, source, target, size]
        carried.append([text.number() for _ in range(4)])
    others = rest[sum([len(entries) for entries in given["entries"]]) :]
    text.do("br label %head")
    text.label("head")
    for j in range(len(turns)):
        begin, out, other = others[3 * j : 3 * j + 3]
        # Of the two buffers, the next round writes to the one that is not being read.
        text.do(f"%c{j} = phi ptr [ {begin}, %entry ], [ %f{j}, %turn ]")
        text.do(f"%f{j} = phi ptr [ {out}, %entry ], [ %g{j}, %turn ]")
        text.do(f"%g{j} = phi ptr [ {other}, %entry ], [ %f{j}, %turn ]")
    # Phi instructions come first in a block.
    phis = [line for line in text.lines if " = phi ptr" in line]
    assert text.lines[-len(phis) :] == phis or not phis
    text.before = "head"
    for j, (body, table, entries) in enumerate(
        zip(given["bodies"], tables, given["entries"], strict=True)
    ):
        numbers += _numbers_of(body, table)
        inside = text.table(f"body{j}", work)
        for base, _, _, _ in entries:
            text.store(work, text.number(), rest.pop(0))
            numbers.append(base)
        for k, (asked, source, target, _) in enumerate(carried):
            text.store(work, asked if j == 0 else source, f"%c{k}")
            if j == 1:
                text.store(work, target, f"%f{k}")
        text.run(call_runner, work, inside)
        if j == 0:
            byte = text.value(f"load i8, ptr {flag}")
            holds = text.value(f"icmp ne i8 {byte}, 0")
            text.do(f"br i1 {holds}, label %again, label %done")
            text.label("again")
            text.before = "again"
        else:
            text.do("br label %turn")
            text.label("turn")
            text.do("br label %head")
    text.label("done")
    for k, (_, _, _, size) in enumerate(carried):
        text.move(others[3 * k + 1], f"%c{k}", size)
    return text.kernel(places), numbers


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
