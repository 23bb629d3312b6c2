"""No operator without samples, no cell of the derivative table without an entry."""

import pytest

import wengert
from operators.samples import OPERATIONS
from wengert.dispatch import InplaceOperator, operators

#: Declared operators without samples of their own, and why.
WAIVED: dict[str, str] = {}
#: Arguments that take whole numbers or truth values and therefore have no derivative.
DISCRETE = {"condition", "index", "indices", "mask", "target", "sorter"}
COLUMNS = ("vjp", "jvp", "meta", "gradgrad")


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
    if operator.family == "nondifferentiable":
        return "none" if column != "meta" else "derived"
    if column == "vjp":
        arguments = [
            a.name
            for a in operator.schema.arguments
            if a.type.startswith("Tensor") and a.name not in DISCRETE
        ]
        return "" if set(arguments) - set(operator.rules) else "rule"
    if column == "jvp":
        if operator.family in ("elementwise", "linear"):
            return "derived"
        return "rule" if operator.jvp_rule is not None else ""
    if column == "meta":
        return "rule" if operator.meta_rule is not None else "derived"
    if operator.name.startswith("_"):
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


@pytest.mark.parametrize("where", ["functions", "methods"])
def test_public_names_are_pytorchs(where):
    torch = pytest.importorskip("torch")
    if where == "functions":
        from wengert.registration import public_functions

        names = public_functions()
        known = set(dir(torch))
    else:
        names = [name for name in dir(wengert.Tensor) if not name.startswith("_")]
        known = set(dir(torch.Tensor))
    own = {"array", "accumulator", "counter", "node", "cold", "view_meta", "needs_grad"}
    extra = sorted(name for name in names if name not in known and name not in own)
    assert not extra, f"{where} that PyTorch has not: {', '.join(extra)}"
