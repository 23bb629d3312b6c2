"""In-place operations on views and on their bases."""

import pytest

MODIFIED = "modified by an inplace operation"


def is_copy_slices(node):
    return node.name().endswith("CopySlices")


# What is a view


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[0],
        lambda x: x[:1],
        lambda x: x[..., 0],
        lambda x: x[None],
        lambda x: x.view(6),
        lambda x: x.reshape(3, 2),
        lambda x: x.t(),
        lambda x: x.transpose(0, 1),
        lambda x: x.permute(1, 0),
        lambda x: x.mT,
        lambda x: x.expand(4, 2, 3),
        lambda x: x.unsqueeze(0),
        lambda x: x.squeeze(),
        lambda x: x.flatten(),
        lambda x: x.narrow(1, 0, 2),
        lambda x: x.select(0, 1),
        lambda x: x.diagonal(),
        lambda x: x.as_strided((2,), (1,)),
        lambda x: x.unbind()[0],
        lambda x: x.split(1)[0],
        lambda x: x.chunk(2)[0],
        lambda x: x.view_as(x),
        lambda x: x.expand_as(x),
    ],
)
def test_view_knows_its_base(lib, make):
    x = lib.ones(2, 3)
    view = make(x)
    assert view._is_view()
    assert view._base is x


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x.clone(),
        lambda x: x + 0,
        lambda x: x[[0, 1]],
        lambda x: x[x > 0],
    ],
)
def test_what_is_not_a_view(lib, make):
    result = make(lib.ones(2, 3))
    assert not result._is_view()
    assert result._base is None


def test_view_of_a_view_has_the_first_base(lib):
    x = lib.ones(2, 3)
    assert x[0][1:][0]._base is x


def test_view_of_a_detached_view(lib):
    x = lib.ones(4)
    alias = x[:2].detach()
    assert alias._is_view() == (alias._base is not None)


def test_base_is_kept_alive_by_its_view(lib):
    view = lib.arange(4.0)[1:]
    assert view._base.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_view_of_leaf_is_no_leaf(lib):
    x = lib.ones(4, requires_grad=True)
    view = x[:2]
    assert view.requires_grad
    assert not view.is_leaf
    assert view.grad_fn is not None


# In-place on a view


def test_base_sees_the_new_values(lib):
    x = lib.zeros(4)
    x[1:3].add_(5)
    assert x.tolist() == [0.0, 5.0, 5.0, 0.0]


def test_base_gets_copy_slices(lib):
    x = lib.ones(4, requires_grad=True) * 1
    view = x[:2]
    view.mul_(3)
    assert is_copy_slices(x.grad_fn)


def test_copy_slices_continues_the_old_history(lib):
    x = lib.ones(4, requires_grad=True) * 1
    before = x.grad_fn
    x[:2].mul_(3)
    assert x.grad_fn.next_functions[0][0] is before


def test_view_gets_a_new_grad_fn(lib):
    x = lib.ones(4, requires_grad=True) * 1
    view = x[:2]
    before = view.grad_fn
    view.mul_(3)
    assert view.grad_fn is not before
    assert is_copy_slices(view.grad_fn.next_functions[0][0])


