"""Random programs: one interpreter runs them on Wengert and on PyTorch, and all must agree.

An instruction names an operation and gives three numbers, which choose its operands among the
tensors made so far (0 is the newest) and its options. Whether it applies depends on shapes only, so
both libraries run the same calls; an error is part of the outcome.
"""

import math
import warnings

import numpy as np

MAX_ELEMENTS = 48
LARGE = 1e6
OPERATIONS = {}


def operation(function):
    """Let programs use a function of a machine and three numbers; it returns the tensors made."""
    OPERATIONS[function.__name__] = function
    return function


class Machine:
    """One run of a program: the tensors made, and a log of everything observable."""

    def __init__(self, lib, leaves):
        self.lib = lib
        self.tensors = []
        self.first_versions = []
        self.log = []
        self.hooks = 0
        self.handles = []
        self.kept = []
        for number, (shape, requires_grad) in enumerate(leaves):
            count = math.prod(shape)
            entries = [math.sin(1.7 * i + number) for i in range(count)]
            leaf = lib.tensor(entries, dtype=lib.float64).reshape(shape).clone()
            self.add(leaf.requires_grad_(requires_grad))

    def add(self, tensor):
        self.tensors.append(tensor)
        self.first_versions.append(tensor._version)

    def pick(self, number):
        return self.tensors[-1 - number % len(self.tensors)]

    def recorded(self, number):
        """A tensor to differentiate; one in twelve times any tensor, for the errors."""
        chosen = [tensor for tensor in self.tensors if tensor.requires_grad]
        if number == 11 or not chosen:
            return self.pick(number)
        return chosen[-1 - number % len(chosen)]

    def constant(self, value):
        """A factor; PyTorch frees a plain number like a tensor, which then fails a second time."""
        return self.lib.tensor(value, dtype=self.lib.float64)

    def operand(self, number):
        """A tensor to compute with, contiguous: how functions treat memory is not compared here.

        One without an edge stands for its values only.
        """
        tensor = self.pick(number)
        return tensor.contiguous() if has_edge(tensor) else tensor.detach().contiguous()

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

    def new_hook(self):
        """The number of a hook, by which the log knows it."""
        self.hooks += 1
        return self.hooks - 1

    def run(self, name, a, b, c, quiet):
        try:
            with self.lib.set_grad_enabled(not quiet):
                made = OPERATIONS[name](self, a, b, c)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            self.log.append(("error", name, type(error).__name__, phrase(str(error))))
            return
        for tensor in made or ():
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
    "A different number of tensors was saved",
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
    "leaf variable has been moved into the graph interior",
    "leaf node was passed to _will_engine_execute_node",
    "Can't detach views in-place",
    "has been detached in-place",
    "not possible to get the gradient edge",
    "post accumulate grad hooks cannot be registered on non-leaf",
)


def phrase(message):
    """The part of an error message that both libraries share; the message if none is known."""
    if "its base or another view of its base has been modified inplace" in message:
        return "modified by an inplace operation"  # it depends on the order of two checks
    return next((known for known in PHRASES if known in message), message)


def values(tensor):
    return None if tensor is None else (tuple(tensor.shape), tensor.detach().flatten().tolist())


def several(tensors):
    return [values(tensor) for tensor in tensors]


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


def execute(lib, program):
    """The outcome of a program: leaves and instructions."""
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
