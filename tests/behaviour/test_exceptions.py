"""An exception reaches the caller as it is, and nothing is broken afterwards."""

import threading
import traceback

import pytest


class Failure(Exception):
    """Raised by the hooks of these tests."""


def fail(*_):
    raise Failure("the hook failed")


def fail_at_tensor(lib, x, y):
    y.register_hook(fail)


def fail_at_leaf(lib, x, y):
    x.register_hook(fail)


def fail_at_node_prehook(lib, x, y):
    y.grad_fn.register_prehook(fail)


def fail_at_node_hook(lib, x, y):
    y.grad_fn.register_hook(fail)


def fail_after_accumulation(lib, x, y):
    x.register_post_accumulate_grad_hook(fail)


def fail_at_accumulator_prehook(lib, x, y):
    lib.autograd.graph.get_gradient_edge(x).node.register_prehook(fail)


def fail_at_accumulator_hook(lib, x, y):
    lib.autograd.graph.get_gradient_edge(x).node.register_hook(fail)


everywhere = pytest.mark.parametrize(
    "place",
    [
        fail_at_tensor,
        fail_at_leaf,
        fail_at_node_prehook,
        fail_at_node_hook,
        fail_after_accumulation,
        fail_at_accumulator_prehook,
        fail_at_accumulator_hook,
    ],
)


def broken_graph(lib, place):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    place(lib, x, y)
    return x, y


@everywhere
def test_exception_keeps_its_type_and_message(lib, place):
    _, y = broken_graph(lib, place)
    with pytest.raises(Failure, match="the hook failed"):
        y.sum().backward()


@everywhere
def test_traceback_leads_to_the_hook(lib, place):
    _, y = broken_graph(lib, place)
    with pytest.raises(Failure) as caught:
        y.sum().backward()
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == "fail"
    assert frames[0] == "test_traceback_leads_to_the_hook"


@everywhere
def test_next_backward_works(lib, place):
    _, y = broken_graph(lib, place)
    with pytest.raises(Failure):
        y.sum().backward()
    z = lib.tensor([1.0, 2.0], requires_grad=True)
    (z * z).sum().backward()
    assert z.grad.tolist() == [2.0, 4.0]


@everywhere
def test_grad_mode_is_not_leaked(lib, place):
    _, y = broken_graph(lib, place)
    with pytest.raises(Failure):
        y.sum().backward()
    assert lib.is_grad_enabled()


@everywhere
def test_exception_is_the_same_object(lib, place, monkeypatch):
    failure = Failure("one object")

    def fail_with_it(*_):
        raise failure

    monkeypatch.setitem(globals(), "fail", fail_with_it)
    _, y = broken_graph(lib, place)
    with pytest.raises(Failure) as caught:
        y.sum().backward()
    assert caught.value is failure


def test_grad_mode_is_not_leaked_under_no_grad(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    x.register_hook(fail)
    with lib.no_grad():
        with pytest.raises(Failure):
            lib.autograd.grad(y, x, create_graph=True)
        assert not lib.is_grad_enabled()
    assert lib.is_grad_enabled()


def test_exception_in_grad(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    y.register_hook(fail)
    with pytest.raises(Failure):
        lib.autograd.grad(y * 2, x)


def test_exception_under_create_graph(lib):
    x = lib.ones((), requires_grad=True)
    x.register_hook(fail)
    with pytest.raises(Failure):
        lib.autograd.grad(x * x, x, create_graph=True)


@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, SystemExit, StopIteration, MemoryError, GeneratorExit]
)
def test_unusual_exceptions_pass_too(lib, kind):
    x = lib.ones((), requires_grad=True)

    def interrupt(g):
        raise kind

    x.register_hook(interrupt)
    with pytest.raises(kind):
        (x * x).backward()
    z = lib.tensor(3.0, requires_grad=True)
    (z * z).backward()
    assert z.grad.item() == 6.0


def test_chained_exception_keeps_its_cause(lib):
    x = lib.ones((), requires_grad=True)

    def chain(g):
        try:
            raise KeyError("cause")
        except KeyError as error:
            raise Failure from error

    x.register_hook(chain)
    with pytest.raises(Failure) as caught:
        (x * x).backward()
    assert isinstance(caught.value.__cause__, KeyError)


