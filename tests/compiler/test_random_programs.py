"""Random programs: compiled they do what they do in eager mode, to the second derivative.

A program is a list of instructions, each an operation with three numbers that choose operands and
options. What applies depends on shapes only. `WENGERT_PROGRAMS` asks for more of them.
"""

import math
import os
import warnings

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wengert
from wengert import compiler
from wengert.autograd import Function
from wengert.compiler import explain

MOST_ELEMENTS = 48
LARGE = 1e5
OPERATIONS = {}
REFUSED = (RuntimeError, ValueError, IndexError, TypeError)


class Machine:
    """The tensors of one run; each belongs to a family that shares its memory."""

    def __init__(self, inputs, views):
        self.tensors = list(inputs)
        self.families = list(range(len(inputs)))
        self.views = views  # the inputs that are views
        self.branched = False  # what requires grad depends on the branch that is taken

    def place(self, number):
        return len(self.tensors) - 1 - number % len(self.tensors)

    def pick(self, number):
        return self.tensors[self.place(number)]

    def related(self, a, b):
        """Whether two operands share memory."""
        return self.families[self.place(a)] == self.families[self.place(b)]

    def run(self, name, a, b, c, quiet):
        with wengert.set_grad_enabled(not quiet):
            made = OPERATIONS[name](self, a, b, c)
        if made is None:
            return
        shared = name in VIEWS
        family = self.families[self.place(a)] if shared else len(self.tensors) + 100
        for i, t in enumerate(made):
            if t.numel() <= MOST_ELEMENTS and t.dim() < 5:
                self.tensors.append(t)
                self.families.append(family if shared else family + i)


VIEWS = set()


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


def view(function):
    VIEWS.add(function.__name__)
    return operation(function)


def broadcasts(x, y):
    return all(
        m == n or 1 in (m, n) for m, n in zip(reversed(x.shape), reversed(y.shape), strict=False)
    )


def fits_into(x, y):
    return y.dim() <= x.dim() and all(
        n in (1, m) for m, n in zip(reversed(x.shape), reversed(y.shape), strict=False)
    )


def is_expanded(x):
    return any(n > 1 and step == 0 for n, step in zip(x.shape, x.stride(), strict=True))


# Functions ----------------------------------------------------------------------------------------


@operation
def unary(m, a, b, c):
    x = m.pick(a)
    return [(x.tanh, x.sin, x.neg, x.sigmoid, x.cos, x.clone, x.abs, x.relu)[b % 8]()]


@operation
def scaled(m, a, b, c):
    x = m.pick(a)
    return [(x * 2, 3 - x, x / 4, x + 1, x * 1, x + 0, x * 0.5, x**2)[b % 8]]


