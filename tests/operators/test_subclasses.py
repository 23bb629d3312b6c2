"""A subclass wrapped around every operation changes nothing: values, and derivatives of each kind.

Two kinds of subclasses stand around the tensors of all samples: one that says nothing and gets the
results above autograd, and one without memory of its own that handles all operators below autograd,
where it notes them and hands them on to the tensors inside.
"""

import numpy as np
import pytest

import wengert
from operators.support import (
    assert_close,
    assert_same,
    build,
    call,
    differentiable,
    each_sample,
    gradients,
    leaves_of,
    map_tensors,
    results,
    weights_like,
)
from wengert.autograd import forward_ad
from wengert.utils._python_dispatch import TorchDispatchMode
from wengert.utils.pytree import tree_map

#: Uncompiled in the long run only.
pytestmark = pytest.mark.slow

KINDS = ("real", "complex", "integer")
#: Operations that return numbers, or what they were given.
NO_TENSORS = {"allclose", "equal"}
WITHOUT_DERIVATIVE = {
    "geqrf", "heaviside", "histogram", "histogramdd", "linalg.ldl_factor", "linalg.ldl_solve",
    "unique", "unique_consecutive",
}  # fmt: skip
#: Operations without derivative by an argument that is a constant of the samples.
IN_PART = {"igamma", "igammac", "special.zeta"}


class Silent(wengert.Tensor):
    """Says nothing, so that results are of its class."""


class Logging(wengert.Tensor):
    """Stands for the tensor in `inner`; notes the operators and hands them on."""

    calls = []

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return wengert.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, device=inner.device,
            requires_grad=requires_grad,
        )  # fmt: skip

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        assert types == (Logging,)
        cls.calls.append(func)
        return wrapped(func(*unwrapped(args), **unwrapped(kwargs or {})))


def wrapped(value):
    return tree_map(lambda t: Logging(t) if isinstance(t, wengert.Tensor) else t, value)


def unwrapped(value):
    return tree_map(lambda t: t.inner if isinstance(t, Logging) else t, value)


def logged(sample):
    """A built sample with all tensors wrapped; leaves stay leaves."""
    return map_tensors(wengert, sample, lambda t: Logging(t.detach(), t.requires_grad))


def assert_class(cls, operation, value):
    if operation.name not in NO_TENSORS:
        assert [type(t) for t in results(value)] == [cls] * len(results(value))


@pytest.fixture(autouse=True)
def empty_log():
    Logging.calls.clear()


# Values


@each_sample(kinds=KINDS)
def test_a_silent_subclass(operation, sample):
    built = build(wengert, sample)
    got = call(operation, wengert, map_tensors(wengert, built, lambda t: t.as_subclass(Silent)))
    assert_class(Silent, operation, got)
    assert_same(got, call(operation, wengert, build(wengert, sample)))


@each_sample(kinds=KINDS)
def test_a_logging_subclass(operation, sample):
    given = logged(build(wengert, sample))
    got = call(operation, wengert, given)
    if not Logging.calls:  # nothing to do
        assert any(got is t for t in given.args)
    assert_class(Logging, operation, got)
    assert_same(unwrapped(got), call(operation, wengert, build(wengert, sample)))


