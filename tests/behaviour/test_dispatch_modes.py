"""Dispatch modes: what a handler is given, and what becomes of what it returns."""

import importlib

import pytest


@pytest.fixture
def modes(lib):
    return importlib.import_module(lib.__name__ + ".utils._python_dispatch")


@pytest.fixture
def handling(modes):
    """A mode whose handler is a function of (func, args, kwargs)."""

    class Handling(modes.TorchDispatchMode):
        def __init__(self, handler):
            super().__init__()
            self.handler = handler

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return self.handler(func, args, kwargs or {})

    return Handling


@pytest.fixture
def logging(handling):
    """A mode that calls what it is given and notes its name."""

    def make():
        names = []

        def handler(func, args, kwargs):
            names.append(str(func))
            return func(*args, **kwargs)

        mode = handling(handler)
        mode.names = names
        return mode

    return make


# What a handler is given


def test_the_function_is_an_overload_of_ops(lib, handling):
    seen = []

    def handler(func, args, kwargs):
        seen.append(func)
        return func(*args, **kwargs)

    x = lib.ones(2, 3)
    with handling(handler):
        x + x
        x.mm(x.detach().view(3, 2))
        x.relu()
    assert lib.ops.aten.add.Tensor is seen[0]
    assert lib.ops.aten.view.default in seen
    assert lib.ops.aten.mm.default in seen
    assert seen[-1] is lib.ops.aten.relu.default


def test_schema_says_what_is_written(lib, handling):
    written = []

    def handler(func, args, kwargs):
        for i, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.append((str(func), argument.name, args[i]))
        return func(*args, **kwargs)

    x = lib.ones(2)
    with handling(handler):
        x.mul_(2)
        x + 1
        x.copy_(x * 3)
    assert [(name, argument) for name, argument, _ in written] == [
        ("aten.mul_.Tensor", "self"),
        ("aten.copy_.default", "self"),
    ]
    assert all(t is x for _, _, t in written)
    assert x.tolist() == [6.0, 6.0]


def test_arguments_at_their_defaults_are_left_out(lib, handling):
    seen = []

    def handler(func, args, kwargs):
        seen.append((len(args), dict(kwargs)))
        return func(*args, **kwargs)

    x = lib.ones(2, 3)
    with handling(handler):
        lib.add(x, x)
        lib.add(x, x, alpha=2)
        lib.add(x, x, alpha=1)
        lib.cumsum(x, 0)
    assert seen == [(2, {}), (2, {"alpha": 2}), (2, {}), (2, {})]


def test_nothing_is_recorded_inside(lib, handling):
    seen = []

    def handler(func, args, kwargs):
        seen.append((args[0].requires_grad, (args[0] * 1).requires_grad))
        return func(*args, **kwargs)

    x = lib.ones(2, requires_grad=True)
    with handling(handler):
        y = x.sin()
    assert seen == [(True, False)]
    assert y.grad_fn.name() == "SinBackward0"


def test_backward_passes_through(lib, logging):
    x = lib.ones(2, requires_grad=True)
    y = x.sin().sum()
    with logging() as mode:
        y.backward()
    assert "aten.mul.Tensor" in mode.names
    assert "aten.cos.default" in mode.names


def test_composite_functions_are_taken_apart(lib, logging):
    x = lib.ones(2, 3)
    with logging() as mode:
        lib.matmul(x, x.t())
    assert mode.names[-1] == "aten.mm.default"
    assert not any("matmul" in name for name in mode.names)


def test_multiple_results(lib, logging):
    x = lib.tensor([[1.0, 3.0], [2.0, 0.0]], requires_grad=True)
    with logging() as mode:
        values, indices = x.max(1)
        parts = x.split(1)
        pieces = x.unbind(1)
    assert mode.names == ["aten.max.dim", "aten.split.Tensor", "aten.unbind.int"]
    assert values.tolist() == [3.0, 2.0]
    assert indices.tolist() == [1, 0]
    assert [part.tolist() for part in parts] == [[[1.0, 3.0]], [[2.0, 0.0]]]
    assert [piece.tolist() for piece in pieces] == [[1.0, 2.0], [3.0, 0.0]]
    (values.sum() + parts[1].sum() + pieces[0].sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [3.0, 1.0]]


