"""From a call to a schema's arguments: parsing, keywords, conversions, out=, and error texts."""

import inspect

import numpy as np
import pytest

import wengert
from wengert.core.registry import operator_named, operators
from wengert.dispatch.binding import bind_arguments
from wengert.dispatch.presentation import signature_of
from wengert.dispatch.schema import REQUIRED
from wengert.dispatch.schema_parser import parse


def ramp(lib=wengert):
    return lib.arange(6.0).reshape(2, 3)


# Schemas ------------------------------------------------------------------------------------------


def test_parts_of_a_schema():
    schema = parse(
        "sum.dim(Tensor self, int[1]? dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor"
    )
    assert schema.name == "sum.dim"
    assert [a.name for a in schema.arguments] == ["self", "dim", "keepdim", "dtype"]
    assert [a.type for a in schema.arguments] == ["Tensor", "int[]?", "bool", "dtype?"]
    assert [a.keyword_only for a in schema.arguments] == [False, False, False, True]
    assert [a.default for a in schema.arguments] == [REQUIRED, REQUIRED, False, None]
    assert [a.optional for a in schema.arguments] == [False, True, False, True]
    assert schema.returns == ("Tensor",)
    assert schema.names == {"self": 0, "dim": 1, "keepdim": 2, "dtype": 3}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("Scalar", "1", 1),
        ("Scalar", "-1", -1),
        ("Scalar", "0.5", 0.5),
        ("Scalar", "1e-05", 1e-5),
        ("Scalar", "True", True),
        ("Scalar?", "None", None),
        ("int[]", "[]", ()),
        ("int[]", "[0, 1]", (0, 1)),
        ("str", "'mean'", "mean"),
        ("str", '"linear"', "linear"),
    ],
)
def test_defaults(kind, text, value):
    (argument,) = parse(f"f({kind} value={text}) -> Tensor").arguments
    assert argument.default == value
    assert type(argument.default) is type(value)


@pytest.mark.parametrize(
    ("text", "alias"),
    [("Tensor self", None), ("Tensor(a) self", "a"), ("Tensor(a!) self", "a!")],
)
def test_alias_marks(text, alias):
    (argument,) = parse(f"f({text}) -> Tensor").arguments
    assert (argument.alias, argument.type) == (alias, "Tensor")


@pytest.mark.parametrize(
    ("text", "returns"),
    [
        ("Tensor", ("Tensor",)),
        ("(Tensor values, Tensor indices)", ("Tensor values", "Tensor indices")),
        ("Tensor(a)[]", ("Tensor(a)[]",)),
        ("()", ()),
    ],
)
def test_results(text, returns):
    assert parse(f"f(Tensor self) -> {text}").returns == returns


def test_not_a_schema():
    with pytest.raises(RuntimeError, match="unknown type specifier nonsense"):
        parse("f(nonsense) -> Tensor")


@pytest.mark.parametrize("name", sorted(operators()))
def test_schema_of_every_operator_is_read_again(name):
    """Text and parts say the same, and the signature shows the same names."""
    schema = operator_named(name).schema
    again = parse(schema.text)
    assert str(schema) == schema.text
    assert again.name.partition(".")[0] in schema.text
    for one, other in zip(schema.arguments, again.arguments, strict=True):
        assert vars_of(one) == vars_of(other)
    signature = signature_of(schema)
    names = ["input" if a.name == "self" else a.name for a in schema.arguments]
    assert list(signature.parameters) == names
    for argument, parameter in zip(schema.arguments, signature.parameters.values(), strict=True):
        assert (parameter.default is inspect.Parameter.empty) == (argument.default is REQUIRED)
        assert (parameter.kind is inspect.Parameter.KEYWORD_ONLY) == argument.keyword_only


def vars_of(argument):
    fields = ("name", "type", "default", "keyword_only", "alias", "optional", "code")
    return [getattr(argument, field) for field in fields]


def test_operator_looks_like_a_function():
    assert inspect.signature(wengert.exp) == signature_of(wengert.exp.schema, with_out=True)
    assert wengert.exp.__name__ == "exp"
    assert "exp(Tensor self) -> Tensor" in repr(wengert.exp)
    with pytest.raises(AttributeError):
        wengert.exp.no_such_attribute


# Binding ------------------------------------------------------------------------------------------


