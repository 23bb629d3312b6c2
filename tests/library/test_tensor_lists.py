"""`_library.autograd`: Functions with lists of tensors, formulas as kernels for Autograd."""

import importlib

import pytest


@pytest.fixture
def inner(lib):
    return importlib.import_module(f"{lib.__name__}._library.autograd")


@pytest.fixture
def scaled(lib, inner):
    """A Function ``(tensors, factor, number) -> (list, tensor)``, what it saw, what to return."""

    class Scaled:
        seen = []
        returns = None

    @inner.supports_tensorlist
    class Function(lib.autograd.Function):
        @staticmethod
        def forward(ctx, tensors, factor, number):
            Scaled.seen = [type(tensors), len(tensors)]
            ctx.save_for_backward(*tensors, factor)
            return [t * factor for t in tensors], factor * number

        @staticmethod
        def backward(ctx, grads, grad):
            Scaled.seen += [ctx.needs_input_grad, type(grads)]
            if Scaled.returns is not None:
                return Scaled.returns(grads, grad)
            *tensors, factor = ctx.saved_tensors
            products = [g * t for g, t in zip(grads, tensors, strict=True)]
            return [g * factor for g in grads], sum(products) + grad, None

    Scaled.apply = Function.apply
    Scaled.function = Function
    return Scaled


def test_lists_in_and_out(lib, scaled):
    x, factor = lib.ones(2, requires_grad=True), lib.full((2,), 3.0, requires_grad=True)
    outs, other = scaled.apply([x, lib.ones(2)], factor, 5)
    assert type(outs) is list
    assert [out.tolist() for out in outs] == [[3.0, 3.0]] * 2
    assert all(out.grad_fn.name() == "FunctionBackward" for out in (*outs, other))
    (sum(outs) + other).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert factor.grad.tolist() == [3.0, 3.0]
    assert scaled.seen == [list, 2, ([True, False], True, False), list]


def test_the_result_keeps_its_structure(lib, inner):
    def apply(result):
        @inner.supports_tensorlist
        class Function(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return result(x)

            @staticmethod
            def backward(ctx, *grads):
                return grads[0][0] if isinstance(grads[0], list) else grads[0]

        x = lib.ones(2, requires_grad=True)
        out = Function.apply(x)
        item = out[0] if isinstance(out, (list, tuple)) else out
        item.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
        return out

    assert isinstance(apply(lambda x: x * 1), lib.Tensor)
    assert type(apply(lambda x: [x * 1])) is list
    assert type(apply(lambda x: (x * 1,))) is tuple


def test_empty_lists(lib, scaled):
    factor = lib.ones(2, requires_grad=True)
    scaled.returns = lambda grads, grad: (grads, grad, None)
    outs, other = scaled.apply([], factor, 2)
    assert outs == []
    other.sum().backward()
    assert factor.grad.tolist() == [1.0, 1.0]
    assert scaled.seen == [list, 0, ([], True, False), list]


def test_gradients_may_be_none(lib, scaled):
    x, factor = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    scaled.returns = lambda grads, grad: ([None, None], grad, None)
    outs, other = scaled.apply([x, x], factor, 2)
    (sum(outs) + other).sum().backward()
    assert x.grad is None
    assert factor.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "returned",
    [
        lambda grads, grad: ([grad], None, None),
        lambda grads, grad: (None, None, None),
        lambda grads, grad: ((grad, None), None, None),
        lambda grads, grad: ([grad, None], None),
        lambda grads, grad: ([grad, None], None, None, None),
        lambda grads, grad: ([1, None], None, None),
    ],
)
def test_gradients_must_have_the_structure_of_the_arguments(lib, scaled, returned):
    x = lib.ones(2, requires_grad=True)
    scaled.returns = returned
    outs, other = scaled.apply([x, x], lib.ones(2), 2)
    with pytest.raises(RuntimeError, match="return from backward to be of the same structure as"):
        (sum(outs) + other).sum().backward()


def test_the_name_of_the_structure_is_taken(lib, inner):
    @inner.supports_tensorlist
    class Function(lib.autograd.Function):
        @staticmethod
        def forward(ctx, tensors):
            ctx._pt_metadata = 3
            return tensors[0] * 1

    with pytest.raises(RuntimeError, match="Please don't set ctx._pt_metadata"):
        Function.apply([lib.ones(2, requires_grad=True)])


def test_methods_are_not_called_by_hand(lib, scaled):
    with pytest.raises(NotImplementedError, match="Function.forward directly"):
        scaled.function.forward(None, [lib.ones(2)], lib.ones(2), 1)
    with pytest.raises(NotImplementedError, match="Function.backward directly"):
        scaled.function.backward(object(), [lib.ones(2)], lib.ones(2))


def test_where_flattening_stops(lib, inner):
    x = lib.ones(1)
    for value, stops, stops_with_none in (
        ([x], False, False),
        ([x, None], True, False),
        ([1], True, True),
        ([], False, False),
        ((1,), False, False),
        (3, True, True),
        (None, True, True),
    ):
        assert inner.not_list_of_tensor(value) is stops
        assert inner.not_list_of_optional_tensor(value) is stops_with_none


# Formulas as kernels ------------------------------------------------------------------------------


@pytest.fixture
def with_formula(lib, inner, defined):
    """Makes an operator whose kernel for Autograd comes from a formula."""

    def make(schema, kernel, backward, setup_context=None):
        library, f = defined(schema, kernel)
        info = inner.Info(backward, setup_context)
        assert info == inner.Info(_backward_fn=backward, _setup_context_fn=setup_context)
        library.impl(
            "f", inner.make_autograd_impl(f.default, info), "Autograd", with_keyset=True
        )
        return f

    return make


def test_a_formula(lib, with_formula):
    def keep(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.number = inputs[1]

    f = with_formula(
        "(Tensor x, int n=3) -> Tensor",
        lambda x, n=3: x.detach() ** n,
        lambda ctx, grad: (grad * ctx.number * ctx.saved_tensors[0] ** (ctx.number - 1), None),
        keep,
    )
    x = lib.tensor([2.0], requires_grad=True)
    out = f(x)
    assert out.grad_fn.name().startswith("GeneratedBackwardFor_")
    out.backward()
    assert x.grad.tolist() == [12.0]
    assert not f(lib.ones(1)).requires_grad


def test_a_formula_with_lists_and_keywords(lib, with_formula):
    seen = {}

    def keep(ctx, inputs, keyword_only_inputs, output):
        seen.update(keyword_only_inputs)
        ctx.scale = keyword_only_inputs["scale"]

    def backward(ctx, grads):
        seen["needs"] = ctx.needs_input_grad
        return [None if g is None else g * ctx.scale for g in grads]

    f = with_formula(
        "(Tensor[] x, *, int scale, int offset=7) -> Tensor[]",
        lambda x, scale, offset=7: [t.detach() * scale for t in x],
        backward,
        keep,
    )
    x = lib.ones(2, requires_grad=True)
    first, _ = f([x, lib.ones(2)], scale=4)
    first.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    assert seen == {"scale": 4, "offset": 7, "needs": ([True, False],)}


def test_without_a_formula_backward_raises(lib, with_formula):
    f = with_formula("(Tensor x) -> Tensor", lambda x: x * 2, None)
    out = f(lib.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        out.sum().backward()
