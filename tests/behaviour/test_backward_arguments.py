"""The arguments of `backward` and what each of them refuses."""

import pytest


def gradient_edge(lib, tensor):
    return lib.autograd.graph.get_gradient_edge(tensor)


# Gradients of the roots


def test_scalar_root_needs_no_gradient(lib):
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_one_element_root_needs_no_gradient(lib, shape):
    x = lib.ones(shape, requires_grad=True)
    (x * 3).backward()
    assert x.grad.shape == shape
    assert x.grad.sum().item() == 3.0


def test_implicit_gradient_of_several_elements_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        (x * 2).backward()


def test_implicit_gradient_of_empty_root_is_refused(lib):
    x = lib.ones(0, requires_grad=True)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        (x * 2).backward()


def test_implicit_gradient_of_complex_root_is_refused(lib):
    x = lib.ones(3, dtype=lib.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="implicitly created only for real scalar outputs"):
        x.sum().backward()


def test_refused_implicit_gradient_leaves_the_graph_usable(lib):
    x = lib.ones(3, requires_grad=True)
    y = x * x
    with pytest.raises(RuntimeError, match="implicitly created"):
        y.backward()
    y.backward(lib.ones(3))
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_gradient_weights_the_elements(lib):
    x = lib.ones(3, requires_grad=True)
    (x * 2).backward(lib.tensor([1.0, 10.0, 100.0]))
    assert x.grad.tolist() == [2.0, 20.0, 200.0]


def test_gradient_by_keyword(lib):
    x = lib.ones(2, requires_grad=True)
    (x * 2).backward(gradient=lib.tensor([1.0, 3.0]))
    assert x.grad.tolist() == [2.0, 6.0]


def test_gradient_none_is_the_implicit_one(lib):
    x = lib.ones(2, requires_grad=True)
    (x * 2).sum().backward(None)
    assert x.grad.tolist() == [2.0, 2.0]


def test_gradient_none_for_several_elements_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        lib.autograd.backward((x * 2,), (None,))


@pytest.mark.parametrize("shape", [(), (1,), (2,), (1, 3), (3, 1), (4,)])
def test_gradient_of_another_shape_is_refused(lib, shape):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(lib.ones(shape))


def test_gradient_of_one_element_for_scalar_root_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        x.sum().backward(lib.ones(1))


def test_mismatch_names_the_position(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"grad_output\[0\].*output\[0\]"):
        lib.autograd.backward((x * 2, x.sum()), (lib.ones(2), None))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "int32", "uint8", "bool"])
def test_gradient_of_another_real_dtype_is_cast(lib, dtype):
    x = lib.ones(3, requires_grad=True)
    (x * 2).backward(lib.ones(3, dtype=getattr(lib, dtype)))
    assert x.grad.dtype == lib.float32
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_complex_gradient_for_real_root_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in dtype"):
        (x * 2).backward(lib.ones(3, dtype=lib.complex64))


def test_real_gradient_for_complex_root_is_refused(lib):
    x = lib.ones(3, dtype=lib.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in dtype"):
        (x * 2).backward(lib.ones(3))


def test_complex_gradient_for_complex_root(lib):
    x = lib.ones(2, dtype=lib.complex64, requires_grad=True)
    (x * 2).backward(lib.tensor([1 + 1j, 2 - 1j], dtype=lib.complex64))
    assert x.grad.tolist() == [2 + 2j, 4 - 2j]


def test_complex_factor_is_conjugated(lib):
    x = lib.ones(1, dtype=lib.complex64, requires_grad=True)
    (x * (1 + 2j)).backward(lib.ones(1, dtype=lib.complex64))
    assert x.grad.tolist() == [1 - 2j]


@pytest.mark.parametrize("wrong", [3, 2.5, "one"])
def test_gradient_that_is_no_tensor_is_refused(lib, wrong):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        lib.autograd.backward((x * 2,), (wrong,))


def test_number_as_gradient_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(TypeError):
        (x * 2).backward(1.0)


def test_too_few_gradients_are_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        lib.autograd.backward((x.sum(), x.sum()), (lib.tensor(1.0),))


def test_no_gradients_for_one_root_are_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="got 1 tensors and 0 gradients"):
        lib.autograd.backward((x.sum(),), ())


