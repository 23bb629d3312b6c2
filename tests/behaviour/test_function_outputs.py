"""Custom Functions: several results, marked results, returned inputs, views, in-place changes."""

import warnings

import pytest

from custom_functions import double, doubled_in_place, make

CUSTOM_VIEW = "is a view and is being modified inplace.*custom Function"
CHANGED_BEHIND = "base or another view of its base has been modified inplace.*custom Function"
SEVERAL_VIEWS = "function that returns multiple views"


def leaf(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def returned(lib, select, backward=lambda ctx, g: g, **attributes):
    """A Function that returns what `select` makes of its input."""
    return make(lib, lambda ctx, x: select(x), backward, "Returned", **attributes)


def first_two(lib):
    def backward(ctx, g):
        return lib.cat([g * 10, lib.zeros(1)])

    return returned(lib, lambda x: x[:2], backward)


# Several results


def test_several_results(lib):
    x = leaf(lib)
    f = make(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    out = f.apply(x)
    assert isinstance(out, tuple)
    assert [t.output_nr for t in out] == [0, 1]
    assert out[0].grad_fn is out[1].grad_fn
    (out[0] + out[1]).sum().backward()
    assert x.grad.tolist() == [5.0] * 3


def test_one_result_in_a_tuple(lib):
    x = leaf(lib)
    out = make(lib, lambda ctx, x: (x * 2,), lambda ctx, g: g * 2).apply(x)
    assert isinstance(out, tuple) and len(out) == 1
    out[0].sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_results_that_are_no_tensors(lib):
    x = leaf(lib)
    seen = []

    def backward(ctx, *grads):
        seen.append([None if g is None else g.tolist() for g in grads])
        return grads[0]

    f = make(lib, lambda ctx, x: (x * 2, 3, None, "text"), backward)
    out = f.apply(x)
    assert out[1:] == (3, None, "text")
    out[0].sum().backward()
    assert seen == [[[1.0] * 3, None, None, None]]


@pytest.mark.parametrize("value", [None, 3, ()])
def test_only_results_that_are_no_tensors(lib, value):
    assert make(lib, lambda ctx, x: value).apply(leaf(lib)) == value


def test_tensors_in_a_list_are_left_alone(lib):
    x = leaf(lib)
    out = make(lib, lambda ctx, x: [x * 2, x]).apply(x)
    assert isinstance(out, list)
    assert out[1] is x
    assert not out[0].requires_grad


def test_the_same_result_twice(lib):
    def forward(ctx, x):
        y = x * 2
        return y, y

    first, second = make(lib, forward, lambda ctx, g, h: g + h).apply(leaf(lib))
    assert first is second
    assert first.output_nr == 1


def test_results_of_different_shapes(lib):
    x = leaf(lib)
    f = make(lib, lambda ctx, x: (x.sum(), lib.outer(x, x)), lambda ctx, g, h: g + h.sum(0))
    total, square = f.apply(x)
    (total * 2 + square.sum()).backward()
    assert x.grad.tolist() == [5.0] * 3


def test_wrong_number_of_parameters_of_backward(lib):
    out = make(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, g: g).apply(leaf(lib))
    with pytest.raises(TypeError):
        out[0].sum().backward()


# Missing gradients


def gradients_seen(lib, use, prepare=lambda ctx: None, several=True):
    """What backward gets for the results that `use` selects."""
    seen = []

    def forward(ctx, x):
        prepare(ctx)
        return (x * 2, lib.outer(x, x)) if several else x * 2

    def backward(ctx, *grads):
        seen.extend(None if g is None else g.tolist() for g in grads)
        return None

    use(make(lib, forward, backward).apply(leaf(lib))).backward()
    return seen


def test_missing_gradient_is_zeros(lib):
    assert gradients_seen(lib, lambda out: out[0].sum()) == [[1.0] * 3, [[0.0] * 3] * 3]
    assert gradients_seen(lib, lambda out: out[1].sum()) == [[0.0] * 3, [[1.0] * 3] * 3]


def test_missing_gradient_is_none_if_asked_for(lib):
    seen = gradients_seen(
        lib, lambda out: out[0].sum(), lambda ctx: ctx.set_materialize_grads(False)
    )
    assert seen == [[1.0] * 3, None]


def stopped(lib, *out):
    """A scalar that depends on `out` through a Function without gradients."""
    forward, nothing = lambda ctx, *xs: sum(x.sum() for x in xs), (None,) * len(out)
    return make(lib, forward, lambda ctx, g: nothing).apply(*out)


def test_no_gradient_arrives(lib):
    assert gradients_seen(lib, lambda out: stopped(lib, *out)) == [[0.0] * 3, [[0.0] * 3] * 3]
    assert gradients_seen(lib, lambda out: stopped(lib, out), several=False) == [[0.0] * 3]


def test_no_gradient_arrives_and_none_is_asked_for(lib):
    def prepare(ctx):
        ctx.set_materialize_grads(False)

    assert gradients_seen(lib, lambda out: stopped(lib, *out), prepare) == [None, None]
    assert gradients_seen(lib, lambda out: stopped(lib, out), prepare, several=False) == [None]


def test_hooks_see_missing_gradients_as_none(lib):
    seen = []
    out = make(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g + h).apply(leaf(lib))
    out[0].grad_fn.register_prehook(lambda gs: seen.append([g is None for g in gs]))
    out[0].grad_fn.register_hook(lambda i, o: seen.append([g is None for g in o]))
    out[1].sum().backward()
    assert seen == [[True, False], [True, False]]


def test_zeros_have_the_dtype_of_the_result(lib):
    kinds = []

    def backward(ctx, g, h):
        kinds.append(g.dtype)
        return h

    f = make(lib, lambda ctx, x: (x.to(lib.float64), x * 2), backward)
    f.apply(leaf(lib))[1].sum().backward()
    assert kinds == [lib.float64]


def test_zeros_on_the_device_of_the_result(lib):
    kinds = []

    def backward(ctx, g, h):
        kinds.append(g.device.type)
        return h

    x = lib.ones(3, device="meta", requires_grad=True)
    f = make(lib, lambda ctx, x: (x * 3, x * 2), backward)
    f.apply(x)[1].backward(lib.ones(3, device="meta"))
    assert kinds == ["meta"]


# Results without gradient


def test_integer_results_are_not_differentiable(lib):
    x = leaf(lib)
    seen = []

    def backward(ctx, g, h):
        seen.append((g.dtype, g.tolist()))
        return h

    index, y = make(lib, lambda ctx, x: (x.argmax(), x * 2), backward).apply(x)
    assert not index.requires_grad and index.grad_fn is None
    y.sum().backward()
    assert seen == [(lib.int64, 0)]


def marked(lib, select=lambda x: x * 5):
    def forward(ctx, x):
        other = select(x)
        ctx.mark_non_differentiable(other)
        return other, x * 2

    return make(lib, forward, lambda ctx, g, h: h * 2, "Marked")


def test_mark_non_differentiable(lib):
    x = leaf(lib)
    other, y = marked(lib).apply(x)
    assert not other.requires_grad and other.is_leaf
    assert y.requires_grad and y.output_nr == 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_all_results_non_differentiable(lib):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    assert not make(lib, forward).apply(leaf(lib)).requires_grad


def test_mark_non_differentiable_of_a_result_with_history(lib):
    def recorded(x):
        with lib.enable_grad():
            return x * 5

    other, _ = marked(lib, recorded).apply(leaf(lib))
    assert not other.requires_grad and other.grad_fn is None


def test_mark_non_differentiable_of_a_returned_input(lib):
    x = leaf(lib)
    other, _ = marked(lib, lambda x: x).apply(x)
    assert other is not x
    assert not other.requires_grad
    assert x.requires_grad
    assert other.data_ptr() == x.data_ptr()


def test_mark_non_differentiable_of_a_view_of_the_input(lib):
    x = leaf(lib)
    other, _ = marked(lib, lambda x: x[:2]).apply(x)
    assert other.grad_fn is None
    assert other._is_view() and other._base is x


def test_only_tensors_are_marked(lib):
    f = make(lib, lambda ctx, x: (ctx.mark_non_differentiable(3), x * 2)[1])
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts variable"):
        f.apply(leaf(lib))


# Returned inputs


def test_returned_leaf_is_a_view(lib):
    x = leaf(lib)
    y = returned(lib, lambda x: x, lambda ctx, g: g * 7).apply(x)
    assert y is not x
    assert y._is_view() and y._base is x
    assert y.grad_fn.name() == "ReturnedBackward"
    assert x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [7.0] * 3


def test_returned_intermediate_is_a_view(lib):
    x = leaf(lib)
    z = x * 2
    y = returned(lib, lambda x: x, lambda ctx, g: g * 7).apply(z)
    assert y._base is z
    assert z.grad_fn.name() == "MulBackward0"
    (y + z).sum().backward()
    assert x.grad.tolist() == [16.0] * 3


def test_returned_input_without_grad_is_a_view(lib):
    c = lib.ones(3)
    y = returned(lib, lambda x: x).apply(c)
    assert y is not c
    assert y._base is c
    assert not y.requires_grad


def test_returned_input_under_no_grad_is_detached(lib):
    x = leaf(lib)
    with lib.no_grad():
        y = returned(lib, lambda x: x).apply(x)
    assert y is not x
    assert not y.requires_grad
    assert y.data_ptr() == x.data_ptr()


def test_returned_input_that_is_saved(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x

    x = leaf(lib)
    y = make(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    assert y.grad_fn.saved_tensors[0] is x
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("method", ["save_for_backward", "save_for_forward"])
def test_returned_input_that_is_saved_by_setup_context(lib, method):
    f = make(
        lib,
        lambda x: x,
        lambda ctx, g: g,
        setup_context=lambda ctx, inputs, out: getattr(ctx, method)(inputs[0]),
    )
    with pytest.raises(RuntimeError, match="returned as-is as output is being saved"):
        f.apply(leaf(lib))
    with pytest.raises(RuntimeError, match="returned as-is as output is being saved"):
        f.apply(lib.ones(3))


def test_returned_input_next_to_others(lib):
    x, y = leaf(lib), leaf(lib)
    f = make(lib, lambda ctx, x, y: (y, x * y), lambda ctx, g, h: (h, g * 3))
    same, other = f.apply(x, y)
    assert same._base is y and same.output_nr == 0
    (same + other).sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    assert y.grad.tolist() == [3.0] * 3


def test_returned_input_must_not_be_changed(lib):
    y = returned(lib, lambda x: x).apply(leaf(lib) * 1)
    with pytest.raises(RuntimeError, match=CUSTOM_VIEW):
        y.mul_(2)


def test_returned_input_without_grad_can_be_changed(lib):
    c = lib.ones(3)
    returned(lib, lambda x: x).apply(c).mul_(2)
    assert c.tolist() == [2.0] * 3


def test_change_behind_a_returned_input(lib):
    x = leaf(lib) * 1
    y = returned(lib, lambda x: x).apply(x)
    x.mul_(2)
    with pytest.raises(RuntimeError, match=CHANGED_BEHIND):
        y.grad_fn


def test_change_under_no_grad_behind_a_returned_input(lib):
    x = leaf(lib) * 1
    y = returned(lib, lambda x: x).apply(x)
    with lib.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match=CHANGED_BEHIND):
        y.grad_fn


def test_returned_input_in_inference_mode(lib):
    with lib.inference_mode():
        c = lib.ones(3)
        y = returned(lib, lambda x: x).apply(c)
    assert y is not c
    assert y.is_inference()


# Views


def test_view_of_the_input(lib):
    x = leaf(lib)
    y = first_two(lib).apply(x)
    assert y._is_view() and y._base is x
    assert y.grad_fn.name() == "ReturnedBackward"
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 0.0]


def test_view_of_a_view(lib):
    z = leaf(lib) * 1
    y = first_two(lib).apply(z.view(3))
    assert y._base is z


def test_view_of_the_input_must_not_be_changed(lib):
    y = first_two(lib).apply(leaf(lib) * 1)
    with pytest.raises(RuntimeError, match=CUSTOM_VIEW):
        y.mul_(2)


def test_view_of_an_intermediate_must_not_be_changed(lib):
    y = returned(lib, lambda x: (x * 2)[:2]).apply(leaf(lib))
    assert y._is_view()
    with pytest.raises(RuntimeError, match=CUSTOM_VIEW):
        y.mul_(2)


def test_view_of_a_result_must_not_be_changed(lib):
    y = first_two(lib).apply(leaf(lib) * 1)
    with pytest.raises(RuntimeError, match="custom Function"):
        y[:1].mul_(2)


def test_change_behind_a_view(lib):
    z = leaf(lib) * 1
    y = first_two(lib).apply(z)
    z.mul_(2)
    with pytest.raises(RuntimeError, match=CHANGED_BEHIND):
        y.sum()


def test_views_without_grad_can_be_changed(lib):
    c = lib.ones(3)
    first_two(lib).apply(c).mul_(2)
    assert c.tolist() == [2.0, 2.0, 1.0]


def test_several_views_must_not_be_changed(lib):
    f = make(lib, lambda ctx, x: (x[:2], x[2:]), lambda ctx, g, h: lib.cat([g, h]))
    first, second = f.apply(leaf(lib) * 1)
    with pytest.raises(RuntimeError, match=SEVERAL_VIEWS):
        first.mul_(2)
    with pytest.raises(RuntimeError, match=SEVERAL_VIEWS):
        second.mul_(2)


def test_a_view_among_several_results_must_not_be_changed(lib):
    f = make(lib, lambda ctx, x: (x[:2], x * 2), lambda ctx, g, h: h)
    view, other = f.apply(leaf(lib) * 1)
    with pytest.raises(RuntimeError, match=SEVERAL_VIEWS):
        view.mul_(2)
    other.mul_(2)


def test_fresh_results_can_be_changed(lib):
    x = leaf(lib)
    y = double(lib).apply(x)
    y.mul_(5)
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [10.0] * 3


def test_view_under_no_grad(lib):
    x = leaf(lib)
    with lib.no_grad():
        y = first_two(lib).apply(x)
    assert y._base is x
    assert y.grad_fn is None


# Inputs that are changed


def test_dirty_input(lib):
    x = leaf(lib)
    z = x * 1
    before = z.grad_fn
    y = doubled_in_place(lib).apply(z)
    assert y is z
    assert z.grad_fn.name() == "DoubledInPlaceBackward"
    assert z.grad_fn.next_functions[0][0] is before
    assert z._version == 2
    z.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_mark_dirty_counts_as_a_change(lib):
    z = leaf(lib) * 1
    other = z.exp()
    square = z * z
    make(lib, lambda ctx, x: (ctx.mark_dirty(x), x)[1], lambda ctx, g: g).apply(z)
    assert z._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()
    other.sum().backward()


def test_dirty_input_without_grad(lib):
    c = lib.ones(3)
    y = doubled_in_place(lib).apply(c)
    assert y is c
    assert c.tolist() == [2.0] * 3
    assert c._version == 2


def test_dirty_leaf(lib):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in"):
        doubled_in_place(lib).apply(leaf(lib))


def test_dirty_leaf_under_no_grad(lib):
    x = leaf(lib)
    with lib.no_grad():
        y = doubled_in_place(lib).apply(x)
    assert y is not x
    assert not y.requires_grad
    assert x.requires_grad and x.is_leaf
    assert x.tolist() == [2.0, 4.0, 6.0]


def test_dirty_input_that_is_not_returned(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not"):
        make(lib, forward).apply(leaf(lib) * 1)


def test_dirty_tensor_that_is_no_input(lib):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    x = leaf(lib)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = make(lib, forward, lambda ctx, g: g * 2).apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_dirty_view_that_is_no_input(lib):
    def forward(ctx, x):
        y = (x * 2)[:2]
        ctx.mark_dirty(y)
        return y

    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        make(lib, forward).apply(leaf(lib))


def test_only_tensors_are_dirty(lib):
    f = make(lib, lambda ctx, x: (ctx.mark_dirty(3), x * 2)[1])
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        f.apply(leaf(lib))


def test_several_dirty_inputs(lib):
    def forward(ctx, x, y):
        x.mul_(2)
        y.mul_(3)
        ctx.mark_dirty(x, y)
        return x * y, x, y

    def backward(ctx, product, x, y):
        return x * 2, y * 3

    a, b = leaf(lib), leaf(lib)
    x, y = a * 1, b * 1
    product, first, second = make(lib, forward, backward).apply(x, y)
    assert first is x and second is y
    assert [t.output_nr for t in (product, x, y)] == [0, 1, 2]
    (x + y + product).sum().backward()
    assert a.grad.tolist() == [2.0] * 3
    assert b.grad.tolist() == [3.0] * 3


def test_dirty_input_loses_its_grad(lib):
    z = leaf(lib) * 1
    z.retain_grad()
    z.sum().backward(retain_graph=True)
    assert z.grad is not None
    doubled_in_place(lib).apply(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert z.grad is None


def test_hooks_stay_with_the_old_value_of_a_dirty_input(lib):
    seen = []
    z = leaf(lib) * 1
    z.register_hook(lambda g: seen.append(g.tolist()))
    doubled_in_place(lib).apply(z)
    z.sum().backward()
    assert seen == [[2.0] * 3]


def test_saved_dirty_input(lib):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    x = leaf(lib)
    z = x * 1
    make(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(z)
    assert z.grad_fn.saved_tensors[0].grad_fn is z.grad_fn
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_saved_dirty_input_that_changes_again(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    z = leaf(lib) * 1
    make(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(z)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


# Views that are changed


def test_dirty_view(lib):
    x = leaf(lib)
    base = x * 1
    view = base[:2]
    assert doubled_in_place(lib).apply(view) is view
    assert base.grad_fn.name().endswith("CopySlices")
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]


def test_gradient_through_a_dirty_view(lib):
    x = leaf(lib)
    view = (x * 1)[1:]
    doubled_in_place(lib).apply(view)
    (view * lib.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 20.0]


def test_dirty_view_with_another_input(lib):
    def forward(ctx, x, w):
        ctx.save_for_backward(x.clone(), w)
        x.mul_(w)
        ctx.mark_dirty(x)
        return x

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x

    x, w = leaf(lib), lib.tensor([5.0, 7.0], requires_grad=True)
    base = x * 1
    make(lib, forward, backward).apply(base[:2], w)
    base.sum().backward()
    assert x.grad.tolist() == [5.0, 7.0, 1.0]
    assert w.grad.tolist() == [1.0, 2.0]


def test_dirty_view_of_a_base_without_grad(lib):
    def forward(ctx, x, w):
        x.copy_(w)
        ctx.mark_dirty(x)
        return x

    w = lib.tensor([5.0, 7.0], requires_grad=True)
    base = lib.zeros(3)
    make(lib, forward, lambda ctx, g: (None, g)).apply(base[:2], w)
    assert base.requires_grad
    (base * lib.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_dirty_view_frees_what_it_saved(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        x.mul_(x)
        ctx.mark_dirty(x)
        return x

    x = leaf(lib)
    base = x * 1
    make(lib, forward, lambda ctx, g: 2 * g * ctx.saved_tensors[0]).apply(base[:2])
    total = base.sum()
    total.backward()
    assert x.grad.tolist() == [2.0, 4.0, 1.0]
    with pytest.raises(RuntimeError, match="a second time"):
        total.backward()


def test_dirty_view_of_a_leaf(lib):
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        doubled_in_place(lib).apply(leaf(lib)[:2])


def test_dirty_view_made_under_no_grad(lib):
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        return x

    with lib.no_grad():
        view = lib.ones(3)[:2]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        make(lib, forward).apply(view, leaf(lib))
    z = leaf(lib) * 1
    with lib.no_grad():
        view = z[:2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used"):
        doubled_in_place(lib).apply(view)


def test_dirty_view_and_several_results(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x, x * 2

    with pytest.raises(RuntimeError, match="your Function cannot return more than one Tensor"):
        make(lib, forward).apply((leaf(lib) * 1)[:2])


def test_dirty_inference_tensor(lib):
    with lib.inference_mode():
        c = lib.ones(3)
    f = make(lib, lambda ctx, x: (ctx.mark_dirty(x), x)[1])
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        f.apply(c)


def test_call_without_recording_takes_a_view_whose_history_is_gone(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

    base = lib.ones(2, requires_grad=True) * 1
    first, _ = base.unbind()
    base.add_(1)
    with lib.no_grad():
        Double.apply(first)
    assert base.tolist() == [4.0, 2.0]


def test_view_made_by_a_function_without_recording(lib):
    class Whole(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

    base = lib.ones(2, requires_grad=True) * 1
    with lib.no_grad():
        view = Whole.apply(base)
    with pytest.raises(RuntimeError, match="created in no_grad mode.* custom Function"):
        view.mul_(2)
