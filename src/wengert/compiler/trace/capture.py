"""Tracing a whole function: its inputs, what it gets from elsewhere, results, changed inputs.

Tensors that the function gets from elsewhere become inputs after the function's own; tensors that
it makes become constants. What it has changed of either kind of input is an output at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...autograd.function_node import Error
from ...backends.geometry import offset_of
from ...core.arrays import LevelArray
from ...core.scopes import Assigned
from ...core.state import thread_state
from ...core.tensor import Tensor, node_of, set_fields
from ...core.trees.pytree import TreeSpec, tree_flatten, tree_unflatten
from ...dispatch.levels import ascend, descend
from ...tape.node import Node as TapeNode
from ...tape.saved import Freed
from ...tensor.pickling import user_attributes
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.layout import shape_only
from ..ir.nodes import Value
from ..ir.types import type_of
from ..passes.raising import keep_what_may_raise
from .level import TraceLevel
from .refusals import SharedMemory, TraceError
from .steps import Memory
from .traced import TENSOR, Recipe, Traced

_BEYOND = (
    "backward() inside a traced function would go on to what has computed its inputs, which the "
    "graph does not know: use autograd.grad()"
)


def record(
    level: CaptureLevel,
    function: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    shared: bool = False,
    stored: Callable[[], list[Any]] | None = None,
) -> Traced:
    """Trace a function at a level that is made for it.

    `stored` returns further values that are to be results: what the function has put elsewhere.

    With `shared` the arguments are not examples but those of one call: a tensor that is there twice
    is one input, also if the function gets it in another way, and results that share memory with
    inputs or with each other are left to be made from these after the graph has run.
    """
    leaves, in_tree = tree_flatten((args, kwargs))
    names = _parameter_names(function, args, kwargs)
    with level.released(), level.entered(), _without_hooks():
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                known = level.stand_ins.get(id(leaf))
                leaves[i] = level.add_input(leaf, names.get(id(leaf))) if known is None else known
                if shared:
                    level.stand_ins[id(leaf)] = leaves[i]
        level.arguments = len(level.inputs)
        args, kwargs = tree_unflatten(leaves, in_tree)
        modes = _modes()
        result = function(*args, **kwargs)
        if _modes() != modes:
            raise TraceError(
                "the function leaves another grad mode behind, which a graph would not: use a with "
                "statement"
            )
        _check_containers((args, kwargs), leaves, in_tree)
        out_leaves, out_tree = tree_flatten(result)
        gradients = level.new_gradients()
        others = [] if stored is None else stored()
        out_leaves = [*out_leaves, *[gradient for _, gradient in gradients], *others]
        traced = level.finished(out_leaves, shared)
        traced.given_gradients = [place for place, _ in gradients]
    traced.in_tree, traced.out_tree = in_tree, out_tree
    return traced


def _renew(view: Tensor) -> None:
    """Give a view of something changed its history at the level where it belongs.

    That may be further out than the next one: a block is traced inside the trace of a function.
    """
    state, array = thread_state(), view.array
    saved = descend(state, array.level.number if type(array) is LevelArray else 0)
    try:
        node_of(view)
    finally:
        ascend(state, saved)


def _strides(array: Any) -> tuple[int, ...] | None:
    """The strides of an array, None if it is in row-major order."""
    return None if array.flags.c_contiguous else array.strides


def _modes() -> tuple[bool, bool]:
    state = thread_state()
    return state.grad_enabled, state.inference


def _check_containers(arguments: Any, leaves: list, tree: TreeSpec) -> None:
    """Refuse a function that changes its lists and dictionaries, which no graph would do again."""
    now, its_tree = tree_flatten(arguments)
    if its_tree != tree or any(a is not b for a, b in zip(now, leaves, strict=True)):
        raise TraceError(
            "the function changes a list, dictionary or other container among its arguments. The "
            "graph would not: return the new values instead"
        )


def _without_hooks() -> Assigned:
    """Saved-tensor hooks are for the values of a program, not for its shapes."""
    return Assigned(thread_state(), saved_hooks=[])


def _parameter_names(function: Callable, examples: tuple, keywords: dict) -> dict[int, str]:
    """Names for the inputs: the parameters that tensors are given for directly."""
    code = getattr(function, "__code__", None)
    names = {id(value): name for name, value in keywords.items()}
    if code is not None:
        for name, value in zip(code.co_varnames[: code.co_argcount], examples, strict=False):
            names.setdefault(id(value), name)
    return names


class CaptureLevel(TraceLevel):
    """The level of one function, whose inputs it knows: arguments, and what is captured."""

    __slots__ = (
        "inputs", "stand_ins", "originals", "input_values", "arguments", "met", "gradients",
        "replaced", "memories", "offsets", "roots",
    )  # fmt: skip

    def __init__(self, graph: Graph | None = None) -> None:
        TraceLevel.__init__(self, graph)
        self.inputs: list[Tensor] = []
        self.stand_ins: dict[int, Tensor] = {}
        self.originals: list[Tensor] = []
        self.input_values: list[Value] = []
        self.arguments = 0
        self.met: set[int] = set()  # tensors that the function has got otherwise than as arguments
        self.gradients: dict[int, tuple[Tensor, Tensor | None]] = {}  # those that were read
        self.replaced: set[int] = set()  # inputs whose gradients were assigned before being read
        self.memories: dict[Memory, Tensor] = {}  # of the inputs, and whose they are
        self.offsets: dict[int, tuple[Tensor, int]] = {}  # where their memory begins, if read
        self.roots: Counter[int] = Counter()  # arrays whose memory results share, by identity

    def add_input(self, example: Tensor, name: str | None = None) -> Tensor:
        """A further input of the graph, of the type of `example`; the tensor that stands for it."""
        if example.view_meta is not None and thread_state().recording():
            _renew(example)
        value = self.graph.add_input(type_of(example), name)
        stand_in = self.stand_in(value, shape_only(example.array), example)
        self.memories[stand_in.array.memory] = example
        set_fields(stand_in, needs_grad=example.requires(), gradient=example.gradient)
        if stand_in.needs_grad and example.node is not None:
            set_fields(stand_in, node=Error(_BEYOND, (stand_in,)))
        for key, given in user_attributes(example).items():
            setattr(stand_in, key, given)
        self.originals.append(example)
        self.inputs.append(stand_in)
        self.input_values.append(value)
        return stand_in

    @contextmanager
    def released(self) -> Iterator[None]:
        """Afterwards let go of the tensors: they refer to the level, unseen by the collector."""
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        for t in self.inputs:
            set_fields(t, node=None, gradient=None)
        self.inputs, self.stand_ins, self.originals = [], {}, []
        self.memories, self.offsets = {}, {}

    def lift(self, t: Tensor) -> Tensor:
        """A tensor from outside the function: an input if it was there before, else a constant."""
        known = self.stand_ins.get(id(t))
        if known is None:
            known = self.stand_ins[id(t)] = self.add_input(t)
        else:
            self.met.add(id(t))
        return known

    def seen(self, t: Any) -> Any:
        return self.stand_ins.get(id(t), t)

    def gradient_of(self, t: Tensor) -> Tensor | None:
        """The `.grad` of a tensor: if it is from outside, what it has there or was given since."""
        known = self.stand_ins.get(id(t), t)
        place = self._place(known)
        if place is not None:
            self._note_gradient(place)
        elif t is known and not self._is_made_here(t):
            self.gradients[id(t)] = (t, t.gradient)
        return known.gradient

    def set_gradient(self, t: Tensor, value: Tensor | None) -> None:
        """Give a tensor another `.grad`, or none, for the rest of the trace."""
        known = t if self._is_made_here(t) else self.lift(t)
        place = self._place(known)
        if place is not None:
            original = self.originals[place]
            if known.gradient is original.gradient and id(original) not in self.gradients:
                self.replaced.add(place)
        set_fields(known, gradient=value)

    def _note_gradient(self, place: int) -> None:
        original = self.originals[place]
        if place not in self.replaced:
            self.gradients[id(original)] = (original, original.gradient)

    def _place(self, stand_in: Tensor) -> int | None:
        return next((i for i, t in enumerate(self.inputs) if t is stand_in), None)

    def _is_made_here(self, t: Tensor) -> bool:
        return type(t.array) is LevelArray and t.array.level is self

    def new_gradients(self) -> list[tuple[int, Tensor | None]]:
        """Inputs that have another `.grad` now, by number; what else a gradient was used for is
        noted."""
        found = []
        for place, (t, original) in enumerate(zip(self.inputs, self.originals, strict=True)):
            if t.gradient is not original.gradient:
                cold = original.cold
                if cold is not None and (cold.hooks or cold.post_hooks):
                    raise TraceError(
                        f"input {place} of the graph gets a gradient inside the function and has "
                        "hooks, which the graph would not call"
                    )
                self._note_gradient(place)
                found.append((place, t.gradient))
            elif t.gradient is not None and id(t.gradient) in self.stand_ins:
                self._note_gradient(place)
        return found

    def offset_of(self, array: Any, begin: int) -> int:
        """Where a tensor begins in its memory: in that of an input, after where the input does."""
        example = self.memories.get(array.memory)
        if example is None:
            return begin
        start = offset_of(example.array)
        self.offsets[id(example)] = (example, start)
        return start + begin

    def finished(self, results: list, shared: bool = False) -> Traced:
        """Close the graph with the function's results and the inputs that it has changed."""
        traced = Traced(self.graph)
        known: dict[int, Recipe] = {}
        self.roots = Counter([id(self._root(t)) for t in results if isinstance(t, Tensor)])
        for leaf in results:
            if not isinstance(leaf, Tensor):
                traced.literals.append(leaf)
                continue
            traced.literals.append(TENSOR)
            t = self.inside(leaf)
            if shared:
                self._refuse_leaves_made_here(t)
            if shared and self._is_spent_result(t, known):
                symbol = self.cut_off(self.symbol_of(t))
                found = Recipe(False, self.graph.register_output(symbol), is_spent=True)
                found.strides = _strides(t.array)
                known[id(t.array)] = found
            if shared:
                traced.recipes.append(self.recipe(t, known))
            else:
                traced.recipes.append(Recipe(False, self.graph.register_output(self.symbol_of(t))))
        for position, (t, value) in enumerate(zip(self.inputs, self.input_values, strict=True)):
            original = self.originals[position]
            if (t.array.shape, t.array.strides) != (original.array.shape, original.array.strides):
                raise TraceError(
                    f"input {position} of the graph gets another shape or other strides in place, "
                    "which its caller would not see: change a view of it"
                )
            now = self.symbol_of(t)
            if now is not value:
                self._refuse_shared_memory(position)
                traced.mutated.append(position)
                if original.is_leaf and original.requires():
                    now = self.cut_off(now)  # the change cannot be recorded
                self.graph.register_output(now)
        keep_what_may_raise(self.graph)
        traced.captured = self.originals[self.arguments :]
        given = self.originals[: self.arguments]
        places = {id(t): i for i, t in enumerate(given)}
        traced.gradients = [
            (places.get(id(t)), t, gradient) for t, gradient in self.gradients.values()
        ]
        traced.offsets = [(places.get(id(t)), t, begin) for t, begin in self.offsets.values()]
        traced.identified = [(i, t) for i, t in enumerate(given) if id(t) in self.met]
        return traced

    def _is_spent_result(self, t: Tensor, known: dict[int, Recipe]) -> bool:
        """Whether a tensor was computed here, and a backward here has freed what its own needs."""
        array: Any = t.array
        if array.origin is not None or id(array) in known or self._place(t) is not None:
            return False
        pending, seen = [t.node], set[int]()
        while pending:
            node = pending.pop()
            if isinstance(node, TapeNode) and id(node) not in seen:
                seen.add(id(node))
                if type(node.saved) is Freed:
                    return True
                pending.extend(node.next_nodes)
        return False

    def _refuse_leaves_made_here(self, t: Tensor) -> None:
        """Refuse a result that is recorded because of no input: the graph knows no other leaves."""
        if not t.requires():
            return
        inputs = {id(each) for each in self.inputs}
        pending, seen, is_of_another = [t if t.node is None else t.node], set[int](), False
        while pending:
            place = pending.pop()
            if id(place) in inputs or isinstance(place, Error):
                return
            if isinstance(place, Tensor):
                is_of_another = True
            elif isinstance(place, TapeNode) and id(place) not in seen:
                seen.add(id(place))
                pending.extend(place.next_nodes)
        if is_of_another:  # and not merely cut off, as by a backward that has ended
            raise TraceError(
                "a result requires grad because a tensor that is made inside the function does: "
                "call requires_grad_() outside of it"
            )

    def _root(self, t: Tensor) -> Any:
        """The array whose memory a tensor shares."""
        array: Any = self.inside(t).array
        while array.origin is not None:
            array = array.origin[0].array
        return array

    def _is_detached_alone(self, array: Any) -> bool:
        """Whether an array is something that was computed here, detached, and the only result in
        its memory: then it need not share that with anything."""
        if array.origin is None or array.origin[1].operator is not None:
            return False
        root: Any = array
        while root.origin is not None:
            if root.origin[1].operator is not None:
                return False
            root = root.origin[0].array
        return self.roots[id(root)] == 1 and all(x.array is not root for x in self.inputs)

    def recipe(self, t: Tensor, known: dict[int, Recipe]) -> Recipe:
        """How a tensor is made from inputs and outputs of the graph."""
        array: Any = t.array
        found = known.get(id(array))
        if found is None:
            place = next((i for i, x in enumerate(self.inputs) if x.array is array), None)
            origin = array.origin
            if place is not None:
                found = Recipe(True, place)
            elif origin is not None and not self._is_detached_alone(array):
                source, step = origin
                found = Recipe(before=self.recipe(source, known), step=step)
                symbol = self.symbol_of(t)
                if step.operator is None and symbol not in self.constant:
                    found.history = self.graph.register_output(symbol)
            else:
                value = self.symbol_of(t)
                if value.node.kind == prim.CONSTANT:  # each call returns a tensor of its own
                    value = self.insert("wengert::clone", value, value)
                found = Recipe(False, self.graph.register_output(value))
                found.strides = _strides(array)
            known[id(array)] = found
        return found

    def _refuse_shared_memory(self, position: int) -> None:
        """A change of one input must not be a change of another one that the graph cannot see."""
        changed = self.originals[position].array
        for i, other in enumerate(self.originals):
            if i != position and np.may_share_memory(changed, other.array):
                raise SharedMemory(
                    f"input {position} of the graph is changed in place and shares its memory with "
                    f"input {i}: pass one of them, and make the other from it inside the function"
                )