def bound(name, *args, **kwargs):
    return bind_arguments(operator_named(name), args, kwargs)


def test_defaults_are_filled_in():
    x = ramp()
    assert bound("transpose", x, 0, 1) == (x, 0, 1)
    assert bound("cumsum", x, 0) == (x, 0, None)
    assert bound("add", x, 2) == (x, 2, 1)


def test_keywords_in_any_order():
    x = ramp()
    assert bound("transpose", dim1=1, self=x, dim0=0) == (x, 0, 1)
    assert bound("add", alpha=3, other=2, input=x) == (x, 2, 3)


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda lib, x: lib.sum(input=x, axis=0), (3,)),
        (lambda lib, x: lib.sum(x, axis=0, keepdims=True), (1, 3)),
        (lambda lib, x: lib.sum(x, dim=0, keepdim=True), (1, 3)),
        (lambda lib, x: lib.mean(x, axis=(0, 1)), ()),
        (lambda lib, x: lib.amax(x, axis=1), (2,)),
        (lambda lib, x: lib.cumsum(x, axis=1), (2, 3)),
        (lambda lib, x: lib.cat((x, x), axis=1), (2, 6)),
        (lambda lib, x: lib.cat(tensors=[x, x]), (4, 3)),
        (lambda lib, x: lib.softmax(input=x, dim=1), (2, 3)),
        (lambda lib, x: x.add(other=1), (2, 3)),
        (lambda lib, x: x.add(alpha=2, other=x), (2, 3)),
        (lambda lib, x: x.transpose(dim0=0, dim1=1), (3, 2)),
        (lambda lib, x: x.clamp(min=1, max=2), (2, 3)),
        (lambda lib, x: lib.clamp(x, 0, max=1), (2, 3)),
    ],
)
def test_names_and_their_aliases(lib, call, shape):
    assert tuple(call(lib, ramp(lib)).shape) == shape


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda x: x.view(3, 2), (3, 2)),
        (lambda x: x.view((3, 2)), (3, 2)),
        (lambda x: x.view([6]), (6,)),
        (lambda x: x.view(-1), (6,)),
        (lambda x: x.reshape(3, -1), (3, 2)),
        (lambda x: x.reshape(shape=(3, 2)), (3, 2)),
        (lambda x: x.permute(1, 0), (3, 2)),
        (lambda x: x.permute((1, 0)), (3, 2)),
        (lambda x: x.permute(dims=(1, 0)), (3, 2)),
        (lambda x: x.expand(4, 2, 3), (4, 2, 3)),
        (lambda x: x.expand((4, -1, -1)), (4, 2, 3)),
        (lambda x: x.repeat(2, 2), (4, 6)),
        (lambda x: x.repeat([2, 2]), (4, 6)),
        (lambda x: x.flip(0, 1), (2, 3)),
        (lambda x: x.flip([0]), (2, 3)),
        (lambda x: x.sum((0, 1)), ()),
        (lambda x: x.sum([0]), (3,)),
        (lambda x: x.view(np.int64(6)), (6,)),
        (lambda x: x.view(np.int32(3), 2), (3, 2)),
        (lambda x: x.sum(np.int64(0)), (3,)),
    ],
)
def test_integers_one_by_one_or_together(lib, call, shape):
    assert tuple(call(ramp(lib)).shape) == shape


def test_zero_dimensional_integer_tensors_are_integers(lib):
    x, one = ramp(lib), lib.tensor(1)
    assert tuple(x.select(0, one).shape) == (3,)
    assert tuple(x.narrow(0, 0, one).shape) == (1, 3)
    assert tuple(x.view(lib.tensor(6)).shape) == (6,)


@pytest.mark.parametrize("number", [2, 2.0, True, np.float32(2), np.int64(2), np.bool_(True)])
def test_numbers_as_operands(lib, number):
    x = ramp(lib)
    assert x.mul(number).tolist() == (x * float(number)).tolist()
    assert lib.mul(x, number).dtype == lib.float32


