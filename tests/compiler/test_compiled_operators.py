"""Every operator, compiled: values, gradients and second derivatives are those of eager mode."""

import pytest

import wengert
from operators.support import (
    assert_close,
    build,
    call,
    differentiable,
    each_sample,
    leaves_of,
    map_tensors,
    replaced,
    results,
    weights_like,
)
from wengert.compiler import TraceError, trace

#: Uncompiled in the long run only.
pytestmark = pytest.mark.slow

#: Drawing random numbers is no function of the inputs.
RANDOM = {"nn.functional.dropout"}


def tensors_in(values):
    return [value for value in values if isinstance(value, wengert.Tensor)]


def weighed(tensors, seed):
    """A scalar that depends on all tensors, smoothly and not linearly."""
    total = 0
    for w, t in zip(weights_like(tensors, seed), tensors):
        part = (t * wengert.tensor(w).to(t.dtype)).sum()
        total = total + (part.real + part.imag if part.is_complex() else part)
    return total


def derivatives(function, leaves):
    """What a function returns, the gradients, and those of a weighted sum of the gradients."""
    values = results(function(*leaves))
    targets = differentiable(values)
    if not targets:
        return values, [], []
    first = wengert.autograd.grad(
        weighed(targets, 7), leaves, create_graph=True, allow_unused=True
    )
    known = [g for g in first if g is not None and g.requires_grad]
    if not known:
        return values, first, []
    return values, first, wengert.autograd.grad(weighed(known, 8), leaves, allow_unused=True)


def assert_gradients(mine, its, leaves):
    for a, b, x in zip(mine or [None] * len(leaves), its or [None] * len(leaves), leaves):
        a, b = (wengert.zeros_like(x) if g is None else g for g in (a, b))
        assert a.dtype is b.dtype
        assert_close(a, b, 1e-9, 1e-10)


@each_sample(lambda o: o.differentiable and not o.needs_data and o.name not in RANDOM, usual=2)
def test_compiled(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    leaves = leaves_of(wengert, built)

    def function(*tensors):
        return call(operation, wengert, replaced(wengert, built, tensors))

    compiled = wengert.compile(function)
    values, first, second = derivatives(function, leaves)
    its_values, its_first, its_second = derivatives(compiled, leaves)
    assert len(its_values) == len(values) and len(compiled.compilations) == 1
    for mine, other in zip(tensors_in(its_values), tensors_in(values), strict=True):
        assert mine.dtype is other.dtype and mine.requires_grad == other.requires_grad
        assert_close(mine, other)
    assert_gradients(its_first, first, leaves)
    assert_gradients(its_second, second, leaves)


@each_sample(lambda o: not o.differentiable and not o.needs_data and o.name not in RANDOM)
def test_compiled_without_gradients(operation, sample):
    """Where values decide what is returned the function is refused."""
    built = build(wengert, sample)
    tensors = []
    map_tensors(wengert, built, tensors.append)

    def function(*given):
        supply = iter(given)
        return call(operation, wengert, map_tensors(wengert, built, lambda t: next(supply)))

    try:
        found = results(wengert.compile(function)(*tensors))
    except RuntimeError as error:
        assert "needs the value" in str(error) or "meta" in str(error)
        return
    for mine, its in zip(found, results(function(*tensors)), strict=True):
        if isinstance(its, wengert.Tensor):
            assert mine.dtype is its.dtype
            assert_close(mine, its)
        else:
            assert mine == its


@each_sample(lambda o: not o.needs_data and o.name not in RANDOM, usual=2)
def test_numbers_and_sizes_are_constants_of_a_trace(operation, sample):
    """Tensors that an operator makes for itself do not become inputs of the graph."""
    built = build(wengert, sample)
    tensors = []
    map_tensors(wengert, built, tensors.append)

    def function(*given):
        supply = iter(given)
        return call(operation, wengert, map_tensors(wengert, built, lambda t: next(supply)))

    try:
        traced = trace(function, *tensors)
    except RuntimeError as error:
        assert isinstance(error, TraceError) or "meta" in str(error)
        return
    assert not traced.captured


@pytest.mark.parametrize("index", [(slice(None), 0), 0, True, [0], (0, 1)])
def test_numbers_written_by_index(index):
    def write(x):
        z = x * 1
        z[index] = 0.5
        return z, wengert.autograd.grad((z * z).sum(), x)[0]

    x = wengert.ones(2, 3, dtype=wengert.float64, requires_grad=True)
    traced = trace(write, x)
    assert not traced.captured
    for mine, its in zip(traced(x * 2), write(x * 2), strict=True):
        assert wengert.equal(mine, its)
