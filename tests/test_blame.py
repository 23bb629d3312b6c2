"""Errors about saved values say who saved, who changed and who freed them, and where."""

import functools
import re
import sys
import threading

import numpy as np
import pytest

import wengert
from wengert.nn import functional

FILE = re.escape(__file__)
SAVED = re.compile(r"(\w+) saved it at (.+?):(\d+), in (\S+): `(.*?)`\.")
CHANGED = re.compile(r"It was changed by `(\w+)` at (.+?):(\d+), in (\S+): `(.*?)`\.")
RECORDED = re.compile(r"(\w+) was recorded at (.+?):(\d+), in (\S+): `(.*?)` and freed")
FREED = re.compile(r"freed by the backward at (.+?):(\d+), in (\S+): `(.*?)`;")
VERSIONS = re.compile(r"is at version (\d+); expected version (\d+) instead")


def next_line():
    """The number of the line after the caller's."""
    return sys._getframe(1).f_lineno + 1


def message_of(backward):
    with pytest.raises(RuntimeError) as caught:
        backward()
    return str(caught.value)


def leaf(*shape):
    return wengert.full(shape or (3,), 0.5, requires_grad=True)


# In-place changes ---------------------------------------------------------------------------------


def test_all_is_named():
    x = leaf()
    saved = next_line()
    y = x.exp()
    changed = next_line()
    y.mul_(2)
    message = message_of(y.sum().backward)
    assert "modified by an inplace operation" in message
    assert SAVED.search(message).groups() == (
        "ExpBackward0", __file__, str(saved), "test_all_is_named", "y = x.exp()",
    )
    assert CHANGED.search(message).groups() == (
        "mul_", __file__, str(changed), "test_all_is_named", "y.mul_(2)",
    )
    assert VERSIONS.search(message).groups() == ("1", "0")
    assert "output 0 of ExpBackward0" in message
    assert "float32 [3]" in message
    assert "clone()" in message


def test_versions_count_all_changes():
    x, w = leaf(), wengert.ones(3)
    w.add_(1)
    w.add_(1)
    y = x * w
    for _ in range(3):
        w.add_(1)
    assert VERSIONS.search(message_of(y.sum().backward)).groups() == ("5", "2")


def test_the_last_change_is_named():
    x, w = leaf(), wengert.ones(3)
    y = x * w
    w.add_(1)
    changed = next_line()
    w.zero_()
    name, _, line, *_ = CHANGED.search(message_of(y.sum().backward)).groups()
    assert (name, line) == ("zero_", str(changed))


