"""Custom Functions: what they save, when it is freed, and how changes to it are noticed."""

import gc
import weakref

import pytest

from custom_functions import double, exponential, make, product

TWICE = "Trying to backward through the graph a second time"
MODIFIED = "modified by an inplace operation"


def leaf(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def saving(lib, select, backward=lambda ctx, g: g, **attributes):
    """``2 * x``; saves what `select(x, out)` returns."""

    def forward(ctx, x):
        out = x * 2
        ctx.save_for_backward(*select(x, out))
        return out

    return make(lib, forward, backward, "Saving", **attributes)


# Reading


def test_saved_input_is_the_input(lib):
    x = leaf(lib)
    node = saving(lib, lambda x, out: (x,)).apply(x).grad_fn
    assert node.saved_tensors[0] is x


def test_saved_intermediate(lib):
    node = saving(lib, lambda x, out: (x * 5,)).apply(leaf(lib)).grad_fn
    (saved,) = node.saved_tensors
    assert saved.tolist() == [5.0, 10.0, 15.0]
    assert not saved.requires_grad


def test_saved_output_belongs_to_the_node(lib):
    y = saving(lib, lambda x, out: (out,)).apply(leaf(lib))
    (saved,) = y.grad_fn.saved_tensors
    assert saved is not y
    assert saved.grad_fn is y.grad_fn
    assert saved.tolist() == y.tolist()


def test_none_can_be_saved(lib):
    x = leaf(lib)
    node = saving(lib, lambda x, out: (None, x, None)).apply(x).grad_fn
    assert node.saved_tensors == (None, x, None)


def test_nothing_saved(lib):
    node = double(lib).apply(leaf(lib)).grad_fn
    assert node.saved_tensors == ()
    assert node._raw_saved_tensors == ()
    assert node.to_save is None


def test_last_call_counts(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 2, x * 3)
        return x * 2

    node = make(lib, forward).apply(leaf(lib)).grad_fn
    assert [t.tolist() for t in node.saved_tensors] == [[2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]


def test_nothing_is_saved_before_forward_ends(lib):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        seen.append((ctx.saved_tensors, len(ctx.to_save)))
        return x * 2

    node = make(lib, forward).apply(leaf(lib)).grad_fn
    assert seen == [((), 1)]
    assert node.to_save is None
    assert len(node.saved_tensors) == 1


def test_saving_after_the_call_changes_nothing(lib):
    x = leaf(lib)
    node = saving(lib, lambda x, out: (x,)).apply(x).grad_fn
    node.save_for_backward(x * 3)
    assert node.saved_tensors[0] is x


def test_saved_tensors_can_be_read_again_and_again(lib):
    x = leaf(lib)
    y = product(lib).apply(x, x)
    assert y.grad_fn.saved_tensors[0] is y.grad_fn.saved_tensors[0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_saved_tensors_cannot_be_assigned(lib):
    with pytest.raises(AttributeError):
        double(lib).apply(leaf(lib)).grad_fn.saved_tensors = ()


def test_saved_variables_is_deprecated(lib):
    x = leaf(lib)
    node = saving(lib, lambda x, out: (x,)).apply(x).grad_fn
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
        assert node.saved_variables[0] is x


@pytest.mark.parametrize("value", [3, "text", [1.0]])
def test_only_tensors_are_saved(lib, value):
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        saving(lib, lambda x, out: (x, value)).apply(leaf(lib))


def test_what_is_saved_is_not_looked_at_when_nothing_is_recorded(lib):
    contexts = []

    def forward(ctx, x):
        contexts.append(ctx)
        ctx.save_for_backward(x, "text")
        return x * 2

    make(lib, forward).apply(lib.ones(3))
    assert contexts[0].saved_tensors == ()
    assert contexts[0].to_save is None


def test_saved_output_that_is_not_differentiable(lib):
    def forward(ctx, x):
        index = x.argmax()
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(index)
        return x * 2, index

    y, index = make(lib, forward, lambda ctx, g, h: g).apply(leaf(lib))
    assert y.grad_fn.saved_tensors[0] is index


def test_context_keeps_what_it_saved(lib):
    contexts = []

    def forward(ctx, x):
        contexts.append(ctx)
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib)
    make(lib, forward).apply(x)
    assert contexts[0].saved_tensors[0] is x


# Freeing


def test_backward_frees(lib):
    y = product(lib).apply(leaf(lib), leaf(lib))
    node = y.grad_fn
    y.sum().backward()
    with pytest.raises(RuntimeError, match=TWICE):
        node.saved_tensors
    with pytest.raises(RuntimeError, match=TWICE):
        node._raw_saved_tensors


def test_second_backward(lib):
    y = product(lib).apply(leaf(lib), leaf(lib)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=TWICE):
        y.backward()


def test_second_backward_with_retain_graph(lib):
    x = leaf(lib)
    y = product(lib).apply(x, lib.ones(3)).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [2.0] * 3


def test_second_backward_that_reads_nothing(lib):
    x = leaf(lib)
    y = double(lib).apply(x)
    y.backward(lib.ones(3))
    y.backward(lib.ones(3))
    assert x.grad.tolist() == [4.0] * 3


def test_reading_nothing_after_backward_is_an_error_too(lib):
    y = double(lib).apply(leaf(lib))
    y.backward(lib.ones(3))
    with pytest.raises(RuntimeError, match=TWICE):
        y.grad_fn.saved_tensors


def test_freed_tensor_dies(lib):
    y = saving(lib, lambda x, out: (x * 5,)).apply(leaf(lib))
    saved = weakref.ref(y.grad_fn.saved_tensors[0])
    gc.collect()
    assert saved() is not None
    y.sum().backward()
    assert saved() is None


def test_attributes_stay(lib):
    def forward(ctx, x):
        ctx.x = x
        return x * 2

    def backward(ctx, g):
        return g * ctx.x

    x = leaf(lib)
    y = make(lib, forward, backward).apply(x)
    y.backward(lib.ones(3))
    y.backward(lib.ones(3))
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_only_what_runs_is_freed(lib):
    x, y = leaf(lib), leaf(lib)
    f = product(lib)
    left, right = f.apply(x, x), f.apply(y, y)
    lib.autograd.grad((left + right).sum(), x)
    assert right.grad_fn.saved_tensors[0] is y
    with pytest.raises(RuntimeError, match=TWICE):
        left.grad_fn.saved_tensors


def test_maybe_clear_saved_tensors(lib):
    seen = []

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.maybe_clear_saved_tensors()
        try:
            seen.append(len(ctx.saved_tensors))
        except RuntimeError:
            seen.append("freed")
        return g * x

    y = saving(lib, lambda x, out: (x,), backward).apply(leaf(lib)).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert seen == [1, "freed"]


# clear_saved_tensors_on_access


ONCE = "saved_tensors can only be accessed once"


def test_cleared_on_access(lib):
    seen = []

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        try:
            ctx.saved_tensors
        except RuntimeError as error:
            seen.append(ONCE in str(error))
        return g * x

    f = saving(lib, lambda x, out: (x,), backward, clear_saved_tensors_on_access=True)
    x = leaf(lib)
    f.apply(x).sum().backward()
    assert seen == [True]
    assert x.grad.tolist() == [1.0, 2.0, 3.0]


def test_cleared_on_access_even_if_the_graph_is_kept(lib):
    f = saving(
        lib,
        lambda x, out: (x,),
        lambda ctx, g: g * ctx.saved_tensors[0],
        clear_saved_tensors_on_access=True,
    )
    y = f.apply(leaf(lib)).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=ONCE):
        y.backward()


def test_cleared_on_access_outside_of_backward(lib):
    f = saving(lib, lambda x, out: (x,), clear_saved_tensors_on_access=True)
    node = f.apply(leaf(lib)).grad_fn
    assert len(node.saved_tensors) == 1
    assert node._raw_saved_tensors == ()
    with pytest.raises(RuntimeError, match=ONCE):
        node.saved_tensors


def test_cleared_tensor_dies_in_backward(lib):
    alive = []

    def backward(ctx, g):
        (saved,) = ctx.saved_tensors
        reference = weakref.ref(saved)
        result = g * saved
        del saved
        alive.append(reference() is not None)
        return result

    for switch in (False, True):
        f = saving(
            lib, lambda x, out: (x * 5,), backward, clear_saved_tensors_on_access=switch
        )
        f.apply(leaf(lib)).sum().backward()
    assert alive == [True, False]


# In-place changes


def test_changed_input(lib):
    x = leaf(lib) * 1
    y = product(lib).apply(x, lib.ones(3))
    x.mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_changed_output(lib):
    y = exponential(lib).apply(leaf(lib))
    y.mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_changed_intermediate(lib):
    kept = []

    def select(x, out):
        kept.append(x * 5)
        return kept

    y = saving(lib, select, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(lib))
    kept[0].add_(1)
    with pytest.raises(RuntimeError, match=f"{MODIFIED}.* is at version 1; expected version 0"):
        y.sum().backward()


def test_change_is_noticed_when_saved_tensors_are_read(lib):
    x = leaf(lib) * 1
    y = saving(lib, lambda x, out: (x,)).apply(x)
    x.mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.grad_fn.saved_tensors
    y.sum().backward()


def test_change_of_what_is_not_saved(lib):
    leaf_ = leaf(lib)
    x = leaf_ * 1
    y = double(lib).apply(x)
    x.mul_(2)
    y.sum().backward()
    assert leaf_.grad.tolist() == [2.0] * 3


def test_change_before_the_call(lib):
    x = leaf(lib) * 1
    x.mul_(2)
    x.mul_(2)
    y = product(lib).apply(x, lib.ones(3))
    y.sum().backward()


def test_change_in_forward_after_saving(lib):
    def forward(ctx, x):
        doubled = x * 2
        ctx.save_for_backward(doubled)
        doubled.mul_(5)
        return x * doubled

    x = leaf(lib)
    make(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x).sum().backward()
    assert x.grad.tolist() == [10.0, 20.0, 30.0]


def test_change_through_a_view_of_the_saved_tensor(lib):
    x = leaf(lib) * 1
    y = product(lib).apply(x, lib.ones(3))
    x[0].mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_change_of_an_attribute_is_not_noticed(lib):
    def forward(ctx, x):
        ctx.x = x
        return x * 2

    x = leaf(lib)
    z = x * 1
    y = make(lib, forward, lambda ctx, g: g * ctx.x.detach()).apply(z)
    z.mul_(10)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 20.0, 30.0]