def test_gradient_of_base_after_change_of_view(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    y[:2].mul_(3)
    (y * lib.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 30.0, 100.0, 1000.0]


def test_gradient_of_view_after_its_change(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    view = y[:2]
    view.mul_(3)
    view.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


def test_gradients_to_base_and_operand(lib):
    x = lib.ones(4, requires_grad=True)
    factor = lib.tensor([2.0, 3.0], requires_grad=True)
    y = x * 5
    y[1:3].mul_(factor)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 10.0, 15.0, 5.0]
    assert factor.grad.tolist() == [5.0, 5.0]


def test_view_of_constant_becomes_differentiable_with_its_base(lib):
    x = lib.ones(2, requires_grad=True)
    base = lib.zeros(4)
    view = base[:2]
    view.add_(x)
    assert base.requires_grad
    assert view.requires_grad
    assert not base.is_leaf
    assert is_copy_slices(base.grad_fn)


def test_gradient_through_base_that_was_constant(lib):
    x = lib.ones(2, requires_grad=True)
    base = lib.zeros(4)
    base[1:3].add_(x)
    (base * lib.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert x.grad.tolist() == [10.0, 100.0]


def test_sibling_view_follows(lib):
    x = lib.ones(2, requires_grad=True)
    base = lib.zeros(2, 2)
    first, second = base[0], base[1]
    first.copy_(x)
    assert second.requires_grad
    assert second.grad_fn is not None
    (first * 5 + second * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_sibling_view_reads_the_changed_elements(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    base = lib.zeros(4)
    whole = base.view(2, 2)
    base[:2].copy_(x)
    (whole[0] * lib.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 10.0]


def test_several_changes_through_several_views(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 1
    left, right = y[:2], y[1:]
    left.mul_(2)
    right.mul_(3)
    left.mul_(5)
    y.sum().backward()
    assert y.tolist() == [10.0, 30.0, 3.0]
    assert x.grad.tolist() == [10.0, 30.0, 3.0]


def test_chain_of_views(lib):
    x = lib.ones(2, 3, requires_grad=True)
    y = x * 1
    y.t()[1:].t()[0].mul_(7)
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 7.0, 7.0], [1.0, 1.0, 1.0]]


def test_intermediate_view_of_a_chain_follows(lib):
    x = lib.ones(2, 3, requires_grad=True)
    y = x * 1
    row = y[0]
    row[1:].mul_(7)
    row.sum().backward()
    assert x.grad.tolist() == [[1.0, 7.0, 7.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda y: y[0], [[3.0, 3.0], [1.0, 1.0]]),
        (lambda y: y[:, 1], [[1.0, 3.0], [1.0, 3.0]]),
        (lambda y: y[0, 1], [[1.0, 3.0], [1.0, 1.0]]),
        (lambda y: y.t()[0], [[3.0, 1.0], [3.0, 1.0]]),
        (lambda y: y.view(4)[1:3], [[1.0, 3.0], [3.0, 1.0]]),
        (lambda y: y.diagonal(), [[3.0, 1.0], [1.0, 3.0]]),
        (lambda y: y.narrow(0, 1, 1), [[1.0, 1.0], [3.0, 3.0]]),
        (lambda y: y.select(1, 0), [[3.0, 1.0], [3.0, 1.0]]),
        (lambda y: y.unsqueeze(0)[0, 1], [[1.0, 1.0], [3.0, 3.0]]),
        (lambda y: y.view(4)[::2], [[3.0, 1.0], [3.0, 1.0]]),
        (lambda y: y.as_strided((2,), (3,)), [[3.0, 1.0], [1.0, 3.0]]),
        (lambda y: y.permute(1, 0)[1, :1], [[1.0, 3.0], [1.0, 1.0]]),
        (lambda y: y.flatten()[3:], [[1.0, 1.0], [1.0, 3.0]]),
        (lambda y: y[..., :1], [[3.0, 1.0], [3.0, 1.0]]),
    ],
)
def test_gradient_through_each_kind_of_view(lib, make, expected):
    x = lib.ones(2, 2, requires_grad=True)
    y = x * 1
    make(y).mul_(3)
    assert y.tolist() == expected
    y.sum().backward()
    assert x.grad.tolist() == expected


def test_copy_into_slice(lib):
    x = lib.ones(4, requires_grad=True)
    value = lib.ones(2, requires_grad=True)
    y = x * 2
    y[:2].copy_(value * 9)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 2.0, 2.0]
    assert value.grad.tolist() == [9.0, 9.0]


@pytest.mark.parametrize("change", [lambda v: v.zero_(), lambda v: v.fill_(4)])
def test_overwriting_a_slice_cuts_its_gradient(lib, change):
    x = lib.ones(4, requires_grad=True)
    y = x * 2
    change(y[1:3])
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0, 2.0]


def test_zeroed_slice_of_view_of_view(lib):
    x = lib.ones(2, 2, requires_grad=True)
    y = x * 2
    y[1][:1].zero_()
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0], [0.0, 2.0]]


def test_view_changed_with_broadcast_operand(lib):
    x = lib.ones(2, 3, requires_grad=True)
    factor = lib.tensor(4.0, requires_grad=True)
    y = x * 1
    y[0].mul_(factor)
    y.sum().backward()
    assert x.grad.tolist() == [[4.0] * 3, [1.0] * 3]
    assert factor.grad.item() == 3.0


