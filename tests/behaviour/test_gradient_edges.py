"""GradientEdge: made from tensors or by hand, as roots and as `inputs=`; increment_version."""

import gc
import weakref

import pytest


def leaf(lib, *values):
    return lib.tensor(values or [1.0, 2.0], requires_grad=True)


def edge_of(lib, tensor):
    return lib.autograd.graph.get_gradient_edge(tensor)


def test_fields(lib):
    y = leaf(lib) * 2
    edge = edge_of(lib, y)
    assert isinstance(edge, lib.autograd.graph.GradientEdge)
    assert edge._fields == ("node", "output_nr", "ownership_token")
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0


def test_edge_of_a_leaf_is_its_sink(lib):
    x = leaf(lib)
    edge = edge_of(lib, x)
    assert edge.node.name().endswith("AccumulateGrad")
    assert edge.node.variable is x
    assert edge == edge_of(lib, x)


def test_edge_of_a_leaf_under_no_grad(lib):
    x = leaf(lib)
    with lib.no_grad():
        edge = edge_of(lib, x)
    assert edge.node.variable is x


def test_edge_of_one_of_several_outputs(lib):
    _, second = lib.ones(2, 3, requires_grad=True).unbind(0)
    assert edge_of(lib, second).output_nr == 1


def test_edge_of_a_constant_is_refused(lib):
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge"):
        edge_of(lib, lib.ones(2))


def test_equal_edges_hash_alike(lib):
    y = leaf(lib) * 2
    assert edge_of(lib, y) == edge_of(lib, y)
    assert len({edge_of(lib, y), edge_of(lib, y)}) == 1


def test_edge_put_together_by_hand(lib):
    x = leaf(lib)
    y = (x * 3).sum()
    edge = lib.autograd.graph.GradientEdge(y.grad_fn, 0)
    assert edge.ownership_token is None
    (gradient,) = lib.autograd.grad(edge, x)
    assert gradient.tolist() == [3.0, 3.0]


# As input -----------------------------------------------------------------------------------------


def test_gradient_at_an_edge(lib):
    x = leaf(lib)
    y = x * 2
    loss = (y * y).sum()
    (expected,) = lib.autograd.grad(loss, y, retain_graph=True)
    (found,) = lib.autograd.grad(loss, edge_of(lib, y))
    assert found.tolist() == expected.tolist() == [4.0, 8.0]


def test_gradient_at_the_edge_of_a_leaf(lib):
    x = leaf(lib)
    (found,) = lib.autograd.grad((x * x).sum(), edge_of(lib, x))
    assert found.tolist() == [2.0, 4.0]
    assert x.grad is None


def test_edges_and_tensors_mixed(lib):
    x, w = leaf(lib), leaf(lib, 3.0, 4.0)
    y = x * w
    found = lib.autograd.grad(y.sum(), [edge_of(lib, x), w, edge_of(lib, y)])
    assert [g.tolist() for g in found] == [[3.0, 4.0], [1.0, 2.0], [1.0, 1.0]]


def test_edge_of_one_of_several_outputs_as_input(lib):
    x = lib.ones(2, 2, requires_grad=True)
    first, second = x.unbind(0)
    (found,) = lib.autograd.grad((first + second * 5).sum(), edge_of(lib, second))
    assert found.tolist() == [5.0, 5.0]


def test_edge_keeps_the_graph_and_not_the_tensor(lib):
    x = leaf(lib)
    y = x * 2
    reference, edge = weakref.ref(y), edge_of(lib, y)
    loss = (y + 1).sum()
    del y
    gc.collect()
    assert reference() is None
    assert lib.autograd.grad(loss, edge)[0].tolist() == [1.0, 1.0]


def test_edge_keeps_the_graph_behind_it(lib):
    x = leaf(lib)
    edge = edge_of(lib, (x * x) * 3)
    gc.collect()
    (gradient,) = lib.autograd.grad(edge, x, lib.ones(2))
    assert gradient.tolist() == [6.0, 12.0]


def test_backward_to_the_edge_of_a_leaf(lib):
    x, w = leaf(lib), leaf(lib)
    (x * w).sum().backward(inputs=[edge_of(lib, x)])
    assert x.grad.tolist() == [1.0, 2.0]
    assert w.grad is None


def test_backward_to_one_edge_without_list(lib):
    x = leaf(lib)
    (x * 2).sum().backward(inputs=edge_of(lib, x))
    assert x.grad.tolist() == [2.0, 2.0]


def test_backward_to_the_edge_of_an_intermediate_keeps_no_gradient(lib):
    x = leaf(lib)
    y = x * 2
    y.sum().backward(inputs=[edge_of(lib, y)])
    assert x.grad is None
    assert not y.retains_grad


def test_unused_edge(lib):
    x, other = leaf(lib), leaf(lib)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        lib.autograd.grad((x * 2).sum(), edge_of(lib, other))
    found = lib.autograd.grad((x * 2).sum(), edge_of(lib, other), allow_unused=True)
    assert found == (None,)


