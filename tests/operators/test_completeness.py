"""No operator without samples, no cell of the derivative table without an entry."""

import pytest

import wengert
from operators.samples import OPERATIONS
from wengert.core.registry import operators
from wengert.dispatch.inplace import InplaceOperator
from wengert.dispatch.operator import Operator
from wengert.transforms.batching import rules

#: Declared operators without samples of their own, and why.
WAIVED: dict[str, str] = {
    "_known_mean": "part of the gradient of native_layer_norm, sampled through it",
    "_known_scale": "part of the gradient of native_layer_norm, sampled through it",
    "diagonal_backward": "the transpose of diagonal, sampled through its gradients",
    "select_backward": "the transpose of select, sampled through its gradients",
    "slice_backward": "the transpose of slice, sampled through its gradients",
    "unfold_backward": "the transpose of unfold, sampled through its gradients",
}
#: Recorded only so that a backward pass through them can say that there is no derivative.
REFUSED = {
    "_geqrf", "_histogramdd", "_linalg_ldl_factor", "_linalg_ldl_solve", "_unique2",
    "_unique_consecutive", "heaviside",
}  # fmt: skip
#: Arguments that take whole numbers or truth values and therefore have no derivative.
DISCRETE = {
    "LU_pivots", "condition", "index", "indices", "mask", "pivots", "sorter", "target",
}  # fmt: skip
#: Class weights, which are refused if they require grad, the number in `number - tensor`, and
#: statistics that stand for functions of the input.
CONSTANT = {
    ("rsub", "other"), ("_known_mean", "mean"), ("_known_scale", "mean"),
    ("_known_scale", "scale"),
    ("_nll_loss", "weight"), ("_nll_loss_backward", "weight"), ("_binary_cross_entropy", "weight"),
    ("_binary_cross_entropy_with_logits", "weight"),
    ("_binary_cross_entropy_with_logits", "pos_weight"),
}  # fmt: skip
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div",
    "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
    "true_divide": "div",
}  # fmt: skip
#: Functions without samples, and why.
TRIVIAL = {
    "detach": "the method as a function",
    "detach_copy": "a copy of what detach() gives",
    "get_device": "a number that every CPU tensor has: -1",
    "is_same_size": "compares shapes",
    "lobpcg": "starts at random; test_factors.py looks at its results",
    "lu": "an older form of linalg.lu_factor",
    "lu_solve": "an older form of linalg.lu_solve",
    "pca_lowrank": "projects at random; test_factors.py looks at its results",
    "svd_lowrank": "the same",
    "is_conj": "there are no lazy conjugates: always False",
    "is_neg": "there are no lazy negatives: always False",
}
COLUMNS = ("vjp", "jvp", "meta", "batch", "gradgrad")


def _base(name):
    """An operator's name without overload and without the mark of its in-place form."""
    return name.partition(".")[0].rstrip("_")


def _declared():
    return {
        name: operator
        for name, operator in operators().items()
        if not isinstance(operator, InplaceOperator)
    }


def _sampled(choose=lambda operation: True):
    return {_base(name) for o in OPERATIONS if choose(o) for name in o.declared}


def test_every_public_operator_has_samples():
    missing = [
        name
        for name in operators()
        if not name.startswith("_") and _base(name) not in _sampled() | set(WAIVED)
    ]
    assert not missing, f"operators without samples: {', '.join(sorted(missing))}"


def test_no_waiver_is_left_over():
    assert not [name for name in WAIVED if name in _sampled()]
    assert not [name for name in WAIVED if name not in map(_base, operators())]


def _cell(operator, column):
    """How an operator fills a cell of the table; empty where it does not."""
    if column == "batch":
        if operator.batch_rule is rules.elementwise:
            return "derived"
        return "" if operator.batch_rule in (None, rules.fallback) else "rule"
    if column == "meta":
        if operator.meta_rule is not None:
            return "rule"
        if operator.list_positions:  # kernels on lists meet shape-only arrays themselves
            return "kernel"
        return "derived" if operator.is_view or operator.dtype_rule is not None else ""
    if operator.family == "nondifferentiable" or operator.name in REFUSED:
        return "none"
    if column == "vjp":
        arguments = [
            a.name
            for a in operator.schema.arguments
            if a.type.startswith("Tensor")
            and a.name not in DISCRETE
            and (operator.name, a.name) not in CONSTANT
        ]
        return "" if set(arguments) - set(operator.rules) else "rule"
    if column == "jvp":
        if operator.family in ("elementwise", "linear"):
            return "derived"
        return "rule" if operator.jvp_rule is not None else ""
    if operator.name.startswith("_") or operator.name in WAIVED:
        return "inside"
    return "sampled" if _base(operator.name) in _sampled(lambda o: o.differentiable) else ""


def test_the_table_of_rules_has_no_blanks():
    width = max(map(len, _declared()))
    lines = [f"{'operator':{width}}  " + "  ".join(f"{c:8}" for c in COLUMNS)]
    blank = []
    for name, operator in sorted(_declared().items()):
        cells = [_cell(operator, column) for column in COLUMNS]
        lines.append(f"{name:{width}}  " + "  ".join(f"{cell or '-----':8}" for cell in cells))
        if not all(cells):
            blank.append(name)
    assert not blank, "blank cells for " + ", ".join(blank) + "\n" + "\n".join(lines)


def test_a_rule_is_never_left_without_a_reader():
    """An argument with a rule is a tensor, so that the rule can be reached."""
    for name, operator in _declared().items():
        types = {a.name: a.type for a in operator.schema.arguments}
        assert all(types[argument].startswith("Tensor") for argument in operator.rules), name


def test_names_of_samples_are_unique():
    names = [o.name for o in OPERATIONS]
    assert len(set(names)) == len(names)


def _operator_names(owner):
    """What an operator module contributed to the package or to Tensor."""
    return {
        name
        for name, value in vars(owner).items()
        if not name.startswith("_")
        and (
            isinstance(value, (Operator, InplaceOperator))
            or (getattr(value, "__module__", None) or "").startswith("wengert.operators")
        )
    }


def test_every_function_has_samples():
    sampled = {(o.path if isinstance(o.path, str) and o.path else o.name) for o in OPERATIONS}
    missing = sorted(_operator_names(wengert) - sampled - set(ALIASES) - set(TRIVIAL))
    assert not missing, f"functions without samples: {', '.join(missing)}"


@pytest.mark.parametrize("owner", ["package", "Tensor"])
def test_names_are_pytorchs(owner):
    torch = pytest.importorskip("torch")
    if owner == "package":
        extra = _operator_names(wengert) - set(dir(torch))
    else:
        extra = _operator_names(wengert.Tensor) - set(dir(torch.Tensor))
    assert not extra, f"PyTorch has no {', '.join(sorted(extra))}"


@pytest.mark.parametrize("alias, name", ALIASES.items())
def test_aliases(alias, name):
    for owner in (wengert, wengert.Tensor):
        assert getattr(owner, alias) is getattr(owner, name)
    assert getattr(wengert.Tensor, alias + "_") is getattr(wengert.Tensor, name + "_")
