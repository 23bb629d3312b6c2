"""Random functions under random nests of transforms, against PyTorch and against loops.

A function maps vectors of length 3 to vectors of length 3. It begins as a chain of simple steps;
each transform makes another such function of it, so that they nest in any order.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import wengert

SIZE = 3
# PyTorch writes batched gradients into shared ones, and into its zero tensors.
MISTAKES = (
    "is not possible because there exists a Tensor",
    "ZeroTensors are immutable",
    "on a tensor with unallocated storage",
)
EXAMPLES = int(os.environ.get("WENGERT_NESTING_EXAMPLES", "60"))
MATRIX = [[0.5, -0.3, 0.2], [0.1, 0.4, -0.6], [-0.2, 0.3, 0.7]]
VECTOR = [0.7, -0.4, 1.1]


def smooth_root(lib):
    """A custom Function for sqrt(1 + x^2), batched by a rule that is derived."""

    class Root(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return (1 + x * x).sqrt()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output)
            ctx.save_for_forward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            x, root = ctx.saved_tensors
            return g * x / root

        @staticmethod
        def jvp(ctx, t):
            x, root = ctx.saved_tensors
            return t * x / root

    return Root.apply


class Setting:
    """A library, its transforms, and constants."""

    def __init__(self, lib, func, loops=False):
        self.lib = lib
        self.func = func
        self.vmap = self.loop if loops else func.vmap
        self.matrix = lib.tensor(MATRIX, dtype=lib.float64)
        self.vector = lib.tensor(VECTOR, dtype=lib.float64)
        self.order = lib.tensor([2, 0, 1])
        self.square_root = smooth_root(lib)

    def loop(self, f, in_dims=0, out_dims=0):
        """What `vmap` does, one example at a time."""
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,)

        def mapped(*args):
            rows = [a if d is None else a.unbind(d) for a, d in zip(args, dims, strict=True)]
            count = next(len(r) for r, d in zip(rows, dims, strict=True) if d is not None)
            results = [
                f(*[r if d is None else r[i] for r, d in zip(rows, dims, strict=True)])
                for i in range(count)
            ]
            return self.lib.stack(results, out_dims)

        return mapped


# Steps of a function, each of (setting, vector) ---------------------------------------------------


def in_place(s, x):
    y = x.clone()
    y[1:] = x[:2] * 0.5
    y[0].mul_(x[2])
    y.add_(x.detach() * 0.1)
    return y


def blended(s, x):
    made = s.lib.zeros_like(x)
    made[1] = x[0] * x[2]
    return made + x * 0.3


def without_grad(s, x):
    with s.lib.no_grad():
        scale = x.cos()
    return x * scale


def by_a_function(s, x):
    return s.square_root(x)


def scattered(s, x):
    made = x.new_zeros(4)
    return made.index_add(0, s.order, x.sin()).scatter_add(0, s.order[:2], x[:2])[1:]


def updated(s, x):
    y = x * 1
    y.masked_fill_(s.vector > 1, 0.5)
    y.index_put_((s.order[:1],), x[1:2] * x[:1])
    y.addcmul_(x, x.flip(0), value=0.5)
    return y


STEPS = {
    "sin": lambda s, x: x.sin(),
    "square": lambda s, x: x * x * 0.5,
    "tanh": lambda s, x: x.tanh(),
    "exp": lambda s, x: (x * 0.3).exp(),
    "matvec": lambda s, x: s.matrix @ x,
    "matrix product": lambda s, x: (x.reshape(1, SIZE) @ s.matrix).reshape(SIZE),
    "norm": lambda s, x: x / (1 + (x * x).sum()),
    "reverse": lambda s, x: x.flip(0) * x,
    "cumsum": lambda s, x: x.cumsum(0) * 0.3,
    "softmax": lambda s, x: x.softmax(0),
    "where": lambda s, x: s.lib.where(x > 0.05, x * x, x * 0.5),
    "index": lambda s, x: x[[2, 0, 1]] * x[1],
    "outer": lambda s, x: (x[:, None] * x[None, :] * s.matrix).sum(1),
    "join": lambda s, x: s.lib.cat([x[1:].sin(), x[:1]]),
    "detach": lambda s, x: x * x.detach(),
    "gather": lambda s, x: x.gather(0, s.order) * x.exp(),
    "logsumexp": lambda s, x: x * x.logsumexp(0),
    "cumprod": lambda s, x: (x + 2).cumprod(0) * 0.1,
    "einsum": lambda s, x: s.lib.einsum("i,ij,j->i", x, s.matrix, x),
    "clamp": lambda s, x: x.clamp(-0.8, 0.7) * x,
    "scatter": scattered,
    "update": updated,
    "no_grad": without_grad,
    "in place": in_place,
    "made": blended,
}

# Where PyTorch has no second tangent, see docs/differences.md.
OUR_STEPS = {"function": by_a_function}

# Transforms, each of (setting, function) ----------------------------------------------------------


def gradient(s, f):
    return s.func.grad(lambda x: (f(x) * s.vector).sum())


def gradient_and_value(s, f):
    def transformed(x):
        slope, value = s.func.grad_and_value(lambda x: f(x).sum())(x)
        return slope * value

    return transformed


def captured_gradient(s, f):
    """The classical trap: the inner function uses the outer variable."""
    return lambda x: x * s.func.grad(lambda y: (f(x * y) + x * y).sum())(s.vector)


def pushed(s, f):
    return lambda x: s.func.jvp(f, (x,), (s.vector,))[1]


def pushed_along_itself(s, f):
    def transformed(x):
        value, tangent = s.func.jvp(f, (x,), (x.sin(),))
        return value * 0.5 + tangent

    return transformed


def pulled(s, f):
    def transformed(x):
        value, pull_back = s.func.vjp(f, x)
        return pull_back(s.vector)[0] + pull_back(value)[0]

    return transformed


def linearized(s, f):
    def transformed(x):
        value, push = s.func.linearize(f, x)
        return push(s.vector) + value * 0.1

    return transformed


def reverse_jacobian(s, f):
    return lambda x: s.func.jacrev(f)(x) @ s.vector


def chunked_jacobian(s, f):
    return lambda x: s.func.jacrev(f, chunk_size=2)(x).sum(0)


def forward_jacobian(s, f):
    return lambda x: s.vector @ s.func.jacfwd(f)(x)


def second_derivatives(s, f):
    return lambda x: s.func.hessian(lambda y: (f(y) * s.vector).sum())(x) @ s.vector


def mapped_over_rows(s, f):
    return lambda x: s.vmap(f)(s.matrix * x).sum(0)


def mapped_over_columns(s, f):
    return lambda x: s.vmap(f, in_dims=1, out_dims=1)(s.matrix + x[:, None]) @ s.vector


def mapped_with_capture(s, f):
    return lambda x: s.vmap(lambda a: f(x * a))(s.vector).sum(0)


def mapped_with_shared_argument(s, f):
    def transformed(x):
        return s.vmap(lambda a, b: f(a) * b.sum(), in_dims=(0, None))(s.matrix * x, x).sum(0)

    return transformed


TRANSFORMS = {
    f.__name__: f
    for f in (
        gradient, gradient_and_value, captured_gradient, pushed, pushed_along_itself, pulled,
        reverse_jacobian, chunked_jacobian, forward_jacobian, second_derivatives,
        mapped_over_rows, mapped_over_columns, mapped_with_capture, mapped_with_shared_argument,
    )
}  # fmt: skip
OURS_ONLY = {"linearized": linearized}  # PyTorch's traces, which not all that nests survives


def built(s, steps, transforms):
    def f(x):
        for step in steps:
            x = (STEPS | OUR_STEPS)[step](s, x)
        return x

    for name in transforms:
        f = (TRANSFORMS | OURS_ONLY)[name](s, f)
    return f


def value_of(s, steps, transforms, entries):
    return built(s, steps, transforms)(s.lib.tensor(entries, dtype=s.lib.float64))


def nests(names, steps):
    return given(
        steps=st.lists(st.sampled_from(sorted(steps)), min_size=1, max_size=3),
        transforms=st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=3),
        entries=st.lists(
            st.sampled_from([-0.9, -0.5, 0.1, 0.3, 0.8, 1.2]), min_size=SIZE, max_size=SIZE
        ),
    )


SETTINGS = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@SETTINGS
@nests(TRANSFORMS, STEPS)
def test_agrees_with_torch(steps, transforms, entries):
    torch = pytest.importorskip("torch")
    ours = value_of(Setting(wengert, wengert.func), steps, transforms, entries)
    try:
        theirs = value_of(Setting(torch, torch.func), steps, transforms, entries).tolist()
    except RuntimeError as error:
        assume(not any(mistake in str(error) for mistake in MISTAKES))
        raise
    note(f"{ours} {theirs}")
    np.testing.assert_allclose(ours.tolist(), theirs, rtol=1e-9, atol=1e-10)


@SETTINGS
@nests(TRANSFORMS | OURS_ONLY, STEPS | OUR_STEPS)
def test_mapping_is_a_loop(steps, transforms, entries):
    ours = value_of(Setting(wengert, wengert.func), steps, transforms, entries)
    looped = value_of(Setting(wengert, wengert.func, loops=True), steps, transforms, entries)
    np.testing.assert_allclose(ours.tolist(), looped.tolist(), rtol=1e-9, atol=1e-10)


@SETTINGS
@nests(TRANSFORMS, STEPS | OUR_STEPS)
def test_linearization_is_a_jvp(steps, transforms, entries):
    s = Setting(wengert, wengert.func)
    f = built(s, steps, transforms)
    x = wengert.tensor(entries, dtype=wengert.float64)
    _, push = wengert.func.linearize(f, x)
    _, expected = wengert.func.jvp(f, (x,), (s.vector,))
    if not {"no_grad", "detach", "in place"} & set(steps):  # forward mode passes through no_grad
        np.testing.assert_allclose(push(s.vector).tolist(), expected.tolist(), 1e-9, 1e-10)
