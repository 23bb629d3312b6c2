"""What a user of compile may trip over: arguments of all kinds, sharing, modes, threads, errors."""

import dataclasses
import enum
import threading

import numpy as np
import pytest

import wengert
from wengert.compiler import explain
from wengert.utils.pytree import register_dataclass

X = wengert.linspace(-1, 1, 6, dtype=wengert.float64).reshape(2, 3)


def count(compiled):
    return len(compiled.compilations)


def leaf(x=X):
    return x.clone().requires_grad_()


# Arguments ----------------------------------------------------------------------------------------


def test_default_arguments():
    compiled = wengert.compile(lambda x, n=3: x * n)
    assert wengert.equal(compiled(X), X * 3)
    assert wengert.equal(compiled(X, 2), X * 2)
    assert wengert.equal(compiled(X, n=4), X * 4)


def test_the_order_of_keywords_does_not_matter():
    compiled = wengert.compile(lambda *, a, b: a - b)
    assert wengert.equal(compiled(a=X, b=X * 3), compiled(b=X * 3, a=X))
    assert count(compiled) == 1


def test_the_order_of_keywords_matters_where_it_is_seen():
    compiled = wengert.compile(lambda **parts: next(iter(parts.values())) * 2)
    assert wengert.equal(compiled(a=X, b=X * 3), X * 2)
    assert wengert.equal(compiled(b=X * 3, a=X), X * 6)


def test_any_number_of_arguments():
    compiled = wengert.compile(lambda *xs, **more: sum(xs) + sum(more.values()))
    assert wengert.equal(compiled(X, X, c=X), X * 3)
    assert wengert.equal(compiled(X, X, X, c=X), X * 4)


@dataclasses.dataclass
class Plain:
    x: object
    n: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    n: int


@dataclasses.dataclass
class Registered:
    x: object
    y: object


register_dataclass(Registered)


@pytest.mark.parametrize("cls", [Plain, Frozen])
def test_dataclasses_are_objects(cls):
    compiled = wengert.compile(lambda d: d.x * d.n)
    for n in (2, 3):
        d = cls(X * n, n)
        assert wengert.equal(compiled(d), X * n * n)
        assert wengert.equal(compiled(d), X * n * n)
    changed = Plain(X, 5)
    compiled(changed)
    changed.x = X * 7
    assert wengert.equal(compiled(changed), X * 35)


def test_registered_dataclasses_are_containers():
    compiled = wengert.compile(lambda d: Registered(d.x + d.y, d.x))
    for n in (2, 3):
        result = compiled(Registered(X * n, X))
        assert isinstance(result, Registered) and wengert.equal(result.x, X * (n + 1))
    assert count(compiled) == 1


def test_arrays_count_by_content():
    compiled = wengert.compile(lambda x, a: x * wengert.from_numpy(a))
    array = np.ones((2, 3))
    assert wengert.equal(compiled(X, array), X)
    array *= 2
    assert wengert.equal(compiled(X, array), X * 2)
    assert wengert.equal(compiled(X, np.ones((2, 3))), X)
    assert count(compiled) == 2


class Kind(enum.Enum):
    SINE = 1
    COSINE = 2


def test_other_values():
    compiled = wengert.compile(
        lambda x, kind, dtype, part: (x.sin() if kind is Kind.SINE else x.cos()).to(dtype)[part]
    )
    for _ in range(2):
        assert wengert.equal(compiled(X, Kind.SINE, wengert.float32, slice(1)), X.sin().float()[:1])
        assert wengert.equal(compiled(X, Kind.COSINE, wengert.float64, slice(2)), X.cos())
    assert count(compiled) == 2


def test_numbers_of_different_types_are_different():
    compiled = wengert.compile(lambda x, n: x * n)
    integers = wengert.tensor([1, 2])
    for n in (1, True, 1.0, np.float32(1), float("nan"), float("nan"), 0.0, -0.0):
        mine, its = compiled(integers, n), integers * n
        assert mine.dtype is its.dtype and wengert.allclose(mine, its, equal_nan=True)
    assert count(compiled) == 5  # floats after the first have one


