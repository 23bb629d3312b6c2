"""A compiled function does what the function does: effects, and causes other than arguments."""

import collections
import contextvars
import datetime
import io
import itertools
import logging
import os
import random
import secrets
import sys
import time
import types
import uuid
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import wengert
from wengert.compiler import TraceError, explain

CALLS = 4
_random = random.Random(0)
counter = 0
total = None


def outcomes(make, compiled):
    """What four calls return and leave behind, of a program that `make` makes anew."""
    function, state = make()
    run = wengert.compile(function) if compiled else function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        returned = [shown(run(wengert.ones(2) * (i + 1))) for i in range(CALLS)]
    return returned, shown(state())


def shown(value):
    if isinstance(value, wengert.Tensor):
        return (value.tolist(), value.requires_grad)
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [shown(item) for item in value]
    return value


# Each returns a function and another that reads what it has changed.


def list_item():
    n = [0]

    def f(x):
        n[0] += 1
        return x + n[0]

    return f, lambda: n


def attribute():
    s = types.SimpleNamespace(t=0)

    def f(x):
        s.t += 1
        return x * s.t

    return f, lambda: s.t


def attribute_with_tensor():
    s = types.SimpleNamespace(state=wengert.zeros(2))

    def f(x):
        s.state = s.state + x
        return s.state * 1

    return f, lambda: s.state


def appended_tensor():
    log = []

    def f(x):
        log.append(x * 2)
        return x + 1

    return f, lambda: log


def appended_and_read():
    log = []

    def f(x):
        log.append(x * 2)
        return x + len(log)

    return f, lambda: log


def global_variable():
    global counter
    counter = 0

    def f(x):
        global counter
        counter += 1
        return x + counter

    return f, lambda: counter


def global_tensor():
    global total
    total = wengert.zeros(2)

    def f(x):
        global total
        total = total + x
        return x * 2

    return f, lambda: total


def nonlocal_variable():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f, lambda: n


def nonlocal_tensor():
    h = wengert.zeros(2)

    def f(x):
        nonlocal h
        h = (h + x).tanh()
        return h

    return f, lambda: h


def dictionary_entry():
    d = {}

    def f(x):
        d["k"] = d.get("k", 0) + 1
        return x + d["k"]

    return f, lambda: d


def dictionary_with_tensors():
    d = {"h": (wengert.zeros(2), wengert.ones(2))}

    def f(x):
        h, c = d["h"]
        d["h"] = (h + x, c * 2)
        return h * c

    return f, lambda: d


def tensor_in_a_list():
    h = [wengert.zeros(2), None]

    def f(x):
        h[1] = h[0]
        h[0] = h[0] * 0.5 + x
        return h[0].sum()

    return f, lambda: h


def first_call_stores():
    s = types.SimpleNamespace(first=None)

    def f(x):
        if s.first is None:
            s.first = x * 1
        return x + s.first

    return f, lambda: s.first


def cache_of_numbers():
    cache = {}

    def f(x):
        if len(x) not in cache:
            cache[len(x)] = len(x) * 10
        return x + cache[len(x)]

    return f, lambda: cache


def deleted_attribute():
    s = types.SimpleNamespace(once=1, n=0)

    def f(x):
        if hasattr(s, "once"):
            del s.once
            return x
        return x * 2

    return f, lambda: hasattr(s, "once")


def sets_and_deques():
    seen, last = set(), collections.deque(maxlen=2)

    def f(x):
        seen.add(len(seen))
        last.append(len(seen))
        return x * len(seen)

    return f, lambda: [sorted(seen), list(last)]


def class_attribute():
    class Box:
        n = 0

    def f(x):
        Box.n += 1
        return x + Box.n

    return f, lambda: Box.n


def slots():
    class Box:
        __slots__ = ("n",)

    box = Box()
    box.n = 0

    def f(x):
        box.n += 1
        return x + box.n

    return f, lambda: box.n


def by_computed_name():
    s = types.SimpleNamespace()

    def f(x):
        setattr(s, "a" + "b", getattr(s, "ab", 0) + 1)
        return x + s.ab

    return f, lambda: vars(s)


def numpy_array():
    a = np.zeros(2)

    def f(x):
        a[0] += 1
        return x + float(a[0])

    return f, a.tolist


def bytes_changed():
    b = bytearray(b"\0\0")

    def f(x):
        b[1] += 1
        return x + b[1]

    return f, lambda: bytes(b)