def test_materialized_gradient_of_an_unused_edge_is_refused(lib):
    x, other = leaf(lib), leaf(lib)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used .* GradientEdge"):
        lib.autograd.grad((x * 2).sum(), edge_of(lib, other), materialize_grads=True)


def test_materialized_gradient_beside_a_used_edge(lib):
    x, other = leaf(lib), leaf(lib)
    found = lib.autograd.grad((x * 2).sum(), [edge_of(lib, x), other], materialize_grads=True)
    assert [g.tolist() for g in found] == [[2.0, 2.0], [0.0, 0.0]]


@pytest.mark.parametrize("create_graph", [True, False])
def test_materialized_zeros_can_be_differentiated_with_the_graph(lib, create_graph):
    x, other = leaf(lib), leaf(lib)
    (zeros,) = lib.autograd.grad(
        (x * 2).sum(), other, materialize_grads=True, create_graph=create_graph
    )
    assert zeros.requires_grad is create_graph


# As root ------------------------------------------------------------------------------------------


def test_root_edge(lib):
    x = leaf(lib)
    (gradient,) = lib.autograd.grad(edge_of(lib, x * 2), x, lib.tensor([1.0, 10.0]))
    assert gradient.tolist() == [2.0, 20.0]


def test_scalar_root_edge_needs_no_gradient(lib):
    x = leaf(lib)
    lib.autograd.backward(edge_of(lib, (x * 2).sum()))
    assert x.grad.tolist() == [2.0, 2.0]


def test_root_edge_that_is_no_scalar_needs_a_gradient(lib):
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        lib.autograd.backward(edge_of(lib, leaf(lib) * 2))


def test_gradient_of_root_edge_must_fit(lib):
    x = leaf(lib)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        lib.autograd.grad(edge_of(lib, x * 2), x, lib.ones(3))


def test_root_edge_of_a_leaf(lib):
    x = leaf(lib)
    lib.autograd.backward(edge_of(lib, x), lib.ones(2))
    assert x.grad.tolist() == [1.0, 1.0]


def test_root_edges_and_tensors_mixed(lib):
    x = leaf(lib)
    roots = [edge_of(lib, x * 2), x * 3]
    (gradient,) = lib.autograd.grad(roots, x, [lib.ones(2), lib.ones(2)])
    assert gradient.tolist() == [5.0, 5.0]


def test_root_edge_of_one_of_several_outputs(lib):
    x = lib.ones(2, 2, requires_grad=True)
    edge = edge_of(lib, x.unbind(0)[1])
    (gradient,) = lib.autograd.grad(edge, x, lib.ones(2))
    assert gradient.tolist() == [[0.0, 0.0], [1.0, 1.0]]


# What is no edge ----------------------------------------------------------------------------------


def test_edge_without_node_is_refused_as_input(lib):
    x = leaf(lib)
    edge = lib.autograd.graph.GradientEdge(3, 0)
    with pytest.raises(RuntimeError, match="must be an autograd.graph.Node but got int"):
        lib.autograd.grad(x.sum(), edge)


def test_plain_tuple_is_refused_as_input(lib):
    x = leaf(lib)
    y = x * 2
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges"):
        lib.autograd.grad(y.sum(), [(y.grad_fn, 0)])


def test_root_with_a_number_out_of_range_is_refused(lib):
    x = leaf(lib)
    edge = lib.autograd.graph.GradientEdge((x * 2).sum().grad_fn, 4)
    with pytest.raises(IndexError, match="out of range"):
        lib.autograd.grad(edge, x)


# increment_version --------------------------------------------------------------------------------


def test_increment_version_of_one(lib):
    x = lib.ones(2)
    lib.autograd.graph.increment_version(x)
    assert x._version == 1


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_increment_version_of_several(lib, kind):
    x, y = lib.ones(2), lib.ones(2)
    y.add_(1)
    lib.autograd.graph.increment_version(kind([x, y]))
    assert (x._version, y._version) == (1, 2)


def test_increment_version_is_seen_by_views(lib):
    x = lib.ones(2)
    view = x[:1]
    lib.autograd.graph.increment_version(x)
    assert view._version == 1


def test_increment_version_is_detected_in_backward(lib):
    x = leaf(lib) * 1
    y = x * x
    lib.autograd.graph.increment_version(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("wrong", [3, [3], [None]])
def test_increment_version_wants_tensors(lib, wrong):
    with pytest.raises(RuntimeError, match="increment_version expect"):
        lib.autograd.graph.increment_version(wrong)


def test_increment_version_passes_over_inference_tensors(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    lib.autograd.graph.increment_version(x)
    lib.autograd.graph.increment_version([x])
    with pytest.raises(RuntimeError, match="do not track version counter"):
        x._version
