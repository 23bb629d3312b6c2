"""Memory: what must die dies, what repeats does not grow."""

import gc
import os
import subprocess
import weakref

import pytest

import wengert

TRAINING_STEPS = 20_000 if wengert.__compiled__ else 2_000
WARM_UP_STEPS = TRAINING_STEPS // 10
ALLOWED_GROWTH = 2 * 2**20


class Token:
    """Something that can be watched by a weak reference."""


def resident_bytes():
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        command = ["ps", "-o", "rss=", "-p", str(os.getpid())]
        return int(subprocess.check_output(command)) * 1024


@pytest.fixture
def no_collector():
    """Only reference counts free memory inside the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Model:
    """A small regression problem with one hidden layer."""

    def __init__(self):
        wengert.manual_seed(0)
        self.inputs = wengert.randn(8, 2)
        self.targets = wengert.randn(8, 1)
        self.parameters = [
            wengert.randn(2, 4, requires_grad=True),
            wengert.zeros(4, requires_grad=True),
            wengert.randn(4, 1, requires_grad=True),
        ]

    def loss(self):
        first, bias, second = self.parameters
        predicted = ((self.inputs @ first + bias).tanh()) @ second
        return ((predicted - self.targets) ** 2).mean()

    def update(self, gradients):
        with wengert.no_grad():
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.sub_(0.01 * gradient)

    def plain_step(self):
        self.loss().backward()
        self.update([parameter.grad for parameter in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None

    def accumulating_step(self):
        self.loss().backward()
        self.update([parameter.grad for parameter in self.parameters])
        for parameter in self.parameters:
            parameter.grad.zero_()

    def penalty_step(self):
        gradients = wengert.autograd.grad(self.loss(), self.parameters, create_graph=True)
        penalty = sum((gradient * gradient).sum() for gradient in gradients)
        self.update(wengert.autograd.grad(penalty, self.parameters))

    def penalty_backward_step(self):
        self.loss().backward(create_graph=True)
        penalty = sum((p.grad * p.grad).sum() for p in self.parameters)
        gradients = wengert.autograd.grad(penalty, self.parameters)
        self.update([gradient.detach() for gradient in gradients])
        for parameter in self.parameters:
            parameter.grad = None

    def hooked_step(self):
        loss = self.loss()
        handles = [p.register_hook(lambda g: g * 1) for p in self.parameters]
        loss.retain_grad()
        loss.backward()
        for handle in handles:
            handle.remove()
        self.update([parameter.grad for parameter in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None

    def inplace_step(self):
        first, bias, second = self.parameters
        hidden = wengert.zeros(8, 4)
        hidden[:4] = self.inputs[:4] @ first
        hidden[4:] = self.inputs[4:] @ first
        hidden.add_(bias).tanh_()
        ((hidden @ second - self.targets) ** 2).mean().backward()
        self.update([parameter.grad for parameter in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None

    def failing_step(self):
        loss = self.loss()

        def fail(g):
            raise KeyError

        loss.register_hook(fail)
        with pytest.raises(KeyError):
            loss.backward()


STEPS = [
    "plain_step",
    "accumulating_step",
    "penalty_step",
    "penalty_backward_step",
    "hooked_step",
    "inplace_step",
]


# Training


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("name", ["plain_step", "penalty_step"])
def test_memory_does_not_grow_over_training(name):
    step = getattr(Model(), name)
    for _ in range(WARM_UP_STEPS):
        step()
    gc.collect()
    before = resident_bytes()
    for _ in range(TRAINING_STEPS - WARM_UP_STEPS):
        step()
    gc.collect()
    assert resident_bytes() - before < ALLOWED_GROWTH
    assert gc.garbage == []


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("name", STEPS)
def test_step_leaves_no_cycles(no_collector, name):
    step = getattr(Model(), name)
    for _ in range(5):
        step()
    gc.collect()
    for _ in range(20):
        step()
    assert gc.collect() == 0
    assert gc.garbage == []


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("name", [*STEPS, "failing_step"])
def test_number_of_objects_does_not_grow(name):
    step = getattr(Model(), name)
    for _ in range(50):
        step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before < 20


# Graphs and what they hold


def watched_graph():
    """A scalar with history and weak references to a node and to a saved tensor."""
    x = wengert.ones(3, requires_grad=True)
    constant = wengert.ones(3)
    token = Token()
    y = x * constant
    y.grad_fn.metadata["token"] = token
    return y.exp().sum(), weakref.ref(token), weakref.ref(constant)


def test_graph_dies_with_its_root(no_collector):
    root, node, saved = watched_graph()
    assert node() is not None
    assert saved() is not None
    del root
    assert node() is None
    assert saved() is None


def test_backward_frees_saved_tensors_but_not_nodes(no_collector):
    root, node, saved = watched_graph()
    root.backward()
    assert saved() is None
    assert node() is not None
    del root
    assert node() is None


def test_retained_backward_frees_nothing(no_collector):
    root, _, saved = watched_graph()
    root.backward(retain_graph=True)
    assert saved() is not None
    root.backward()
    assert saved() is None


def test_root_kept_by_gradient_only(no_collector):
    x = wengert.tensor(2.0, requires_grad=True)
    token = Token()
    y = x * x
    y.grad_fn.metadata["token"] = token
    (gradient,) = wengert.autograd.grad(y, x)
    alive = weakref.ref(token)
    del y, token
    assert alive() is None
    assert gradient.item() == 4.0


def differentiate_partly(kind):
    """A graph of two leaves, of which one is differentiated; returns references to both."""
    x = wengert.ones(3, requires_grad=True)
    w = wengert.ones(3, requires_grad=True)
    y = x * w
    root = (y.sin() * w).sum()
    if kind == "backward":
        root.backward(inputs=[x])
    elif kind == "unused":
        wengert.autograd.grad(root, wengert.ones(3, requires_grad=True), allow_unused=True)
    else:
        wengert.autograd.grad(root, {"leaf": x, "intermediate": y, "retained": w}[kind],
                              retain_graph=kind == "retained")  # fmt: skip
    return weakref.ref(x), weakref.ref(w)


@pytest.mark.parametrize("kind", ["leaf", "intermediate", "retained", "unused", "backward"])
def test_graph_that_was_differentiated_partly_dies(no_collector, kind):
    x, w = differentiate_partly(kind)
    assert x() is None
    assert w() is None


def test_retained_graph_does_not_keep_the_gradient(no_collector):
    x, w = wengert.ones(3, requires_grad=True), wengert.ones(3, requires_grad=True)
    root = (x * w).sum()
    (gradient,) = wengert.autograd.grad(root, x, retain_graph=True)
    alive = weakref.ref(gradient)
    del gradient
    assert alive() is None


def test_differentiable_gradient_keeps_only_what_it_needs(no_collector):
    x = wengert.tensor(2.0, requires_grad=True)
    (gradient,) = wengert.autograd.grad(x.exp(), x, create_graph=True)
    alive = weakref.ref(gradient)
    del gradient
    assert alive() is None


def test_intermediates_of_backward_die(no_collector):
    x = wengert.ones(3, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(weakref.ref(g)))
    (y * 3).sum().backward()
    assert seen[0]() is None


def test_leaf_dies_after_its_graph(no_collector):
    x = wengert.ones(3, requires_grad=True)
    y = (x * x).sum()
    leaf = weakref.ref(x)
    del x
    assert leaf() is not None
    del y
    assert leaf() is None


def test_leaf_dies_after_backward_and_root(no_collector):
    x = wengert.ones(3, requires_grad=True)
    (x * x).sum().backward()
    leaf = weakref.ref(x)
    del x
    assert leaf() is None


def test_gradient_outlives_its_leaf(no_collector):
    x = wengert.ones(3, requires_grad=True)
    (x * x).sum().backward()
    gradient, leaf = x.grad, weakref.ref(x)
    del x
    assert leaf() is None
    assert gradient.tolist() == [2.0, 2.0, 2.0]


def test_base_dies_after_its_views(no_collector):
    base = wengert.ones(4, requires_grad=True) * 1
    view = base[:2]
    view.mul_(2)
    alive = weakref.ref(base)
    del base
    assert alive() is not None
    del view
    assert alive() is None


def test_inplace_history_dies(no_collector):
    token = Token()
    y = wengert.ones(4, requires_grad=True) * 1
    y.grad_fn.metadata["token"] = token
    alive = weakref.ref(token)
    del token
    y[:2].mul_(3)
    y.add_(1)
    assert alive() is not None
    del y
    assert alive() is None


# Hooks and handles


def test_hook_dies_with_its_graph(no_collector):
    token = Token()
    x = wengert.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, token=token: None)
    alive = weakref.ref(token)
    del token, y
    assert alive() is None


def test_removed_hook_is_released(no_collector):
    token = Token()
    x = wengert.ones(3, requires_grad=True)
    handle = x.register_hook(lambda g, token=token: None)
    alive = weakref.ref(token)
    del token
    handle.remove()
    assert alive() is None


def test_handle_does_not_keep_the_tensor_alive(no_collector):
    x = wengert.ones(3, requires_grad=True)
    handle = x.register_hook(lambda g: None)
    alive = weakref.ref(x)
    del x
    assert alive() is None
    handle.remove()


def test_hook_that_refers_to_its_tensor_is_collected():
    token = Token()
    x = wengert.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, held=(y, token): None)
    alive = weakref.ref(token)
    (y * 3).sum().backward()
    del x, y, token
    gc.collect()
    assert alive() is None


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_cycle_of_parameter_and_gradient_is_collected():
    x = wengert.tensor(2.0, requires_grad=True)
    (x * x * x).backward(create_graph=True)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_tensor_in_its_own_node_metadata_is_collected():
    y = wengert.ones(3, requires_grad=True) * 2
    y.grad_fn.metadata["self"] = y
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None


# Exceptions


def test_failed_backward_keeps_nothing():
    token = Token()
    alive = weakref.ref(token)

    def run(token):
        x = wengert.ones(3, requires_grad=True)
        y = x * x

        def fail(g, token=token):
            raise KeyError

        y.register_hook(fail)
        (y * 2).sum().backward()

    with pytest.raises(KeyError):
        run(token)
    del token
    gc.collect()
    assert alive() is None


def test_failed_forward_keeps_nothing(no_collector):
    x = wengert.ones(3, requires_grad=True)
    alive = weakref.ref(x)
    try:
        x @ wengert.ones(5)
    except RuntimeError:
        pass
    del x
    gc.collect()
    assert alive() is None


# Deep graphs


@pytest.mark.parametrize("run_backward", [False, True])
def test_deep_graph_gives_its_memory_back(run_backward):
    depth = 100_000 if wengert.__compiled__ else 20_000

    def build_and_drop():
        x = wengert.ones((), requires_grad=True)
        y = x
        for _ in range(depth):
            y = y + 1
        if run_backward:
            y.backward()

    build_and_drop()
    gc.collect()
    before = resident_bytes()
    for _ in range(4):
        build_and_drop()
    gc.collect()
    # Four graphs that stayed would take well over a thousand bytes per node.
    assert resident_bytes() - before < depth * 300
