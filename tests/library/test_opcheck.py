"""What `opcheck` finds; tests with `lib` run on PyTorch's too."""

import pytest

import wengert
from library.support import fresh_name, make
from wengert.library.checks import OpCheckError

COMMON = ("test_schema", "test_autograd_registration", "test_faketensor")


def check(lib, operator, args, **options):
    options.setdefault("test_utils", COMMON)
    return lib.library.opcheck(operator, args, **options)


def failure_of(lib, operator, args, **options):
    with pytest.raises(Exception, match=r"opcheck\(op, \.\.\.\): test_\w+ failed with") as failure:
        check(lib, operator, args, **options)
    assert type(failure.value).__name__ == "OpCheckError"
    return str(failure.value)


@pytest.fixture
def x(lib):
    return lib.tensor([1.0, 2.0, 3.0], requires_grad=True)


def test_success(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_fake(lambda x: lib.empty_like(x))
    operator.register_autograd(lambda ctx, grad: grad * 2)
    expected = dict.fromkeys(COMMON, "SUCCESS")
    assert check(lib, operator, (x,)) == expected
    assert check(lib, operator._opoverload, (x,)) == expected
    assert check(lib, getattr(lib.ops.wengert_tests, operator._name), (x,)) == expected
    assert check(lib, operator, (), kwargs={"x": x}) == expected
    assert check(lib, operator, (x,), test_utils="test_schema") == {"test_schema": "SUCCESS"}


def test_operators_of_the_library(lib, x):
    assert check(lib, lib.ops.aten.relu.default, (x,)) == dict.fromkeys(COMMON, "SUCCESS")
    assert check(lib, lib.ops.aten.mul_.Tensor, (x.detach(), x.detach()))


def test_missing_fake(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    assert "test_faketensor failed with There was no fake impl" in failure_of(lib, operator, (x,))
    results = check(lib, operator, (x,), raise_exception=False)
    assert results["test_schema"] == "SUCCESS"
    assert isinstance(results["test_faketensor"], RuntimeError)


@pytest.mark.parametrize(
    ("fake", "message"),
    [
        (lambda x: x.new_empty(2), "Shapes"),
        (lambda x: x.new_empty(3, dtype=x.new_empty(1).long().dtype), "Dtypes"),
    ],
)
def test_wrong_fake(lib, define, x, fake, message):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_fake(fake)
    assert message in failure_of(lib, operator, (x,))


def test_undeclared_mutation(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x.add_(1) * 2)
    operator.register_fake(lambda x: lib.empty_like(x))
    message = failure_of(lib, operator, (x.detach(),))
    assert "Argument x is not defined as mutable but was mutated" in message
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_declared_mutation(lib, define, x):
    operator = define("(Tensor(a!) x) -> ()", lambda x: None, mutates_args={"x"})
    operator.register_fake(lambda x: None)
    assert check(lib, operator, (x.detach(),)) == dict.fromkeys(COMMON, "SUCCESS")


def test_aliases(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x.view(-1))
    assert "may not alias any inputs" in failure_of(lib, operator, (x,), test_utils="test_schema")
    with lib.library._scoped_library(fresh_name("wengert_library"), "DEF") as library:
        library.define("hidden(Tensor x) -> Tensor")
        library.define("declared(Tensor(a) x) -> Tensor(a)")
        for name in ("hidden", "declared"):
            library.impl(name, lambda x: x.view(-1), "CPU")
            library.impl(name, lambda x: x.view(-1), "Meta")
        ops = getattr(lib.ops, library.ns)
        message = failure_of(lib, ops.hidden.default, (x,), test_utils="test_schema")
        assert "Argument x is not defined to alias output but was aliasing" in message
        assert check(lib, ops.declared.default, (x,), test_utils="test_schema")


def test_kernels_that_are_recorded(lib, x):
    with lib.library._scoped_library(fresh_name("wengert_library"), "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.define("composite(Tensor x) -> Tensor")
        library.impl("f", lambda x: x * 2, "CPU")
        library.impl("composite", lambda x: x * 2)
        ops = getattr(lib.ops, library.ns)
        message = failure_of(lib, ops.f.default, (x,), test_utils="test_autograd_registration")
        assert "does not have an autograd kernel defined at an autograd key" in message
        options = {"test_utils": "test_autograd_registration"}
        assert check(lib, ops.f.default, (x.detach(),), **options)
        assert check(lib, ops.composite.default, (x,), **options)


def test_wrong_use(lib, define, x):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        check(lib, operator, (x,), test_utils="test_everything")
    with pytest.raises(ValueError, match="op must be"):
        check(lib, 3, (x,))


# Ours alone --------------------------------------------------------------------------------------


def squares():
    """Squares of a list and their sum, with the derivative."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[0])
        ctx.power = inputs[1]

    def backward(ctx, grads, total):
        found = []
        for g, x in zip(grads, ctx.saved_tensors, strict=True):
            found.append((g + total) * ctx.power * x)
        return found, None

    operator = make(
        "(Tensor[] xs, int power=2, *, bool unused=False) -> (Tensor[], Tensor)",
        lambda xs, power, unused: ([x * x for x in xs], sum(x * x for x in xs)),
    )
    operator.register_autograd(
        backward,
        setup_context=lambda ctx, inputs, keyword_only_inputs, output: setup_context(
            ctx, inputs, output
        ),
    )
    operator.register_fake(
        lambda xs, power, unused: ([wengert.empty_like(x) for x in xs], wengert.empty_like(xs[0]))
    )
    return operator


def test_derivatives_are_checked():
    xs = [wengert.tensor([1.0, 2.0], requires_grad=True), wengert.tensor([3.0, 4.0])]
    operator = squares()
    assert set(wengert.library.opcheck(operator, (xs,)).values()) == {"SUCCESS"}
    results = wengert.library.opcheck(operator, (xs, 3), raise_exception=False)
    assert "mismatch" in str(results["test_gradcheck"])
    assert wengert.library.opcheck(operator, (xs, 3), rtol=10.0)["test_gradcheck"] == "SUCCESS"


def test_a_missing_formula_is_found():
    operator = make("(Tensor x) -> Tensor", lambda x: x * 2)
    x = wengert.ones(2, requires_grad=True)
    with pytest.raises(OpCheckError, match="no autograd formula was registered"):
        wengert.library.opcheck(operator, (x,), test_utils="test_gradcheck")
    assert wengert.library.opcheck(operator, (x.detach(),), test_utils="test_gradcheck")


def test_strides_of_the_fake():
    operator = make("(Tensor x) -> Tensor", lambda x: x.t().clone())
    operator.register_fake(lambda x: wengert.empty((x.shape[1], x.shape[0]), device="meta"))
    x = wengert.ones(2, 3)
    results = wengert.library.opcheck(operator, (x,), raise_exception=False)
    assert "Strides" in str(results["test_faketensor"])


def test_number_of_results_of_the_fake():
    operator = make("(Tensor x) -> Tensor[]", lambda x: [x * 2, x * 3])
    operator.register_fake(lambda x: [wengert.empty_like(x)])
    with pytest.raises(OpCheckError, match="on meta tensors returns"):
        wengert.library.opcheck(operator, (wengert.ones(2),))


def test_all_operators_of_one_argument():
    x = wengert.tensor([0.25, 0.5], requires_grad=True)
    for name in ("sin", "exp", "sqrt", "tanh", "neg", "sum", "square", "erf", "log1p"):
        operator = getattr(wengert.ops.aten, name).default
        assert set(wengert.library.opcheck(operator, (x,)).values()) == {"SUCCESS"}
