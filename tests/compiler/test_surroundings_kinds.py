"""Every kind of object that a compiled function may read from: no change of one goes unnoticed."""

import argparse
import array
import builtins
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import importlib
import itertools
import operator
import os
import sys
import threading
import types
import typing
import weakref

import numpy as np
import pytest

import wengert
from wengert.compiler import explain

X = wengert.linspace(-1.5, 1, 3, dtype=wengert.float64)
LIMIT = 3.0


def check_follows(function, change, *args, compilations=2):
    """After `change` the compiled function is compiled again and agrees with the function."""
    compiled = wengert.compile(function)
    for _ in range(2):
        assert wengert.allclose(compiled(X, *args), function(X, *args))
    assert len(compiled.compilations) == 1, explain(compiled)
    before = function(X, *args)
    change()
    assert not wengert.allclose(before, function(X, *args)), "the change must matter"
    for _ in range(2):
        assert wengert.allclose(compiled(X, *args), function(X, *args))
    assert len(compiled.compilations) == compilations, explain(compiled)
    return compiled


class Net:
    training = True
    scale = 2.0

    def forward(self, x):
        return self.inner(x) * self.scale if self.training else x

    def inner(self, x):
        return x + 1

    def __call__(self, x):
        return self.forward(x)


class Deeper(Net):
    pass


class Other(Net):
    scale = 5.0


class Meta(type):
    factor = 2.0


class WithMeta(metaclass=Meta):
    pass


class Fallback:
    def __init__(self):
        self.table = {"rate": 2.0}

    def __getattr__(self, name):
        return self.table[name]


class Descriptor:
    def __init__(self):
        self.value = 2.0

    def __get__(self, instance, owner):
        return self.value


class Slotted:
    __slots__ = ("scale", "other")


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    @property
    def weight(self):
        return self.value * LIMIT


@dataclasses.dataclass
class Options:
    rate: float = 2.0
    steps: int = 3


# Attributes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Net, Deeper])
def test_an_instance_attribute_hides_that_of_the_class(cls):
    net = cls()
    check_follows(net.forward, lambda: setattr(net, "training", False))
    net = cls()
    check_follows(net, lambda: setattr(net, "scale", 7.0))


def test_an_instance_attribute_is_deleted():
    net = Net()
    net.scale = 9.0
    check_follows(net, lambda: delattr(net, "scale"))


def test_an_attribute_of_a_class_hides_that_of_its_base(monkeypatch):
    net = Deeper()
    check_follows(net, lambda: monkeypatch.setattr(Deeper, "scale", 7.0, raising=False))


def test_methods_are_patched(monkeypatch):
    net = Net()
    check_follows(net, lambda: setattr(net, "inner", lambda x: x - 5))
    net = Net()
    check_follows(net, lambda: monkeypatch.setattr(Net, "inner", lambda self, x: x - 5))
    check_follows(net, lambda: monkeypatch.setattr(Net, "__call__", lambda self, x: x - 9))


def test_special_methods_appear(monkeypatch):
    net = Net()
    check_follows(
        lambda x: x * 2 if net else x,
        lambda: monkeypatch.setattr(Net, "__bool__", lambda self: False, raising=False),
    )


def test_the_class_of_an_object_changes():
    net = Net()
    check_follows(net, lambda: setattr(net, "__class__", Other))


def test_the_bases_of_a_class_change():
    class Base:
        scale = 2.0

    class Another:
        scale = 3.0

    class Derived(Base):
        pass

    thing = Derived()
    check_follows(lambda x: x * thing.scale, lambda: setattr(Derived, "__bases__", (Another,)))


def test_all_attributes_are_replaced():
    net = Net()
    net.scale = 3.0
    check_follows(net, lambda: setattr(net, "__dict__", {"scale": 4.0}))


