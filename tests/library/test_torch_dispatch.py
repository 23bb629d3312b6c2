"""Rules for one operator under one dispatch mode."""

import importlib

import pytest


@pytest.fixture
def passing(lib):
    """A fresh class of modes that call what they are given and note its name."""
    modes = importlib.import_module(lib.__name__ + ".utils._python_dispatch")

    class Passing(modes.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    return Passing


@pytest.fixture
def double(define):
    operator = define("(Tensor x, *, int k=2) -> Tensor", lambda x, *, k=2: x * k)
    operator.register_autograd(lambda ctx, grad: grad * 2)
    return operator


def test_a_rule_goes_before_the_handler(lib, passing, double):
    seen = []

    @double.register_torch_dispatch(passing)
    def rule(mode, func, types, args, kwargs):
        seen.append((mode, func, types, len(args), kwargs))
        return func(*args, **kwargs) + 100

    x = lib.ones(1)
    with passing() as mode:
        first, second = double(x), double(x, k=3)
    assert (first.item(), second.item()) == (102.0, 103.0)
    assert mode.names == []
    func = seen[0][1]
    assert func is double._opoverload
    assert seen[:2] == [(mode, func, (), 1, {}), (mode, func, (), 1, {"k": 3})]
    assert double(x).item() == 2.0


def test_results_of_a_rule_are_recorded(lib, passing, double):
    double.register_torch_dispatch(passing, lambda mode, func, types, args, kwargs: args[0])
    x = lib.ones(2, requires_grad=True)
    with passing():
        y = double(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.is_leaf


def test_a_rule_is_for_one_class_only(lib, passing, double):
    class Derived(passing):
        pass

    double.register_torch_dispatch(passing, lambda mode, func, types, args, kwargs: args[0])
    x = lib.ones(1)
    with Derived() as mode:
        y = double(x)
    assert y.item() == 2.0
    assert mode.names == [double._qualname]


def test_registering_again(lib, passing, double):
    def rule(mode, func, types, args, kwargs):
        return args[0] + 5

    double.register_torch_dispatch(passing, lambda mode, func, types, args, kwargs: args[0])
    assert double.register_torch_dispatch(passing, rule) is rule
    with passing():
        y = double(lib.zeros(1))
    assert y.item() == 5.0
    register = lib.library.register_torch_dispatch
    with lib.library._scoped_library("aten", "FRAGMENT") as aten:
        register("aten::cos", passing, rule, lib=aten)
        with pytest.raises(RuntimeError, match="already has a `__torch_dispatch__` rule"):
            register("aten::cos", passing, rule, lib=aten)


def test_rules_by_name_and_for_operators_of_the_library(lib, passing, double):
    register = lib.library.register_torch_dispatch
    with lib.library._scoped_library("wengert_tests", "FRAGMENT") as library:
        register(double._qualname, passing, lambda m, f, t, a, k: a[0] + 3, lib=library)
        with lib.library._scoped_library("aten", "FRAGMENT") as aten:
            register("aten::sin", passing, lambda m, f, t, a, k: a[0] + 4, lib=aten)
            with passing():
                assert double(lib.zeros(1)).item() == 3.0
                assert lib.zeros(1).sin().item() == 4.0
    with pytest.raises(ValueError, match="unexpected type for op"):
        register(3, passing, lambda *args: None)


def test_mutation_under_a_mode_is_one_change(lib, passing, define):
    def kernel(x):
        x.mul_(2)

    operator = define("(Tensor(a!) x) -> ()", kernel, mutates_args={"x"})
    x = lib.ones(2)
    with passing() as mode:
        operator(x)
    assert mode.names[0] == operator._qualname
    assert x.tolist() == [2.0, 2.0]
    assert x._version == 1


def test_lists_in_and_out(lib, passing, define):
    operator = define("(Tensor[] xs) -> Tensor[]", lambda xs: [x * 2 for x in xs])
    operator.register_autograd(lambda ctx, grads: [g * 2 for g in grads])
    x, y = lib.ones(1, requires_grad=True), lib.ones(1)
    with passing():
        first, second = operator([x, y])
    (first + second).backward()
    assert x.grad.item() == 2.0