def test_scalars_from_tensors_and_numpy(lib):
    x = ramp(lib)
    assert lib.add(x, x, alpha=np.float64(2)).tolist() == (x * 3).tolist()
    assert lib.add(x, x, alpha=lib.tensor(2)).tolist() == (x * 3).tolist()


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda lib, x: lib.sin("a"),
            "sin(): argument 'input' (position 1) must be Tensor, not str",
        ),
        (
            lambda lib, x: lib.add(x, "a"),
            "add(): argument 'other' (position 2) must be Tensor, not str",
        ),
        (
            lambda lib, x: lib.add(x, None),
            "add(): argument 'other' (position 2) must be Tensor, not NoneType",
        ),
        (
            lambda lib, x: lib.matmul(x, 1),
            "matmul(): argument 'other' (position 2) must be Tensor, not int",
        ),
        (
            lambda lib, x: lib.softmax(x, "a"),
            "softmax(): argument 'dim' (position 2) must be int, not str",
        ),
        (
            lambda lib, x: lib.select(x, 0, 1.5),
            "select(): argument 'index' (position 3) must be int, not float",
        ),
        (
            lambda lib, x: lib.cat(x),
            "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
        ),
        (lambda lib, x: lib.cat([x, 1]), "expected Tensor as element 1 in argument 0, but got int"),
        (lambda lib, x: lib.add(x, x, 2), "add() takes 2 positional arguments but 3 were given"),
        (lambda lib, x: lib.add(x, x, alpha="s"), "must be Number, not str"),
    ],
)
def test_texts_shared_with_pytorch(lib, call, text):
    with pytest.raises(TypeError) as caught:
        call(lib, ramp(lib))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda x: wengert.add(x), ["add()", "'other'", "position 2", "Scalar alpha=1"]),
        (lambda x: wengert.sin(), ["sin()", "missing", "position 1"]),
        (lambda x: wengert.sin(x, x), ["sin()", "1 positional", "2 were given", "sin(Tensor"]),
        (lambda x: wengert.sum(x, dim="a"), ["sum()", "'dim'", "position 2", "ints", "str"]),
        (lambda x: wengert.sum(x, 1.5), ["sum()", "'dim'", "float"]),
        (lambda x: wengert.sum(x, dim=True), ["sum()", "'dim'", "bool"]),
        (lambda x: wengert.sum(x, foo=1), ["sum()", "unexpected keyword argument 'foo'"]),
        (lambda x: wengert.cumsum(x, 0, speed=1), ["cumsum()", "'speed'", "signature: cumsum("]),
        (lambda x: wengert.cumsum(x, dim=0, axis=0), ["cumsum()", "multiple values"]),
        (lambda x: x.transpose(0, dim0=1), ["transpose()", "multiple values for argument 'dim0'"]),
        (lambda x: x.transpose(0), ["transpose()", "'dim1'", "signature: transpose("]),
        (lambda x: x.view(2, "a"), ["view()", "'size'", "tuple of ints", "str"]),
        (lambda x: x.view(2.0, 3), ["view()", "'size'", "float"]),
        (lambda x: x.view(), ["view()", "size"]),
        (lambda x: x.topk("a"), ["topk()", "'k'", "int", "str"]),
        (lambda x: x.gather(0, 1), ["gather()", "'index'", "Tensor", "int"]),
        (lambda x: x.add_("a"), ["add_()", "'other'", "Tensor", "str"]),
        (lambda x: x.exp_(1), ["exp_()", "were given"]),
        (lambda x: wengert.cumsum(x, 0, dtype="float"), ["'dtype'", "dtype", "str"]),
        (lambda x: wengert.stack([x, None]), ["stack()", "element 1", "NoneType"]),
    ],
)
def test_texts_name_everything(call, parts):
    with pytest.raises(TypeError) as caught:
        call(ramp())
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x: x + "a",
        lambda lib, x: "a" + x,
        lambda lib, x: x + None,
        lambda lib, x: x + [1],
        lambda lib, x: x - object(),
        lambda lib, x: x @ 1,
        lambda lib, x: x**"2",
        lambda lib, x: lib.eq(x, "a"),
        lambda lib, x: lib.pow(x, "2"),
        lambda lib, x: x.fill_("a"),
        lambda lib, x: x.squeeze("a"),
        lambda lib, x: x.sort("a"),
        lambda lib, x: x.repeat("a"),
        lambda lib, x: x.flatten(0, "a"),
        lambda lib, x: lib.where(x > 0, x, "a"),
        lambda lib, x: lib.sum(x, dim=0, axis=0),
        lambda lib, x: lib.sum(x, keepdim=True, foo=2),
    ],
)
def test_type_errors(lib, call):
    with pytest.raises(TypeError):
        call(lib, ramp(lib))


