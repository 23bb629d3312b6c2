"""The names below the surface that programs import all the same."""

import pickle
import warnings

import pytest


def test_the_running_backward(lib):
    inner = lib._C
    assert inner._current_graph_task_id() == -1
    assert inner._current_autograd_node() is None
    y = lib.ones(2, requires_grad=True) * 2
    seen = []

    def look(_):
        seen.append(inner._current_graph_task_id() >= 0)
        seen.append(inner._current_autograd_node() is y.grad_fn)
        seen.append(inner._will_engine_execute_node(y.grad_fn))

    y.register_hook(look)
    y.sum().backward()
    assert seen == [True, True, True]


def _node(t):
    return t.grad_fn or t.view_as(t).grad_fn.next_functions[0][0]


def test_nodes_that_a_backward_will_run(lib):
    will_run = lib._C._will_engine_execute_node
    a, b = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    product = a * b
    aside = product.cos()
    out = product.sin()
    nodes = [_node(t) for t in (a, b, product, aside, out)]
    seen = []

    def look(_):
        seen.append([will_run(node) for node in nodes])

    out.register_hook(look)
    product.register_hook(look)
    out.sum().backward(retain_graph=True)
    assert seen == [[True, True, True, False, True]] * 2
    del seen[:]
    out.sum().backward(inputs=(a, product), retain_graph=True)
    assert seen == [[True, False, True, False, True]] * 2
    with pytest.raises(RuntimeError, match=r"we are currently running\s+autograd\.grad\(\)"):
        lib.autograd.grad(out.sum(), a)


def test_nodes_that_grad_of_intermediate_values_will_run(lib):
    will_run = lib._C._will_engine_execute_node
    a = lib.ones(2, requires_grad=True)
    product, seen = a * 2, []
    nodes = [_node(t) for t in (a, product)]
    product.register_hook(lambda _: seen.append([will_run(node) for node in nodes]))
    lib.autograd.grad(product.sin().sum(), product)
    assert seen == [[False, True]]


def test_nodes_that_run_are_asked_for_inside_a_backward(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        lib._C._will_engine_execute_node(y.grad_fn)
    for value in (y, None, 3):
        with pytest.raises(RuntimeError, match="expects an grad_fn, but got"):
            lib._C._will_engine_execute_node(value)


def test_modes_step_by_step(lib):
    inner = lib._C
    pairs = [
        (inner._set_grad_enabled, inner.is_grad_enabled),
        (inner._set_multithreading_enabled, inner._is_multithreading_enabled),
        (inner._set_view_replay_enabled, inner._is_view_replay_enabled),
        (inner.set_anomaly_enabled, inner.is_anomaly_enabled),
    ]
    for change, read in pairs:
        before = read()
        change(not before)
        assert read() is not before
        change(before)
        assert read() is before


def test_versions_step_by_step(lib):
    x, y = lib.ones(2), lib.ones(2)
    lib._C._increment_version([x, y])
    assert (x._version, y._version) == (1, 1)
    lib._C._autograd._unsafe_set_version_counter((x, y), (5, 0))
    assert (x._version, y._version) == (5, 0)


def test_saved_tensors_hooks_step_by_step(lib):
    inner = lib._C._autograd
    assert inner._top_saved_tensors_default_hooks(False) is None

    def keep(t):
        return t

    inner._push_saved_tensors_default_hooks(keep, keep)
    assert inner._top_saved_tensors_default_hooks(False)[0] is keep
    inner._pop_saved_tensors_default_hooks()
    assert inner._saved_tensors_hooks_is_enabled()
    inner._saved_tensors_hooks_disable("not now")
    assert inner._saved_tensors_hooks_get_disabled_error_message() == "not now"
    with pytest.raises(RuntimeError, match="not now"):
        inner._push_saved_tensors_default_hooks(keep, keep)
    inner._saved_tensors_hooks_enable()
    assert inner._saved_tensors_hooks_get_disabled_error_message() is None


def test_classes_of_nodes(lib):
    x = lib.ones(2, requires_grad=True)
    node = (x * 2).grad_fn
    classes = lib._C._functions
    assert isinstance(node, classes.MulBackward0)
    assert not isinstance(node, classes.AddBackward0)
    assert isinstance(node.next_functions[0][0], classes.AccumulateGrad)
    assert not hasattr(classes, "NoSuchBackward0")


def test_graph_internals(lib):
    graph = lib.autograd.graph
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    assert graph._get_grad_fn_or_grad_acc(y) is y.grad_fn
    assert graph._get_grad_fn_or_grad_acc(x) is y.grad_fn.next_functions[0][0]
    (gradient,) = graph._engine_run_backward(
        (y,), (lib.ones(2),), False, False, (x,), allow_unreachable=True, accumulate_grad=False
    )
    assert gradient.tolist() == [2.0, 2.0]
    assert graph.log.name.endswith("autograd.graph")
    with graph.allow_mutation_on_saved_tensors() as context:
        assert isinstance(context, graph._AllowMutationOnSavedContext)
    assert isinstance(lib.autograd.Variable._execution_engine, lib._C._ImperativeEngine)


def test_hooks_that_stay_behind_in_a_pickle(lib):
    x = lib.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: None)
    with pytest.warns(UserWarning, match="will not be serialized"):
        copied = pickle.loads(pickle.dumps(x))
    assert not copied._backward_hooks
    handle.remove()
    x.register_hook(lib.utils.hooks.unserializable_hook(lambda g: None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.dumps(x)


def test_names_of_types(lib):
    types = lib.types
    assert types.Number == int | float | bool
    for number in (3, 2.5, True):
        assert isinstance(number, types.Number)
        assert isinstance(number, types._Number)
    assert not isinstance(1j, types.Number)
    assert not isinstance(lib.ones(1), types.Number)
    assert isinstance(lib.device("cpu"), types.Device)
    assert isinstance(lib.Size((2, 3)), types._size)
    assert (types._int, types._float, types._bool, types._complex) == (int, float, bool, complex)
    assert (types._device, types._dtype) == (lib.device, lib.dtype)
    assert types._TensorOrTensors.__args__[0] is lib.Tensor