def test_attributes_that_are_not_there_yet():
    net = Net()
    check_follows(
        lambda x: x * 2 if hasattr(net, "extra") else x, lambda: setattr(net, "extra", 1)
    )
    check_follows(
        lambda x: x * getattr(net, "bonus", 2.0), lambda: setattr(net, "bonus", 3.0)
    )
    check_follows(
        lambda x: x * getattr(net, "bon" + "us2", 2.0), lambda: setattr(net, "bonus2", 3.0)
    )

    class Empty:
        _hidden = 2.0

    thing = Empty()
    check_follows(
        lambda x: x * getattr(thing, "bon" + "us", 2.0), lambda: setattr(Empty, "bonus", 3.0)
    )
    check_follows(
        lambda x: x * getattr(thing, "_hid" + "den"), lambda: setattr(Empty, "_hidden", 3.0)
    )

    def attempt(x):
        try:
            return x * net.later
        except AttributeError:
            return x

    check_follows(attempt, lambda: setattr(net, "later", 3.0))


def test_what_constant_names_do_not_name_is_not_watched():
    net = Net()
    compiled = wengert.compile(lambda x: x * getattr(net, "bonus", 2.0))
    for i in range(4):
        net.calls = i
        compiled(X)
    assert len(compiled.compilations) == 1


def test_globals_and_names_of_modules_that_are_not_there_yet(monkeypatch):
    module = types.ModuleType("settings_of_this_test")
    check_follows(
        lambda x: x * getattr(module, "rate", 2.0), lambda: setattr(module, "rate", 3.0)
    )
    check_follows(
        lambda x: x * round(2.1),
        lambda: monkeypatch.setitem(globals(), "round", lambda number: 5),
    )
    monkeypatch.undo()
    check_follows(
        lambda x: x * abs(-2.0), lambda: monkeypatch.setattr(builtins, "abs", lambda number: 7.0)
    )


def test_modules_that_are_imported_inside(monkeypatch):
    settings = types.ModuleType("settings_of_another_test")
    settings.rate = 2.0
    monkeypatch.setitem(sys.modules, "settings_of_another_test", settings)
    package = types.ModuleType("package_of_a_test")
    package.settings = settings
    monkeypatch.setitem(sys.modules, "package_of_a_test", package)
    monkeypatch.setitem(sys.modules, "package_of_a_test.settings", settings)

    def plain(x):
        import settings_of_another_test

        return x * settings_of_another_test.rate

    def chosen(x):
        from settings_of_another_test import rate

        return x * rate

    def dotted(x):
        import package_of_a_test.settings

        return x * package_of_a_test.settings.rate

    def by_name(x):
        return x * importlib.import_module("settings_of_another_test").rate

    def attempt(x):
        try:
            import module_that_comes_later
        except ImportError:
            return x
        return x * module_that_comes_later.rate

    check_follows(
        attempt, lambda: monkeypatch.setitem(sys.modules, "module_that_comes_later", settings)
    )
    for i, function in enumerate((plain, chosen, dotted, by_name)):
        check_follows(function, lambda: setattr(settings, "rate", 3.0 + i))  # noqa: B023
    other = types.ModuleType("settings_of_another_test")
    other.rate = 9.0
    check_follows(
        plain, lambda: monkeypatch.setitem(sys.modules, "settings_of_another_test", other)
    )


def test_relative_imports(monkeypatch):
    package = types.ModuleType("package_of_a_test")
    inner = types.ModuleType("package_of_a_test.inner")
    package.inner, inner.rate = inner, 2.0
    variables = {"__package__": "package_of_a_test", "__name__": "package_of_a_test.other"}
    for module in (package, inner):
        module.__path__ = []
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for i, line in enumerate(
        ("from .inner import rate", "from . import inner; rate = inner.rate")
    ):
        exec(f"def function(x):\n    {line}\n    return x * rate", variables)
        check_follows(variables["function"], lambda: setattr(inner, "rate", 3.0 + i))  # noqa: B023


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_modes():
    function = wengert.compile(lambda x: x * 2 if wengert.is_anomaly_enabled() else x)
    assert wengert.equal(function(X), X)
    with wengert.autograd.detect_anomaly():
        assert wengert.equal(function(X), X * 2)
    assert wengert.equal(function(X), X)


