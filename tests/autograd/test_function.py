"""Custom Functions where PyTorch is no oracle: memory, cycles, blame, repairs."""

import gc
import re
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import wengert
from custom_functions import double, doubled_in_place, exponential, make, product

STEPS = 5_000
REPEATS = 800 if wengert.__compiled__ else 200
DEEP = 200_000 if wengert.__compiled__ else 20_000


class Token:
    """Something that can be watched by a weak reference."""


def leaf(*values):
    return wengert.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def watched(node):
    token = Token()
    node.token = token
    return weakref.ref(token)


@pytest.fixture
def no_collector():
    """Only reference counts free memory inside the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# Memory


def keeps_attributes():
    def forward(ctx, x):
        ctx.shape, ctx.options, ctx.x = x.shape, {"k": [1]}, x
        return x * 2

    return make(wengert, forward, lambda ctx, g: g * ctx.x.detach())


def several_results():
    def forward(ctx, x):
        first, second = x * 2, x.exp()
        ctx.save_for_backward(x, second)
        ctx.mark_non_differentiable(first)
        return first, second

    def backward(ctx, g, h):
        return h * ctx.saved_tensors[1]

    f = make(wengert, forward, backward)
    return type("Second", (), {"apply": staticmethod(lambda x: f.apply(x)[1])})


def returned_input():
    return make(wengert, lambda ctx, x: x, lambda ctx, g: g)


def changed_view():
    f = doubled_in_place(wengert)

    def apply(x):
        base = x * 1
        f.apply(base[:2])
        return base

    return type("ChangedView", (), {"apply": staticmethod(apply)})


def hooked():
    f = exponential(wengert)

    def apply(x):
        y = f.apply(x)
        y.grad_fn.register_hook(lambda i, o: None)
        y.register_hook(lambda g: g * 1)
        return y

    return type("Hooked", (), {"apply": staticmethod(apply)})


MAKERS = {
    "saved output": lambda: exponential(wengert),
    "attributes": keeps_attributes,
    "several results": several_results,
    "returned input": returned_input,
    "changed view": changed_view,
    "hooks": hooked,
}


@pytest.mark.parametrize("make_one", MAKERS.values(), ids=MAKERS)
def test_steps_do_not_grow(make_one, no_collector):
    f = make_one()
    x = leaf(0.1, 0.2, 0.3)

    def step():
        f.apply(f.apply(x)).sum().backward()
        f.apply(x)
        (first,) = wengert.autograd.grad(f.apply(x).sum(), x, create_graph=True)
        del first
        x.grad = None

    for _ in range(50):
        step()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(REPEATS):
            step()
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert growth < 20_000


def test_five_thousand_steps_leave_no_object_behind():
    f = exponential(wengert)
    x = leaf(0.1, 0.2, 0.3)

    def step():
        f.apply(f.apply(x) * 0.1).sum().backward()
        x.grad = None

    step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(STEPS):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_failing_steps_do_not_grow():
    def backward(ctx, g):
        ctx.saved_tensors
        raise KeyError

    f = make(wengert, lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], backward)
    x = leaf()

    def step():
        with pytest.raises(KeyError):
            f.apply(x).sum().backward()

    for _ in range(20):
        step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(300):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_classes_can_die():
    f = double(wengert)
    f.apply(leaf()).sum().backward()
    reference = weakref.ref(f)
    node_class = weakref.ref(f._backward_cls)
    del f
    gc.collect()
    assert reference() is None
    assert node_class() is None


def test_node_of_a_chain_dies_without_the_collector(no_collector):
    f = exponential(wengert)
    y = f.apply(f.apply(leaf()))
    reference = watched(y.grad_fn.next_functions[0][0])
    del y
    assert reference() is None


def test_deep_chain_is_differentiated_and_destroyed():
    f = double(wengert)
    f.backward = staticmethod(lambda ctx, g: g)
    x = leaf()
    y = x
    for _ in range(DEEP):
        y = f.apply(y)
    y.backward(wengert.ones(3))
    assert x.grad.tolist() == [1.0] * 3
    del y


# Cycles that only the collector can break


def test_attribute_that_is_the_output():
    def forward(ctx, x):
        ctx.out = x * 2
        return ctx.out

    y = make(wengert, forward).apply(leaf())
    reference = watched(y.grad_fn)
    del y
    gc.collect()
    assert reference() is None


def test_attribute_that_is_computed_from_the_output():
    y = double(wengert).apply(leaf())
    y.grad_fn.kept = []
    z = y * 2
    y.grad_fn.kept.append(z.exp())
    reference = watched(y.grad_fn)
    del y, z
    gc.collect()
    assert reference() is None


def test_attribute_that_is_set_in_backward():
    def backward(ctx, g):
        ctx.me = ctx
        return g

    y = make(wengert, lambda ctx, x: x * 2, backward).apply(leaf())
    reference = watched(y.grad_fn)
    y.sum().backward()
    del y
    gc.collect()
    assert reference() is None


def test_attribute_that_is_the_context_itself():
    def forward(ctx, x):
        ctx.me = [ctx]
        return x * 2

    y = make(wengert, forward).apply(leaf())
    reference = watched(y.grad_fn)
    del y
    gc.collect()
    assert reference() is None


def test_cycle_of_a_call_that_was_not_recorded():
    references = []

    def forward(ctx, x):
        ctx.me = ctx
        references.append(watched(ctx))
        return x * 2

    make(wengert, forward).apply(wengert.ones(3))
    gc.collect()
    assert references[0]() is None


class WithPlainAttributes(wengert.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape, ctx.number, ctx.pair, ctx.array = x.shape, 3, (1, "a"), np.ones(2)
        ctx.save_for_backward(x)
        return x * 2


@pytest.mark.compiled_only
def test_plain_attributes_do_not_show_a_node_to_the_collector():
    from wengert.core.collector import collector

    y = WithPlainAttributes.apply(leaf())
    assert collector.is_hidden(y.grad_fn)
    y.grad_fn.values = [1]
    assert not collector.is_hidden(y.grad_fn)


# Blame


def test_error_names_the_call_and_the_change():
    x = leaf() * 1
    y = product(wengert).apply(x, wengert.ones(3))
    x.mul_(2)
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    text = str(caught.value)
    assert re.search(r"ProductBackward saved it at .*test_function\.py:\d+.*product\(", text)
    assert re.search(r"changed by `mul_` at .*test_function\.py:\d+.*x\.mul_\(2\)", text)


def test_error_names_a_function_that_changed_the_tensor():
    x = leaf() * 1
    square = x * x
    doubled_in_place(wengert).apply(x)
    with pytest.raises(RuntimeError, match="It was changed by `DoubledInPlaceBackward` at"):
        square.sum().backward()


def test_error_names_the_backward_that_freed():
    y = product(wengert).apply(leaf(), leaf()).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="ProductBackward was recorded at .*freed by the"):
        y.backward()


def test_error_of_a_view_names_its_function():
    y = make(wengert, lambda ctx, x: x[:2]).apply(leaf() * 1)
    with pytest.raises(RuntimeError, match="Output 0 of CustomBackward is a view"):
        y.mul_(2)


# What PyTorch gets wrong


def test_changed_view_need_not_be_the_first_input():
    def forward(ctx, w, x):
        ctx.save_for_backward(w, x.clone())
        x.mul_(w)
        ctx.mark_dirty(x)
        return x

    def backward(ctx, g):
        w, x = ctx.saved_tensors
        return g * x, g * w

    x, w = leaf(), leaf(5.0, 7.0)
    base = x * 1
    make(wengert, forward, backward).apply(w, base[:2])
    base.sum().backward()
    assert x.grad.tolist() == [5.0, 7.0, 1.0]
    assert w.grad.tolist() == [1.0, 2.0]


def test_double_backward_through_a_changed_view_that_is_saved():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    f = make(wengert, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = wengert.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=wengert.float64, requires_grad=True)
    for select in (lambda base: base[0], lambda base: base.t()[1:], lambda base: base.view(4)[1:]):
        base = x * 1
        f.apply(select(base))
        (first,) = wengert.autograd.grad(base.sum(), x, create_graph=True)
        (second,) = wengert.autograd.grad(first.sum(), x)
        expected = wengert.zeros(2, 2, dtype=wengert.float64)
        select(expected).copy_(select(x.detach().exp()))
        assert (second - expected).abs().max().item() < 1e-12


def test_retain_grad_follows_a_changed_input():
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x.sum(), x

    z = leaf() * 1
    z.retain_grad()
    make(wengert, forward, lambda ctx, g, h: h * 2).apply(z)
    (z * 5).sum().backward()
    assert z.grad.tolist() == [5.0] * 3


def test_jvp_may_return_none_for_no_tangent():
    forward_ad = wengert.autograd.forward_ad
    f = make(wengert, lambda ctx, x: (x * 2, x.sign()), jvp=lambda ctx, t: (t * 2, None))
    with forward_ad.dual_level():
        first, second = f.apply(forward_ad.make_dual(wengert.ones(3), wengert.ones(3)))
        assert forward_ad.unpack_dual(first).tangent.tolist() == [2.0] * 3
        assert forward_ad.unpack_dual(second).tangent is None


def test_dtype_of_materialize_grads_can_be_read():
    node = double(wengert).apply(leaf()).grad_fn
    assert node.materialize_grads is True
    node.set_materialize_grads(False)
    assert node.materialize_grads is False


def batched(forward, backward, **attributes):
    setup = {"setup_context": lambda ctx, inputs, output: None, "generate_vmap_rule": True}
    return make(wengert, forward, backward, **{**setup, **attributes})


def test_gradient_of_a_result_that_all_examples_share():
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        return g * w, g * x + h

    f = batched(lambda x, w: ((x * w).sum(), w * 1), backward, setup_context=setup_context)
    x = wengert.tensor([[1.0, 2.0], [3.0, 4.0]])
    w = leaf(1.0, 1.0)
    products, shared = wengert.vmap(f.apply, (0, None), (0, None))(x, w)
    (products.sum() + shared.sum()).backward()
    assert w.grad.tolist() == [5.0, 7.0]


def test_derived_batching_rule_of_a_function_that_changes_its_input():
    f = batched(
        lambda x: x.mul_(2),
        lambda ctx, g: g * 2,
        setup_context=lambda ctx, inputs, output: ctx.mark_dirty(*inputs),
    )
    x = wengert.ones(2, 3, requires_grad=True)
    out = wengert.vmap(lambda x: f.apply(x * 1))(x)
    assert out.tolist() == [[2.0] * 3] * 2
    out.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_derived_batching_rule_of_a_result_without_gradient():
    f = batched(
        lambda x: (x * 2, x * 3),
        lambda ctx, g, h: g * 2,
        setup_context=lambda ctx, inputs, output: ctx.mark_non_differentiable(output[1]),
    )
    first, second = wengert.vmap(f.apply)(wengert.ones(2, 3, requires_grad=True))
    assert first.requires_grad and not second.requires_grad


def test_no_batching_rule_is_needed_without_a_batch():
    f = batched(lambda x: x * 2, lambda ctx, g: g * 2, generate_vmap_rule=False)
    out = wengert.vmap(lambda x, w: f.apply(w) + x, (0, None))(wengert.ones(2, 3), wengert.ones(3))
    assert out.tolist() == [[3.0] * 3] * 2


# Contexts that are made by hand


def test_context_made_by_hand():
    ctx = product(wengert)._backward_cls()
    assert ctx.name() == "ProductBackward"
    assert ctx.saved_tensors == ()
    assert ctx.next_functions == ()
    ctx.save_for_backward(wengert.ones(1))
    assert len(ctx.to_save) == 1


def test_to_save_must_be_a_tuple():
    def forward(ctx, x):
        ctx.to_save = [x]
        return x * 2

    with pytest.raises(RuntimeError, match="to_save attribute is expected to be a tuple"):
        make(wengert, forward).apply(leaf())


def test_traceable_is_gone():
    f = double(wengert)
    with pytest.warns(FutureWarning, match="traceable is deprecated"):
        assert wengert.autograd.function.traceable(f) is f


def test_nested_io_function_cannot_be_called():
    with pytest.warns(DeprecationWarning):
        f = wengert.autograd.NestedIOFunction()
    with pytest.raises(RuntimeError, match="can no longer be called"):
        f(wengert.ones(1))


# Other parts of the library


def test_anomaly_mode_names_the_call():
    def backward(ctx, g):
        return g * float("nan")

    f = make(wengert, lambda ctx, x: x * 2, backward, "Broken")
    message = "'BrokenBackward' returned nan"
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match=message):
        with wengert.autograd.detect_anomaly():
            f.apply(leaf()).sum().backward()


def test_profiler_shows_the_call():
    with wengert.autograd.profiler.profile() as profile:
        double(wengert).apply(leaf()).sum().backward()
    names = [event.name for event in profile.function_events]
    assert "Double" in names
    assert any(name.endswith("DoubleBackward") for name in names)


def test_forked_threads_do_not_mix_modes():
    modes = []
    gate = threading.Barrier(2)

    def forward(ctx, x):
        gate.wait()
        modes.append(wengert.is_grad_enabled())
        return x * 2

    f = make(wengert, forward, lambda ctx, g: g)
    threads = [threading.Thread(target=f.apply, args=(leaf(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert modes == [False, False]
    assert wengert.is_grad_enabled()


def test_numpy_inside():
    def forward(ctx, x):
        array = np.sin(x.detach().numpy())
        ctx.cos = np.cos(x.detach().numpy())
        return wengert.from_numpy(array)

    @wengert.autograd.function.once_differentiable
    def backward(ctx, g):
        return wengert.from_numpy(g.numpy() * ctx.cos)

    x = wengert.tensor([0.1, 0.7], dtype=wengert.float64, requires_grad=True)
    f = make(wengert, forward, backward)
    assert wengert.autograd.gradcheck(f.apply, (x,))
