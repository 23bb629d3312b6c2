"""Schemas from annotations; the tests run on PyTorch's `infer_schema` too."""

import collections.abc
import typing

import pytest


def prototype(lib, parameters, result="T"):
    """A function with annotations in terms of the library under test, T its Tensor."""
    scope = {
        **vars(typing),
        "T": lib.Tensor,
        "lib": lib,
        "Number": typing.Union[int, float, bool],  # noqa: UP007 - the older spelling is the subject
        "AbstractSequence": collections.abc.Sequence,
    }
    arrow = "" if result is None else f" -> {result}"
    exec(f"def function({parameters}){arrow}: ...", scope)
    return scope["function"]


@pytest.mark.parametrize(
    ("parameters", "result", "schema"),
    [
        ("", "T", "() -> Tensor"),
        ("x: T, y: Optional[T]", "T", "(Tensor x, Tensor? y) -> Tensor"),
        ("x: T | None", "T", "(Tensor? x) -> Tensor"),
        ("x: List[T], y: Sequence[T], z: list[T]", "T", "(Tensor[] x, Tensor[] y, Tensor[] z)"),
        ("x: List[Optional[T]], y: list[T | None]", "T", "(Tensor?[] x, Tensor?[] y)"),
        ("x: int, y: float, z: bool, w: str", "T", "(SymInt x, float y, bool z, str w)"),
        ("x: Number, y: int | float | bool", "T", "(Scalar x, Scalar y)"),
        ("x: Optional[Number], y: List[Number]", "T", "(Scalar? x, Scalar[] y)"),
        ("x: lib.dtype, y: lib.device", "T", "(ScalarType x, Device y)"),
        ("x: Optional[lib.dtype], y: Optional[lib.device]", "T", "(ScalarType? x, Device? y)"),
        ("x: list[int], y: AbstractSequence[int]", "T", "(SymInt[] x, SymInt[] y)"),
        ("x: list[float], y: Optional[list[bool]]", "T", "(float[] x, bool[]? y)"),
        ("x: T, *, y: int, z: float", "T", "(Tensor x, *, SymInt y, float z)"),
        ("*, y: int", "T", "(*, SymInt y)"),
        ("x: int = 1, y: float = 2.5", "T", "(SymInt x=1, float y=2.5)"),
        ("x: float = 1e-5, y: float = 1", "T", "(float x=1e-05, float y=1)"),
        ("x: float = -0.5, y: bool = True", "T", "(float x=-0.5, bool y=True)"),
        ("x: str = 'none', y: Number = 3", "T", '(str x="none", Scalar y=3)'),
        ("x: Optional[T] = None, y: Optional[int] = None", "T", "(Tensor? x=None, SymInt? y=None)"),
        ("x: lib.dtype = lib.float64", "T", "(ScalarType x=float64)"),
        ("x: lib.device = lib.device('cpu')", "T", '(Device x="cpu")'),
        ("x: lib.device = 'cpu'", "T", '(Device x="cpu")'),
        ("x: 'lib.Tensor', y: 'Optional[T]'", "'T'", "(Tensor x, Tensor? y) -> Tensor"),
        ("x: T", "None", "(Tensor x) -> ()"),
        ("x: T", "Tuple[()]", "(Tensor x) -> ()"),
        ("x: T", "Tuple[T, T]", "(Tensor x) -> (Tensor, Tensor)"),
        ("x: T", "tuple[T, list[T]]", "(Tensor x) -> (Tensor, Tensor[])"),
        ("x: T", "Tuple[T, int, float, bool]", "(Tensor x) -> (Tensor, SymInt, float, bool)"),
        ("x: T", "List[T]", "(Tensor x) -> Tensor[]"),
        ("x: T", "int", "(Tensor x) -> SymInt"),
        ("x: T", "Number", "(Tensor x) -> Scalar"),
    ],
)
def test_schema_of_annotations(lib, parameters, result, schema):
    inferred = lib.library.infer_schema(prototype(lib, parameters, result), mutates_args=())
    assert inferred.startswith(schema)


def test_name(lib):
    function = prototype(lib, "x: T")
    infer = lib.library.infer_schema
    assert infer(function, mutates_args=(), op_name="ns::f") == "ns::f(Tensor x) -> Tensor"


