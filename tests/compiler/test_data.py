"""`.data` and `detach()` in traced and compiled functions: shared memory without history."""

import pytest

import wengert
from wengert.compiler import TraceError, trace

X = [2.0, 3.0]


def double(values=X):
    return wengert.tensor(values, dtype=wengert.float64, requires_grad=True)


def derivatives(function):
    """The value at X, its gradient and the gradient of that, None where there is none."""
    x = double()
    y = function(x)
    found = [y.tolist()]
    while y.requires_grad:
        (y,) = wengert.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True)
        if y is None or len(found) == 3:
            break
        found.append(y.tolist())
    return found


def changed_through_data(x):
    y = x * 2
    y.data.mul_(3)
    return y * x


def changed_through_kept_data(x):
    y = x * 2
    d = y.data
    d.mul_(3)
    return y * d * x


def data_follows_its_tensor(x):
    y = x * 1
    d = y.data
    y.mul_(2)
    return y * d


def data_of_a_view(x):
    y = x * 1
    y[:1].data.zero_()
    return y * y


def view_of_data(x):
    y = x * 1
    y.data[:1].fill_(5)
    return y * x


def data_of_data_of_detached(x):
    y = x * 1
    y.detach().data.data.add_(1)
    return y * y


def data_is_set(x):
    y = x * 2
    y.data = x.detach() * 5
    return y * x


def data_is_set_and_shared(x):
    y, z = x * 2, (x * 5).detach()
    y.data = z
    z.mul_(2)
    return y * x


def data_is_set_without_history(x):
    y = x.detach() * 2
    y.data = x * 5
    return y * x


PROGRAMS = [
    lambda x: x * x.data,
    lambda x: x * x.detach().data.exp() + x.data.detach() * x**2,
    lambda x: (x.data * x).data * x * x,
    lambda x: x * x.data.clone().requires_grad_(),
    lambda x: wengert.func.vjp(lambda y: y * x.data * x, x)[1](x)[0],
    changed_through_data,
    changed_through_kept_data,
    data_follows_its_tensor,
    data_of_a_view,
    view_of_data,
    data_of_data_of_detached,
    data_is_set,
    data_is_set_and_shared,
    data_is_set_without_history,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_gradient_passes_data(program):
    want = derivatives(program)
    assert derivatives(wengert.compile(program)) == want
    assert derivatives(trace(program, double())) == want


def test_data_has_a_version_counter_of_its_own():
    def program(x):
        y = x * 1
        y.data.mul_(2)
        first = y._version
        y.detach().mul_(2)
        return y * (10 * first + y._version)

    assert derivatives(wengert.compile(program)) == derivatives(program)


def test_inputs_are_changed_through_data():
    def program(x):
        x.data.mul_(3)
        return x * x

    def outcome(function):
        x = double()
        y = function(x)
        y.sum().backward()
        return x.tolist(), y.tolist(), x.grad.tolist()

    assert outcome(wengert.compile(program)) == outcome(program)


def test_data_that_is_returned_shares_memory_and_nothing_else():
    compiled = wengert.compile(lambda x: (x.data, x.detach()))
    x = double()
    data, detached = compiled(x)
    with wengert.no_grad():
        x.mul_(2)
    assert data.tolist() == detached.tolist() == [4.0, 6.0]
    assert (data._version, detached._version) == (0, 1)
    assert not data.requires_grad


@pytest.mark.parametrize("take", [lambda w: w.data, lambda w: w.detach()])
@pytest.mark.parametrize("inside_grad", [False, True])
def test_a_tensor_from_outside_may_get_other_memory(take, inside_grad):
    w = double()

    def product(x):
        return (x * take(w)).sum()

    function = wengert.func.grad(product) if inside_grad else product
    compiled = wengert.compile(function)
    x = wengert.ones(2, dtype=wengert.float64)
    assert wengert.equal(compiled(x), function(x))
    w.data = wengert.tensor([7.0, 8.0], dtype=wengert.float64)
    assert wengert.equal(compiled(x), function(x))
    assert len(compiled.compilations) == 1


def test_data_of_another_shape_is_refused():
    def program(x):
        y = x * 2
        y.data = wengert.ones(3, dtype=wengert.float64)
        return y

    with pytest.raises(TraceError, match="another shape"):
        wengert.compile(program, fullgraph=True)(double())
