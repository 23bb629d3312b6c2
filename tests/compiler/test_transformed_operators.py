"""Every operator, compiled, inside transforms: what these make of the graph is what they make of
the operator."""

import pytest

import wengert
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
from wengert.func import grad, jvp, vmap

#: Uncompiled in the long run only.
pytestmark = pytest.mark.slow

#: Drawing random numbers is no function of the inputs.
RANDOM = {"nn.functional.dropout"}


def weighed(tensors):
    """A scalar that depends on all tensors, smoothly and not linearly."""
    total = 0
    for w, t in zip(weights_like(tensors, 7), tensors, strict=True):
        part = (t * wengert.tensor(w).to(t.dtype)).sum()
        total = total + (part.real + part.imag if part.is_complex() else part)
    return total


def batch_of(t):
    """Two examples which do not differ in what an operator may refuse."""
    return wengert.stack([t, t.clone()])


def transforms_of(leaves):
    """The transforms to compare, by name: from a function to all that it leads to."""
    places = tuple(range(len(leaves)))
    tangents = tuple(wengert.tensor(w).to(t.dtype) for w, t in zip(weights_like(leaves, 8), leaves))
    batches = [batch_of(t) for t in leaves]

    def slopes(function):
        return grad(lambda *given: weighed(differentiable_or(function(*given))), places)

    return {
        "vmap": lambda f: vmap(f)(*batches),
        "jvp": lambda f: jvp(f, tuple(leaves), tangents),
        "grad": lambda f: slopes(f)(*leaves),
        "jvp of grad": lambda f: jvp(slopes(f), tuple(leaves), tangents)[1],
        "grad of jvp": lambda f: grad(
            lambda *given: weighed(differentiable_or(jvp(f, given, tangents)[1])), places
        )(*leaves),
        "vmap of grad": lambda f: vmap(slopes(f))(*batches),
    }


def differentiable_or(result):
    """The results that a gradient can be taken of."""
    values = results(result)
    return [t for t in values if t.is_floating_point() or t.is_complex()]


def outcome(transformed, function):
    try:
        return results(transformed(function))
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return error


@each_sample(lambda o: o.differentiable and not o.needs_data and o.name not in RANDOM, usual=1)
def test_transformed(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    leaves = [t.detach() for t in leaves_of(wengert, built)]

    def function(*tensors):
        tensors = tuple(t.clone() for t in tensors)  # some operators change theirs
        found = results(call(operation, wengert, replaced(wengert, built, tensors)))
        return tuple(t for t in found if isinstance(t, wengert.Tensor))

    if not differentiable(function(*[t.clone().requires_grad_() for t in leaves])):
        return
    compiled = wengert.compile(function)
    for name, transformed in transforms_of(leaves).items():
        its, mine = outcome(transformed, function), outcome(transformed, compiled)
        if isinstance(its, Exception):
            assert type(mine) is type(its), (name, mine, its)
            continue
        assert not isinstance(mine, Exception), (name, mine)
        for a, b in zip(flat(mine), flat(its), strict=True):
            assert a.dtype is b.dtype and a.shape == b.shape, name
            assert_close(a, b, 1e-9, 1e-10)


def flat(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from flat(value)
        else:
            yield value
