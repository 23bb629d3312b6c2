"""Custom Functions inside grad, jvp and vmap: own derivative at every level, batching rules."""

import pytest

from custom_functions import double, make


def weights(lib):
    return lib.tensor([0.1, 0.2, 0.3], dtype=lib.float64)


def examples(lib):
    return lib.tensor([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], dtype=lib.float64)


def close(a, b):
    return a.shape == b.shape and (a - b).abs().max().item() < 1e-12


def mapped(lib, function, in_dims, *args):
    """The results for every example of a batch, as a tuple."""
    out = lib.func.vmap(function, in_dims)(*args)
    return out if isinstance(out, tuple) else (out,)


def separate(lib, forward, backward, name="Separate", **attributes):
    attributes = {"setup_context": lambda ctx, inputs, output: None, **attributes}
    return make(lib, forward, backward, name, **attributes)


def straight_through(lib, **attributes):
    """Rounds; pretends that its derivative is 7."""
    forward, backward = lambda x: x.round(), lambda ctx, g: g * 7
    return separate(lib, forward, backward, "StraightThrough", **attributes)


def general(lib, **attributes):
    """Two results of two tensors and a number: all that a batching rule has to deal with."""

    def forward(x, w, factor):
        return (x * w).sum() * factor, (x + w).exp()

    def setup_context(ctx, inputs, output):
        x, w, ctx.factor = inputs
        ctx.save_for_backward(x, w, output[1])
        ctx.save_for_forward(x, w, output[1])

    def backward(ctx, g, h):
        x, w, e = ctx.saved_tensors
        return g * w * ctx.factor + h * e, g * x * ctx.factor + h * e, None

    def jvp(ctx, t, u, _):
        x, w, e = ctx.saved_tensors
        return ((t * w).sum() + (x * u).sum()) * ctx.factor, (t + u) * e

    return make(
        lib, forward, backward, "General", setup_context=setup_context, jvp=jvp, **attributes
    )


# Derivatives


def test_own_derivative(lib):
    f = straight_through(lib)
    assert lib.func.grad(lambda x: f.apply(x).sum())(weights(lib)).tolist() == [7.0] * 3


def test_own_derivative_at_two_levels(lib):
    f = straight_through(lib)
    inner = lib.func.grad(lambda x: (f.apply(x) ** 2).sum())
    second = lib.func.grad(lambda x: inner(x).sum())(weights(lib))
    assert second.tolist() == [98.0] * 3


def test_own_derivative_outside_of_the_transform(lib):
    f = straight_through(lib)
    x = weights(lib).requires_grad_()
    lib.func.grad(lambda y: (f.apply(y) ** 2).sum())(x).sum().backward()
    assert x.grad.tolist() == [98.0] * 3


def test_captured_tensor(lib):
    f = straight_through(lib)
    w = weights(lib).requires_grad_()
    lib.func.grad(lambda v: (f.apply(w) * v).sum())(weights(lib)).sum().backward()
    assert w.grad.tolist() == [7.0] * 3


def test_tensors_of_two_levels(lib):
    f = general(lib)
    x, w = weights(lib), weights(lib).requires_grad_()
    g = lib.func.grad(lambda x: f.apply(x, w, 2.0)[0] ** 2)(x)
    assert close(g.detach(), 8 * (x * x).sum() * x)
    g.sum().backward()
    assert close(w.grad, 8 * (x * x).sum() + 8 * x.sum() * x)


def test_jvp(lib):
    f = general(lib)
    x = weights(lib)
    out, tangent = lib.func.jvp(lambda x: f.apply(x, x, 2.0), (x,), (lib.ones_like(x),))
    assert close(out[0], 2 * (x * x).sum())
    assert close(tangent[0], 4 * x.sum())
    assert close(tangent[1], 2 * (2 * x).exp())


def test_jvp_of_grad_and_grad_of_jvp(lib):
    f = general(lib)
    x = weights(lib)

    def loss(x):
        return f.apply(x, x, 2.0)[1].sum()

    expected = 4 * (2 * x).exp()
    _, pushed = lib.func.jvp(lib.func.grad(loss), (x,), (lib.ones_like(x),))
    assert close(pushed, expected)
    pulled = lib.func.grad(lambda x: lib.func.jvp(loss, (x,), (lib.ones_like(x),))[1])(x)
    assert close(pulled, expected)