CHANGES = {
    "mul_": lambda w: w.mul_(2),
    "add_": lambda w: w.add_(w.detach().clone()),
    "copy_": lambda w: w.copy_(wengert.zeros(2, 3)),
    "fill_": lambda w: w.fill_(0.25),
    "zero_": lambda w: w.zero_(),
    "tanh_": lambda w: w.tanh_(),
    "clamp_": lambda w: w.clamp_(0, 1),
    "transpose_": lambda w: w.transpose_(0, 1),
    "masked_fill_": lambda w: w.masked_fill_(w > 0, 0.0),
    "index_add_": lambda w: w.index_add_(0, wengert.tensor([0]), wengert.ones(1, 3)),
    "increment_version": lambda w: wengert.autograd.graph.increment_version(w),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_kind_of_change_is_named(name):
    x, w = leaf(2, 3), wengert.ones(2, 3)
    y = x * w
    CHANGES[name](w)
    found, file, _, function, source = CHANGED.search(message_of(y.sum().backward)).groups()
    assert found == name
    assert file == __file__
    assert function == "<lambda>"
    assert source.startswith(f'"{name}": lambda w:')


def test_operators_and_assignments():
    x = leaf()
    for change, name in ((add_in_place, "add_"), (assign, None)):
        w = wengert.ones(3)
        y = x * w
        change(w)
        found, _, _, function, _ = CHANGED.search(message_of(y.sum().backward)).groups()
        assert name in (None, found)
        assert function == change.__name__


def add_in_place(w):
    w += 1


def assign(w):
    w[0] = 7.0


def test_change_without_grad_mode():
    x, w = leaf(), wengert.ones(3)
    y = x * w
    with wengert.no_grad():
        changed = next_line()
        w.mul_(0.5)
    assert CHANGED.search(message_of(y.sum().backward)).group(3) == str(changed)


@pytest.mark.parametrize("alias", [lambda w: w[0], lambda w: w.view(-1), lambda w: w.detach()])
@pytest.mark.parametrize("made", ["before", "after"])
def test_change_through_an_alias(alias, made):
    x, w = leaf(), wengert.ones(3)
    other = alias(w) if made == "before" else None
    y = x * w
    other = alias(w) if made == "after" else other
    changed = next_line()
    other.add_(1)
    name, _, line, *_ = CHANGED.search(message_of(y.sum().backward)).groups()
    assert (name, line) == ("add_", str(changed))


def test_change_of_the_base_of_a_saved_view():
    x, base = leaf(), wengert.ones(2, 3)
    y = x * base[0]
    changed = next_line()
    base.mul_(2)
    assert CHANGED.search(message_of(y.sum().backward)).group(3) == str(changed)


def test_data_is_not_followed():
    x, w = leaf(), wengert.ones(3)
    y = x * w
    w.data.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_shape_and_producer_of_the_changed_tensor():
    x = leaf(2, 3)
    hidden = x * 2
    y = hidden * hidden
    hidden.add_(1)
    message = message_of(y.sum().backward)
    assert "float32 [2, 3]" in message
    assert "output 0 of AddBackward0" in message
    assert SAVED.search(message).group(1) == "MulBackward0"


# Where the line is found --------------------------------------------------------------------------


def saving_line(record):
    """The line in the error after what record() returns as saved has been changed."""
    out, changed = record()
    changed.mul_(2)
    return SAVED.search(message_of(out.sum().backward))


def test_statement_over_several_lines():
    x, w = leaf(), wengert.ones(3)
    first = next_line()
    y = wengert.add(
        x,
        x
        * w,
    )
    w.mul_(2)
    line = int(SAVED.search(message_of(y.sum().backward)).group(3))
    assert first <= line <= first + 4


def test_comprehension_lambda_and_builtin():
    x, w = leaf(), wengert.ones(3)
    records = (
        lambda: ([t * w for t in [x]][0], w),
        lambda: (sorted([x], key=lambda t: (t * w).sum().item())[0] * w, w),
        lambda: (next(t * w for t in [x]), w),
        lambda: (functools.reduce(lambda a, b: a * b, [x, w]), w),
        lambda: (functools.partial(wengert.mul, x)(w), w),
        lambda: (list(map(wengert.mul, [x], [w]))[0], w),
        lambda: (np.multiply(x, w), w),
    )
    first = next_line() - len(records) - 2
    for number, record in enumerate(records):
        found = saving_line(record)
        assert (found.group(2), int(found.group(3))) == (__file__, first + number)


def test_method_of_a_class():
    class Model:
        def __init__(self):
            self.weight = wengert.ones(3)

        def forward(self, x):
            return x * self.weight

    model, x = Model(), leaf()
    found = saving_line(lambda: (model.forward(x), model.weight))
    assert (found.group(4), found.group(5)) == ("forward", "return x * self.weight")


def test_code_without_a_file():
    x, w = leaf(), wengert.ones(3)
    space = {"x": x, "w": w}
    exec(compile("\n\ny = x * w", "<typed in>", "exec"), space)
    w.mul_(2)
    message = message_of(space["y"].sum().backward)
    assert "MulBackward0 saved it at <typed in>:3, in <module>." in message


COMPOSITES = {
    "linear": lambda x, w: functional.linear(x, w),
    "mse_loss": lambda x, w: functional.mse_loss(x, w),
    "softmax": lambda x, w: functional.softmax(x * w, dim=0),
    "layer_norm": lambda x, w: functional.layer_norm(x, (3,), w[0]),
    "norm": lambda x, w: (x * w).norm(),
    "var": lambda x, w: (x * w).var(),
    "einsum": lambda x, w: wengert.einsum("ij,ij->", x, w),
    "getitem": lambda x, w: (x * w)[1:, None],
    "stack": lambda x, w: wengert.stack([x * w, x]),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_line_of_a_composite_is_the_users(name):
    x, w = leaf(3, 3), wengert.full((3, 3), 0.5)
    out = COMPOSITES[name](x, w)
    w.mul_(2)
    found = SAVED.search(message_of(out.sum().backward))
    assert found.group(2) == __file__
    assert found.group(5).startswith(f'"{name}": lambda x, w:')


def test_node_recorded_by_a_backward_is_at_the_backward():
    x = leaf()
    y = (x * x * x).sum()
    recorded = next_line()
    (g,) = wengert.autograd.grad(y, x, create_graph=True)
    with wengert.no_grad():
        x.mul_(2)
    found = SAVED.search(message_of(g.sum().backward))
    assert (found.group(2), found.group(3)) == (__file__, str(recorded))


def test_lines_in_threads():
    results = {}

    def work(number):
        x, w = leaf(), wengert.ones(3)
        saved = next_line()
        y = x * w
        changed = next_line()
        w.mul_(2)
        message = message_of(y.sum().backward)
        found = SAVED.search(message), CHANGED.search(message)
        results[number] = [match.groups()[1:4] for match in found] == [
            (__file__, str(saved), "work"),
            (__file__, str(changed), "work"),
        ]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: True, 1: True, 2: True, 3: True}


def test_different_lines_of_one_function():
    """The code object alone does not say it: the instruction does."""
    x, w = leaf(), wengert.ones(3)
    first = next_line()
    a = x * w
    b = x * w
    c = x * w
    w.mul_(2)
    for offset, out in enumerate((a, b, c)):
        line = SAVED.search(message_of(out.sum().backward)).group(3)
        assert int(line) == first + offset


# Freed values -------------------------------------------------------------------------------------


def test_second_backward_names_both_lines():
    x = leaf()
    recorded = next_line()
    y = x.exp()
    loss = y.sum()
    freed = next_line()
    loss.backward()
    message = message_of(loss.backward)
    assert "backward through the graph a second time" in message
    assert "retain_graph=True" in message
    function = "test_second_backward_names_both_lines"
    assert RECORDED.search(message).groups() == (
        "ExpBackward0", __file__, str(recorded), function, "y = x.exp()",
    )
    assert FREED.search(message).groups() == (__file__, str(freed), function, "loss.backward()")


@pytest.mark.parametrize(
    "free",
    [
        lambda x, y: y.sum().backward(),
        lambda x, y: wengert.autograd.backward(y.sum()),
        lambda x, y: wengert.autograd.grad(y.sum(), x),
        lambda x, y: wengert.autograd.grad(y, x, wengert.ones(3)),
    ],
)
def test_every_way_of_freeing_is_named(free):
    x = leaf()
    y = x.exp()
    free(x, y)
    file, _, function, source = FREED.search(message_of(y.sum().backward)).groups()
    assert (file, function) == (__file__, "<lambda>")
    assert source.startswith("lambda x, y:")


def test_tensor_kept_from_an_earlier_iteration():
    x = leaf()
    hidden = wengert.zeros(3)
    message = None
    recorded = next_line() + 2
    for _ in range(2):
        try:
            hidden = (hidden * x).tanh()
            hidden.sum().backward()
        except RuntimeError as error:
            message = str(error)
    assert "a tensor kept from an earlier iteration is the usual cause" in message
    assert RECORDED.search(message).group(3) == str(recorded)


def test_saved_attribute_after_freeing():
    x = leaf()
    y = x.exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    freed = next_line()
    y.sum().backward()
    message = message_of(lambda: y.grad_fn._saved_result)
    assert FREED.search(message).group(2) == str(freed)


def test_freed_in_a_hook():
    """The line is that of the inner backward, which freed the value."""
    x = leaf()
    inner = x.exp()
    loss, outer = inner.sum(), x * 2

    def hook(g):
        loss.backward()

    freed = hook.__code__.co_firstlineno + 1
    outer.register_hook(hook)
    outer.sum().backward()
    message = message_of(inner.sum().backward)
    assert FREED.search(message).groups()[1:3] == (str(freed), "hook")


def test_messages_do_not_depend_on_an_earlier_error():
    x, w = leaf(), wengert.ones(3)
    y = x * w
    w.mul_(2)
    assert message_of(y.sum().backward) == message_of(y.sum().backward)


def test_nothing_is_said_where_nothing_is_wrong():
    x, w = leaf(), wengert.ones(3)
    w.mul_(2)
    y = x * w
    z = x + w
    z.sum().backward()
    y.sum().backward()
    w.mul_(2)
    assert x.grad.tolist() == [3.0] * 3
