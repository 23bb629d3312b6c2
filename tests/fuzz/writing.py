"""Writes random programs: each step is chosen by looking at the tensors that the steps before made.

While a program is written it runs on the library it will be compared with, so that a step can fit
the shapes and dtypes that are there. The number of a program decides everything about it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fuzz.program import Program, Step
from fuzz.runner import Failure, Run, Seen

MOST_ELEMENTS = 60


class Kind:
    """A kind of step: the function that writes it, how often, and where it may stand."""

    def __init__(self, write: Callable, weight: float, inside: bool, ours: bool) -> None:
        self.write = write
        self.weight = weight
        self.inside = inside
        self.ours = ours


KINDS: dict[str, list[Kind]] = {}


def step(weight: float = 1.0, inside: bool = False, ours: bool = False) -> Callable:
    """Register a kind of step under the name of its module.

    `inside` kinds may stand in the body of a function, `ours` ones need what PyTorch lacks.
    """

    def register(write: Callable) -> Callable:
        subject = write.__module__.rpartition(".")[2]
        KINDS.setdefault(subject, []).append(Kind(write, weight, inside, ours))
        return write

    return register


def passes(test: Callable, tensor: Any) -> bool:
    """The outcome of a test; a view that must not be used refuses some questions."""
    try:
        return bool(test(tensor))
    except RuntimeError:
        return False


def has_edge(tensor: Any) -> bool:
    """False for a view made under no_grad of what requires grad."""
    return not (tensor.requires_grad and tensor._is_view() and tensor.grad_fn is None)


class Writer:
    """Writes steps, and runs them as it writes."""

    def __init__(self, rng: random.Random, lib: Any, ours: bool = False) -> None:
        self.rng = rng
        self.run = Run(lib, plain=lib.__name__ == "wengert")
        self.ours = ours
        self.steps: list[Step] = []
        self.seen: list[Seen] = []
        self.count = 0
        self.defined: set[str] = set()
        self.names: list[str] = []
        self.facts: dict[str, Any] = {}

    # What there is

    def value(self, name: str) -> Any:
        return self.run.space[name]

    def tensors(self, test: Callable | None = None) -> list[str]:
        """Names of tensors that pass a test, oldest first."""
        tensor = self.run.lib.Tensor
        space = self.run.space
        found = [name for name in self.names if isinstance(space.get(name), tensor)]
        return found if test is None else [name for name in found if passes(test, space[name])]

    def pick(self, test: Callable | None = None, edge: bool = True) -> str | None:
        """One of the tensors that pass a test, a late one rather than an early one.

        It has an edge: a view made under no_grad of what requires grad counts as requiring grad in
        some of PyTorch's operators only.
        """
        found = self.tensors(test)
        if edge:
            found = [name for name in found if passes(has_edge, self.value(name))]
        if not found:
            return None
        if self.chance(0.4):
            return found[-1]
        return self.rng.choice(found[-8:])

    # Chance

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def choice(self, options: Any) -> Any:
        return self.rng.choice(options)

    # Writing

    def fresh(self, prefix: str = "t") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def emit(self, source: str) -> bool:
        """Write a step and run it; False if it raised."""
        written = Step(source)
        self.steps.append(written)
        seen = self.run.step(written)
        self.seen.append(seen)
        self.keep(written.targets)
        return seen.error is None

    def keep(self, names: list[str]) -> None:
        for name in names:
            value = self.run.space.get(name)
            # Jacobians, tangents and the like are looked at and left alone.
            goes_on = name[0] not in "dr" and isinstance(value, self.run.lib.Tensor)
            if goes_on and value.numel() <= MOST_ELEMENTS:
                self.names = [n for n in self.names if n != name] + [name]

    def make(self, expression: str) -> str | None:
        """Write a step that names the value of an expression; None if it raised."""
        name = self.fresh()
        return name if self.emit(f"{name} = {expression}") else None

    def define(self, name: str, source: str) -> str:
        """Write a definition once in a program."""
        if name not in self.defined:
            self.defined.add(name)
            self.emit(source)
        return name

    def write(self, subjects: dict[str, float]) -> None:
        """One step of one of the subjects, weighed."""
        subject = self.rng.choices(list(subjects), list(subjects.values()))[0]
        kinds = [kind for kind in KINDS[subject] if self.allows(kind)]
        if not kinds:
            return
        kind = self.rng.choices(kinds, [kind.weight for kind in kinds])[0]
        try:
            kind.write(self)
        except RuntimeError:
            pass  # a view that must not be used refuses even questions about it

    def allows(self, kind: Kind) -> bool:
        return self.ours or not kind.ours

    def function(
        self,
        params: list[str],
        subjects: dict[str, float],
        length: int,
        begin: Callable | None = None,
        results: int = 0,
    ) -> str | None:
        """Define a function of one or more tensors, of which copies are tried; its name.

        `begin` writes the first step of its body. It returns a tensor that depends on its
        arguments, or as many tensors as `results` says, whatever they are.
        """
        name = self.fresh("f")
        body = Body(self, params)
        if begin is not None:
            begin(body)
        for _ in range(length):
            body.write(subjects)
        source = body.source(name, results)
        return name if source and self.emit(source) else None

    def program(self) -> Program:
        return Program(self.steps, self.ours)


class Body(Writer):
    """The body of a function; what raises is left out, and tensors outside are not changed."""

    def __init__(self, outer: Writer, params: list[str]) -> None:
        self.outer = outer
        self.rng = outer.rng
        self.ours = outer.ours
        self.lines: list[str] = []
        self.defined = outer.defined
        self.facts = {"inside": True}
        self.run = Run.__new__(Run)
        self.run.__dict__.update(outer.run.__dict__)
        self.run.space = dict(outer.run.space)
        self.params = []
        for given in params:
            param = self.fresh("x")
            self.params.append(param)
            value = outer.value(given).detach().clone()
            if value.is_floating_point() or value.is_complex():
                value = value.requires_grad_() * 1  # shows what depends on it
            self.run.space[param] = value
        self.names = list(self.params)
        self.captured = [name for name in outer.tensors() if name not in params]

    def fresh(self, prefix: str = "t") -> str:
        return self.outer.fresh(prefix)

    def define(self, name: str, source: str) -> str:
        self.outer.define(name, source)
        self.run.space[name] = self.outer.value(name)
        return name

    def allows(self, kind: Kind) -> bool:
        return kind.inside and super().allows(kind)

    def emit(self, source: str) -> bool:
        written = Step(source)
        try:
            exec(written.code, self.run.space)
        except Exception as problem:
            Failure(problem)
            return False
        self.lines.append(source)
        self.keep(written.targets)
        return True

    def source(self, name: str, results: int) -> str | None:
        """The whole function; None where nothing depends on its arguments."""
        depending = self.tensors(lambda t: t.requires_grad)
        if not depending:
            return None
        result = depending[-1]
        if results:
            others = [self.choice(self.tensors()) for _ in range(results - 1)]
            result = f"[{', '.join([result, *others])}]"
        lines = [*self.lines, f"return {result}"]
        inner = "\n".join("    " + line for text in lines for line in text.split("\n"))
        return f"def {name}({', '.join(self.params)}):\n{inner}"