def test_view_changed_by_function_of_its_base(lib):
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    total = y.sum()
    y[0].mul_(total)
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 2.0, 2.0]


def test_whole_view_changed(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    view = y.view(2, 2)
    view.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0] * 4


def test_double_backward_through_changed_view(lib):
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y[:1].pow_(3)
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    assert first.tolist() == [12.0, 1.0]
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 0.0]


# In-place on the base


def test_view_sees_the_new_values_of_the_base(lib):
    x = lib.zeros(4)
    view = x[:2]
    x.add_(5)
    assert view.tolist() == [5.0, 5.0]


def test_view_follows_the_history_of_its_base(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    view = y[:2]
    y.mul_(3)
    view.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


def test_view_grad_fn_is_remade_after_change_of_base(lib):
    y = lib.ones(4, requires_grad=True) * 1
    view = y[:2]
    before = view.grad_fn
    y.mul_(3)
    assert view.grad_fn is not before
    assert view.grad_fn.next_functions[0][0] is y.grad_fn


def test_view_grad_fn_is_remade_once(lib):
    y = lib.ones(4, requires_grad=True) * 1
    view = y[:2]
    y.mul_(3)
    assert view.grad_fn is view.grad_fn


def test_view_of_constant_follows_when_base_becomes_differentiable(lib):
    x = lib.ones(4, requires_grad=True)
    base = lib.zeros(4)
    view = base[:2]
    assert not view.requires_grad
    base.add_(x)
    assert view.requires_grad
    assert not view.is_leaf
    view.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_chain_of_views_follows_the_base(lib):
    x = lib.ones(2, 3, requires_grad=True)
    y = x * 1
    view = y.t()[1:].t()[0]
    y.mul_(3)
    view.sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0, 3.0], [0.0, 0.0, 0.0]]


