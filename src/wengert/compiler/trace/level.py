"""Tracing: a Python function run once on shapes, with every operator call noted in a graph.

The function runs at a transform level of its own (`dispatch/levels.py`), so autograd, vmap and
the rest work inside it. Its tensors carry a shape-only tensor and the graph's `Value` that stands
for them.

In-place operations become new values. What shares memory knows where it comes from: a change goes
back through these steps (`_write_view`), and others that share it are made again when they are next
read, which a count of the changes of that memory tells. A change that autograd does not record
leaves the gradient as it was (`_with_value`). Tensors that the function gets from elsewhere become
inputs after the function's own; tensors that it makes become constants. What it has changed of
either kind of input is an output at the end.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...autograd.function_node import Error, call_recorded
from ...backends.geometry import offset_of
from ...core.arrays import LevelArray
from ...core.scopes import Assigned
from ...core.state import ThreadState, thread_state
from ...core.tensor import Tensor, node_of, set_fields, wrap, wrap_as
from ...core.trees.pytree import TreeSpec, tree_flatten, tree_unflatten
from ...creation.drawing import DRAWS
from ...creation.factories import full
from ...dispatch.levels import Level, OutsideAllLevels, level_array
from ...dispatch.overlap import is_expanded
from ...tensor.pickling import user_attributes
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.layout import is_within, shape_only
from ..ir.nodes import Value, split_arguments
from ..ir.types import type_of, without_grad
from ..passes.barriers import STOP_GRADIENT, WITH_VALUE
from ..passes.raising import keep_what_may_raise
from ..passes.shapes import example_of
from . import draws
from .traced import TENSOR, Memory, Recipe, Step, Traced, single_step, text_of_step, way_back

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")

_BEYOND = (
    "backward() inside a traced function would go on to what has computed its inputs, which the "
    "graph does not know: use autograd.grad()"
)
_OUTSIDE = (
    "as_strided() cannot be traced where it leaves the tensor that it is called on: the graph "
    "knows nothing of the memory around. Call it on the whole"
)
_EXPANDED = (
    "changing a part of an expanded tensor, whose elements are one in memory, cannot be traced: "
    "the graph would change that part alone. Change a clone()"
)

__all__ = ["TraceError", "TraceLevel", "Traced", "trace"]


class TraceError(RuntimeError):
    """The function cannot be traced; the message shows the line of the program."""


class SharedMemory(TraceError):
    """The function uses that tensors share memory in a way which a graph cannot express."""


def trace(function: Callable, *examples: Any, **keywords: Any) -> Traced:
    """Record what `function` does with arguments like `examples`.

    Tensors among them are inputs; everything else is fixed at the value it has here.

    >>> import wengert
    >>> from wengert.compiler import trace
    >>> traced = trace(lambda x, n: (x * n).sin(), wengert.ones(2), 3)
    >>> [node.kind for node in traced.graph.nodes()]
    ['wengert::mul', 'wengert::sin']
    """
    return record(function, examples, keywords)


def record(
    function: Callable, args: tuple, kwargs: dict[str, Any], shared: bool = False
) -> Traced:
    """The same for arguments in a tuple and a dictionary.

    With `shared` the arguments are not examples but those of one call: a tensor that is there twice
    is one input, also if the function gets it in another way, and results that share memory with
    inputs or with each other are left to be made from these after the graph has run.
    """
    leaves, in_tree = tree_flatten((args, kwargs))
    level = TraceLevel()
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
        result = function(*args, **kwargs)
        _check_containers((args, kwargs), leaves, in_tree)
        out_leaves, out_tree = tree_flatten(result)
        traced = level.finished(out_leaves, shared)
    traced.in_tree, traced.out_tree = in_tree, out_tree
    return traced


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


class TraceLevel(Level):
    """The level of a function being traced: calls become nodes of `graph`."""

    kind = "trace"
    traces = True
    restores_grad_mode = True
    fixes_what_is_read = True

    __slots__ = (
        "graph", "inputs", "stand_ins", "originals", "input_values", "arguments", "met", "constant",
        "gradients", "memories", "offsets",
    )  # fmt: skip

    def __init__(self, graph: Graph | None = None) -> None:
        Level.__init__(self)
        self.graph = Graph() if graph is None else graph
        self.inputs: list[Tensor] = []
        self.stand_ins: dict[int, Tensor] = {}
        self.originals: list[Tensor] = []
        self.input_values: list[Value] = []
        self.arguments = 0
        self.met: set[int] = set()  # tensors that the function has got otherwise than as arguments
        self.gradients: dict[int, tuple[Tensor, Tensor | None]] = {}  # those that were read
        self.memories: dict[Memory, Tensor] = {}  # of the inputs, and whose they are
        self.offsets: dict[int, tuple[Tensor, int]] = {}  # where their memory begins, if read
        self.constant: set[Value] = set()  # values that no input's gradient can come from

    # Tensors of the level ------------------------------------------------------------------

    def add_input(self, example: Tensor, name: str | None = None) -> Tensor:
        """A further input of the graph, of the type of `example`; the tensor that stands for it."""
        if example.view_meta is not None and thread_state().recording():
            with self.below():  # a view of something changed gets its history where it belongs
                node_of(example)
        value = self.graph.add_input(type_of(example), name)
        stand_in = self.stand_in(value, shape_only(example.array), example)
        self.memories[stand_in.array.memory] = example
        set_fields(stand_in, needs_grad=example.requires())
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
            set_fields(t, node=None)
        self.inputs, self.stand_ins, self.originals = [], {}, []
        self.memories, self.offsets = {}, {}

    def stand_in(self, value: Value, array: Any, like: Tensor | None = None) -> Tensor:
        """A tensor of this level for a value of the graph, in inference mode or as `like` was."""
        inference = thread_state().inference if like is None else like.inference
        return wrap_as(self.array_of(value, wrap(array)), inference)

    def array_of(self, value: Value, shape: Tensor) -> LevelArray:
        array = level_array(shape, self)
        array.__dict__["symbol"] = value
        array.__dict__["memory"] = Memory()
        array.__dict__["seen_changes"] = 0  # how many of them `symbol` has
        array.__dict__["origin"] = None  # the tensor it shares memory with, and the step from it
        return array

    def lift(self, t: Tensor) -> Tensor:
        """A tensor from outside the function: an input if it was there before, else a constant."""
        known = self.stand_ins.get(id(t))
        if known is None:
            known = self.stand_ins[id(t)] = self.add_input(t)
        else:
            self.met.add(id(t))
        return known

    def inside(self, t: Tensor) -> Tensor:
        """A tensor as one of this level."""
        array = t.array
        return t if type(array) is LevelArray and array.level is self else self.lift(t)

    def made(self, t: Tensor) -> Tensor:
        """A tensor that the function has made itself: a constant of the graph, or of that of an
        enclosing trace."""
        if type(t.array) is LevelArray:
            value = self.symbol_of(self.lift(t))
        else:
            value = self.graph.constant(t)
        self.constant.add(value)
        return self.stand_in(value, shape_only(t.array), t)

    def made_like(
        self, make: Callable[..., Tensor], like: Tensor, shape: tuple[int, ...] | None = None
    ) -> Tensor:
        value = wrap(np.empty_like(like.array.view(np.ndarray)))
        with self.below():
            return self.made(make(value) if shape is None else make(value, shape))

    def seen(self, t: Any) -> Any:
        return self.stand_ins.get(id(t), t)

    def check_captured_target(self, name: str) -> None:
        """Nothing to refuse: a tensor from outside that is changed is an output of the graph."""

    def value_to_read(self, array: LevelArray, action: str) -> Tensor:
        raise self.unknown(action)

    def check_hook(self, action: str) -> None:
        raise self.refusal(
            f"{action} inside a traced function: a backward outside of it would not run the hook. "
            "Return the tensor and register the hook on the result"
        )

    def heading(self, array: LevelArray) -> str:
        return f"TracedTensor(lvl={self.number or -2}, value="

    def detached(self, t: Tensor) -> Tensor:
        """The same memory without history; a change of either is one of both."""
        t = self.inside(t)
        array: Any = t.array
        out = self.stand_in(self.cut_off(self.symbol_of(t)), array.value.array, t)
        set_fields(out, counter=t.shared_counter())
        self.relate(out.array, t, Step(None))
        return out

    def gradient_of(self, t: Tensor) -> Tensor | None:
        """The `.grad` of a tensor: for one from outside, what it has there."""
        known = self.stand_ins.get(id(t), t)
        is_made_here = type(known.array) is LevelArray and known.array.level is self
        if is_made_here and known.gradient is not None:
            return known.gradient
        original = t
        if t is known and is_made_here:
            place = next((i for i, s in enumerate(self.inputs) if s is known), None)
            if place is None:
                return None
            original = self.originals[place]
        self.gradients[id(original)] = (original, original.gradient)
        return original.gradient

    def offset_of(self, array: Any, begin: int) -> int:
        """Where a tensor begins in its memory: in that of an input, after where the input does."""
        example = self.memories.get(array.memory)
        if example is None:
            return begin
        start = offset_of(example.array)
        self.offsets[id(example)] = (example, start)
        return start + begin

    def data_of(self, t: Tensor) -> Tensor:
        """The same memory without history, with a version counter of its own."""
        t = self.inside(t)
        array: Any = t.array
        out = self.stand_in(self.cut_off(self.symbol_of(t)), array.value.array, t)
        self.relate(out.array, t, Step(None, tracked=False))
        return out

    def set_data(self, t: Tensor, value: Tensor) -> None:
        """Let a tensor have the memory of another one, and its own history."""
        t, value = self.inside(t), self.inside(value)
        if t.array.shape != value.array.shape and t.requires():
            raise self.refusal(
                "setting .data to a tensor of another shape cannot be traced: the gradient of "
                f"shape {tuple(value.array.shape)} would not fit what was computed, of shape "
                f"{tuple(t.array.shape)}"
            )
        symbol = self.symbol_of(value)
        if t.requires():
            symbol = self.revalued(self.symbol_of(t), symbol)
        else:
            symbol = self.cut_off(symbol)
        array: Any = value.array
        out = self.stand_in(symbol, array.value.array)
        self.relate(out.array, value, Step(None, tracked=False))
        set_fields(t, array=out.array)

    def refusal(self, message: str) -> TraceError:
        """An error that shows the line of the program."""
        return TraceError(f"{message}.\n  {where()}")

    def unknown(self, action: str) -> TraceError:
        """The refusal of a value that is known only when the graph runs."""
        return self.refusal(
            f"{action} needs the value of a tensor, which is not known while a function is traced: "
            "the graph must hold for all values. Use where() or the control flow of "
            "wengert.compiler (cond, while_loop, scan, map)"
        )

    # Calls -----------------------------------------------------------------------------------

    def call(self, state: ThreadState, operator: Any, args: tuple) -> Any:
        if getattr(operator, "mutated", ()):
            return self.write_custom(operator, args)
        if operator.mutates:
            self.write(operator, args)
            return None
        out = self.node(operator, tuple([self.symbol_or_literal(a) for a in args]), args)
        if getattr(operator, "is_view", False):
            recorded = state.grad_enabled
            arrays = out if isinstance(out, (tuple, list)) else (out,)
            for i, array in enumerate(arrays):
                part = None if array is out else i
                self.relate(array, args[0], Step(operator, args[1:], part, recorded))
        return out

    def node(self, operator: Any, symbols: tuple, args: tuple) -> Any:
        """Note one call; what it returns, as arrays of this level."""
        if operator.name == "_as_strided" and not is_within(*args):
            raise SharedMemory(f"{_OUTSIDE}.\n  {where()}")
        shapes = tuple([self.shape_of(a) for a in args])
        try:
            with OutsideAllLevels():
                out = operator.call(shapes)
        except NotImplementedError as error:
            text = str(error).rstrip(".")
            raise self.refusal(text if "(): " in text else f"{operator.name}(): {text}") from None
        outs = out if isinstance(out, (tuple, list)) else (out,)
        if not all(isinstance(value, Tensor) for value in outs):
            raise TraceError(
                f"{operator.name}() returns something else than tensors or one list of them, which "
                f"a graph cannot hold; {where()}"
            )
        arguments, inputs = split_arguments(symbols)
        node = self.graph.create(
            prim.kind_of(operator),
            inputs,
            [without_grad(type_of(o)) for o in outs],
            arguments=arguments,
        )
        node.source = where()
        self.graph.insert_node(node)
        values = list(node.outputs)
        if all(value in self.constant for value in inputs):
            self.constant.update(values)
        elif not thread_state().grad_enabled:
            values = [self.cut_off(value) for value in values]
        arrays = [self.array_of(v, o) for v, o in zip(values, outs, strict=True)]
        return arrays[0] if isinstance(out, Tensor) else type(out)(arrays)

    def insert(self, kind: str, like: Value, *args: Any) -> Value:
        """Note a call of which one knows that its result is of the type of `like`."""
        value: Value = self.graph.insert(kind, *args)
        value.type = without_grad(like.type)
        return value

    def cut_off(self, value: Value) -> Value:
        """What stands for a value that was computed without recording: no gradient passes it."""
        if value in self.constant:
            return value
        barrier = self.insert(STOP_GRADIENT, value, value)
        self.constant.add(barrier)
        return barrier

    def revalued(self, old: Value, new: Value) -> Value:
        """A new value with the gradient of the old one, for changes that are not recorded."""
        if old in self.constant:
            return self.cut_off(new)
        return self.insert(WITH_VALUE, old, old, new)

    def symbol_or_literal(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.symbol_of(value)
        if type(value) is list:
            return [self.symbol_or_literal(item) for item in value]
        return value

    def shape_of(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.array.value
        if type(value) is list:
            return [self.shape_of(item) for item in value]
        return value

    def draw(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Tensor:
        """Note a call that draws random numbers; the generator stays where it is."""
        positions = tuple([i for i, a in enumerate(args) if isinstance(a, Tensor)])
        if any(isinstance(value, Tensor) for value in kwargs.values()):
            raise self.refusal(f"{name}(): give tensors as positional arguments")
        inputs = [self.inside(args[i]) for i in positions]
        examples = list(args)
        drawn_from = draws.generators_among((*args, *kwargs.values()))
        with OutsideAllLevels(), draws.drawing_again(draws.states_of(drawn_from)):
            for position in positions:
                examples[position] = full(args[position].shape, 0.5, dtype=args[position].dtype)
            example = DRAWS[name](*examples, **kwargs)
        node = self.graph.create(
            prim.RANDOM,
            [self.symbol_of(t) for t in inputs],
            [without_grad(type_of(example))],
            attributes={
                "function": name,
                "args": tuple([None if i in positions else a for i, a in enumerate(args)]),
                "tensors": positions,
                "kwargs": tuple(sorted(kwargs.items())),
            },
        )
        node.source = where()
        self.graph.insert_node(node)
        return self.stand_in(node.output, shape_only(example.array))

    def call_graph(self, graph: Graph, inputs: tuple, examples: Sequence[Any] = ()) -> tuple:
        """Insert a graph, called with tensors of this level; tensors for its outputs, the first of
        which lie in memory as the examples do."""
        outputs = self.graph.insert_graph(graph, [self.symbol_of(self.inside(t)) for t in inputs])
        made: list[Tensor | None] = []
        for i, value in enumerate(outputs):
            if value.node.kind == prim.AUTOGRAD_ZERO:
                made.append(None)
                continue
            if value.node.source is None:
                value.node.source = where()
            example = examples[i] if i < len(examples) else example_of(value.type).array
            made.append(self.stand_in(value, example))
        return tuple(made)

    def call_function(self, function: Any, state: Any, args: tuple, setup: Any) -> Any:
        """A call of an autograd Function at this level."""
        inputs = tuple([self.inside(a) if isinstance(a, Tensor) else a for a in args])
        recorded = any(isinstance(a, Tensor) and a.requires() for a in inputs)
        if recorded and state.recording() and not getattr(function, "traces_itself", False):
            from .functions import call_traced

            return call_traced(function, inputs, setup)
        outputs = call_recorded(function, state, inputs, setup, function.forward)
        if not state.grad_enabled:
            for t in outputs if isinstance(outputs, tuple) else (outputs,):
                if isinstance(t, Tensor):
                    t.array.__dict__["symbol"] = self.cut_off(t.array.__dict__["symbol"])
        return outputs

    # Views and changes in place ------------------------------------------------------------------

    def relate(self, array: Any, source: Tensor, step: Step) -> None:
        """Note that an array shares the memory of a tensor, which may get another array later."""
        before = wrap(source.array)
        set_fields(before, counter=source.shared_counter())
        array.__dict__["origin"] = (before, step)
        memory = array.__dict__["memory"] = source.array.memory
        array.__dict__["seen_changes"] = memory.changes

    def symbol_of(self, t: Tensor) -> Value:
        """The value that a tensor has now; what shares memory that was changed is made again."""
        array: Any = t.array
        symbol: Value = array.symbol
        changes = array.memory.changes
        if array.seen_changes == changes or array.origin is None:
            return symbol
        source, step = array.origin
        now = self.step(self.symbol_of(source), step, symbol)
        if step.operator is None:
            now = self.revalued(symbol, now)
        elif not step.recorded:
            now = self.cut_off(now)
        array.__dict__["symbol"] = now
        array.__dict__["seen_changes"] = changes
        return now

    def step(self, symbol: Value, step: Step, like: Value) -> Value:
        """A step from one value to the next, the type of which is that of `like`."""
        if step.operator is None:
            return symbol
        name, args = single_step(step, symbol.type.shape)  # type: ignore[attr-defined]
        out = self.insert(prim.OPERATOR + name, like, symbol, *args)
        if symbol in self.constant:
            self.constant.add(out)
        return out

    def write(self, operator: Any, args: tuple) -> None:
        """An in-place operator as its functional form; the target stands for the new value."""
        target = args[0]
        recorded = thread_state().grad_enabled
        symbols = tuple([self.symbol_or_literal(a) for a in args])
        result = self.node(operator.functional, symbols, args)
        self.assign(target, self.fitted(result, target.array, operator), recorded)

    def write_custom(self, operator: Any, args: tuple) -> Any:
        """A custom operator that mutates as its functional form, see `library.functional`."""
        from ...library.functional import functional_form

        form = functional_form(operator)
        recorded = thread_state().grad_enabled
        symbols = tuple([self.symbol_or_literal(a) for a in args])
        out = self.node(form, symbols, args) if form.schema.returns else ()
        arrays = out if isinstance(out, tuple) else (out,)
        targets = [args[i] for i in operator.mutated if args[i] is not None]
        count = len(arrays) - len(targets)
        for target, array in zip(targets, arrays[count:], strict=True):
            self.assign(target, self.fitted(array, target.array, operator), recorded)
        return form.results_of(args, arrays[:count])

    def fitted(self, result: LevelArray, target: LevelArray, operator: Any) -> Value:
        """The new value in the shape and dtype of the tensor that it is written to."""
        if result.shape != target.shape:
            raise RuntimeError(
                f"{operator.name}(): output with shape {list(target.shape)} doesn't match the "
                f"broadcast shape {list(result.shape)}"
            )
        symbol: Value = result.__dict__["symbol"]
        if result.dtype != target.dtype:
            from ...core.dtypes import from_numpy

            old: Value = target.__dict__["symbol"]
            symbol = self.insert("wengert::_to_copy", old, symbol, from_numpy(target.dtype))
        return symbol

    def assign(self, target: Tensor, symbol: Value, recorded: bool) -> None:
        """Let a tensor, and all that it shares memory with, stand for a new value."""
        changed: list[Any] = []
        self._refuse_expanded(target)
        self._store(target, symbol, recorded, changed)
        memory = target.array.memory
        memory.changes += 1
        for array in changed:
            array.__dict__["seen_changes"] = memory.changes

    def _store(self, target: Tensor, symbol: Value, recorded: bool, changed: list[Any]) -> None:
        """The same for a tensor and what it comes from; `changed` takes their arrays."""
        array: Any = target.array
        value = symbol if recorded else self.revalued(self.symbol_of(target), symbol)
        source, steps = way_back(target)
        if steps:
            self._refuse_expanded(source)
            old = self.symbol_of(source)
            texts = tuple([text_of_step(step, t.array) for t, step in steps])
            whole = self.insert("wengert::_write_view", old, old, symbol, texts)
            self._store(source, whole, recorded, changed)
        elif array.origin is not None:
            source, step = array.origin
            whole = symbol
            if step.operator is not None:
                old, text = self.symbol_of(source), text_of_step(step, source.array)
                whole = self.insert("wengert::_write_view", old, old, symbol, (text,))
            self._store(source, whole, False, changed)
        array.__dict__["symbol"] = value
        changed.append(array)

    def _refuse_expanded(self, t: Tensor) -> None:
        if is_expanded(t.array):
            raise SharedMemory(f"{_EXPANDED}.\n  {where()}")

    # The end ---------------------------------------------------------------------------------
    def finished(self, results: list, shared: bool = False) -> Traced:
        """Close the graph with the function's results and the inputs that it has changed."""
        traced = Traced(self.graph)
        known: dict[int, Recipe] = {}
        for leaf in results:
            if not isinstance(leaf, Tensor):
                traced.literals.append(leaf)
                continue
            traced.literals.append(TENSOR)
            t = self.inside(leaf)
            if shared:
                traced.recipes.append(self.recipe(t, known))
            else:
                traced.recipes.append(Recipe(False, self.graph.register_output(self.symbol_of(t))))
        for position, (t, value) in enumerate(zip(self.inputs, self.input_values, strict=True)):
            original = self.originals[position]
            if t.gradient is not None:
                raise TraceError(
                    f"backward() inside the function accumulates into .grad of input {position} of "
                    "the graph, which the graph would not do again: use autograd.grad()"
                )
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

    def recipe(self, t: Tensor, known: dict[int, Recipe]) -> Recipe:
        """How a tensor is made from inputs and outputs of the graph."""
        array: Any = t.array
        found = known.get(id(array))
        if found is None:
            place = next((i for i, x in enumerate(self.inputs) if x.array is array), None)
            origin = array.origin
            if place is not None:
                found = Recipe(True, place)
            elif origin is not None:
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


def where() -> str:
    """The line of the program that is running, outside of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return ""
    name, line = frame.f_code.co_filename, frame.f_lineno
    return f"{name}:{line}: {linecache.getline(name, line).strip()}"