def test_exception_stops_what_comes_after(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x
    y.register_hook(fail)
    with pytest.raises(Failure):
        (y * 2).backward()
    assert x.grad is None


def test_earlier_accumulation_stays(lib):
    first = lib.ones((), requires_grad=True)
    second = lib.ones((), requires_grad=True)
    deep = second * 1
    deep.register_hook(fail)
    with pytest.raises(Failure):
        (deep * first).backward()
    assert first.grad.item() == 1.0
    assert second.grad is None


def test_graph_can_be_used_again_after_hook_is_removed(lib):
    x = lib.tensor(3.0, requires_grad=True)
    y = x * x
    handle = y.register_hook(fail)
    with pytest.raises(Failure):
        y.backward()
    handle.remove()
    y.backward()
    assert x.grad.item() == 6.0


def test_retained_graph_can_be_used_again(lib):
    x = lib.tensor(3.0, requires_grad=True)
    y = x.exp() * x
    handle = x.register_hook(fail)
    with pytest.raises(Failure):
        y.backward(retain_graph=True)
    handle.remove()
    x.grad = None
    y.backward()
    assert x.grad.item() == pytest.approx(4 * 20.085537, rel=1e-5)


def test_only_the_first_exception_is_seen(lib):
    x = lib.ones((), requires_grad=True)
    y = x * x

    def fail_second(g):
        raise KeyError("second")

    y.register_hook(fail)
    x.register_hook(fail_second)
    with pytest.raises(Failure):
        (y * 2).backward()


def test_hooks_after_the_failed_one_do_not_run(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(fail)
    x.register_hook(seen.append)
    with pytest.raises(Failure):
        (x * 2).backward()
    assert seen == []


def test_many_failures_in_a_row(lib):
    x = lib.tensor(3.0, requires_grad=True)
    handle = x.register_hook(fail)
    for _ in range(200):
        with pytest.raises(Failure):
            (x * x).backward()
    handle.remove()
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_failure_in_another_thread_stays_there(lib):
    caught = []

    def work():
        x = lib.ones((), requires_grad=True)
        x.register_hook(fail)
        try:
            (x * x).backward()
        except Failure as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(300)
    assert len(caught) == 1
    x = lib.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_failing_rule_reaches_the_caller(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    z = lib.tensor(3.0, requires_grad=True)
    (z * z).backward()
    assert z.grad.item() == 6.0


def test_error_of_wrong_hook_result_leaves_engine_usable(lib):
    x = lib.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: 3)
    with pytest.raises(TypeError):
        (x * x).sum().backward()
    handle.remove()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_exception_inside_nested_backward(lib):
    inner = lib.ones((), requires_grad=True)
    inner.register_hook(fail)
    x = lib.ones((), requires_grad=True)

    def run_inner(g):
        with lib.enable_grad():
            (inner * inner).backward()

    handle = x.register_hook(run_inner)
    with pytest.raises(Failure):
        (x * x).backward()
    handle.remove()
    (x * x).backward()
    assert x.grad.item() == 2.0


def test_exception_inside_nested_backward_can_be_caught_by_the_hook(lib):
    inner = lib.ones((), requires_grad=True)
    inner.register_hook(fail)
    x = lib.ones((), requires_grad=True)
    seen = []

    def run_inner(g):
        with lib.enable_grad():
            try:
                (inner * inner).backward()
            except Failure:
                seen.append("caught")

    x.register_hook(run_inner)
    (x * x).backward()
    assert seen == ["caught"]
    assert x.grad.item() == 2.0


@pytest.mark.parametrize("later", [False, True])
def test_a_missing_derivative_is_met_before_other_nodes(lib, later):
    """Its node comes first whenever it was recorded, so that less is done in vain."""
    step, x = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    y = x.exp() if later else None
    missing = lib.heaviside(step, step)
    y = x.exp() if y is None else y
    for _ in range(2):
        with pytest.raises(RuntimeError, match="derivative for .*heaviside"):
            lib.autograd.backward([y, missing], [x.detach(), x.detach()])
        assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