def test_methods_of_many_objects():
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        @wengert.compile
        def forward(self, x):
            return x * self.scale

    layers = [Layer(float(i)) for i in range(100)]
    for layer in layers:
        for _ in range(2):
            assert wengert.equal(layer.forward(X), X * layer.scale)
    assert count(Layer.__dict__["forward"]) == 100


def test_recursion():
    @wengert.compile
    def power(x, n):
        return x if n == 0 else power(x * 2, n - 1)

    assert wengert.equal(power(X, 3), X * 8)
    assert count(power) == 1


def test_a_container_that_is_changed_is_refused():
    def function(parts):
        parts["x"] = parts["x"] * 2
        return parts["x"]

    with pytest.raises(RuntimeError, match="changes a list, dictionary"):
        wengert.compile(function, fullgraph=True)({"x": X})
    with pytest.raises(RuntimeError, match="changes a list, dictionary"):
        wengert.compile(lambda items: items.append(items[0] * 2), fullgraph=True)([X])


# Sharing ------------------------------------------------------------------------------------------


def test_an_argument_that_is_captured_as_well():
    w = X.clone()
    compiled = wengert.compile(lambda x: x + w)
    assert wengert.equal(compiled(w), X * 2)
    assert wengert.allclose(compiled(X * 5), X * 6)
    assert wengert.equal(compiled(w), X * 2)
    assert count(compiled) == 2


def test_one_tensor_given_twice():
    def function(a, b):
        a.mul_(2)
        return a + b

    compiled = wengert.compile(function)
    x = X.clone()
    assert wengert.equal(compiled(x, x), X * 4)
    assert wengert.equal(x, X * 2)
    a, b = X.clone(), X.clone()
    assert wengert.equal(compiled(a, b), X * 3)
    assert "one and the same tensor" in explain(compiled)


@pytest.mark.parametrize("first", ["apart", "shared"])
def test_inputs_that_share_memory_while_one_is_changed(first):
    def function(a, b):
        a.mul_(2)
        return a.sum() + b.sum()

    compiled = wengert.compile(function)
    for kind in (first, "apart", "shared", "apart"):
        mine, its = X.clone(), X.clone()
        pairs = [(t, t[0] if kind == "shared" else X[0]) for t in (mine, its)]
        assert wengert.allclose(compiled(*pairs[0]), function(*pairs[1]))
        assert wengert.equal(mine, its)


def test_results_that_are_arguments_are_these():
    compiled = wengert.compile(lambda x: (x, {"again": x}))
    x = leaf()
    first, rest = compiled(x)
    assert first is x and rest["again"] is x


def test_results_that_are_the_same_are_so():
    def function(x):
        y = x * 2
        return y, y, y.detach()

    a, b, c = wengert.compile(function)(leaf())
    assert a is b and c is not a and not c.requires_grad
    c.add_(1)
    assert wengert.equal(a, c)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[0],
        lambda x: x.t()[1:],
        lambda x: x.view(-1)[::2],
        lambda x: x.unbind(1)[2],
        lambda x: x.split(1)[1],
        lambda x: x.detach(),
    ],
)
def test_results_that_are_views_of_arguments(view):
    compiled = wengert.compile(lambda x: (view(x), x * 2))
    mine, its = X.clone(), X.clone()
    for x, f in ((mine, compiled), (its, lambda x: (view(x), x * 2))):
        out, _ = f(x)
        with wengert.no_grad():
            out.mul_(3)
    assert wengert.equal(mine, its)


