"""The recorded graph as seen from Python: nodes, edges, names, saved values."""

import gc
import math
import weakref

import pytest


def name_of(node):
    """The node's name without a namespace in front."""
    return node.name().split("::")[-1]


def next_names(node):
    return [None if edge[0] is None else name_of(edge[0]) for edge in node.next_functions]


# Names

NAMES = [
    ("AddBackward0", lambda lib, v, m: v + v),
    ("AddBackward0", lambda lib, v, m: v + 1),
    ("AddBackward0", lambda lib, v, m: 1 + v),
    ("SubBackward0", lambda lib, v, m: v - v),
    ("RsubBackward1", lambda lib, v, m: 1 - v),
    ("MulBackward0", lambda lib, v, m: v * v),
    ("MulBackward0", lambda lib, v, m: 2 * v),
    ("DivBackward0", lambda lib, v, m: v / v),
    ("DivBackward0", lambda lib, v, m: v / 2),
    ("NegBackward0", lambda lib, v, m: -v),
    ("PowBackward0", lambda lib, v, m: v**2),
    ("PowBackward1", lambda lib, v, m: v**v),
    ("PowBackward2", lambda lib, v, m: 2**v),
    ("AbsBackward0", lambda lib, v, m: v.abs()),
    ("ExpBackward0", lambda lib, v, m: v.exp()),
    ("Expm1Backward0", lambda lib, v, m: v.expm1()),
    ("LogBackward0", lambda lib, v, m: v.log()),
    ("Log1PBackward0", lambda lib, v, m: v.log1p()),
    ("SqrtBackward0", lambda lib, v, m: v.sqrt()),
    ("RsqrtBackward0", lambda lib, v, m: v.rsqrt()),
    ("SinBackward0", lambda lib, v, m: v.sin()),
    ("CosBackward0", lambda lib, v, m: v.cos()),
    ("TanBackward0", lambda lib, v, m: v.tan()),
    ("TanhBackward0", lambda lib, v, m: v.tanh()),
    ("SigmoidBackward0", lambda lib, v, m: v.sigmoid()),
    ("ReluBackward0", lambda lib, v, m: v.relu()),
    ("ErfBackward0", lambda lib, v, m: v.erf()),
    ("ClampBackward1", lambda lib, v, m: v.clamp(0, 1)),
    ("MaximumBackward0", lambda lib, v, m: lib.maximum(v, v)),
    ("WhereBackward0", lambda lib, v, m: lib.where(v > 0, v, v)),
    ("SumBackward0", lambda lib, v, m: v.sum()),
    ("SumBackward1", lambda lib, v, m: m.sum(0)),
    ("MeanBackward0", lambda lib, v, m: v.mean()),
    ("MeanBackward1", lambda lib, v, m: m.mean(0)),
    ("ProdBackward0", lambda lib, v, m: v.prod()),
    ("VarBackward0", lambda lib, v, m: v.var()),
    ("StdBackward0", lambda lib, v, m: v.std()),
    ("AmaxBackward0", lambda lib, v, m: m.amax(0)),
    ("MaxBackward0", lambda lib, v, m: m.max(0)[0]),
    ("MaxBackward1", lambda lib, v, m: m.max()),
    ("LogsumexpBackward0", lambda lib, v, m: m.logsumexp(0)),
    ("SoftmaxBackward0", lambda lib, v, m: m.softmax(0)),
    ("LogSoftmaxBackward0", lambda lib, v, m: m.log_softmax(0)),
    ("CumsumBackward0", lambda lib, v, m: v.cumsum(0)),
    ("ViewBackward0", lambda lib, v, m: m.view(9)),
    ("ViewBackward0", lambda lib, v, m: m.reshape(9)),
    ("ExpandBackward0", lambda lib, v, m: v.expand(2, 3)),
    ("PermuteBackward0", lambda lib, v, m: m.permute(1, 0)),
    ("TransposeBackward0", lambda lib, v, m: m.transpose(0, 1)),
    ("TBackward0", lambda lib, v, m: m.t()),
    ("SqueezeBackward0", lambda lib, v, m: m.squeeze()),
    ("UnsqueezeBackward0", lambda lib, v, m: m.unsqueeze(0)),
    ("SelectBackward0", lambda lib, v, m: m[0]),
    ("SliceBackward0", lambda lib, v, m: m[:2]),
    ("AsStridedBackward0", lambda lib, v, m: m.as_strided((2,), (1,))),
    ("DiagonalBackward0", lambda lib, v, m: m.diagonal()),
    ("UnbindBackward0", lambda lib, v, m: m.unbind()[0]),
    ("SplitBackward0", lambda lib, v, m: m.split(1)[0]),
    ("CatBackward0", lambda lib, v, m: lib.cat([v, v])),
    ("StackBackward0", lambda lib, v, m: lib.stack([v, v])),
    ("FlipBackward0", lambda lib, v, m: v.flip(0)),
    ("RollBackward0", lambda lib, v, m: v.roll(1)),
    ("TrilBackward0", lambda lib, v, m: m.tril()),
    ("RepeatBackward0", lambda lib, v, m: v.repeat(2)),
    ("IndexBackward0", lambda lib, v, m: m[[0, 1]]),
    ("MmBackward0", lambda lib, v, m: m.mm(m)),
    ("MmBackward0", lambda lib, v, m: m @ m),
    ("MvBackward0", lambda lib, v, m: m @ v),
    ("DotBackward0", lambda lib, v, m: v @ v),
    ("BmmBackward0", lambda lib, v, m: m[None].bmm(m[None])),
    ("AddmmBackward0", lambda lib, v, m: lib.addmm(m, m, m)),
    ("GatherBackward0", lambda lib, v, m: v.gather(0, lib.tensor([0]))),
    ("IndexSelectBackward0", lambda lib, v, m: v.index_select(0, lib.tensor([0]))),
    ("MaskedFillBackward0", lambda lib, v, m: v.masked_fill(v > 0, 1.0)),
    ("SortBackward0", lambda lib, v, m: v.sort()[0]),
    ("TopkBackward0", lambda lib, v, m: v.topk(1)[0]),
    ("CloneBackward0", lambda lib, v, m: v.clone()),
    ("ToCopyBackward0", lambda lib, v, m: v.double()),
]


