"""`__torch_function__`: classes and modes that override the functions of the library."""

import copy
import importlib
import pickle

import pytest


@pytest.fixture
def overrides(lib):
    return importlib.import_module(lib.__name__ + ".overrides")


@pytest.fixture
def plain(lib):
    """A subclass that says nothing."""

    class Plain(lib.Tensor):
        pass

    return Plain


@pytest.fixture
def logging(lib):
    """A subclass that notes the names of the functions that it is asked about."""

    class Logging(lib.Tensor):
        names = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.names.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logging


def name_of(overrides, func):
    """The last part of a function's name; a property's name before its ``__get__``."""
    return ".".join(overrides.resolve_name(func).split(".")[-2:]).removeprefix("Tensor.")


# The default: results are of the class of their arguments


CALLS = {
    "operator": lambda lib, x: x * 2,
    "reflected": lambda lib, x: 2 / x,
    "comparison": lambda lib, x: x > 1,
    "product": lambda lib, x: x @ x.T,
    "plain left": lambda lib, x: lib.ones(2, 2) + x,
    "plain product": lambda lib, x: lib.ones(2, 2) @ x,
    "function": lambda lib, x: lib.exp(x),
    "keywords": lambda lib, x: lib.add(x, 1, alpha=2),
    "by keyword": lambda lib, x: lib.add(lib.ones(2, 2), other=x),
    "method": lambda lib, x: x.sum(dim=1),
    "composite": lambda lib, x: lib.einsum("ij,jk->ik", x, x),
    "list": lambda lib, x: lib.cat([lib.ones(2, 2), x]),
    "shape": lambda lib, x: x.reshape(4),
    "transpose": lambda lib, x: x.T,
    "item": lambda lib, x: x[0],
    "slices": lambda lib, x: x[:, None],
    "mask": lambda lib, x: x[x > 1],
    "where": lambda lib, x: lib.where(x > 1, x, 0.0),
    "like": lambda lib, x: lib.zeros_like(x),
    "new": lambda lib, x: x.new_ones(3),
    "cast": lambda lib, x: x.to(lib.float64),
    "clone": lambda lib, x: x.clone(),
    "detach": lambda lib, x: x.detach(),
    "data": lambda lib, x: x.data,
    "in place": lambda lib, x: x.mul_(2),
    "in place symbol": lambda lib, x: x.__iadd__(1),
    "network": lambda lib, x: lib.nn.functional.softmax(x, dim=1),
    "linear": lambda lib, x: lib.nn.functional.linear(x, lib.ones(3, 2)),
    "loss": lambda lib, x: lib.nn.functional.mse_loss(x, lib.zeros(2, 2)),
    "out": lambda lib, x: lib.add(lib.ones(2, 2), 1, out=x),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_results_are_of_the_class(lib, plain, call):
    data = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    result = call(lib, data.clone().as_subclass(plain))
    assert type(result) is plain
    assert lib.allclose(result.as_subclass(lib.Tensor), call(lib, data))


def test_several_results(lib, plain):
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(plain)
    values, indices = x.max(1)
    assert type(values) is plain
    assert type(indices) is plain
    assert x.max(1).values.tolist() == [2.0, 4.0]
    assert [type(part) for part in x.split(1)] == [plain, plain]
    assert [type(part) for part in x] == [plain, plain]
    assert [type(part) for part in lib.broadcast_tensors(x, lib.ones(1))] == [plain, plain]


def test_what_is_no_tensor_stays(lib, plain):
    x = plain([1.0, 2.0])
    assert x.shape == (2,)
    assert isinstance(x.shape, lib.Size)
    assert x.sum().item() == 3.0
    assert len(x) == 2
    assert bool(x[0] == 1)
    assert float(x[1]) == 2.0
    assert x.dtype is lib.float32
    assert x.numpy().tolist() == [1.0, 2.0]
    assert type(x.numpy()).__name__ == "ndarray"
    assert repr(x) == "Plain([1., 2.])"
    assert 2.0 in x
    assert x.requires_grad is False


def test_the_most_derived_class_wins(lib, plain):
    class Derived(plain):
        pass

    x, y = plain([1.0]), Derived([2.0])
    assert type(x + y) is Derived
    assert type(y + x) is Derived
    assert type(lib.stack([x, y])) is Derived


def test_strangers_do_not_mix(lib, plain):
    class Other(lib.Tensor):
        pass

    with pytest.raises(TypeError):
        plain([1.0]) + Other([1.0])
    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        lib.add(plain([1.0]), Other([1.0]))


def test_gradients_flow_through(lib, plain):
    x = plain([1.0, 2.0]).requires_grad_()
    y = (x * x).sum()
    assert type(y) is plain
    assert y.requires_grad
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert type(x.grad) is lib.Tensor


def test_gradients_of_gradients(lib, plain):
    x = plain([2.0]).requires_grad_()
    (first,) = lib.autograd.grad(x**3, x, create_graph=True)
    assert type(first) is plain
    (second,) = lib.autograd.grad(first, x)
    assert second.tolist() == [12.0]


def test_rules_do_not_ask_the_class(lib, logging):
    x = lib.ones(3).as_subclass(logging).requires_grad_()
    loss = (x.exp() * x).sum()
    logging.names.clear()
    loss.backward()
    assert logging.names == ["backward"]


def test_a_view_of_a_subclass(lib, plain):
    x = plain([1.0, 2.0, 3.0])
    view = x[1:]
    view.mul_(10)
    assert x.tolist() == [1.0, 20.0, 30.0]
    assert view._base is not None


def test_in_place_keeps_the_object(lib, plain):
    x = plain([1.0, 2.0])
    y = x
    x += 1
    assert x is y
    assert x.tolist() == [2.0, 3.0]
    x.unsqueeze_(0)
    assert x is y
    assert type(x + 1) is plain


# What the handler is given


def test_the_function_and_its_arguments(lib, overrides):
    calls = []

    class Watching(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((name_of(overrides, func).rpartition(".")[2], types, args, kwargs or {}))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = Watching([1.0, 2.0])
    lib.add(x, 3, alpha=2)
    x.sum(dim=0, keepdim=True)
    lib.cat([x, x], dim=0)
    x.reshape(2, 1)
    lib.nn.functional.softmax(x, 0)
    expected = [
        ("add", 2, {"alpha": 2}),
        ("sum", 1, {"dim": 0, "keepdim": True}),
        ("cat", 1, {"dim": 0}),
        ("reshape", 3, {}),
    ]
    assert [(name, len(args), kwargs) for name, _, args, kwargs in calls[:4]] == expected
    assert calls[4][0] == "softmax"
    assert all(types == (Watching,) for _, types, _, _ in calls)
    assert calls[0][2][0] is x


def test_functions_can_be_compared(lib):
    class Replacing(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is lib.exp or func is lib.Tensor.exp:
                return "exponential"
            if func in (lib.Tensor.div, lib.Tensor.add):
                return "arithmetic"
            if func == lib.Tensor.shape.__get__:
                return "shape"
            if func is lib.nn.functional.relu:
                return "relu"
            return super().__torch_function__(func, types, args, kwargs or {})

    x = Replacing([1.0])
    assert x.exp() == lib.exp(x) == "exponential"
    assert x + 1 == 1 + x == x / 2 == x.div(2) == "arithmetic"
    assert x.shape == "shape"
    assert lib.nn.functional.relu(x) == "relu"
    assert lib.relu(x).tolist() == [1.0]


SEEN = {
    "len": (len, ["__len__"]),
    "bool": (bool, ["__bool__"]),
    "float": (float, ["__float__"]),
    "int": (int, ["__int__"]),
    "complex": (complex, ["__complex__"]),
    "repr": (repr, ["__repr__"]),
    "contains": (lambda x: 1.0 in x, ["__contains__"]),
    "getitem": (lambda x: x[0], ["__getitem__"]),
    "setitem": (lambda x: x.__setitem__(0, 1.0), ["__setitem__"]),
    "reversed": (lambda x: reversed(x), ["__reversed__"]),
    "rsub": (lambda x: 1 - x, ["__rsub__"]),
    "rpow": (lambda x: 2**x, ["__rpow__"]),
    "rfloordiv": (lambda x: 2 // x, ["__rfloordiv__"]),
    "rmod": (lambda x: 2 % x, ["__rmod__"]),
    "add": (lambda x: x + 1, ["add"]),
    "radd": (lambda x: 1 + x, ["add"]),
    "matmul": (lambda x: x @ x, ["matmul"]),
    "neg": (lambda x: -x, ["neg"]),
    "iadd": (lambda x: x.__iadd__(1), ["add_"]),
    "size": (lambda x: x.size(), ["size"]),
    "item": (lambda x: x.item(), ["item"]),
    "tolist": (lambda x: x.tolist(), ["tolist"]),
    "numpy": (lambda x: x.numpy(), ["numpy"]),
    "requires_grad_": (lambda x: x.requires_grad_(False), ["requires_grad_"]),
    "einsum": (lambda x: x.new_zeros(2), ["new_zeros"]),
    "hash": (hash, []),
    "deepcopy": (lambda x: x.__deepcopy__, []),
    "as_subclass": (lambda x: x.as_subclass(type(x).__base__), []),
}


@pytest.mark.parametrize(("use", "names"), SEEN.values(), ids=SEEN)
def test_methods_and_symbols_that_are_seen(lib, logging, use, names):
    x = logging([1.0])
    logging.names.clear()
    use(x)
    assert logging.names == names


@pytest.mark.parametrize("name", ["shape", "dtype", "device", "grad", "is_leaf", "T", "data"])
def test_properties_are_seen(lib, overrides, name):
    seen = []

    class Watching(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(name_of(overrides, func))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = Watching([[1.0]])
    getattr(x, name)
    assert seen == [f"{name}.__get__"]
    x.requires_grad = True
    x.grad = lib.zeros(1, 1)
    assert seen[-2:] == ["requires_grad.__set__", "grad.__set__"]
    assert type(x.grad) is lib.Tensor


# Other classes


class Duck:
    """No tensor, but it overrides functions."""

    def __init__(self, value="duck"):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return (func.__name__, types, len(args), dict(kwargs or {}))


def test_any_class_can_override(lib):
    x, duck = lib.ones(2), Duck()
    assert lib.add(x, duck) == ("add", (Duck,), 2, {})
    assert lib.add(duck, x, alpha=3) == ("add", (Duck,), 2, {"alpha": 3})
    assert lib.sum(duck, dim=1) == ("sum", (Duck,), 1, {"dim": 1})
    assert lib.matmul(duck, x)[:2] == ("matmul", (Duck,))
    assert lib.mean(duck)[:2] == ("mean", (Duck,))
    assert lib.stack([x, duck])[:2] == ("stack", (Duck,))
    assert lib.cat((x, duck))[:2] == ("cat", (Duck,))
    assert lib.reshape(duck, (1,))[:2] == ("reshape", (Duck,))
    assert lib.zeros_like(duck)[:2] == ("zeros_like", (Duck,))
    assert lib.nn.functional.relu(duck)[:2] == ("relu", (Duck,))
    assert lib.einsum("i,i->", duck, duck)[:2] == ("einsum", (Duck,))
    assert lib.where(x > 0, duck, x)[:2] == ("where", (Duck,))


def test_tensors_meet_other_classes(lib):
    x, duck = lib.ones(2), Duck()
    assert (x + duck)[:2] == ("add", (Duck,))
    assert (duck + x)[:2] == ("add", (Duck,))
    assert (x @ duck)[:2] == ("matmul", (Duck,))
    assert (x.mul_(duck))[:2] == ("mul_", (Duck,))
    assert x[duck][:2] == ("__getitem__", (Duck,))
    assert x.add(duck)[:2] == ("add", (Duck,))


def test_order_in_which_classes_are_asked(lib):
    asked = []

    def declining(name):
        def handler(cls, func, types, args=(), kwargs=None):
            asked.append((name, types))
            return NotImplemented if name != "last" else "answer"

        return classmethod(handler)

    class First:
        __torch_function__ = declining("first")

    class Derived(First):
        __torch_function__ = declining("derived")

    class Last:
        __torch_function__ = declining("last")

    assert lib.stack([First(), Last(), First(), Derived()]) == "answer"
    types = (Derived, First, Last)
    assert asked == [("derived", types), ("first", types), ("last", types)]


def test_nobody_wants_the_call(lib):
    class Silent:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        lib.add(lib.ones(1), Silent())
    with pytest.raises(TypeError, match="unsupported operand type"):
        lib.ones(1) + Silent()


def test_a_class_without_override(lib):
    class Nothing:
        pass

    with pytest.raises(TypeError):
        lib.add(lib.ones(1), Nothing())
    with pytest.raises(TypeError, match="unsupported operand type"):
        lib.ones(1) + Nothing()


def test_a_reflected_method_of_a_class_without_override(lib):
    class Reflecting:
        def __radd__(self, other):
            return "reflected"

    assert lib.ones(1) + Reflecting() == "reflected"


# Switching it off


def test_disabled_for_a_class(lib):
    class Quiet(lib.Tensor):
        __torch_function__ = lib._C._disabled_torch_function_impl

    x = Quiet([1.0, 2.0])
    assert type(x) is Quiet
    assert type(x * 2) is lib.Tensor
    assert type(x.sum()) is lib.Tensor
    assert type(x.mul_(2)) is Quiet


def test_disabled_for_a_block(lib, overrides, plain):
    x = plain([1.0])
    with lib._C.DisableTorchFunctionSubclass():
        assert type(x * 2) is lib.Tensor
        assert type(x.reshape(1, 1)) is lib.Tensor
        assert not overrides.has_torch_function((x,))
        assert not lib._C._is_torch_function_enabled()
    with lib._C.DisableTorchFunction():
        assert type(x * 2) is lib.Tensor
    assert type(x * 2) is plain
    assert lib._C._is_torch_function_enabled()


def test_parameters_are_plain(lib, plain):
    parameter = lib.nn.Parameter(lib.ones(2))
    for result in (parameter * 2, parameter.clone(), parameter.data, parameter.sum()):
        assert type(result) is lib.Tensor
    special = lib.nn.Parameter(plain([1.0, 2.0]))
    assert isinstance(special, lib.nn.Parameter)
    assert not isinstance(plain([1.0]), lib.nn.Parameter)
    assert type(special) is plain
    assert special.requires_grad
    assert special.is_leaf
    assert type(special * 2) is plain
    assert type(parameter + plain([1.0])) is plain


# Making instances


def test_ways_to_make_instances(lib, plain):
    data = lib.tensor([1.0, 2.0])
    for made in (
        plain([1.0, 2.0]),
        plain(data),
        data.as_subclass(plain),
        lib.Tensor._make_subclass(plain, data),
        plain(2).copy_(data),
    ):
        assert type(made) is plain
        assert made.tolist() == [1.0, 2.0]
        assert type(made + 1) is plain


def test_construction_with_arguments_of_its_own(lib):
    class Named(lib.Tensor):
        @staticmethod
        def __new__(cls, data, name, **options):
            return super().__new__(cls, data, **options)

        def __init__(self, data, name):
            self.name_given = name

    x = Named([1.0, 2.0], "mine")
    assert x.name_given == "mine"
    assert x.tolist() == [1.0, 2.0]
    assert type(x + 1) is Named
    assert not hasattr(x + 1, "name_given")


def test_as_subclass_is_a_view(lib, plain):
    leaf = lib.ones(2, requires_grad=True)
    alias = leaf.as_subclass(plain)
    assert alias.grad_fn.name() == "AliasBackward0"
    assert alias._base is leaf
    alias.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0]
    base = lib.zeros(2)
    base.as_subclass(plain).add_(3)
    assert base.tolist() == [3.0, 3.0]
    assert base._version == 1
    assert type(alias.as_subclass(lib.Tensor)) is lib.Tensor


def test_make_subclass_is_a_leaf(lib, plain):
    source = lib.ones(2, requires_grad=True) * 2
    made = lib.Tensor._make_subclass(plain, source)
    assert made.is_leaf
    assert not made.requires_grad
    assert lib.Tensor._make_subclass(plain, source, True).requires_grad
    with lib.no_grad():
        made.add_(1)
    assert source.tolist() == [3.0, 3.0]
    assert source._version == 1


def test_what_is_no_class_of_tensors(lib):
    with pytest.raises(TypeError):
        lib.ones(2).as_subclass(int)
    with pytest.raises(TypeError):
        lib.ones(2).as_subclass(3)
    with pytest.raises(TypeError):
        lib.Tensor._make_subclass(int, lib.ones(2))


def test_attributes_of_instances(lib, plain):
    x = plain([1.0])
    x.unit = "metre"
    assert x.unit == "metre"
    assert copy.copy(x).unit == "metre"


class Marked(importlib.import_module("wengert").Tensor):
    """At the top of a module, so that it can be pickled."""


def test_pickling_and_copies():
    x = Marked([1.0, 2.0])
    x.unit = "metre"
    for same in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert type(same) is Marked
        assert same.tolist() == [1.0, 2.0]
        assert same.unit == "metre"
        assert type(same + 1) is Marked


# Modes


@pytest.fixture
def counting(overrides):
    class Counting(overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    return Counting


def test_a_mode_sees_all_functions(lib, counting):
    with counting() as mode:
        x = lib.ones(2, 3)
        x + 1
        x.sum(0)
        lib.einsum("ij->i", x)
        lib.nn.functional.relu(x)
        x.mul_(2)
        x[0]
        len(x)
        lib.tensor([1.0])
        lib.rand(2)
        lib.zeros_like(x)
    assert mode.names == [
        "ones", "add", "sum", "einsum", "relu", "mul_", "__getitem__", "__len__", "tensor", "rand",
        "zeros_like",
    ]  # fmt: skip


def test_modes_nest_and_may_replace(lib, overrides):
    class Adding(overrides.TorchFunctionMode):
        def __init__(self, amount):
            super().__init__()
            self.amount = amount

        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out + self.amount if func is lib.exp else out

    x = lib.zeros(1)
    with Adding(10), Adding(200):
        assert lib.exp(x).item() == 211.0
    assert lib.exp(x).item() == 1.0


def test_a_mode_goes_before_classes(lib, overrides, logging):
    order = []

    class First(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append((func.__name__, types))
            return func(*args, **(kwargs or {}))

    x = logging([1.0])
    logging.names.clear()
    with First():
        result = x.exp()
    assert type(result) is logging
    assert order == [("exp", (logging,))]
    assert logging.names == ["exp"]


def test_switching_modes_off(lib, counting):
    x = lib.ones(1)
    with counting() as mode:
        with lib._C.DisableTorchFunction():
            x.exp()
        with lib._C.DisableTorchFunctionSubclass():
            x.sin()
    assert mode.names == ["sin"]


def test_the_stack_of_function_modes(lib, overrides, counting):
    outer, inner = counting(), counting()
    with outer, inner:
        assert overrides._get_current_function_mode() is inner
        assert overrides._get_current_function_mode_stack() == [outer, inner]
        with overrides._pop_mode_temporarily() as popped:
            assert popped is inner
            assert overrides._get_current_function_mode() is outer
    assert overrides._get_current_function_mode() is None


def test_an_exception_leaves_no_mode_behind(lib, overrides):
    class Failing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    with pytest.raises(KeyError), Failing():
        lib.ones(2)
    assert lib.ones(2).tolist() == [1.0, 1.0]


def test_rules_are_not_seen_by_modes(lib, counting):
    x = lib.ones(2, requires_grad=True)
    with counting() as mode:
        (x.exp() * x).sum().backward()
    assert mode.names == ["exp", "mul", "sum", "backward"]


# Helpers


def test_questions(lib, overrides, plain, counting):
    x, duck = plain([1.0]), Duck()
    assert overrides.has_torch_function((lib.ones(1), x))
    assert overrides.has_torch_function((duck,))
    assert not overrides.has_torch_function((lib.ones(1), lib.nn.Parameter(lib.ones(1)), 3))
    with counting():
        assert overrides.has_torch_function((lib.ones(1),))
    for value in (x, duck, lib.ones(1), lib.nn.Parameter(lib.ones(1))):
        assert overrides.is_tensor_like(value)
    assert not overrides.is_tensor_like(3)
    assert overrides.is_tensor_method_or_property(lib.Tensor.shape.__get__)
    assert overrides.is_tensor_method_or_property(lib.Tensor.add_)
    assert not overrides.is_tensor_method_or_property(lib.nn.functional.relu)


def test_functions_of_ones_own(lib, overrides):
    def scaled(x, factor=2):
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(scaled, (x,), x, factor=factor)
        return x * factor

    @overrides.wrap_torch_function(lambda x, factor=2: (x,))
    def wrapped(x, factor=2):
        return x * factor

    assert scaled(lib.ones(1)).item() == 2.0
    assert scaled(Duck(), 3) == ("scaled", (Duck,), 1, {"factor": 3})
    assert wrapped(lib.ones(1), factor=5).item() == 5.0
    assert wrapped(Duck(), factor=3)[0] == "wrapped"


def test_tables_of_functions(lib, overrides):
    functions = overrides.get_overridable_functions()
    assert lib.add in functions[lib]
    assert lib.Tensor.add_ in functions[lib.Tensor]
    assert lib.nn.functional.relu in functions[lib.nn.functional]
    testing = overrides.get_testing_overrides()
    assert lib.add in testing
    assert testing[lib.nn.functional.relu](lib.ones(1)) == -1
    assert lib.manual_seed in overrides.get_ignored_functions()
    assert overrides.resolve_name(lib.add).endswith(".add")
    assert overrides.resolve_name(lib.Tensor.shape.__get__).endswith("Tensor.shape.__get__")
    assert overrides.resolve_name(lib.nn.functional.relu).endswith("nn.functional.relu")
    assert overrides.resolve_name(len) is None


def test_operators_looked_up_are_overridden_too(lib, logging):
    x = logging([1.0])
    logging.names.clear()
    assert type(lib.ops.aten.sin(x)) is logging
    assert type(lib.ops.aten.sin.default(x)) is logging
    assert len(logging.names) == 2


def test_custom_operators_are_overridden(lib, plain):
    name = f"wengert_torch_function::double_{lib.__name__}"
    double = lib.library.custom_op(
        name, lambda x: x.clone() * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    double.register_autograd(lambda ctx, grad: grad * 2)
    x = plain([1.0, 2.0]).requires_grad_()
    y = double(x)
    assert type(y) is plain
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# Transforms


def test_forward_mode(lib, plain):
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(plain([2.0]), lib.ones(1))
        primal, tangent = forward_ad.unpack_dual(dual * dual)
        assert primal.tolist() == [4.0]
        assert tangent.tolist() == [4.0]


def test_transforms_of_functions(lib, plain):
    x = plain([1.0, 2.0])
    assert lib.func.grad(lambda x: (x**3).sum())(x).tolist() == [3.0, 12.0]
    assert lib.func.vmap(lambda x: x * 2)(x).tolist() == [2.0, 4.0]
