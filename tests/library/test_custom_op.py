"""Calling custom operators: arguments, results, kernels, mutation. All runs on PyTorch too."""

import itertools
from typing import Optional

import numpy as np
import pytest

import wengert
from library.support import fresh_name, make


def clone(x, *rest, **options):
    return x.clone()


# Definitions -------------------------------------------------------------------------------------


def test_decorator_infers_the_schema(lib):
    def scale(x: lib.Tensor, factor: float = 2.0, *, shift: int = 0) -> lib.Tensor:
        """The documentation."""
        return x * factor + shift

    name = fresh_name("scale")
    operator = lib.library.custom_op(f"wengert_tests::{name}", mutates_args=())(scale)
    assert operator(lib.ones(2)).tolist() == [2.0, 2.0]
    assert operator(lib.ones(2), 3, shift=1).tolist() == [4.0, 4.0]
    assert repr(operator) == f"<CustomOpDef(wengert_tests::{name})>"
    schema = f"wengert_tests::{name}(Tensor x, float factor=2., *, SymInt shift=0) -> Tensor"
    assert str(operator._opoverload._schema) == schema
    assert operator._opoverload is getattr(lib.ops.wengert_tests, name).default
    assert operator._opoverload._schema.name == operator._qualname == f"wengert_tests::{name}"


def test_a_second_definition_replaces_the_first(lib):
    name = f"wengert_tests::{fresh_name('twice')}"
    schema = "(Tensor x) -> Tensor"
    lib.library.custom_op(name, lambda x: x + 1, mutates_args=(), schema=schema)
    lib.library.custom_op(name, lambda x: x + 2, mutates_args=(), schema=schema)
    found = getattr(lib.ops.wengert_tests, name.partition("::")[2])
    assert found(lib.zeros(1)).item() == 2.0


@pytest.mark.parametrize("name", ["f", "a::b::c"])
def test_names_have_one_namespace(lib, name):
    with pytest.raises(ValueError):
        lib.library.custom_op(name, clone, mutates_args=(), schema="(Tensor x) -> Tensor")


@pytest.mark.parametrize("name", ["1a::b", "a-b::c", "a::b-c"])
def test_names_are_identifiers(lib, name):
    with pytest.raises(RuntimeError, match="expected"):
        lib.library.custom_op(name, clone, mutates_args=(), schema="(Tensor x) -> Tensor")


def test_mutated_arguments_must_be_told(lib):
    with pytest.raises(TypeError, match="mutates_args"):
        lib.library.custom_op("wengert_tests::f", clone, schema="(Tensor x) -> Tensor")


@pytest.mark.parametrize(
    ("schema", "mutated"), [("(Tensor x) -> Tensor", {"x"}), ("(Tensor(a!) x) -> ()", ())]
)
def test_schema_and_mutated_arguments_must_agree(define, schema, mutated):
    with pytest.raises(ValueError, match="Attempted to create a custom op with `mutates_args="):
        define(schema, clone, mutates_args=mutated)


def test_tensors_are_not_keyword_only(define):
    with pytest.raises(NotImplementedError, match="custom_op with kwarg-only Tensor args"):
        define("(Tensor x, *, Tensor y) -> Tensor", clone)


# Arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("int", 3, 3),
        ("int", True, 1),
        ("int", np.int64(3), 3),
        ("SymInt", 3, 3),
        ("float", 1, 1.0),
        ("float", True, 1.0),
        ("float", np.float32(2), 2.0),
        ("bool", True, True),
        ("bool", 0, False),
        ("Scalar", 1, 1),
        ("Scalar", 1.5, 1.5),
        ("Scalar", 1j, 1j),
        ("str", "a", "a"),
        ("int[]", (1, 2), [1, 2]),
        ("int[]", [], []),
        ("int[]", np.array([1, 2]), [1, 2]),
        ("int[2]", 3, [3, 3]),
        ("int[2]", [1, 2], [1, 2]),
        ("float[]", [1, 2.5], [1.0, 2.5]),
        ("float[2]", 1.5, [1.5, 1.5]),
        ("bool[]", [1, True], [True, True]),
        ("Scalar[]", [1, 2.5, True], [1, 2.5, True]),
        ("str[]", ["a"], ["a"]),
        ("int?", None, None),
        ("int?", 3, 3),
        ("int[]?", None, None),
        ("int[]?", (1,), [1]),
        ("Tensor?", None, None),
    ],
)
def test_values_arrive_as_their_types(define, lib, kind, given, expected):
    seen = []
    operator = define(f"(Tensor x, {kind} value) -> Tensor", lambda x, v: seen.append(v) or x + 1)
    operator(lib.ones(1), given)
    operator(lib.ones(1), value=given)
    assert seen == [expected, expected]
    assert type(seen[0]) is type(expected)


