"""Nodes as objects: the abstract class, metadata, sequence numbers, handles of saved tensors."""

import pytest


def leaf(lib, *values):
    return lib.tensor(values or [1.0, 2.0], requires_grad=True)


# The abstract class -------------------------------------------------------------------------------


def nodes(lib):
    x = leaf(lib)
    base = x * 1
    base[:1] = 3.0
    split = x.unbind(0)[0]
    return [
        (x * 2).grad_fn,
        (x * 2).grad_fn.next_functions[0][0],
        base.grad_fn,
        split.grad_fn,
        x.view(2).grad_fn,
    ]


def test_every_node_is_a_node(lib):
    for node in nodes(lib):
        assert isinstance(node, lib.autograd.graph.Node)


def test_class_of_every_node_is_a_subclass(lib):
    for node in nodes(lib):
        assert issubclass(type(node), lib.autograd.graph.Node)


@pytest.mark.parametrize("other", [3, "node", object(), [].append])
def test_anything_else_is_no_node(lib, other):
    assert not isinstance(other, lib.autograd.graph.Node)
    assert not issubclass(type(other), lib.autograd.graph.Node)


def test_tensor_is_no_node(lib):
    assert not isinstance(leaf(lib), lib.autograd.graph.Node)


def test_abstract_class_cannot_be_instantiated(lib):
    with pytest.raises(TypeError, match="abstract"):
        lib.autograd.graph.Node()


def test_own_class_with_all_methods_can_be_a_node(lib):
    names = lib.autograd.graph.Node.__abstractmethods__
    complete = type("Complete", (lib.autograd.graph.Node,), dict.fromkeys(names))
    assert isinstance(complete(), lib.autograd.graph.Node)
    partial = type("Partial", (lib.autograd.graph.Node,), {"name": None})
    with pytest.raises(TypeError, match="abstract"):
        partial()


def test_nodes_require_grad(lib):
    assert all(node.requires_grad for node in nodes(lib))


# What a node expects ------------------------------------------------------------------------------


def test_input_metadata_of_one_output(lib):
    (entry,) = (lib.ones(2, 3, dtype=lib.float64, requires_grad=True) * 2).grad_fn._input_metadata
    assert tuple(entry.shape) == (2, 3)
    assert entry.dtype is lib.float64
    assert str(entry.device) == "cpu"
    assert not entry.is_nested_tensor


def test_input_metadata_of_several_outputs(lib):
    parts = lib.ones(3, 2, requires_grad=True).split([1, 2])
    entries = parts[1].grad_fn._input_metadata
    assert isinstance(entries, tuple)
    assert [tuple(entry.shape) for entry in entries] == [(1, 2), (2, 2)]


def test_input_metadata_of_a_sink(lib):
    sink = (lib.ones(4, requires_grad=True) * 2).grad_fn.next_functions[0][0]
    assert [tuple(entry.shape) for entry in sink._input_metadata] == [(4,)]


def test_sequence_number_can_be_set(lib):
    node = (leaf(lib) * 2).grad_fn
    node._set_sequence_nr(12345)
    assert node._sequence_nr() == 12345


def test_nodes_run_by_the_number_that_was_set(lib):
    x, calls = leaf(lib), []
    first, second = x * 2, x * 3
    first.register_hook(lambda g: calls.append("first"))
    second.register_hook(lambda g: calls.append("second"))
    (first + second).sum().backward(retain_graph=True)
    first.grad_fn._set_sequence_nr(second.grad_fn._sequence_nr() + 1)
    (first + second).sum().backward()
    assert calls == ["second", "first", "first", "second"]


def test_number_of_the_next_node(lib):
    x = leaf(lib)
    number = lib.autograd._get_sequence_nr()
    assert (x * 2).grad_fn._sequence_nr() == number
    assert lib.autograd._get_sequence_nr() == number + 1


# Edges and outputs that are shown -----------------------------------------------------------------

ONE_EDGE = {
    "pow": lambda lib, x: x**2,
    "base": lambda lib, x: 2**x,
    "rsub": lambda lib, x: 1 - x,
    "remainder": lambda lib, x: x % 2,
    "clamp": lambda lib, x: x.clamp(0, 1),
    "masked_fill": lambda lib, x: x.masked_fill(x.detach() > 0, 1.0),
    "index_fill": lambda lib, x: x.index_fill(0, lib.tensor([0]), 1.0),
    "fill_": lambda lib, x: (x * 1).fill_(1.0),
    "scatter": lambda lib, x: x.scatter(0, lib.tensor([0]), 1.0),
}
TWO_EDGES = {
    "mul": lambda lib, x: x * 2,
    "add": lambda lib, x: x + 1,
    "sub": lambda lib, x: x - 1,
    "div": lambda lib, x: x / 2,
    "lerp": lambda lib, x: lib.lerp(x, x, 0.5),
    "pow": lambda lib, x: x ** lib.tensor([2.0, 3.0]),
    "masked_fill": lambda lib, x: x.masked_fill(x.detach() > 0, lib.tensor(1.0)),
    "fill_": lambda lib, x: (x * 1).fill_(lib.tensor(1.0)),
    "where": lambda lib, x: lib.where(x.detach() > 0, x, 0.0),
}


