"""Runs a program on one library and says what was seen at each step."""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Iterator
from typing import Any

from fuzz.program import HELPERS, Program, Step

LIMIT = 400  # elements of a tensor whose values are looked at

#: Helpers by their plain meaning: what a compiled, batched or traced function must agree with.
PLAIN = """
def compiled(f):
    return f

def compilations(f):
    return 1

def cond(condition, yes, no, operands):
    return yes(*operands) if condition else no(*operands)

def while_loop(condition, body, carried):
    while condition(*carried):
        carried = body(*carried)
    return carried

def scan(combine, carried, rows, reverse=False):
    made = []
    for i in reversed(range(len(rows))) if reverse else range(len(rows)):
        row = rows.select(0, i)
        carried, result = combine(carried, row)
        made.append(result)
    return carried, torch.stack(made[::-1] if reverse else made)

def map_rows(f, rows):
    return torch.stack([f(rows.select(0, i)) for i in range(len(rows))])

def vmap(f, in_dims=0, out_dims=0):
    # A tensor that the examples share is changed once, so that each of them sees it unchanged.
    def mapped(*args):
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        count = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
        shared = [[a] + [a.clone() for _ in range(1, count)] if d is None else []
                  for a, d in zip(args, dims)]
        results = [
            f(*[own[i] if d is None else a.select(d, i) for a, d, own in zip(args, dims, shared)])
            for i in range(count)
        ]
        if isinstance(results[0], (tuple, list)):
            return tuple(torch.stack(part, out_dims) for part in zip(*results))
        return torch.stack(results, out_dims)
    return mapped

def jacobian(f):
    return torch.func.jacfwd(f)

def linearized(f, x):
    return torch.func.jvp(f, (x,), (tangent(x),))[1]
"""


@functools.cache
def _definitions(plain: bool):
    source = "\n\n".join(HELPERS.values()) + ("\n" + PLAIN if plain else "")
    return compile(source, "<helpers>", "exec")


#: Set to 1 while a step runs on PyTorch, where several processes can see it.
on_pytorch: Any = None


class Seen:
    """What one step did: an error or the tensors made, and what hooks wrote."""

    __slots__ = ("error", "made", "log")

    def __init__(self, error, made, log) -> None:
        self.error = error
        self.made = made
        self.log = log


class Failure:
    """An exception as it is compared: its type; the message is for the declared differences."""

    __slots__ = ("kind", "message")

    def __init__(self, error: BaseException) -> None:
        self.kind = type(error).__name__.lstrip("_")  # _LinAlgError is public by another name
        self.message = str(error)

    def __repr__(self) -> str:
        return f"{self.kind}: {self.message[:150]}"


#: Relative changes that a dtype hardly represents.
NUDGES = {
    "float64": 4e-15, "complex128": 4e-15, "float32": 2e-6, "complex64": 2e-6, "float16": 4e-3,
    "half": 4e-3, "bfloat16": 1.6e-2,
}  # fmt: skip


class Nudges:
    """How far numbers are moved: each by its share, as its dtype needs and all of a program do."""

    def __init__(self, text: str, scale: float) -> None:
        said = [NUDGES[name] for name in NUDGES if re.search(rf"\b{name}\b", text)]
        self._least = max(said, default=0.0)
        self._scale = scale
        self._count = 0

    def of(self, dtype: Any) -> float:
        """The whole nudge of a dtype."""
        return self._scale * max(self._least, NUDGES.get(str(dtype).rpartition(".")[2], 0.0))

    def share(self) -> float:
        """That of the next number, else ratios of numbers would stay as they are."""
        self._count += 1
        return 0.5 + self._count * 0.618 % 0.5


class Nudged:
    """A library whose tensors of numbers get slightly larger or smaller ones."""

    def __init__(self, lib: Any, nudges: Nudges) -> None:
        self._lib = lib
        self._nudges = nudges

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)

    def tensor(self, data: Any, **options: Any) -> Any:
        nudge = self._nudges.of(self._lib.tensor(data, **options).dtype)
        return self._lib.tensor(self._nudged(data, nudge), **options)

    def linspace(self, *args: Any, **options: Any) -> Any:
        # Also what is zero, which it may be by rounding.
        made = self._lib.linspace(*args, **options)
        nudge = self._nudges.of(made.dtype)
        return made * (1 + nudge) + nudge

    def _nudged(self, data: Any, nudge: float) -> Any:
        if isinstance(data, list):
            return [self._nudged(item, nudge) for item in data]
        if not isinstance(data, (float, complex)):
            return data
        return data * (1 + self._nudges.share() * nudge)


#: Names of Fourier transforms.
TRANSFORM = re.compile(r"fft[2n]?$|stft$")


