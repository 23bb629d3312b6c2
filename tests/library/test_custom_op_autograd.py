"""Derivatives of custom operators. All runs on PyTorch too."""

import gc
import importlib
import weakref

import pytest

import wengert
from library.support import make

MUL = "(Tensor x, Tensor y) -> Tensor"


def save_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def save_output(ctx, inputs, output):
    ctx.save_for_backward(output)


def mul_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return grad * y, grad * x


@pytest.fixture
def mul(define):
    """A product, with its derivative."""
    operator = define(MUL, lambda x, y: x * y)
    operator.register_autograd(mul_backward, setup_context=save_inputs)
    return operator


def test_gradients(mul, leaves):
    x, y = leaves([1.0, 2.0], [3.0, 4.0])
    mul(x, y).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert y.grad.tolist() == [1.0, 2.0]


def test_recorded_only_when_needed(mul, lib, leaves):
    x, y = leaves([1.0, 2.0], [3.0, 4.0])
    assert mul(x, y.detach()).requires_grad
    assert not mul(x.detach(), y.detach()).requires_grad
    with lib.no_grad():
        assert not mul(x, y).requires_grad
    with lib.inference_mode():
        assert not mul(x, y).requires_grad


def test_setup_context_runs_only_when_recorded(define, lib):
    calls = []
    operator = define(MUL, lambda x, y: x * y)
    operator.register_autograd(
        mul_backward, setup_context=lambda ctx, inputs, output: calls.append(1)
    )
    x = lib.ones(1)
    operator(x, x)
    assert calls == []
    operator(x.requires_grad_(), x)
    assert calls == [1]


def test_the_node(mul, leaves):
    x, y = leaves([1.0], [2.0])
    out = mul(x, y)
    name = out.grad_fn.name()
    assert name.startswith("GeneratedBackwardFor_wengert_tests_op")
    assert name.endswith("_defaultBackward")
    assert type(out.grad_fn).__name__ == name
    following = [fn for fn, _ in out.grad_fn.next_functions]
    assert [fn.variable is t for fn, t in zip(following, (x, y), strict=True)] == [True, True]
    assert [t is s for t, s in zip(out.grad_fn.saved_tensors, (x, y), strict=True)] == [True, True]
    assert out.grad_fn.needs_input_grad[:2] == (True, True)


def test_only_wanted_gradients_are_announced(define, leaves):
    seen = []

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad, None

    operator = define(MUL, lambda x, y: x * y)
    operator.register_autograd(backward)
    x, y = leaves([1.0], [2.0])
    operator(x, y.detach()).backward()
    assert seen == [(True, False)]


def test_inputs_are_the_callers_tensors(define, leaves):
    seen = []
    operator = define("(Tensor x, int k, Tensor? y=None) -> Tensor", lambda x, k, y=None: x * k)
    operator.register_autograd(
        lambda ctx, grad: (grad, None, None),
        setup_context=lambda ctx, inputs, output: seen.append((inputs, output)),
    )
    (x,) = leaves([1.0])
    out = operator(x, 3)
    ((inputs, output),) = seen
    assert inputs[0] is x
    assert inputs[1:] == (3, None)
    assert output is out


def test_keyword_only_arguments_come_apart(define, leaves):
    seen = []

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        seen.append((inputs[1:], keyword_only_inputs))
        ctx.scale = keyword_only_inputs["scale"]

    operator = define(
        "(Tensor x, int k=2, *, float scale=3.0, str mode='a') -> Tensor",
        lambda x, k=2, *, scale=3.0, mode="a": x * k * scale,
    )
    operator.register_autograd(
        lambda ctx, grad: (grad * 2 * ctx.scale, None), setup_context=setup_context
    )
    (x,) = leaves([1.0])
    operator(x).backward()
    assert x.grad.item() == 6.0
    operator(x, scale=5.0).backward()
    assert x.grad.item() == 16.0
    assert seen == [((2,), {"scale": 3.0, "mode": "a"}), ((2,), {"scale": 5.0, "mode": "a"})]


def test_backward_without_formula(define, leaves):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    (x,) = leaves([1.0])
    out = operator(x)
    assert out.requires_grad
    name = str(operator._opoverload)
    with pytest.raises(
        RuntimeError, match=f"Trying to backward through {name} but no autograd formula was regis"
    ):
        out.backward()


