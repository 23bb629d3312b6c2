"""Hooks on tensors: order of arguments, handles, retain_grad, and what `inputs=` does to them."""

import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

ignore_cycle_warning = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")


def accumulator(lib, leaf):
    return lib.autograd.graph.get_gradient_edge(leaf).node


# Tensor hooks


def test_hook_receives_the_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    seen = []
    x.register_hook(seen.append)
    (x * 3).sum().backward()
    assert [g.tolist() for g in seen] == [[3.0, 3.0]]


def test_hook_on_intermediate(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 5).sum().backward()
    assert seen == [[5.0, 5.0]]


def test_hook_on_root(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.backward()
    assert seen == [1.0]


def test_hook_receives_the_sum_of_all_uses(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 5 + y * 7 + y).backward()
    assert seen == [13.0]


def test_leaf_hook_receives_the_sum_of_all_uses(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 5 + x * 7).backward()
    assert seen == [12.0]


def test_leaf_hook_receives_only_the_new_gradient(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 5).backward()
    (x * 7).backward()
    assert seen == [5.0, 7.0]
    assert x.grad.item() == 12.0


def test_hook_runs_in_each_backward(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(1))
    y.backward(retain_graph=True)
    y.backward()
    assert seen == [1, 1]


def test_hook_does_not_run_without_backward_through_it(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    seen = []
    x.register_hook(seen.append)
    (y * 2).backward()
    assert seen == []


def test_hook_returning_none_changes_nothing(lib):
    x = lib.ones((), requires_grad=True)
    x.register_hook(lambda g: None)
    (x * 2).backward()
    assert x.grad.item() == 2.0


def test_hook_replaces_the_gradient_of_a_leaf(lib):
    x = lib.ones((), requires_grad=True)
    x.register_hook(lambda g: g * 10)
    (x * 2).backward()
    assert x.grad.item() == 20.0


def test_hook_replaces_the_gradient_of_an_intermediate(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (y * 3).backward()
    assert x.grad.item() == 60.0


def test_hook_may_zero_the_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 0)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_later_hook_sees_the_replacement(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.item()))
    x.register_hook(lambda g: g + 1)
    (x * 2).backward()
    assert seen == [20.0]
    assert x.grad.item() == 21.0


def test_replacement_may_be_another_tensor(lib):
    x = lib.ones(2, requires_grad=True)
    replacement = lib.tensor([5.0, 6.0])
    x.register_hook(lambda g: replacement)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [5.0, 6.0]


def test_replacement_is_not_stolen(lib):
    x = lib.ones(2, requires_grad=True)
    replacement = lib.tensor([5.0, 6.0])
    x.register_hook(lambda g: replacement)
    (x * 2).sum().backward()
    x.grad.zero_()
    assert replacement.tolist() == [5.0, 6.0]


def test_same_hook_twice_runs_twice(lib):
    x = lib.ones((), requires_grad=True)

    def double(g):
        return g * 2

    x.register_hook(double)
    x.register_hook(double)
    (x * 1).backward()
    assert x.grad.item() == 4.0


def test_hook_may_be_a_callable_object(lib):
    class Recorder:
        def __init__(self):
            self.seen = []

        def __call__(self, g):
            self.seen.append(g.item())

    recorder = Recorder()
    x = lib.ones((), requires_grad=True)
    x.register_hook(recorder)
    (x * 2).backward()
    assert recorder.seen == [2.0]


def test_hook_may_be_a_bound_method(lib):
    seen = []
    x = lib.ones((), requires_grad=True)
    x.register_hook(seen.append)
    (x * 2).backward()
    assert len(seen) == 1


def test_hook_runs_with_recording_off(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(lib.is_grad_enabled()))
    (x * x).backward()
    assert seen == [False]


def test_hook_runs_with_recording_on_under_create_graph(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append((lib.is_grad_enabled(), g.requires_grad)))
    lib.autograd.grad(x * x, x, create_graph=True)
    assert seen == [(True, True)]


def test_hook_under_create_graph_is_differentiated(lib):
    x = lib.tensor(2.0, requires_grad=True)
    x.register_hook(lambda g: g * g)
    (first,) = lib.autograd.grad(x * x, x, create_graph=True)
    assert first.item() == 16.0
    (second,) = lib.autograd.grad(first, x)
    # The hook acts on the gradient of `first` too: (d 4x^2 / dx) ** 2.
    assert second.item() == 256.0


def test_hook_registered_under_no_grad_runs(lib):
    x = lib.ones((), requires_grad=True)
    with lib.no_grad():
        x.register_hook(lambda g: g * 2)
    (x * 1).backward()
    assert x.grad.item() == 2.0


def test_hook_on_constant_is_refused(lib):
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        lib.ones(2).register_hook(lambda g: g)


@pytest.mark.parametrize("wrong", [3, "x", (1,), [None]])
def test_hook_returning_no_tensor_is_refused(lib, wrong):
    x = lib.ones(2, requires_grad=True)
    x.register_hook(lambda g: wrong)
    with pytest.raises(TypeError, match="hook returned"):
        (x * 2).sum().backward()


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 2)])
def test_hook_that_changes_the_shape_is_refused(lib, shape):
    x = lib.ones(2, requires_grad=True)
    x.register_hook(lambda g: lib.ones(shape))
    with pytest.raises(RuntimeError, match="changed the size of value"):
        (x * 2).sum().backward()


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64"])
def test_hook_that_changes_the_dtype_is_refused(lib, dtype):
    x = lib.ones(2, requires_grad=True)
    x.register_hook(lambda g: g.to(getattr(lib, dtype)))
    with pytest.raises(RuntimeError, match="changed the type of value"):
        (x * 2).sum().backward()