# Saved-tensor hooks


def test_saved_tensor_hooks(lib):
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t.tolist()

    def unpack(values):
        return lib.tensor(values) * 10

    seen = []

    def backward(ctx, g):
        seen.extend(None if t is None else t.tolist() for t in ctx.saved_tensors)
        return g

    f = saving(lib, lambda x, out: (x, None, x * 5), backward)
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = f.apply(leaf(lib))
    assert packed == [[1.0, 2.0, 3.0], [5.0, 10.0, 15.0]]
    y.sum().backward()
    assert seen == [[10.0, 20.0, 30.0], None, [50.0, 100.0, 150.0]]


def test_saved_tensor_hooks_on_an_output(lib):
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 1, lambda t: t + 1):
        y = exponential(lib).apply(lib.zeros(2, requires_grad=True))
    (saved,) = y.grad_fn.saved_tensors
    assert saved.tolist() == [2.0, 2.0]
    assert saved.grad_fn is y.grad_fn


def test_saved_tensor_hooks_do_not_see_attributes(lib):
    packed = []

    def forward(ctx, x):
        ctx.x = x
        return x * 2

    with lib.autograd.graph.saved_tensors_hooks(packed.append, lambda t: t):
        make(lib, forward).apply(leaf(lib))
    assert packed == []


