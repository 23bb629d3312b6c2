"""A step of training as one graph: loss, `backward()`, and the change of the parameters."""

import copy
import warnings

import numpy as np
import pytest

import wengert

F = wengert.nn.functional
STEPS = 5


def network(dtype=wengert.float64):
    wengert.manual_seed(0)
    layers = (wengert.nn.Linear(3, 4), wengert.nn.Tanh(), wengert.nn.Linear(4, 2))
    return wengert.nn.Sequential(*layers).to(dtype)


def data(dtype=wengert.float64):
    wengert.manual_seed(1)
    return wengert.randn(6, 3, dtype=dtype), wengert.randn(6, 2, dtype=dtype)


def outcome(make, backend, dtype=wengert.float64):
    """Losses, parameters, gradients and state after some steps; not compiled without a backend."""
    net = network(dtype)
    step, optimizer = make(net)
    compiled = backend is not None
    run = wengert.compile(step, fullgraph=True, backend=backend) if compiled else step
    losses = [run(*data(dtype)).detach() for _ in range(STEPS)]
    parameters = list(net.parameters())
    state = [] if optimizer is None else optimizer.state_dict()["state"]
    versions = [p._version for p in parameters]
    made = len(run.compilations) if compiled else 1
    return losses, parameters, [p.grad for p in parameters], state, versions, made


def assert_alike(make, dtype=wengert.float64, exact=True):
    """Graphs on the interpreter do what the function does, machine code rounds differently."""
    its = outcome(make, None, dtype)
    assert_equal(outcome(make, "native", dtype), its, False)
    mine = outcome(make, "interpreter", dtype)
    assert_equal(mine, its, exact)
    return mine


def assert_equal(mine, its, exact):
    compare = wengert.equal if exact else wengert.allclose
    for ours, theirs in zip(mine[:3], its[:3], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert (a is None) is (b is None)
            if a is not None:
                assert compare(a, b) and a.requires_grad is b.requires_grad and a.is_leaf
    assert str(mine[3]) == str(its[3])
    assert mine[4] == its[4]
    assert mine[5] <= 3


OPTIMIZERS = {
    "SGD": lambda p: wengert.optim.SGD(p, lr=0.1),
    "momentum": lambda p: wengert.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "decay": lambda p: wengert.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "Adam": lambda p: wengert.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: wengert.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: wengert.optim.AdamW(p, lr=0.01),
    "Adamax": lambda p: wengert.optim.Adamax(p, lr=0.01),
    "NAdam": lambda p: wengert.optim.NAdam(p, lr=0.01),
    "RMSprop": lambda p: wengert.optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5),
    "Adagrad": lambda p: wengert.optim.Adagrad(p, lr=0.1),
    "Adadelta": lambda p: wengert.optim.Adadelta(p),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, wengert.float64) for name in OPTIMIZERS), ("AdamW", wengert.float32)],
)
def test_steps_are_those_of_the_optimizer(name, dtype):
    def make(net):
        optimizer = OPTIMIZERS[name](net.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, optimizer

    # A float32 counter times a number is rounded once more than times a tensor of float64.
    assert_alike(make, dtype, exact=name != "NAdam")


def test_by_hand():
    def make(net):
        def step(x, y):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            with wengert.no_grad():
                for p in net.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
            return loss

        return step, None

    assert_alike(make)


def test_gradients_accumulate():
    def make(net):
        def step(x, y):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            return loss

        return step, None

    assert_alike(make)


def test_gradients_keep_their_place_when_they_accumulate():
    net = network()
    step = wengert.compile(lambda x, y: F.mse_loss(net(x), y).backward(), fullgraph=True)
    step(*data())
    held = net[0].weight.grad
    before = held.clone()
    step(*data())
    assert net[0].weight.grad is held and wengert.equal(held, before * 2)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_that_are_cleared_at_the_end(to_none):
    def make(net):
        optimizer = wengert.optim.SGD(net.parameters(), lr=0.1)

        def step(x, y):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=to_none)
            return loss

        return step, optimizer

    assert_alike(make)