@pytest.mark.parametrize(("name", "make"), NAMES)
def test_node_name(lib, name, make):
    v = lib.ones(3, requires_grad=True)
    m = lib.ones(3, 3, requires_grad=True)
    assert make(lib, v, m).grad_fn.name() == name


@pytest.mark.parametrize("name", ["exp", "sin", "sum", "view"])
def test_class_of_a_node_has_its_name(lib, name):
    x = lib.ones(4, requires_grad=True)
    node = (x.view(2, 2) if name == "view" else getattr(x, name)()).grad_fn
    assert type(node).__name__ == node.name()


def test_repr_of_a_node_shows_its_name(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert "MulBackward0" in repr(y.grad_fn)


# Edges


def test_edges_of_two_leaves(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    node = (x * y).grad_fn
    assert next_names(node) == ["AccumulateGrad", "AccumulateGrad"]
    assert [edge[0].variable for edge in node.next_functions] == [x, y]


def test_edges_are_a_tuple_of_pairs(lib):
    node = (lib.ones(2, requires_grad=True) * 2).grad_fn
    assert type(node.next_functions) is tuple
    assert all(type(edge) is tuple and len(edge) == 2 for edge in node.next_functions)


def test_edge_to_a_constant_is_empty(lib):
    x, constant = lib.ones(2, requires_grad=True), lib.ones(2)
    assert (x * constant).grad_fn.next_functions[1] == (None, 0)
    assert (constant * x).grad_fn.next_functions[0] == (None, 0)


def test_edge_to_an_intermediate_is_its_node(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    z = y.sin()
    assert z.grad_fn.next_functions == ((y.grad_fn, 0),)


def test_unary_node_has_one_edge(lib):
    y = lib.ones(2, requires_grad=True).exp()
    assert len(y.grad_fn.next_functions) == 1


@pytest.mark.parametrize(
    ("count", "make"),
    [
        (2, lambda lib, x: x * 2),
        (2, lambda lib, x: x + 2),
        (2, lambda lib, x: 2 / x),
        (1, lambda lib, x: x**2),
        (1, lambda lib, x: 2**x),
        (2, lambda lib, x: x**x),
        (1, lambda lib, x: 2 - x),
        (2, lambda lib, x: lib.rsub(x, x)),
        (1, lambda lib, x: x % 2),
        (2, lambda lib, x: x % x.detach()),
        (1, lambda lib, x: x.fmod(2)),
        (1, lambda lib, x: x.clamp(0, 1)),
        (3, lambda lib, x: x.clamp(lib.zeros(()), lib.ones(()))),
        (2, lambda lib, x: x.lerp(x, 0.5)),
        (3, lambda lib, x: x.lerp(x, x)),
        (1, lambda lib, x: x.masked_fill(x > 0, 2.0)),
        (2, lambda lib, x: x.masked_fill(x > 0, lib.tensor(2.0))),
        (1, lambda lib, x: x.index_fill(0, lib.tensor([0]), 2.0)),
        (1, lambda lib, x: x.masked_select(x > 0)),
        (1, lambda lib, x: x.take(lib.tensor([0]))),
        (1, lambda lib, x: x.clone().fill_(2.0)),
        (1, lambda lib, x: lib.nn.functional.embedding(lib.tensor([0]), x.view(2, 1))),
    ],
)
def test_number_of_edges(lib, count, make):
    """A number has an edge, without a node, where PyTorch makes it a tensor first."""
    node = make(lib, lib.ones(2, requires_grad=True)).grad_fn
    assert len(node.next_functions) == count


def test_gradient_of_a_power_of_a_number(lib):
    """The one edge of the node belongs to the exponent."""
    x = lib.tensor([0.0, 1.0], requires_grad=True)
    y = (x * 1, x * 2)
    (2 ** (lib.stack(y).unbind(0)[1])).sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * math.log(2), 8 * math.log(2)])


def test_edges_of_cat_follow_its_operands(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    node = lib.cat([y, lib.ones(1), x]).grad_fn
    assert next_names(node) == ["AccumulateGrad", None, "AccumulateGrad"]
    assert node.next_functions[0][0].variable is y
    assert node.next_functions[2][0].variable is x


def test_edge_names_the_output_of_the_node(lib):
    x = lib.ones(3, requires_grad=True)
    parts = (x * 1).unbind()
    for i, part in enumerate(parts):
        assert part.output_nr == i
        assert part.exp().grad_fn.next_functions == ((part.grad_fn, i),)


def test_outputs_of_one_call_share_the_node(lib):
    parts = (lib.ones(3, requires_grad=True) * 1).unbind()
    assert parts[0].grad_fn is parts[1].grad_fn is parts[2].grad_fn


def test_grad_fn_is_always_the_same_object(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert y.grad_fn is y.grad_fn


def test_node_reached_by_two_ways_is_one_object(lib):
    x = lib.ones(2, requires_grad=True)
    shared = x * 2
    left, right = shared.exp(), shared.sin()
    assert left.grad_fn.next_functions[0][0] is right.grad_fn.next_functions[0][0]


def test_whole_graph_can_be_walked(lib):
    x = lib.ones(3, requires_grad=True)
    root = (x.exp() * x.sin()).sum().grad_fn
    names, pending, seen = [], [root], set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        names.append(name_of(node))
        pending.extend(edge[0] for edge in node.next_functions if edge[0] is not None)
    assert sorted(names) == [
        "AccumulateGrad",
        "ExpBackward0",
        "MulBackward0",
        "SinBackward0",
        "SumBackward0",
    ]


def test_graph_can_be_walked_after_backward(lib):
    x = lib.ones(3, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    assert next_names(y.grad_fn) == ["ExpBackward0"]
    assert next_names(y.grad_fn.next_functions[0][0]) == ["AccumulateGrad"]


# The accumulator


def test_accumulator_of_a_leaf_is_one_object(lib):
    x = lib.ones(2, requires_grad=True)
    first, second = x * 1, x * 2
    assert first.grad_fn.next_functions[0][0] is second.grad_fn.next_functions[0][0]


def test_accumulator_knows_its_leaf(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    node = y.grad_fn.next_functions[0][0]
    assert name_of(node) == "AccumulateGrad"
    assert type(node).__name__ == "AccumulateGrad"
    assert node.variable is x
    assert node.next_functions == ()


def test_leaf_has_no_grad_fn_although_it_has_an_accumulator(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    assert y.grad_fn is not None
    assert x.grad_fn is None


def test_hook_on_accumulator(lib):
    # PyTorch forgets it with the graph the accumulator was taken from; ours stays with the leaf.
    x = lib.ones(2, requires_grad=True)
    y = x * 1
    calls = []
    y.grad_fn.next_functions[0][0].register_hook(lambda gi, go: calls.append(1))
    del y
    gc.collect()
    (x * 1).sum().backward()
    assert calls == ([1] if lib.__name__ == "wengert" else [])


# Node objects


def test_node_is_a_node(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert isinstance(y.grad_fn, lib.autograd.graph.Node)
    assert isinstance(y.grad_fn.next_functions[0][0], lib.autograd.graph.Node)


def test_other_objects_are_no_nodes(lib):
    assert not isinstance(lib.ones(2), lib.autograd.graph.Node)
    assert not isinstance(3, lib.autograd.graph.Node)


def test_metadata_is_a_dictionary_that_stays(lib):
    y = lib.ones(2, requires_grad=True) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["layer"] = 3
    assert y.grad_fn.metadata == {"layer": 3}


def test_metadata_of_nodes_is_separate(lib):
    x = lib.ones(2, requires_grad=True)
    y, z = x * 2, x * 3
    y.grad_fn.metadata["layer"] = 3
    assert z.grad_fn.metadata == {}


def test_metadata_survives_the_tensor(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.metadata["layer"] = 3
    z = y.exp()
    del y
    gc.collect()
    assert z.grad_fn.next_functions[0][0].metadata == {"layer": 3}


def test_nodes_are_numbered_by_age(lib):
    x = lib.ones(2, requires_grad=True)
    first = x * 2
    second = x * 3
    third = first * second
    numbers = [t.grad_fn._sequence_nr() for t in (first, second, third)]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == 3


def test_unknown_attribute_is_refused(lib):
    y = lib.ones(2, requires_grad=True) * 2
    with pytest.raises(AttributeError):
        y.grad_fn.no_such_attribute


def test_nodes_can_be_hashed(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    assert len({y.grad_fn, y.grad_fn, y.grad_fn.next_functions[0][0]}) == 2


def test_node_may_be_called(lib):
    x, y = lib.tensor([2.0], requires_grad=True), lib.tensor([3.0], requires_grad=True)
    gradients = (x * y).grad_fn(lib.ones(1))
    assert [g.tolist() for g in gradients] == [[3.0], [2.0]]


# Saved values


def test_saved_operands_of_mul(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    node = (x * y).grad_fn
    assert node._saved_self is x
    assert node._saved_other is y


def test_operand_that_is_not_needed_is_not_saved(lib):
    x, constant = lib.ones(2, requires_grad=True), lib.ones(2)
    node = (x * constant).grad_fn
    assert node._saved_other is constant
    assert node._saved_self is None


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt"])
def test_saved_result(lib, name):
    x = lib.tensor([0.5, 1.5], requires_grad=True)
    y = getattr(x, name)()
    saved = y.grad_fn._saved_result
    assert saved.tolist() == y.tolist()
    assert saved.grad_fn is y.grad_fn


@pytest.mark.parametrize("name", ["sin", "cos", "log", "abs"])
def test_saved_self(lib, name):
    x = lib.tensor([0.5, 1.5], requires_grad=True)
    assert getattr(x, name)().grad_fn._saved_self is x


def test_saved_intermediate_keeps_its_history(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    z = y.sin()
    assert z.grad_fn._saved_self.grad_fn is y.grad_fn


def test_saved_exponent(lib):
    x = lib.ones(2, requires_grad=True)
    assert (x**3).grad_fn._saved_exponent == 3


def test_saved_dimension(lib):
    node = lib.ones(2, 3, requires_grad=True).sum(0, keepdim=True).grad_fn
    assert tuple(node._saved_dim) == (0,)
    assert node._saved_keepdim is True


def test_saved_values_after_retained_backward(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.sin()
    y.sum().backward(retain_graph=True)
    assert y.grad_fn._saved_self is x


def test_saved_values_after_backward_are_freed(lib):
    y = lib.ones(2, requires_grad=True).sin()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_self


def test_freed_result_is_refused(lib):
    y = lib.ones(2, requires_grad=True).exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result


def test_saved_constant_is_released_by_backward(lib):
    x = lib.ones(2, requires_grad=True)
    constant = lib.ones(2)
    y = (x * constant).sum()
    reference = weakref.ref(constant)
    del constant
    gc.collect()
    y.backward()
    gc.collect()
    assert reference() is None


def test_saved_result_makes_no_cycle(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    reference = weakref.ref(y)
    gc.collect()
    gc.disable()
    try:
        del y
        assert reference() is None
    finally:
        gc.enable()


# Recording is limited to what is needed


def test_constants_record_nothing(lib):
    assert (lib.ones(2) * lib.ones(2)).grad_fn is None


def test_no_grad_records_nothing(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        assert (x * x).grad_fn is None


def test_detach_cuts_the_graph(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp().detach() * x
    assert next_names(y.grad_fn) == [None, "AccumulateGrad"]
