"""In-place operations: versions, saved values, leaves, history."""

import math

import pytest

import wengert

MODIFIED = "modified by an inplace operation"
LEAF = "leaf Variable that requires grad"


# Version counters


def test_fresh_tensor_has_version_zero(lib):
    assert lib.ones(2)._version == 0


def test_result_of_an_operation_has_version_zero(lib):
    x = lib.ones(2)
    x.add_(1)
    assert (x * 2)._version == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.add_(1),
        lambda x: x.sub_(1),
        lambda x: x.mul_(2),
        lambda x: x.div_(2),
        lambda x: x.pow_(2),
        lambda x: x.exp_(),
        lambda x: x.neg_(),
        lambda x: x.relu_(),
        lambda x: x.clamp_(0, 1),
        lambda x: x.zero_(),
        lambda x: x.fill_(3),
        lambda x: x.copy_(x.clone()),
        lambda x: x.masked_fill_(x > 0, 2.0),
        lambda x: x.__iadd__(1),
        lambda x: x.__imul__(2),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__setitem__(slice(0, 2), 1.0),
        lambda x: x[0:2].add_(1),
        lambda x: x.view(4).add_(1),
        lambda x: x.detach().add_(1),
    ],
)
def test_each_change_counts_once(lib, change):
    x = lib.ones(4)
    change(x)
    assert x._version == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x + 1,
        lambda x: x.sum(),
        lambda x: x.view(2, 2),
        lambda x: x[0],
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x.clone(),
        lambda x: x.item() if x.numel() == 1 else x.tolist(),
        lambda x: x.requires_grad_(),
        lambda x: x.numpy(),
    ],
)
def test_reading_does_not_count(lib, read):
    x = lib.ones(4)
    read(x)
    assert x._version == 0


def test_changes_add_up(lib):
    x = lib.ones(4)
    for _ in range(5):
        x.add_(1)
    assert x._version == 5


def test_change_under_no_grad_counts(lib):
    x = lib.ones(4, requires_grad=True)
    with lib.no_grad():
        x.add_(1)
    assert x._version == 1


def test_augmented_item_assignment_changes_the_tensor(lib):
    x = lib.ones(4)
    x[0] += 1
    assert x.tolist() == [2.0, 1.0, 1.0, 1.0]
    assert x._version >= 1


def test_view_shares_the_version(lib):
    x = lib.ones(4)
    view = x[:2]
    x.add_(1)
    assert view._version == 1
    view.add_(1)
    assert x._version == 2


def test_view_of_changed_tensor_starts_with_its_version(lib):
    x = lib.ones(4)
    x.add_(1)
    assert x[:2]._version == 1


def test_detach_shares_the_version(lib):
    x = lib.ones(4)
    alias = x.detach()
    alias.add_(1)
    assert x._version == 1
    x.add_(1)
    assert alias._version == 2


def test_data_has_its_own_version(lib):
    x = lib.ones(4)
    alias = x.data
    alias.add_(1)
    assert alias._version == 1
    assert x._version == 0
    assert x.tolist() == [2.0] * 4


def test_data_starts_at_version_zero(lib):
    x = lib.ones(4)
    x.add_(1)
    assert x.data._version == 0


def test_clone_does_not_share_the_version(lib):
    x = lib.ones(4)
    other = x.clone()
    other.add_(1)
    assert x._version == 0


def test_failed_change_does_not_count(lib):
    x = lib.ones(3)
    with pytest.raises(RuntimeError):
        x.add_(lib.ones(2, 3))
    assert x._version == 0
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_inplace_returns_the_tensor_itself(lib):
    x = lib.ones(3)
    assert x.add_(1) is x
    assert x.mul_(2).sub_(1) is x


def test_augmented_assignment_keeps_identity(lib):
    x = y = lib.ones(3)
    x += 1
    x *= 2
    assert x is y
    assert y.tolist() == [4.0, 4.0, 4.0]


# Saved values


