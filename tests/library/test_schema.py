"""Schemas as text and as objects; tests with the `parse` fixture also run on PyTorch's parser."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert
from wengert.core.registry import operators
from wengert.library.builtin import overload_name
from wengert.library.schema import parse_schema


@pytest.fixture
def parse(lib):
    """The parser of the library under test."""
    return parse_schema if lib is wengert else lib._C.parse_schema


CANONICAL = [
    "f(Tensor x) -> Tensor",
    "ns::f.overload(Tensor x) -> Tensor",
    "f() -> ()",
    "f(Tensor x) -> Tensor named",
    "f(Tensor x) -> (Tensor a, Tensor b)",
    "f(Tensor x) -> (Tensor, int, float, bool, Scalar, str)",
    "f(Tensor(a!) self) -> Tensor(a!)",
    "f(Tensor(a) self, int dim=0) -> Tensor(a)[]",
    "f(Tensor(a -> *) self) -> Tensor(*)[]",
    "f(Tensor(a!)[] xs, Tensor(b!)? y=None) -> ()",
    "f(Tensor[] x, Tensor?[] y, Tensor? z=None) -> Tensor?",
    "f(bool[3] w, int[2] x=1, int[2]? y=None, int[] z=[]) -> int[]",
    "f(int[2] x=[1, 2], float[] y=[1., 2.5], bool[] z=[True, False]) -> ()",
    "f(SymInt x=5, SymInt? y=None, SymInt[] z=[1]) -> SymInt",
    "f(float x=1., float y=-1.5, float z=1e+20, float w=0.10000000000000001) -> ()",
    "f(Scalar x=1, Scalar y=2.5, Scalar z=True, Scalar? w=None) -> ()",
    'f(str x="none", str? y=None, str z="a\\"b\\n") -> ()',
    "f(ScalarType x, Device y, ScalarType? z=None, Device? w=None) -> ScalarType",
    "f(Layout? x=None, MemoryFormat? y=None, Generator? z=None) -> ()",
    "f(int x, *, int y=2, Tensor z) -> int",
    "f(*, int y) -> int",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_is_printed_as_read(parse, text):
    assert str(parse(text)) == text
    assert parse(text) == parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  f( Tensor  x ,int y=  -1 )->Tensor ", "f(Tensor x, int y=-1) -> Tensor"),
        ("f(Tensor x) -> (Tensor)", "f(Tensor x) -> Tensor"),
        ("f(Tensor x) -> (Tensor a)", "f(Tensor x) -> Tensor a"),
        ("f(int[2] x=[3,3]) -> ()", "f(int[2] x=3) -> ()"),
        ("f(float x=1, float y=1e-5) -> ()", "f(float x=1., float y=1.0000000000000001e-05) -> ()"),
        ("f(float[2] x=1.5) -> ()", "f(float[2] x=[1.5, 1.5]) -> ()"),
        ("f(str x='it\\'s \"q\"') -> ()", 'f(str x="it\\\'s \\"q\\"") -> ()'),
        ("f(int x, *) -> int", "f(int x) -> int"),
        ("f(int[1] x=0) -> ()", "f(int[1] x=[0]) -> ()"),
    ],
)
def test_what_is_written_otherwise(parse, text, canonical):
    schema = parse(text)
    assert str(schema) == canonical
    assert parse(canonical) == schema


def test_attributes_of_a_schema(parse):
    schema = parse("ns::f.out(Tensor x, Tensor? y, *, Tensor(a!) out) -> (Tensor(a!) r, Tensor)")
    assert schema.name == "ns::f"
    assert schema.overload_name == "out"
    assert [a.name for a in schema.arguments] == ["x", "y", "out"]
    assert [r.name for r in schema.returns] == ["r", ""]
    assert [str(a.type) for a in schema.arguments] == ["Tensor", "Optional[Tensor]", "Tensor"]
    assert [a.kwarg_only for a in schema.arguments] == [False, False, True]
    assert [a.is_out for a in schema.arguments] == [False, False, True]
    assert schema.is_mutable
    assert not parse("f(Tensor(a) x) -> Tensor(a)").is_mutable


@pytest.mark.parametrize(
    ("argument", "kind", "annotation", "size"),
    [
        ("Tensor x", "TensorType", "Tensor", None),
        ("Tensor? x", "OptionalType", "Optional[Tensor]", None),
        ("Tensor?[] x", "ListType", "List[Optional[Tensor]]", None),
        ("Tensor[]? x", "OptionalType", "Optional[List[Tensor]]", None),
        ("Scalar x", "NumberType", "number", None),
        ("SymInt x", "IntType", "int", None),
        ("SymInt[] x", "ListType", "List[int]", None),
        ("int[3] x", "ListType", "List[int]", 3),
        ("float[2]? x", "OptionalType", "Optional[List[float]]", 2),
        ("bool x", "BoolType", "bool", None),
        ("str x", "StringType", "str", None),
        ("complex x", "ComplexType", "complex", None),
        ("Device x", "DeviceObjType", "Device", None),
    ],
)
def test_types(parse, argument, kind, annotation, size):
    (found,) = parse(f"f({argument}) -> ()").arguments
    assert found.type.kind() == kind
    assert str(found.type) == found.type.annotation_str == annotation
    assert size == found.N
    assert found.type == parse(f"g({argument}) -> ()").arguments[0].type
    if kind in ("ListType", "OptionalType"):
        assert str(found.type.getElementType()) in annotation


def test_types_that_are_numbers_in_pytorch(parse):
    schema = parse("f(ScalarType x, Layout y, MemoryFormat? z) -> ()")
    assert [str(a.real_type) for a in schema.arguments] == [
        "ScalarType",
        "Layout",
        "Optional[MemoryFormat]",
    ]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("int x=3", 3),
        ("float x=3", 3.0),
        ("bool x=True", True),
        ("Scalar x=2", 2),
        ("Scalar x=2.0", 2.0),
        ("str x='a b'", "a b"),
        ("int[2] x=1", [1, 1]),
        ("int[] x=[1, 2]", [1, 2]),
        ("SymInt[] x=[]", []),
        ("Tensor? x=None", None),
        ("int? x=4", 4),
        ("complex x=2j", 2j),
    ],
)
def test_defaults(parse, argument, value):
    (found,) = parse(f"f({argument}) -> ()").arguments
    assert found.has_default_value()
    assert found.default_value == value
    assert type(found.default_value) is type(value)


def test_no_default(parse):
    (found,) = parse("f(int x) -> ()").arguments
    assert not found.has_default_value()
    assert found.default_value is None


def test_defaults_are_not_shared():
    (found,) = parse_schema("f(int[] x=[1]) -> ()").arguments
    found.default_value.append(2)
    assert found.default_value == [1]


@pytest.mark.parametrize(
    ("annotation", "before", "after", "write"),
    [
        ("Tensor(a)", {"a"}, {"a"}, False),
        ("Tensor(a!)", {"a"}, {"a"}, True),
        ("Tensor(a!)?", {"a"}, {"a"}, True),
        ("Tensor(a -> *)", {"a"}, {"*"}, False),
        ("Tensor(a! -> b|c)", {"a"}, {"b", "c"}, True),
        ("Tensor(*)", {"*"}, {"*"}, False),
        ("Tensor(a!)[]", set(), set(), True),
        ("Tensor(a)[]", set(), set(), False),
    ],
)
def test_aliases(parse, annotation, before, after, write):
    (found,) = parse(f"f({annotation} x) -> ()").arguments
    assert found.alias_info.before_set == before
    assert found.alias_info.after_set == after
    assert found.alias_info.is_write is write
    assert found.is_write is write


def test_no_alias(parse):
    (found,) = parse("f(Tensor x) -> ()").arguments
    assert found.alias_info is None
    assert not found.is_write


def test_names_of_the_elements_of_a_list():
    found = parse_schema("f(Tensor(a!)[] x) -> Tensor(a)[]")
    assert found.arguments[0].alias_info.names() == {"a"}
    assert found.returns[0].alias_info.names() == {"a"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(Tensor x)", "expected"),
        ("f Tensor", "expected"),
        ("f(Tensor x -> Tensor", "expected"),
        ("f(Tensor) -> Tensor", "expected"),
        ("1f(Tensor x) -> Tensor", "expected"),
        ("a::b::c(Tensor x) -> Tensor", "expected"),
        ("f.x.y(Tensor x) -> Tensor", "expected"),
        ("f(Foo x) -> ()", "unknown type specifier"),
        ("f(int x=1, int y) -> int", "Non-default positional argument follows default argument"),
        ("f(Tensor x=3) -> ()", "expected"),
        ("f(int x=a) -> ()", "default"),
        ("f(int[] x=1) -> ()", r"expected \["),
        ("f(Tensor(a!|b) x) -> Tensor", "expected"),
        ("f(Tensor x) -> Tensor, Tensor", "expected"),
        ("f.default(Tensor x) -> Tensor", "default is not a legal overload name"),
        ("", "expected"),
    ],
)
def test_text_that_is_no_schema(parse, text, message):
    with pytest.raises(RuntimeError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(int x, int x) -> ()", "a second argument 'x'"),
        ("f(int x=1.5) -> ()", "expected a default of type int"),
        ("f(bool x=1) -> ()", "expected a default of type bool"),
        ("f(int(a!) x) -> ()", "an alias annotation of int"),
        ("f(int[-2] x) -> ()", "expected the size of a list"),
        ("f(int x, *, *, int y) -> ()", r"a second \*"),
        ("f(Tensor x) -> $", r"'\$' has no meaning"),
    ],
)
def test_text_that_only_we_refuse(text, message):
    with pytest.raises(RuntimeError, match=message):
        parse_schema(text)


def test_errors_point_at_the_place():
    with pytest.raises(RuntimeError) as failure:
        parse_schema("f(Tensor x, Foo y) -> ()")
    *_, text, marker = str(failure.value).splitlines()
    assert text[marker.index("^") :].startswith("Foo")


def test_defaults_of_the_librarys_own_types():
    text = (
        'f(ScalarType a=float32, Device b="cuda:0", Layout c=strided, '
        "MemoryFormat d=contiguous_format, float e=inf, float f=-inf) -> ()"
    )
    schema = parse_schema(text)
    assert str(schema) == text
    assert [a.default_value for a in schema.arguments] == [
        wengert.float32,
        wengert.device("cuda", 0),
        wengert.strided,
        wengert.contiguous_format,
        float("inf"),
        float("-inf"),
    ]
    assert str(parse_schema("f(dtype a=long) -> ()")) == "f(ScalarType a=int64) -> ()"


def test_complex_defaults():
    text = "f(complex x=1.+2.j, complex y=0.5-1.j) -> complex"
    schema = parse_schema(text)
    assert str(schema) == text
    assert [a.default_value for a in schema.arguments] == [1 + 2j, 0.5 - 1j]
    assert str(parse_schema("f(complex x=1j) -> ()")) == "f(complex x=0.+1.j) -> ()"


def test_schemas_are_pickled():
    for text in CANONICAL[:10]:
        assert pickle.loads(pickle.dumps(parse_schema(text))) == parse_schema(text)


# Random schemas ----------------------------------------------------------------------------------

# PyTorch refuses to read subnormal numbers, and forgets the sign of zero.
FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False).map(
    lambda number: number or 0.0
)
WORDS = st.text("abcxyz_", min_size=1, max_size=6)


def with_point(number):
    text = f"{number:.17g}"
    return text if "." in text or "e" in text else text + "."


SIMPLE = {
    "int": st.integers(-(2**63), 2**63 - 1).map(str),
    "SymInt": st.integers(-(2**31), 2**31).map(str),
    "float": FLOATS.map(with_point),
    "bool": st.booleans().map(str),
    "str": st.text("ab c'", max_size=5).map(lambda v: '"' + v.replace("'", "\\'") + '"'),
}


@st.composite
def types(draw):
    """A type's text and a strategy for the text of a default of it."""
    word = draw(st.sampled_from(["Tensor", "Scalar", "ScalarType", "Device", *SIMPLE]))
    text, default = word, SIMPLE.get(word)
    shape = draw(st.sampled_from(["", "", "?", "[]", "[2]", "[]?"] + ["?[]"] * (word == "Tensor")))
    # PyTorch prints the alias of a Tensor?[] where it does not read it.
    if word == "Tensor" and shape in ("", "?", "[]") and draw(st.booleans()):
        names = draw(st.sampled_from(["a", "b", "a!", "a -> b", "a! -> *", "*"]))
        text = f"Tensor({names})"
    if shape.startswith("["):
        inner = default
        default = None
        if inner is not None and word in ("int", "float", "bool") and shape == "[]":
            items = st.lists(inner, max_size=3, unique=True)
            default = items.map(lambda found: f"[{', '.join(found)}]")
    if "?" in shape and shape != "?[]":
        default = st.just("None")
    return text + shape, default