def test_functions_that_make_and_read_tensors(lib, logging):
    x = lib.ones(2)
    with logging() as mode:
        made = lib.zeros(2, 3), lib.full((2,), 1.5), lib.arange(3), lib.rand(2), lib.eye(2)
        like = lib.zeros_like(x), x.new_ones(4)
        drawn = lib.empty(3).normal_()
        number = x.sum().item()
        alias = x.detach()
    assert mode.names == [
        "aten.zeros.default", "aten.full.default", "aten.arange.default", "aten.rand.default",
        "aten.eye.default", "aten.zeros_like.default", "aten.new_ones.default",
        "aten.empty.memory_format", "aten.normal_.default", "aten.sum.default",
        "aten._local_scalar_dense.default", "aten.detach.default",
    ]  # fmt: skip
    assert made[2].tolist() == [0, 1, 2]
    assert like[1].tolist() == [1.0] * 4
    assert (number, drawn.shape, drawn._version) == (2.0, (3,), 1)
    alias.add_(1)
    assert (x.tolist(), x._version) == ([2.0, 2.0], 1)


def test_what_factories_are_given(lib, handling):
    seen = []

    def handler(func, args, kwargs):
        seen.append((args, kwargs.get("dtype")))
        return func(*args, **kwargs)

    with handling(handler):
        x = lib.ones(2, 3, dtype=lib.float64, requires_grad=True)
    assert seen == [(([2, 3],), lib.float64)]
    assert x.requires_grad
    assert x.is_leaf


# Nesting


def test_modes_nest(lib, handling):
    order = []

    def named(name):
        def handler(func, args, kwargs):
            order.append(name)
            return func(*args, **kwargs)

        return handling(handler)

    x = lib.zeros(1)
    with named("outer"), named("inner"):
        x.neg()
    assert order == ["inner", "outer"]


def test_a_mode_may_call_other_operators(lib, handling):
    def handler(func, args, kwargs):
        if func is lib.ops.aten.sin.default:
            return args[0].cos()
        return func(*args, **kwargs)

    x = lib.zeros(2)
    with handling(handler):
        assert x.sin().tolist() == [1.0, 1.0]
    assert x.sin().tolist() == [0.0, 0.0]


def test_an_exception_leaves_no_mode_behind(lib, modes, handling):
    def handler(func, args, kwargs):
        raise KeyError("from the handler")

    x = lib.ones(2)
    with pytest.raises(KeyError), handling(handler):
        x.sin()
    assert modes._get_current_dispatch_mode() is None
    assert x.sin().shape == (2,)


def test_the_stack_of_modes(lib, modes, logging):
    outer, inner = logging(), logging()
    x = lib.ones(1)
    with outer, inner:
        assert modes._get_current_dispatch_mode() is inner
        assert modes._get_current_dispatch_mode_stack() == [outer, inner]
        assert modes._len_torch_dispatch_stack() == 2
        with modes._pop_mode_temporarily() as popped:
            assert popped is inner
            x.sin()
        with modes._disable_current_modes() as disabled:
            assert disabled == [inner, outer]
            assert modes._get_current_dispatch_mode() is None
            x.cos()
        assert modes.is_in_torch_dispatch_mode()
        x.exp()
    assert inner.names == ["aten.exp.default"]
    assert outer.names == ["aten.sin.default", "aten.exp.default"]


def test_base_mode_changes_nothing(lib, modes):
    with modes.BaseTorchDispatchMode():
        assert lib.full((2,), 4.0).sqrt().tolist() == [2.0, 2.0]


def test_a_mode_without_handler(lib, modes):
    with pytest.raises(NotImplementedError), modes.TorchDispatchMode():
        lib.ones(1).sin()


# Results


def test_the_program_sees_what_the_handler_returns(lib, handling):
    other = lib.full((3,), 7.0)
    x = lib.ones(2)
    with handling(lambda func, args, kwargs: other):
        assert x.sin() is other
    with handling(lambda func, args, kwargs: args[0]):
        assert x.sin() is x
    with handling(lambda func, args, kwargs: None):
        assert x.sin() is None


def test_results_become_part_of_the_graph(lib, handling):
    x = lib.full((2,), 2.0, requires_grad=True)
    other = lib.full((2,), 7.0)
    with handling(lambda func, args, kwargs: other):
        y = x.sin()
    assert y.tolist() == [7.0, 7.0]
    assert y.grad_fn.name() == "SinBackward0"
    y.sum().backward()
    assert x.grad.tolist() == x.detach().cos().tolist()


