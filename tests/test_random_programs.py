"""Random programs: one interpreter runs them on Wengert and on PyTorch, and all must agree.

An instruction names an operation and gives three numbers, which choose its operands among the
tensors made so far (0 is the newest) and its options. Whether it applies depends on shapes only, so
both libraries run the same calls; an error is part of the outcome.
"""

import math
import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wengert

MAX_ELEMENTS = 48
LARGE = 1e6
OPERATIONS = {}


class Machine:
    """One run of a program: the tensors made, and a log of everything observable."""

    def __init__(self, lib, shapes):
        self.lib = lib
        self.tensors = []
        self.first_versions = []
        self.log = []
        self.hooks = 0
        self.handles = []
        for number, (shape, requires_grad) in enumerate(shapes):
            count = math.prod(shape)
            entries = [math.sin(1.7 * i + number) for i in range(count)]
            leaf = lib.tensor(entries, dtype=lib.float64).reshape(shape).clone()
            self.add(leaf.requires_grad_(requires_grad))

    def add(self, tensor):
        self.tensors.append(tensor)
        self.first_versions.append(tensor._version)

    def pick(self, number):
        return self.tensors[-1 - number % len(self.tensors)]

    def constant(self, value):
        """A factor; PyTorch frees a plain number like a tensor, which then fails a second time."""
        return self.lib.tensor(value, dtype=self.lib.float64)

    def operand(self, number):
        """A tensor to compute with; one without an edge stands for its values only."""
        tensor = self.pick(number)
        return tensor if has_edge(tensor) else tensor.detach()

    def is_gradient(self, tensor):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return any(other.grad is tensor for other in self.tensors)

    def target(self, number):
        """A tensor to be changed. PyTorch takes a view of a changed base for a leaf until asked."""
        tensor = self.pick(number)
        try:
            tensor.grad_fn
        except RuntimeError:
            pass
        return tensor

    def run(self, name, a, b, c, quiet):
        try:
            with self.lib.set_grad_enabled(not quiet):
                made = OPERATIONS[name](self, a, b, c)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            self.log.append(("error", name, type(error).__name__, phrase(str(error))))
            return
        for tensor in made or ():
            if not tensor._is_view():
                tensor = tensor.contiguous()  # the memory order of results is not compared here
            if tensor.numel() <= MAX_ELEMENTS and not (abs(tensor.detach()) > LARGE).any():
                self.add(tensor)

    def outcome(self):
        """The log and the final state of every tensor."""
        states = map(describe, self.tensors, self.first_versions)
        return [*self.log, *states]


PHRASES = (
    "returns multiple views",
    "modified by an inplace operation",
    "a second time",
    "does not require grad",
    "appears to not have been used in the graph",
    "a view of a leaf Variable that requires grad",
    "a leaf Variable that requires grad",
    "is a view and",
    "created in no_grad mode",
    "doesn't match the broadcast shape",
    "more than one element of the written-to tensor",
    "can't retain_grad",
    "cannot register a hook",
    "leaf variables",
    "detach_",
)


def phrase(message):
    """The part of an error message that both libraries share; the message if none is known."""
    if "its base or another view of its base has been modified inplace" in message:
        return "modified by an inplace operation"  # it depends on the order of two checks
    return next((known for known in PHRASES if known in message), message)


def values(tensor):
    return None if tensor is None else (tuple(tensor.shape), tensor.detach().flatten().tolist())