def test_tensors_arrive_as_they_are(define, lib):
    seen = []
    operator = define(
        "(Tensor x, Tensor[] ys, Tensor? z, Tensor?[] ws) -> Tensor",
        lambda *args: seen.extend(args) or args[0] + 1,
    )
    x, y = lib.ones(1), lib.zeros(1)
    operator(x, (x, y), y, [None, x])
    assert seen[0] is x
    assert seen[1][1] is y and type(seen[1]) is list
    assert seen[2] is y
    assert seen[3][0] is None and seen[3][1] is x


def test_numbers_from_tensors_and_library_types(define, lib):
    seen = []
    operator = define(
        "(Tensor x, int i, float f, ScalarType d, Device e) -> Tensor",
        lambda x, *rest: seen.extend(rest) or x + 1,
    )
    operator(lib.ones(1), lib.tensor(3), lib.tensor(2.5), lib.float32, "cpu")
    assert seen == [3, 2.5, lib.float32, lib.device("cpu")]


def test_defaults_are_filled_in(define, lib):
    seen = []
    operator = define(
        "(Tensor x, int i=3, int[2] l=1, Tensor? t=None, *, str s='a') -> Tensor",
        lambda x, *rest, **options: seen.append((rest, options)) or x + 1,
    )
    operator(lib.ones(1))
    # PyTorch leaves the defaults to the kernel.
    assert seen[0] in (((3, [1, 1], None), {"s": "a"}), ((), {}))


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "is missing value for argument 'x'"),
        (("x",), {}, "is missing value for argument 'i'"),
        (("x", 1, 2.0, 3), {}, r"takes 3 positional argument\(s\) but 4"),
        (("x", 1, 2.0), {"z": 3}, "Unknown keyword argument 'z' for operator"),
        (("x", 1), {"x": 3, "f": 2.0}, "'x' specified both as positional and keyword argument"),
        ((3, 1, 2.0), {}, "Expected a value of type 'Tensor' for argument 'x' .* type 'int'"),
        (("x", 1.5, 2.0), {}, "Expected a value of type 'int' for argument 'i' .* type 'float'"),
        (("x", "a", 2.0), {}, "Expected a value of type 'int' for argument 'i' .* type 'str'"),
        (("x", 1, "a"), {}, "Expected a value of type 'float' for argument 'f' .* type 'str'"),
        (("x", 1, 2.0), {"l": 3}, r"Expected a value of type 'List\[int\]' for argument 'l'"),
        (("x", 1, 2.0), {"l": ["q"]}, r"Expected a value of type 'List\[int\]' for argument 'l'"),
    ],
)
def test_wrong_arguments(define, lib, args, kwargs, message):
    operator = define("(Tensor x, int i, float f, *, int[] l=[]) -> Tensor", clone)
    x = lib.ones(1)

    with pytest.raises(RuntimeError, match=message):
        operator(*[x if value == "x" else value for value in args], **kwargs)


@pytest.mark.parametrize("items", [(1,), ("x", None), ("x", 1)])
def test_wrong_elements_of_a_list(define, lib, items):
    operator = define("(Tensor[] xs) -> Tensor", lambda xs: xs[0] + 1)
    x = lib.ones(1)
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'List\[Tensor\]'"):
        operator([x if item == "x" else item for item in items])


# Results -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returns", "kernel", "check"),
    [
        ("()", lambda x: None, lambda out: out is None),
        ("Tensor", lambda x: None, lambda out: out is None),
        ("int", lambda x: 3, lambda out: out == 3),
        ("float", lambda x: 3, lambda out: type(out) is float),
        ("(Tensor, int)", lambda x: (x + 1, 3), lambda out: out[1] == 3 and type(out) is tuple),
        ("(Tensor, Tensor)", lambda x: [x + 1, x + 2], lambda out: type(out) is tuple),
        ("Tensor[]", lambda x: (x + 1, x + 2), lambda out: type(out) is list and len(out) == 2),
        ("Tensor[]", lambda x: [], lambda out: out == []),
    ],
)
def test_results_are_as_the_schema_says(define, lib, returns, kernel, check):
    assert check(define(f"(Tensor x) -> {returns}", kernel)(lib.ones(1)))