def test_results_changed_in_place_afterwards():
    def function(x):
        y = x.sin()
        return y, y[0]

    def use(f):
        x = leaf()
        y, row = f(x * 1)
        row.mul_(3)
        y.add_(1)
        (row.sum() + (y * y).sum()).backward()
        return x.grad

    assert wengert.allclose(use(wengert.compile(function)), use(function))


def test_views_of_arguments_keep_their_place_in_the_graph():
    def use(f):
        x = leaf()
        base = x * 1
        f(base).mul_(2)
        base.sum().backward()
        return x.grad

    assert wengert.allclose(use(wengert.compile(lambda x: x[0])), use(lambda x: x[0]))


def test_made_tensors_are_new_each_time():
    compiled = wengert.compile(lambda x: wengert.zeros(2))
    compiled(X).add_(1)
    assert wengert.equal(compiled(X), wengert.zeros(2))


# Changes in place ---------------------------------------------------------------------------------


def test_the_values_before_a_change_are_kept_for_backward():
    def function(x):
        y = x.exp() * x
        x.mul_(2)
        return y

    compiled = wengert.compile(function)
    x = leaf()
    y = compiled(x * 1)
    (g,) = wengert.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = wengert.autograd.grad(g.sum(), x)
    assert wengert.allclose(g, X.exp() * (X + 1)) and wengert.allclose(h, X.exp() * (X + 2))


def test_changes_that_are_not_recorded_keep_gradients():
    def function(x):
        y = x * 2
        with wengert.no_grad():
            y.mul_(10)
            y[0] = 1.0
        return y * 3

    def use(f):
        x = leaf()
        y = f(x)
        y.sum().backward()
        return y.detach(), x.grad

    for mine, its in zip(use(wengert.compile(function)), use(function), strict=True):
        assert wengert.allclose(mine, its)


def test_a_change_through_a_detached_alias_keeps_gradients():
    def function(x, w):
        y = x * 2
        d = y.detach()
        d.add_(w)
        return y * 3 + d

    def use(f):
        x, w = leaf(), leaf()
        f(x, w).sum().backward()
        return x.grad, w.grad

    for mine, its in zip(use(wengert.compile(function)), use(function), strict=True):
        assert wengert.allclose(mine, its)


def test_a_change_through_a_detached_alias_gives_no_gradient():
    """What the alias is changed by requires grad, but the tensor behind it does not."""

    def function(x, z):
        part = x[:, 1].detach()
        part.sub_(z)
        return part * 2

    for way in (function, wengert.compile(function)):
        x = X.clone()
        z = wengert.ones((), dtype=wengert.float64, requires_grad=True) * 1
        assert way(x, z).requires_grad
        assert not x.requires_grad and wengert.equal(x[:, 1], X[:, 1] - 1)


def test_parts_of_a_tensor_that_was_changed():
    def function(x):
        y = x * 2
        with wengert.no_grad():
            rows = y.unbind(0)
            halves = y.split([1, 2], 1)
            rows[1].add_(1)
            halves[0].mul_(5)
            y.sub_(3)
            return y, rows[0] * 1, halves[1] * 1

    for mine, its in zip(wengert.compile(function)(X), function(X), strict=True):
        assert wengert.equal(mine, its)


def test_arguments_that_change_their_shape_are_refused():
    with pytest.raises(RuntimeError, match="another shape"):
        wengert.compile(lambda x: x.unsqueeze_(0) * 2, fullgraph=True)(X.clone())


# Autograd -----------------------------------------------------------------------------------------


def test_captured_tensors_that_begin_to_require_grad():
    w = X.clone()
    compiled = wengert.compile(lambda x: x * w)
    assert not compiled(X).requires_grad
    w.requires_grad_()
    compiled(X).sum().backward()
    assert wengert.equal(w.grad, X)


def test_without_gradients_first_and_with_them_later():
    compiled = wengert.compile(lambda x: x.sin())
    x = leaf()
    with wengert.no_grad():
        assert not compiled(x).requires_grad
    compiled(x).sum().backward()
    assert wengert.allclose(x.grad, X.cos())
    with wengert.inference_mode():
        assert compiled(x).is_inference()


