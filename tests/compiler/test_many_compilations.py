"""Compiling again and again, each time with other numbers: nothing of it stays."""

import gc
from collections import Counter

import pytest

import wengert
import width
from wengert.compiler.autodiff import rules
from wengert.compiler.ir.remembered import Remembered
from wengert.compiler.native import forms, table
from wengert.compiler.passes import shapes


def elementwise(x, number):
    return (x * number).sin().sum()


def normed(x, number):
    scores = wengert.nn.functional.softmax((x @ x.T) * number, -1)
    return (scores - number).cumsum(0).square().sum()


def looped(x, number):
    for _ in range(6):
        x = (x * number).sin()
    return x.sum()


def sorted_values(x, number):
    return ((x * number).sort(0)[0] + number).sum()


PROGRAMS = [elementwise, normed, looped, sorted_values]


def compiled_once(program, number):
    compiled = wengert.compile(lambda x: program(x, number))
    x = wengert.linspace(0, 1, 9).reshape(3, 3).requires_grad_()
    compiled(x).backward()
    assert len(compiled.compilations) == 1


@pytest.fixture
def short_memories(monkeypatch):
    for memory in (rules._rules, forms._FORMS, shapes._known):
        monkeypatch.setattr(memory, "_most", 1)
        while len(memory) > 1:
            memory.forget_oldest()


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_was_compiled_is_freed(program, short_memories):
    for number in range(3):
        compiled_once(program, 100.5 + number)
    gc.collect()
    codes, before = len(table._codes), Counter(type(each) for each in gc.get_objects())
    for number in range(1_000 // len(PROGRAMS) if width.full else 5):
        compiled_once(program, 0.5 + number / 64)
    gc.collect()
    grown = Counter(type(each) for each in gc.get_objects()) - before
    ours = {kind: n for kind, n in grown.items() if kind.__module__.startswith("wengert")}
    assert not any(n > 2 for n in ours.values()), ours
    # Python remembers of all classes that it meets whether they are of an abstract kind.
    assert not any(n >= 60 for n in grown.values()), grown
    assert len(table._codes) <= codes + 2


def test_what_is_remembered_has_a_limit():
    memory = Remembered(3)
    for i in range(10):
        memory[i] = i
        memory[i] = -i
    assert len(memory) == 3
    assert [memory.get(i) for i in range(6, 10)] == [None, -7, -8, -9]
