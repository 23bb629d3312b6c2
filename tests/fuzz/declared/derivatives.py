"""Differences of values, most of them derivatives that PyTorch has wrong."""

from __future__ import annotations

import re

from fuzz.comparison import COARSEST
from fuzz.declared.entry import Declared
from fuzz.declared.looking import (
    after,
    has_empty,
    has_nan,
    is_gradient,
    not_floating,
    order,
    raises,
    refused,
    refused_by_us,
)
from fuzz.declared.numbers import (
    agree_but_for_nan,
    differ_by_nan,
    nearly,
    numbers_in,
    only_theirs_nan,
)
from fuzz.declared.origins import leading_to, made_by
from fuzz.declared.patterns import HAS_EDGES, MATRICES
from fuzz.declared.tangents import in_forward_mode

#: Functions whose slope at NaN depends on the number of elements in PyTorch.
ACTIVATIONS = re.compile(r"\b(hardtanh|relu6|hardswish|[cs]?elu|(soft|hard)shrink)_?\(")

TABLE: list[Declared] = [
    Declared(
        "vander and as_strided_scatter have derivatives.",
        lambda d: d.program.uses("vander") and refused(d, "modified by an inplace operation"),
    ),
    Declared(
        "What is not a number spreads through a solution as its rows are combined.",
        lambda d: d.field in ("values", "grad", "log") and bool(MATRICES.search(leading_to(d)))
        and "nan" in repr(d.theirs) and differ_by_nan(d.ours, d.theirs),
    ),
    Declared(
        "The logarithm of the determinant of a singular matrix has no derivative.",
        lambda d: d.field in ("values", "grad", "log") and d.program.uses("slogdet")
        and "nan" in repr(d.ours) and differ_by_nan(d.ours, d.theirs),
    ),
    Declared(
        "Which phase or sign eigenvectors and singular vectors have is not determined",
        lambda d: d.field == "log" and "register_" in leading_to(d)
        and bool(re.search(r"sampled\('[\w.]*(svd|eig\w*|qr)'", leading_to(d)))
        and nearly([abs(n) for n in numbers_in(d.ours)], [abs(n) for n in numbers_in(d.theirs)]),
    ),
    Declared(
        "Which of equal elements kthvalue and topk name is not determined.",
        lambda d: d.field == "values" and not_floating(d)
        and bool(re.search(r"\.(kthvalue|topk)\(", made_by(d))),
    ),
    Declared(
        "The slope of an activation at NaN is not determined.",
        lambda d: (d.field == "values" and is_gradient(d) or d.field in ("grad", "log"))
        and bool(ACTIVATIONS.search(leading_to(d))) and has_nan(d),
    ),
    Declared(
        "Which of equally frequent elements mode finds among NaN is not determined.",
        lambda d: d.field in ("values", "grad", "log") and "mode(" in leading_to(d)
        and "nan" in f"{d.program.text} {d.ours} {d.theirs}",
    ),
    Declared(
        "A complex zero to the power of zero is one.",
        lambda d: d.field == "values" and d.dtype.startswith("complex")
        and bool(re.search(r"\*\*|pow", leading_to(d))) and only_theirs_nan(d.ours, d.theirs),
    ),
    Declared(
        "polar keeps its angle",
        lambda d: d.program.uses("polar") and refused_by_us(d, "modified by an inplace operation"),
    ),
    Declared(
        "polygamma(1, x) is exact to rounding",
        lambda d: d.field in ("values", "grad", "log")
        and bool(re.search(r"polygamma|digamma|lgamma|psi\b|gammaln", leading_to(d)))
        and nearly(d.ours, d.theirs),
    ),
    Declared(
        "The derivatives of logcumsumexp are exact",
        lambda d: d.field == "values" and is_gradient(d) and d.program.uses("logcumsumexp")
        and (bool(re.search(r"derivatives\(.*, 3\)", leading_to(d))) or order(d) >= 3
             or agree_but_for_nan(d.ours, d.theirs)),
    ),
    Declared(
        "A tangent of nothing is zeros, or not a number where its value is not",
        lambda d: d.field == "error" and d.theirs is None
        and "already has a forward gradient" in d.ours.message and has_empty(d)
        or d.field == "values" and is_gradient(d) and "nan" in repr(d.ours)
        and d.program.uses("var", "var_mean") and has_empty(d),
    ),
    Declared(
        "A power of complex numbers has a complex tangent, whatever its exponent.",
        lambda d: d.field == "values" and is_gradient(d) and d.dtype.startswith("complex")
        and bool(re.search(r"\*\*|pow", leading_to(d)))
        and in_forward_mode(d),
    ),
    Declared(
        "Equal numbers have no variance",
        # Nor do they exceed it: PyTorch's may be a rounding error, which is not zero.
        lambda d: d.field in ("values", "grad")
        and (d.program.uses("expand", "as_strided") or d.dtype == "bool")
        and bool(re.search(r"\.(var|std)(_mean)?\(", leading_to(d))),
    ),
    Declared(
        "A derivative at the edge of a domain is a number where PyTorch multiplies 0 by infinity.",
        lambda d: (is_gradient(d) and d.field == "values" or d.field in ("grad", "log"))
        and "nan" in repr(d.theirs) and only_theirs_nan(d.ours, d.theirs)
        and bool(HAS_EDGES.search(leading_to(d))),
    ),
    Declared(
        "The gradient of binary_cross_entropy by its target knows the limit of its logarithms.",
        lambda d: (is_gradient(d) and d.field == "values" or d.field in ("grad", "log"))
        and "inf" in repr(d.theirs) and "inf" not in repr(d.ours)
        and "binary_cross_entropy(" in leading_to(d),
    ),
    Declared(
        "A limit of clamp that is reached has no tangent, as it has no gradient.",
        lambda d: d.field == "values" and is_gradient(d)
        and bool(re.search(r"torch\.(clamp|clip)\([tx]\d+, .*[tx]\d|"
                           r"[tx]\d+\.(clamp|clip)_?\([^)]*[tx]\d", leading_to(d)))
        and in_forward_mode(d),
    ),
    Declared(
        "Where acosh is not a number its derivative is none.",
        lambda d: (d.field == "values" and is_gradient(d) or d.field in ("grad", "log"))
        and bool(re.search(r"acosh|arccosh", leading_to(d))) and "nan" in repr(d.ours)
        and agree_but_for_nan(d.ours, d.theirs),
    ),
    Declared(
        "Convolutions and norms of 16-bit floats are rounded once",
        lambda d: d.field == "values" and bool(COARSEST.search(leading_to(d)))
        and bool(re.search(r"pool|conv|norm|linear|interpolate|mean", leading_to(d)))
        and bool(re.search(r"\.(round|floor|ceil|trunc|frac|sgn|sign|fmod|remainder)_?\(|//|%",
                           leading_to(d))),
    ),
    Declared(
        "scale_grad_by_freq scales the derivative of the gradient as well.",
        lambda d: d.field == "values" and "scale_grad_by_freq=True" in leading_to(d),
    ),
    Declared(
        "Real gradients of complex results are taken.",
        lambda d: raises(d, r"isFloatingType\(grad")
        or d.field in ("log", "grad") and after(d, r"isFloatingType\(grad"),
    ),
    Declared(
        "scatter_reduce by products has a forward rule that knows include_self.",
        lambda d: is_gradient(d)
        and (d.field == "values" or d.field == "value" and d.theirs is None)
        and bool(re.search(r"scatter_reduce.*'prod'", leading_to(d)))
        and in_forward_mode(d),
    ),
    Declared(
        "Rules leave what they have saved alone: PyTorch's rule of norm changes its mask.",
        lambda d: refused(d, "output 0 of MaskedFill"),
    ),
    Declared(
        "Where a derivative is not a number, forward and reverse mode pass it on differently.",
        lambda d: d.program.ours and d.field == "values" and is_gradient(d)
        and differ_by_nan(d.ours, d.theirs),
    ),
]  # fmt: skip