@pytest.mark.parametrize("case", ONE_EDGE)
def test_number_with_an_overload_has_no_edge(lib, case):
    x = leaf(lib)
    y = ONE_EDGE[case](lib, x)
    assert len(y.grad_fn.next_functions) == 1
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
    y.sum().backward()
    assert seen == [1]


@pytest.mark.parametrize("case", TWO_EDGES)
def test_number_in_the_place_of_a_tensor_has_an_edge(lib, case):
    assert len(TWO_EDGES[case](lib, leaf(lib)).grad_fn.next_functions) == 2


def test_hook_replaces_the_gradients_that_are_shown(lib):
    x = leaf(lib)
    y = x**2
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10,))
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 40.0]


def test_hook_sees_gradients_in_the_shapes_of_the_operands(lib):
    x, y, seen = lib.ones(2, 3, requires_grad=True), lib.ones(3, requires_grad=True), []
    z = x * y
    z.grad_fn.register_hook(lambda inputs, outputs: seen.append([g.shape for g in inputs]))
    z.sum().backward()
    assert seen == [[x.shape, y.shape]]


def test_assigned_number_has_an_edge(lib):
    y = leaf(lib) * 1
    y[0] = 3.0
    assert [edge[0] is None for edge in y.grad_fn.next_functions] == [False, True]


@pytest.mark.parametrize("name", ["sort", "max", "min", "cummax", "kthvalue", "topk"])
def test_outputs_without_gradient_are_not_shown(lib, name):
    x = leaf(lib)
    arguments = (1,) if name in ("kthvalue", "topk") else () if name == "sort" else (0,)
    result = getattr(x, name)(*arguments)[0]
    assert len(result.grad_fn._input_metadata) == 1
    seen = []
    result.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    result.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
    result.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(outputs)))
    result.sum().backward()
    assert seen == [1, 1]
    assert 3.0 in x.grad.tolist()


# Handles of saved tensors -------------------------------------------------------------------------


def test_handle_class(lib):
    assert isinstance((leaf(lib).exp()).grad_fn._raw_saved_result, lib.autograd.SavedTensor)


def test_handle_cannot_be_made(lib):
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        lib.autograd.SavedTensor()


def test_handle_shows_its_tensor(lib):
    x = leaf(lib)
    handle = (x * x).grad_fn._raw_saved_self
    assert handle.data.tolist() == [1.0, 2.0]
    assert handle.unpack_hook is None
    assert handle.unpack().tolist() == [1.0, 2.0]


def test_raw_names_are_listed(lib):
    x = leaf(lib)
    names = dir((x * x).grad_fn)
    assert {"_saved_self", "_saved_other", "_raw_saved_self", "_raw_saved_other"} <= set(names)


def test_numbers_have_no_handle(lib):
    assert leaf(lib).pow(3).grad_fn._saved_exponent == 3
    with pytest.raises(AttributeError, match="_raw_saved_exponent"):
        leaf(lib).pow(3).grad_fn._raw_saved_exponent


def test_list_of_tensors_has_a_tuple_of_handles(lib):
    x = lib.ones(2, 3, requires_grad=True)
    node = x[lib.tensor([0, 1]), lib.tensor([2, 2])].grad_fn
    assert isinstance(node._raw_saved_indices, tuple)
    assert [handle.data.tolist() for handle in node._raw_saved_indices] == [[0, 1], [2, 2]]
    assert isinstance(node._saved_indices, tuple)


def test_hooks_of_one_saved_operand(lib):
    x = leaf(lib)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t, lambda t: 3 * t)
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 14.0]  # 6x for one factor, x for the other


def test_hooks_of_a_saved_result(lib):
    x = leaf(lib, 0.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.tolist(), lib.tensor)
    assert y.grad_fn._raw_saved_result.data == [1.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_hooks_of_one_in_a_list(lib):
    x = lib.ones(3, requires_grad=True)
    y = x[lib.tensor([0, 1])]
    handle = y.grad_fn._raw_saved_indices[0]
    handle.register_hooks(lambda t: t.tolist(), lambda t: lib.tensor([2, 2]))
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 2.0]


def test_pack_hook_runs_at_once(lib):
    seen = []
    y = leaf(lib).exp()
    y.grad_fn._raw_saved_result.register_hooks(seen.append, lambda _: lib.ones(2))
    assert len(seen) == 1
    assert y.grad_fn._raw_saved_result.unpack_hook is not None