def test_formula_can_come_later_and_be_replaced(define, leaves):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    (x,) = leaves([1.0])
    out = operator(x)
    operator.register_autograd(lambda ctx, grad: grad * 7)
    out.backward()
    assert x.grad.item() == 7.0
    operator.register_autograd(lambda ctx, grad: grad * 5)
    operator(x).backward()
    assert x.grad.item() == 12.0


def test_no_formula_for_operators_that_mutate(define):
    operator = define("(Tensor(a!) x) -> ()", lambda x: None, mutates_args={"x"})
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional"):
        operator.register_autograd(lambda ctx: None)


def test_backward_is_not_recorded_unless_asked(define, lib, leaves):
    modes = []

    def backward(ctx, grad):
        modes.append(lib.is_grad_enabled())
        return grad * 2

    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_autograd(backward)
    (x,) = leaves([1.0])
    operator(x).backward()
    lib.autograd.grad(operator(x), x, create_graph=True)
    assert modes == [False, True]


def test_second_derivative(define, lib, leaves):
    exp = define("(Tensor x) -> Tensor", lambda x: x.exp())
    exp.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0], setup_context=save_output)
    (x,) = leaves([0.0, 1.0])
    (first,) = lib.autograd.grad(exp(x).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = lib.autograd.grad(second.sum(), x)
    for derivative in (first, second, third):
        assert derivative.tolist() == pytest.approx(x.exp().tolist())


def test_numerically(mul, lib, leaves):
    x, y = leaves([0.5, -1.0], [2.0, 3.0])
    assert lib.autograd.gradcheck(mul, (x, y))
    assert lib.autograd.gradgradcheck(mul, (x, y))


def test_saved_tensors_are_guarded(mul, leaves):
    x, y = leaves([1.0], [2.0])
    inner = x * 1
    out = mul(inner, y)
    inner.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_saved_outputs_are_guarded(define, leaves):
    exp = define("(Tensor x) -> Tensor", lambda x: x.exp())
    exp.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0], setup_context=save_output)
    (x,) = leaves([1.0])
    out = exp(x)
    out.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_backward_a_second_time(mul, leaves):
    x, y = leaves([1.0], [2.0])
    out = mul(x, y)
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_saved_tensor_hooks(mul, lib, leaves):
    log = []
    x, y = leaves([1.0], [2.0])
    with lib.autograd.graph.saved_tensors_hooks(
        lambda t: log.append("pack") or t, lambda t: log.append("unpack") or t
    ):
        out = mul(x, y)
    out.backward()
    assert log == ["pack", "pack", "unpack", "unpack"]


def test_only_tensors_are_saved(define, lib, leaves):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_autograd(
        lambda ctx, grad: grad, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(3)
    )
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        operator(*leaves([1.0]))


