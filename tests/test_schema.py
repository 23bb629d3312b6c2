"""The schemas of our own declarations."""

import pytest

from wengert.dispatch.schema import REQUIRED
from wengert.dispatch.schema_parser import parse


@pytest.mark.parametrize(
    ("text", "name", "kind", "default", "alias"),
    [
        ("Tensor self", "self", "Tensor", REQUIRED, None),
        ("Tensor? x=None", "x", "Tensor?", None, None),
        ("Tensor(a!) self", "self", "Tensor", REQUIRED, "a!"),
        ("Tensor(a!)[] x", "x", "Tensor[]", REQUIRED, "a!"),
        ("Tensor?[] indices", "indices", "Tensor?[]", REQUIRED, None),
        ("int[2]? dims=None", "dims", "int[]?", None, None),
        ("int[2] dims=[0, -1]", "dims", "int[]", (0, -1), None),
        ("float eps=1e-5", "eps", "float", 1e-5, None),
        ("str s='a=b'", "s", "str", "a=b", None),
        ("bool flag = True", "flag", "bool", True, None),
    ],
)
def test_argument(text, name, kind, default, alias):
    (argument,) = parse(f"f({text}) -> Tensor").arguments
    assert (argument.name, argument.type, argument.alias) == (name, kind, alias)
    assert argument.default == default


@pytest.mark.parametrize(
    "text",
    [
        "Tensor", "Tensor x?", "Tensor x y", "Tensor 2x", "Foo@bar x", "Tensor! x", "int x=",
        "int[ x", "int] x", "int[a] x", "int?? x", "Tensor a) x", "Tensor() x", "Tensor(a)b x",
    ],
)  # fmt: skip
def test_what_is_no_argument_is_refused(text):
    with pytest.raises(RuntimeError, match="cannot read the schema(.|\n)*<--- HERE"):
        parse(f"f({text}) -> Tensor")
