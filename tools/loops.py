"""Writes the vector loops of the eager path in C, from the operators' scalar forms.

`python tools/loops.py FOLDER` writes C files for backends/vector_loops.pyx: one loop for each
elementwise operator that has a scalar form, and one for each gradient rule that comes down to such
forms. setup.py runs it before it compiles; it needs the uncompiled package, NumPy and SciPy:
without SciPy, gradients that call its functions have no loops.

There is one file for each instruction set and precision, with the same loops: they are written with
the macros of backends/vectors.h.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np

import wengert
from wengert.compiler import HOLE, trace
from wengert.compiler.native.forms import Form, Operand, form_of
from wengert.core.registry import operators
from wengert.core.scalar.expressions import (
    DTYPES,
    Expressions,
    Scalar,
    Unsupported,
    number,
    operands_of,
)
from wengert.core.scalar.functions import code_of
from wengert.core.scalar.namespace import scalar_namespace
from wengert.dispatch.operator import Operator
from wengert.tape.plans import OUT_SLOT, SHAPE_SLOT, rule_reads, slot_of

KINDS = {"f32": "i32", "f64": "i64"}
#: Values of arguments that are no numbers, for which there are loops beside that of the default.
OTHER_LITERALS = {"approximate": ["tanh"]}
#: Exponents for which a power is products, quotients or a root.
EXPONENTS = (2, 3, 4, -1, -2, 0.5, 5, 6, -3)
#: Forms longer than this are left to NumPy: few programs use them, and they are slow to compile.
LONGEST = 260
#: Operators on elements that are not declared as such: their rules differ for complex numbers.
OTHER_ELEMENTWISE = {"abs", "sgn"}
#: Operators that are seldom used and no slower in NumPy.
LEFT_OUT = {
    "_gamma_sample", "_times_log", "_rsub_tensor", "copysign", "ldexp", "heaviside",
    "nan_to_num", "hardshrink", "floor", "ceil", "trunc",
    "round", "deg2rad", "rad2deg", "frac", "sign",
    "sgn",
}  # fmt: skip


class Loop(NamedTuple):
    """A loop: its key, the values of arguments that it holds for, and its form for each type.

    The key is the operator's name, or that and the name of the argument it is the gradient by.
    `roles` has a letter for each value that the loop is given: an array of floats or of bools, a
    number or a literal.
    """

    key: str
    roles: str
    literals: tuple[tuple[int, Any], ...]
    forms: dict[str, Form]


def loops() -> list[Loop]:
    """The loops of all elementwise operators and of their gradients."""
    found = []
    for name, operator in sorted(operators().items()):
        element = getattr(getattr(operator, "kernel", None), "element", None)
        if element is not None:
            found += _element_loop(operator, element)
        if not isinstance(operator, Operator):
            continue
        if operator.family != "elementwise" and name not in OTHER_ELEMENTWISE:
            continue
        if operator.outputs != 1:
            continue
        found += _variants(name, operator, None)
        for argument, rule in operator.rules.items():
            if rule is not None:
                found += _variants(f"{name}.{argument}", operator, rule)
    return found


def _element_loop(operator: Any, element: Any) -> list[Loop]:
    """The loop of a loss before its reduction, under the name of its kernel."""
    types = {"Tensor": "a", "Tensor?": "l"}  # what may be missing is missing
    roles = [types.get(a.type, "n") for a in operator.schema.arguments[:-1]]
    given = [i for i, role in enumerate(roles) if role != "l"]
    forms = {}
    try:
        for kind in KINDS:
            block = Expressions()
            operands: list[Any] = [None] * len(roles)
            for place, i in enumerate(given):
                at = block.write("input", kind, place)
                operands[i] = Scalar(block, at, 0 if roles[i] == "n" else 1)
            with np.errstate(all="ignore"):
                out = element(scalar_namespace, *operands)
            forms[kind] = Form(block.code, [out.at], [kind] * len(given))
            _check(forms[kind], kind)
    except Exception as error:  # as in `form_of`: a function that cannot do with elements
        del error
        return []
    held = tuple((i, None) for i, role in enumerate(roles) if role == "l")
    return [Loop(operator.kernel.loop_key, "".join(roles), held, forms)]


def _variants(key: str, operator: Any, rule: Any) -> list[Loop]:
    if key in LEFT_OUT:
        return []
    arguments = operator.schema.arguments
    if rule is None:
        given = list(arguments)
    else:
        given = []
        for read in rule_reads(rule):
            slot = slot_of(operator, read)
            if slot >= SHAPE_SLOT:
                return []
            given.append(arguments[slot] if slot > OUT_SLOT else None)
    made = []
    for literals in _exponents(given) if key in ("pow", "pow.self") else _literal_choices(given):
        for numbers_vary in (True, False):
            loop = _loop(key, operator, rule, given, literals, numbers_vary)
            if loop is not None:
                made.append(loop)
                break
    return made


def _literal_choices(given: list) -> list[dict[int, Any]]:
    """The values of those arguments that are no operands: the defaults, and others by name."""
    usual = {
        i: a.default
        for i, a in enumerate(given)
        if a is not None and a.type not in ("Tensor", "Scalar", "float", "number")
    }
    optional = [i for i in usual if given[i].type == "Tensor?"]
    if optional:  # the loops for fewer operands first
        return [
            {i: v for i, v in usual.items() if i not in present}
            for count in range(len(optional) + 1)
            for present in combinations(optional, count)
        ]
    choices = [usual]
    for i in usual:
        choices += [{**usual, i: v} for v in OTHER_LITERALS.get(given[i].name, [])]
    return choices


def _exponents(given: list) -> list[dict[int, Any]]:
    place = next(i for i, a in enumerate(given) if a is not None and a.name == "exponent")
    return [{place: value} for value in EXPONENTS]


def _loop(
    key: str, operator: Any, rule: Any, given: list, literals: dict, numbers_vary: bool
) -> Loop | None:
    roles = []
    held = dict(literals)
    for i, a in enumerate(given):
        if i in literals:
            roles.append("l")
        elif a is None or a.type in ("Tensor", "Tensor?"):
            roles.append("b" if a is not None and a.name == "condition" else "a")
        elif numbers_vary:
            roles.append("n")
        else:
            roles.append("l")
            held[i] = a.default
    if any(not isinstance(v, (int, float, str, type(None))) for v in held.values()):
        return None
    forms = {}
    try:
        for kind in KINDS:
            make = _form if rule is None else _rule_form
            form = make(operator, rule, roles, held, kind)
            _check(form, kind)
            forms[kind] = form
    except Unsupported:
        return None
    shown = roles if rule is None else ["a", *roles]
    shift = 0 if rule is None else 1
    return Loop(key, "".join(shown), tuple((i + shift, v) for i, v in held.items()), forms)


def _form(operator: Any, rule: None, roles: list, held: dict, kind: str) -> Form:
    """The kernel on elements."""
    arguments = [
        held[i] if role == "l" else Operand("bool" if role == "b" else kind, role == "n")
        for i, role in enumerate(roles)
    ]
    return form_of(operator, arguments, [DTYPES[kind]])


def _rule_form(operator: Any, rule: Any, roles: list, held: dict, kind: str) -> Form:
    """A gradient rule on elements: the forms of the operators that it calls, one after another."""
    dtype = getattr(wengert, DTYPES[kind].name)
    inputs = [wengert.ones(3, dtype=dtype)]
    inputs += [
        wengert.ones(() if role == "n" else 3, dtype=wengert.bool if role == "b" else dtype)
        for role in roles
        if role != "l"
    ]

    def run(t: Any, *values: Any) -> Any:
        rest = iter(values)
        reads = [held[i] if role == "l" else next(rest) for i, role in enumerate(roles)]
        return rule(t, *reads)

    try:
        graph = trace(run, *inputs)
    except Exception as error:
        raise Unsupported(f"{type(error).__name__}: {error}") from None
    graph = getattr(graph, "graph", graph)
    block = Expressions()
    kinds = [kind, *["bool" if role == "b" else kind for role in roles if role != "l"]]
    places: dict[Any, int] = {
        value: block.write("input", kinds[i], i) for i, value in enumerate(graph.inputs)
    }
    sizes = {value: value.type.shape for value in graph.inputs}
    for node in graph.nodes():
        called = node.operator if hasattr(node, "operator") else None
        if called is None or not (
            getattr(called, "broadcasts", False) or called.name in OTHER_ELEMENTWISE
        ):
            raise Unsupported(f"{node.kind} is no operator on elements")
        operands = iter(node.inputs)
        arguments, read = [], []
        for a in node.arguments:
            if a is HOLE:
                value = next(operands)
                read.append(places[value])
                arguments.append(Operand(block.kind(places[value]), sizes[value] == ()))
            else:
                arguments.append(a)
        (out,) = node.outputs
        form = form_of(called, arguments, [np.dtype(out.type.dtype.numpy)])
        places[out] = block.replay(form.code, read)[form.results[0]]
        sizes[out] = out.type.shape
    (result,) = graph.outputs
    if result not in places or sizes[result] != (3,):
        raise Unsupported("the result is no array of elements")
    return Form(block.code, [places[result]], kinds)


def _check(form: Form, kind: str) -> None:
    """Raise for forms that vectors of one width do not compute, or that do not pay."""
    live = _live(form)
    if len(live) > LONGEST:
        raise Unsupported("too long")
    if form.code[form.results[0]][0] in ("input", "const"):
        raise Unsupported("nothing to compute")
    if form.code[form.results[0]][1] != kind:
        raise Unsupported("a result of another type")
    for i in live:
        name, own, args = form.code[i]
        if own not in (kind, KINDS[kind], "bool"):
            raise Unsupported(f"{own} beside {kind}")
        if name in ("call", "load", "gather", "dot"):
            raise Unsupported(f"{name} in a loop")
        if name in ("shl", "shr", "sar") and form.code[args[1]][0] != "const":
            raise Unsupported("a shift by what is not known")


def _live(form: Form) -> list[int]:
    """The instructions that a result needs, in order."""
    needed = set(form.results)
    for i in reversed(range(len(form.code))):
        if i in needed:
            extremum = _extremum(form, i)
            needed.update(operands_of(form.code[i]) if extremum is None else extremum[1:])
    return sorted(needed)


def _extremum(form: Form, at: int) -> tuple[str, int, int] | None:
    """The macro and the operands of the larger or lesser of two floats as `maximum` writes it:
    the first where it is that or no number, else the second. None for anything else."""
    name, own, args = form.code[at]
    if name != "select" or own not in KINDS:
        return None
    condition, first, second = args
    name, own, either = form.code[condition]
    if name != "or" or own != "bool":
        return None
    (name, _, compared), (other, _, unordered) = [form.code[place] for place in either]
    if (name, other) != ("cmp", "cmp") or unordered != ("uno", first, first):
        return None
    macro = {"gt": "MAXIMUM", "lt": "MINIMUM"}.get(compared[0])
    if macro is None or compared[1:] != (first, second):
        return None
    code, own, value = form.code[first]
    known = code == "const" and number(value[0], own) == number(value[0], own)
    return macro if known else macro + "_OR_NAN", first, second


# Text ---------------------------------------------------------------------------------------------

_FLOATS = {"add", "sub", "mul", "div", "neg", "abs", "sqrt", "rint", "floor", "ceil", "trunc",
           "copysign", "fma", "scale"}  # fmt: skip


def _text(loop: Loop, place: int, kind: str) -> str:
    form = loop.forms[kind]
    real = {"f32": "float", "f64": "double"}[kind]
    used = {form.code[i][2][0] for i in _live(form) if form.code[i][0] == "input"}
    roles = [role for role in loop.roles if role != "l"]
    head, inside = [], []
    arrays = numbers = 0
    for i, role in enumerate(roles):
        if role == "a":
            if i in used:
                head.append(f"const {real}* a{i} = (const {real}*)in[{arrays}];")
                inside.append(f"FLOATS x{i} = LOAD(a{i} + i, n - i);")
            arrays += 1
        elif role == "b":
            if i in used:
                head.append(f"const char* a{i} = in[{arrays}];")
                inside.append(f"TRUTHS x{i} = LOAD_TRUTHS(a{i} + i, n - i);")
            arrays += 1
        else:
            if i in used:
                head.append(f"FLOATS x{i} = CONSTANT(({real})numbers[{numbers}]);")
            numbers += 1
    lines, result = _lines(form, kind)
    body = "\n        ".join([*inside, *lines])
    return (
        f"LOOP({place}) {{\n    {real}* out = ({real}*)to;\n    "
        + "\n    ".join(head)
        + f"\n    for (int64_t i = 0; i < n; i += WIDTH) {{\n        {body}\n        "
        f"STORE(out + i, {result}, n - i);\n    }}\n}}\n"
    )


def _lines(form: Form, kind: str) -> tuple[list[str], str]:
    """The statements of a form, of whose inputs the names are x0, x1 ..., and its result."""
    lines = []
    names: dict[int, str] = {}
    for at in _live(form):
        name, own, args = form.code[at]
        if name == "input":
            names[at] = f"x{args[0]}"
            continue
        extremum = _extremum(form, at)
        if extremum is None:
            text = _instruction(form, name, own, args, names, kind)
        else:
            text = f"{extremum[0]}({names[extremum[1]]}, {names[extremum[2]]})"
        type_ = "TRUTHS" if own == "bool" else "FLOATS" if own == kind else "INTEGERS"
        lines.append(f"{type_} v{at} = {text};")
        names[at] = f"v{at}"
    return lines, names[form.results[0]]


def _instruction(form: Form, name: str, own: str, args: tuple, names: dict, kind: str) -> str:
    if name == "const":
        value = number(args[0], own)
        if own == "bool":
            return f"TRUTH({int(value)})"
        return f"CONSTANT({_float(value, kind)})" if own == kind else f"INTEGER({value})"
    if name == "cmp":
        relation, *pair = args
        of = form.code[pair[0]][1]
        prefix = {kind: "", "bool": "TRUTHS_"}.get(of, "INTEGERS_")
        return f"{prefix}{relation.upper()}({', '.join(names[a] for a in pair)})"
    if name == "rescue":
        function, *rest = args
        return f"RESCUE({function}, {', '.join(names[a] for a in rest)})"
    if name in ("shl", "shr", "sar"):
        count = number(form.code[args[1]][2][0], own)
        return f"INTEGERS_{name.upper()}({names[args[0]]}, {count})"
    values = ", ".join(names[a] for a in args)
    source = form.code[args[0]][1]
    if name == "select":
        prefix = {kind: "", "bool": "TRUTHS_"}.get(own, "INTEGERS_")
        return f"{prefix}SELECT({values})"
    if name == "convert":
        if source == "bool":
            chosen = "SELECT" if own == kind else "INTEGERS_SELECT"
            one, zero = ("CONSTANT", "CONSTANT") if own == kind else ("INTEGER", "INTEGER")
            return f"{chosen}({values}, {one}(1), {zero}(0))"
        return f"{'TO_FLOATS' if own == kind else 'TO_INTEGERS'}({values})"
    if name == "bits":
        return f"{'AS_FLOATS' if own == kind else 'AS_INTEGERS'}({values})"
    if own == "bool":
        return f"TRUTHS_{name.upper()}({values})"
    if own == kind and name not in _FLOATS:
        raise Unsupported(f"{name} of floats")
    return f"{'' if own == kind else 'INTEGERS_'}{name.upper()}({values})"


def _float(value: float, kind: str) -> str:
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return float(value).hex() + ("f" if kind == "f32" else "")


#: Instruction sets in the order of the table, by the numbers that backends/vectors.h knows.
SETS = (4, 3, 0)
#: Functions of one vector, for the fused loops that are written by hand.
INLINE = ("exp", "log")
GUARD = "#if defined(__x86_64__) && defined(__GNUC__)\n"


def _inline(name: str, kind: str) -> str:
    """A function of scalar expressions as a function of vectors."""
    code = code_of(name, kind)
    form = Form(code, [len(code) - 1], [kind])
    lines, result = _lines(form, kind)
    body = "\n    ".join([*lines, f"return {result};"])
    return f"static inline TARGET FLOATS wengert_{name}(FLOATS x0) {{\n    {body}\n}}\n"


def loops_of_set(found: list[Loop], number: int, kind: str) -> str:
    """The C file of all loops for an instruction set and a precision."""
    names = ", ".join(f"loop_{place}" for place in range(len(found)))
    return "".join([
        f"/* Written by tools/loops.py. */\n{GUARD if number else '#if 1'}\n"
        f"#define WENGERT_SET {number}\n#define WENGERT_{kind.upper()}\n"
        '#include "vectors.h"\n#include "vector_loops.h"\n',
        *[_inline(name, kind) for name in INLINE],
        '#include "rows.h"\n#include "strips.h"\n#include "products.h"\n'
        '#include "panels.h"\n#include "programs.h"\n',
        *[f"/* {x.key} {x.literals or ''} */\n{_text(x, i, kind)}" for i, x in enumerate(found)],
        f"const wengert_loop wengert_loops_{number}_{kind}[] = {{{names}}};\n",
        f"const wengert_rows wengert_rows_{number}_{kind} = WENGERT_ROWS;\n#endif\n",
    ])  # fmt: skip


def table(found: list[Loop]) -> str:
    """The C file that has the names of the loops, and where they are."""
    entries = "".join(f'    {{"{x.key}", "{x.roles}", "{x.literals!r}"}},\n' for x in found)
    places = [f"{number}_{kind}" for number in SETS for kind in KINDS]
    missing = "{0, 0}, " * (len(SETS) - 1)
    return (
        '/* Written by tools/loops.py. */\n#include "vector_loops.h"\n'
        f"const wengert_entry wengert_entries[] = {{\n{entries}}};\n"
        f"const int wengert_entry_count = {len(found)};\n"
        + "".join(f"extern const wengert_loop wengert_loops_{x}[];\n"
                  f"extern const wengert_rows wengert_rows_{x};\n" for x in places)
        + f"{GUARD}const wengert_loop* const wengert_loops_of[][2] = {{"
        + ", ".join("{" + ", ".join(f"wengert_loops_{n}_{k}" for k in KINDS) + "}" for n in SETS)
        + "};\nconst wengert_rows* const wengert_rows_of[][2] = {"
        + ", ".join("{" + ", ".join(f"&wengert_rows_{n}_{k}" for k in KINDS) + "}" for n in SETS)
        + f"}};\n#else\nconst wengert_loop* const wengert_loops_of[][2] = {{{missing}"
        "{wengert_loops_0_f32, wengert_loops_0_f64}};\n"
        f"const wengert_rows* const wengert_rows_of[][2] = {{{missing}"
        "{&wengert_rows_0_f32, &wengert_rows_0_f64}};\n#endif\n"
    )  # fmt: skip


def write(folder: Path) -> list[Path]:
    """Write all files into a folder; those that are there already with the same text stay."""
    found = loops()
    texts = {f"loops_{n}_{k}.c": loops_of_set(found, n, k) for n in SETS for k in KINDS}
    texts["loops_table.c"] = table(found)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    return [folder / name for name in texts]


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        print(written)
