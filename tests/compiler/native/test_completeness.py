"""Which elementwise operators have no scalar form, and are called as they are."""

import pytest

import wengert
from compiler.native.support import assert_native, randn
from wengert.compiler.native.forms import Operand, form_of
from wengert.core.registry import operators
from wengert.core.scalar.expressions import Unsupported
from wengert.dispatch.schema import REQUIRED

#: Functions of scipy.special that are not written in scalar expressions.
SPECIAL = {
    "_polygamma", "_standard_gamma_grad", "digamma", "erfinv", "i0", "igamma", "igammac",
    "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_log_ndtr",
    "special_ndtri", "special_zeta",
}  # fmt: skip
#: Arguments without which operators are not called.
ARGUMENTS = {"rounding_mode": "floor"}


def arguments_of(operator):
    """Arguments of any kind that the operator takes: tensors, and for others their defaults."""
    found = []
    for argument in operator.schema.arguments:
        if argument.type in ("Tensor", "Tensor?"):
            kind = "bool" if argument.name == "condition" else "f64"
            found.append(Operand(kind, False))
        elif argument.default is not REQUIRED:
            found.append(argument.default)
        else:
            found.append(ARGUMENTS.get(argument.name, 1))
    return found


def has_form(operator):
    given = arguments_of(operator)
    tensors = [
        (wengert.ones(2, dtype=wengert.bool) if a.kind == "bool" else randn(2).abs() / 4 + 0.3)
        if isinstance(a, Operand) else a
        for a in given
    ]  # fmt: skip
    out = operator.call(tuple(tensors))
    goals = [t.dtype.numpy for t in (out if isinstance(out, (tuple, list)) else [out])]
    try:
        form_of(operator, given, goals)
    except Unsupported:
        return False
    return True


def test_all_others_are_scalar_as_they_stand():
    elementwise = {
        name: operator
        for name, operator in operators().items()
        if getattr(operator, "family", "") == "elementwise" and not operator.mutates
    }
    assert {name for name, operator in elementwise.items() if not has_form(operator)} == SPECIAL


@pytest.mark.parametrize("name", ["nan_to_num", "logaddexp", "logaddexp2", "xlogy", "special_entr"])
def test_composed_functions(name):
    x = randn(4, 5).abs() * 3
    x[0] = wengert.tensor([0.0, 1.0, float("inf"), -float("inf"), float("nan")]).double()
    function = getattr(wengert, name, None) or getattr(wengert.special, name[8:])
    several = name in ("logaddexp", "logaddexp2", "xlogy")
    assert_native((lambda x: function(x, x.flip(1))) if several else function, x, tolerance=1e-13)
