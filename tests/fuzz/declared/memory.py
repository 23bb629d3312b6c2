"""Differences of memory: layouts, views, versions, and what is written or left alone."""

from __future__ import annotations

import re

from fuzz.declared.entry import Declared
from fuzz.declared.looking import (
    ASSIGNED,
    RESHAPED,
    after,
    changes,
    changes_view,
    goes_on,
    has_empty,
    is_gradient,
    makes_overlap,
    raises,
    refused,
    refused_by_us,
)
from fuzz.declared.numbers import only_theirs_nan
from fuzz.declared.origins import history, leading_to, made_by
from fuzz.declared.patterns import CONJUGATES, COPIES, GAPS, MATRICES

TABLE: list[Declared] = [
    Declared(
        "Factors and solutions may lie in memory in another order.",
        lambda d: d.field in ("stride", "offset") and bool(MATRICES.search(made_by(d))),
        harmless=True,
    ),
    Declared(
        "Factors and solutions may lie in memory in another order.",
        lambda d: bool(MATRICES.search(d.program.text))
        and (refused(d, "view size is not compatible", "setStorage")
             or refused_by_us(d, "view size is not compatible", "setStorage")
             or d.program.uses("reshape", "flatten", "contiguous")
             and (refused(d, "modified by an inplace operation")
                  or refused_by_us(d, "modified by an inplace operation"))
             or d.field in ("requires_grad", "leaf", "retains_grad", "inference")
             and d.program.uses("reshape", "flatten", "contiguous")
             or d.field in ("values", "grad") and (d.laid_out or "def f" in d.program.text)
             and (d.program.uses("as_strided")
                  # A view here may be a copy there, which a change tells apart.
                  or d.program.uses("reshape", "flatten", "contiguous") and changes(d))),
    ),
    Declared(
        "Copies with a part replaced, and parts from unsafe_split, have memory of their own.",
        lambda d: d.field in ("stride", "offset", "version") and bool(COPIES.search(made_by(d)))
        or d.field == "values" and bool(GAPS.search(history(d)))
        and bool(re.search(r"_scatter\(", history(d)))
        or d.field in ("values", "grad", "log") and "unsafe_" in d.program.text and changes(d)
        or refused_by_us(d, "setStorage")
        and ("unsafe_" in d.program.text or bool(re.search(r"_scatter\(", history(d))))
        or refused_by_us(d, r"as_strided_scatter\(\): sizes")
        # So has each example of vmap, and not each row of a loop.
        or d.program.ours and refused(d, r"as_strided_scatter\(\): sizes")
        or d.field == "values" and bool(re.search(r"narrow_copy\(.*out=", d.program.text)),
    ),
    Declared(
        "Versions tell that a tensor has changed, not how often its memory was written.",
        lambda d: d.field == "version" and bool(d.ours)
        and (bool(d.theirs) or bool(re.search(r"\bkron\(.*out=", d.program.text))),
        harmless=True,
    ),
    Declared(
        "Results of operands with gaps or overlaps in memory may be laid out in another order.",
        lambda d: d.field == "stride" and bool(GAPS.search(history(d))),
    ),
    Declared(
        "A change of an element that is in several places has the gradient of what it computes.",
        lambda d: (d.field == "values" and is_gradient(d) or d.field in ("grad", "log"))
        and (bool(re.search(r"\.(unfold|as_strided|expand)\(", d.program.text))
             and bool(re.search(r"\.data\b|\.detach\(", d.program.text)) and changes(d)
             or makes_overlap(d) and changes_view(d))
        # Of no places that PyTorch divides by, there is no quotient.
        or (is_gradient(d) and d.field == "values" or d.field in ("grad", "log"))
        and len(re.findall(r"as_strided\(", leading_to(d))) > 1
        and only_theirs_nan(d.ours, d.theirs),
    ),
    Declared(
        "Strides that nothing depends on may differ",
        lambda d: d.field == "stride" and None in d.ours and 1 in d.ours and 1 in d.theirs,
        harmless=True,
    ),
    Declared(
        "Functions that are no views take tensors of every layout.",
        lambda d: ".view(" not in d.source and refused(d, "view size is not compatible")
        or d.field == "values" and "median" in history(d) and bool(GAPS.search(history(d))),
    ),
    Declared(
        "out= of a product of a vector and matrices stays where it lies",
        lambda d: d.field in ("stride", "offset")
        and bool(re.search(r"matmul\(.*out=", history(d))),
        harmless=True,
    ),
    Declared(
        "Writing to out= counts as a change",
        lambda d: d.field == "version" and None not in (d.ours, d.theirs) and d.ours > d.theirs
        and bool(re.search("kron.*out=", d.program.text)),
        harmless=True,
    ),
    Declared(
        "Strides that nothing depends on are not looked at",
        lambda d: raises(d, "must have a stride divisible",
                         "must have a last dimension with stride 1")
        and ("_copy(" in d.source or has_empty(d)),
    ),
    Declared(
        "Inside vmap, and of results, as_strided sees other places in memory.",
        # So does view_as_complex, in PyTorch too, where the batch dimension comes last.
        lambda d: d.program.ours and d.program.uses("vmap")
        and (refused_by_us(d, "must have a last dimension with stride 1")
             or "as_strided" in d.program.text and refused_by_us(d, "setStorage"))
        or "as_strided" in leading_to(d)
        and (d.program.uses("vmap") and (d.field == "values" and is_gradient(d)
                                         or refused(d, "setStorage"))
             or refused_by_us(d, "in forward mode inside vmap, a view made by as_strided")
             or refused_by_us(d, "setStorage")
             and bool(re.search("_loss|_entropy|unique", d.program.text))),
    ),
    Declared(
        "Inside vmap, a product may lie in memory otherwise, so that view() does not fit.",
        lambda d: d.program.uses("vmap") and refused_by_us(d, "view size is not compatible"),
    ),
    Declared(
        "A number as a tensor to the power of a tensor lies in memory as a number to that power.",
        lambda d: d.field in ("stride", "offset") and bool(re.search(r"\*\*|pow", history(d))),
    ),
    Declared(
        "A view of a tensor without elements can be changed where others can, and a view that "
        "was assigned to.",
        lambda d: refused(d, "leaf Variable that requires grad")
        and (has_empty(d) or bool(ASSIGNED.search(d.program.text)) or changes_view(d))
        # Once it is changed, backward finds that this was saved.
        or d.field == "message" and "leaf Variable that requires grad" in d.theirs.message
        and "modified by an inplace operation" in d.ours.message and has_empty(d),
    ),
    Declared(
        "A change that is refused outside inference mode does not happen.",
        lambda d: d.field in ("values", "shape", "stride", "log")
        and after(d, "Inplace update to inference tensor")
        or d.field in ("error", "message") and after(d, "Inplace update to inference tensor")
        and bool(RESHAPED.search(d.program.text))
        # What was to be changed may be refused as it is.
        or after(d, "Inplace update to inference tensor")
        and refused_by_us(d, "should be between 0 and 1")
        or d.field == "message" and "Inplace update to inference tensor" in d.ours.message,
    ),
    Declared(
        "A call with out= that is refused writes nothing.",
        lambda d: d.field in ("values", "version", "shape")
        and after(d, "_out that does not support it because it is an out= function"),
    ),
    Declared(
        "A division of integers by zero, which raises, has changed nothing.",
        lambda d: d.field == "values" and after(d, "ZeroDivisionError|division by zero"),
    ),
    Declared(
        "A compiled function that raises has changed nothing.",
        lambda d: d.field in ("values", "grad", "log") and bool(d.before)
        and not is_gradient(d) and d.program.uses("compiled") and changes(d),
    ),
    Declared(
        "Batched gradients are not written into shared ones, nor into zeros without memory.",
        lambda d: raises(d, "is not possible because there exists a Tensor",
                          "ZeroTensors are immutable", "with unallocated storage"),
    ),
    Declared(
        "A batched value is not written into a tensor that the examples share.",
        lambda d: d.field in ("error", "message") and d.ours is not None
        and "vmap: inplace arithmetic" in d.ours.message,
    ),
    Declared(
        "A dual tensor is no view, and a copy of an inference tensor is none.",
        lambda d: d.field in ("view", "base", "leaf")
        and bool(re.search("make_dual|inference_mode", history(d))),
        harmless=True,
    ),
    Declared(
        "conj() computes, it is not a lazy view.",
        lambda d: raises(d, "unresolved conjugated tensors") and goes_on(d)
        or d.field in ("log", "grad") and after(d, "unresolved conjugated tensors"),
    ),
    Declared(
        "conj() computes, it is not a lazy view.",
        lambda d: d.field in ("view", "base", "node", "offset", "stride", "requires_grad", "leaf",
                              "inference", "version")
        and d.dtype.startswith("complex") and bool(CONJUGATES.search(d.program.text)),
        harmless=True,
        spreads=True,
    ),
]  # fmt: skip
