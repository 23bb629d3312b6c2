"""Differences of what is refused, with which words, and of dtypes."""

from __future__ import annotations

import re

from fuzz.declared.entry import Declared
from fuzz.declared.looking import (
    after,
    goes_on,
    has_empty,
    has_raised,
    kinds,
    raises,
    refused,
    refused_by_us,
)
from fuzz.declared.origins import leading_to

#: Functions that PyTorch computes and then copies to `out=`, in sight of derivatives.
COPIED_TO_OUT = re.compile(
    r"\.(inner|tensordot|(nan)?quantile|ndtr|pinv|matrix_power|(matrix_|nuclear_)?norm|cond|"
    r"tensorinv|tensorsolve)\(.*out="
)

TABLE: list[Declared] = [
    Declared(
        "diff of nothing is nothing, with out= too.",
        lambda d: d.program.uses("diff") and "out=" in d.source
        and refused(d, "start out of range"),
    ),
    Declared(
        "argwhere is refused inside vmap, as nonzero is",
        lambda d: refused_by_us(d, "can output dynamic shape")
        and ("argwhere" in d.program.text or d.program.ours and d.program.uses("vmap")),
    ),
    Declared(
        "No complex32.",
        lambda d: d.field == "dtype" and d.theirs == "complex32",
    ),
    Declared(
        "A rounded quotient has the derivative zero.",
        lambda d: d.field in ("error", "message") and d.theirs is not None
        and "derivative for aten::floor_divide" in d.theirs.message
        # Its node is the first to run, so less is done when another one raises.
        or d.field in ("grad", "log") and bool(d.before)
        and bool(re.search(r"//|floor_divide|rounding_mode='floor'", d.program.text)),
    ),
    Declared(
        "Operators compute dtypes and derivatives that PyTorch has not implemented.",
        lambda d: raises(d, "not implemented", "does not support automatic differentiation",
                          "not supported", "does not support it",
                          "does not yet have a batching rule", "isn't supported yet",
                          r"calling .item\(\) on a Tensor",
                          "Expected a proper Tensor but got None", "but got .*Half")
        and goes_on(d)
        or raises(d, "derivative for .* is not implemented", "AD with .* does not support it",
                   "does not support automatic differentiation for outputs",
                   "Batching rule not implemented")
        # Another node raises here, once more is done.
        or d.field in ("grad", "log") and after(d, "not implemented for")
        # What has no derivative has saved nothing that backward could free.
        or "acosh_(" in d.program.text and refused_by_us(d, "through the graph a second time"),
    ),
    Declared(
        "What PyTorch refuses as not implemented is refused as a RuntimeError, or the other way.",
        lambda d: d.field == "message"
        and bool(re.search("not supported|not implemented for", d.ours.message))
        or d.field == "error" and set(kinds(d)) == {"RuntimeError", "NotImplementedError"},
        harmless=True,
    ),
    Declared(
        "A gradient has the shape of its value: PyTorch loses track where src exceeds index.",
        lambda d: (raises(d, r"Function \w*Scatter\w* returned an invalid gradient at index",
                          # So it does where there is no index.
                          r"returned an invalid gradient at index \d - got \[(.*, )?0[,\]]")
                   or raises(d, "CopySlices returned an invalid gradient at index")
                   and d.program.uses("scatter_", "scatter_add_", "scatter_reduce_"))
        and goes_on(d),
    ),
    Declared(
        "A vectorized jacobian may have no elements.",
        lambda d: d.program.uses("jacobian", "jacfwd", "hessian", "jacrev")
        and d.field == "error" and d.theirs is not None
        and bool(re.search(r"index 0 (is )?out of|stack expects a non-empty|"
                           r"optional 0 dim batch size for input", d.theirs.message)),
    ),
    Declared(
        "An operand keeps its shape when it is changed in place",
        lambda d: d.field == "shape" and "addbmm_" in leading_to(d) and has_raised(d, "")
        or "addbmm_" in leading_to(d) and has_raised(d, "doesn't match the broadcast shape")
        and (refused_by_us(d, "doesn't match the broadcast shape") or d.field == "shape"
             or d.field == "message" and "doesn't match the broadcast shape" in d.ours.message
             # PyTorch refuses a tangent of another shape when the value has one already.
             or after(d, "doesn't match the broadcast shape")),
    ),
    Declared(
        "Rules work on tensors without elements.",
        lambda d: (refused_by_us(d, r"calling .tolist\(\) on a Tensor")
                   or raises(d, "cannot reshape tensor of 0 elements",
                             r"max\(\): Expected reduction dim", "FFT error"))
        and has_empty(d),
    ),
    Declared(
        "What PyTorch refuses may go on here to another error.",
        lambda d: d.field == "error" and None not in (d.ours, d.theirs)
        and d.program.uses("out_dims") and "Dimension out of range" in d.ours.message
        or d.field == "message" and "Inference tensors cannot be" in d.theirs.message
        and bool(re.search("should be between 0 and 1|shapes cannot be mult|the broadcast shape|"
                           "must match the size of tensor", d.ours.message)),
    ),
    Declared(
        "A derivative that is missing is missed behind a changed part too.",
        lambda d: ("inputs=" in d.source or "autograd.grad(" in d.source)
        and refused_by_us(d, "the derivative for .* is not impl"),
    ),
    Declared(
        "The dtypes are fifteen.",
        lambda d: "complex32" in (d.ours, d.theirs),
    ),
    Declared(
        "A dtype that an operator has no kernel for is refused, also where there is nothing to do.",
        lambda d: refused_by_us(d, "not implemented for")
        and (has_empty(d) or bool(re.search(r"kthvalue\(|argwhere|nonzero", d.program.text)))
        # So is what shares memory.
        or refused_by_us(d, "refer to a single memory location") and has_empty(d)
        or d.field in ("error", "message") and d.ours is not None
        and "can't be cast to the desired output type Bool" in d.ours.message
        and bool(re.search(r"\.cum(sum|prod)_\(", d.program.text)),
    ),
    Declared(
        "out= is accepted in every form of a call.",
        lambda d: "out=" in d.source and d.field == "error" and d.theirs is not None
        and bool(re.search("invalid combination of|must be Tensor, not", d.theirs.message)),
    ),
    Declared(
        "A gradient too many is an error.",
        lambda d: d.field == "error" and d.theirs is None
        and bool(re.search(r"got \d+ tensors and \d+ gradients", d.ours.message)),
    ),
    Declared(
        "Every function with out= refuses arguments that require grad or have tangents.",
        lambda d: d.field == "error" and d.ours is not None
        and "arguments don't support automatic differentiation" in d.ours.message
        or refused_by_us(d, "does not support it because it is an out= function")
        and bool(COPIED_TO_OUT.search(d.source)),
    ),
]  # fmt: skip