def test_hooks_stay_for_a_retained_graph(lib):
    x, unpacked = leaf(lib), []

    def unpack(t):
        unpacked.append(t)
        return t

    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach(), unpack)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert len(unpacked) == 2


def test_hooks_of_a_saved_tensor_through_double_backward(lib):
    x = lib.tensor([0.5], dtype=lib.float64, requires_grad=True)
    y = x * x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda t: double(lib, t))
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert first.tolist() == [0.75]
    assert second.tolist() == [3.0]


def double(lib, values):
    return lib.tensor(values, dtype=lib.float64)


def test_second_pair_of_hooks_is_refused(lib):
    handle = leaf(lib).exp().grad_fn._raw_saved_result
    handle.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        handle.register_hooks(lambda t: t, lambda t: t)


def test_hooks_after_those_of_a_context_are_refused(lib):
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = leaf(lib).exp()
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)


@pytest.mark.parametrize("early", [True, False], ids=["handle before", "handle after"])
def test_hooks_after_freeing_are_refused(lib, early):
    y = leaf(lib).exp()
    handle = y.grad_fn._raw_saved_result if early else None
    y.sum().backward()
    if handle is None:
        handle = y.grad_fn._raw_saved_result
    with pytest.raises(RuntimeError, match="after it has been freed"):
        handle.register_hooks(lambda t: t, lambda t: t)


def test_hooks_of_what_is_not_saved_are_refused(lib):
    handle = (leaf(lib) * 2).grad_fn._raw_saved_self
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        handle.register_hooks(lambda t: t, lambda t: t)


@pytest.mark.parametrize("hooks", [(1, 2), (len, None), (lambda t: t,)])
def test_hooks_must_be_two_functions(lib, hooks):
    with pytest.raises(TypeError):
        leaf(lib).exp().grad_fn._raw_saved_result.register_hooks(*hooks)


def test_pack_hook_that_writes_is_refused(lib):
    x = leaf(lib) * 1
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        (x * x).grad_fn._raw_saved_self.register_hooks(lambda t: t.mul_(2), lambda t: t)


def test_unpack_hook_must_return_a_tensor(lib):
    y = leaf(lib).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: 3)
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got .* int"):
        y.sum().backward()


def test_changed_tensor_is_refused_by_its_handle(lib):
    x = leaf(lib) * 1
    handle = (x * x).grad_fn._raw_saved_self
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        handle.unpack()


def test_tensor_detached_after_it_was_saved_is_refused(lib):
    x = leaf(lib)
    y = x * 1
    z = y * y
    y.detach_()
    with pytest.raises(RuntimeError, match="saved tensor that has been detached in-place"):
        z.sum().backward()


def test_tensor_saved_after_it_was_detached_is_fine(lib):
    x = leaf(lib)
    y = x * 1
    y * y
    y.detach_()
    (x * y).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]


def test_result_detached_after_it_was_saved_is_fine(lib):
    x = leaf(lib, 0.0)
    y = x.exp()
    z = y + 1
    y.detach_()
    z.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_hooks_allowed_where_default_hooks_are_disabled(lib):
    x = leaf(lib)
    y = x.exp()
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == (2 * x.exp()).tolist()


def test_node_called_with_a_wrong_number_of_gradients(lib):
    node = (lib.ones(2, requires_grad=True) * 2).grad_fn
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        node(lib.ones(2), lib.ones(2))


# Names --------------------------------------------------------------------------------------------


def test_primal_is_an_identity_in_the_graph(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.autograd.forward_ad.dual_level():
        primal = lib.autograd.forward_ad.unpack_dual(x).primal
    assert primal.grad_fn.name().rpartition("::")[2] == "Identity"
    primal.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_rms_norm_copies_its_result_where_the_input_is_turned(lib):
    x = lib.ones(3, 2, requires_grad=True)
    out = lib.nn.functional.rms_norm(x.t(), (3,))
    assert out.grad_fn.name() == "CloneBackward0" and out.is_contiguous()


def test_product_of_one_matrix_is_a_copy(lib):
    x = lib.ones(2, 2)
    product = lib.chain_matmul(x)
    product.zero_()
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_rms_norm_of_halves_is_rounded_once(lib):
    x = lib.tensor([[1.0, 2.0]], dtype=lib.bfloat16, requires_grad=True)
    weight = lib.tensor([1.1, 2.3])
    out = lib.nn.functional.rms_norm(x, (2,), weight)
    assert out.dtype is lib.bfloat16 and out.grad_fn.name() == "ToCopyBackward0"
    exact = lib.nn.functional.rms_norm(x.detach().float(), (2,), weight)
    assert out.tolist() == exact.to(lib.bfloat16).tolist()