def test_changed_input(lib):
    f = separate(
        lib,
        lambda x: x.mul_(2),
        lambda ctx, g: g * 2,
        setup_context=lambda ctx, inputs, output: ctx.mark_dirty(*inputs),
    )

    def function(x):
        y = x * 1
        z = f.apply(y)
        return (y * z).sum()

    assert close(lib.func.grad(function)(weights(lib)), 8 * weights(lib))


def test_returned_input(lib):
    f = separate(lib, lambda x: x, lambda ctx, g: g * 5)
    assert lib.func.grad(lambda x: f.apply(x).sum())(weights(lib)).tolist() == [5.0] * 3


def test_forward_that_takes_ctx_is_refused(lib):
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        lib.func.grad(lambda x: double(lib).apply(x).sum())(weights(lib))
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        lib.func.vmap(double(lib, generate_vmap_rule=True).apply)(examples(lib))


# The vmap staticmethod


def with_rule(lib, vmap):
    return separate(lib, lambda x: x * 2, lambda ctx, g: g * 2, "WithRule", vmap=vmap)


def test_vmap_staticmethod(lib):
    seen = []

    def vmap(info, in_dims, x):
        seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        return x * 2, in_dims[0]

    x = examples(lib)
    (out,) = mapped(lib, with_rule(lib, vmap).apply, 1, x)
    assert seen == [(3, "error", (1,), (2, 3))]
    assert close(out, 2 * x.t())


def test_vmap_staticmethod_of_several_results(lib):
    f = separate(
        lib,
        lambda x, k: (x * k, x.sum(), 3),
        None,
        vmap=lambda info, in_dims, x, k: ((x * k, x.sum(1), 3), (0, 0, None)),
    )
    x = examples(lib)
    scaled, total = mapped(lib, lambda x: f.apply(x, 5)[:2], 0, x)
    assert close(scaled, 5 * x)
    assert close(total, x.sum(1))


def test_vmap_staticmethod_that_calls_the_function(lib):
    f = straight_through(lib)
    f.vmap = staticmethod(lambda info, in_dims, x: (f.apply(x), in_dims[0]))
    x = examples(lib).requires_grad_()
    lib.func.vmap(f.apply)(x).sum().backward()
    assert x.grad.tolist() == [[7.0] * 3] * 2


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"generate_vmap_rule": True, "vmap": lambda *args: None}, "it has both"),
        ({}, "it does not have vmap support"),
    ],
)
def test_exactly_one_rule(lib, attributes, message):
    f = straight_through(lib, **attributes)
    with pytest.raises(RuntimeError, match=f"vmap over StraightThrough, but {message}"):
        lib.func.vmap(f.apply)(examples(lib))


@pytest.mark.parametrize("value", [3, (1, 2, 3), None])
def test_vmap_staticmethod_returns_a_pair(lib, value):
    f = with_rule(lib, lambda info, in_dims, x: value)
    with pytest.raises(RuntimeError, match="to have two returns, an output and out_dims"):
        lib.func.vmap(f.apply)(examples(lib))


def test_dims_of_the_vmap_staticmethod_must_fit(lib):
    f = with_rule(lib, lambda info, in_dims, x: (x, (0, 0)))
    with pytest.raises(RuntimeError, match="incompatible .output, out_dims. tuple"):
        lib.func.vmap(f.apply)(examples(lib))


# The derived rule


CASES = {
    "both batched": ((0, 0), lambda x, w: (x, 2 * x)),
    "second shared": ((0, None), lambda x, w: (x, w)),
    "first shared": ((None, 0), lambda x, w: (w, x)),
    "other dimension": ((1, 0), lambda x, w: (x.t(), x)),
}


def inputs_of(lib, case):
    in_dims, select = CASES[case]
    return in_dims, [t.clone() for t in select(examples(lib), weights(lib))]


def example(t, dim, i):
    return t if dim is None else t.select(dim, i)


@pytest.mark.parametrize("case", CASES)
def test_derived_rule_against_a_loop(lib, case):
    f = general(lib, generate_vmap_rule=True)
    in_dims, args = inputs_of(lib, case)
    results = mapped(lib, lambda x, w: f.apply(x, w, 2.0), in_dims, *args)
    for i in range(2):
        single = f.apply(*[example(t, d, i) for t, d in zip(args, in_dims, strict=True)], 2.0)
        for together, alone in zip(results, single, strict=True):
            assert close(together[i], alone)


