"""The node of a custom Function, and Functions under grad modes."""

import copy
import pickle
import threading

import pytest

from custom_functions import double, exponential, make, product


def leaf(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


# The node


def test_context_is_the_node(lib):
    contexts = []

    def forward(ctx, x):
        contexts.append(ctx)
        return x * 2

    def backward(ctx, g):
        contexts.append(ctx)
        return g

    y = make(lib, forward, backward).apply(leaf(lib))
    y.sum().backward()
    assert contexts[0] is contexts[1] is y.grad_fn


def test_name_and_class_of_the_node(lib):
    f = double(lib)
    node = f.apply(leaf(lib)).grad_fn
    assert node.name() == "DoubleBackward"
    assert type(node).__name__ == "DoubleBackward"
    assert type(node) is f._backward_cls
    assert f._backward_cls._forward_cls is f
    assert "DoubleBackward object" in repr(node)


def test_bases_of_the_node(lib):
    node = double(lib).apply(leaf(lib)).grad_fn
    module = lib.autograd.function
    assert isinstance(node, module.BackwardCFunction)
    assert isinstance(node, module.FunctionCtx)
    assert isinstance(node, lib.autograd.graph.Node)
    assert type(lib.autograd.Function) is module.FunctionMeta


def test_every_function_has_a_node_class_of_its_own(lib):
    assert double(lib)._backward_cls is not double(lib)._backward_cls
    assert lib.autograd.Function._backward_cls.__name__ == "FunctionBackward"


def test_next_functions(lib):
    x, y = leaf(lib), leaf(lib) * 2
    node = make(lib, lambda ctx, *args: args[0] * 2).apply(x, 3, lib.ones(3), y).grad_fn
    (first, nothing, last) = node.next_functions
    assert first[0].variable is x and first[1] == 0
    assert nothing == (None, 0)
    assert last[0] is y.grad_fn


def test_next_functions_know_the_output_number(lib):
    parts = leaf(lib).unbind()
    node = double(lib).apply(parts[2]).grad_fn
    assert node.next_functions == ((parts[0].grad_fn, 2),)


def test_next_functions_are_there_in_forward(lib):
    seen = []

    def forward(ctx, x):
        seen.append((ctx.name(), len(ctx.next_functions)))
        return x * 2

    f = make(lib, forward)
    f.apply(leaf(lib))
    f.apply(lib.ones(3))
    assert seen == [("CustomBackward", 1), ("CustomBackward", 0)]


def test_input_metadata(lib):
    y = make(lib, lambda ctx, x: (x.sum(), 3, lib.outer(x, x))).apply(leaf(lib))
    metadata = y[0].grad_fn._input_metadata
    assert [tuple(item.shape) for item in metadata] == [(), (), (3, 3)]
    assert metadata[2].dtype == lib.float32


def test_metadata(lib):
    node = double(lib).apply(leaf(lib)).grad_fn
    assert node.metadata == {}
    node.metadata["key"] = 1
    assert node.metadata == {"key": 1}


def test_attributes_on_ctx(lib):
    node = double(lib).apply(leaf(lib)).grad_fn
    node.anything = [1, 2]
    assert node.anything == [1, 2]
    del node.anything
    with pytest.raises(AttributeError):
        node.anything


@pytest.mark.parametrize("name", ["inputs", "arguments", "results", "boxed", "accessed", "args"])
def test_attributes_of_any_name(lib, name):
    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            setattr(ctx, name, (x, factor))
            ctx.save_for_backward(x)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            x, factor = getattr(ctx, name)
            assert ctx.saved_tensors[0] is x
            return g * factor, None

    x = leaf(lib)
    Scaled.apply(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3.0] * len(x)


def test_node_hooks(lib):
    x = leaf(lib)
    y = double(lib).apply(x)
    seen = []
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", gs[0].tolist())))
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append(("post", inputs[0].tolist(), outputs[0].tolist()))
    )
    y.sum().backward()
    assert seen == [("pre", [1.0] * 3), ("post", [2.0] * 3, [1.0] * 3)]


def test_node_hooks_replace_gradients(lib):
    x = leaf(lib)
    y = double(lib).apply(x)
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1,))
    y.sum().backward()
    assert x.grad.tolist() == [21.0] * 3