@st.composite
def schemas(draw):
    """The canonical text of a schema."""
    names = draw(st.lists(WORDS, unique=True, max_size=5))
    positional = draw(st.integers(0, len(names)))
    parts = []
    defaults_began = False
    for i, name in enumerate(names):
        kind, default = draw(types())
        if i == positional:
            parts.append("*")
            defaults_began = False
        text = f"{kind} {name}"
        if default is not None and (defaults_began or draw(st.booleans())):
            text += "=" + draw(default)
            defaults_began = True
        elif defaults_began and i < positional:
            text = f"int? {name}=None"
        parts.append(text)
    results = draw(st.lists(st.tuples(types(), st.sampled_from(["", " r", " values"])), max_size=3))
    returns = ", ".join(kind + name for (kind, _), name in results)
    if len(results) != 1:
        returns = f"({returns})"
    head = draw(st.sampled_from(["f", "ns::f", "ns::f.out", "f.Tensor"]))
    return f"{head}({', '.join(parts)}) -> {returns}"


@given(schemas())
def test_random_schemas_round_trip(text):
    schema = parse_schema(text)
    assert str(schema) == text
    assert parse_schema(str(schema)) == schema


@given(schemas())
def test_random_schemas_are_pytorchs(text):
    torch = pytest.importorskip("torch")
    ours, theirs = parse_schema(text), torch._C.parse_schema(text)
    assert str(theirs) == text
    assert (ours.name, ours.overload_name) == (theirs.name, theirs.overload_name)
    assert ours.is_mutable == theirs.is_mutable
    for mine, other in zip(
        ours.arguments + ours.returns, theirs.arguments + theirs.returns, strict=True
    ):
        assert mine.name == other.name
        assert str(mine.real_type) == str(other.real_type)
        assert mine.N == other.N
        assert mine.has_default_value() == other.has_default_value()
        assert mine.default_value == other.default_value
        assert mine.kwarg_only == other.kwarg_only
        assert (mine.alias_info is None) == (other.alias_info is None)
        if mine.alias_info is not None:
            assert mine.alias_info.before_set == other.alias_info.before_set
            assert mine.alias_info.after_set == other.alias_info.after_set
            assert mine.alias_info.is_write == other.alias_info.is_write