def test_changed_input_is_noticed(lib):
    x = lib.ones(3, requires_grad=True) * 1
    y = x * x
    x.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_changed_output_is_noticed(lib):
    x = lib.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_error_names_both_versions(lib):
    x = lib.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.add_(1)
    with pytest.raises(RuntimeError, match="version 2; expected version 0"):
        y.sum().backward()


def test_error_names_the_shape(lib):
    x = lib.ones(3, 5, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"\[3, 5\]"):
        y.sum().backward()


def test_input_that_was_not_saved_may_change(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 1
    z = y + 1
    y.mul_(5)
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_output_that_was_not_saved_may_change(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 2
    y.mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 10.0]


def test_constant_operand_is_saved_for_the_other(lib):
    x = lib.ones(3, requires_grad=True)
    constant = lib.ones(3)
    y = x * constant
    constant.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_operand_is_not_saved_when_the_other_needs_no_gradient(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.full((3,), 2.0) * x
    with lib.no_grad():
        x.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_changed_leaf_is_noticed(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * x
    with lib.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_change_before_saving_is_fine(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 1
    y.add_(1)
    (y * y).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_change_through_view_is_noticed(lib):
    x = lib.ones(3, requires_grad=True) * 1
    y = x * x
    x[0].add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_change_through_item_assignment_is_noticed(lib):
    x = lib.ones(3, requires_grad=True) * 1
    y = x * x
    x[0] = 7.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_change_of_base_is_noticed_by_saved_view(lib):
    x = lib.ones(3, requires_grad=True) * 1
    view = x[:2]
    y = view * view
    x.mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_change_through_detach_is_noticed(lib):
    x = lib.ones(3, requires_grad=True) * 1
    y = x * x
    x.detach().add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_change_through_data_is_not_noticed(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * x
    x.data.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_undone_change_is_still_noticed(lib):
    x = lib.ones(3, requires_grad=True) * 1
    y = x * x
    x.add_(1)
    x.sub_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_inplace_that_saves_its_own_input(lib):
    x = lib.ones(3, requires_grad=True) * 1
    x.mul_(x)
    with pytest.raises(RuntimeError, match=MODIFIED):
        x.sum().backward()


def test_clone_protects_the_saved_value(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 1
    saved = y.clone()
    z = saved * saved
    y.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_reading_a_changed_saved_value_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y_before = y.grad_fn.next_functions[0][0]
    with pytest.raises(RuntimeError, match=MODIFIED):
        y_before._saved_result


def test_error_leaves_gradients_of_other_graphs_possible(lib):
    x = lib.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


# Leaves


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.add_(1),
        lambda x: x.mul_(x),
        lambda x: x.zero_(),
        lambda x: x.fill_(0),
        lambda x: x.copy_(x.detach()),
        lambda x: x.relu_(),
        lambda x: x.exp_(),
        lambda x: x.__iadd__(1),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__setitem__(slice(None), 1.0),
        lambda x: x[0].fill_(0),
        lambda x: x[0:2].add_(1),
        lambda x: x.view(3).mul_(2),
    ],
)
def test_leaf_that_requires_grad_may_not_change(lib, change):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=LEAF):
        change(x)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert x.is_leaf


def test_view_of_leaf_is_named_as_such(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        x[:2].add_(1)


def test_leaf_may_change_under_no_grad(lib):
    x = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        x.add_(1)
        x[0] = 5.0
    assert x.tolist() == [5.0, 2.0, 2.0]
    assert x.is_leaf
    assert x.requires_grad
    assert x.grad_fn is None


def test_leaf_may_change_through_detach(lib):
    x = lib.ones(3, requires_grad=True)
    x.detach().zero_()
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_frozen_leaf_may_change(lib):
    x = lib.ones(3, requires_grad=True)
    x.requires_grad_(False)
    x.add_(1)
    x.requires_grad_(True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_gradient_descent_step(lib):
    x = lib.tensor([4.0], requires_grad=True)
    for _ in range(50):
        x.grad = None
        (x * x).sum().backward()
        with lib.no_grad():
            x -= 0.25 * x.grad
    assert abs(x.item()) < 1e-6
    assert x.is_leaf


# History


def test_constant_becomes_differentiable(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.zeros(3)
    y.add_(x)
    assert y.requires_grad
    assert not y.is_leaf
    (y * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_constant_stays_constant_under_no_grad(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.zeros(3)
    with lib.no_grad():
        y.add_(x)
    assert not y.requires_grad
    assert y.is_leaf


def test_nonleaf_changed_under_no_grad_keeps_its_history(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    with lib.no_grad():
        y.mul_(10)
    assert y.grad_fn is node
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_inplace_replaces_grad_fn(lib):
    y = lib.ones(3, requires_grad=True) * 2
    before = y.grad_fn
    y.add_(1)
    assert y.grad_fn is not before
    assert y.grad_fn.name() == "AddBackward0"
    assert y.grad_fn.next_functions[0][0] is before


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda y: y.add_(1), "AddBackward0"),
        (lambda y: y.sub_(1), "SubBackward0"),
        (lambda y: y.mul_(2), "MulBackward0"),
        (lambda y: y.div_(2), "DivBackward0"),
        (lambda y: y.exp_(), "ExpBackward0"),
        (lambda y: y.sin_(), "SinBackward0"),
        (lambda y: y.relu_(), "ReluBackward0"),
        (lambda y: y.zero_(), "ZeroBackward0"),
        (lambda y: y.copy_(y.detach().clone()), "CopyBackwards"),
    ],
)
def test_inplace_node_has_the_name_of_the_operation(lib, change, name):
    y = lib.ones(3, requires_grad=True) * 2
    change(y)
    assert y.grad_fn.name().endswith(name)


@pytest.mark.parametrize(
    ("change", "derivative"),
    [
        (lambda y: y.add_(1), 1.0),
        (lambda y: y.mul_(3), 3.0),
        (lambda y: y.div_(4), 0.25),
        (lambda y: y.neg_(), -1.0),
        (lambda y: y.pow_(3), 3 * 0.25),
        (lambda y: y.exp_(), math.exp(0.5)),
        (lambda y: y.log_(), 2.0),
        (lambda y: y.sqrt_(), 0.5 / math.sqrt(0.5)),
        (lambda y: y.sin_(), math.cos(0.5)),
        (lambda y: y.cos_(), -math.sin(0.5)),
        (lambda y: y.tanh_(), 1 - math.tanh(0.5) ** 2),
        (lambda y: y.sigmoid_(), math.exp(-0.5) / (1 + math.exp(-0.5)) ** 2),
        (lambda y: y.abs_(), 1.0),
        (lambda y: y.relu_(), 1.0),
        (lambda y: y.clamp_(0, 1), 1.0),
        (lambda y: y.clamp_(1, 2), 0.0),
        (lambda y: y.zero_(), 0.0),
        (lambda y: y.fill_(3), 0.0),
        (lambda y: y.reciprocal_(), -4.0),
    ],
)
def test_gradient_of_inplace_operation(lib, change, derivative):
    x = lib.tensor([0.5], dtype=lib.float64, requires_grad=True)
    y = x * 1
    change(y)
    y.sum().backward()
    assert x.grad.item() == pytest.approx(derivative)


def test_chain_of_inplace_operations(lib):
    x = lib.tensor([0.3], dtype=lib.float64, requires_grad=True)
    (x * 1).sin_().mul_(2).exp_().sum().backward()
    inner = 2 * math.sin(0.3)
    assert x.grad.item() == pytest.approx(math.exp(inner) * 2 * math.cos(0.3))


def test_old_and_new_value_both_differentiable(lib):
    x = lib.tensor([3.0], requires_grad=True)
    y = x * 1
    before = y + 0
    y.mul_(10)
    (before + y).sum().backward()
    assert x.grad.tolist() == [11.0]


def test_zero_cuts_the_gradient_but_keeps_requires_grad(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 2
    y.zero_()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_copy_replaces_one_history_by_another(lib):
    x, z = lib.ones(3, requires_grad=True), lib.ones(3, requires_grad=True)
    y = x * 2
    y.copy_(z * 3)
    y.sum().backward()
    assert z.grad.tolist() == [3.0, 3.0, 3.0]
    assert x.grad is None or x.grad.tolist() == [0.0, 0.0, 0.0]


def test_copy_into_constant(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.empty(3)
    y.copy_(x)
    (y * 4).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_copy_broadcasts(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.empty(2, 3)
    y.copy_(x)
    y.sum().backward()
    assert x.grad.item() == 6.0


def test_copy_casts_the_gradient_back(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.empty(3, dtype=lib.float64)
    y.copy_(x)
    (y * 2).sum().backward()
    assert x.grad.dtype == lib.float32
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_copy_into_integers_carries_no_gradient(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.zeros(3, dtype=lib.int64)
    y.copy_(x)
    assert not y.requires_grad
    assert y.tolist() == [1, 1, 1]


def test_float_result_into_integers_is_refused(lib):
    y = lib.zeros(3, dtype=lib.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        y.add_(1.5)


# Broadcasting


def test_operand_is_broadcast(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.zeros(2, 3)
    y.add_(x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_multiplied_operand_is_broadcast(lib):
    x = lib.ones(3, requires_grad=True)
    y = lib.full((2, 3), 5.0)
    y.mul_(x)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 10.0]


def test_target_is_never_broadcast(lib):
    x = lib.zeros(3)
    with pytest.raises(RuntimeError, match="broadcast shape"):
        x.add_(lib.ones(2, 3))


@pytest.mark.parametrize("name", ["remainder_", "fmod_", "floor_divide_"])
@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1)])
def test_target_is_never_broadcast_whatever_the_values(lib, name, shape):
    x = lib.tensor(2)
    with pytest.raises(RuntimeError, match="broadcast shape"):
        getattr(x, name)(lib.zeros(shape, dtype=lib.int64))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(x, name)(lib.tensor(0))


def test_expanded_target_is_refused(lib):
    x = (lib.ones(3, requires_grad=True) * 1).expand(2, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.mul_(2)


def test_strides_of_single_rows_do_not_tell_elements_apart():
    x = wengert.full((2,), 3.0).as_strided((1, 2), (2, 1))
    x /= x.as_strided((1, 2), (1, 1))
    assert x.tolist() == [[1, 1]]


# Item assignment


def test_assigned_value_gets_its_gradient(lib):
    y = lib.ones(2, requires_grad=True)
    x = lib.zeros(3)
    x[:2] = y * 3
    (x * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert y.grad.tolist() == [3.0, 30.0]


def test_overwritten_elements_get_no_gradient(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 2
    y[1] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 2.0]


def test_assignment_gives_gradients_to_both_sides(lib):
    x = lib.ones(3, requires_grad=True)
    value = lib.ones(1, requires_grad=True)
    y = x * 2
    y[1:2] = value * 5
    (y * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 200.0]
    assert value.grad.tolist() == [50.0]


def test_assigned_scalar_tensor(lib):
    value = lib.tensor(1.0, requires_grad=True)
    x = lib.zeros(3)
    x[2] = value
    (x * x + x).sum().backward()
    assert value.grad.item() == 3.0


def test_assigned_value_is_broadcast(lib):
    value = lib.tensor(1.0, requires_grad=True)
    x = lib.zeros(2, 3)
    x[:, :2] = value
    x.sum().backward()
    assert value.grad.item() == 4.0


def test_assignment_by_index_tensor(lib):
    x = lib.ones(3, requires_grad=True)
    value = lib.ones(2, requires_grad=True)
    y = x * 2
    y[lib.tensor([0, 2])] = value * 5
    (y * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 20.0, 0.0]
    assert value.grad.tolist() == [5.0, 500.0]


def test_assignment_by_mask(lib):
    x = lib.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    y = x * 2
    y[y < 0] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]


def test_augmented_item_assignment(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * 2
    y[0] += 5 * x[1]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 7.0, 2.0]


def test_row_by_row_construction(lib):
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    rows = lib.zeros(3, 2)
    for i in range(3):
        rows[i] = x[i] * lib.tensor([1.0, 10.0])
    (rows * rows).sum().backward()
    assert x.grad.tolist() == [2 * 101.0, 4 * 101.0, 6 * 101.0]


def test_recurrence_inside_one_tensor(lib):
    x = lib.tensor(2.0, requires_grad=True)
    states = lib.zeros(4)
    states[0] = x
    for i in range(3):
        states[i + 1] = states[i].clone() * x
    states[3].backward()
    assert x.grad.item() == 4 * 2.0**3


# Hooks and retained gradients


def test_hook_stays_with_the_value_it_was_registered_on(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    y.sum().backward()
    assert seen == [[3.0, 3.0]]


def test_hook_registered_after_the_change_sees_the_new_value(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    seen = []
    y.mul_(3)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1.0, 1.0]]


def test_hooks_before_and_after_the_change(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(("before", g[0].item())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g[0].item())))
    y.sum().backward()
    assert seen == [("after", 1.0), ("before", 3.0)]


def test_retain_grad_moves_to_the_new_value(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


def test_retain_grad_moves_over_several_changes(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y.mul_(3).add_(1).mul_(5)
    (y * 7).sum().backward()
    assert y.grad.tolist() == [7.0, 7.0]
    assert x.grad.tolist() == [105.0, 105.0]


def test_leaf_hook_survives_change_under_no_grad(lib):
    x = lib.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    with lib.no_grad():
        x.mul_(2)
    x.sum().backward()
    assert seen == [[1.0, 1.0]]


# Detaching in place and `out=`


def test_detach_inplace_cuts_the_history(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert y.detach_() is y
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf


def test_detach_inplace_of_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    x.detach_()
    assert not x.requires_grad


def test_out_argument_with_gradient_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        lib.add(x, x, out=lib.empty(2))


# Inference tensors


def inference_ones(lib, *shape):
    with lib.inference_mode():
        return lib.ones(*shape)


def test_inference_tensor_may_not_change_outside(lib):
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        inference_ones(lib, 2).add_(1)


def test_inference_tensor_may_change_inside(lib):
    x = inference_ones(lib, 2)
    with lib.inference_mode():
        x.add_(1)
    assert x.tolist() == [2.0, 2.0]


def test_view_of_inference_tensor_may_not_change_outside(lib):
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        inference_ones(lib, 2)[0:1].add_(1)


def test_inference_tensor_has_no_version(lib):
    with pytest.raises(RuntimeError, match="do not track version counter"):
        inference_ones(lib, 2)._version


def test_clone_of_inference_tensor_may_change(lib):
    x = inference_ones(lib, 2).clone()
    before = x._version
    x.add_(1)
    assert x._version == before + 1


def test_normal_tensor_changed_in_inference_mode_counts(lib):
    x = lib.ones(2)
    with lib.inference_mode():
        x.add_(1)
    assert x._version == 1


def test_change_in_inference_mode_is_noticed(lib):
    x = lib.ones(2, requires_grad=True) * 1
    y = x * x
    with lib.inference_mode():
        x.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_inference_operand_that_is_not_saved(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    y.add_(inference_ones(lib, 2))
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_inference_operand_that_would_be_saved_is_refused(lib):
    y = lib.ones(2, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        y.mul_(inference_ones(lib, 2))


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("neg_", "float32 float64 float16 int32 int64 complex64"),
        ("abs_", "float32 float64 float16 int32 int64"),
        ("square_", "float32 float64 int32 complex64"),
        ("sin_", "float32 float64 complex64"),
        ("reciprocal_", "float32 float64"),
    ],
)
def test_every_stride(lib, name, dtypes):
    """Whatever the steps in memory are, each element becomes what it would by itself."""
    for dtype in dtypes.split():
        check_every_stride(lib, name, getattr(lib, dtype))


def check_every_stride(lib, name, kind):
    for stride in range(1, 18):
        for length in (1, 2, 3, 5, 9):
            base = (lib.arange(length * stride + 2) % 7 + 1).to(kind)
            whole = base.clone()
            part = whole[: length * stride : stride]
            expected = getattr(part.clone(), name)()
            getattr(part, name)()
            assert lib.equal(part, expected), (stride, length)
            whole[: length * stride : stride] = base[: length * stride : stride]
            assert lib.equal(whole, base)
