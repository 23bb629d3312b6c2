"""Custom Functions inside grad and vmap: their own derivative at every level, batching rules."""

import pytest

import wengert
from custom_functions import double, make
from wengert.autograd.function_transforms import VmapInfo, batching_rule, call_batched

X = wengert.tensor([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], dtype=wengert.float64)
W = wengert.tensor([0.1, 0.2, 0.3], dtype=wengert.float64)


def gradient_of(function, x):
    """The gradient of a scalar function, as a transform computes it."""
    return wengert.func.grad(function)(x)


def mapped(function, in_dims, *args):
    """The results for every example of a batch, batch dimensions in front."""
    out = wengert.vmap(function, in_dims=tuple(in_dims))(*args)
    return list(out) if isinstance(out, tuple) else [out]


def separate(forward, backward, name="Separate", **attributes):
    return make(
        wengert,
        forward,
        backward,
        name,
        **{"setup_context": lambda ctx, inputs, output: None, **attributes},
    )


def straight_through(**attributes):
    """Rounds; pretends that its derivative is 7."""
    return separate(lambda x: x.round(), lambda ctx, g: g * 7, "StraightThrough", **attributes)


def saved(ctx, inputs, output):
    x, w, factor = inputs
    ctx.save_for_backward(x, w, output[1])
    ctx.factor = factor


def general(**attributes):
    """Three results of two tensors and a number: all that a rule has to deal with."""

    def forward(x, w, factor):
        return (x * w).sum() * factor, x.exp(), w * 1

    def backward(ctx, g, h, i):
        x, w, e = ctx.saved_tensors
        return g * w * ctx.factor + h * e, g * x * ctx.factor + i, None

    return separate(forward, backward, "General", setup_context=saved, **attributes)


def close(a, b):
    return (a - b).abs().max().item() < 1e-12


# Derivatives


def test_own_derivative_at_one_level():
    g = gradient_of(lambda x: straight_through().apply(x).sum(), W)
    assert g.tolist() == [7.0] * 3


def test_own_derivative_at_two_levels():
    f = straight_through()
    # d/dx of (round x)^2 is 14 round x; its own derivative is 14 * 7
    second = gradient_of(lambda x: gradient_of(lambda y: (f.apply(y) ** 2).sum(), x).sum(), W)
    assert second.tolist() == [98.0] * 3


def test_own_derivative_outside_of_the_transform():
    f = straight_through()
    x = W.clone().requires_grad_()
    gradient_of(lambda y: (f.apply(y) ** 2).sum(), x).sum().backward()
    assert x.grad.tolist() == [98.0] * 3


def test_captured_tensor():
    f = straight_through()
    w = W.clone().requires_grad_()
    gradient_of(lambda v: (f.apply(w) * v).sum(), W).sum().backward()
    assert w.grad.tolist() == [7.0] * 3


def test_tensors_of_two_levels():
    f = separate(
        lambda x, w: x * w,
        lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    w = W.clone().requires_grad_()
    g = gradient_of(lambda x: (f.apply(x, w) ** 2).sum(), W)
    assert close(g.detach(), 2 * W * W * W)
    g.sum().backward()
    assert close(w.grad, 4 * W * W)


def test_changed_input():
    f = separate(
        lambda x: x.mul_(2),
        lambda ctx, g: g * 2,
        setup_context=lambda ctx, inputs, output: ctx.mark_dirty(*inputs),
    )

    def function(x):
        y = x * 1
        z = f.apply(y)
        return (y * z).sum()

    assert close(gradient_of(function, W), 8 * W)


def test_old_style_is_refused():
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        gradient_of(lambda x: double(wengert).apply(x).sum(), W)
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        mapped(double(wengert, generate_vmap_rule=True).apply, (0,), X)


# The vmap staticmethod


def with_rule(vmap, **attributes):
    return separate(lambda x: x * 2, lambda ctx, g: g * 2, "WithRule", vmap=vmap, **attributes)


def test_vmap_staticmethod():
    seen = []

    def vmap(info, in_dims, x):
        seen.append((info, in_dims, tuple(x.shape)))
        return x * 2, in_dims[0]

    (out,) = mapped(with_rule(vmap).apply, (1,), X)
    assert seen == [(VmapInfo(3, "error"), (1,), (2, 3))]
    assert close(out, 2 * X.t())


def test_vmap_staticmethod_of_several_results():
    f = separate(
        lambda x, k: (x * k, x.sum(), 3),
        None,
        vmap=lambda info, in_dims, x, k: ((x * k, x.sum(1), 3), (0, 0, None)),
    )
    scaled, total = mapped(lambda x: f.apply(x, 5)[:2], (0,), X)
    assert close(scaled, 5 * X)
    assert close(total, X.sum(1))


def test_vmap_staticmethod_is_not_needed_without_a_batch():
    f = straight_through()
    (out, same) = mapped(lambda x, w: (f.apply(w), x), (0, None), X, W)
    assert out.tolist() == [[0.0] * 3] * 2
    assert close(same, X)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"generate_vmap_rule": True, "vmap": lambda *args: None}, "it has both"),
        ({}, "it does not have vmap support"),
    ],
)
def test_exactly_one_rule(attributes, message):
    with pytest.raises(RuntimeError, match=f"vmap over StraightThrough, but {message}"):
        batching_rule(straight_through(**attributes))


