"""What a compiled function reads from outside: changes of it are noticed, other changes are not."""

import functools
import sys
import types

import numpy as np
import pytest

import wengert
from wengert.compiler import explain

X = wengert.linspace(-1.5, 1, 3, dtype=wengert.float64)
SCALE = 2.0
TABLE = {"a": [1.0, 2.0]}
UNUSED = 0
IMPORTED = []


def count(compiled):
    return len(compiled.compilations)


def check_follows(function, change, *args):
    """After `change` the compiled function is compiled again and agrees with the function."""
    compiled = wengert.compile(function)
    for _ in range(2):
        assert wengert.allclose(compiled(X, *args), function(X, *args))
    assert count(compiled) == 1
    before = function(X, *args)
    change()
    assert not wengert.allclose(before, function(X, *args)), "the change must matter"
    assert wengert.allclose(compiled(X, *args), function(X, *args))
    assert count(compiled) == 2
    return compiled


def helper(x):
    return x * SCALE


class Config:
    factor = 3.0

    def __init__(self):
        self.power = 2
        self.inner = None
        self.steps = 0

    def apply(self, x):
        return x**self.power * self.factor


class Slotted:
    __slots__ = ("scale",)


def test_globals_of_functions_that_are_called(monkeypatch):
    compiled = check_follows(
        lambda x: helper(x) + 1, lambda: monkeypatch.setitem(globals(), "SCALE", 5.0)
    )
    assert "`SCALE`" in explain(compiled)


def test_functions_that_are_replaced(monkeypatch):
    check_follows(
        lambda x: helper(x), lambda: monkeypatch.setitem(globals(), "helper", lambda x: x - 7)
    )


def test_contents_of_containers(monkeypatch):
    items = [1.0, 2.0]
    check_follows(lambda x: x * items[1], lambda: items.__setitem__(1, 9.0))
    check_follows(lambda x: x * sum(items), lambda: items.append(4.0))
    check_follows(
        lambda x: x * sum(TABLE["a"]), lambda: monkeypatch.setitem(TABLE, "a", [1.0, 2.0, 3.0])
    )


def test_attributes_of_objects_at_any_depth():
    config = Config()
    config.inner = Config()
    config.inner.inner = {"deep": Config()}

    def change():
        config.inner.inner["deep"].power = 3

    check_follows(lambda x: config.inner.inner["deep"].apply(x), change)


def test_attributes_of_classes(monkeypatch):
    config = Config()
    check_follows(lambda x: config.apply(x), lambda: monkeypatch.setattr(Config, "factor", 4.0))


def test_attributes_in_slots():
    thing = Slotted()
    thing.scale = 2.0
    check_follows(lambda x: x * thing.scale, lambda: setattr(thing, "scale", 3.0))


def test_attributes_by_computed_names():
    config = Config()
    check_follows(
        lambda x: x * getattr(config, "po" + "wer"), lambda: setattr(config, "power", 3)
    )


def test_modules():
    module = types.ModuleType("settings_of_a_test")
    module.rate = 0.5
    check_follows(lambda x: x * module.rate, lambda: setattr(module, "rate", 0.25))


def test_closures_of_closures():
    power = 2

    def inner(x):
        return x**power

    def outer(x):
        return inner(x) + 1

    def change():
        nonlocal power
        power = 4

    check_follows(outer, change)


def test_default_arguments_are_read_from_the_function():
    def function(x, factor=2.0):
        return x * factor

    def change():
        function.__defaults__ = (3.0,)

    check_follows(lambda x: function(x), change)


def test_partial_functions_and_bound_methods():
    config = Config()
    call = functools.partial(lambda f, x: f(x) * 2, config.apply)
    check_follows(call, lambda: setattr(config, "power", 3))


def test_attributes_of_arguments():
    config = Config()
    check_follows(lambda x, c: c.apply(x), lambda: setattr(config, "power", 3), config)


def test_arrays():
    array = np.array([1.0, 2.0, 3.0])

    def change():
        array[0] = 5.0

    check_follows(lambda x: x * wengert.tensor(np.sin(array)), change)


def test_what_is_not_read_is_not_watched(monkeypatch):
    config = Config()
    compiled = wengert.compile(lambda x: config.apply(x))
    for i in range(3):
        config.steps = i
        monkeypatch.setitem(globals(), "UNUSED", i)
        compiled(X)
    assert count(compiled) == 1


def test_signs_of_zeros_and_equal_numbers():
    scale = 0.0
    compiled = wengert.compile(lambda x: 1 / (x * scale))
    first = compiled(X)
    scale = float("0.0")  # another object, the same number
    compiled(X)
    assert count(compiled) == 1
    scale = -0.0
    assert not wengert.equal(compiled(X), first)
    assert count(compiled) == 2


def test_cycles_of_objects():
    config = Config()
    config.inner = config
    check_follows(lambda x: config.inner.apply(x), lambda: setattr(config, "power", 3))


def test_under_another_profiler():
    config = Config()
    sys.setprofile(lambda *event: None)
    try:
        check_follows(lambda x: helper(config.apply(x)), lambda: setattr(config, "power", 3))
        with pytest.MonkeyPatch.context() as patch:
            check_follows(
                lambda x: wengert.nn.functional.relu(x),
                lambda: patch.setattr(wengert.nn.functional, "relu", wengert.exp),
            )
    finally:
        sys.setprofile(None)


def test_nothing_is_left_behind():
    with pytest.raises(ZeroDivisionError):
        wengert.compile(lambda x: 1 / 0)(X)
    assert sys.getprofile() is None


def test_going_back_uses_what_was_compiled():
    config = Config()
    compiled = wengert.compile(lambda x: config.apply(x))
    for power in (2, 3, 2, 3, 2):
        config.power = power
        assert wengert.allclose(compiled(X), X**power * 3)
    assert count(compiled) == 2


def test_imports_are_not_watched(monkeypatch, tmp_path):
    """An import inside the function may call anybody's hooks, whose state is their own."""
    (tmp_path / "made_for_a_test.py").write_text("FACTOR = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    IMPORTED.clear()

    class Hook:
        @staticmethod
        def find_spec(name, path=None, target=None):
            IMPORTED.append(name)

    monkeypatch.setattr(sys, "meta_path", [Hook, *sys.meta_path])
    monkeypatch.delitem(sys.modules, "made_for_a_test", raising=False)

    def function(x):
        import made_for_a_test

        return x * made_for_a_test.FACTOR

    compiled = wengert.compile(function)
    compiled(X)
    assert "made_for_a_test" in IMPORTED
    IMPORTED.append("something else")
    compiled(X)
    assert len(compiled.compilations) == 1, explain(compiled)
    monkeypatch.delitem(sys.modules, "made_for_a_test", raising=False)


def test_an_attribute_given_to_a_function_that_wraps_another():
    @functools.wraps(len)
    def inner(x):
        return x * getattr(inner, "scale", 2)

    compiled = wengert.compile(lambda x: inner(x))
    assert [compiled(wengert.ones(1)).item() for _ in range(3)] == [2, 2, 2]
    inner.scale = 3
    assert [compiled(wengert.ones(1)).item() for _ in range(3)] == [3, 3, 3]