@pytest.mark.parametrize("case", CASES)
def test_gradient_of_the_derived_rule_against_a_loop(lib, case):
    f = general(lib, generate_vmap_rule=True)
    in_dims, args = inputs_of(lib, case)
    together = [t.clone().requires_grad_() for t in args]
    results = mapped(lib, lambda x, w: f.apply(x, w, 2.0), in_dims, *together)
    sum((t**2).sum() for t in results).backward()
    apart = [t.clone().requires_grad_() for t in args]
    for i in range(2):
        single = f.apply(*[example(t, d, i) for t, d in zip(apart, in_dims, strict=True)], 2.0)
        sum((t**2).sum() for t in single).backward()
    for one, other in zip(together, apart, strict=True):
        assert (one.grad - other.grad).abs().max().item() < 1e-9 * other.grad.abs().max().item()


@pytest.mark.parametrize("case", CASES)
def test_tangent_of_the_derived_rule_against_a_loop(lib, case):
    f = general(lib, generate_vmap_rule=True)
    in_dims, args = inputs_of(lib, case)

    def one(x, w):
        tangents = (lib.ones_like(x), 2 * lib.ones_like(w))
        return lib.func.jvp(lambda x, w: f.apply(x, w, 2.0), (x, w), tangents)[1]

    results = mapped(lib, one, in_dims, *args)
    for i in range(2):
        single = one(*[example(t, d, i) for t, d in zip(args, in_dims, strict=True)])
        for together, alone in zip(results, single, strict=True):
            assert close(together[i], alone)


def test_derived_rule_inside_and_outside_of_grad(lib):
    f = general(lib, generate_vmap_rule=True)

    def loss(x, w):
        first, second = f.apply(x, w, 2.0)
        return first * 3 + second.sum()

    x, w = examples(lib), weights(lib)
    (inside,) = mapped(lib, lib.func.grad(loss), (0, None), x, w)
    for i in range(2):
        assert close(inside[i], lib.func.grad(loss)(x[i], w))
    outside = lib.func.grad(lambda w: lib.func.vmap(loss, (0, None))(x, w).sum())(w)
    assert close(outside, sum(lib.func.grad(loss, argnums=1)(x[i], w) for i in range(2)))


def test_derived_rule_uses_the_own_derivative(lib):
    f = straight_through(lib, generate_vmap_rule=True)
    x = examples(lib).requires_grad_()
    lib.func.vmap(f.apply)(x).sum().backward()
    assert x.grad.tolist() == [[7.0] * 3] * 2


def test_derived_rule_at_two_levels(lib):
    f = general(lib, generate_vmap_rule=True)
    x, w = examples(lib), weights(lib)
    many = lib.stack([w, w * 2, w * 3])

    def inner(w):
        return lib.func.vmap(lambda x: f.apply(x, w, 2.0)[0])(x)

    assert close(lib.func.vmap(inner)(many), 2 * many @ x.t())


def test_jacobians(lib):
    f = general(lib, generate_vmap_rule=True)
    x = weights(lib)

    def function(x):
        return f.apply(x, x, 2.0)[1]

    expected = lib.diag(2 * (2 * x).exp())
    assert close(lib.func.jacrev(function)(x), expected)
    assert close(lib.func.jacfwd(function)(x), expected)


def test_gradient_that_was_broadcast_is_summed_for_each_example(lib):
    f = separate(lib, lambda x, b: x + b, lambda ctx, g: (g, g), generate_vmap_rule=True)
    x = examples(lib).requires_grad_()
    b = lib.ones(2, 1, dtype=lib.float64, requires_grad=True)
    lib.func.vmap(f.apply)(x, b).sum().backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2
    assert b.grad.tolist() == [[3.0], [3.0]]
    shared = lib.ones(1, dtype=lib.float64, requires_grad=True)
    lib.func.vmap(f.apply, (0, None))(x, shared).sum().backward()
    assert shared.grad.tolist() == [6.0]


def test_context_inside_the_derived_rule(lib):
    seen = []

    def setup_context(ctx, inputs, output):
        seen.append((ctx.needs_input_grad, tuple(inputs[0].shape)))
        ctx.set_materialize_grads(False)
        ctx.note = "kept"

    def backward(ctx, g, h):
        seen.append((ctx.note, h is None, tuple(g.shape)))
        return g * 2, None

    f = make(
        lib,
        lambda x, k: (x * 2, x * k),
        backward,
        generate_vmap_rule=True,
        setup_context=setup_context,
    )
    x = examples(lib).requires_grad_()
    first, _ = mapped(lib, lambda x: f.apply(x, 3), 0, x)
    first.sum().backward()
    assert seen == [((True, False), (3,)), ("kept", True, (3,))]
    assert x.grad.tolist() == [[2.0] * 3] * 2