@pytest.mark.parametrize(
    ("returns", "kernel"),
    [
        ("Tensor", lambda x: 3),
        ("()", lambda x: x + 1),
        ("(Tensor, Tensor)", lambda x: x + 1),
        ("(Tensor, Tensor)", lambda x: (x + 1,)),
        ("Tensor[]", lambda x: [1]),
    ],
)
def test_results_that_are_not(define, lib, returns, kernel):
    with pytest.raises((RuntimeError, TypeError, AssertionError)):
        define(f"(Tensor x) -> {returns}", kernel)(lib.ones(2))


def same_twice(x):
    y = x.clone()
    return y, y


def with_a_view(x):
    y = x.clone()
    return y, y.view(-1)


@pytest.mark.parametrize(
    ("returns", "kernel"),
    [
        ("Tensor", lambda x: x),
        ("Tensor", lambda x: x.view(-1)),
        ("Tensor", lambda x: x[1:]),
        ("Tensor", lambda x: x.detach()),
        ("(Tensor, Tensor)", same_twice),
        ("(Tensor, Tensor)", with_a_view),
        ("Tensor[]", lambda x: [x + 1, x]),
    ],
)
def test_results_must_not_share_memory(define, lib, returns, kernel):
    operator = define(f"(Tensor x) -> {returns}", kernel)
    with pytest.raises(RuntimeError, match="must not also be an input.*may not alias any inputs"):
        operator(lib.ones(2))


def test_a_view_of_fresh_memory_is_no_alias(define, lib):
    operator = define("(Tensor x) -> Tensor", lambda x: (x + 1).view(2, 1))
    assert operator(lib.ones(2)).tolist() == [[2.0], [2.0]]


# Mutation ----------------------------------------------------------------------------------------


def test_mutation_counts_a_version(define, lib):
    operator = define("(Tensor(a!) x) -> ()", lambda x: None, mutates_args={"x"})
    x = lib.zeros(2)
    operator(x)
    assert x._version == 1
    with lib.no_grad():
        operator(x)
    assert x._version == 2


def test_mutated_lists_and_options(define, lib):
    def kernel(xs, y):
        for x in (*xs, y):
            if x is not None:
                x.numpy()[...] += 1

    operator = define("(Tensor(a!)[] xs, Tensor(b!)? y) -> ()", kernel, mutates_args={"xs", "y"})
    a, b, c = (lib.zeros(2) for _ in range(3))
    operator([a, b], c)
    operator([a], None)
    assert [t.tolist() for t in (a, b, c)] == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
    assert [t._version for t in (a, b, c)] == [2, 1, 1]