def test_unpack_hook_runs_at_each_reading(lib):
    calls = []

    def unpack(t):
        calls.append(1)
        return t

    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        node = saving(lib, lambda x, out: (x,)).apply(leaf(lib)).grad_fn
    node.saved_tensors
    node.saved_tensors
    assert len(calls) == 2


def test_saved_on_cpu(lib):
    x = leaf(lib)
    with lib.autograd.graph.save_on_cpu():
        y = product(lib).apply(x, x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_hooks_that_are_disabled(lib):
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        y = product(lib).apply(leaf(lib), leaf(lib))
    y.sum().backward()


def test_raw_saved_tensors(lib):
    raw = saving(lib, lambda x, out: (x, out, x * 5)).apply(leaf(lib)).grad_fn._raw_saved_tensors
    assert len(raw) == 3
    assert len({type(item).__name__ for item in raw}) == 1


def test_hooks_on_one_saved_tensor(lib):
    seen = []

    def backward(ctx, g):
        seen.extend(None if t is None else t.tolist() for t in ctx.saved_tensors)
        return g

    y = saving(lib, lambda x, out: (x, out, None), backward).apply(leaf(lib))
    first, _, nothing = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda t: t.detach() * 10, lambda t: t + 1)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        first.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        nothing.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert seen == [[11.0, 21.0, 31.0], [2.0, 4.0, 6.0], None]