def test_a_result_that_has_history(lib, handling):
    source = lib.ones(2, requires_grad=True)
    result = source * 5
    x = lib.full((2,), 2.0, requires_grad=True)
    with handling(lambda func, args, kwargs: result):
        y = x.sin()
    assert y.tolist() == [5.0, 5.0]
    assert y.grad_fn.name() == "SinBackward0"
    y.sum().backward()
    assert x.grad.tolist() == x.detach().cos().tolist()
    assert source.grad is None


def test_a_view_stays_a_view(lib, handling):
    base = lib.ones(4, requires_grad=True)
    with handling(lambda func, args, kwargs: lib.zeros(2, 2)):
        view = base.view(2, 2)
    assert view.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert view._base is base
    assert view.grad_fn.name() == "ViewBackward0"
    view.sum().backward()
    assert base.grad.tolist() == [1.0] * 4


def test_an_in_place_operator_returns_its_target(lib, handling):
    x = lib.ones(2)
    with handling(lambda func, args, kwargs: lib.zeros(3)):
        assert x.add_(1) is x
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_an_in_place_operator_is_one_change(lib, handling, calls):
    def handler(func, args, kwargs):
        for _ in range(calls):
            func(*args, **kwargs)
        return args[0]

    x = lib.ones(2)
    with handling(handler):
        x.add_(1)
    assert x.tolist() == [1.0 + calls] * 2
    assert x._version == 1


def test_in_place_changes_are_recorded(lib, logging):
    x = lib.full((2,), 3.0, requires_grad=True)
    with logging():
        y = x * 2
        y[0] = 5.0
        y.mul_(x)
        y.unsqueeze_(0)
        y.sum().backward()
    assert y.shape == (1, 2)
    assert y.tolist() == [[15.0, 18.0]]
    assert x.grad.tolist() == [5.0, 12.0]


def test_wrong_results(lib, handling):
    x = lib.ones(2)
    with handling(lambda func, args, kwargs: 3):
        with pytest.raises(RuntimeError, match="Unable to cast 3 to Tensor"):
            x.sin()
        with pytest.raises(RuntimeError):
            x.max(0)
    with (
        handling(lambda func, args, kwargs: NotImplemented),
        pytest.raises(TypeError, match="returned NotImplemented"),
    ):
        x.sin()


def test_a_list_will_do_for_several_results(lib, handling):
    x = lib.ones(2)
    with handling(lambda func, args, kwargs: [x, x]):
        values, indices = x.max(0)
    assert values.tolist() == [1.0, 1.0]
    assert indices.tolist() == [1.0, 1.0]


# Other parts of the library


def test_saved_tensor_hooks_see_the_results(lib, logging):
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t

    x = lib.full((2,), 2.0, requires_grad=True)
    with logging(), lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        (x * x).sum().backward()
    assert packed == [[2.0, 2.0], [2.0, 2.0]]
    assert x.grad.tolist() == [4.0, 4.0]


def test_forward_mode_passes_through(lib, logging):
    forward_ad = lib.autograd.forward_ad
    with logging() as mode, forward_ad.dual_level():
        dual = forward_ad.make_dual(lib.full((2,), 3.0), lib.ones(2))
        mode.names.clear()
        tangent = forward_ad.unpack_dual(dual * dual).tangent
    assert tangent.tolist() == [6.0, 6.0]
    assert mode.names.count("aten.mul.Tensor") >= 2


def test_a_batch_is_seen_as_one(lib, handling):
    shapes = []

    def handler(func, args, kwargs):
        out = func(*args, **kwargs)
        if func is lib.ops.aten.exp.default:
            shapes.append(tuple(args[0].shape))
        return out

    with handling(handler):
        out = lib.func.vmap(lambda x: x.exp())(lib.zeros(5, 3))
    assert shapes == [(5, 3)]
    assert out.tolist() == [[1.0] * 3] * 5


@pytest.mark.parametrize("name", ["gelu", "silu", "elu", "leaky_relu", "hardtanh", "softplus"])
def test_activations_have_their_own_names(lib, logging, name):
    x = lib.ones(2)
    with logging() as mode:
        getattr(lib.nn.functional, name)(x)
    assert mode.names == [f"aten.{name}.default"]
    assert str(getattr(lib.ops.aten, name).default) == f"aten.{name}.default"