@contextlib.contextmanager
def nudged_results(lib: Any, nudges: Nudges) -> Iterator[None]:
    """Where numbers that a function makes of integers are slightly larger or smaller.

    Whole ones stay, such as those of a cast, which are no matter of rounding, unless they are those
    of a Fourier transform.
    """

    def is_inexact(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return any(is_inexact(part) for part in value)
        return isinstance(value, lib.Tensor) and (value.is_floating_point() or value.is_complex())

    class Mode(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            found = function(*args, **(kwargs or {}))
            if function is lib.tensor or isinstance(found, (tuple, list)) or not is_inexact(found):
                return found
            if found.requires_grad or is_inexact((*args, *(kwargs or {}).values())):
                return found
            with lib._C.DisableTorchFunction():
                nudge = nudges.share() * nudges.of(found.dtype)
                moved = found * (1 + nudge)
                if TRANSFORM.search(function.__name__):
                    return moved
                return found.where(found == found.real.round(), moved)

    with Mode():
        yield


class Run:
    """One run: the names that the program has made so far, on one library."""

    def __init__(
        self, lib: Any, plain: bool = False, place: Any = None, through: Any = None
    ) -> None:
        if lib.__name__ == "wengert":
            lib.manual_seed(0)  # only programs of our own draw random numbers
        self.lib = lib
        self.log: list = []
        self.place = place
        self.births: dict[str, int] = {}
        self.space = {"torch": through or lib, "log": self.log, "__name__": "program"}
        exec(_definitions(plain), self.space)

    def step(self, step: Step) -> Seen:
        logged = len(self.log)
        error = None
        if on_pytorch is not None:
            on_pytorch.value = self.lib.__name__ == "torch"
        try:
            exec(step.code, self.space)
        except Exception as problem:
            error = Failure(problem)
            problem.__traceback__ = None
        targets = [name for name in step.targets if name in self.space]
        for name in targets:
            self.births.pop(name, None)  # the name may have been that of another tensor
        made = [(name, self.look(self.space[name], name)) for name in targets]
        if self.place is not None:
            self.place(self)
        return Seen(error, made, self.log[logged:])

    def look(self, value: Any, name: str = "") -> Any:
        """What is compared of a value."""
        if isinstance(value, self.lib.Tensor):
            return describe(self, value, name)
        if isinstance(value, (tuple, list)):
            return [self.look(item, f"{name}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, (int, float, complex, bool, str, type(None))):
            return value
        return None

    def end(self) -> Seen:
        """The state of every tensor when the program is over."""
        names = [n for n, v in self.space.items() if isinstance(v, self.lib.Tensor)]
        made = [(name, self.look(self.space[name], name)) for name in names]
        self.leave()
        return Seen(None, made, [])

    def leave(self) -> None:
        """Leave a dual level that the program has left open, and let go of all names.

        Hooks refer to the names beside them: a graph that has some may else outlive its program, in
        PyTorch more than here.
        """
        if self.space.get("level") is not None:
            try:
                self.lib.autograd.forward_ad.exit_dual_level()
            except Exception:
                pass
        self.space.clear()


FIELDS = (
    "shape", "dtype", "values", "stride", "offset", "requires_grad", "leaf", "node", "version",
    "view", "base", "inference", "retains_grad", "grad",
)  # fmt: skip


def describe(run: Run, t: Any, name: str) -> tuple:
    """What can be seen of a tensor, in the order of FIELDS.

    Versions count from the step that named the tensor: kernels may count their own writes.
    """
    view = t._is_view()
    try:
        node = t.grad_fn
        node = None if node is None else node.name()
    except RuntimeError as error:
        node = type(error).__name__
    inference = t.is_inference()
    leaf = None if node == "RuntimeError" else t.is_leaf
    gradient = t.grad if leaf or t.retains_grad else None
    return (
        tuple(t.shape),
        str(t.dtype).rpartition(".")[2],
        values(t),
        strides(t),
        t.storage_offset() if t.numel() else None,
        t.requires_grad,
        leaf,
        node,
        None if inference else t._version - run.births.setdefault(name, t._version),
        view,
        named(run, t._base) if view else None,
        inference,
        t.retains_grad,
        None if gradient is None else (tuple(gradient.shape), values(gradient)),
    )


def values(t: Any) -> Any:
    """The elements; PyTorch cannot list zeros without memory and batches that have escaped."""
    if t.numel() > LIMIT:
        return None
    if t.numel() == 0:
        return []  # also where a batch cannot be read
    try:
        return t.tolist()
    except RuntimeError:
        pass
    try:
        return (t.detach() + 0).tolist()
    except RuntimeError:
        return "unreadable"


def strides(t: Any) -> tuple | None:
    """The steps that lead to another element; those of single rows mean nothing."""
    if t.numel() == 0:
        return None
    return tuple(step if size > 1 else None for size, step in zip(t.shape, t.stride()))


def named(run: Run, tensor: Any) -> str:
    """The first name of a tensor; a tensor that has none is hidden."""
    return next((name for name, value in run.space.items() if value is tensor), "hidden")


def execute(
    program: Program, lib: Any, plain: bool = False, place: Any = None, through: Any = None
) -> list[Seen]:
    """What is seen of a whole program: step by step, and at the end.

    The program may see the library `through` another object.
    """
    run = Run(lib, plain, place, through)
    try:
        return [*(run.step(step) for step in program.steps), run.end()]
    finally:
        run.leave()


def execute_in_threads(program: Program, lib: Any) -> list[Seen]:
    """The same with every step in a thread of its own."""
    run, seen = Run(lib), []
    for step in program.steps:
        thread = threading.Thread(target=lambda step=step: seen.append(run.step(step)))
        thread.start()
        thread.join()
    return [*seen, run.end()]


def spread(devices: list) -> Any:
    """Moves the nodes of all tensors to these devices in turn."""

    def place(run: Run) -> None:
        tensors = [v for v in run.space.values() if isinstance(v, run.lib.Tensor)]
        for number, tensor in enumerate(tensors):
            try:
                node = tensor.grad_fn
            except RuntimeError:
                continue
            if node is not None:
                node.out_device = devices[number % len(devices)]

    return place
