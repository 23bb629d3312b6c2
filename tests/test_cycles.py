"""The cyclic collector looks at a graph only once a cycle can lead through it."""

import gc
import warnings
import weakref

import pytest

import wengert
from custom_functions import double, make
from wengert.autograd.graph import saved_tensors_hooks
from wengert.utils.checkpoint import checkpoint

compiled_only = pytest.mark.skipif(
    not wengert.__compiled__, reason="only compiled objects can be hidden"
)


def chain(x, length=3):
    y = x
    for _ in range(length):
        y = y * 2
    return y


@compiled_only
def test_plain_graph_is_hidden():
    node = chain(wengert.ones(2, requires_grad=True)).grad_fn
    while node.name() != "AccumulateGrad":
        assert not gc.is_tracked(node)
        node = node.next_functions[0][0]


@compiled_only
def test_result_is_hidden_until_its_node_is_looked_at():
    y = wengert.ones(2, requires_grad=True) * 2
    assert not gc.is_tracked(y)
    assert y.grad_fn is not None
    assert gc.is_tracked(y)


def test_hook_shows_its_node_and_what_it_was_computed_from():
    y = chain(wengert.ones(2, requires_grad=True))
    y.register_hook(lambda g: None)
    node = y.grad_fn
    while node.name() != "AccumulateGrad":
        assert gc.is_tracked(node)
        node = node.next_functions[0][0]


def test_what_is_recorded_after_a_hook_is_shown():
    y = wengert.ones(2, requires_grad=True) * 2
    y.register_hook(lambda g: None)
    z = chain(y)
    assert gc.is_tracked(z)
    assert gc.is_tracked(z.grad_fn)


def test_graph_with_packed_values_is_shown():
    x = wengert.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda t: [t], lambda box: box[0]):
        y = x.exp()
    assert gc.is_tracked(y.grad_fn)


@pytest.mark.parametrize("function", [wengert.exp, lambda x: x * x], ids=["result", "operand"])
def test_cycle_through_a_packed_tensor_is_freed(function):
    x = wengert.ones(2, requires_grad=True) * 2
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = function(x)
    x.later = y  # leads from the packed operand back to the node
    references = [weakref.ref(x), weakref.ref(y)]
    del x, y
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_attribute_shows_the_tensor_it_is_set_to():
    x = wengert.ones(2, requires_grad=True)
    x.result = x * 2
    assert gc.is_tracked(x)
    assert gc.is_tracked(x.result)
    assert gc.is_tracked(x.result.grad_fn)


def test_gradient_with_a_graph_is_shown():
    x = wengert.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it comes once per process
        (x * x).sum().backward(create_graph=True)
    assert gc.is_tracked(x.grad)
    assert gc.is_tracked(x.grad.grad_fn)
    x.grad = None


PROGRAMS = {
    "hook of a leaf": """
def hook(g): pass
x.register_hook(hook)
y = x * 2
""",
    "hook of a leaf for its gradient": """
def hook(x): pass
x.register_post_accumulate_grad_hook(hook)
y = x[None].exp()
""",
    "list beside a leaf": """
x.results = []
x.results.append(x * 2)
""",
    "operand of a packed value": """
def pack(t): return t.shape
with saved_tensors_hooks(pack, wengert.ones):
    y = x.exp().sin()
""",
    "checkpoint": """
def function(x): return x.exp().sin()
y = checkpoint(function, x, use_reentrant=False)
""",
    "operand changed in place": """
y = x * 2
def hook(g): pass
y.register_hook(hook)
z = y * 3
z.atan2_(z)
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_cycle_through_the_names_of_a_program_is_freed(program):
    """Functions that a graph holds refer to the names beside them, and so to its results."""
    names = {
        "x": wengert.ones(2, requires_grad=True),
        "wengert": wengert,
        "checkpoint": checkpoint,
        "saved_tensors_hooks": saved_tensors_hooks,
        "__name__": "program",
    }
    exec(program, names)
    reference = weakref.ref(names["x"])
    del names
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.mul_(y),
        lambda y: y[:1].mul_(y[1:]),
        lambda y: y[0].atan2_(y[1]),
        lambda y: y.mul_(2).mul_(y),
        lambda y: y.add_(y * y),
        lambda y: y.add_(y[:1].sin()),
        lambda y: y[:1].add_(y.sin()[1:].sum()),
    ],
    ids=["itself", "another part", "parts", "twice", "result", "result of a part", "part"],
)
def test_tensor_that_is_changed_by_itself_is_freed(change):
    """Its new node leads to one that keeps it, as an operand."""
    y = wengert.ones(2, requires_grad=True) * 2
    change(y)
    reference = weakref.ref(y)
    del y
    gc.collect()
    assert reference() is None


def closed_over(made):
    return make(wengert, lambda ctx, x: x * 2, lambda ctx, g: g * 2 if made else None)


def test_cycle_through_a_closure_of_a_custom_function_is_freed():
    made = []
    function = closed_over(made)
    made.append(function.apply(wengert.ones(1, requires_grad=True)))
    reference = weakref.ref(function)
    del function, made
    gc.collect()
    assert reference() is None


def test_cycle_through_the_names_beside_a_custom_function_is_freed():
    names = {"make": make, "wengert": wengert, "__name__": "program"}
    exec("Doubled = make(wengert, lambda ctx, x: x * 2, lambda ctx, g: g * 2)", names)
    names["made"] = names["Doubled"].apply(wengert.ones(1, requires_grad=True))
    reference = weakref.ref(names["Doubled"])
    del names
    gc.collect()
    assert reference() is None


class Lasting(wengert.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @wengert.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2


@compiled_only
def test_graph_of_a_custom_function_without_closures_is_hidden():
    class Heir(closed_over([])):
        pass

    x = wengert.ones(1, requires_grad=True)
    assert not gc.is_tracked(double(wengert).apply(x).grad_fn)
    assert gc.is_tracked(Heir.apply(x).grad_fn)


@compiled_only
def test_graph_of_a_custom_function_of_a_module_is_hidden():
    assert not gc.is_tracked(Lasting.apply(wengert.ones(1, requires_grad=True)).grad_fn)