def test_mutation_of_a_saved_tensor_is_noticed(define, lib):
    operator = define("(Tensor(a!) x) -> ()", lambda x: None, mutates_args={"x"})
    x, y = lib.ones(2, requires_grad=True), lib.ones(2)
    product = x * y
    operator(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_results_beside_mutation(define, lib):
    def kernel(x, y):
        x.add_(1)
        return y * 2

    operator = define("(Tensor(a!) x, Tensor y) -> Tensor", kernel, mutates_args={"x"})
    x = lib.zeros(2)
    assert operator(x, lib.ones(2)).tolist() == [2.0, 2.0]
    assert x.tolist() == [1.0, 1.0]


def test_mutation_of_what_requires_grad_is_refused():
    operator = make("(Tensor(a!) x) -> ()", lambda x: None, mutates_args={"x"})
    leaf = wengert.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        operator(leaf)
    with pytest.raises(RuntimeError, match="changes an argument that requires grad"):
        operator(leaf * 2)
    with wengert.no_grad():
        operator(leaf)
    operator(leaf.detach())
    assert leaf._version == 2


# Kernels -----------------------------------------------------------------------------------------


def test_kernels_per_device(define, lib):
    operator = define("(Tensor x) -> Tensor", lambda x: x + 1, device_types="cpu")
    assert operator(lib.zeros(1)).item() == 1.0
    operator.register_kernel("cpu")(lambda x: x + 2)
    assert operator(lib.zeros(1)).item() == 2.0
    operator.register_kernel(["cpu", "cuda"], lambda x: x + 3)
    assert operator(lib.zeros(1)).item() == 3.0


def test_a_device_without_kernel(define, lib):
    operator = define("(Tensor x) -> Tensor", clone, device_types="cuda")
    with pytest.raises(NotImplementedError, match="Could not run '.*' .* from the 'CPU' backend"):
        operator(lib.zeros(1))


def test_unknown_device_types(define):
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        define("(Tensor x) -> Tensor", clone, device_types="toaster")


@pytest.mark.filterwarnings("ignore:set_kernel_enabled")
def test_a_kernel_can_be_switched_off(define, lib):
    operator = define("(Tensor x) -> Tensor", lambda x: x + 1)
    operator.register_kernel("cpu", lambda x: x + 2)
    x = lib.zeros(1)
    with operator.set_kernel_enabled("cpu", False):
        assert operator(x).item() == 1.0
        with operator.set_kernel_enabled("cpu", True):
            assert operator(x).item() == 2.0
        assert operator(x).item() == 1.0
    assert operator(x).item() == 2.0
    with operator.set_kernel_enabled("cuda", False):
        assert operator(x).item() == 2.0


def test_operators_without_tensors(define, lib):
    operator = define("(int n, Device? device=None) -> Tensor", lambda n, device=None: lib.ones(n))
    assert operator(2).tolist() == [1.0, 1.0]
    assert operator(2, device="cpu").tolist() == [1.0, 1.0]


def test_meta_tensors_need_a_fake(define, lib):
    operator = define("(Tensor x) -> Tensor", lambda x: x[:1] + 1)
    x = lib.ones(3, 2, device="meta")
    with pytest.raises(RuntimeError, match="There was no fake impl registered for <CustomOpDef"):
        operator(x)

    @operator.register_fake
    def _(x):
        return x.new_empty((1, x.shape[1]))

    assert tuple(operator(x).shape) == (1, 2)
    assert operator(x).device.type == "meta"
    assert tuple(operator(lib.ones(3, 2)).shape) == (1, 2)


def test_kernels_record_nothing(define, lib):
    seen = []

    def kernel(x):
        y = x * 2
        seen.append((lib.is_grad_enabled(), x.requires_grad, y.requires_grad))
        return y

    operator = define("(Tensor x) -> Tensor", kernel)
    assert operator(lib.ones(1, requires_grad=True)).requires_grad
    assert seen == [(False, True, False)]


def test_kernels_may_use_numpy(define, lib):
    operator = define("(Tensor x) -> Tensor", lambda x: lib.from_numpy(np.sin(x.numpy())))
    x = lib.ones(2, requires_grad=True)
    assert operator(x).tolist() == pytest.approx([np.sin(1.0)] * 2)


def test_exceptions_pass_through(define, lib):
    def kernel(x):
        raise KeyError("mine")

    operator = define("(Tensor x) -> Tensor", kernel)
    with pytest.raises(KeyError, match="mine"):
        operator(lib.ones(1, requires_grad=True))
    assert lib.is_grad_enabled()


def test_optional_annotations_of_the_older_kind(lib):
    def kernel(x: lib.Tensor, y: Optional[lib.Tensor] = None) -> lib.Tensor:  # noqa: UP045
        return x + 1 if y is None else x + y

    operator = lib.library.custom_op(
        f"wengert_tests::{fresh_name('op')}", kernel, mutates_args=()
    )
    x = lib.ones(1)
    assert [operator(x).item(), operator(x, x).item(), operator(x, None).item()] == [2.0] * 3


def test_every_combination_of_positions_and_keywords(define, lib):
    operator = define("(Tensor a, Tensor b, Tensor c) -> Tensor", lambda a, b, c: a + 2 * b + 4 * c)
    values = {name: lib.tensor(float(i)) for i, name in enumerate("abc", 1)}
    for count, order in itertools.product(range(4), itertools.permutations("abc")):
        positional = [values[name] for name in "abc"[:count]]
        keywords = {name: values[name] for name in order if name not in "abc"[:count]}
        assert operator(*positional, **keywords).item() == 17.0
