"""Differences inside transforms and modes."""

from __future__ import annotations

import re

from fuzz.declared.entry import Declared
from fuzz.declared.looking import (
    after,
    changes,
    has_empty,
    is_gradient,
    raises,
    refused,
    refused_by_us,
)
from fuzz.declared.numbers import numbers
from fuzz.declared.origins import goes_on_plainly, history, strides_of_view_decide

TABLE: list[Declared] = [
    Declared(
        "Inference mode may stand inside a transform.",
        lambda d: refused(d, "Cannot set version_counter for inference tensor")
        or d.field in ("values", "version") and after(d, "Cannot set version_counter for infer"),
    ),
    Declared(
        "Reverse mode gives gradients of the dtype of their arguments, forward mode tangents of "
        "the dtype of results.",
        lambda d: d.program.ours and d.field == "dtype" and d.program.uses("jacobian"),
    ),
    Declared(
        "Without grad mode nothing is recorded for reverse mode, and forward mode goes on.",
        lambda d: d.program.ours and d.program.uses("jacobian")
        and (d.field == "values" and is_gradient(d)
             or refused_by_us(d, "does not require grad and does not have a grad_fn",
                              "view was created in inference mode"))
        and d.program.uses("no_grad", "set_grad_enabled", "inference_mode"),
    ),
    Declared(
        "Forward mode may change an argument in place, reverse mode may not.",
        lambda d: d.program.uses("jacobian", "linearized") and d.field == "error"
        and any(e and re.search("leaf Variable that requires|modified by an inplace", e.message)
                for e in (d.ours, d.theirs))
        and None in (d.ours, d.theirs)
        # Or it finds later that a value which it has kept was changed.
        or d.program.ours and d.program.uses("jacobian", "linearized") and d.field == "message"
        and ("leaf Variable that requires grad" in d.ours.message
             and "modified by an inplace operation" in d.theirs.message
             or "modified by an inplace operation" in d.ours.message
             and "does not require grad" in d.theirs.message)
        or d.program.ours and d.program.uses("jacobian", "linearized") and bool(d.before)
        and d.field in ("values", "version") and not is_gradient(d) and changes(d),
    ),
    Declared(
        "Of a view by strides, reverse mode sees what its operand shows and changes none that "
        "overlaps itself; forward mode sees and changes memory.",
        lambda d: d.program.ours and d.program.uses("jacobian", "linearized")
        and (d.field == "values" and is_gradient(d) and "as_strided(" in d.program.text
             and strides_of_view_decide(d)
             or refused_by_us(d, "more than one element of the written-to tensor")
             and bool(re.search(r"as_strided\(|expand|broadcast_to\(", d.program.text))),
    ),
    Declared(
        "Gradients that are batched do not escape into .grad.",
        lambda d: d.field == "grad" and "unreadable" in repr(d.theirs),
    ),
    Declared(
        "A batched gradient without elements is a batched one.",
        lambda d: d.field in ("log", "message") and "is_grads_batched=True" in d.source
        and has_empty(d),
    ),
    Declared(
        "Forward mode knows inference tensors: PyTorch's vectorized jacobian of one is zero.",
        lambda d: (d.field in ("values", "value", "dtype") and is_gradient(d)
                   or refused_by_us(d, "setStorage"))  # a tangent of less memory than its primal
        and "strategy='forward-mode'" in d.source and "inference_mode" in history(d),
    ),
    Declared(
        "Batch rules know numbers: PyTorch's of flip and of losses take each example for more.",
        lambda d: d.program.uses("flip", "flipud", "fliplr", "rot90")
        and raises(d, "Dimension out of range")
        or "nansum(" in d.program.text
        and refused(d, "Could not allocate memory to change Tensor SizesAndStrides")
        or "_scatter(" in d.program.text and raises(d, "Expected index")
        or "masked_select(" in d.program.text and raises(d, "split_sizes to sum exactly")
        or "strategy='forward-mode'" in d.source and "cat(" in history(d)
        and raises(d, "Tensors must have same number of dimensions")
        or d.program.uses("vmap", "jacfwd", "hessian", "jacobian")
        and bool(re.search(r"_loss|convolution|linalg\.solve", d.program.text))
        and raises(d, "size of tensor a .* must match the size of tensor b",
                    "Attempting to broadcast a dimension"),
    ),
    Declared(
        "A view that may not be used can leave a transform: using it raises.",
        lambda d: d.program.uses("func", "vmap", "jacobian")
        and refused(d, "its base or another view of its base has been modified inplace")
        # A linear function of it uses it.
        or d.program.ours and d.program.uses("linearized")
        and refused_by_us(d, "its base or another view of its base has been modified inplace"),
    ),
    Declared(
        "A view of a dual tensor that was changed can be changed itself.",
        lambda d: d.program.uses("enter_dual_level")
        and refused(d, "leaf Variable that requires grad"),
    ),
    Declared(
        "vmap computes all examples at once, and raises what the first of them does not.",
        lambda d: d.program.ours and d.program.uses("vmap")
        and (d.field in ("error", "message") and None not in (d.ours, d.theirs)
             or refused(d, "modified by an inplace operation"))
        # Whether such a view is moved once more depends on where its batch dimension is.
        or d.program.uses("vmap")
        and d.program.uses("no_grad", "set_grad_enabled", "inference_mode")
        and refused_by_us(d, "does not require grad and does not have a grad_fn")
        and goes_on_plainly(d),
    ),
    Declared(
        "A tangent has the dtype of its primal.",
        lambda d: d.field == "dtype" and is_gradient(d)
        and (bool(re.search("tangent|strategy='forward-mode'", d.source))
             or d.program.uses("jvp", "jacfwd", "hessian") and changes(d))
        or d.program.uses("enter_dual_level") and refused(d, "expected dtype .* but got dtype"),
    ),
    Declared(
        "A tangent requires grad only where something leads to it.",
        # A view that is made without recording requires grad in PyTorch, and cannot be asked.
        lambda d: d.program.uses("jvp", "jacfwd", "hessian", "linearized")
        and d.program.uses("no_grad", "set_grad_enabled")
        and refused(d, "does not require grad and does not have a grad_fn"),
    ),
    Declared(
        "A tangent that was unpacked stays when its tensor is changed in place.",
        lambda d: d.field in ("values", "version", "shape", "stride", "node")
        and is_gradient(d) and d.source == "end" and d.program.uses("enter_dual_level"),
    ),
    Declared(
        "A result without a batch dimension can go to any of out_dims.",
        lambda d: d.program.uses("out_dims") and refused(d, "expanded size of the tensor")
        or d.program.uses("out_dims") and d.field == "error" and d.theirs is None
        and "Dimension out of range" in d.ours.message  # PyTorch makes sizes up
        or d.program.uses("out_dims") and d.field == "values" and is_gradient(d)
        and numbers(d.ours) == numbers(d.theirs),  # in other places
    ),
    Declared(
        "A tensor that has a value for each example has no .data inside vmap.",
        lambda d: d.field == "error" and d.ours is not None
        and "accessing `data` under vmap" in d.ours.message,
    ),
]  # fmt: skip