def test_refusal_names_the_hook(lib):
    x = lib.ones(2, requires_grad=True)

    def careless(g):
        return lib.ones(5)

    x.register_hook(careless)
    with pytest.raises(RuntimeError, match="careless"):
        (x * 2).sum().backward()


def test_hook_on_unused_output_of_a_node_gets_none(lib):
    x = lib.ones(2, requires_grad=True)
    first, second = (x * 1).unbind()
    seen = []
    second.register_hook(seen.append)
    first.backward()
    assert seen == [None]


def test_hooks_on_several_outputs_of_a_node(lib):
    x = lib.ones(2, requires_grad=True)
    first, second = (x * 1).unbind()
    first.register_hook(lambda g: g * 10)
    second.register_hook(lambda g: g * 100)
    (first + second).backward()
    assert x.grad.tolist() == [10.0, 100.0]


def test_hook_survives_freezing_and_thawing(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(seen.append)
    x.requires_grad_(False)
    x.requires_grad_(True)
    (x * 2).backward()
    assert len(seen) == 1


def test_hook_keeps_no_tensor_alive_after_it_is_gone(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: None)
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None


def test_hook_of_a_dead_intermediate_still_runs(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    z = y * 3
    del y
    z.backward()
    assert x.grad.item() == 60.0


# Handles


def test_removed_hook_does_not_run(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    handle = x.register_hook(seen.append)
    handle.remove()
    (x * 2).backward()
    assert seen == []


def test_handle_may_be_removed_twice(lib):
    x = lib.ones((), requires_grad=True)
    handle = x.register_hook(lambda g: g)
    handle.remove()
    handle.remove()
    (x * 2).backward()
    assert x.grad.item() == 2.0


def test_removing_one_hook_leaves_the_others(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append("first"))
    handle = x.register_hook(lambda g: seen.append("second"))
    x.register_hook(lambda g: seen.append("third"))
    handle.remove()
    (x * 2).backward()
    assert seen == ["first", "third"]


def test_handle_as_context_manager(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    with x.register_hook(seen.append):
        (x * 2).backward()
    (x * 2).backward()
    assert len(seen) == 1


def test_removal_between_forward_and_backward(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    z = y * 3
    handle.remove()
    z.backward()
    assert x.grad.item() == 6.0


def test_hook_removes_itself(lib):
    x = lib.ones((), requires_grad=True)
    seen = []

    def once(g):
        seen.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: seen.append("always"))
    for _ in range(2):
        (x * 2).backward()
    assert seen == ["once", "always", "always"]


def test_hook_registered_by_a_hook_runs_next_time(lib):
    x = lib.ones((), requires_grad=True)
    seen = []

    def register_another(g):
        seen.append("first")
        handle.remove()
        x.register_hook(lambda g: seen.append("second"))

    handle = x.register_hook(register_another)
    (x * 2).backward()
    assert seen == ["first"]
    (x * 2).backward()
    assert seen == ["first", "second"]


def test_node_handle_removes(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    handles = [
        y.grad_fn.register_hook(lambda gi, go: seen.append("post")),
        y.grad_fn.register_prehook(lambda go: seen.append("pre")),
    ]
    for handle in handles:
        handle.remove()
    y.backward()
    assert seen == []


def test_post_accumulate_handle_removes(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(seen.append).remove()
    (x * 2).backward()
    assert seen == []


# retain_grad


def test_retained_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]


def test_retained_gradient_accumulates(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    y.retain_grad()
    (y * 5).backward(retain_graph=True)
    (y * 7).backward()
    assert y.grad.item() == 12.0


def test_retain_grad_twice_counts_once(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.retain_grad()
    (y * 5).backward()
    assert y.grad.item() == 5.0


def test_retain_grad_of_root(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.backward()
    assert y.grad.item() == 1.0


def test_retain_grad_of_leaf_does_nothing(lib):
    x = lib.ones((), requires_grad=True)
    x.retain_grad()
    assert not x.retains_grad
    (x * 2).backward()
    assert x.grad.item() == 2.0


def test_retain_grad_of_constant_is_refused(lib):
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor"):
        lib.ones(2).retain_grad()


def test_retains_grad_tells(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad


def test_retains_grad_is_read_only(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(AttributeError):
        y.retains_grad = True


def test_retained_gradient_includes_the_hooks_before(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    (y * 5).backward()
    assert y.grad.item() == 50.0


def test_retained_gradient_includes_the_hooks_registered_after(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 5).backward()
    assert y.grad.item() == 50.0


@ignore_cycle_warning
def test_retained_gradient_under_create_graph(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    y.retain_grad()
    (y * y).backward(create_graph=True)
    assert y.grad.requires_grad
    (second,) = lib.autograd.grad(y.grad, x)
    assert second.item() == 8.0
    x.grad = y.grad = None


def test_retained_gradient_is_not_aliased(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    z = y + 0
    y.retain_grad()
    z.retain_grad()
    (z * 2).sum().backward()
    y.grad.zero_()
    assert z.grad.tolist() == [2.0, 2.0]


# Hooks and inputs=


def test_post_accumulate_hook_runs_for_the_chosen_inputs_only(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append("x"))
    y.register_post_accumulate_grad_hook(lambda p: seen.append("y"))
    (x * y).backward(inputs=[y])
    assert seen == ["y"]


def test_leaf_hook_of_an_input_that_was_not_chosen_does_not_run(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    seen = []
    x.register_hook(lambda g: seen.append("x"))
    y.register_hook(lambda g: seen.append("y"))
    (x * y).backward(inputs=[y])
    assert seen == ["y"]


def test_tensor_hook_changes_the_captured_gradient_of_a_leaf(lib):
    x = lib.ones((), requires_grad=True)
    x.register_hook(lambda g: g * 10)
    (dx,) = lib.autograd.grad(x * 2, x)
    assert dx.item() == 20.0


def test_tensor_hook_changes_the_captured_gradient_of_an_intermediate(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (dy,) = lib.autograd.grad(y * 3, y)
    assert dy.item() == 30.0


def test_node_hooks_of_a_captured_intermediate_do_not_run(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda go: seen.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
    lib.autograd.grad(y * 3, y)
    assert seen == []


def test_accumulator_hooks_of_a_captured_leaf_do_not_run(lib):
    x = lib.ones((), requires_grad=True)
    node = accumulator(lib, x)
    seen = []
    node.register_prehook(lambda go: seen.append("pre"))
    node.register_hook(lambda gi, go: seen.append("post"))
    lib.autograd.grad(x * 3, x)
    assert seen == []


def test_retained_gradient_of_a_captured_intermediate(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.retain_grad()
    (dy,) = lib.autograd.grad(y * 3, y)
    assert dy.item() == y.grad.item() == 3.0


def test_hooks_between_output_and_captured_input_run(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    z = y * 3
    seen = []
    z.register_hook(lambda g: seen.append("tensor"))
    z.grad_fn.register_hook(lambda gi, go: seen.append("node"))
    lib.autograd.grad(z * 5, y)
    assert seen == ["tensor", "node"]


def test_hooks_behind_the_captured_input_do_not_run(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    x.register_hook(lambda g: seen.append("x"))
    lib.autograd.grad(y * 3, y)
    assert seen == []


def test_registered_hooks_can_be_looked_at(lib):
    leaf = lib.ones((), requires_grad=True)
    for tensor in (leaf, leaf * 2):
        assert tensor._backward_hooks is None
        handle = tensor.register_hook(lambda g: None)
        assert list(tensor._backward_hooks) == [handle.id]
        handle.remove()
        assert len(tensor._backward_hooks) == 0
    assert leaf._post_accumulate_grad_hooks is None
    handle = leaf.register_post_accumulate_grad_hook(lambda p: None)
    assert list(leaf._post_accumulate_grad_hooks) == [handle.id]


def test_hooks_can_be_set_as_a_dictionary(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x._backward_hooks = OrderedDict({0: lambda g: seen.append(g.item())})
    (x * 3).backward()
    assert seen == [3.0]
    x._backward_hooks = None
    (x * 3).backward()
    assert seen == [3.0]


def test_pickled_handle_keeps_its_number_to_itself(lib):
    hooks = lib.utils.hooks
    first = hooks.RemovableHandle(OrderedDict())
    first.id += 1
    copied = pickle.loads(pickle.dumps(first))
    assert hooks.RemovableHandle(OrderedDict()).id > copied.id


def test_mode_that_a_hook_leaves_behind_ends_with_its_node(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: lib.set_grad_enabled(True) and None)
    x.register_hook(lambda g: seen.append(lib.is_grad_enabled()))
    loss = y.sum()
    with lib.no_grad():
        loss.backward()
        assert not lib.is_grad_enabled()
    assert seen == [False]


def test_post_accumulate_hook_is_called_without_a_gradient_too(lib):
    class Forget(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = lib.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    Forget.apply(x * 3).sum().backward()
    assert seen == [None]


@pytest.mark.parametrize("name", ["mul", "chunk", "unbind"])
def test_no_gradient_stays_none_on_its_way_to_a_hook(lib, name):
    """Also through a node with several results, none of which has a gradient."""

    class Nothing(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    x = lib.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g))
    made = {"mul": lambda: x * 1, "chunk": lambda: x.chunk(2)[0], "unbind": lambda: x.unbind()[1]}
    Nothing.apply(made[name]()).sum().backward()
    assert seen == [None]
    assert x.grad is None