def test_gradient_is_not_changed_by_backward(lib):
    x = lib.ones(3, requires_grad=True)
    gradient = lib.tensor([1.0, 2.0, 3.0])
    (x * 2 + x).backward(gradient)
    assert gradient.tolist() == [1.0, 2.0, 3.0]
    assert gradient._version == 0


def test_gradient_is_not_changed_by_later_accumulation(lib):
    x = lib.ones(2, requires_grad=True)
    gradient = lib.ones(2)
    (x + 0).backward(gradient)
    (x + 0).backward(lib.tensor([5.0, 5.0]))
    assert x.grad.tolist() == [6.0, 6.0]
    assert gradient.tolist() == [1.0, 1.0]


def test_gradient_for_a_leaf_root(lib):
    x = lib.ones(2, requires_grad=True)
    x.backward(lib.tensor([3.0, 4.0]))
    assert x.grad.tolist() == [3.0, 4.0]


def test_gradient_that_requires_grad_without_create_graph(lib):
    x = lib.ones(2, requires_grad=True)
    gradient = lib.ones(2, requires_grad=True)
    (x * 2).backward(gradient)
    assert x.grad.tolist() == [2.0, 2.0]
    assert not x.grad.requires_grad
    assert gradient.grad is None


def test_gradient_that_requires_grad_with_create_graph(lib):
    x = lib.ones(2, requires_grad=True)
    gradient = lib.tensor([1.0, 5.0], requires_grad=True)
    (result,) = lib.autograd.grad(x * 3, x, gradient, create_graph=True)
    result.sum().backward()
    assert gradient.grad.tolist() == [3.0, 3.0]


def test_gradient_of_other_layout(lib):
    x = lib.ones(2, 3, requires_grad=True)
    gradient = lib.arange(6.0).reshape(3, 2).t()
    (x * 2).backward(gradient)
    assert x.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]


def test_expanded_gradient(lib):
    x = lib.ones(2, 3, requires_grad=True)
    (x * 2).backward(lib.ones(1).expand(2, 3))
    assert x.grad.tolist() == [[2.0] * 3] * 2


# Roots


def test_root_without_grad_is_refused(lib):
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        lib.ones(3).sum().backward()


def test_root_without_grad_is_refused_with_gradient(lib):
    with pytest.raises(RuntimeError, match="does not have a grad_fn"):
        lib.ones(3).backward(lib.ones(3))