def test_comparison_with_what_is_no_number(lib):
    assert (ramp(lib) == "a") is False
    assert (ramp(lib) != "a") is True
    assert (ramp(lib) == None) is False  # noqa: E711


# out= ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x, out: lib.exp(x, out=out),
        lambda lib, x, out: lib.add(x, 1, out=out),
        lambda lib, x, out: lib.mul(x, x, out=out),
        lambda lib, x, out: lib.sum(x, 0, keepdim=True, out=out),
        lambda lib, x, out: lib.matmul(x, x.t(), out=out),
        lambda lib, x, out: lib.cat([x, x], out=out),
        lambda lib, x, out: lib.cumsum(x, 0, out=out),
        lambda lib, x, out: lib.tanh(x, out=out),
    ],
)
def test_out_is_filled_resized_and_returned(lib, call):
    x, out = ramp(lib), lib.empty(0)
    wanted = call(lib, x, None)
    version = out._version
    assert call(lib, x, out) is out
    assert out.tolist() == wanted.tolist()
    assert tuple(out.shape) == tuple(wanted.shape)
    assert out._version > version


def test_out_keeps_its_memory_when_it_fits(lib):
    x = ramp(lib)
    whole = lib.zeros(4, 3)
    lib.mul(x, 2, out=whole[1:3])
    assert whole[1:3].tolist() == (x * 2).tolist()
    assert whole[0].tolist() == whole[3].tolist() == [0.0] * 3


def test_out_of_another_dtype(lib):
    x, out = ramp(lib), lib.empty(2, 3, dtype=lib.float64)
    lib.exp(x, out=out)
    assert out.dtype == lib.float64
    np.testing.assert_allclose(out.numpy(), x.exp().numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        lib.exp(x, out=lib.empty(2, 3, dtype=lib.int64))


def test_out_does_not_record(lib):
    x = ramp(lib).requires_grad_()
    with pytest.raises(RuntimeError, match="out=... arguments don't support automatic"):
        lib.exp(x, out=lib.empty(2, 3))
    with lib.no_grad():
        out = lib.exp(x, out=lib.empty(2, 3))
    assert not out.requires_grad


def test_out_that_requires_grad(lib):
    out = lib.empty(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="out=... arguments don't support automatic"):
        lib.exp(ramp(lib), out=out)
    with lib.no_grad():
        lib.exp(ramp(lib), out=out)
    assert out.requires_grad and out.is_leaf


def test_out_of_several_results(lib):
    x = ramp(lib)
    values, indices = lib.empty(0), lib.empty(0, dtype=lib.int64)
    result = lib.sort(x, 1, descending=True, out=(values, indices))
    assert values.tolist() == [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]
    assert indices.tolist() == [[2, 1, 0]] * 2
    assert result[0] is values and result[1] is indices


def test_out_none_is_no_out(lib):
    x = ramp(lib)
    assert lib.mul(x, 2, out=None).tolist() == (x * 2).tolist()


def test_out_is_changed_in_place_for_autograd(lib):
    """A saved tensor that is overwritten through out= is noticed."""
    x, w = ramp(lib).requires_grad_(), lib.ones(2, 3)
    y = x * w
    with lib.no_grad():
        lib.exp(x, out=w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# Overloads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda lib, x: lib.ops.aten.exp.default(x, x), "exp() expected at most 1 argument(s)"),
        (lambda lib, x: lib.ops.aten.exp.default(), "missing value for argument 'self'"),
        (
            lambda lib, x: lib.ops.aten.exp.default("a"),
            "Expected a value of type 'Tensor' for argument 'self' but instead found type 'str'",
        ),
        (
            lambda lib, x: lib.ops.aten.permute.default(x, "a"),
            "Expected a value of type 'List[int]' for argument 'dims'",
        ),
        (
            lambda lib, x: lib.ops.aten.add.Tensor(x, x, nonsense=1),
            "Unknown keyword argument 'nonsense'",
        ),
    ],
)
def test_overloads_raise_as_pytorchs_do(lib, call, text):
    with pytest.raises(RuntimeError) as caught:
        call(lib, ramp(lib))
    assert text in str(caught.value)