def test_none_can_be_saved(define, leaves):
    seen = []
    operator = define("(Tensor x, Tensor? y) -> Tensor", lambda x, y: x * 2)
    operator.register_autograd(
        lambda ctx, grad: seen.append(ctx.saved_tensors) or (grad, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    (x,) = leaves([1.0])
    operator(x, None).backward()
    assert seen[0][0] is x and seen[0][1] is None


def test_attributes_of_the_context(define, leaves):
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.names = ["a"]

    operator = define("(Tensor x, float factor) -> Tensor", lambda x, factor: x * factor)
    operator.register_autograd(
        lambda ctx, grad: (grad * ctx.factor * len(ctx.names), None), setup_context=setup_context
    )
    (x,) = leaves([1.0])
    out = operator(x, 4.0)
    assert out.grad_fn.factor == 4.0
    out.backward()
    assert x.grad.item() == 4.0


@pytest.mark.parametrize("name", ["inputs", "results", "arguments", "output"])
def test_attributes_of_any_name(define, leaves, name):
    def setup_context(ctx, inputs, output):
        setattr(ctx, name, (inputs[1], output))

    operator = define("(Tensor x, float factor) -> Tensor", lambda x, factor: x * factor)
    operator.register_autograd(
        lambda ctx, grad: (grad * getattr(ctx, name)[0], None), setup_context=setup_context
    )
    (x,) = leaves([1.0])
    operator(x, 4.0).backward()
    assert x.grad.item() == 4.0


def test_setup_context_is_called_by_keyword(define, leaves):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_autograd(lambda ctx, grad: grad, setup_context=lambda ctx: None)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        operator(*leaves([1.0]))


# What backward returns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "returned",
    [lambda g: (g, g, None), lambda g: (g, g, None, None), lambda g: (None, g, None)],
)
def test_accepted_returns(define, leaves, returned):
    operator = define("(Tensor x, Tensor y, int k) -> Tensor", lambda x, y, k: x * y * k)
    operator.register_autograd(lambda ctx, grad: returned(grad))
    x, y = leaves([1.0], [2.0])
    operator(x, y, 2).backward()
    assert y.grad.item() == 1.0


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda g: (g, g), "returned an incorrect number of gradients"),
        (lambda g: g, "returned an incorrect number of gradients"),
        (lambda g: [g, g, None], "returned an incorrect number of gradients"),
        (lambda g: (g, g, g), "returned a gradient different than None at position 3"),
        (lambda g: (g, 3, None), r"expected Variable or None \(got int\)"),
        (lambda g: (g, g.new_ones(3), None), "returned an invalid gradient at index 1"),
    ],
)
def test_refused_returns(define, leaves, returned, message):
    operator = define("(Tensor x, Tensor y, int k) -> Tensor", lambda x, y, k: x * y * k)
    operator.register_autograd(lambda ctx, grad: returned(grad))
    x, y = leaves([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(RuntimeError, match=message):
        operator(x, y, 2).sum().backward()


def test_arguments_left_at_their_defaults_need_no_gradient(define, leaves):
    operator = define("(Tensor x, int k=2) -> Tensor", lambda x, k=2: x * k)
    operator.register_autograd(lambda ctx, grad: grad * 2)
    (x,) = leaves([1.0])
    operator(x).backward()
    assert x.grad.item() == 2.0


# Lists -------------------------------------------------------------------------------------------

WEIGHTED = "(Tensor x, Tensor[] ys, int k) -> Tensor"


def weighted(x, ys, k):
    return x * k + sum(ys)


def test_lists_in(define, lib, leaves):
    seen = []

    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs[1])
        seen.append(type(inputs[1]))

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad * 3, [grad * (i + 1) for i in range(ctx.count)], None

    operator = define(WEIGHTED, weighted)
    operator.register_autograd(backward, setup_context=setup_context)
    x, y, z = leaves([1.0], [2.0], [3.0])
    operator(x, (y, z.detach(), z), 3).backward()
    assert [t.grad.item() for t in (x, y, z)] == [3.0, 1.0, 3.0]
    assert seen == [list, (True, [True, False, True], False)]


def test_a_tensor_in_a_list_is_reason_to_record(define, lib, leaves):
    operator = define(WEIGHTED, weighted)
    (y,) = leaves([2.0])
    assert operator(y.detach(), [y.detach(), y], 2).requires_grad
    assert not operator(y.detach(), [y.detach()], 2).requires_grad


@pytest.mark.parametrize(
    "returned",
    [
        lambda g: (g, None, None),
        lambda g: (g, (g, g), None),
        lambda g: (g, [g], None),
        lambda g: (g, [g, g, g], None),
        lambda g: (g, [g, g], None, None),
        lambda g: (g, g, None),
        lambda g: (g,),
        lambda g: g,
    ],
)
def test_structure_of_returns(define, leaves, returned):
    operator = define(WEIGHTED, weighted)
    operator.register_autograd(lambda ctx, grad: returned(grad))
    x, y, z = leaves([1.0], [2.0], [3.0])
    with pytest.raises(
        RuntimeError, match="Expected the return from backward to be of the same structure as the"
    ):
        operator(x, [y, z], 2).backward()


def test_some_gradients_of_a_list_may_be_none(define, leaves):
    operator = define(WEIGHTED, weighted)
    operator.register_autograd(lambda ctx, grad: (None, [None, grad], None))
    x, y, z = leaves([1.0], [2.0], [3.0])
    operator(x, [y, z], 2).backward()
    assert x.grad is None and y.grad is None
    assert z.grad.item() == 1.0


def test_wrong_items_in_a_list(define, leaves):
    x, y, z = leaves([1.0], [2.0], [3.0])
    operator = define(WEIGHTED, weighted)
    operator.register_autograd(lambda ctx, grad: (grad, [grad, grad], grad))
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position"):
        operator(x, [y, z], 2).backward()


def test_lists_out(define, lib, leaves):
    seen = []

    def backward(ctx, grads):
        seen.append([g.tolist() for g in grads])
        return grads[0] * 2 + grads[1] * 3

    operator = define("(Tensor x) -> Tensor[]", lambda x: [x * 2, x * 3])
    operator.register_autograd(backward)
    (x,) = leaves([1.0, 2.0])
    first, second = operator(x)
    assert first.grad_fn is second.grad_fn
    second.sum().backward(retain_graph=True)
    (first.sum() + second.sum()).backward()
    assert seen == [[[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
    assert x.grad.tolist() == [8.0, 8.0]


def test_lists_in_and_out_numerically(define, lib, leaves):
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[0])

    def backward(ctx, grads):
        return [g * 2 * x for g, x in zip(grads, ctx.saved_tensors, strict=True)]

    squares = define("(Tensor[] xs) -> Tensor[]", lambda xs: [x * x for x in xs])
    squares.register_autograd(backward, setup_context=setup_context)
    inputs = leaves([1.0, 2.0], [3.0])
    assert lib.autograd.gradcheck(lambda *xs: tuple(squares(xs)), inputs)
    assert lib.autograd.gradgradcheck(lambda *xs: tuple(squares(xs)), inputs)


def test_mixed_results(define, leaves):
    seen = []

    def backward(ctx, first, rest, number):
        seen.append((first.tolist(), [g.tolist() for g in rest], number))
        return first * 2 + rest[0] * 3 + rest[1] * 4

    operator = define(
        "(Tensor x) -> (Tensor, Tensor[], int)", lambda x: (x * 2, [x * 3, x * 4], 7)
    )
    operator.register_autograd(backward)
    (x,) = leaves([1.0])
    first, rest, number = operator(x)
    assert number == 7
    assert [t.requires_grad for t in (first, *rest)] == [True] * 3
    rest[1].backward()
    assert seen == [([0.0], [[0.0], [1.0]], None)]
    assert x.grad.item() == 4.0


# Several results ---------------------------------------------------------------------------------


def test_missing_gradients_are_zeros(define, lib, leaves):
    seen = []

    def backward(ctx, first, second):
        seen.append((first, second))
        return first * 2 if second is None else first * 2 + second * 3

    operator = define("(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x * 3))
    operator.register_autograd(backward)
    (x,) = leaves([1.0, 2.0])
    operator(x)[0].sum().backward()
    assert seen[-1][1].tolist() == [0.0, 0.0]

    operator.register_autograd(
        backward,
        setup_context=lambda ctx, inputs, output: ctx.set_materialize_grads(False),
    )
    operator(x)[0].sum().backward()
    assert seen[-1][1] is None


def test_integers_are_not_differentiable(define, lib, leaves):
    operator = define("(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, lib.arange(2)))
    operator.register_autograd(lambda ctx, grad, other: grad * 2)
    (x,) = leaves([1.0, 2.0])
    values, indices = operator(x)
    assert (values.requires_grad, indices.requires_grad) == (True, False)
    values.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_results_can_be_marked(define, leaves):
    operator = define("(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x * 3))
    operator.register_autograd(
        lambda ctx, first, second: first * 2,
        setup_context=lambda ctx, inputs, output: ctx.mark_non_differentiable(output[1]),
    )
    first, second = operator(*leaves([1.0]))
    assert (first.requires_grad, second.requires_grad) == (True, False)


def test_a_result_may_be_a_view_of_fresh_memory(define, leaves):
    operator = define("(Tensor x) -> Tensor", lambda x: (x * 2).reshape(2, 1))
    operator.register_autograd(lambda ctx, grad: grad.reshape(2) * 2)
    (x,) = leaves([1.0, 2.0])
    out = operator(x)
    assert out.shape == (2, 1)
    out.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# Hooks and graphs --------------------------------------------------------------------------------


def test_hooks_and_retained_gradients(mul, leaves):
    x, y = leaves([1.0], [2.0])
    out = mul(x, y)
    out.retain_grad()
    seen = []
    out.register_hook(lambda g: g * 10)
    out.grad_fn.register_hook(lambda gi, go: seen.append((len(gi), len(go))))
    (out * 1).backward()
    assert out.grad.item() == 10.0
    assert x.grad.item() == 20.0
    assert seen[0][1] == 1


def test_part_of_the_inputs(mul, lib, leaves):
    x, y = leaves([1.0], [2.0])
    (only,) = lib.autograd.grad(mul(x, y), y)
    assert only.item() == 1.0


def test_operators_within_a_graph(mul, leaves):
    x, y = leaves([2.0], [3.0])
    out = mul(mul(x * 2, y).exp().log(), y + 1)
    out.backward()
    # 2xy(y + 1)
    assert x.grad.item() == pytest.approx(24.0)
    assert y.grad.item() == pytest.approx(2 * 2 * 7)


def test_one_tensor_in_both_places(mul, leaves):
    (x,) = leaves([2.0])
    mul(x, x).backward()
    assert x.grad.item() == 4.0


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(mul, lib, leaves, reentrant):
    checkpoint = importlib.import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
    x, y = leaves([2.0], [3.0])
    out = checkpoint(lambda x, y: mul(mul(x, x), y), x, y, use_reentrant=reentrant)
    out.backward()
    assert (x.grad.item(), y.grad.item()) == (12.0, 4.0)


def test_saved_tensors_that_may_be_changed(mul, lib, leaves):
    x, y = leaves([2.0], [3.0])
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        inner = x * 1
        out = mul(inner, y)
        inner.mul_(5)
        out.backward()
    assert y.grad.item() == 2.0


# Ours alone --------------------------------------------------------------------------------------


def test_lists_of_optional_tensors():
    operator = make("(Tensor x, Tensor?[] ys) -> Tensor", lambda x, ys: x + ys[1])
    seen = []

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad, [None, grad * 2]

    operator.register_autograd(backward)
    x = wengert.ones(1, requires_grad=True)
    y = wengert.ones(1, requires_grad=True)
    operator(x, [None, y]).backward()
    assert y.grad.item() == 2.0
    assert seen == [(True, [False, True])]
    operator.register_autograd(lambda ctx, grad: (grad, None))
    operator(x, [None, y]).backward()
    assert y.grad.item() == 2.0
    operator.register_autograd(lambda ctx, grad: (grad, [grad, grad]))
    with pytest.raises(RuntimeError, match="gradient different than None at position 2"):
        operator(x, [None, y]).backward()


def test_needs_input_grad_has_the_users_structure_in_setup_context():
    operator = make("(Tensor x, Tensor[] ys, int k=1) -> Tensor", lambda x, ys, k: x + ys[0])
    seen = []
    operator.register_autograd(
        lambda ctx, grad: (grad, [grad], None),
        setup_context=lambda ctx, inputs, output: seen.append(ctx.needs_input_grad),
    )
    x = wengert.ones(1, requires_grad=True)
    operator(x, [x.detach()]).backward()
    assert seen == [(True, [False], False)]


def test_gradients_of_defaults_may_be_given_or_left_out():
    operator = make("(Tensor x, Tensor[] ys, int k=1) -> Tensor", lambda x, ys, k: x + ys[0])
    x = wengert.ones(1, requires_grad=True)
    for returned in (lambda g: (g, [g], None), lambda g: (g, [g])):
        x.grad = None
        operator.register_autograd(lambda ctx, grad, returned=returned: returned(grad))
        operator(x, [x]).backward()
        assert x.grad.item() == 2.0


def test_what_nodes_keep_is_collected():
    """A cycle through an attribute of ctx goes with the collector, others at once."""

    class Marker:
        pass

    operator = make("(Tensor x) -> Tensor", lambda x: x * 2)

    def setup_context(ctx, inputs, output):
        ctx.marker = Marker()
        ctx.output = output

    operator.register_autograd(lambda ctx, grad: grad * 2, setup_context=setup_context)
    out = operator(wengert.ones(1, requires_grad=True))
    alive = weakref.ref(out.grad_fn.marker)
    out.backward()
    del out
    gc.collect()
    assert alive() is None


def test_without_cycles_nothing_waits_for_the_collector():
    operator = make("(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y)
    operator.register_autograd(mul_backward, setup_context=save_inputs)
    gc.collect()
    gc.disable()
    try:
        x, y = wengert.ones(1, requires_grad=True), wengert.ones(1)
        alive = weakref.ref(y)
        out = operator(x, y)
        del y
        assert alive() is not None
        del out
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "schema", ["(Tensor[] x) -> Tensor", "(Tensor x) -> Tensor[]", "(Tensor?[] x) -> Tensor"]
)
def test_the_name_of_the_structure_of_lists_is_taken(lib, define, schema):
    def kernel(x):
        out = (x[0] if isinstance(x, list) else x) * 2
        return [out] if schema.endswith("[]") else out

    def keep(ctx, inputs, output):
        ctx._pt_metadata = 3

    operator = define(schema, kernel)
    operator.register_autograd(lambda ctx, grad: grad, setup_context=keep)
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Please don't set ctx._pt_metadata"):
        operator([x] if "[] x" in schema else x)


def test_without_lists_the_name_is_free(lib, define, leaves):
    def keep(ctx, inputs, output):
        ctx._pt_metadata = 3

    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    operator.register_autograd(lambda ctx, grad: grad * ctx._pt_metadata, setup_context=keep)
    (x,) = leaves([1.0])
    operator(x).sum().backward()
    assert x.grad.tolist() == [3.0]