# The library's own operators ---------------------------------------------------------------------


def test_every_operator_has_a_schema():
    for operator in operators().values():
        schema = operator._schema
        assert parse_schema(str(schema)) == schema
        assert schema.name == "aten::" + overload_name(operator)[0]
        assert [a.name for a in schema.arguments] == [a.name for a in operator.schema.arguments]
        assert schema.is_mutable == operator.name.partition(".")[0].endswith("_")
    assert wengert.add._schema is wengert.add._schema


def test_schemas_of_well_known_operators():
    assert str(wengert.add._schema) == (
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    assert str(operators()["add_"]._schema) == (
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    )
    assert wengert.unbind._schema.returns[0].alias_info.names() == {"a"}
    assert operators()["mean.dim"]._schema.overload_name == "dim"


def test_overloads_exist_in_pytorch():
    torch = pytest.importorskip("torch")
    for operator in operators().values():
        schema = operator._schema
        packet = getattr(torch.ops.aten, schema.name.partition("::")[2], None)
        if packet is not None:
            theirs = getattr(packet, schema.overload_name or "default")._schema
            assert schema.arguments[0].name == theirs.arguments[0].name
            assert schema.is_mutable == theirs.is_mutable


def test_a_list_of_a_fixed_size_has_no_lists(parse):
    with pytest.raises(RuntimeError, match="expected"):
        parse("f(int[3][] x) -> ()")


def test_numbers_that_stand_for_dtypes_and_layouts():
    (a, b, c) = parse_schema("f(ScalarType a=4, Layout b=0, MemoryFormat? c=1) -> ()").arguments
    assert a.default_value is wengert.int64
    assert b.default_value is wengert.strided
    assert c.default_value is wengert.preserve_format
    assert str(a) == "ScalarType a=int64"
    with pytest.raises(RuntimeError, match="expected a default of type ScalarType"):
        parse_schema("f(ScalarType a=99) -> ()")


def test_the_schemas_of_pytorch_are_read():
    torch = pytest.importorskip("torch")
    out_of_scope = "unknown type specifier|alias annotation|expected|a second argument"
    read = 0
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        theirs = torch._C._get_schema(*[*name.split("."), ""][:2])
        text = str(theirs)
        try:
            ours = parse_schema(text)
        except RuntimeError as error:
            assert re.search(out_of_scope, str(error)), text
            continue
        read += 1
        assert parse_schema(str(ours)) == ours
        assert ours.is_mutable == theirs.is_mutable, text
        for a, b in zip(
            [*ours.arguments, *ours.returns], [*theirs.arguments, *theirs.returns], strict=True
        ):
            assert (a.name, a.N, a.kwarg_only) == (b.name, b.N, b.kwarg_only), text
            assert (a.alias_info is None) == (b.alias_info is None), text
            assert a.has_default_value() == b.has_default_value(), text
            if a.alias_info is not None:
                assert a.alias_info.is_write == b.alias_info.is_write, text
                assert a.alias_info.before_set == b.alias_info.before_set, text
                assert a.alias_info.after_set == b.alias_info.after_set, text
    assert read > 3000
