"""How gradients arrive in `.grad`: what is stolen, cloned, added, and in which layout."""

import pytest

import wengert

ignore_cycle_warning = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")


# Accumulation over calls and paths


def test_grad_is_none_before_backward(lib):
    assert lib.ones(2, requires_grad=True).grad is None


def test_backward_calls_add_up(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):
        (x * x).sum().backward()
    assert x.grad.tolist() == [8.0, 16.0]


def test_different_functions_add_up(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    (x * 10).sum().backward()
    assert x.grad.tolist() == [12.0, 14.0]


def test_all_uses_of_a_leaf_add_up(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (x * x + x * 2 + x).backward()
    assert x.grad.item() == 9.0


def test_same_operand_twice(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (x + x).backward()
    assert x.grad.item() == 2.0


def test_diamond(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    (y * 3 + y * 4).backward()
    assert x.grad.item() == 28.0


def test_many_paths_through_shared_nodes(lib):
    x = lib.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(20):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**20


def test_reset_to_none_starts_again(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (x * 2).backward()
    x.grad = None
    (x * 5).backward()
    assert x.grad.item() == 5.0


def test_delete_resets_to_none(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (x * 2).backward()
    del x.grad
    assert x.grad is None


def test_zeroing_in_place_starts_again(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (x * 2).backward()
    x.grad.zero_()
    (x * 5).backward()
    assert x.grad.item() == 5.0


def test_accumulates_onto_an_assigned_gradient(lib):
    x = lib.tensor([1.0, 1.0], requires_grad=True)
    x.grad = lib.tensor([10.0, 20.0])
    (x * 2).sum().backward()
    assert x.grad.tolist() == [12.0, 22.0]


def test_broadcast_leaf_gets_its_own_shape(lib):
    x = lib.ones(1, 3, requires_grad=True)
    (x * lib.ones(4, 3)).sum().backward()
    assert x.grad.shape == (1, 3)
    assert x.grad.tolist() == [[4.0, 4.0, 4.0]]


def test_scalar_leaf_broadcast(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (x * lib.ones(2, 3)).sum().backward()
    assert x.grad.shape == ()
    assert x.grad.item() == 6.0


def test_added_leading_dimension_is_summed(lib):
    x = lib.ones(3, requires_grad=True)
    (x + lib.zeros(2, 4, 3)).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0, 8.0]


def test_empty_leaf(lib):
    x = lib.ones(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.shape == (0, 3)


def test_gradient_has_the_dtype_of_the_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    y = lib.ones(2, dtype=lib.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype == lib.float32
    assert y.grad.dtype == lib.float64


def test_real_leaf_of_complex_function_gets_a_real_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    z = lib.tensor([1 + 2j, 3 - 1j], dtype=lib.complex64)
    (x * z).backward(lib.ones(2, dtype=lib.complex64))
    assert x.grad.dtype == lib.float32
    assert x.grad.tolist() == [1.0, 3.0]


def test_gradient_is_a_leaf_without_history(lib):
    x = lib.ones(2, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.is_leaf
    assert not x.grad.requires_grad
    assert not x.grad._is_view()


# In place or out of place


def test_second_backward_adds_in_place(lib):
    x = lib.ones(2, requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert first.tolist() == [4.0, 4.0]


def test_assigned_gradient_is_added_to_in_place(lib):
    x = lib.ones(2, requires_grad=True)
    buffer = lib.zeros(2)
    x.grad = buffer
    (x * 3).sum().backward()
    assert x.grad is buffer
    assert buffer.tolist() == [3.0, 3.0]
    assert buffer._version == 1


@ignore_cycle_warning
def test_create_graph_adds_out_of_place(lib):
    x = lib.ones(2, requires_grad=True)
    buffer = lib.zeros(2)
    x.grad = buffer
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not buffer
    assert buffer.tolist() == [0.0, 0.0]
    assert buffer._version == 0
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None


@ignore_cycle_warning
def test_create_graph_sum_is_differentiable(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (x * x * x).backward(create_graph=True)
    (x * x).backward(create_graph=True)
    (second,) = lib.autograd.grad(x.grad, x)
    assert second.item() == 14.0
    x.grad = None


@ignore_cycle_warning
def test_plain_backward_after_create_graph_keeps_old_graph_valid(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (x * x * x).backward(create_graph=True)
    first = x.grad
    penalty = first * first
    x.grad = None
    penalty.backward()
    assert x.grad.item() == 2 * 12.0 * 12.0


def test_gradient_with_requires_grad_is_still_added_in_place(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad = lib.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert x.grad.requires_grad


# Ownership of the buffers


def test_given_gradient_is_not_stolen(lib):
    x = lib.ones(2, requires_grad=True)
    gradient = lib.ones(2)
    x.backward(gradient)
    x.grad.add_(5)
    assert gradient.tolist() == [1.0, 1.0]


def test_given_gradient_passed_through_is_not_stolen(lib):
    x = lib.ones(2, requires_grad=True)
    gradient = lib.ones(2)
    (x + 0).backward(gradient)
    x.grad.add_(5)
    assert gradient.tolist() == [1.0, 1.0]


def test_changing_the_given_gradient_later_changes_nothing(lib):
    x = lib.ones(2, requires_grad=True)
    gradient = lib.ones(2)
    (x + 0).backward(gradient)
    gradient.fill_(9)
    assert x.grad.tolist() == [1.0, 1.0]


def test_operands_of_a_sum_do_not_share_a_gradient(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    (x + y).backward(lib.ones(2))
    x.grad.mul_(100)
    assert y.grad.tolist() == [1.0, 1.0]


def test_operands_of_a_sum_inside_a_graph_do_not_share_a_gradient(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    ((x + y) * 2).sum().backward()
    x.grad.mul_(100)
    assert y.grad.tolist() == [2.0, 2.0]


def test_many_leaves_of_one_sum_do_not_share_gradients(lib):
    leaves = [lib.ones(2, requires_grad=True) for _ in range(5)]
    total = leaves[0] + leaves[1] + leaves[2] + leaves[3] + leaves[4]
    (total * 3).sum().backward()
    for index, leaf in enumerate(leaves):
        leaf.grad.fill_(index)
    assert [leaf.grad.tolist() for leaf in leaves] == [[float(i)] * 2 for i in range(5)]


def test_results_of_grad_do_not_share_memory(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    (x * 1 + y * 1).sum().backward()
    x.grad.fill_(7)
    assert y.grad.tolist() == [1.0, 1.0]


def test_retained_gradient_and_leaf_gradient_do_not_share(lib):
    x = lib.ones(2, requires_grad=True)
    y = x + 0
    y.retain_grad()
    (y * 2).sum().backward()
    x.grad.fill_(7)
    assert y.grad.tolist() == [2.0, 2.0]


def test_gradient_held_by_a_hook_is_not_stolen(lib):
    x = lib.ones(2, requires_grad=True)
    held = []
    x.register_hook(held.append)
    (x * 2).sum().backward()
    x.grad.fill_(7)
    assert held[0].tolist() == [2.0, 2.0]


def test_gradient_held_by_a_hook_is_not_changed_by_the_next_backward(lib):
    x = lib.ones(2, requires_grad=True)
    held = []
    x.register_hook(held.append)
    for _ in range(2):
        (x * 2).sum().backward()
    assert held[0].tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [4.0, 4.0]


def test_captured_gradient_is_not_changed_by_the_next_backward(lib):
    x = lib.ones(2, requires_grad=True)
    (captured,) = lib.autograd.grad((x * 2).sum(), x)
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert captured.tolist() == [2.0, 2.0]


def test_captured_results_of_two_inputs_do_not_change_each_other(lib):
    x = lib.ones(2, requires_grad=True)
    y = x + 0
    dx, dy = lib.autograd.grad((y * 2).sum(), [x, y])
    assert dx.tolist() == dy.tolist() == [2.0, 2.0]


def test_expanded_gradient_is_materialised(lib):
    x = lib.ones(3, requires_grad=True)
    x.sum().backward()
    x.grad[0] = 5.0
    assert x.grad.tolist() == [5.0, 1.0, 1.0]


def test_view_gradients_are_materialised(lib):
    x = lib.ones(2, 2, requires_grad=True)
    x.t().backward(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert x.grad.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    x.grad[0, 0] = 9.0
    assert x.grad.tolist() == [[9.0, 3.0], [2.0, 4.0]]


def test_node_does_not_write_into_a_shared_gradient(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    left, right = x * 1, y * 1
    total = left + right
    (total + left).backward(lib.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]
    assert y.grad.tolist() == [1.0, 1.0]


def test_buffer_of_three_gradients(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    gradient = lib.ones(2)
    lib.autograd.backward((y, y, y), (gradient, gradient, gradient))
    assert x.grad.tolist() == [3.0, 3.0]
    assert gradient.tolist() == [1.0, 1.0]


# Assigning .grad


def test_assign_none(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad = lib.ones(2)
    x.grad = None
    assert x.grad is None


def test_assign_keeps_identity(lib):
    x = lib.ones(2, requires_grad=True)
    gradient = lib.ones(2)
    x.grad = gradient
    assert x.grad is gradient


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1)])
def test_assign_of_another_shape_is_refused(lib, shape):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = lib.ones(shape)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64"])
def test_assign_of_another_dtype_is_refused(lib, dtype):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = lib.ones(2, dtype=getattr(lib, dtype))


def test_assign_of_another_device_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with device"):
        x.grad = lib.ones(2, device="meta")


@pytest.mark.parametrize("wrong", [3, 1.5, [1.0, 1.0]])
def test_assign_of_no_tensor_is_refused(lib, wrong):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="expected to be a Tensor or None"):
        x.grad = wrong


def test_assign_of_itself_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="as its own grad"):
        x.grad = x


def test_refused_assignment_leaves_the_old_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad = lib.tensor([3.0, 4.0])
    with pytest.raises(RuntimeError):
        x.grad = lib.ones(3)
    assert x.grad.tolist() == [3.0, 4.0]


def test_assign_to_constant(lib):
    x = lib.ones(2)
    x.grad = lib.tensor([3.0, 4.0])
    assert x.grad.tolist() == [3.0, 4.0]


# Views and switches


def test_gradient_of_view_goes_to_the_base(lib):
    x = lib.ones(2, 3, requires_grad=True)
    (x[0] * 2).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]


def test_overlapping_views_add_up(lib):
    x = lib.ones(4, requires_grad=True)
    (x[:3].sum() + x[1:].sum()).backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_detached_alias_has_no_gradient_of_its_own(lib):
    x = lib.ones(2, requires_grad=True)
    alias = x.detach()
    (x * 2).sum().backward()
    assert alias.grad is None


def test_leaf_frozen_before_backward_gets_nothing(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    total = (x * y).sum()
    x.requires_grad_(False)
    total.backward()
    assert x.grad is None
    assert y.grad.tolist() == [1.0, 1.0]


def test_gradient_survives_freezing(lib):
    x = lib.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    x.requires_grad_(False)
    assert x.grad.tolist() == [2.0, 2.0]


def test_leaf_deleted_before_backward(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    total = (x * y).sum()
    del x
    total.backward()
    assert y.grad.tolist() == [1.0, 1.0]


# Layout


def test_transposed_leaf_keeps_its_layout(lib):
    x = lib.ones(3, 2).t().requires_grad_()
    (x * lib.arange(6.0).reshape(2, 3)).sum().backward()
    assert x.grad.stride() == (1, 2)
    assert x.grad.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_contiguous_leaf_gets_a_contiguous_gradient(lib):
    x = lib.ones(2, 3, requires_grad=True)
    x.t().backward(lib.arange(6.0).reshape(3, 2))
    assert x.grad.stride() == (3, 1)


def test_leaf_with_gaps_gets_a_contiguous_gradient(lib):
    x = lib.ones(3, 4)[:, ::2].requires_grad_()
    (x * 2).sum().backward()
    assert x.stride() == (4, 2)
    assert x.grad.is_contiguous()


def test_expanded_leaf_gets_a_contiguous_gradient(lib):
    x = lib.ones(3).expand(2, 3).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == (3, 1)


@pytest.mark.parametrize(
    ("leaf", "strides"),
    [
        (lambda lib: lib.ones(2, 3), (3, 1)),
        (lambda lib: lib.ones(3, 2).t(), (1, 2)),
        (lambda lib: lib.ones(6, 2)[::2].t(), (3, 1)),
        (lambda lib: lib.ones(3, 4)[:, ::2].t(), (3, 1)),
        (lambda lib: lib.ones(3).expand(2, 3), (3, 1)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_gradient_with_a_graph_is_laid_out_as_its_leaf(lib, leaf, strides, turned):
    x = leaf(lib).detach().requires_grad_()
    for _ in range(2):
        y = (x * x).t() if turned else x * x
        y.backward(lib.ones(y.shape), create_graph=True)
        assert x.grad.stride() == strides
        assert not x.grad._is_view()
    assert x.grad.requires_grad
    x.grad = None


def test_gradient_of_sum_is_not_expanded(lib):
    x = lib.ones(2, 3, requires_grad=True)
    x.sum().backward()
    assert x.grad.stride() == (3, 1)


def test_leaf_that_has_been_moved_into_the_graph(lib):
    x = lib.ones(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)
    y = (x * 2).sum()
    x.requires_grad_(False)
    x.mul_(w)
    assert lib.autograd.grad(y, w, allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.backward()
    x.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_gradients_of_several_outputs_meet_a_product(lib):
    x = lib.tensor([[2.0], [3.0]], requires_grad=True)
    a, b = x.split(1)
    out = a.mm(b) * 1
    one = lib.ones(1, 1)
    lib.autograd.backward([out, a, b], [one, one, one])
    assert x.grad.tolist() == [[4.0], [3.0]]


def test_a_leaf_may_be_given_data_after_its_sink_is_gone(lib):
    x = lib.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    x.data = x
    x.data = lib.zeros(3)
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_gradient_that_was_transposed_takes_no_other(lib):
    x = lib.ones(1, 2, requires_grad=True)
    x.sum().backward()
    x.grad.t_()
    with pytest.raises(RuntimeError, match="shape .* doesn't match the broadcast shape"):
        x.sum().backward()


# The memory of the first gradient -----------------------------------------------------------------

WAYS = {
    "backward": lambda x, out: out.backward(),
    "inputs": lambda x, out: out.backward(inputs=[x]),
    "retained": lambda x, out: out.backward(retain_graph=True),
}


def returning(lib, backward):
    """A Function that doubles, with a backward of its own."""

    class Doubled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    Doubled.backward = staticmethod(backward)
    return Doubled


@pytest.mark.parametrize("way", WAYS)
def test_gradient_that_backward_keeps_is_copied(lib, way):
    kept = []

    def backward(ctx, g):
        kept.append(g * 2)
        return kept[0]

    x = lib.ones(3, requires_grad=True)
    WAYS[way](x, returning(lib, backward).apply(x).sum())
    kept[0].zero_()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("way", WAYS)
def test_gradient_that_a_hook_keeps_is_copied(lib, way):
    kept = []
    x = lib.ones(3, requires_grad=True)
    x.register_hook(kept.append)
    WAYS[way](x, (x * lib.full((3,), 2.0)).sum())
    kept[0].zero_()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_gradient_whose_array_is_kept_is_copied():
    kept = []
    x = wengert.ones(3, requires_grad=True)
    x.register_hook(lambda g: kept.append(g.numpy()))
    (x * wengert.full((3,), 2.0)).sum().backward()
    kept[0][:] = 0
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_gradients_of_a_sum_are_not_one_number_in_memory(lib):
    x = lib.ones(3, requires_grad=True)
    x.sum().backward()
    assert x.grad.stride() == (1,)
    x.grad[0] = 5
    assert x.grad.tolist() == [5.0, 1.0, 1.0]


@pytest.mark.compiled_only
@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_gradient_that_nobody_keeps_is_taken_over(way, hooked):
    places = []

    def backward(ctx, g):
        made = g * 2
        places.append(made.data_ptr())
        return made

    x = wengert.ones(3, requires_grad=True)
    if hooked:
        x.register_hook(lambda g: None)
    WAYS[way](x, returning(wengert, backward).apply(x).sum())
    assert x.grad.data_ptr() == places[0]