def context_variable():
    v = contextvars.ContextVar("v", default=0)

    def f(x):
        v.set(v.get() + 1)
        return x + v.get()

    return f, v.get


def iterator():
    it = iter(range(100))
    return (lambda x: x * next(it)), lambda: next(it)


def iterator_in_a_loop():
    it = itertools.count()

    def f(x):
        for n in it:
            if n % 3 == 2:
                break
        return x + n

    return f, lambda: next(it)


def generator():
    def numbers():
        yield from range(100)

    g = numbers()
    return (lambda x: x * next(g)), lambda: next(g)


def effect_before_an_unknown_value():
    n = [0]

    def f(x):
        n[0] += 1
        return x if x.sum() > 5 else -x * n[0]

    return f, lambda: n


def effect_before_an_error():
    n = [0]

    def f(x):
        n[0] += 1
        try:
            return x + wengert.ones(7)
        except RuntimeError:
            return x * n[0]

    return f, lambda: n


def caught_refusal():
    out = io.StringIO()

    def f(x):
        try:
            out.write("called ")
        except Exception:
            return x * 100
        return x + 1

    return f, out.getvalue


def gradient_set():
    w = wengert.ones(2, requires_grad=True)

    def f(x):
        w.grad = x * 2
        return x * w

    return f, lambda: w.grad


def gradient_cleared():
    w = wengert.ones(2, requires_grad=True)
    w.grad = wengert.ones(2)

    def f(x):
        w.grad = None
        return x * w

    return f, lambda: w.grad


def whole_step():
    w = wengert.ones(2, requires_grad=True)

    def f(x):
        w.grad = None
        loss = (x * w).square().sum()
        loss.backward()
        with wengert.no_grad():
            w.sub_(w.grad * 0.1)
        return loss

    return f, lambda: [w, w.grad]


def adam_by_hand():
    class Adam:
        def __init__(self):
            self.t = 0
            self.m = wengert.zeros(2)

        def step(self, g):
            self.t += 1
            self.m = self.m * 0.9 + g * 0.1
            return self.m / (1 - 0.9**self.t)

    adam = Adam()
    return adam.step, lambda: [adam.t, adam.m]


def module_with_state():
    class Recurrent(wengert.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("h", wengert.zeros(2))
            self.last = None

        def forward(self, x):
            self.h = (self.h + x).tanh()
            self.last = x
            return self.h * 2

    module = Recurrent()
    return module, lambda: [module.h, module.last]


def recorded_state():
    w = wengert.ones(2, requires_grad=True)
    s = types.SimpleNamespace(h=wengert.zeros(2))

    def f(x):
        s.h = s.h * w + x
        return s.h.sum()

    return f, lambda: [s.h, *wengert.autograd.grad(s.h.sum(), w)]


def dataclass_fields():
    @dataclass
    class Record:
        losses: list = field(default_factory=list)
        best: float = 1e9

    record = Record()

    def f(x):
        record.best = min(record.best, len(record.losses) - 10.0)
        record.losses.append(x.sum())
        return x * 2

    return f, lambda: [record.best, record.losses]


def objects_of_its_own():
    class Box:
        def __init__(self, x):
            self.x = x
            self.items = [x]

    def f(x):
        box = Box(x)
        box.y = box.x * 2
        box.items.append(box.y)
        found = {}
        found["z"] = sum(box.items)
        return found["z"]

    return f, lambda: None


PROGRAMS = [
    list_item, attribute, attribute_with_tensor, appended_tensor, appended_and_read,
    global_variable, global_tensor, nonlocal_variable, nonlocal_tensor, dictionary_entry,
    dictionary_with_tensors, tensor_in_a_list, first_call_stores, cache_of_numbers,
    deleted_attribute, sets_and_deques, class_attribute, slots, by_computed_name, numpy_array,
    bytes_changed, context_variable, iterator, iterator_in_a_loop, generator,
    effect_before_an_unknown_value, effect_before_an_error, caught_refusal, gradient_set,
    gradient_cleared, whole_step, adam_by_hand, module_with_state, recorded_state,
    dataclass_fields, objects_of_its_own,
]  # fmt: skip


@pytest.mark.parametrize("make", PROGRAMS)
def test_effects_are_those_of_the_function(make):
    assert outcomes(make, compiled=True) == outcomes(make, compiled=False)


#: Stored anew by each call of the graph; the others run uncompiled.
COMPILED = [
    attribute_with_tensor, appended_tensor, global_tensor, nonlocal_tensor,
    dictionary_with_tensors, tensor_in_a_list, first_call_stores, cache_of_numbers,
    module_with_state, recorded_state, objects_of_its_own,
]  # fmt: skip


@pytest.mark.parametrize("make", COMPILED)
def test_stores_of_tensors_stay_compiled(make):
    function, _ = make()
    compiled = wengert.compile(function)
    plain = compiled.forward if isinstance(compiled, wengert.nn.Module) else compiled
    for _ in range(3):
        compiled(wengert.ones(2))
    made = len(plain.compilations)
    assert 1 <= made <= 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(wengert.ones(2))
    assert len(plain.compilations) == made
    assert sum(each.calls for each in plain.compilations) >= 2


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (list_item, r"changes `n\[0\]`.*\n.*n\[0\] \+= 1"),
        (attribute, r"changes `s\.t`.*\n.*s\.t \+= 1"),
        (global_variable, r"changes `counter`.*\n.*counter \+= 1"),
        (nonlocal_variable, r"changes `n`.*\n.*n \+= 1"),
        (adam_by_hand, r"changes `self\.t`.*\n.*self\.t \+= 1"),
        (caught_refusal, r"write\(\) does more.*\n.*out\.write"),
        (iterator, r"takes? values from the iterator `it`"),
    ],
)
def test_one_warning_names_the_line(make, line):
    function, _ = make()
    compiled = wengert.compile(function)
    with pytest.warns(UserWarning, match=line) as noted:
        for _ in range(CALLS):
            compiled(wengert.ones(2))
    assert len(noted) == 1
    whole, _ = make()
    with pytest.raises(TraceError, match=line):
        wengert.compile(whole, fullgraph=True)(wengert.ones(2))


