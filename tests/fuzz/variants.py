"""Other forms of a program, each of which takes one reason for a difference away.

Where both libraries agree without a reason, that reason explains the difference. A program may have
two of them, or more.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import wengert
from fuzz.by_hand import USES, as_functions, by_hand
from fuzz.comparison import Difference
from fuzz.declared.looking import changes, is_refused_change, refused, refused_by_us
from fuzz.declared.origins import OTHER_VIEWS
from fuzz.judging import MINOR, READS_LAYOUT, first_difference, left_over
from fuzz.program import Program, Step
from fuzz.runner import Seen, execute
from fuzz.second_opinion import (
    PRODUCTS,
    Copying,
    Forward,
    InRows,
    SecondOpinion,
    away_from_zero,
    by_own_dtype,
    cloned,
    conjugated_at_once,
    of_rows,
    with_copies,
    with_rows,
    without_zeros_of_no_sign,
)

#: Fields that what is computed decides.
COMPUTED = ("values", "grad", "value", "log")
#: What makes tangents.
FORWARD = ("enter_dual_level", "jvp", "jacfwd", "hessian", "linearized")


@dataclass(frozen=True)
class Variant:
    """Another form of a program, and of the libraries that it is run on.

    `applies` says which differences it may explain. The steps of the program are rewritten by
    `source`, it sees a library through `library`, and nodes may save copies of tensors, so that
    later changes do not matter.
    """

    applies: Callable[[Difference], bool]
    source: Callable[[str], str] = str
    library: Callable[[Any], Any] = lambda lib: lib
    plain: bool = False
    saves_copies: bool = False
    on: tuple[str, ...] = ("torch",)


def uses(pattern: str | re.Pattern) -> Callable[[Difference], bool]:
    return lambda d: bool(re.search(pattern, d.program.text))


def is_computed(d: Difference, pattern: str) -> bool:
    """Whether what is computed differs, in a program with this pattern."""
    return d.field in COMPUTED and bool(re.search(pattern, d.program.text))


def in_forward_mode(d: Difference) -> bool:
    """Whether PyTorch may have read tangents that it has overwritten, or shares with others."""
    # Such a tangent may be a view, which a change of the other one spoils, or it refuses to read an
    # operand that it has changed.
    spoiled = refused(
        d,
        "another view of its base has been modified inplace",
        "output of a function that returns multiple views",
    )
    return d.program.uses(*FORWARD) and (d.field in COMPUTED or is_refused_change(d) or spoiled)


def hears_nameless_base(d: Difference) -> bool:
    """Whether a hook may be on a view that PyTorch makes of a result without a name.

    A change in place leads past such a hook.
    """
    heard = d.field in ("log", "grad") or d.field == "error" and "register_" in d.program.text
    return heard and bool(OTHER_VIEWS.search(d.program.text)) and changes(d)


def changes_by_other_dtype(d: Difference) -> bool:
    """Whether a tensor may have got a tangent of another dtype than its own in PyTorch."""
    if not d.program.uses(*FORWARD) or not CHANGE.search(d.program.text):
        return False
    return d.field in COMPUTED or refused(d, "to have the same dtype, but got", "dtypes match, got")


def in_second_derivatives(d: Difference) -> bool:
    """Whether we alone refuse a change of what the graph of a gradient has saved."""
    recorded = re.search(r"create_graph=True|derivatives\(.*, [23]\)", d.program.text)
    return bool(recorded) and refused_by_us(d, "modified by an inplace operation")


def records_what_was_filled(d: Difference) -> bool:
    """Whether PyTorch alone refuses the gradient of the tangent of what was filled."""
    return bool(FILLS.search(d.program.text)) and is_refused_change(d)


#: A method that fills a tensor with one number.
FILLS = re.compile(r"\.(?:zero_\(|fill_\(([^()]*))\)")
#: What makes a transform, in which hooks do not see what is saved.
TRANSFORMS = re.compile(r"\b(torch\.func|vmap|jacobian|linearized)\b")
#: Methods and properties that PyTorch returns lazily conjugated tensors from.
LATE = re.compile(r"\b([a-z]\d+)\.(conj\(\)|adjoint\(\)|m?H\b)")
#: A change of a tensor, and what it is changed by.
CHANGE = re.compile(r"^(.*(?:\.\w+_\(| [-+*/%]{1,2}= |\] = ))(.*)$", re.MULTILINE)
#: A method that changes the values of a tensor by a function, and an operator that does.
METHOD = re.compile(
    r"\b(t\d+|x)\.(?!copy|requires_grad|zero|fill|set|resize|detach|as_strided|unsqueeze|squeeze|t_|"
    r"transpose|swap)([a-z]\w*)_\((.*)\)$",
    re.MULTILINE,
)
OPERATOR = re.compile(r"\b(t\d+|x) ([-+*/%]{1,2})= (.*)$", re.MULTILINE)
#: A copy into a tensor.
COPY = re.compile(r"\b([a-z]\d+)\.copy_\(([a-z]\d+)\)")
#: A product of matrices as an expression, and as a method.
MATMUL = re.compile(r"\b([a-z]\d+) @ ([a-z]\d+)")
PRODUCT = re.compile(rf"\b([a-z]\d+)\.({PRODUCTS})\(")
PRELU = re.compile(r"\b([a-z]\d+)\.prelu\(")
BOTH = ("torch", "wengert")

#: In the order in which they change the source and the library.
VARIANTS = (
    # Functions are computed from their definitions.
    Variant(uses(USES), as_functions, by_hand),
    # Conjugates are computed at once.
    Variant(
        uses(r"conj|H\b|adjoint|\bihfft"),
        lambda source: LATE.sub(r"\1.\2.resolve_conj()", source),
        conjugated_at_once,
    ),
    # Zeros have a sign, or are none.
    Variant(
        lambda d: is_computed(d, rf"fft\w?\(|stft\(|cholesky|inv\b|solve| @ |\b{PRODUCTS}\("),
        lambda source: PRODUCT.sub(r"torch.\2(\1, ", MATMUL.sub(r"torch.matmul(\1, \2)", source)),
        without_zeros_of_no_sign,
        on=BOTH,
    ),
    Variant(
        lambda d: is_computed(d, r"\bprelu\("),
        lambda source: PRELU.sub(r"torch.prelu(\1, ", source),
        away_from_zero,
        on=BOTH,
    ),
    # Operands of losses lie in row-major order, and so do their derivatives.
    Variant(lambda d: refused(d, "grad_input must be contiguous"), library=of_rows),
    # Results lie in row-major order, so that views by strides see the same elements.
    Variant(
        lambda d: d.field not in MINOR and bool(READS_LAYOUT.search(d.program.text)),
        with_rows,
        InRows,
        on=BOTH,
    ),
    # Reverse mode and loops stand in place of transforms.
    Variant(uses(TRANSFORMS), library=SecondOpinion, plain=True),
    # Tensors are computed from copies, so that no two share their tangent, none is saved and none
    # is a view of what has no name.
    Variant(
        lambda d: in_forward_mode(d) or is_refused_change(d) or hears_nameless_base(d),
        with_copies,
        Copying,
    ),
    # Tensors are changed by copies of operands.
    Variant(
        in_forward_mode,
        lambda source: CHANGE.sub(lambda change: change[1] + cloned(change[2]), source),
    ),
    # What is written to a tensor is computed apart, so that it is not what a rule has saved.
    Variant(
        lambda d: is_refused_change(d) and uses(TRANSFORMS)(d),
        lambda source: OPERATOR.sub(
            r"\1.copy_(\1 \2 (\3))", METHOD.sub(r"\1.copy_(\1.\2(\3))", source)
        ),
    ),
    # The product with the Jacobian is not taken as the derivative of one with its transpose.
    Variant(lambda d: is_computed(d, r"functional\.jvp\("), library=Forward),
    # What is written to a tensor is of its dtype, and so is its tangent.
    Variant(
        lambda d: d.program.uses(*FORWARD) and bool(COPY.search(d.program.text)),
        lambda source: COPY.sub(r"\1.copy_(\2.to(\1.dtype))", source),
    ),
    Variant(changes_by_other_dtype, by_own_dtype),
    # Copies are saved, so that it does not matter which of operands and results a rule reads.
    Variant(
        lambda d: (is_refused_change(d) or is_computed(d, r"\.data\b")) and not uses(TRANSFORMS)(d),
        saves_copies=True,
    ),
    Variant(
        lambda d: is_computed(d, r"\.data\b") or d.field == "log" and is_refused_change(d),
        saves_copies=True,
        on=BOTH,
    ),
    Variant(in_second_derivatives, saves_copies=True, on=("wengert",)),
    # What is filled is a product with zero, whose tangent is recorded.
    Variant(
        records_what_was_filled,
        lambda source: FILLS.sub(lambda fill: f".mul_(0).add_({fill[1] or 0})", source),
        on=("wengert",),
    ),
)


def left_by_variants(
    found: Difference, ours: list[Seen], theirs: list[Seen], torch: Any
) -> Iterator[Difference | None]:
    """What differs without one reason, without two or three, and without all of them."""
    return (left_by(variants, found, ours, theirs, torch) for variants in combinations(found))


def combinations(found: Difference) -> Iterator[tuple[Variant, ...]]:
    """The variants that may explain a difference: one by one, by twos and threes, all together."""
    fitting = tuple(variant for variant in VARIANTS if variant.applies(found))
    for count in (1, 2, 3):
        yield from itertools.combinations(fitting, count)
    if len(fitting) > 3:
        yield fitting


def left_by(
    variants: tuple[Variant, ...], found: Difference, ours: list[Seen], theirs: list[Seen],
    torch: Any,
) -> Difference | None:  # fmt: skip
    """In what the libraries differ on the program in this form.

    Nodes and memory are those of the variant, unless it is these that differ.
    """
    program = found.program
    if any("wengert" in variant.on for variant in variants):
        ours = run(program, wengert, variants)
    again = theirs
    if any("torch" in variant.on for variant in variants):
        again = run(program, torch, variants)
    if found.field in MINOR:
        return first_difference(program, ours, again)[0]
    return left_over(program, ours, theirs, list(again))


def run(program: Program, lib: Any, variants: tuple[Variant, ...]) -> list[Seen]:
    """What is seen of a program in the form that these variants give it on a library."""
    variants = tuple(variant for variant in variants if lib.__name__ in variant.on)
    steps, through = [step.source for step in program.steps], lib
    for variant in variants:
        steps = [variant.source(source) for source in steps]
        through = variant.library(through)
    changed = Program([Step(source) for source in steps], program.ours)
    plain = any(variant.plain for variant in variants)
    saving: Any = contextlib.nullcontext()
    if any(variant.saves_copies for variant in variants):
        saving = lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)
    with saving:
        return execute(changed, lib, plain, through=through)
