"""What `trace` returns: a graph, and how a call of the function relates to it.

Results that are inputs, or views of inputs or of each other, are not results of the graph. They are
made after it has run, by the same views, so that what they share is shared again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.function_node import Error
from ...autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ...backends.layout import copied_in_order
from ...core.arrays import LevelArray
from ...core.tensor import Tensor, bump_version, requires_of, set_fields
from ...core.trees.pytree import TreeSpec, tree_flatten, tree_unflatten
from ..interpret.program import run
from ..ir.graph import Graph
from .steps import Step

_SPENT = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed): the compiled function has called backward() itself. Specify "
    "retain_graph=True in that call to go through the graph again."
)
#: Stands in a list of results for one that is a tensor.
TENSOR = object()


class Recipe:
    """A result: an input or an output of the graph, or one step away from another recipe's.

    What was detached and changed afterwards has a `history`, which is that of an output. One that
    `is_spent` has a history that a backward inside the function has used up.
    """

    __slots__ = ("is_input", "index", "before", "step", "history", "is_spent", "strides")

    def __init__(
        self,
        is_input: bool = False,
        index: int = 0,
        before: Recipe | None = None,
        step: Step | None = None,
        is_spent: bool = False,
    ) -> None:
        self.is_spent = is_spent
        self.is_input = is_input
        self.index = index
        self.before = before
        self.step = step
        self.history: int | None = None
        self.strides: tuple[int, ...] | None = None  # of an output that is not in row-major order

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
                apart = type(found.array) is not LevelArray  # whose elements lie elsewhere
                if self.strides is not None and found.array.strides != self.strides and apart:
                    set_fields(found, array=copied_in_order(found.array, self.strides))
            if self.is_spent and is_grad_enabled():
                set_fields(found, node=Error(_SPENT, (found,)), needs_grad=True)
            made[self] = found
        return found


def _write(target: Tensor, value: Tensor) -> None:
    """Give a tensor the elements of another; most have no history that would have to know."""
    plain = target.node is None and target.view_meta is None and not target.inference
    if plain and not requires_of(value) and type(target.array) is type(value.array):
        target.array[...] = value.array
        bump_version(target, "copy_")
        return
    with set_grad_enabled(is_grad_enabled() and not (target.is_leaf and target.requires())):
        target.copy_(value)


class Traced:
    """A traced function: its graph, and what is around it."""

    #: The structures of the arguments and of the results, which `record` sets.
    in_tree: TreeSpec
    out_tree: TreeSpec

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.literals: list[Any] = []  # the results in their order, TENSOR for a tensor
        self.recipes: list[Recipe] = []  # one for each TENSOR
        self.captured: list[Tensor] = []
        self.identified: list[tuple[int, Tensor]] = []  # arguments that were captured as well
        self.mutated: list[int] = []
        #: Inputs that get a new `.grad`: the first results after those of the function.
        self.given_gradients: list[int] = []
        #: Puts the results after these where the function has put them.
        self.store: Callable[[list[Any]], None] | None = None
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
            _write(inputs[position], value)
        return self.result_of(inputs, outputs)

    def result_of(self, inputs: list[Tensor], outputs: tuple) -> Any:
        """The function's result from inputs and outputs of the graph; what the function stores,
        gradients among them, is stored."""
        made: dict[Recipe, Tensor] = {}
        supply = iter(self.recipes)
        leaves = [
            next(supply).follow(inputs, outputs, made) if literal is TENSOR else literal
            for literal in self.literals
        ]
        count, given = self.out_tree.num_leaves, len(self.given_gradients)
        for place, gradient in zip(self.given_gradients, leaves[count:], strict=False):
            inputs[place].grad = gradient
        if self.store is not None:
            self.store(leaves[count + given :])
        del leaves[count:]
        return leaves[0] if self.out_tree.is_leaf() else tree_unflatten(leaves, self.out_tree)

    def __str__(self) -> str:
        return str(self.graph)