@pytest.mark.parametrize("value", [3, (1, 2, 3), X])
def test_vmap_staticmethod_returns_a_pair(value):
    f = with_rule(lambda info, in_dims, x: value)
    with pytest.raises(RuntimeError, match="to have two returns, an output and out_dims"):
        call_batched(f, VmapInfo(2, "error"), (0,), (X,))


def test_dims_of_the_vmap_staticmethod_must_fit():
    f = with_rule(lambda info, in_dims, x: (x, (0, 0)))
    with pytest.raises(RuntimeError, match="incompatible .output, out_dims. tuple"):
        call_batched(f, VmapInfo(2, "error"), (0,), (X,))


# The derived rule


@pytest.mark.parametrize(
    ("in_dims", "x", "w"),
    [((0, 0), X, X * 2), ((0, None), X, W), ((1, 0), X.t(), X), ((None, 0), W, X)],
)
def test_derived_rule_against_a_loop(in_dims, x, w):
    f = general(generate_vmap_rule=True)
    results = mapped(lambda x, w: f.apply(x, w, 2.0), in_dims, x, w)
    for i in range(2):
        x_i = x if in_dims[0] is None else x.select(in_dims[0], i)
        w_i = w if in_dims[1] is None else w.select(in_dims[1], i)
        for batch, single in zip(results, f.apply(x_i, w_i, 2.0), strict=True):
            assert close(batch if batch.shape == single.shape else batch[i], single)


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_gradient_of_the_derived_rule_against_a_loop(in_dims):
    f = general(generate_vmap_rule=True)
    inputs = [X * (i + 1) if d == 0 else W * (i + 1) for i, d in enumerate(in_dims)]
    together = [t.clone().requires_grad_() for t in inputs]
    results = mapped(lambda x, w: f.apply(x, w, 2.0), in_dims, *together)
    sum((t**2).sum() * (1 if t.shape[0] == 2 else 2) for t in results).backward()
    apart = [t.clone().requires_grad_() for t in inputs]
    for i in range(2):
        x_i, w_i = [t if d is None else t[i] for t, d in zip(apart, in_dims, strict=True)]
        sum((t**2).sum() for t in f.apply(x_i, w_i, 2.0)).backward()
    for batch, loop in zip(together, apart, strict=True):
        assert close(batch.grad, loop.grad)


def test_derived_rule_under_grad():
    f = general(generate_vmap_rule=True)

    def loss(x, w):
        first, second, third = f.apply(x, w, 2.0)
        return first * 3 + second.sum() + third.sum()

    (batch,) = mapped(lambda x, w: gradient_of(lambda y: loss(y, w), x), (0, None), X, W)
    for i in range(2):
        assert close(batch[i], gradient_of(lambda y: loss(y, W), X[i]))


def test_derived_rule_uses_the_function_own_derivative():
    f = straight_through(generate_vmap_rule=True)
    x = X.clone().requires_grad_()
    mapped(f.apply, (0,), x)[0].sum().backward()
    assert x.grad.tolist() == [[7.0] * 3] * 2


def test_derived_rule_at_two_levels():
    f = general(generate_vmap_rule=True)
    many = wengert.stack([W, W * 2, W * 3])

    def inner(w):
        return mapped(lambda x: f.apply(x, w, 2.0)[0], (0,), X)[0]

    (table,) = mapped(inner, (0,), many)
    assert close(table, 2 * many @ X.t())


def test_gradient_that_was_broadcast_is_summed_for_each_example():
    f = separate(lambda x, b: x + b, lambda ctx, g: (g, g), generate_vmap_rule=True)
    x = X.clone().requires_grad_()
    b = wengert.ones(2, 1, dtype=wengert.float64, requires_grad=True)
    mapped(f.apply, (0, 0), x, b)[0].sum().backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2
    assert b.grad.tolist() == [[3.0], [3.0]]
    shared = wengert.ones(1, dtype=wengert.float64, requires_grad=True)
    mapped(f.apply, (0, None), X, shared)[0].sum().backward()
    assert shared.grad.tolist() == [6.0]


def test_derived_rule_of_a_function_that_changes_its_input():
    f = separate(
        lambda x: x.mul_(2),
        lambda ctx, g: g * 2,
        generate_vmap_rule=True,
        setup_context=lambda ctx, inputs, output: ctx.mark_dirty(*inputs),
    )
    x = X.clone().requires_grad_()
    (out,) = mapped(lambda x: f.apply(x * 1), (0,), x)
    assert close(out.detach(), 2 * X)
    out.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_context_inside_the_derived_rule():
    seen = []

    def setup_context(ctx, inputs, output):
        seen.append((ctx.needs_input_grad, tuple(inputs[0].shape)))
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[1])
        ctx.note = "kept"

    def backward(ctx, g, h):
        seen.append((ctx.note, h is None, tuple(g.shape)))
        return g * 2, None

    f = separate(
        lambda x, k: (x * 2, x * k),
        backward,
        generate_vmap_rule=True,
        setup_context=setup_context,
    )
    x = X.clone().requires_grad_()
    first, second = mapped(lambda x: f.apply(x, 3), (0,), x)
    assert first.requires_grad and not second.requires_grad
    first.sum().backward()
    assert seen == [((True, False), (3,)), ("kept", True, (3,))]
    assert x.grad.tolist() == [[2.0] * 3] * 2
