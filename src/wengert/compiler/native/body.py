"""Scalar instructions as text, for one index or for as many as a vector has."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.scalar.expressions import SIZES, is_float, is_signed
from ...core.scalar.functions import FORMATS
from .loops import Access, Loop
from .numbers import name_of as name_of_number
from .text import MEMORY, REGISTER, Text, constant, in_memory, lanes, name_of, vector

if TYPE_CHECKING:
    from .forms import Form
    from .rows import Rows

#: The relations of comparisons: those of floats are false for NaN but for ``ne``.
_FLOAT_RELATIONS = {"ne": "une", "uno": "uno"}
#: Products of rows of so many elements are written one after the other, without a loop.
UNROLLED = 16
_INTRINSICS = {
    "sqrt": "sqrt", "rint": "rint", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "abs": "fabs", "copysign": "copysign", "fma": "fma",
}  # fmt: skip


def side_by_side(length: int) -> int:
    """How many sums a product of longer rows has."""
    return 4 if length % 4 == 0 else 1


class Body:
    """Writes scalar instructions for one index, or for as many as a vector has.

    A `hopeful` one leaves out what the C library has to compute, and notes in `missed` the flags
    that say where it would have to.
    """

    def __init__(
        self,
        rows: Rows,
        indices: list[str],
        width: int,
        known: dict[int, str],
        hopeful: bool = False,
    ) -> None:
        self.rows = rows
        self.emitter = rows.emitter
        self.text = rows.text
        self.loop = rows.loop
        self.indices = indices
        self.width = width
        self.known = known
        self.hopeful = hopeful
        self.missed: list[str] = []

    def write(self, instruction: tuple[str, str, tuple]) -> str:
        name, kind, args = instruction
        special = getattr(self, "_" + name, None)
        if special is not None:
            return special(kind, args)
        values = [self.known[i] for i in args]
        whole = vector(kind, self.width)
        if name in _INTRINSICS:
            return self.text.intrinsic(
                _INTRINSICS[name], name_of(kind, self.width), whole, *[(whole, v) for v in values]
            )
        if name in ("add", "sub", "mul", "div"):
            if is_float(kind):
                word = "f" + name
            else:
                word = name if name != "div" else ("sdiv" if is_signed(kind) else "udiv")
            return self.text.value(f"{word} {whole} {values[0]}, {values[1]}")
        word = {"shr": "lshr", "sar": "ashr"}.get(name, name)  # and or xor shl
        return self.text.value(f"{word} {whole} {values[0]}, {values[1]}")

    def _neg(self, kind: str, args: tuple) -> str:
        return self.text.value(f"fneg {vector(kind, self.width)} {self.known[args[0]]}")

    def _const(self, kind: str, args: tuple) -> str:
        name = self.emitter.numbers.name((id(self.loop), kind, args[0]), kind, args[0])
        if name is None:
            return constant(args[0], kind, self.width)
        return self.emitter.splat(name, kind, self.width)

    def _load(self, kind: str, args: tuple) -> str:
        access = args[0]
        place = self.emitter.address(access, self.indices)
        return self.emitter.load(place, kind, self.width, self.emitter.last_step(access))

    def _cmp(self, kind: str, args: tuple) -> str:
        relation, *operands = args
        given = self.loop.body.kind(operands[0])
        x, y = (self.known[i] for i in operands)
        if is_float(given):
            word = "fcmp " + _FLOAT_RELATIONS.get(relation, "o" + relation)
        else:
            sign = "" if relation in ("eq", "ne") else "s" if is_signed(given) else "u"
            word = f"icmp {sign}{relation}"
        return self.text.value(f"{word} {vector(given, self.width)} {x}, {y}")

    def _select(self, kind: str, args: tuple) -> str:
        flag, x, y = (self.known[i] for i in args)
        whole = vector(kind, self.width)
        return self.text.value(
            f"select {vector('bool', self.width)} {flag}, {whole} {x}, {whole} {y}"
        )

    def _scale(self, kind: str, args: tuple) -> str:
        """x * 2**n for a whole number n, rounded once."""
        x, n = (self.known[i] for i in args)
        if self.width * SIZES[kind] == 64:  # only AVX-512 has such vectors
            return self._scaled_at_once(kind, x, n)
        text, whole = self.text, vector(kind, self.width)
        # In two steps, so that neither power of two leaves the range.
        half = text.value(f"fmul {whole} {n}, {lanes('0.5', kind, self.width)}")
        half = text.intrinsic("floor", name_of(kind, self.width), whole, (whole, half))
        for power in (half, text.value(f"fsub {whole} {n}, {half}")):
            x = text.value(f"fmul {whole} {x}, {self._power_of_two(kind, power)}")
        return x

    def _scaled_at_once(self, kind: str, x: str, n: str) -> str:
        whole, lane = vector(kind, self.width), {"f32": "ps", "f64": "pd"}[kind]
        mask = f"i{self.width}"
        name = f"@llvm.x86.avx512.mask.scalef.{lane}.512"
        given = (whole, whole, whole, mask, "i32")
        self.text.declarations.add(f"declare {whole} {name}({', '.join(given)})")
        return self.text.value(
            f"call {whole} {name}({whole} {x}, {whole} {n}, {whole} {x}, {mask} -1, i32 4)"
        )

    def _power_of_two(self, kind: str, n: str) -> str:
        """2**n for a whole number in the range of the type's exponents."""
        text, width = self.text, self.width
        mantissa, bias, integer = FORMATS[kind]
        whole = vector(integer, width)
        power = self.converted(n, kind, integer)
        power = text.value(f"add {whole} {power}, {lanes(str(bias), integer, width)}")
        power = text.value(f"shl {whole} {power}, {lanes(str(mantissa), integer, width)}")
        return text.value(f"bitcast {whole} {power} to {vector(kind, width)}")

    def _bits(self, kind: str, args: tuple) -> str:
        given = vector(self.loop.body.kind(args[0]), self.width)
        value = self.known[args[0]]
        whole = vector(kind, self.width)
        return value if given == whole else self.text.value(f"bitcast {given} {value} to {whole}")

    def _convert(self, kind: str, args: tuple) -> str:
        given = self.loop.body.kind(args[0])
        return self.converted(self.known[args[0]], given, kind)

    def converted(self, value: str, given: str, kind: str) -> str:
        """A value in another type."""
        text, width = self.text, self.width
        if given == "bf16":
            wide = vector("i32", width)
            value = text.value(f"zext {vector(given, width)} {value} to {wide}")
            value = text.value(f"shl {wide} {value}, {lanes('16', 'i32', width)}")
            value = text.value(f"bitcast {wide} {value} to {vector('f32', width)}")
            return value if kind == "f32" else self.converted(value, "f32", kind)
        if kind == "bf16":
            if given != "f32":
                value = self.converted(value, given, "f32")
            return self._to_bf16(value)
        small, large = SIZES[given], SIZES[kind]
        if is_float(given) and is_float(kind):
            word = "fpext" if large > small else "fptrunc"
        elif is_float(given):
            word = "fptosi" if is_signed(kind) else "fptoui"
            if kind == "u8":  # negative values wrap around as NumPy's do
                value = text.value(
                    f"fptosi {vector(given, width)} {value} to {vector('i32', width)}"
                )
                return text.value(
                    f"trunc {vector('i32', width)} {value} to {vector(kind, width)}"
                )
        elif is_float(kind):
            word = "sitofp" if is_signed(given) else "uitofp"
        elif given == "bool":
            word = "zext"
        elif small == large:
            return value
        else:
            word = "trunc" if large < small else ("sext" if is_signed(given) else "zext")
        return text.value(f"{word} {vector(given, width)} {value} to {vector(kind, width)}")

    def _to_bf16(self, value: str) -> str:
        """The nearest of the shorter floats, halves to even; NaN stays NaN."""
        text, width = self.text, self.width
        wide, flags = vector("i32", width), vector("bool", width)
        source = vector("f32", width)

        def number(n: int) -> str:
            return lanes(str(n), "i32", width)

        bits = text.value(f"bitcast {source} {value} to {wide}")
        odd = text.value(f"lshr {wide} {bits}, {number(16)}")
        odd = text.value(f"and {wide} {odd}, {number(1)}")
        up = text.value(f"add {wide} {bits}, {number(0x7FFF)}")
        up = text.value(f"add {wide} {up}, {odd}")
        nan = text.value(f"fcmp uno {source} {value}, {value}")
        up = text.value(f"select {flags} {nan}, {wide} {number(0x7FC00000)}, {wide} {up}")
        up = text.value(f"lshr {wide} {up}, {number(16)}")
        return text.value(f"trunc {wide} {up} to {vector('bf16', width)}")

    # Functions -----------------------------------------------------------------------------------

    def _form(self, kind: str, args: tuple) -> str:
        """A call of a function that an operator is."""
        form, *operands = args
        whole, width = vector(kind, self.width), self.width
        name = f"@{form.name}_{width}"
        if name not in self.emitter.functions:
            self.emitter.functions[name] = self._function(name, kind, form)
        self.text.declarations |= self.emitter.functions[name]
        given = [
            f"{vector(self.loop.body.kind(i), width)} {self.known[i]}" for i in operands
        ]
        return self.text.value(f"call {whole} {name}({', '.join(given)})")

    def _function(self, name: str, kind: str, form: Form) -> set[str]:
        """The text of such a function, with what it needs to be declared."""
        rows = copy.copy(self.rows)
        rows.text, rows.loop = Text(), Loop(0, ())
        rows.loop.body.code = form.code
        body = Body(rows, [], self.width, {})
        for i, instruction in enumerate(form.code):
            if instruction[0] == "input":
                body.known[i] = f"%a{instruction[2][0]}"
            else:
                body.known[i] = body.write(instruction)
        whole = vector(kind, self.width)
        given = [f"{vector(k, self.width)} %a{j}" for j, k in enumerate(form.kinds)]
        lines = [
            f"define private {whole} {name}({', '.join(given)}) #0 {{", "entry:",
            *rows.text.lines, f"  ret {whole} {body.known[form.results[0]]}", "}",
        ]  # fmt: skip
        return {"\n".join(lines), *rows.text.declarations}

    def _call(self, kind: str, args: tuple) -> str:
        name, *operands = args
        values = [self.known[i] for i in operands]
        return self.each_lane(name, kind, values)

    def each_lane(self, name: str, kind: str, values: list[str]) -> str:
        text = self.text
        base = REGISTER[kind]
        text.declarations.add(f"declare {base} @{name}({', '.join([base] * len(values))})")
        if self.width == 1:
            return text.value(f"call {base} @{name}({', '.join(f'{base} {v}' for v in values)})")
        whole = vector(kind, self.width)
        result = "poison"
        for lane in range(self.width):
            items = [text.value(f"extractelement {whole} {v}, i64 {lane}") for v in values]
            item = text.value(f"call {base} @{name}({', '.join(f'{base} {v}' for v in items)})")
            result = text.value(f"insertelement {whole} {result}, {base} {item}, i64 {lane}")
        return result

    def _rescue(self, kind: str, args: tuple) -> str:
        """A value that the C library computes where a flag is set; mostly none is."""
        name, flag, value, operand = args
        text, width = self.text, self.width
        k = text.fresh()
        flags, usual, x = (self.known[i] for i in (flag, value, operand))
        if self.hopeful:
            self.missed.append(flags)
            return usual
        before = text.label
        text.seldom(text.any_of([flags], width), f"far{k}", f"near{k}")
        text.begin(f"far{k}")
        found = self.each_lane(name, kind, [x])
        whole = vector(kind, width)
        mixed = text.value(
            f"select {vector('bool', width)} {flags}, {whole} {found}, {whole} {usual}"
        )
        text.do(f"br label %near{k}")
        text.begin(f"near{k}")
        return text.value(f"phi {whole} [ {usual}, %{before} ], [ {mixed}, %far{k} ]")

    # Products and indices ------------------------------------------------------------------------

    def _dot(self, kind: str, args: tuple) -> str:
        """The sum of products of two rows, whose steps follow their accesses."""
        length, *rows = args[:3]
        text, width, emitter = self.text, self.width, self.emitter
        whole = vector(kind, width)
        at = (id(self.loop), args)
        steps = [
            emitter.numbers.name((at, k), "i64", step) or step for k, step in enumerate(args[3:])
        ]

        def product(k: str, total: str) -> str:
            factors = []
            for access, step in zip(rows, steps, strict=True):
                place = self._place_in_row(access, step, k)
                lane = emitter.last_step(access)
                if width > 1 and lane == 0:
                    one = emitter.load(place, kind, 1, 0)
                    factors.append(emitter.splat(one, kind, width))
                else:
                    factors.append(emitter.load(place, kind, width, lane))
            return text.intrinsic(
                "fma", name_of(kind, width), whole, *[(whole, v) for v in (*factors, total)]
            )

        zero = constant(0, kind, width)
        if length <= UNROLLED:
            sums = [zero] * (2 if length >= 8 else 1)
            for k in range(length):
                sums[k % len(sums)] = product(str(k), sums[k % len(sums)])
        else:
            count = side_by_side(length)

            def turn(k: str, carried: list[str]) -> list[str]:
                found = []
                for u in range(count):
                    further = k if u == 0 else text.value(f"add nsw i64 {k}, {u}")
                    found.append(product(further, carried[u]))
                return found

            end = emitter.numbers.name((at, "length"), "i64", length) or length
            sums = text.loop(0, end, count, [(whole, zero)] * count, turn)
        while len(sums) > 1:
            sums = [
                text.value(f"fadd {whole} {sums[i]}, {sums[i + 1]}")
                for i in range(0, len(sums), 2)
            ]
        return sums[0]

    def _place_in_row(self, access: Access, step: int | str, k: str) -> str:
        """The address of an element of a row, which is `k` steps after its first one."""
        if isinstance(step, int) and not k.startswith("%"):
            return self.emitter.address(access, self.indices, fixed=int(k) * step)
        if k == "0" or step == 0:
            return self.emitter.address(access, self.indices)
        more = k if step == 1 else self.text.value(f"mul nsw i64 {k}, {step}")
        return self.emitter.address(access, self.indices, more)

    def distance(
        self,
        chosen: list[str],
        kinds: list[str],
        steps: Sequence[int],
        lengths: Sequence[int],
        width: int,
    ) -> str:
        """How far from the start computed indices lead; those out of range set the flag."""
        text = self.text
        whole, flags = vector("i64", width), vector("bool", width)
        total = None
        outside = None
        for value, kind, step, length in zip(chosen, kinds, steps, lengths, strict=True):
            if SIZES[kind] < 8:
                word = "sext" if is_signed(kind) else "zext"
                value = text.value(f"{word} {vector(kind, width)} {value} to {whole}")
            place = self.emitter.numbers.place("i64", length)
            size = self.emitter.splat(name_of_number(place), "i64", width)
            zero = lanes("0", "i64", width)
            negative = text.value(f"icmp slt {whole} {value}, {zero}")
            wrapped = text.value(f"add {whole} {value}, {size}")
            value = text.value(f"select {flags} {negative}, {whole} {wrapped}, {whole} {value}")
            beyond = text.value(f"icmp uge {whole} {value}, {size}")
            outside = beyond if outside is None else text.value(f"or {flags} {outside}, {beyond}")
            value = text.value(f"select {flags} {beyond}, {whole} {zero}, {whole} {value}")
            part = text.value(f"mul nsw {whole} {value}, {lanes(str(step), 'i64', width)}")
            total = part if total is None else text.value(f"add nsw {whole} {total}, {part}")
        assert outside is not None and total is not None
        any_set = outside
        if width > 1:
            bits = text.value(f"bitcast {flags} {outside} to i{width}")
            any_set = text.value(f"icmp ne i{width} {bits}, 0")
        k = text.fresh()
        text.seldom(any_set, f"wrong{k}", f"right{k}")
        text.begin(f"wrong{k}")
        flag = text.value("load ptr, ptr %bases")
        text.do(f"store i64 1, ptr {flag}")
        text.do(f"br label %right{k}")
        text.begin(f"right{k}")
        return total

    def _gather(self, kind: str, args: tuple) -> str:
        """Elements at computed places."""
        access, steps, lengths, *operands = args
        text, width = self.text, self.width
        kinds = [self.loop.body.kind(i) for i in operands]
        lane = self.emitter.last_step(access)
        along_rows = width > 1 and all(i in self.rows.values for i in operands)
        if width == 1 or (along_rows and lane):
            chosen = [self.rows.values.get(i, self.known[i]) for i in operands]
            more = self.distance(chosen, kinds, steps, lengths, 1)
            place = self.emitter.address(access, self.indices, more)
            return self.emitter.load(place, kind, width, lane)
        chosen = [self.known[i] for i in operands]
        offsets = self.distance(chosen, kinds, steps, lengths, width)
        place = self.emitter.address(access, self.indices)
        base, whole = MEMORY[kind], in_memory(kind, width)
        result = "poison"
        for i in range(width):
            at = text.value(f"extractelement {vector('i64', width)} {offsets}, i64 {i}")
            if lane and i:
                way = i * lane if isinstance(lane, int) else text.value(f"mul nsw i64 {lane}, {i}")
                at = text.value(f"add nsw i64 {at}, {way}")
            at = text.value(f"getelementptr {base}, ptr {place}, i64 {at}")
            value = text.value(f"load {base}, ptr {at}, align {SIZES[kind]}")
            result = text.value(f"insertelement {whole} {result}, {base} {value}, i64 {i}")
        return self.emitter.from_memory(result, kind, width)
