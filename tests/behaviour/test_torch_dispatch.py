"""Subclasses of Tensor that handle operators below autograd, with and without own memory."""

import copy
import importlib

import pytest


@pytest.fixture
def tree_map(lib):
    return importlib.import_module(lib.__name__ + ".utils._pytree").tree_map


@pytest.fixture
def wrapper(lib, tree_map):
    """A class without memory around `inner`, which notes the operators."""

    class Wrapper(lib.Tensor):
        names = []

        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            return lib.Tensor._make_wrapper_subclass(
                cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, device=inner.device,
                requires_grad=requires_grad,
            )  # fmt: skip

        def __init__(self, inner, requires_grad=False):
            self.inner = inner

        def __repr__(self):
            return f"Wrapper({self.inner.tolist()})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.names.append(str(func))

            def unwrap(value):
                return value.inner if isinstance(value, Wrapper) else value

            def wrap(value):
                return Wrapper(value) if isinstance(value, lib.Tensor) else value

            out = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
            return tree_map(wrap, out)

    return Wrapper


@pytest.fixture
def marked(lib):
    """A class with memory of its own that hands everything on to Tensor."""

    class Marked(lib.Tensor):
        names = []

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.names.append((str(func), types))
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    return Marked


# What the handler is given


def test_operators_are_seen(lib, wrapper):
    x = wrapper(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
    wrapper.names.clear()
    y = lib.ones(2, 2) + x.exp() @ x
    assert wrapper.names == ["aten.exp.default", "aten.mm.default", "aten.add.Tensor"]
    assert type(y) is wrapper
    want = lib.ones(2, 2) + x.inner.exp() @ x.inner
    assert y.inner.tolist() == want.tolist()


def test_types_and_the_order_of_asking(lib):
    asked = []

    class First(lib.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append((cls.__name__, types))
            return NotImplemented

    class Derived(First):
        pass

    x = lib.Tensor._make_subclass(First, lib.ones(1))
    y = lib.Tensor._make_subclass(Derived, lib.ones(1))
    with pytest.raises(TypeError, match="all __torch_dispatch__ handlers returned NotImplemented"):
        lib.add(x, y)
    types = (Derived, First)
    assert asked == [("Derived", types), ("First", types)]


def test_a_class_that_declines_leaves_it_to_another(lib, wrapper):
    class Declining(lib.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Taking(lib.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return lib.full((1,), 9.0)

    x = lib.Tensor._make_subclass(Declining, lib.ones(1))
    y = lib.Tensor._make_subclass(Taking, lib.ones(1))
    assert (x + y).item() == 9.0


def test_functions_that_are_no_operators(lib, wrapper):
    x = wrapper(lib.tensor([1.0, 2.0]))
    wrapper.names.clear()
    made = [lib.zeros_like(x), lib.ones_like(x), x.new_zeros(3), lib.full_like(x, 7.0), x.detach()]
    assert x.sum().item() == 3.0
    assert all(type(t) is wrapper for t in made)
    assert [t.inner.tolist() for t in made[:4]] == [[0, 0], [1, 1], [0, 0, 0], [7, 7]]
    assert wrapper.names == [
        "aten.zeros_like.default", "aten.ones_like.default", "aten.new_zeros.default",
        "aten.full_like.default", "aten.detach.default", "aten.sum.default",
        "aten._local_scalar_dense.default",
    ]  # fmt: skip


def test_random_numbers(lib, wrapper):
    x = wrapper(lib.zeros(100))
    wrapper.names.clear()
    assert x.normal_() is x
    assert wrapper.names == ["aten.normal_.default"]
    assert x._version == 1
    assert x.inner.std().item() > 0.3
    assert type(lib.rand_like(x)) is wrapper


def test_super_treats_it_as_a_plain_tensor(lib, marked):
    x = lib.Tensor._make_subclass(marked, lib.tensor([1.0, 2.0]), True)
    y = x * 2
    assert type(y) is lib.Tensor
    assert y.tolist() == [2.0, 4.0]
    assert marked.names == [("aten.mul.Tensor", (marked,))]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_class_is_left_alone_above_autograd(lib, wrapper, marked):
    assert wrapper(lib.ones(1)).shape == (1,)
    assert type(marked([1.0, 2.0])) is marked
    assert type(marked([1.0]) + 1) is lib.Tensor


def test_both_kinds_of_override(lib):
    order = []

    class Both(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append("function")
            return super().__torch_function__(func, types, args, kwargs or {})

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            order.append("dispatch")
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = lib.Tensor._make_subclass(Both, lib.ones(1))
    order.clear()
    lib.exp(x)
    assert order[:2] == ["function", "dispatch"]


def test_switching_it_off(lib, marked):
    x = lib.Tensor._make_subclass(marked, lib.ones(1))
    with lib._C._DisableTorchDispatch():
        assert (x + 1).item() == 2.0
    assert marked.names == []


def test_modes_come_first(lib, wrapper):
    modes = importlib.import_module(lib.__name__ + ".utils._python_dispatch")
    order = []

    class Mode(modes.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append((str(func), types))
            return func(*args, **(kwargs or {}))

    x = wrapper(lib.ones(1))
    wrapper.names.clear()
    with Mode():
        y = x.exp()
    assert type(y) is wrapper
    assert order == [("aten.exp.default", (wrapper,))]
    assert wrapper.names == ["aten.exp.default"]


def test_rules_for_a_class(lib, wrapper):
    double = lib.library.custom_op(
        f"wengert_dispatch_rules::double_{lib.__name__}", lambda x: x * 2, mutates_args=(),
        schema="(Tensor x) -> Tensor",
    )  # fmt: skip
    double.register_autograd(lambda ctx, grad: grad * 2)

    @double.register_torch_dispatch(wrapper)
    def rule(cls, func, types, args, kwargs):
        assert cls is wrapper
        assert types == (wrapper,)
        return wrapper(args[0].inner * 100)

    x = wrapper(lib.ones(2), True)
    y = double(x)
    assert y.inner.tolist() == [100.0, 100.0]
    y.sum().backward()
    assert x.grad.inner.tolist() == [2.0, 2.0]


def test_custom_operators_go_through_the_handler(lib, wrapper):
    double = lib.library.custom_op(
        f"wengert_dispatch_handler::double_{lib.__name__}", lambda x: x * 2, mutates_args=(),
        schema="(Tensor x) -> Tensor",
    )  # fmt: skip
    x = wrapper(lib.ones(2))
    wrapper.names.clear()
    assert double(x).inner.tolist() == [2.0, 2.0]
    assert wrapper.names == [f"wengert_dispatch_handler.double_{lib.__name__}.default"]


# Autograd above it


def test_reverse_mode(lib, wrapper):
    x = wrapper(lib.tensor([1.0, 2.0]), True)
    assert x.is_leaf
    assert x.requires_grad
    y = (x.exp() * x).sum()
    assert y.grad_fn.name() == "SumBackward0"
    y.backward()
    assert type(x.grad) is wrapper
    want = [(1 + v) * lib.tensor(v).exp().item() for v in (1.0, 2.0)]
    assert x.grad.inner.tolist() == pytest.approx(want)
    (x * 2).sum().backward()
    assert x.grad.inner.tolist() == pytest.approx([w + 2 for w in want])


def test_second_derivatives(lib, wrapper):
    x = wrapper(lib.tensor([2.0]), True)
    (first,) = lib.autograd.grad(x**3, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert first.inner.tolist() == [12.0]
    assert second.inner.tolist() == [12.0]


def test_only_some_tensors_are_wrapped(lib, wrapper):
    x, w = wrapper(lib.tensor([1.0, 2.0]), True), lib.tensor([3.0, 4.0], requires_grad=True)
    (x * w).sum().backward()
    assert x.grad.inner.tolist() == [3.0, 4.0]
    assert w.grad.inner.tolist() == [1.0, 2.0]


def test_hooks_get_instances(lib, wrapper):
    seen = []
    x = wrapper(lib.ones(2), True)
    y = x * 3
    y.register_hook(lambda g: seen.append(type(g)))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(type(t.grad)))
    y.retain_grad()
    y.sum().backward()
    assert seen == [wrapper, wrapper]
    assert type(y.grad) is wrapper


def test_saved_tensor_hooks(lib, wrapper):
    seen = []

    def pack(t):
        seen.append(type(t))
        return t

    x = wrapper(lib.tensor([1.0, 2.0]), True)
    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = (x.exp() * x).sum()
    y.backward()
    assert seen == [wrapper] * 3
    assert type(x.grad) is wrapper


def test_changes_in_place_are_recorded(lib, wrapper):
    x = wrapper(lib.tensor([1.0, 2.0]), True)
    y = x * 1
    z = y
    y.mul_(x)
    y[0] = 5.0
    assert y is z
    assert y._version == 2
    y.sum().backward()
    assert y.inner.tolist() == [5.0, 4.0]
    assert x.grad.inner.tolist() == [0.0, 4.0]


def test_a_changed_saved_tensor_is_noticed(lib, wrapper):
    x = wrapper(lib.ones(2), True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_views(lib, wrapper):
    x = wrapper(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
    view = x[0]
    assert view._base is x
    view.mul_(10)
    assert x.inner.tolist() == [[10.0, 20.0], [3.0, 4.0]]
    assert x._version == 1


def test_forward_mode(lib, wrapper):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(wrapper(lib.full((2,), 3.0)), wrapper(lib.ones(2)))
        out = dual * dual
        primal, tangent = forward_ad.unpack_dual(out)
    assert type(primal) is wrapper
    assert tangent.inner.tolist() == [6.0, 6.0]


def test_transforms(lib, wrapper):
    x = wrapper(lib.tensor([1.0, 2.0]))
    gradient = lib.func.grad(lambda x: (x**3).sum())(x)
    mapped = lib.func.vmap(lambda x: x * 2)(x)
    assert type(gradient) is type(mapped) is wrapper
    assert gradient.inner.tolist() == [3.0, 12.0]
    assert mapped.inner.tolist() == [2.0, 4.0]
    constant = lib.func.grad(lambda x: (x * 2).sum())(x)
    assert type(constant) is wrapper
    assert constant.inner.tolist() == [2.0, 2.0]


def test_checkpoint(lib, wrapper):
    checkpoint = importlib.import_module(lib.__name__ + ".utils.checkpoint").checkpoint
    x = wrapper(lib.tensor([1.0, 2.0]), True)
    y = checkpoint(lambda x: (x.exp() * x).sum(), x, use_reentrant=False)
    y.backward()
    (want,) = lib.autograd.grad((x.exp() * x).sum(), x)
    assert x.grad.inner.tolist() == want.inner.tolist()


def test_custom_functions(lib, wrapper):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert type(x) is wrapper
            return grad * 2 * x

    x = wrapper(lib.tensor([3.0]), True)
    Square.apply(x).sum().backward()
    assert x.grad.inner.tolist() == [6.0]


# The instance itself


def test_facts_of_a_wrapper(lib, wrapper):
    inner = lib.zeros(3, 2, dtype=lib.float64).t()
    x = wrapper(inner)
    assert (x.shape, x.stride(), x.dtype, x.device) == ((2, 3), (1, 2), lib.float64, inner.device)
    assert not x.is_contiguous()
    assert x.numel() == 6
    assert x.data_ptr() == 0
    assert repr(wrapper(lib.ones(1))) == "Wrapper([1.0])"
    meta = lib.Tensor._make_wrapper_subclass(wrapper, (4,), device="meta", dtype=lib.int64)
    assert meta.device.type == "meta"
    assert meta.dtype is lib.int64


def test_a_wrapper_has_no_elements(lib, wrapper):
    x = wrapper(lib.ones(2))
    with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
        x.tolist()
    with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
        x.numpy()


def test_refusals(lib, wrapper):
    make = lib.Tensor._make_wrapper_subclass

    class Without(lib.Tensor):
        pass

    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        make(Without, (2,))
    with pytest.raises(TypeError, match="does not inherit from Tensor is not possible"):
        make(int, (2,))
    with pytest.raises(RuntimeError, match="storage offset without stride"):
        make(wrapper, (2,), storage_offset=3)
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        make(wrapper, (2,), dtype=lib.int64, requires_grad=True)
    assert make(wrapper, (2, 3), strides=(1, 2), storage_offset=3).storage_offset() == 3


def test_copies(lib, wrapper):
    x = wrapper(lib.tensor([1.0, 2.0]), True)
    x.unit = "metre"
    again = copy.deepcopy(x)
    assert type(again) is wrapper
    assert again.unit == "metre"
    assert again.requires_grad
    again.inner.add_(1)
    assert x.inner.tolist() == [1.0, 2.0]
    assert type(x.clone()) is type(x.detach()) is type(x.data) is wrapper


def test_parameters(lib, wrapper):
    x = lib.nn.Parameter(wrapper(lib.ones(2)))
    assert isinstance(x, lib.nn.Parameter)
    assert type(x) is wrapper
    assert x.requires_grad
    (x * 3).sum().backward()
    assert x.grad.inner.tolist() == [3.0, 3.0]


# Helpers


def test_written_arguments_are_returned(lib, tree_map):
    modes = importlib.import_module(lib.__name__ + ".utils._python_dispatch")

    class Fresh(lib.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return lib.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            inner = tree_map(lambda t: t.inner if isinstance(t, cls) else t, args)
            out = tree_map(
                lambda t: cls(t) if isinstance(t, lib.Tensor) else t, func(*inner, **(kwargs or {}))
            )
            out = modes.return_and_correct_aliasing(func, args, kwargs or {}, out)
            if func is lib.ops.aten.add_.Tensor:
                assert out is args[0]
            return out

    x = Fresh(lib.zeros(2))
    assert x.add_(1) is x
    assert x.inner.tolist() == [1.0, 1.0]
    assert (x + 1).inner.tolist() == [2.0, 2.0]


def test_taking_apart(lib, wrapper):
    modes = importlib.import_module(lib.__name__ + ".utils._python_dispatch")

    class Pair(wrapper):
        def __tensor_flatten__(self):
            return ["inner"], None

        @staticmethod
        def __tensor_unflatten__(inner, context, size, stride):
            return Pair(inner["inner"])

    x = Pair(lib.ones(2))
    assert modes.is_traceable_wrapper_subclass(x)
    assert not modes.is_traceable_wrapper_subclass(wrapper(lib.ones(2)))
    assert not modes.is_traceable_wrapper_subclass(lib.ones(2))
    y = modes.transform_subclass(x, lambda name, t: t * 3)
    assert type(y) is Pair
    assert y.inner.tolist() == [3.0, 3.0]


def test_results_written_to_a_wrapper(lib, wrapper):
    out = wrapper(lib.zeros(2))
    found = lib.add(wrapper(lib.ones(2)), 1, out=out)
    assert found is out
    assert out.inner.tolist() == [2.0, 2.0]


@pytest.fixture
def owner_of_writes(lib, tree_map):
    """A class without memory whose in-place operators return their target."""

    class Wrapper(lib.Tensor):
        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            return lib.Tensor._make_wrapper_subclass(
                cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(),
                dtype=inner.dtype, requires_grad=requires_grad,
            )  # fmt: skip

        def __init__(self, inner, requires_grad=False):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            unwrapped, options = tree_map(
                lambda t: t.inner if isinstance(t, cls) else t, (args, kwargs or {})
            )
            out = func(*unwrapped, **options)
            if func._schema.is_mutable:
                return args[0]
            return tree_map(lambda t: cls(t) if isinstance(t, lib.Tensor) else t, out)

    return Wrapper


def _changed_views(x):
    y = x * 1
    middle = y.view(6)[1:4]
    middle.mul_(0.5)
    y.add_(x.sum())
    y.select(1, 2)[1:].mul_(x.mean())
    y.t()[1].zero_()
    return y * y + middle.sum()


def _changed_parts(x):
    y = x * 1
    y.chunk(3, 1)[1].mul_(x.sum())
    return y


def test_changes_through_views_are_differentiated(lib, owner_of_writes):
    x = lib.arange(6, dtype=lib.float64).reshape(2, 3)
    plain, wrapped = x.clone().requires_grad_(), owner_of_writes(x, requires_grad=True)
    _changed_views(plain).sum().backward()
    _changed_views(wrapped).sum().backward()
    assert wrapped.grad.inner.tolist() == plain.grad.tolist()


@pytest.mark.parametrize("changed", [_changed_views, _changed_parts])
def test_changes_through_views_have_tangents(lib, owner_of_writes, changed):
    x = lib.arange(6, dtype=lib.float64).reshape(2, 3)
    tangent = x * x + 1
    plain = lib.func.jvp(changed, (x,), (tangent,))
    wrapped = lib.func.jvp(changed, (owner_of_writes(x),), (owner_of_writes(tangent),))
    assert [t.inner.tolist() for t in wrapped] == [t.tolist() for t in plain]


def test_parts_whose_places_are_unknown_are_not_mixed_up():
    import wengert
    from wengert.utils.pytree import tree_map_only

    class Placeless(wengert.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return wengert.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            unwrapped, options = tree_map_only(cls, lambda t: t.inner, (args, kwargs or {}))
            out = func(*unwrapped, **options)
            return args[0] if func._schema.is_mutable else tree_map_only(wengert.Tensor, cls, out)

    x = Placeless(wengert.ones(2, 3, dtype=wengert.float64))
    with pytest.raises(RuntimeError, match="cannot be told from the others: pass storage_offset"):
        wengert.func.jvp(_changed_parts, (x,), (x,))