@pytest.mark.parametrize(
    ("mutated", "schema"),
    [
        ({"x"}, "(Tensor(a0!) x, Tensor[] y, Tensor? z, SymInt w) -> Tensor"),
        (["y", "z"], "(Tensor x, Tensor(a1!)[] y, Tensor(a2!)? z, SymInt w) -> Tensor"),
        ("unknown", "(Tensor(a0!) x, Tensor(a1!)[] y, Tensor(a2!)? z, SymInt w) -> Tensor"),
    ],
)
def test_mutated_arguments(lib, mutated, schema):
    function = prototype(lib, "x: T, y: List[T], z: Optional[T], w: int")
    assert lib.library.infer_schema(function, mutates_args=mutated) == schema


@pytest.mark.parametrize(
    ("parameters", "result", "message"),
    [
        ("x", "T", "Parameter x must have a type annotation"),
        ("x: T", None, "No return type annotation was provided"),
        ("*x: T", "T", "positional-only args, varargs, or varkwargs"),
        ("**x: T", "T", "positional-only args, varargs, or varkwargs"),
        ("x: T, /", "T", "positional-only args, varargs, or varkwargs"),
        ("x: dict", "T", "Parameter x has unsupported type <class 'dict'>"),
        ("x: list", "T", "Parameter x has unsupported type <class 'list'>"),
        ("x: tuple[int, int]", "T", r"Parameter x has unsupported type tuple\[int, int\].*Tuple"),
        ("x: Optional[List[T]]", "T", "Parameter x has unsupported type"),
        ("x: Union[int, float]", "T", "Parameter x has unsupported type"),
        ("x: Union[T, int]", "T", "Parameter x has unsupported type"),
        ("x: Any", "T", "Parameter x has unsupported type typing.Any"),
        ("x: List[List[int]]", "T", "Parameter x has unsupported type"),
        ("x: List[str]", "T", "Parameter x has unsupported type"),
        ("x: 'Unknown'", "T", "Unsupported type annotation Unknown. It is not a type"),
        ("x: List[int] = [1]", "T", "unsupported default value type <class 'list'>"),
        ("x: Sequence[int] = (1, 2)", "T", "unsupported default value type <class 'tuple'>"),
        ("x: T", "Optional[T]", "Return has unsupported type"),
        ("x: T", "Sequence[T]", "Return has unsupported type"),
        ("x: T", "Tuple[T, ...]", "Return has unsupported type typing.Tuple"),
        ("x: T", "str", "Return has unsupported type <class 'str'>"),
    ],
)
def test_annotations_that_are_no_schema(lib, parameters, result, message):
    function = prototype(lib, parameters, result)
    with pytest.raises(ValueError, match=message) as failure:
        lib.library.infer_schema(function, mutates_args=())
    assert "Got func with signature" in str(failure.value)


@pytest.mark.parametrize(
    ("mutated", "message"),
    [
        ({"v"}, "{'v'} in mutates_args were not found in the custom op's signature"),
        ({"w"}, "Parameter w is in mutable_args but only Tensors or collections of Tensors"),
        ("x", "mutates_args must either be a sequence of the names .* or the string 'unknown'"),
    ],
)
def test_wrong_mutated_arguments(lib, mutated, message):
    with pytest.raises(ValueError, match=message):
        lib.library.infer_schema(prototype(lib, "x: T, w: int"), mutates_args=mutated)


def test_mutated_arguments_must_be_told(lib):
    with pytest.raises(TypeError, match="mutates_args"):
        lib.library.infer_schema(prototype(lib, "x: T"))


def test_default_of_the_wrong_type():
    import wengert

    with pytest.raises(ValueError, match="a default value does not fit its type"):
        wengert.library.infer_schema(prototype(wengert, "x: int = 'a'"), mutates_args=())


def test_strings_are_quoted():
    import wengert

    function = prototype(wengert, "x: str = 'a\"b'")
    text = wengert.library.infer_schema(function, mutates_args=(), op_name="f")
    assert text == 'f(str x="a\\"b") -> Tensor'