def test_second_root_without_grad_is_named(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        lib.autograd.backward((x.sum(), lib.ones(())))


def test_detached_root_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        (x * 2).sum().detach().backward()


def test_root_made_without_recording_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.backward()


@pytest.mark.parametrize("roots", [(), []])
def test_no_roots_do_nothing(lib, roots):
    assert lib.autograd.backward(roots) is None


@pytest.mark.parametrize("roots", [3, (3,), (None,), ("x",)])
def test_root_that_is_no_tensor_is_refused(lib, roots):
    with pytest.raises((TypeError, AssertionError, RuntimeError)):
        lib.autograd.backward(roots)


def test_backward_returns_nothing(lib):
    x = lib.ones(2, requires_grad=True)
    assert x.sum().backward() is None
    assert lib.autograd.backward(x.sum()) is None


@pytest.mark.parametrize("container", [tuple, list])
def test_several_roots_add_up(lib, container):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    lib.autograd.backward(container([(x * x).sum(), (3 * x).sum()]))
    assert x.grad.tolist() == [5.0, 7.0]


def test_several_roots_with_mixed_gradients(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    lib.autograd.backward((x.sum(), x * 2), (None, lib.tensor([1.0, 10.0])))
    assert x.grad.tolist() == [3.0, 21.0]


def test_same_root_twice_counts_twice(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    lib.autograd.backward((y, y))
    assert x.grad.tolist() == [4.0, 8.0]


def test_same_root_twice_with_different_gradients(lib):
    x = lib.tensor([3.0], requires_grad=True)
    y = x * x
    lib.autograd.backward((y, y), (lib.tensor([1.0]), lib.tensor([10.0])))
    assert x.grad.tolist() == [66.0]


def test_root_that_feeds_another_root(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * 3
    lib.autograd.backward((y, z))
    assert x.grad.item() == 16.0


def test_leaf_and_function_of_it_as_roots(lib):
    x = lib.tensor(2.0, requires_grad=True)
    lib.autograd.backward((x, x * x))
    assert x.grad.item() == 5.0


def test_roots_of_unrelated_graphs(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    lib.autograd.backward((x * x, y * y))
    assert (x.grad.item(), y.grad.item()) == (4.0, 6.0)


def test_several_outputs_of_one_node_as_roots(lib):
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    a, b, c = (x * x).unbind()
    lib.autograd.backward((a, c))
    assert x.grad.tolist() == [2.0, 0.0, 6.0]


def test_edge_as_root(lib):
    x = lib.ones(3, requires_grad=True)
    edge = gradient_edge(lib, x * 2)
    lib.autograd.backward(edge, (lib.tensor([1.0, 2.0, 3.0]),))
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_edge_of_scalar_as_root_needs_no_gradient(lib):
    x = lib.ones(3, requires_grad=True)
    lib.autograd.backward((gradient_edge(lib, (x * 2).sum()),))
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


# retain_graph


def test_second_backward_is_refused(lib):
    x = lib.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_second_backward_error_names_the_remedy(lib):
    x = lib.ones(3, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_retained_graph_runs_again(lib):
    x = lib.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_retain_graph_holds_for_one_call_only(lib):
    x = lib.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_second_backward_through_nodes_that_save_nothing(lib):
    x = lib.ones(3, requires_grad=True)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_shared_part_of_two_graphs_is_freed_by_the_first(lib):
    x = lib.ones(3, requires_grad=True)
    shared = x.exp()
    first, second = (shared * 2).sum(), (shared * 3).sum()
    first.backward()
    with pytest.raises(RuntimeError, match="second time"):
        second.backward()


def test_shared_part_of_two_graphs_retained(lib):
    x = lib.zeros(2, requires_grad=True)
    shared = x.exp()
    first, second = (shared * 2).sum(), (shared * 3).sum()
    first.backward(retain_graph=True)
    second.backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_part_of_the_graph_not_visited_is_not_freed(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * x
    z = y * y
    y.sum().backward(retain_graph=False)
    (dy,) = lib.autograd.grad(z.sum(), y)
    assert dy.tolist() == [2.0, 2.0]


# create_graph


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_create_graph_makes_the_gradient_differentiable(lib):
    x = lib.tensor([2.0], requires_grad=True)
    (x * x * x).backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = lib.autograd.grad(x.grad, x)
    assert second.tolist() == [12.0]
    x.grad = None


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_create_graph_retains_the_graph(lib):
    x = lib.tensor([2.0], requires_grad=True)
    y = x * x
    y.backward(create_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    x.grad = None


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_create_graph_with_retain_graph_false_frees(lib):
    x = lib.tensor([2.0], requires_grad=True)
    y = x * x
    y.backward(create_graph=True, retain_graph=False)
    x.grad = None
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_without_create_graph_the_gradient_is_a_constant(lib):
    x = lib.tensor([2.0], requires_grad=True)
    (x * x).backward()
    assert not x.grad.requires_grad
    assert x.grad.grad_fn is None


# inputs


def test_inputs_limit_the_accumulation(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    (x * y).backward(inputs=[x])
    assert x.grad.item() == 3.0
    assert y.grad is None


@pytest.mark.parametrize("container", [tuple, list])
def test_inputs_in_a_container(lib, container):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    (x * y).backward(inputs=container([y, x]))
    assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)


def test_single_tensor_as_inputs(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    (x * y).backward(inputs=y)
    assert y.grad.item() == 2.0
    assert x.grad is None


@pytest.mark.parametrize("inputs", [(), []])
def test_empty_inputs_are_refused(lib, inputs):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * 2).backward(inputs=inputs)


def test_inputs_none_means_all_leaves(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    (x * y).backward(inputs=None)
    assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)


def test_inputs_accumulate_over_calls(lib):
    x = lib.tensor(2.0, requires_grad=True)
    for _ in range(3):
        (x * x).backward(inputs=[x])
    assert x.grad.item() == 12.0


def test_nonleaf_input_retains_its_gradient(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    (y * 5).backward(inputs=[y])
    assert y.grad.item() == 5.0
    assert x.grad is None
    assert y.retains_grad


def test_leaf_and_nonleaf_inputs_together(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    (y * 5).backward(inputs=[x, y])
    assert (x.grad.item(), y.grad.item()) == (20.0, 5.0)


def test_nonleaf_input_accumulates_over_calls(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * 5
    z.backward(inputs=[y], retain_graph=True)
    z.backward(inputs=[y])
    assert y.grad.item() == 10.0


def test_root_as_its_own_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward(inputs=[y])
    assert y.grad.item() == 1.0
    assert x.grad is None


def test_leaf_root_as_its_own_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    x.backward(inputs=[x])
    assert x.grad.item() == 1.0


def test_edge_of_leaf_as_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    (x * y).backward(inputs=[gradient_edge(lib, x)])
    assert x.grad.item() == 3.0
    assert y.grad is None


def test_single_edge_as_inputs(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (x * x).backward(inputs=gradient_edge(lib, x))
    assert x.grad.item() == 4.0


def test_edge_of_nonleaf_accumulates_nothing(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    y.retain_grad()
    (y * 5).backward(inputs=[gradient_edge(lib, y)])
    assert x.grad is None


def test_input_without_grad_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="requires_grad=False|does not require grad"):
        (x * 2).backward(inputs=[lib.ones(())])


def test_input_that_is_not_reached_stays_without_gradient(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    (x * 2).backward(inputs=[other])
    assert other.grad is None
    assert x.grad is None


@pytest.mark.parametrize("wrong", [3, None, "x"])
def test_input_that_is_no_tensor_is_refused(lib, wrong):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges"):
        (x * 2).backward(inputs=[wrong])


def test_same_input_twice_accumulates_once(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (x * x).backward(inputs=[x, x])
    assert x.grad.item() == 4.0


def test_inputs_of_module_function(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    lib.autograd.backward([x * y, x + y], inputs=[x])
    assert x.grad.item() == 4.0
    assert y.grad is None


def test_nodes_not_needed_for_inputs_keep_their_saved_values(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    left, right = x.exp(), y * y
    (left + right).backward(inputs=[x])
    right.backward()
    assert y.grad.item() == 6.0


# Deprecated names


def test_grad_variables_warns_and_works(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        lib.autograd.backward(x * 2, grad_variables=lib.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_grad_variables_beside_grad_tensors_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    one = lib.ones(())
    with pytest.raises(RuntimeError, match="both passed"):
        lib.autograd.backward(x * 2, one, grad_variables=one)


def test_positional_order_of_arguments(lib):
    x = lib.tensor(3.0, requires_grad=True)
    y = x * x
    lib.autograd.backward(y, lib.tensor(1.0), True, False)
    lib.autograd.backward(y)
    assert x.grad.item() == 12.0


def test_method_positional_order_of_arguments(lib):
    x = lib.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward(lib.tensor(1.0), True, False, [x])
    y.backward()
    assert x.grad.item() == 12.0


def test_inputs_may_be_any_iterable(lib):
    x = lib.ones((), requires_grad=True)
    y = lib.ones((), requires_grad=True)
    lib.autograd.backward(x * y, inputs=iter([x]))
    assert x.grad.item() == 1.0
    assert y.grad is None