def test_patterns():
    options = Options()

    def by_keyword(x):
        match options:
            case Options(rate=2.0):
                return x
            case _:
                return x * 2

    def by_position(x):
        match options:
            case Options(_, 3):
                return x
            case _:
                return x * 2

    check_follows(by_keyword, lambda: setattr(options, "rate", 5.0))
    check_follows(by_position, lambda: setattr(options, "steps", 5))


def test_events_and_weak_dictionaries():
    event = threading.Event()
    check_follows(lambda x: x * 2 if event.is_set() else x, event.set)
    keep, table = Options(), weakref.WeakKeyDictionary()
    table[Options] = 2.0
    check_follows(lambda x: x * table[Options], lambda: table.update({Options: 3.0}))
    values = weakref.WeakValueDictionary(a=keep)
    compiled = wengert.compile(lambda x: x * values["a"].rate)
    for rate in (2.0, 3.0):
        keep.rate = rate
        assert wengert.equal(compiled(X), X * rate)


def test_globals_by_their_names(monkeypatch):
    check_follows(
        lambda x: x * globals()["LIMIT"], lambda: monkeypatch.setitem(globals(), "LIMIT", 5.0)
    )


def test_functions_of_libraries_are_patched(monkeypatch):
    check_follows(
        lambda x: wengert.nn.functional.relu(x),
        lambda: monkeypatch.setattr(wengert.nn.functional, "relu", wengert.exp),
    )
    check_follows(
        lambda x: x * float(np.sqrt(4.0)), lambda: monkeypatch.setattr(np, "sqrt", np.exp)
    )


def test_metaclasses_properties_and_descriptors(monkeypatch):
    check_follows(
        lambda x: x * WithMeta.factor, lambda: monkeypatch.setattr(Meta, "factor", 3.0)
    )
    check_follows(
        lambda x: x * WithMeta.factor,
        lambda: monkeypatch.setattr(WithMeta, "factor", 4.0, raising=False),
    )
    descriptor = Descriptor()
    holder = type("Holder", (), {"value_of": descriptor})()
    check_follows(lambda x: x * holder.value_of, lambda: setattr(descriptor, "value", 3.0))
    fallback = Fallback()
    check_follows(lambda x: x * fallback.rate, lambda: fallback.table.update(rate=3.0))
    fallback = Fallback()
    check_follows(lambda x: x * fallback.rate, lambda: setattr(fallback, "rate", 3.0))


def test_slots():
    thing = Slotted()
    check_follows(
        lambda x: x * (thing.scale if hasattr(thing, "scale") else 2.0),
        lambda: setattr(thing, "scale", 3.0),
    )
    check_follows(lambda x: x * thing.scale, lambda: setattr(thing, "scale", 4.0))


def test_enumerations_and_dataclasses(monkeypatch):
    color = Color.RED
    check_follows(lambda x: x * color.weight, lambda: monkeypatch.setitem(globals(), "LIMIT", 7.0))
    options = Options()
    check_follows(lambda x: x * options.rate, lambda: setattr(options, "rate", 3.0))
    check_follows(
        lambda x: x * sum(dataclasses.astuple(options)), lambda: setattr(options, "steps", 4)
    )


@pytest.mark.parametrize("make", [argparse.Namespace, types.SimpleNamespace])
def test_namespaces(make):
    options = make(rate=2.0)
    check_follows(lambda x: x * options.rate, lambda: setattr(options, "rate", 3.0))
    options = make(rate=2.0)
    check_follows(
        lambda x: x * getattr(options, "bonus", 2.0), lambda: setattr(options, "bonus", 3.0)
    )
    options = make(rate=2.0)
    check_follows(lambda x, o: x * o.rate, lambda: setattr(options, "rate", 3.0), options)


def test_attributes_of_functions():
    def scaled(x):
        return x * scaled.factor

    scaled.factor = 2.0
    check_follows(scaled, lambda: setattr(scaled, "factor", 3.0))

    def uncalled():
        pass

    uncalled.factor = 2.0
    check_follows(lambda x: x * uncalled.factor, lambda: setattr(uncalled, "factor", 3.0))