@operation
def binary(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if not broadcasts(x, y):
        return None
    return [(x * y, x + y, x - y, y - x, x / (y * y + 1), wengert.maximum(x, y))[c % 6]]


@operation
def reduction(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0 or c % 3 == 0:
        return [(x.sum, x.mean)[b % 2]()]
    dim = b % x.dim()
    keepdim = c % 3 == 1
    return [(x.sum(dim, keepdim), x.mean(dim, keepdim), x.logsumexp(dim, keepdim))[c % 3]]


@operation
def joined(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if x.shape != y.shape or x.dim() == 0:
        return None
    return [(wengert.cat if c % 2 else wengert.stack)([x, y], dim=c % x.dim())]


@operation
def product(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if x.dim() == 2 and 0 < y.dim() <= 2 and x.shape[-1] == y.shape[0]:
        return [x @ y]
    return None


@operation
def rearranged(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0 or x.numel() == 0:
        return None
    dim = c % x.dim()
    results = (
        lambda: x.sort(dim)[0],
        lambda: x.max(dim)[0],
        lambda: x.cumsum(dim),
        lambda: x.softmax(dim),
        lambda: x.flip(dim),
        lambda: x.index_select(dim, wengert.tensor([0, x.shape[dim] - 1, 0])),
    )
    return [results[b % len(results)]()]


@operation
def chosen(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if not broadcasts(x, y):
        return None
    return [wengert.where(x > 0.1, x, y)]


@operation
def made(m, a, b, c):
    x = m.pick(a)
    return [
        (
            wengert.full((3,), 0.5, dtype=wengert.float64),
            wengert.zeros_like(x),
            x.new_ones(2, 1),
            wengert.arange(2.0, dtype=wengert.float64),
        )[b % 4]
    ]


@operation
def slope(m, a, b, c):
    """A gradient taken inside the program."""
    x, y = m.pick(a), m.pick(b)
    if m.branched or not (x.requires_grad and y.requires_grad):
        return None
    if m.place(a) in m.views:
        return None  # views of it are views of what it is a view of, which a graph does not know
    (g,) = wengert.autograd.grad(
        y.sum(), x, create_graph=c % 2 == 0, retain_graph=True, allow_unused=True
    )
    return None if g is None else [g.clone()]


class Pretended(Function):
    """Its derivative is not that of what it computes, and has a derivative of its own."""

    @staticmethod
    def forward(ctx, x, y):
        inner = (x * y).sin()
        ctx.save_for_backward(inner, y)
        return inner.round(decimals=1), inner * 2

    @staticmethod
    def backward(ctx, g, h):
        inner, y = ctx.saved_tensors
        return g * inner * y, h * inner


@operation
def pretended(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    return Pretended.apply(x, y) if x.shape == y.shape else None


@operation
def noisy(m, a, b, c):
    x = m.pick(a)
    return [x * wengert.rand_like(x) if b % 2 else x + wengert.rand(x.shape, dtype=x.dtype)]


#: Operations of which a graph does not save what eager mode does.
BLOCKS = {"branched", "repeated", "scanned", "mapped", "pretended"}

# Control flow -------------------------------------------------------------------------------------


@operation
def branched(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if x.shape != y.shape:
        return None
    m.branched = True
    results = compiler.cond(
        y.sum() > 0.1 * c,
        lambda x, y: (x * y, y.sin()),
        lambda x, y: (x.tanh(), x * 1),
        (x, y),
    )
    return [t.contiguous() for t in results]  # a graph does not know the branch, nor its layout


@operation
def repeated(m, a, b, c):
    """A loop of which it is not known how often it runs; it captures an operand."""
    x, y = m.pick(a), m.pick(b)
    if not fits_into(x, y):
        return None
    _, result = compiler.while_loop(
        lambda n, h: (n < 1) | ((n < 3) & (h.sum() < 0.1 * c)),
        lambda n, h: (n + 1, (h * y).tanh() + h),
        (wengert.tensor(0), x),
    )
    return [result.contiguous()]


@operation
def scanned(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if x.dim() == 0 or x.shape[0] == 0 or y.shape != x.shape[1:]:
        return None
    last, rows = compiler.scan(
        lambda h, row: ((h * row).sin() + row, h * row), y, x, reverse=c % 2 == 0
    )
    return [last.contiguous(), rows]


@operation
def mapped(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if x.dim() == 0 or x.shape[0] == 0 or not broadcasts(x[0], y):
        return None
    return [compiler.map(lambda row: (row * y).tanh(), x)]


# Views --------------------------------------------------------------------------------------------


@view
def reshaped(m, a, b, c):
    x = m.pick(a)
    if b % 2:
        return [x.view(-1)] if x.is_contiguous() else None
    return [x.unsqueeze(b % (x.dim() + 1))]


@view
def transposed(m, a, b, c):
    x = m.pick(a)
    return [x.transpose(0, -1)] if x.dim() > 1 else None


@view
def selected(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0 or 0 in x.shape:
        return None
    dim = b % x.dim()
    return [x.select(dim, c % x.shape[dim])]


@view
def sliced(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0:
        return None
    return [(x[1:], x[:1], x[..., ::2], x[..., :2])[b % 4]]


@view
def squeezed(m, a, b, c):
    x = m.pick(a)
    return [x.diagonal() if x.dim() == 2 and b % 2 else x.squeeze()]


@view
def divided(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0 or x.shape[0] < 2:
        return None
    return list(x.split(1 + b % 2) if c % 2 else x.unbind(0))[:2]


@view
def expanded(m, a, b, c):
    x = m.pick(a)
    return [x.expand(2, *x.shape)] if x.dim() < 3 else None


@view
def detached(m, a, b, c):
    return [m.pick(a).detach()]


# In-place edits -----------------------------------------------------------------------------------


@operation
def scaled_in_place(m, a, b, c):
    x = m.pick(a)
    if not is_expanded(x):
        (x.mul_, x.add_, x.div_, x.sub_)[b % 4](2)


@operation
def changed_in_place(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if fits_into(x, y) and not m.related(a, b) and not is_expanded(x):
        (x.mul_, x.add_, x.copy_, x.sub_)[c % 4](y)


@operation
def mapped_in_place(m, a, b, c):
    x = m.pick(a)
    if not is_expanded(x):
        (x.tanh_, x.sin_, x.zero_, x.neg_, x.sigmoid_)[b % 5]()


@operation
def assigned(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if x.dim() == 0 or x.numel() == 0 or is_expanded(x) or m.related(a, b):
        return
    if fits_into(x.detach()[0], y):
        x[c % x.shape[0]] = 0.5 if c % 3 == 0 else y


@operation
def limited_in_place(m, a, b, c):
    x = m.pick(a)
    if is_expanded(x):
        return
    if b % 3 == 0:
        x.clamp_(-0.5, 0.5)
    elif b % 3 == 1:
        x.masked_fill_(x.detach() > 0.1, 0.25)
    else:
        x.fill_(0.75)


@operation
def accumulated_in_place(m, a, b, c):
    x, y = m.pick(a), m.pick(b)
    if x.shape == y.shape and not m.related(a, b) and not is_expanded(x):
        x.addcmul_(y, y) if c % 2 else x.lerp_(y, 0.25)


# The comparison -----------------------------------------------------------------------------------

SHAPES = [(), (3,), (2, 3), (3, 2), (2, 1), (1, 3), (2, 2, 2)]
KINDS = ["leaf", "leaf", "result", "view", "plain", "plain view"]


def programs():
    """Inputs, instructions and which tensors to return."""
    number = st.integers(0, 11)
    inputs = st.lists(
        st.tuples(st.sampled_from(SHAPES), st.sampled_from(KINDS)), min_size=1, max_size=3
    )
    instruction = st.tuples(
        st.sampled_from(sorted(OPERATIONS)),
        number,
        number,
        number,
        st.sampled_from([False] * 6 + [True]),
    )
    return st.tuples(
        inputs,
        st.lists(instruction, min_size=3, max_size=14),
        st.lists(st.integers(0, 14), min_size=1, max_size=4),
    )


def function_of(program):
    """The program as a function of its inputs."""
    kinds, instructions, returned = program
    views = [i for i, (_, kind) in enumerate(kinds) if "view" in kind]

    def function(*inputs):
        machine = Machine(inputs, views)
        for instruction in instructions:
            machine.run(*instruction)
        return [machine.pick(number) for number in returned]

    return function


def arguments(program, seed):
    """Leaves, and the inputs made of them: leaves themselves, results, views of results."""
    leaves, inputs = [], []
    for number, (shape, kind) in enumerate(program[0]):
        count = math.prod(shape)
        entries = [math.sin(1.7 * i + number + seed) for i in range(2 * count)]
        both = wengert.tensor(entries, dtype=wengert.float64).reshape(2, *shape)
        leaf = (both if "view" in kind else both[0]).clone()
        if not kind.startswith("plain"):
            leaves.append(leaf.requires_grad_())
        given = leaf if kind in ("leaf", "plain", "plain view") else leaf * 1
        inputs.append(given[1] if "view" in kind else given)
    return leaves, inputs


class Outcome:
    """What can be seen of one call: results, changed inputs, derivatives."""

    def __init__(self, function, program, seed):
        leaves, inputs = arguments(program, seed)
        self.error = None
        wengert.manual_seed(seed)
        try:
            self.results = function(*inputs)
        except REFUSED as error:
            self.error = error
            return
        tensors = [*self.results, *inputs]
        self.same = [[a is b for b in tensors] for a in tensors]
        self.values = [t.detach().clone() for t in tensors]
        self.finite = all(bool((abs(v) < LARGE).all()) for v in self.values)
        self.recorded = [t.requires_grad for t in tensors]
        self.first, self.second = derivatives(tensors, leaves)
        self.leads_on = [t.requires_grad and reaches(t, leaves) for t in tensors]
        self.shared = []
        for t in self.results:
            if not is_expanded(t):
                with wengert.no_grad(), warnings.catch_warnings():
                    t.mul_(1.5)
            self.shared += [other.detach().clone() for other in tensors]


def reaches(t, leaves):
    """Whether the gradient of a tensor reaches a leaf; it may get lost on the way, or refused."""
    try:
        found = wengert.autograd.grad(t.sum(), leaves, allow_unused=True, retain_graph=True)
    except RuntimeError:
        return False
    return any(g is not None and bool((g != 0).any()) for g in found)


def derivatives(tensors, leaves):
    """Gradients of a weighted sum, and of a weighted sum of these; an error for what fails."""
    targets = [(i, t) for i, t in enumerate(dict.fromkeys(tensors)) if t.requires_grad]
    if not targets or not leaves:
        return None, None
    try:
        loss = sum((t * t * (0.5 + 0.3 * i) + t).sum() for i, t in targets)
        first = wengert.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    except RuntimeError as error:
        return error, None
    known = [(i, g) for i, g in enumerate(first) if g is not None and g.requires_grad]
    if not known:
        return first, None
    try:
        total = sum((g * (0.7 + i)).sum() for i, g in known)
        return first, wengert.autograd.grad(
            total, leaves, allow_unused=True, retain_graph=True
        )
    except RuntimeError as error:
        return first, error


def assert_close(mine, its, what):
    for i, (a, b) in enumerate(zip(mine, its, strict=True)):
        if a is None and b is None:
            continue
        a = wengert.zeros_like(b) if a is None else a
        b = wengert.zeros_like(a) if b is None else b
        assert a.shape == b.shape and a.dtype is b.dtype, (what, i)
        assert wengert.allclose(a.detach(), b.detach(), rtol=1e-8, atol=1e-8), (what, i, a, b)


def compare(program):
    function = function_of(program)
    compiled = wengert.compile(function)
    names = [name for name, *_ in program[1]]
    for seed in (0, 1):
        its = Outcome(function, program, seed)
        mine = Outcome(compiled, program, seed)
        if its.error is not None:
            if mine.error is None and BLOCKS.intersection(names):
                return  # what eager mode saves is changed, but a graph computes it again
            assert type(mine.error) is type(its.error), (mine.error, its.error)
            return
        if mine.error is not None:
            if "changing a part of an expanded tensor" in str(mine.error):
                return
            raise mine.error
        if not its.finite:
            return
        assert_close(mine.values, its.values, "values")
        assert mine.same == its.same
        for i, (found, expected) in enumerate(zip(mine.recorded, its.recorded, strict=True)):
            # A graph does not know which branch is taken.
            either = found and "branched" in names and not mine.leads_on[i]
            assert found == expected or (expected and not its.leads_on[i]) or either, i
        assert_close(mine.shared, its.shared, "what shares memory")
        for name in ("first", "second"):
            expected, found = getattr(its, name), getattr(mine, name)
            if isinstance(expected, Exception):
                return  # eager mode refuses what a graph can do
            if isinstance(found, Exception):
                if "modified by an inplace" in str(found) and BLOCKS.intersection(names):
                    return  # a graph keeps the whole result of a loop, eager mode its rounds
                raise found
            if expected is not None and found is not None:
                assert_close(found, expected, f"{name} derivatives")
            elif expected is not None or found is not None:
                nothing = [g for g in (expected or found) if g is not None and (g != 0).any()]
                assert not nothing, name
    assert len(compiled.compilations) == 1, explain(compiled)


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


@check(examples=100)
@given(programs())
def test_compiled_programs(program):
    compare(program)