def test_hooks_of_tensors_around_a_function(lib):
    x = leaf(lib)
    y = double(lib).apply(x)
    order = []
    x.register_hook(lambda g: order.append("input"))
    y.register_hook(lambda g: order.append("output"))
    y.sum().backward()
    assert order == ["output", "input"]


def test_retain_grad_of_the_output(lib):
    y = double(lib).apply(leaf(lib))
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0] * 3


def test_apply_of_the_node(lib):
    node = double(lib).apply(leaf(lib)).grad_fn
    assert node.apply(lib.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_node_is_not_copied(lib, way):
    with pytest.raises(TypeError, match="cannot pickle 'DoubleBackward' object"):
        way(double(lib).apply(leaf(lib)).grad_fn)


def test_materialize_grads_is_a_bool(lib):
    node = double(lib).apply(leaf(lib)).grad_fn
    node.materialize_grads = False
    with pytest.raises(TypeError, match="set_materialize_grads"):
        node.materialize_grads = 3
    with pytest.raises(TypeError, match="set_materialize_grads"):
        node.set_materialize_grads(None)


def test_node_always_requires_grad(lib):
    assert double(lib).apply(leaf(lib)).grad_fn.requires_grad is True


def test_gradient_edge_of_an_output(lib):
    x = leaf(lib)
    y = double(lib).apply(x)
    edge = lib.autograd.graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    del y
    (gradient,) = lib.autograd.grad(edge, x, lib.ones(3))
    assert gradient.tolist() == [2.0] * 3


def test_capturing_the_gradient_of_an_output(lib):
    x = leaf(lib)
    y = exponential(lib).apply(x)
    (gradient,) = lib.autograd.grad((y * 3).sum(), y)
    assert gradient.tolist() == [3.0] * 3


# Modes


def test_under_no_grad(lib):
    with lib.no_grad():
        y = product(lib).apply(leaf(lib), leaf(lib))
    assert not y.requires_grad and y.grad_fn is None


def test_without_input_that_requires_grad(lib):
    y = product(lib).apply(lib.ones(3), lib.ones(3))
    assert not y.requires_grad and y.grad_fn is None


def test_under_inference_mode(lib):
    with lib.inference_mode():
        y = product(lib).apply(leaf(lib), leaf(lib))
    assert y.is_inference() and not y.requires_grad


def test_inference_tensor_as_input(lib):
    with lib.inference_mode():
        c = lib.ones(3)
    x = leaf(lib)
    f = make(lib, lambda ctx, x, c: x * c, lambda ctx, g: (g * 4, None))
    f.apply(x, c).sum().backward()
    assert x.grad.tolist() == [4.0] * 3


def test_meta_tensors(lib):
    x = lib.ones(3, device="meta", requires_grad=True)
    y = double(lib).apply(x)
    assert y.device.type == "meta"
    y.backward(lib.ones(3, device="meta"))
    assert x.grad.device.type == "meta"
    assert tuple(x.grad.shape) == (3,)


def test_half_and_double(lib):
    for dtype in (lib.float16, lib.bfloat16, lib.float64):
        x = lib.ones(3, dtype=dtype, requires_grad=True)
        double(lib).apply(x).sum().backward()
        assert x.grad.dtype == dtype
        assert x.grad.tolist() == [2.0] * 3


def test_threads(lib):
    f = exponential(lib)
    failures = []

    def work(seed):
        try:
            for _ in range(50):
                x = lib.full((4,), float(seed), requires_grad=True)
                y = f.apply(f.apply(x * 0))
                y.sum().backward()
                assert abs(x.grad.sum().item()) == 0
                x.grad = None
                f.apply(x * 0.1).sum().backward()
                expected = 0.1 * (lib.full((4,), float(seed)) * 0.1).exp()
                assert (x.grad - expected).abs().max().item() < 1e-5
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_one_node_in_several_threads(lib):
    x = leaf(lib)
    y = product(lib).apply(x, x).sum()
    threads = [
        threading.Thread(target=lambda: y.backward(retain_graph=True)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [16.0, 32.0, 48.0]