OUTSIDE = {
    "random.random": lambda x: x * random.random(),
    "random.Random": lambda x: x * _random.gauss(0, 1),
    "time.time": lambda x: x * time.time(),
    "time.perf_counter_ns": lambda x: x * time.perf_counter_ns(),
    "datetime.now": lambda x: x * datetime.datetime.now().microsecond,
    "os.getpid": lambda x: x * os.getpid(),
    "os.listdir": lambda x: x * len(os.listdir(".")),
    "open": lambda x: x * len(Path(__file__).read_text()),
    "uuid4": lambda x: x * uuid.uuid4().int,
    "secrets": lambda x: x * secrets.randbelow(1000),
    "print": lambda x: (print(len(x), file=sys.stderr), x)[1],
    "logging": lambda x: (logging.getLogger("effects").warning("seen"), x)[1],
    "warnings": lambda x: (warnings.warn("seen", stacklevel=1), x)[1],
    "putenv": lambda x: (os.environ.__setitem__("WENGERT_EFFECT", "1"), x)[1],
    "str of a tensor": lambda x: x * len(f"{x}"),
    "repr of a tensor": lambda x: x * len(repr(x)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_reaches_outside_is_never_traced(name):
    with pytest.raises(TraceError):
        wengert.compile(OUTSIDE[name], fullgraph=True)(wengert.ones(2))


def test_the_environment_is_watched():
    def f(x):
        return x * float(os.environ["WENGERT_EFFECT"])

    os.environ["WENGERT_EFFECT"] = "2"
    compiled = wengert.compile(f, fullgraph=True)
    assert compiled(wengert.ones(1)).item() == 2
    os.environ["WENGERT_EFFECT"] = "3"
    assert compiled(wengert.ones(1)).item() == 3


def test_numpy_draws_are_those_of_the_function():
    def drawn(run):
        np.random.seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [run(wengert.ones(1)).item() for _ in range(CALLS)]

    def f(x):
        return x * np.random.rand()

    assert drawn(wengert.compile(f)) == drawn(f)


def test_output_appears_once_per_call(capsys):
    def f(x):
        print("called with", len(x))
        return x * 2

    compiled = wengert.compile(f)
    with pytest.warns(UserWarning, match=r"print\(\) does more"):
        compiled(wengert.ones(2))
    compiled(wengert.ones(3))
    assert capsys.readouterr().out == "called with 2\ncalled with 3\n"


def test_nothing_is_left_of_a_trace_that_fails():
    s = types.SimpleNamespace(h=wengert.zeros(2), n=[1], d={"a": 1})
    before = s.h

    def f(x):
        s.h = s.h + x
        s.n.append(x)
        s.d["b"] = x
        s.new = x
        raise KeyError("at the end")

    with pytest.raises(KeyError, match="at the end"):
        wengert.compile(f, fullgraph=True)(wengert.ones(2))
    assert s.h is before and s.n == [1] and s.d == {"a": 1} and not hasattr(s, "new")


def test_errors_are_those_of_the_function():
    def f(x):
        if flag[0]:
            raise ValueError("not yet")
        return x * 2

    flag = [True]
    compiled = wengert.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            with pytest.raises(ValueError, match="not yet"):
                compiled(wengert.ones(2))
        flag[0] = False
        assert wengert.equal(compiled(wengert.ones(2)), wengert.ones(2) * 2)
    assert len(compiled.compilations) == 1


def test_inner_functions_stay_compiled():
    inner = wengert.compile(lambda x: x.sin() * 2)

    def outer(x):
        return inner(x) if x.sum() > 0 else x

    compiled = wengert.compile(outer)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        compiled(wengert.ones(2))
    compiled(wengert.ones(2))
    assert inner.compilations[0].calls == 2


def test_stored_results_are_the_returned_ones():
    s = types.SimpleNamespace(h=None)

    def f(x):
        s.h = x * 2
        return s.h

    compiled = wengert.compile(f)
    for _ in range(3):
        assert compiled(wengert.ones(2)) is s.h


def test_state_that_another_puts_there_is_read():
    s = types.SimpleNamespace(h=wengert.zeros(2))

    def f(x):
        s.h = s.h + x
        return s.h

    compiled = wengert.compile(f)
    compiled(wengert.ones(2))
    s.h = wengert.ones(2) * 10
    assert compiled(wengert.ones(2)).tolist() == [11, 11]
    s.h = 5.0
    assert compiled(wengert.ones(2)).tolist() == [6, 6]
    s.h = wengert.ones(1)
    assert compiled(wengert.ones(2)).tolist() == [2, 2]


def test_a_mode_left_behind_is_refused():
    def f(x):
        wengert.set_grad_enabled(False)
        return x * 2

    try:
        with pytest.warns(UserWarning, match="leaves another grad mode behind"):
            wengert.compile(f)(wengert.ones(2))
        assert not wengert.is_grad_enabled()
    finally:
        wengert.set_grad_enabled(True)


def test_many_kinds_that_come_once_are_not_looked_at_for_ever():
    compiled = wengert.compile(lambda x, n: x * n)
    with pytest.warns(UserWarning, match="was compiled 64 times"):
        for i in range(200):
            assert compiled(wengert.ones(1), i).item() == i
    assert len(compiled.compilations) == 64
    assert "64 compilations" in explain(compiled)


@pytest.mark.parametrize(("known", "is_left"), [(0, True), (1, True), (9, False)])
def test_compiled_kinds_are_given_up_where_most_calls_are_of_others(known, is_left):
    def scaled(x, n):
        return x * n

    compiled = wengert.compile(scaled, backend="interpreter")
    x = wengert.ones(1)
    with pytest.warns(UserWarning, match="was compiled 64 times"):
        for i in range(64 * 4):
            assert compiled(x, i).item() == i
            for _ in range(known if i > 64 and i % 3 == 0 else 0):
                assert compiled(x, 1).item() == 1
    assert (compiled.plain is scaled) == is_left


@pytest.mark.filterwarnings("ignore:.* runs uncompiled")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.detach() * 1).requires_grad_() * 2,
        lambda x: (x.detach() * 1).requires_grad_(),
        lambda x: wengert.ones(2, requires_grad=True) * x.detach(),
        lambda x: (x.detach() * 1).requires_grad_() * x,
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_results_of_leaves_made_inside_require_grad(function, recorded):
    x = wengert.ones(2, requires_grad=recorded)
    for _ in range(2):
        ours, expected = wengert.compile(function)(x), function(x)
        assert ours.requires_grad and ours.is_leaf is expected.is_leaf


def test_leaves_made_inside_for_a_gradient_are_traced():
    def cubed_slope(x):
        leaf = x.detach().requires_grad_()
        return wengert.autograd.grad((leaf**3).sum(), leaf)[0]

    assert wengert.compile(cubed_slope, fullgraph=True)(wengert.ones(2)).tolist() == [3, 3]
