"""Every operator: the gradients of its graph, run by the interpreter, are those of autograd."""

import pytest

import wengert
from compiler.support import accumulate, run_gradient
from operators.support import (
    assert_close,
    build,
    call,
    differentiable,
    each_sample,
    leaves_of,
    replaced,
    results,
    weights_like,
)
from wengert.compiler import differentiate, run, trace

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow


def graph_of(operation, sample):
    """The sample's graph, its inputs, the leaves among them, and what it returns in eager mode."""
    built = build(wengert, sample, requires_grad=True)
    leaves = leaves_of(wengert, built)

    def function(*tensors):
        return results(call(operation, wengert, replaced(wengert, built, tensors)))

    traced = trace(function, *leaves)
    inputs = [x.detach() for x in (*leaves, *traced.captured)]
    return traced.graph, inputs, leaves, results(call(operation, wengert, built))


def cotangents(outputs, seed=7):
    return [wengert.tensor(w).to(o.dtype) for w, o in zip(weights_like(outputs, seed), outputs)]


def assert_same_gradients(got, want):
    for mine, other in zip(got, want, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert mine.dtype is other.dtype
            assert_close(mine, other)


def differentiable_without_data(operation):
    return operation.differentiable and not operation.needs_data


@each_sample(differentiable_without_data)
def test_first_derivatives(operation, sample):
    check_first_derivatives(operation, sample)


def check_first_derivatives(operation, sample):
    graph, inputs, leaves, outputs = graph_of(operation, sample)
    targets = differentiable(outputs)
    if not targets:
        return
    weights = cotangents(targets)
    supply = iter(weights)
    vjps = [next(supply) if o.requires_grad else None for o in outputs]
    gradient = differentiate(graph)
    gradient.f.lint()
    gradient.df.lint()
    values, got = run_gradient(gradient, inputs, vjps)
    for mine, other in zip(values, outputs):
        assert_close(mine, other)
    want = wengert.autograd.grad(targets, leaves, weights, allow_unused=True)
    assert_same_gradients(got[: len(leaves)], want)


def second_derivatives(gradient, inputs, vjps, weights):
    """Gradients of the weighted gradients, for the inputs and for the `vjps`."""
    outputs = run(gradient.f, *inputs)
    given = gradient.df_inputs(inputs, outputs, vjps)
    undefined = [i for i, value in enumerate(given) if value is None]
    second = differentiate(gradient.df.copy(), undefined)
    second.f.lint()
    second.df.lint()
    _, back = run_gradient(second, given, weights)
    # What comes back is for the vjps, then for captured inputs, then for captured outputs.
    first = len(gradient.df_input_vjps)
    of_vjps = [None] * len(outputs)
    for i, g in zip(gradient.df_input_vjps, back):
        of_vjps[i] = g
    of_inputs = [None] * len(inputs)
    of_outputs = [None] * len(outputs)
    captured = gradient.df_input_captured_inputs
    for i, g in zip(captured, back[first:]):
        of_inputs[i] = accumulate(of_inputs[i], g)
    for i, g in zip(gradient.df_input_captured_outputs, back[first + len(captured) :]):
        of_outputs[i] = accumulate(of_outputs[i], g)
    through = run(gradient.df, *gradient.df_inputs(inputs, outputs, of_outputs))
    for i, g in zip(gradient.df_output_vjps, through):
        of_inputs[i] = accumulate(of_inputs[i], g)
    return of_inputs, of_vjps


def zeros_for_none(values, like):
    return [wengert.zeros_like(x) if v is None else v for v, x in zip(values, like, strict=True)]


def check_second_derivatives(operation, sample):
    graph, inputs, leaves, outputs = graph_of(operation, sample)
    targets = differentiable(outputs)
    if not targets:
        return
    vectors = [w.requires_grad_() for w in cotangents(targets)]
    grads = wengert.autograd.grad(targets, leaves, vectors, allow_unused=True, create_graph=True)
    known = [g for g in grads if g is not None]
    if not any(g.requires_grad for g in known):
        return
    weights = cotangents(known, seed=8)
    want = wengert.autograd.grad(
        [g for g in known if g.requires_grad],
        [*leaves, *vectors],
        [w for w, g in zip(weights, known) if g.requires_grad],
        allow_unused=True,
    )
    supply = iter(vectors)
    vjps = [next(supply).detach() if o.requires_grad else None for o in outputs]
    gradient = differentiate(graph)
    of_inputs, of_vjps = second_derivatives(gradient, inputs, vjps, weights)
    of_vjps = [g for g, o in zip(of_vjps, outputs) if o.requires_grad]
    everything = [*leaves, *vectors]
    got = zeros_for_none([*of_inputs[: len(leaves)], *of_vjps], everything)
    for mine, other in zip(got, zeros_for_none(want, everything), strict=True):
        assert mine.dtype is other.dtype
        assert_close(mine, other, 1e-9, 1e-10)


@pytest.mark.slow
@each_sample(differentiable_without_data)
def test_second_derivatives(operation, sample):
    check_second_derivatives(operation, sample)


@each_sample(lambda o: o.differentiable and bool(o.needs_data))
def test_what_needs_data_is_right_or_refused(operation, sample):
    """Where values decide a shape there is no graph of the operator, or of the rule of its rule."""
    for check in (check_first_derivatives, check_second_derivatives):
        try:
            check(operation, sample)
        except RuntimeError as error:
            assert "meta" in str(error)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes_are_restored(dtype):
    """Gradients come in the dtype of their inputs, whatever was promoted."""

    def function(x, y, z):
        return [(x * y + z).tanh().sum()]

    x = wengert.ones(2, 3, dtype=getattr(wengert, dtype), requires_grad=True)
    y = wengert.ones(3, dtype=wengert.float64, requires_grad=True)
    z = wengert.ones(2, 1, dtype=wengert.complex64, requires_grad=True)
    gradient = differentiate(trace(function, x, y, z).graph)
    out = function(x, y, z)
    _, got = run_gradient(gradient, [x.detach(), y.detach(), z.detach()], [out[0].detach() * 1j])
    want = wengert.autograd.grad(out, [x, y, z], [out[0].detach() * 1j])
    assert_same_gradients(got, want)