def test_the_code_of_a_function_is_replaced():
    def helper(x):
        return x * 2

    def replacement(x):
        return x * 3

    check_follows(
        lambda x: helper(x), lambda: setattr(helper, "__code__", replacement.__code__)
    )


def test_variables_that_are_not_bound_yet():
    def make():
        def function(x):
            try:
                return x * factor
            except NameError:
                return x

        def bind():
            nonlocal factor
            factor = 3.0

        if X is None:
            factor = 2.0
        return function, bind

    check_follows(*make())


# Containers ---------------------------------------------------------------------------------------


def swap_order(table):
    table["a"] = table.pop("a")


CONTAINERS = {
    "set": lambda: ({1.0, 2.0}, lambda s: s.add(5.0), lambda s: sum(s)),
    "set_contains": lambda: ({1, 2}, lambda s: s.discard(1), lambda s: 2.0 if 1 in s else 3.0),
    "deque": lambda: (collections.deque([1.0, 2.0]), lambda d: d.append(4.0), lambda d: sum(d)),
    "deque_rotated": lambda: (
        collections.deque([1.0, 2.0]), lambda d: d.rotate(1), lambda d: d[0]
    ),
    "ordered": lambda: (
        collections.OrderedDict(a=1.0, b=2.0),
        lambda d: d.move_to_end("a"),
        lambda d: next(iter(d.values())),
    ),
    "order_of_a_dict": lambda: ({"a": 1.0, "b": 2.0}, swap_order, lambda d: list(d.values())[0]),
    "defaultdict": lambda: (
        collections.defaultdict(lambda: 2.0),
        lambda d: d.update(a=5.0),
        lambda d: d.get("a", 2.0),
    ),
    "default_factory": lambda: (
        collections.defaultdict(int),
        lambda d: setattr(d, "default_factory", float),
        lambda d: 2.0 if d.default_factory is int else 3.0,
    ),
    "counter": lambda: (
        collections.Counter("aab"), lambda c: c.update("a"), lambda c: float(c["a"])
    ),
    "chain": lambda: (
        collections.ChainMap({}, {"a": 2.0}), lambda c: c.update(a=3.0), lambda c: c["a"]
    ),
    "userdict": lambda: (
        collections.UserDict(a=2.0), lambda c: c.update(a=3.0), lambda c: c["a"]
    ),
    "nested": lambda: (
        [{"a": ({2.0},)}], lambda c: c[0]["a"][0].add(1.0), lambda c: sum(c[0]["a"][0])
    ),
    "bytearray": lambda: (
        bytearray(b"ab"), lambda b: b.__setitem__(0, 1), lambda b: float(b[0])
    ),
    "array": lambda: (
        array.array("d", [2.0]), lambda a: a.__setitem__(0, 3.0), lambda a: a[0]
    ),
    "objects": lambda: (
        np.array([Options(), 1], dtype=object),
        lambda a: setattr(a[0], "rate", 3.0),
        lambda a: a[0].rate,
    ),
    "masked": lambda: (
        np.ma.masked_array([1.0, 2.0], [False, False]),
        lambda a: a.__setitem__(0, np.ma.masked),
        lambda a: float(a.sum()),
    ),
    "types_of_elements": lambda: (
        [1], lambda c: c.__setitem__(0, True), lambda c: 2.0 if c[0] is True else 1.0
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers(kind):
    container, change, read = CONTAINERS[kind]()
    check_follows(lambda x: x * read(container), lambda: change(container))
    container, change, read = CONTAINERS[kind]()
    holder = types.SimpleNamespace(inside=container)
    check_follows(lambda x, h: x * read(h.inside), lambda: change(container), holder)


def test_subclasses_of_containers():
    class Listed(list):
        factor = 2.0

    listed = Listed([1.0])
    check_follows(lambda x: x * sum(listed), lambda: listed.append(3.0))
    check_follows(lambda x: x * listed.factor, lambda: setattr(listed, "factor", 3.0))

    class Tabled(dict):
        def __getattr__(self, name):
            return self[name]

    tabled = Tabled(rate=2.0)
    check_follows(lambda x: x * tabled.rate, lambda: tabled.update(rate=3.0))


def test_views_of_dictionaries():
    table = {"a": 1.0}
    values, proxy, get = table.values(), types.MappingProxyType(table), table.get
    check_follows(lambda x: x * sum(values), lambda: table.update(b=2.0))
    check_follows(lambda x: x * proxy["a"], lambda: table.update(a=2.0))
    check_follows(lambda x: x * get("a"), lambda: table.update(a=3.0))
    check_follows(lambda x: x * len(table.keys()), lambda: table.update(c=3.0))


def test_large_arrays():
    values = np.ones((300, 300))
    assert values.nbytes > 1 << 16
    check_follows(
        lambda x: x * wengert.tensor(values).sum(), lambda: values.__setitem__((150, 7), 5.0)
    )
    transposed = np.ones((300, 301)).T
    check_follows(
        lambda x: x * float(transposed.sum()), lambda: transposed.__setitem__((150, 7), -1.0)
    )


def test_arrays_that_are_not_numbers():
    half, odd = np.float16([1, 2, 3]), np.array(["a", "bc"])
    check_follows(lambda x: x * float(half.sum()), lambda: half.__setitem__(0, 5))
    check_follows(lambda x: x * len(odd[0]), lambda: odd.__setitem__(0, "xy"))


def test_equal_tuples_and_frozen_sets_are_the_same():
    holder = types.SimpleNamespace(sizes=(2.0, (3.0,)), choices=frozenset((1, 2)))
    compiled = wengert.compile(lambda x: x * sum(holder.sizes[1]) * len(holder.choices))
    compiled(X)
    holder.sizes, holder.choices = (2.0, tuple(iter([3.0]))), frozenset([1, 2])
    compiled(X)
    assert len(compiled.compilations) == 1
    holder.sizes = (2.0, (3,))
    compiled(X)
    assert len(compiled.compilations) == 2


# Functions that hold others -----------------------------------------------------------------------


def test_contents_of_partial_functions():
    options = {"factor": 2.0}
    call = functools.partial(lambda x, options: x * options["factor"], options=options)
    check_follows(call, lambda: options.update(factor=3.0))
    call = functools.partial(lambda x, factor: x * factor, factor=2.0)
    check_follows(lambda x: call(x), lambda: call.keywords.update(factor=3.0))


def test_bound_methods_in_containers():
    nets = [Net(), Net()]
    calls = [net.forward for net in nets]
    check_follows(lambda x: calls[1](x), lambda: setattr(nets[1], "scale", 3.0))


def test_getters():
    options = Options()
    get, call = operator.attrgetter("rate"), operator.methodcaller("forward", X)
    check_follows(lambda x: x * get(options), lambda: setattr(options, "rate", 3.0))
    net = Net()
    check_follows(lambda x: x * call(net), lambda: setattr(net, "scale", 3.0))


@pytest.mark.parametrize(
    "wrap", [wengert.vmap, wengert.func.grad, wengert.compile, wengert.no_grad()]
)
def test_functions_inside_wrappers_of_this_package(wrap):
    factor = 2.0

    def inner(x):
        return (x * factor).sum() * x

    def scalar(x):
        return (x * x * factor).sum()

    wrapped = wrap(scalar if wrap is wengert.func.grad else inner)

    def change():
        nonlocal factor
        factor = 3.0

    check_follows(lambda x: wrapped(x), change)


def test_generic_functions_and_context_managers():
    @functools.singledispatch
    def scaled(value, x):
        return x * value

    check_follows(
        lambda x: scaled(2.0, x), lambda: scaled.register(float, lambda value, x: x * value * 5)
    )
    depth = [2.0]

    @contextlib.contextmanager
    def scope():
        yield depth[0]

    def function(x):
        with scope() as factor:
            return x * factor

    check_follows(function, lambda: depth.__setitem__(0, 3.0))


def test_cached_properties():
    class Cached:
        @functools.cached_property
        def rate(self):
            return self.start * 2

        start = 1.0

    thing = Cached()
    assert thing.rate == 2.0
    check_follows(lambda x: x * thing.rate, lambda: setattr(thing, "rate", 3.0))


def test_variables_of_contexts_and_threads():
    variable = contextvars.ContextVar("factor", default=2.0)
    check_follows(lambda x: x * variable.get(), lambda: variable.set(3.0))
    local = threading.local()
    local.factor = 2.0
    function = wengert.compile(lambda x: x * local.factor)
    assert wengert.equal(function(X), X * 2)
    found = []

    def other():
        local.factor = 3.0
        found.append(function(X))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert wengert.equal(found[0], X * 3) and wengert.equal(function(X), X * 2)


def test_the_environment(monkeypatch):
    monkeypatch.setenv("FACTOR_OF_A_TEST", "2")
    check_follows(
        lambda x: x * float(os.environ["FACTOR_OF_A_TEST"]),
        lambda: monkeypatch.setenv("FACTOR_OF_A_TEST", "3"),
    )
    check_follows(
        lambda x: x * float(os.getenv("FACTOR_OF_A_TEST", "7")),
        lambda: monkeypatch.delenv("FACTOR_OF_A_TEST"),
    )


def test_equal_code_with_other_globals():
    text = "def scaled(x):\n    return x * FACTOR\n"
    first, second = {"FACTOR": 2.0}, {"FACTOR": 3.0}
    for variables in (first, second):
        exec(text, variables)
    one, other = first["scaled"], second["scaled"]
    assert one.__code__ == other.__code__
    check_follows(lambda x: one(x) + other(x), lambda: second.update(FACTOR=5.0))


def test_objects_that_do_not_let_themselves_be_read():
    class Closed:
        __slots__ = ("rate",)

        def __getattr__(self, name):
            raise KeyError(name)

    closed = Closed()
    closed.rate = 2.0
    compiled = wengert.compile(lambda x: x * closed.rate)
    for rate in (2.0, 3.0, 4.0):
        closed.rate = rate
        assert wengert.equal(compiled(X), X * rate)

    class Silent(list):
        def __iter__(self):
            raise TypeError

    silent = Silent([2.0])
    check_follows(lambda x: x * silent[0], lambda: silent.__setitem__(0, 3.0))


# Tensors ------------------------------------------------------------------------------------------


def test_gradients_of_tensors_from_outside():
    w = wengert.ones(3, dtype=wengert.float64, requires_grad=True)
    function = lambda x: x if w.grad is None else x * w.grad
    check_follows(function, lambda: (w * 3).sum().backward())
    compiled = wengert.compile(function)
    compiled(X)
    w.grad.mul_(2)
    assert wengert.equal(compiled(X), X * 6) and len(compiled.compilations) == 1
    w.grad = wengert.ones(3, dtype=wengert.float64)
    assert wengert.equal(compiled(X), X)
    w.grad = None
    assert wengert.equal(compiled(X), X)


def test_gradients_of_arguments():
    def function(x):
        return x.detach() * 2 if x.grad is None else x.detach() * x.grad

    compiled = wengert.compile(function)
    x = X.clone().requires_grad_()
    assert wengert.equal(compiled(x), X * 2)
    (x * 5).sum().backward()
    assert wengert.equal(compiled(x), X * 5)
    x.grad = None
    assert wengert.equal(compiled(x), X * 2)
    assert len(compiled.compilations) == 2


def test_gradients_that_are_not_read_do_not_matter():
    w = wengert.ones(3, dtype=wengert.float64, requires_grad=True)
    compiled = wengert.compile(lambda x: wengert.autograd.grad((x * w * w).sum(), w)[0])
    for _ in range(3):
        compiled(X)
        w.grad = None
        (w * 2).sum().backward()
    assert len(compiled.compilations) == 1


def test_attributes_that_users_give_to_tensors():
    w = wengert.ones(3, dtype=wengert.float64)
    check_follows(
        lambda x: x * 2 if getattr(w, "marked", False) else x, lambda: setattr(w, "marked", True)
    )
    w.factor = 2.0
    check_follows(lambda x: x * w.factor, lambda: setattr(w, "factor", 3.0))
    compiled = wengert.compile(lambda x: x * getattr(x, "factor", 2.0))
    x = X.clone()
    assert wengert.equal(compiled(x), X * 2)
    x.factor = 3.0
    assert wengert.equal(compiled(x), X * 3)
    assert wengert.equal(compiled(X), X * 2)
    assert len(compiled.compilations) == 2


def test_kinds_of_tensors_that_are_not_computed_with():
    w = wengert.ones(2)
    check_follows(lambda x: x * w.shape[0], lambda: setattr(w, "data", wengert.ones(5)))
    check_follows(lambda x: x * 2 if w.requires_grad else x, lambda: w.requires_grad_())
    held = {"w": wengert.ones(2, 3)}
    check_follows(lambda x: x * held["w"].size(0), lambda: held["w"].t_())


# What cannot be watched ---------------------------------------------------------------------------


def numbers():
    for i in itertools.count(2):
        yield float(i)


def referred():
    thing = Options()
    reference = weakref.ref(thing)

    def read():
        found = reference()
        return 1.0 if found is None else found.rate

    return read, lambda: setattr(thing, "rate", thing.rate + 1)


def counting(iterator):
    return (lambda: float(next(iterator))), (lambda: None)


def drawing(generator):
    return (lambda: float(generator.random())), (lambda: None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: counting(itertools.count(1)),
        lambda: counting(iter([1.0, 2.0, 3.0, 4.0])),
        lambda: counting(numbers()),
        lambda: drawing(np.random.default_rng(0)),
        referred,
    ],
)
def test_what_cannot_be_watched_runs_uncompiled(make):
    """The compilation serves the call that it was made for and no other."""
    read, change = make()
    its_read, its_change = make()
    compiled = wengert.compile(lambda x: x * read())
    for _ in range(3):
        assert wengert.equal(compiled(X), X * its_read())
        change()
        its_change()
    assert len(compiled.compilations) == 1
    assert "uncompiled from then on" in explain(compiled)


def test_too_many_things_to_watch():
    items = [[float(i)] for i in range(25_000)]
    compiled = wengert.compile(lambda x: x * items[-1][0])
    assert wengert.equal(compiled(X), X * items[-1][0])
    items[-1][0] = 2.0
    assert wengert.equal(compiled(X), X * 2)


def test_locks_and_immutable_objects_do_not_matter():
    import datetime
    import decimal
    import fractions
    import pathlib
    import re
    import uuid

    lock, day = threading.Lock(), datetime.datetime(2020, 1, 2)
    amount, part = decimal.Decimal("2.5"), fractions.Fraction(1, 2)
    path, pattern = pathlib.Path("a/b"), re.compile("b+")
    number: typing.Any = uuid.UUID(int=7)

    def function(x):
        with lock:
            return x * day.day * float(amount) * float(part) * len(path.parts) * number.int * len(
                pattern.findall("abb")
            )

    compiled = wengert.compile(function)
    for _ in range(3):
        assert wengert.equal(compiled(X), function(X))
        str(path)
    assert len(compiled.compilations) == 1 and "uncompiled" not in explain(compiled)


def test_functions_of_this_package_need_not_be_watched():
    factor = 2.0

    def change():
        nonlocal factor
        factor = 3.0

    wengert.sum(X)  # from then on the package has the name
    check_follows(lambda x: wengert.sum(x * factor) * x, change)


def test_a_global_with_the_name_of_a_method_is_not_read(monkeypatch):
    monkeypatch.setitem(globals(), "exp", [1])
    compiled = wengert.compile(lambda x: x.exp())
    compiled(X)
    globals()["exp"].append(2)
    assert wengert.allclose(compiled(X), X.exp())
    assert len(compiled.compilations) == 1, explain(compiled)
