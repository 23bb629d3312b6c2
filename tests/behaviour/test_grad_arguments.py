"""The arguments of `grad` and of the engine's own `run_backward`."""

import re
import subprocess
import sys

import pytest


def gradient_edge(lib, tensor):
    return lib.autograd.graph.get_gradient_edge(tensor)


def run_backward(lib, *args, **kwargs):
    return lib.autograd.Variable._execution_engine.run_backward(*args, **kwargs)


# What is returned


def test_single_input_returns_a_tuple(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    result = lib.autograd.grad((x * x).sum(), x)
    assert type(result) is tuple
    assert len(result) == 1
    assert result[0].tolist() == [2.0, 4.0]


def test_results_follow_the_order_of_inputs(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    dy, dx = lib.autograd.grad(x * y, [y, x])
    assert (dy.item(), dx.item()) == (2.0, 3.0)


def test_grad_leaves_the_attribute_alone(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    lib.autograd.grad(x * y, x)
    assert x.grad is None
    assert y.grad is None


def test_grad_does_not_touch_an_existing_gradient(lib):
    x = lib.tensor(2.0, requires_grad=True)
    x.grad = lib.tensor(7.0)
    lib.autograd.grad(x * x, x)
    assert x.grad.item() == 7.0
    assert x.grad._version == 0


def test_result_does_not_require_grad(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (dx,) = lib.autograd.grad(x * x, x)
    assert not dx.requires_grad
    assert dx.is_leaf


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("kept", [True, False])
def test_result_can_be_changed(lib, name, kept, n):
    """Where elements share memory, as those of the gradient of a sum, one changes all of them."""
    x = lib.zeros(3, n, requires_grad=True)
    y = getattr(x, name)(1, keepdim=kept)
    (gradient,) = lib.autograd.grad(y, x, lib.ones_like(y))
    gradient[0, 0] = 5.0
    assert gradient[0, 0].item() == 5.0
    if name == "sum":
        assert gradient[0].tolist() == [5.0] * n
    if n == 1:
        gradient.add_(1)
        assert gradient[0].tolist() == [6.0]


def test_nonleaf_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    (dy,) = lib.autograd.grad(y * y, y)
    assert dy.item() == 8.0


def test_nonleaf_input_does_not_retain_its_gradient(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    lib.autograd.grad(y * y, y)
    assert not y.retains_grad


def test_leaf_and_function_of_it_as_inputs(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    dx, dy = lib.autograd.grad(y * 3, [x, y])
    assert (dx.item(), dy.item()) == (12.0, 3.0)


def test_output_as_its_own_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    (dy,) = lib.autograd.grad(y, y)
    assert dy.item() == 1.0


def test_leaf_output_as_its_own_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (dx,) = lib.autograd.grad(x, x)
    assert dx.item() == 1.0


def test_same_input_twice(lib):
    x = lib.tensor(2.0, requires_grad=True)
    first, second = lib.autograd.grad(x * x, [x, x])
    assert (first.item(), second.item()) == (4.0, 4.0)


def test_one_output_of_a_node_with_several(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    a, b = (x * 2).unbind()
    da, db = lib.autograd.grad(a * 5 + b * 7, [a, b])
    assert (da.item(), db.item()) == (5.0, 7.0)


def test_unused_sibling_output_of_a_node(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    a, b = (x * 2).unbind()
    da, db = lib.autograd.grad(a * 5, [a, b], allow_unused=True)
    assert da.item() == 5.0
    assert db is None


def test_view_is_not_an_input_of_its_base(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    first = x[0]
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        lib.autograd.grad(x.sum(), first)


# Outputs and their gradients


def test_several_outputs_add_up(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (dx,) = lib.autograd.grad([(x * x).sum(), x.sum()], x)
    assert dx.tolist() == [3.0, 5.0]


def test_same_output_twice(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    (dx,) = lib.autograd.grad([y, y], x)
    assert dx.item() == 8.0


def test_grad_outputs_weight_the_outputs(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (dx,) = lib.autograd.grad(x * x, x, lib.tensor([1.0, 10.0]))
    assert dx.tolist() == [2.0, 40.0]


def test_grad_outputs_in_a_sequence(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (dx,) = lib.autograd.grad([x * x, x.sum()], x, [lib.ones(2), None])
    assert dx.tolist() == [3.0, 5.0]


def test_missing_grad_outputs_of_several_elements_are_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        lib.autograd.grad(x * 2, x)


def test_grad_outputs_of_another_shape_are_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        lib.autograd.grad(x * 2, x, lib.ones(2))


def test_complex_grad_outputs_for_real_outputs_are_refused(lib):
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in dtype"):
        lib.autograd.grad(x * 2, x, lib.ones(3, dtype=lib.complex64))


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_grad_outputs_of_another_real_dtype_are_cast(lib, dtype):
    x = lib.ones(3, requires_grad=True)
    (dx,) = lib.autograd.grad(x * 2, x, lib.ones(3, dtype=getattr(lib, dtype)))
    assert dx.dtype == lib.float32
    assert dx.tolist() == [2.0, 2.0, 2.0]


def test_grad_outputs_that_are_no_tensor_are_refused(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        lib.autograd.grad(x * 2, x, (3,))


def test_too_few_grad_outputs_are_refused(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        lib.autograd.grad((x * 2, x * 3), x, (lib.ones(()),))


def test_output_without_grad_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        lib.autograd.grad(lib.ones(()), x)


def test_edge_as_output(lib):
    x = lib.ones(2, requires_grad=True)
    edge = gradient_edge(lib, x * 3)
    (dx,) = lib.autograd.grad(edge, x, lib.tensor([1.0, 2.0]))
    assert dx.tolist() == [3.0, 6.0]


# inputs


@pytest.mark.parametrize("inputs", [(), []])
def test_empty_inputs_are_refused(lib, inputs):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        lib.autograd.grad(x * 2, inputs)


def test_input_without_grad_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        lib.autograd.grad(x * 2, lib.ones(()))


def test_input_without_grad_is_refused_even_when_unused_is_allowed(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        lib.autograd.grad(x * 2, [x, lib.ones(())], allow_unused=True)


def test_detached_input_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        lib.autograd.grad(x * 2, x.detach())


def test_input_that_is_no_tensor_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges"):
        lib.autograd.grad(x * 2, [3])


def test_edge_of_leaf_as_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    (dx,) = lib.autograd.grad(x * x, gradient_edge(lib, x))
    assert dx.item() == 4.0
    assert x.grad is None


def test_edge_of_nonleaf_as_input(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    edge = gradient_edge(lib, y)
    z = y * 5
    del y
    (dy,) = lib.autograd.grad(z, [edge])
    assert dy.item() == 5.0


def test_edges_and_tensors_mixed(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = x * x
    dy, dx = lib.autograd.grad(y * 5, [gradient_edge(lib, y), x])
    assert (dy.item(), dx.item()) == (5.0, 20.0)


def test_edge_of_second_output(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    a, b = x.unbind()
    edge = gradient_edge(lib, b)
    assert edge.output_nr == 1
    (db,) = lib.autograd.grad(a * 5 + b * 7, edge)
    assert db.item() == 7.0


def test_edge_of_constant_is_refused(lib):
    with pytest.raises(RuntimeError, match="does not require gradients"):
        gradient_edge(lib, lib.ones(2))


def test_edge_names_node_and_output(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    edge = gradient_edge(lib, y)
    assert edge.node is y.grad_fn
    assert edge.output_nr == y.output_nr == 0


def test_edge_of_leaf_names_its_accumulator(lib):
    x = lib.ones(2, requires_grad=True)
    edge = gradient_edge(lib, x)
    assert edge.node.name().endswith("AccumulateGrad")
    assert edge.node.variable is x


# allow_unused and materialize_grads


def test_unused_input_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        lib.autograd.grad(x * 2, other)


def test_unused_error_names_the_remedy(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        lib.autograd.grad(x * 2, [x, other])


def test_unused_input_gives_none_when_allowed(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    dx, unused = lib.autograd.grad(x * 2, [x, other], allow_unused=True)
    assert dx.item() == 2.0
    assert unused is None


def test_nonleaf_beside_the_path_is_unused(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    assert lib.autograd.grad(x * 3, y, allow_unused=True) == (None,)


def test_input_behind_a_detach_is_unused(lib):
    x = lib.ones((), requires_grad=True)
    y = lib.ones((), requires_grad=True)
    assert lib.autograd.grad(x.detach() * y, x, allow_unused=True) == (None,)


def test_materialize_grads_gives_zeros(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones(2, 3, dtype=lib.float64, requires_grad=True)
    (zeros,) = lib.autograd.grad(x * 2, other, materialize_grads=True)
    assert zeros.tolist() == [[0.0] * 3] * 2
    assert zeros.dtype == lib.float64


def test_materialize_grads_leaves_real_gradients_alone(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    dx, zero = lib.autograd.grad(x * 2, [x, other], materialize_grads=True)
    assert (dx.item(), zero.item()) == (2.0, 0.0)


def test_materialize_grads_with_allow_unused(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    (zero,) = lib.autograd.grad(x * 2, other, allow_unused=True, materialize_grads=True)
    assert zero.item() == 0.0


def test_materialize_grads_against_allow_unused_false(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(ValueError, match="allow_unused"):
        lib.autograd.grad(x * 2, x, allow_unused=False, materialize_grads=True)


def test_materialize_grads_of_an_unused_edge_is_refused(lib):
    x = lib.ones((), requires_grad=True)
    other = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used"):
        lib.autograd.grad(x * 2, gradient_edge(lib, other), materialize_grads=True)


def test_materialize_grads_of_a_used_edge(lib):
    x = lib.ones((), requires_grad=True)
    (dx,) = lib.autograd.grad(x * 2, gradient_edge(lib, x), materialize_grads=True)
    assert dx.item() == 2.0


# retain_graph, create_graph, only_inputs


def test_grad_frees_the_graph(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    lib.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        lib.autograd.grad(y, x)


def test_grad_retains_the_graph(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    lib.autograd.grad(y, x, retain_graph=True)
    (dx,) = lib.autograd.grad(y, x)
    assert dx.item() == 2.0


def test_create_graph_retains_by_default(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    lib.autograd.grad(y, x, create_graph=True)
    (dx,) = lib.autograd.grad(y, x)
    assert dx.item() == 2.0


def test_create_graph_with_retain_graph_false_frees(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    lib.autograd.grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        lib.autograd.grad(y, x)


def test_create_graph_result_has_a_history(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (dx,) = lib.autograd.grad(x * x, x, create_graph=True)
    assert dx.requires_grad
    assert dx.grad_fn is not None


def test_create_graph_of_linear_function_is_constant(lib):
    x = lib.tensor(3.0, requires_grad=True)
    (dx,) = lib.autograd.grad(x * 2, x, create_graph=True)
    assert dx.item() == 2.0
    assert not dx.requires_grad


def test_create_graph_under_no_grad_still_records(lib):
    x = lib.tensor(3.0, requires_grad=True)
    y = x * x
    with lib.no_grad():
        (dx,) = lib.autograd.grad(y, x, create_graph=True)
    assert dx.requires_grad


def test_grad_works_under_no_grad(lib):
    x = lib.tensor(3.0, requires_grad=True)
    y = x * x
    with lib.no_grad():
        (dx,) = lib.autograd.grad(y, x)
    assert dx.item() == 6.0


def test_grad_with_create_graph_does_not_warn(lib, recwarn):
    x = lib.tensor(3.0, requires_grad=True)
    lib.autograd.grad(x * x, x, create_graph=True)
    assert not recwarn.list


def test_backward_with_create_graph_warns_of_the_cycle(lib):
    # The warning comes once per process, so it is looked for in a new one.
    program = (
        f"import {lib.__name__} as lib\n"
        "x = lib.ones((), requires_grad=True)\n"
        "(x * x).backward(create_graph=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search("UserWarning.*create_graph=True", done.stderr)


def test_only_inputs_false_warns_and_is_ignored(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        (dx,) = lib.autograd.grad(x * y, x, only_inputs=False)
    assert dx.item() == 3.0
    assert y.grad is None


def test_only_inputs_true_does_not_warn(lib, recwarn):
    x = lib.tensor(2.0, requires_grad=True)
    lib.autograd.grad(x * x, x, only_inputs=True)
    assert not recwarn.list


def test_nodes_off_the_path_do_not_run(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    seen = []
    side = y.exp()
    side.register_hook(lambda g: seen.append("side"))
    lib.autograd.grad(x * x + side.exp(), x)
    assert seen == []


def test_graph_off_the_path_is_not_freed(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = lib.tensor(3.0, requires_grad=True)
    side = y * y
    lib.autograd.grad(x * x + side, x)
    (dy,) = lib.autograd.grad(side, y)
    assert dy.item() == 6.0


# The engine's own entry point


@pytest.mark.parametrize("kind", [list, iter])
def test_engine_wants_a_tuple_of_tensors(lib, kind):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="tensors argument is expected to be a tuple"):
        run_backward(lib, kind([x * 2]), (lib.ones(()),), False, False)


def test_engine_wants_a_tuple_of_gradients(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="grad_tensors argument is expected to be a tuple"):
        run_backward(lib, (x * 2,), [lib.ones(())], False, False)


def test_engine_wants_as_many_gradients_as_tensors(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        run_backward(lib, (x * 2,), (lib.ones(()), lib.ones(())), False, False)


def test_engine_wants_tensors(lib):
    with pytest.raises(RuntimeError, match="element 0 of tensors tuple"):
        run_backward(lib, (3,), (None,), False, False)


def test_engine_wants_gradients_to_be_tensors(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="element 0 of gradients tuple is not a Tensor or None"):
        run_backward(lib, (x * 2,), (3,), False, False)


def test_engine_wants_a_gradient_for_a_root_that_requires_grad(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="element 0 of gradients tuple is None"):
        run_backward(lib, (x * 2,), (None,), False, False)


def test_engine_wants_roots_with_history(lib):
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        run_backward(lib, (lib.ones(()),), (lib.ones(()),), False, False)


def test_engine_wants_a_tuple_of_inputs(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="inputs to run_backward must be a tuple"):
        run_backward(lib, (x * 2,), (lib.ones(()),), False, False, [x])


def test_engine_wants_inputs_to_be_tensors(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges"):
        run_backward(lib, (x * 2,), (lib.ones(()),), False, False, (3,))


def test_engine_wants_inputs_that_require_grad(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        run_backward(lib, (x * 2,), (lib.ones(()),), False, False, (lib.ones(()),))


def test_engine_refuses_an_unreachable_input(lib):
    x, other = (lib.ones((), requires_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        run_backward(lib, (x * 2,), (lib.ones(()),), False, False, (other,))


def test_engine_allows_an_unreachable_input(lib):
    x, other = (lib.ones((), requires_grad=True) for _ in range(2))
    result = run_backward(
        lib, (x * 2,), (lib.ones(()),), False, False, (x, other), allow_unreachable=True
    )
    assert result[0].item() == 2.0
    assert result[1] is None


def test_engine_captures_without_accumulating(lib):
    x = lib.ones((), requires_grad=True)
    (dx,) = run_backward(
        lib,
        tensors=(x * 2,),
        grad_tensors=(lib.ones(()),),
        keep_graph=False,
        create_graph=False,
        inputs=(x,),
        allow_unreachable=False,
        accumulate_grad=False,
    )
    assert dx.item() == 2.0
    assert x.grad is None


def test_engine_accumulates_and_returns_nothing(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    result = run_backward(lib, (x * y,), (lib.ones(()),), False, False, (x,), accumulate_grad=True)
    assert result is None
    assert x.grad.item() == 1.0
    assert y.grad is None


def test_engine_accumulates_into_all_leaves(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    run_backward(lib, (x * y,), (lib.ones(()),), False, False, accumulate_grad=True)
    assert (x.grad.item(), y.grad.item()) == (1.0, 1.0)


def test_engine_keeps_the_graph_when_asked(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    run_backward(lib, (y,), (lib.ones(()),), True, False, (x,))
    (dx,) = run_backward(lib, (y,), (lib.ones(()),), False, False, (x,))
    assert dx.item() == 2.0


def test_engine_creates_a_graph_when_asked(lib):
    x = lib.ones((), requires_grad=True)
    (dx,) = run_backward(lib, (x * x,), (lib.ones(()),), True, True, (x,))
    assert dx.requires_grad


def test_engine_needs_all_its_leading_arguments(lib):
    x = lib.ones((), requires_grad=True)
    with pytest.raises(TypeError):
        run_backward(lib, (x * 2,), (lib.ones(()),))


def test_engine_takes_edges_as_roots(lib):
    x = lib.ones((), requires_grad=True)
    (dx,) = run_backward(lib, (gradient_edge(lib, x * 2),), (lib.ones(()),), False, False, (x,))
    assert dx.item() == 2.0


def test_input_among_several_results_that_no_gradient_reaches(lib):
    class Forget(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    first, second = (lib.ones(2, requires_grad=True) * 1).unbind()
    out = Forget.apply(first)
    assert lib.autograd.grad(out, [first, second], allow_unused=True) == (None, None)