def describe(tensor, first_version):
    """What can be seen of a tensor; a view that must not be used refuses to tell its history."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradient = tensor.grad
    try:
        is_leaf = tensor.is_leaf
    except RuntimeError as error:
        is_leaf = phrase(str(error))
    return (
        "tensor",
        values(tensor),
        tensor.requires_grad,
        is_leaf,
        tensor._version - first_version,
        tensor._is_view(),
        tensor.retains_grad,
        values(gradient),
        gradient is not None and gradient.requires_grad,
    )


def share_memory(x, y):
    return np.shares_memory(x.detach().numpy(), y.detach().numpy())


def is_expanded(x):
    return any(n > 1 and step == 0 for n, step in zip(x.shape, x.stride(), strict=True))


def has_edge(x):
    """False for a view made under no_grad of what requires grad; a hook on it crashes PyTorch."""
    return not (x._is_view() and x.requires_grad and x.grad_fn is None)


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


def broadcasts(x, y):
    return all(
        m == n or 1 in (m, n) for m, n in zip(reversed(x.shape), reversed(y.shape), strict=False)
    )


def fits_into(x, y):
    """Whether y can be written to x; memory that overlaps is left out."""
    if share_memory(x, y):
        return False
    return y.dim() <= x.dim() and all(
        n in (1, m) for m, n in zip(reversed(x.shape), reversed(y.shape), strict=False)
    )


# Functions ----------------------------------------------------------------------------------------


@operation
def unary(m, a, b, c):
    x = m.operand(a)
    return [(x.tanh, x.sin, x.neg, x.sigmoid, x.cos, x.clone)[b % 6]()]


@operation
def exponential(m, a, b, c):
    return [(m.operand(a) * m.constant(0.5)).exp()]


@operation
def scaled(m, a, b, c):
    x = m.operand(a)
    return [(x * m.constant(2), 3 - x, x / m.constant(4), x + 1)[b % 4]]


@operation
def binary(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if not broadcasts(x, y):
        return None
    return [(x * y, x + y, x - y, x * y, x / (y * y + 1))[c % 5]]


@operation
def reduction(m, a, b, c):
    x = m.operand(a).contiguous()
    if x.dim() == 0 or c % 3 == 0:
        return [x.sum() if b % 2 else x.mean()]
    reduce = x.sum if b % 2 else x.mean
    return [reduce(dim=b % x.dim(), keepdim=c % 3 == 1)]


@operation
def joined(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if x.shape != y.shape or x.dim() == 0:
        return None
    join = m.lib.cat if c % 2 else m.lib.stack
    return [join([x, y], dim=c % x.dim())]


@operation
def product(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if x.dim() == 2 and 0 < y.dim() <= 2 and x.shape[-1] == y.shape[0]:
        return [x @ y]
    return None


@operation
def rearranged(m, a, b, c):
    x = m.operand(a).contiguous()
    if x.dim() == 0 or x.numel() == 0:
        return None
    dim = c % x.dim()
    results = (
        lambda: x.sort(dim)[0] + 1,
        lambda: x.max(dim)[0] + 1,
        lambda: x.cumsum(dim),
        lambda: x.softmax(dim),
        lambda: x.flip(dim),
        lambda: x.index_select(dim, m.lib.tensor([0, x.shape[dim] - 1, 0])),
    )
    return [results[b % len(results)]()]


@operation
def chosen(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if not broadcasts(x, y):
        return None
    where = m.lib.where(x.detach() > 0, x, y)
    return [where if c % 2 else m.lib.maximum(x, y)]


# Views --------------------------------------------------------------------------------------------


@operation
def reshaped(m, a, b, c):
    x = m.pick(a)
    if b % 2:
        return [x.view(-1)] if x.is_contiguous() else None
    return [x.unsqueeze(b % (x.dim() + 1))]


@operation
def transposed(m, a, b, c):
    x = m.pick(a)
    return [x.transpose(0, -1)] if x.dim() > 1 else None


@operation
def selected(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0 or 0 in x.shape:
        return None
    dim = b % x.dim()
    return [x.select(dim, c % x.shape[dim])]


@operation
def sliced(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0:
        return None
    return [(x[1:], x[:1], x[..., ::2], x[..., :2])[b % 4]]


@operation
def squeezed(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 2 and b % 2:
        return [x.diagonal()]
    return [x.squeeze()]


@operation
def divided(m, a, b, c):
    x = m.pick(a)
    return list(x.split(2))[:2] if x.dim() and len(x) > 1 else None


@operation
def expanded(m, a, b, c):
    x = m.pick(a)
    return [x.expand(2, *x.shape)] if x.dim() < 3 else None


@operation
def unbound(m, a, b, c):
    x = m.pick(a)
    return list(x.unbind(0))[:2] if x.dim() > 1 and len(x) else None


@operation
def detached(m, a, b, c):
    return [m.pick(a).detach()]


# In-place edits -----------------------------------------------------------------------------------


@operation
def scaled_in_place(m, a, b, c):
    x = m.target(a)
    (x.mul_, x.add_, x.div_, x.sub_)[b % 4](m.constant(2))


@operation
def changed_in_place(m, a, b, c):
    x, y = m.target(a), m.operand(b)
    if fits_into(x, y):
        (x.mul_, x.add_, x.copy_, x.sub_)[c % 4](y)


@operation
def mapped_in_place(m, a, b, c):
    x = m.target(a)
    (x.tanh_, x.sin_, x.zero_, x.neg_, x.sigmoid_)[b % 5]()


@operation
def assigned(m, a, b, c):
    x, y = m.target(a), m.operand(b)
    if x.dim() == 0 or x.numel() == 0 or is_expanded(x) or share_memory(x, y):
        return
    if not fits_into(x.detach()[0], y):
        return
    if c % 3 == 0:
        x[c % x.shape[0]] = 0.5
    else:
        x[c % x.shape[0]] = y


@operation
def limited_in_place(m, a, b, c):
    x = m.target(a)
    if b % 3 == 0:
        x.clamp_(-0.5, 0.5)
    elif b % 3 == 1:
        x.masked_fill_(x.detach() > 0, 0.25)
    else:
        x.fill_(0.75)


@operation
def accumulated_in_place(m, a, b, c):
    x, y = m.target(a), m.operand(b)
    if x.shape != y.shape or x.numel() == 0 or share_memory(x, y) or is_expanded(x):
        return
    if c % 3 == 0:
        x.addcmul_(y, y)
    elif c % 3 == 1:
        x.lerp_(y, 0.25)
    else:
        x[y.detach() > 0] = 0.5


@operation
def turned_in_place(m, a, b, c):
    x = m.target(a)
    if not (x.requires_grad and m.lib.is_grad_enabled()):
        return
    if m.hooks or x.retains_grad or m.is_gradient(x):
        return  # PyTorch loses track of hooks and of a retained gradient here
    if b % 2:
        x.unsqueeze_(0)
    elif x.dim() > 1:
        x.transpose_(0, 1)


# Autograd -----------------------------------------------------------------------------------------


@operation
def hooked(m, a, b, c):
    tensor = m.pick(a)
    if not has_edge(tensor):
        return
    number = m.hooks
    m.hooks += 1

    def hook(gradient):
        m.log.append(("hook", number, values(gradient)))
        return gradient * 2 if c % 2 else None

    m.handles.append(tensor.register_hook(hook))


@operation
def node_hooked(m, a, b, c):
    node = m.pick(a).grad_fn
    if node is None:
        return
    number = m.hooks
    m.hooks += 1

    def prehook(grads):
        m.log.append(("prehook", number, [values(g) for g in grads]))
        return tuple(None if g is None else g * 2 for g in grads) if c % 2 else None

    def hook(inputs, outputs):
        m.log.append(("node hook", number, [values(g) for g in outputs]))

    if b % 2:
        m.handles.append(node.register_prehook(prehook))
    else:
        m.handles.append(node.register_hook(hook))


@operation
def sink_hooked(m, a, b, c):
    x = m.pick(a)
    if not (x.requires_grad and x.is_leaf and has_edge(x)):
        return
    number = m.hooks
    m.hooks += 1

    def hook(leaf):
        m.log.append(("accumulated", number, values(leaf.grad)))

    m.handles.append(x.register_post_accumulate_grad_hook(hook))


@operation
def unhooked(m, a, b, c):
    if m.handles:
        m.handles[a % len(m.handles)].remove()


@operation
def retained(m, a, b, c):
    x = m.pick(a)
    if has_edge(x):
        x.retain_grad()


@operation
def required(m, a, b, c):
    x = m.pick(0)  # the newest tensor: there are no views of it yet
    if not x._is_view():
        x.requires_grad_()


@operation
def forgotten(m, a, b, c):
    m.pick(a).grad = None


@operation
def reused_gradient(m, a, b, c):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradient = m.pick(a).grad
    return None if gradient is None else [gradient]


def weights(m, x):
    """A gradient with distinct entries."""
    count = x.numel()
    entries = m.lib.tensor([0.5 + 0.25 * i for i in range(count)], dtype=m.lib.float64)
    return entries.reshape(tuple(x.shape))


@operation
def backward(m, a, b, c):
    root = m.pick(a)
    inputs = (None, None, None, [m.pick(b)], [m.pick(b), m.pick(b + 2)])[c % 5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root.backward(
            weights(m, root),
            retain_graph=(True, None, True, False)[b % 4],
            create_graph=c % 7 == 6,
            inputs=inputs,
        )
    m.log.append(("backward", [values(t.grad) for t in m.tensors if t.is_leaf]))


@operation
def backward_from_two(m, a, b, c):
    roots = [m.pick(a), m.pick(b)]
    m.lib.autograd.backward(
        roots, [weights(m, root) for root in roots], retain_graph=c % 3 > 0
    )
    m.log.append(("backward", [values(t.grad) for t in m.tensors if t.is_leaf]))


@operation
def grad(m, a, b, c):
    root = m.pick(a)
    inputs = [m.pick(b)]
    if not m.hooks:  # PyTorch captures before or after the hooks, as another input lies behind
        inputs.append(m.pick(b + c))
    found = m.lib.autograd.grad(
        root,
        inputs,
        weights(m, root),
        retain_graph=True if c % 3 else None,
        create_graph=b % 2 == 0,
        allow_unused=c % 4 != 0,
    )
    recorded = [g is not None and g.requires_grad for g in found]
    m.log.append(("grad", [values(g) for g in found], recorded))
    return [g.clone() for g in found if g is not None]


# The comparison -----------------------------------------------------------------------------------

SHAPES = [(), (3,), (2, 3), (3, 2), (2, 1), (1, 3), (2, 2, 2)]


def programs():
    """Leaves and instructions."""
    number = st.integers(0, 11)
    leaves = st.lists(
        st.tuples(st.sampled_from(SHAPES), st.sampled_from([True, True, True, False])),
        min_size=1,
        max_size=3,
    )
    instruction = st.tuples(
        st.sampled_from(sorted(OPERATIONS)),
        number,
        number,
        number,
        st.sampled_from([False] * 7 + [True]),
    )
    return st.tuples(leaves, st.lists(instruction, min_size=1, max_size=24))


def check(examples):
    """A fixed number of programs, the same in every run; more where the environment asks for it."""
    wanted = os.environ.get("WENGERT_PROGRAMS")
    return settings(
        max_examples=examples if wanted is None else int(wanted),
        derandomize=wanted is None,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def execute(lib, program):
    leaves, instructions = program
    machine = Machine(lib, leaves)
    for instruction in instructions:
        machine.run(*instruction)
    return machine.outcome()


def close(found, wanted):
    """Whether two outcomes are the same, numbers within rounding."""
    if isinstance(found, float) and isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9) or (
            math.isnan(found) and math.isnan(wanted)
        )
    if isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    return found == wanted


def compare(found, wanted):
    for ours, theirs in zip(found, wanted, strict=False):
        assert close(ours, theirs), (ours, theirs)
    assert len(found) == len(wanted)


@check(examples=1500)
@given(programs())
def test_same_outcome_as_pytorch(program):
    torch = pytest.importorskip("torch")
    compare(execute(wengert, program), execute(torch, program))


def execute_until_failure(program, devices):
    """The final tensors of a run whose nodes are spread over `devices`.

    When backward fails, it depends on the order of nodes which leaves have their gradient by then:
    the program ends before.
    """
    leaves, instructions = program
    machine = Machine(wengert, leaves)
    for instruction in instructions:
        states = machine.outcome()[len(machine.log) :]
        machine.run(*instruction)
        if machine.log and machine.log[-1][0] == "error" and machine.log[-1][1] in ENGINE_CALLS:
            return states
        for number, tensor in enumerate(machine.tensors):
            place(tensor, devices[number % len(devices)])
    return machine.outcome()[len(machine.log) :]


ENGINE_CALLS = ("backward", "backward_from_two", "grad")


def place(tensor, device):
    try:
        node = tensor.grad_fn
    except RuntimeError:
        return
    if node is not None:
        node.out_device = device


@check(examples=500)
@given(programs(), st.lists(st.sampled_from([None, "fake:0", "fake:1"]), min_size=1, max_size=5))
def test_same_outcome_on_several_devices(program, devices):
    compare(execute_until_failure(program, devices), execute_until_failure(program, [None]))