def test_clipped_gradients_and_penalties():
    def make(net):
        optimizer = wengert.optim.Adam(net.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            x = x.detach().requires_grad_()
            out = net(x)
            (slope,) = wengert.autograd.grad(out.sum(), x, create_graph=True)
            loss = F.mse_loss(out, y) + slope.square().mean()
            loss.backward()
            wengert.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            return loss

        return step, optimizer

    # Compiled, the engine lets BLAS add a product to the gradient that is there, in one rounding.
    assert_alike(make, exact=not wengert.__compiled__)


def test_only_some_parameters_get_a_gradient():
    def make(net):
        optimizer = wengert.optim.SGD(net.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = net[0](x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step, optimizer

    losses, parameters, gradients, *_ = assert_alike(make)
    assert gradients[2] is None and losses[-1] < losses[0]


def test_arguments_get_their_gradient():
    compiled = wengert.compile(lambda x: x.square().sum().backward(), fullgraph=True)
    for _ in range(3):
        x = wengert.tensor([1.0, 2.0], requires_grad=True)
        compiled(x)
        assert x.grad.tolist() == [2, 4]
    compiled(x)
    assert x.grad.tolist() == [4, 8]


def test_gradients_that_can_be_differentiated():
    def f(w):
        (w**3).sum().backward(create_graph=True)
        return w.grad.sum()

    w = wengert.tensor([1.0, 2.0], requires_grad=True)
    total = wengert.compile(f, fullgraph=True)(w)
    assert w.grad.tolist() == [3, 12] and w.grad.requires_grad
    (second,) = wengert.autograd.grad(total, w)
    assert second.tolist() == [6, 12]


def test_learning_rates_that_change():
    def losses(compiled):
        net = network()
        optimizer = wengert.optim.SGD(net.parameters(), lr=0.1)
        schedule = wengert.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = wengert.compile(step, fullgraph=True) if compiled else step
        found = []
        for _ in range(6):
            found.append(run(*data()).item())
            schedule.step()
        return found

    assert np.allclose(losses(True), losses(False), rtol=1e-12)


def test_state_that_is_loaded_in_between():
    net = network()
    optimizer = wengert.optim.Adam(net.parameters(), lr=0.01)

    @wengert.compile(fullgraph=True)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(*data())
    saved = copy.deepcopy((net.state_dict(), optimizer.state_dict()))
    expected = [step(*data()).item() for _ in range(3)]
    net.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    assert np.allclose([step(*data()).item() for _ in range(3)], expected, rtol=1e-12)


def test_hooks_of_parameters_run():
    net = network()
    seen = []
    net[0].weight.register_hook(lambda g: seen.append(g.shape))

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="has hooks, which the graph would not call"):
        wengert.compile(step, fullgraph=True)(*data())
    assert net[0].weight.grad is None
    compiled = wengert.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(*data())
        compiled(*data())
    assert seen == [(4, 3), (4, 3)]


def test_backward_beyond_the_function_is_refused():
    w = wengert.ones(2, requires_grad=True)
    compiled = wengert.compile(lambda y: y.sum().backward(), fullgraph=True)
    with pytest.raises(RuntimeError, match="would go on to what has computed its inputs"):
        compiled(w * 2)
    wengert.compile(lambda y: y.sum().backward())(w * 2)
    assert w.grad.tolist() == [2, 2]


@pytest.mark.parametrize("retain", [True, False])
def test_the_graph_of_the_loss_is_used_up(retain):
    w = wengert.tensor([1.0, 2.0], requires_grad=True)

    def f():
        loss = w.square().sum()
        loss.backward(retain_graph=retain)
        return loss

    compiled = wengert.compile(f, fullgraph=True)
    for run in (f, compiled):
        w.grad = None
        loss = run()
        assert loss.requires_grad and loss.grad_fn is not None
        if retain:
            loss.backward()
            assert w.grad.tolist() == [4, 8]
        else:
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                loss.backward()
            assert w.grad.tolist() == [2, 4]
    kinds = [node.kind for node in compiled.compilations[0].traced.graph.nodes()]
    assert kinds.count("wengert::mul") <= 2


def test_a_graph_that_saves_nothing_is_not_used_up():
    w = wengert.tensor([1.0, 2.0], requires_grad=True)

    def f():
        total = (w + 1).sum()
        total.backward()
        return total

    wengert.compile(f, fullgraph=True)().backward()
    assert w.grad.tolist() == [2, 2]