def test_retained_graphs_and_hooks():
    compiled = wengert.compile(lambda x: (x.sin(), x.exp()))
    x = leaf()
    seen = []
    a, b = compiled(x)
    a.register_hook(lambda g: seen.append("a") or g * 2)
    b.grad_fn.register_hook(lambda *_: seen.append("node"))
    (a + b).sum().backward(retain_graph=True)
    (a + b).sum().backward()
    assert wengert.allclose(x.grad, 2 * (2 * X.cos() + X.exp()))
    assert seen == ["a", "node"] * 2
    with pytest.raises(RuntimeError, match="a second time"):
        a.sum().backward()


def test_arguments_changed_before_backward_are_noticed():
    compiled = wengert.compile(lambda x: x * x)
    x = leaf()
    base = x * 1
    y = compiled(base)
    base.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_arguments_that_backward_does_not_need_may_change():
    compiled = wengert.compile(lambda x: x * 2)
    x = leaf()
    base = x * 1
    y = compiled(base)
    base.add_(1)
    y.sum().backward()
    assert wengert.equal(x.grad, wengert.full_like(X, 2.0))


def test_saved_tensor_hooks_see_what_is_kept():
    seen = []

    def pack(t):
        seen.append(t.shape)
        return t.clone()

    x = leaf()
    with wengert.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = wengert.compile(lambda x: x.sin())(x)
    y.sum().backward()
    assert seen and wengert.allclose(x.grad, X.cos())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x * 2).register_hook(print), "register the hook on the result"),
        (lambda x: (x * 2).retain_grad(), "register the hook on the result"),
    ],
)
def test_what_a_graph_would_not_do_again_is_refused(function, message):
    with pytest.raises(RuntimeError, match=message):
        wengert.compile(function, fullgraph=True)(leaf())


def test_values_of_captured_tensors_are_not_fixed():
    w = wengert.tensor(2.0)
    with pytest.raises(RuntimeError, match="needs the value of a tensor"):
        wengert.compile(lambda x: x * w.item(), fullgraph=True)(X)
    with pytest.raises(RuntimeError, match="needs the value of a tensor"):
        wengert.compile(lambda x: x * float(w.numpy()), fullgraph=True)(X)


def test_inside_a_dispatch_mode_every_operator_is_seen():
    from wengert.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    compiled = wengert.compile(lambda x: x.sin().cos())
    compiled(X)
    with Mode():
        compiled(X)
    assert seen == ["aten::sin", "aten::cos"]


# Errors and threads -------------------------------------------------------------------------------


def test_errors_leave_everything_as_it_was():
    compiled = wengert.compile(lambda x, n: x[n] / (n - 1 and 1 // (n - 1)) if n else 1 / n)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            compiled(X, 0)
        with pytest.raises(IndexError):
            compiled(X, 7)
    assert wengert.is_grad_enabled() and count(compiled) == 0
    assert (X * 2)[0, 0].item() == -2.0


def test_errors_while_running_say_where():
    compiled = wengert.compile(lambda x, i: x.index_select(0, i))
    compiled(X, wengert.tensor([0]))
    with pytest.raises(IndexError) as failure:
        compiled(X, wengert.tensor([9]))
    assert "index_select" in "".join(failure.value.__notes__)


def test_many_threads():
    compiled = wengert.compile(lambda x, n: ((x * n).sin() * x).sum())
    found, failures = {}, []

    def work(number):
        try:
            for n in range(4):
                x = leaf(X * (number + 1))
                compiled(x, n).backward()
                found[number, n] = x.grad
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and count(compiled) == 4
    for (number, n), g in found.items():
        x = leaf(X * (number + 1))
        ((x * n).sin() * x).sum().backward()
        assert wengert.allclose(g, x.grad)