def test_hooks_on_a_saved_output(lib):
    y = saving(lib, lambda x, out: (out,)).apply(leaf(lib))
    y.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t.detach() * 10, lambda t: t)
    (saved,) = y.grad_fn.saved_tensors
    assert saved.tolist() == [20.0, 40.0, 60.0]
    assert saved.grad_fn is y.grad_fn


# Modes


def test_inference_tensors_cannot_be_saved(lib):
    with lib.inference_mode():
        c = lib.ones(3)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        product(lib).apply(leaf(lib), c)


def test_nothing_is_saved_under_no_grad(lib):
    contexts = []

    def forward(ctx, x):
        contexts.append(ctx)
        ctx.save_for_backward(x)
        return x * 2

    with lib.no_grad():
        make(lib, forward).apply(leaf(lib))
    assert contexts[0].saved_tensors == ()


def test_save_for_forward_takes_tensors_only(lib):
    with pytest.raises(AssertionError, match="expects all arguments to be tensors"):
        lib.autograd.function.FunctionCtx().save_for_forward(3)


# Lifetime


def collected(make_one):
    """Whether what `make_one` returns a weak reference to dies without the collector."""
    gc.collect()
    gc.disable()
    try:
        return make_one()() is None
    finally:
        gc.enable()


class Token:
    """Something that can be watched by a weak reference."""


def watched(y):
    token = Token()
    y.grad_fn.token = token
    return weakref.ref(token)


def test_node_dies_with_its_output(lib):
    assert collected(lambda: watched(product(lib).apply(leaf(lib), leaf(lib))))


def test_saved_output_makes_no_cycle(lib):
    assert collected(lambda: watched(exponential(lib).apply(leaf(lib))))


def test_saved_output_makes_no_cycle_after_backward(lib):
    def run():
        y = exponential(lib).apply(leaf(lib))
        reference = watched(y)
        y.sum().backward()
        return reference

    assert collected(run)


def test_saved_output_of_a_graph_that_was_differentiated(lib):
    def run():
        x = leaf(lib)
        y = exponential(lib).apply(x)
        reference = watched(y)
        lib.autograd.grad(y.sum(), x, create_graph=True)
        return reference

    assert collected(run)


def test_attribute_that_is_the_output_is_left_to_the_collector(lib):
    def forward(ctx, x):
        ctx.out = x * 2
        return ctx.out

    reference = watched(make(lib, forward).apply(leaf(lib)))
    gc.collect()
    assert reference() is None


def test_failed_forward_keeps_nothing(lib):
    references = []

    def forward(ctx, x):
        ctx.token = Token()
        references.append(weakref.ref(ctx.token))
        raise KeyError

    with pytest.raises(KeyError):
        make(lib, forward).apply(leaf(lib))
    gc.collect()
    assert references[0]() is None
