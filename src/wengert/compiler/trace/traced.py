"""What `trace` returns: a graph, and how a call of the function relates to it.

Results that are inputs, or views of inputs or of each other, are not results of the graph. They are
made after it has run, by the same views, so that what they share is shared again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ...core.tensor import Tensor
from ...core.trees.pytree import tree_flatten, tree_unflatten
from ...operators.write_view import step_text
from ..ir.graph import Graph
from ..run.interpreter import function_of, run

#: Stands in a list of results for one that is a tensor.
TENSOR = object()


class Memory:
    """What tensors of a trace share that would share memory: how often it was changed.

    The version counter does not tell, because `.data` has one of its own.
    """

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes = 0


class Step(NamedTuple):
    """One step from a tensor to one that shares its memory: the call of a view operator (`part` is
    the place among several results), or where there is no operator `detach`, or `.data` if changes
    are not tracked."""

    operator: Any
    args: tuple = ()
    part: int | None = None
    recorded: bool = True
    tracked: bool = True

    def take(self, t: Tensor) -> Tensor:
        """Go this step from a tensor."""
        if self.operator is None:
            return t.detach() if self.tracked else t.data
        with set_grad_enabled(self.recorded and is_grad_enabled()):
            made = function_of(self.operator)((t, *self.args))
        return made if self.part is None else made[self.part]


def way_back(t: Tensor) -> tuple[Tensor, list[tuple[Tensor, Step]]]:
    """From a view to what it is a view of, as far as the steps were recorded; the steps from there,
    each with the tensor that it starts from."""
    steps: list[tuple[Tensor, Step]] = []
    while (origin := t.array.__dict__["origin"]) is not None:
        source, step = origin
        if step.operator is None or not step.recorded:
            break
        steps.append((source, step))
        t = source
    return t, steps[::-1]


def text_of_step(step: Step, array: Any) -> str:
    """A step as `_write_view` reads it."""
    return step_text(*single_step(step, array.shape))


def single_step(step: Step, shape: tuple[int, ...]) -> tuple[str, tuple]:
    """The operator that makes one view only, by name, and its arguments."""
    name, args, part = step.operator.name, step.args, step.part
    if part is None:
        return name, args
    sizes, dim = args[0], args[-1] % len(shape)
    if name == "unbind":
        return "select", (dim, part)
    if name == "split":
        sizes = (sizes,) * (part + 1)
    start = sum(sizes[:part])
    return "slice", (dim, start, min(start + sizes[part], shape[dim]), 1)


class Recipe:
    """A result: an input or an output of the graph, or one step away from another recipe's.

    What was detached and changed afterwards has a `history`, which is that of an output.
    """

    __slots__ = ("is_input", "index", "before", "step", "history")

    def __init__(
        self,
        is_input: bool = False,
        index: int = 0,
        before: Recipe | None = None,
        step: Step | None = None,
    ) -> None:
        self.is_input = is_input
        self.index = index
        self.before = before
        self.step = step
        self.history: int | None = None

    def follow(self, inputs: list[Tensor], outputs: tuple, made: dict[Recipe, Tensor]) -> Tensor:
        """The tensor; a recipe that is there twice stands for one tensor."""
        found = made.get(self)
        if found is None:
            if self.before is not None and self.step is not None:
                found = self.step.take(self.before.follow(inputs, outputs, made))
                if self.history is not None:
                    found.copy_(outputs[self.history])
            else:
                found = (inputs if self.is_input else outputs)[self.index]
            made[self] = found
        return found


class Traced:
    """A traced function: its graph, and what is around it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.in_tree: Any = None
        self.out_tree: Any = None
        self.literals: list[Any] = []  # the results in their order, TENSOR for a tensor
        self.recipes: list[Recipe] = []  # one for each TENSOR
        self.captured: list[Tensor] = []
        self.identified: list[tuple[int, Tensor]] = []  # arguments that were captured as well
        self.mutated: list[int] = []
        #: Where `.grad` was read: the number of the argument, or None, the tensor, what it was.
        self.gradients: list[tuple[int | None, Tensor, Tensor | None]] = []

        #: Where the memory of an input begins, if that was asked for: as with `gradients`.
        self.offsets: list[tuple[int | None, Tensor, int]] = []

    @property
    def returned(self) -> int:
        """How many of the graph's outputs are for results; mutated inputs come after them."""
        return len(self.graph.outputs) - len(self.mutated)

    def inputs_of(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """The graph's inputs for a call with these arguments."""
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                f"traced with arguments of the structure {self.in_tree}, called with {tree}"
            )
        return [*[leaf for leaf in leaves if isinstance(leaf, Tensor)], *self.captured]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on the interpreter as the function, changes of inputs included."""
        inputs = self.inputs_of(*args, **kwargs)
        return self.finish(inputs, run(self.graph, *inputs))

    def finish(self, inputs: list[Tensor], outputs: tuple) -> Any:
        """Change the inputs that the function changes; its result, from the graph's outputs."""
        for position, value in zip(self.mutated, outputs[self.returned :], strict=True):
            target = inputs[position]
            with set_grad_enabled(is_grad_enabled() and not (target.is_leaf and target.requires())):
                target.copy_(value)
        return self.result_of(inputs, outputs)

    def result_of(self, inputs: list[Tensor], outputs: tuple) -> Any:
        """The function's result from inputs and outputs of the graph."""
        made: dict[Recipe, Tensor] = {}
        supply = iter(self.recipes)
        leaves = [
            next(supply).follow(inputs, outputs, made) if literal is TENSOR else literal
            for literal in self.literals
        ]
        return leaves[0] if self.out_tree.is_leaf() else tree_unflatten(leaves, self.out_tree)

    def __str__(self) -> str:
        return str(self.graph)