class Passing(TorchDispatchMode):
    """Finds every operator again by its name."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        namespace, _, name = func._schema.name.partition("::")
        packet = getattr(getattr(wengert.ops, namespace), name)
        assert getattr(packet, func._schema.overload_name or "default") is func
        return func(*args, **(kwargs or {}))


@each_sample(kinds=KINDS)
def test_a_mode(operation, sample):
    with Passing():
        got = call(operation, wengert, build(wengert, sample))
    assert_same(got, call(operation, wengert, build(wengert, sample)))


# Reverse mode


def _compare(got, want):
    assert len(got) == len(want)
    for mine, other in zip(got, want):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(unwrapped(mine), other)


@each_sample(lambda o: o.name not in WITHOUT_DERIVATIVE, ("real", "complex"))
def test_gradients_of_a_logging_subclass(operation, sample):
    built = logged(build(wengert, sample, requires_grad=True))
    inputs = leaves_of(wengert, built)
    outputs = differentiable(call(operation, wengert, built))
    want = gradients(wengert, operation, sample)
    if not outputs:
        assert want == [None] * len(want)
        return
    assert all(type(out) is Logging for out in outputs)
    weights = [
        Logging(wengert.tensor(w).to(out.dtype)) for w, out in zip(weights_like(outputs), outputs)
    ]
    got = wengert.autograd.grad(outputs, inputs, weights, allow_unused=True)
    assert all(g is None or type(g) is Logging for g in got)
    _compare(got, want)


@each_sample(lambda o: o.name not in WITHOUT_DERIVATIVE, ("real", "complex"))
def test_gradients_of_a_silent_subclass(operation, sample):
    built = build(wengert, sample, requires_grad=True)
    inputs = leaves_of(wengert, built)
    silent = map_tensors(wengert, built, lambda t: t.as_subclass(Silent))
    outputs = differentiable(call(operation, wengert, silent))
    want = gradients(wengert, operation, sample)
    if not outputs:
        assert want == [None] * len(want)
        return
    weights = [wengert.tensor(w).to(out.dtype) for w, out in zip(weights_like(outputs), outputs)]
    _compare(wengert.autograd.grad(outputs, inputs, weights, allow_unused=True), want)


@each_sample(lambda o: o.name not in WITHOUT_DERIVATIVE, ("real", "complex"))
def test_gradients_under_a_mode(operation, sample):
    with Passing():
        got = gradients(wengert, operation, sample)
    _compare(got, gradients(wengert, operation, sample))


def _second_order(operation, sample, wrap):
    """Gradients of the sum of squares of the gradients."""
    built = wrap(build(wengert, sample, requires_grad=True))
    inputs = leaves_of(wengert, built)
    outputs = differentiable(call(operation, wengert, built))
    if not outputs:
        return None
    weights = [wengert.tensor(w).to(out.dtype) for w, out in zip(weights_like(outputs), outputs)]
    first = wengert.autograd.grad(outputs, inputs, weights, create_graph=True, allow_unused=True)
    norms = [(g * g.conj()).real.sum() for g in first if g is not None and g.requires_grad]
    if not norms:
        return None
    return wengert.autograd.grad(sum(norms[1:], norms[0]), inputs, allow_unused=True)


@each_sample(lambda o: o.name not in WITHOUT_DERIVATIVE, ("real",))
def test_second_derivatives_of_a_logging_subclass(operation, sample):
    want = _second_order(operation, sample, lambda built: built)
    got = _second_order(operation, sample, logged)
    if want is None:
        assert got is None
    else:
        _compare(got, want)


# Forward mode


def _pushed(operation, sample, wrap):
    """Primals and tangents of the results, for tangents in all tensors that can have one."""
    random = np.random.default_rng(3)

    def dual(t):
        if not (t.is_floating_point() or t.is_complex()):
            return wrap(t)
        values = random.uniform(-1, 1, t.shape)
        if t.is_complex():
            values = values + 1j * random.uniform(-1, 1, t.shape)
        return forward_ad.make_dual(wrap(t), wrap(wengert.tensor(values).to(t.dtype)))

    built = map_tensors(wengert, build(wengert, sample), dual)
    found = []
    for out in results(call(operation, wengert, built)):
        if isinstance(out, wengert.Tensor):
            found.extend(forward_ad.unpack_dual(out))
    return found


@each_sample(lambda o: o.name not in WITHOUT_DERIVATIVE | IN_PART, ("real", "complex"))
def test_tangents_of_a_logging_subclass(operation, sample):
    with forward_ad.dual_level():
        want = _pushed(operation, sample, lambda t: t)
        got = _pushed(operation, sample, Logging)
        _compare(got, want)
        assert all(t is None or type(t) is Logging for t in got)


@each_sample(lambda o: o.name not in WITHOUT_DERIVATIVE | IN_PART, ("real", "complex"))
def test_tangents_of_a_silent_subclass(operation, sample):
    with forward_ad.dual_level():
        want = _pushed(operation, sample, lambda t: t)
        _compare(_pushed(operation, sample, lambda t: t.as_subclass(Silent)), want)


# vmap


def _mapped(operation, sample, wrap):
    """The operation mapped over two examples of each tensor, or the error that it raises."""
    built = build(wengert, sample)
    tensors = []
    map_tensors(wengert, built, tensors.append)
    batches = [wrap(wengert.stack([t, t])) for t in tensors]

    def function(*given):
        supply = iter(given)
        return tuple(
            results(call(operation, wengert, map_tensors(wengert, built, lambda t: next(supply))))
        )

    try:
        return wengert.vmap(function, randomness="same")(*batches)
    except (RuntimeError, ValueError, IndexError) as error:
        return type(error)


@each_sample(kinds=KINDS)
def test_a_logging_subclass_under_vmap(operation, sample):
    want = _mapped(operation, sample, lambda t: t)
    got = _mapped(operation, sample, Logging)
    if isinstance(want, type):
        assert got is want
    else:
        assert_class(Logging, operation, got)
        assert_same(unwrapped(got), want)


@each_sample(kinds=KINDS)
def test_a_silent_subclass_under_vmap(operation, sample):
    want = _mapped(operation, sample, lambda t: t)
    got = _mapped(operation, sample, lambda t: t.as_subclass(Silent))
    if isinstance(want, type):
        assert got is want
    else:
        assert_same(got, want)