def test_function_of_view_taken_before_the_change(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    before = y[:2] + 0
    y.mul_(3)
    before.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_alternating_changes_of_base_and_view(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 1
    view = y[:2]
    y.mul_(2)
    view.mul_(3)
    y.mul_(5)
    view.add_(1)
    (y.sum() + view.sum()).backward()
    assert x.grad.tolist() == [60.0, 60.0, 10.0]


def test_detached_alias_does_not_follow(lib):
    x = lib.ones(4, requires_grad=True)
    base = lib.zeros(4)
    alias = base.detach()
    base.add_(x)
    assert not alias.requires_grad
    assert alias.tolist() == [1.0] * 4


def test_detaching_base_in_place_leaves_the_view(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 2
    view = y[:2]
    y.detach_()
    assert not y.requires_grad
    view.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 0.0, 0.0]


def test_detaching_a_view_in_place_is_refused(lib):
    y = lib.ones(4, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        y[:2].detach_()


# Saved values


def test_saved_view_notices_change_of_base(lib):
    y = lib.ones(4, requires_grad=True) * 1
    view = y[:2]
    z = view.exp() * view
    y.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_saved_base_notices_change_of_view(lib):
    y = lib.ones(4, requires_grad=True) * 1
    z = y * y
    y[3].add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_saved_view_notices_change_of_disjoint_sibling(lib):
    y = lib.ones(4, requires_grad=True) * 1
    left, right = y[:2], y[2:]
    z = left * left
    right.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_saved_constant_notices_change_through_view(lib):
    x = lib.ones(3, requires_grad=True)
    constant = lib.ones(3)
    view = constant[:1]
    y = x * constant
    view.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


# Hooks and retained gradients


def test_retain_grad_of_base_moves_to_the_new_value(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y[:2].mul_(3)
    (y * lib.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert y.grad.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert x.grad.tolist() == [3.0, 6.0, 3.0, 4.0]


@pytest.mark.parametrize("change", ["sigmoid_", "exp_", "tanh_"])
@pytest.mark.parametrize("part", [lambda y: y, lambda y: y[:1], lambda y: y.view(2)[1]])
def test_second_derivatives_go_through_the_view_that_was_changed(lib, change, part):
    """The rules of these operators read the result, which is the view and has its hooks."""
    x = lib.tensor([0.5, -1.5], dtype=lib.float64, requires_grad=True)
    view = part(x * x)
    getattr(view, change)()
    seen = []
    view.retain_grad()
    view.register_hook(lambda g: seen.append(g.sum().item()))
    view.grad_fn.register_hook(lambda *grads: seen.append("node"))
    slope = view.detach()
    slope = {"sigmoid_": 1 - 2 * slope, "exp_": lib.ones_like(slope), "tanh_": -2 * slope}[change]
    (g,) = lib.autograd.grad(view.sum(), x, create_graph=True)
    g.sum().backward()
    expected = 1 + slope * part(2 * x).detach()
    assert lib.allclose(view.grad, expected)
    assert seen[1::2] == ["node", "node"]
    assert seen[::2] == pytest.approx([view.numel(), (expected - 1).sum().item()])


def test_retain_grad_of_view_after_change_of_base(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    view = y[:2]
    view.retain_grad()
    y.mul_(3)
    view.sum().backward()
    assert view.grad.tolist() == [1.0, 1.0]


def test_hook_of_base_stays_with_the_old_value(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y[:2].mul_(3)
    y.sum().backward()
    assert seen == [[3.0, 3.0, 1.0, 1.0]]


def test_hook_registered_on_changed_view(lib):
    x = lib.ones(4, requires_grad=True)
    y = x * 1
    view = y[:2]
    view.mul_(3)
    seen = []
    view.register_hook(lambda g: seen.append(g.tolist()))
    (view * 5).sum().backward()
    assert seen == [[5.0, 5.0]]


# Views that are leaves themselves


def test_view_of_constant_may_require_grad_on_its_own(lib):
    x = lib.zeros(2)
    view = x.view(2).requires_grad_()
    assert view.is_leaf
    assert not x.requires_grad
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3.0, 3.0]


def test_leaf_view_of_constant_may_not_change(lib):
    view = lib.zeros(2).view(2).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        view.add_(1)


def test_leaf_view_sees_change_of_constant_base(lib):
    x = lib.zeros(2)
    view = x.view(2).requires_grad_()
    x.add_(1)
    assert view.is_leaf
    assert view._version == 1
    assert view.tolist() == [1.0, 1.0]


# Strides beyond a view


def beyond(lib, change):
    """A view by strides of every other element, which shows one that these do not contain."""
    x = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1
    view = y[::2].as_strided((2,), (1,), 1)
    change(y, view)
    return x, y, view


def test_strides_beyond_a_view_see_the_changed_base(lib):
    x, _, view = beyond(lib, lambda y, view: y.add_(2))
    assert view.tolist() == [4.0, 5.0]
    assert lib.autograd.grad(view.sum(), x)[0].tolist() == [0.0, 1.0, 1.0, 0.0]


def test_a_change_through_strides_beyond_a_view_reaches_the_base(lib):
    x, y, view = beyond(lib, lambda y, view: view.mul_(3))
    assert y.tolist() == [1.0, 6.0, 9.0, 4.0]
    through_base = lib.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert through_base.tolist() == [1.0, 3.0, 3.0, 1.0]
    assert lib.autograd.grad(view.sum(), x)[0].tolist() == [0.0, 3.0, 3.0, 0.0]


# Views that autograd need not follow


def test_integer_views_made_without_recording_may_be_filled(lib):
    source = lib.tensor([4.0, 5.0, 6.0], requires_grad=True)
    (places,) = lib.where(lib.tensor([True, False, True, True]))
    places.copy_(source)
    assert places.tolist() == [4, 5, 6] and not places.requires_grad
    with lib.no_grad():
        part = lib.tensor_split(lib.tensor([False, True]), 2)[0]
    part[0] = source[0]
    assert part.tolist() == [True]


def test_an_expanded_tensor_may_be_copied_onto_itself(lib):
    x = lib.tensor([2.0]).expand(3)
    assert x.copy_(x.squeeze()).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.copy_(lib.ones(3))


def test_the_gradient_of_a_squeeze_that_removes_nothing_may_be_changed(lib):
    x = lib.tensor(1.0, requires_grad=True)
    y = x.squeeze()
    (g,) = lib.autograd.grad(y, x, retain_graph=True)
    assert g.mul_(y).requires_grad


@pytest.mark.parametrize(
    "change",
    [
        lambda lib, t, x: t.add_(x),
        lambda lib, t, x: t.mul_(x),
        lambda lib, t, x: t.lerp_(x, 0.2),
        lambda lib, t, x: t.fill_(x[0]),
        lambda lib, t, x: t.__setitem__(slice(1), x[0]),
        lambda lib, t, x: t.__setitem__([0], x),
    ],
    ids=["add_", "mul_", "lerp_", "fill_", "slice", "index"],
)
@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_one_of_several_views_is_refused_before_its_dtype(lib, change, dtype):
    x = lib.tensor([0.5], requires_grad=True)
    first, _ = lib.tensor([[1], [0]], dtype=getattr(lib, dtype))
    with pytest.raises(RuntimeError, match="returns multiple views"):
        change(lib, first, x)
    with lib.no_grad():
        part = lib.tensor([1, 0], dtype=getattr(lib, dtype))[:1]
    with pytest.raises(RuntimeError, match="view was created in no_grad mode"):
        change(lib, part, x)


def test_a_copy_into_integers_has_no_history(lib):
    x = lib.tensor([2.0], requires_grad=True)
    first, second = lib.tensor([[1], [0]])
    first.copy_(x)
    second[:] = x
    assert (first.item(), second.item()) == (2, 2)
    assert not first.requires_grad


class TestRefusedChangesOfDuals:
    def test_a_leaf_is_refused_before_the_dtype(self, lib):
        forward_ad = lib.autograd.forward_ad
        x = lib.ones(2, dtype=lib.float64, requires_grad=True)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, lib.ones(2, dtype=lib.float64))
            with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
                dual.lerp_(lib.ones(2), 0.2)

    @pytest.mark.parametrize("name", ["remainder_", "atan2_", "div_", "mul_"])
    def test_a_target_that_is_too_small(self, lib, name):
        forward_ad = lib.autograd.forward_ad
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(lib.ones(3, 1), lib.ones(3, 1))
            target = lib.ones(1, 2)
            with pytest.raises(RuntimeError, match=r"output with shape \[1, 2\] doesn't match the"):
                getattr(target, name)(dual)


def test_a_view_by_parts_of_new_memory(lib):
    """Strides cannot tell where the parts of complex numbers are after `.data` was set."""
    z = lib.tensor([0.5j], requires_grad=True)
    parts = lib.view_as_real(z)
    with lib.no_grad():
        z.zero_()
    z.data = lib.ones(1, dtype=z.dtype)
    assert parts.grad_fn.name() == "ViewAsRealBackward0"


def test_third_derivatives_of_a_view_that_was_changed_several_times(lib):
    """What a rule reads is the value at its time, whatever the view has become since."""
    x = lib.tensor([0.1, 0.2, 0.3], dtype=lib.float64, requires_grad=True)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        base = x * 1
        view = base[:2]
        view.exp_()
        view.mul_(3)
        view.sin_()
        result = (base * base).sum()
        found = []
        for _ in range(3):
            (result,) = lib.autograd.grad(result, x, create_graph=True)
            found.append(result.tolist())
            result = result.sum()
    wanted = [
        [1.1301527097162707, 3.1696888345907057, 0.6],
        [21.79873019316619, 16.641812136406166, 2.0],
        [13.442506235638891, -126.64426440204976, 0.0],
    ]
    for mine, its in zip(found, wanted, strict=True):
        assert mine == pytest.approx(its, rel=1e-10)


@pytest.mark.parametrize("detach", [lambda t: t.detach_(), lambda t: t.requires_grad_(False)])
@pytest.mark.parametrize(
    "view", [lambda t: t[0], lambda t: t.expand(2, 2, 2), lambda t: t.t()[1:].select(0, 0)]
)
def test_view_of_a_base_that_was_detached_still_has_a_node(lib, view, detach):
    """Its gradients go nowhere, however often somebody looks at it."""
    leaf = lib.ones(2, 2, requires_grad=True)
    part = view(leaf)
    detach(leaf)
    leaf.mul_(2)
    for _ in range(2):
        assert part.grad_fn is not None
        assert part.requires_grad and not part.is_leaf
    part.retain_grad()
    part.sum().backward()
    assert part.grad.tolist() == lib.ones_like(part).tolist()
    assert leaf.grad is None
