"""Tracing: operators that a Python function calls are noted in a graph instead of being run.

The function runs at a transform level of its own (`dispatch/levels.py`), so autograd, vmap and
the rest work inside it. Its tensors carry a shape-only tensor and the graph's `Value` that stands
for them.

In-place operations become new values. What shares memory knows where it comes from: a change goes
back through these steps (`_write_view`), and others that share it are made again when they are next
read, which a count of the changes of that memory tells. A change that autograd does not record
leaves the gradient as it was (`_with_value`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.function_call import call_recorded
from ...backends.placement import of_array, transfer
from ...core.arrays import LevelArray
from ...core.dtypes import from_numpy
from ...core.registry import operator_named
from ...core.state import ThreadState, thread_state
from ...core.tensor import Tensor, set_fields, wrap, wrap_as
from ...creation.drawing import DRAWS
from ...creation.factories import full
from ...dispatch.levels import Level, OutsideAllLevels, level_array
from ...dispatch.overlap import is_dense, may_overlap
from ..interpret import draws
from ..interpret.control_flow import ControlFlowLevel
from ..ir import primitives as prim
from ..ir.graph import Graph
from ..ir.layout import is_within, shape_only
from ..ir.nodes import Value, split_arguments
from ..ir.types import type_of, without_grad
from ..passes.barriers import STOP_GRADIENT, WITH_VALUE
from ..passes.shapes import example_of
from .floats import TracedFloat, without_floats
from .refusals import SharedMemory, TraceError, where
from .shapes import KnownShapes
from .steps import Memory, Step, single_step, text_of_step, way_back

_OUTSIDE = (
    "as_strided() cannot be traced where it leaves the tensor that it is called on: the graph "
    "knows nothing of the memory around. Call it on the whole"
)
#: The operator of a view as elements of another type.
_OTHER_DTYPE = "view.dtype"
_OVERLAPPING = (
    "changing a part of an expanded tensor, or of another one in which elements are one in memory, "
    "cannot be traced: the graph would change that part alone. Change a clone()"
)
_GAPS = (
    "as_strided() of a view with gaps cannot be traced where the memory is changed: the graph "
    "knows nothing of what lies in the gaps. Call it on the whole"
)


class TraceLevel(ControlFlowLevel):
    """A level whose calls become nodes of `graph`."""

    kind = "trace"
    traces = True
    restores_grad_mode = True
    fixes_what_is_read = True

    __slots__ = ("graph", "constant", "shapes")

    def __init__(self, graph: Graph | None = None) -> None:
        Level.__init__(self)
        self.shapes = KnownShapes()
        self.graph = Graph() if graph is None else graph
        self.constant: set[Value] = set()  # values that no input's gradient can come from

    # Tensors of the level ------------------------------------------------------------------

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
        empty = np.empty_like(like.array.view(np.ndarray))  # a LevelArray is one of NumPy's
        value = wrap(transfer(empty, of_array(like.array)))
        with self.below():
            return self.made(make(value) if shape is None else make(value, shape))

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
        raise self.unknown("Printing a tensor")

    def detached(self, t: Tensor) -> Tensor:
        """A tensor that shares memory but no history; a change of either is one of both."""
        t = self.inside(t)
        array: Any = t.array
        out = self.stand_in(self.cut_off(self.symbol_of(t)), array.value.array, t)
        set_fields(out, counter=t.shared_counter())
        self.relate(out.array, t, Step(None))
        return out

    def data_of(self, t: Tensor) -> Tensor:
        """A tensor that shares memory but neither history nor version counter."""
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
        if TracedFloat in map(type, args):
            args = without_floats(operator, args, operator_named("mul"))
            args = tuple([self.inside(a) if isinstance(a, Tensor) else a for a in args])
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
        elif operator.name == _OTHER_DTYPE:  # for autograd no view, but it shares the memory
            self.relate(out, args[0], Step(operator, args[1:], recorded=False))
        return out

    def node(self, operator: Any, symbols: tuple, args: tuple) -> Any:
        """Note one call; what it returns, as arrays of this level."""
        if operator.name == "_as_strided" and not is_within(*args):
            raise SharedMemory(f"{_OUTSIDE}.\n  {where()}")
        shapes = tuple([self.shape_of(a) for a in args])
        try:
            out = self.shapes.call(operator, shapes)
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

    def call_graph(
        self, graph: Graph, inputs: Sequence[Tensor], examples: Sequence[Any] = ()
    ) -> tuple:
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

    def call_function(self, function: Any, state: ThreadState, args: tuple, setup: Any) -> Any:
        """A call of an autograd Function at this level: what its methods call is noted."""
        inputs = tuple([self.inside(a) if isinstance(a, Tensor) else a for a in args])
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
        self._refuse_gaps(source, step)
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
        # An operator without derivatives leaves the history of what it changes as it was.
        recorded = thread_state().grad_enabled and bool(operator.functional.grad_positions)
        symbols = tuple([self.symbol_or_literal(a) for a in args])
        result = self.node(operator.functional, symbols, args)
        self.assign(target, self.fitted(result, target.array, operator), recorded)

    def write_custom(self, operator: Any, args: tuple) -> Any:
        """A custom operator that mutates as its functional form, see `library.functional`."""
        # The library is imported once a program has custom operators.
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
            old: Value = target.__dict__["symbol"]
            symbol = self.insert("wengert::_to_copy", old, symbol, from_numpy(target.dtype))
        return symbol

    def assign(self, target: Tensor, symbol: Value, recorded: bool) -> None:
        """Let a tensor, and all that it shares memory with, stand for a new value."""
        changed: list[Any] = []
        self._refuse_overlapping(target)
        self._store(target, symbol, recorded, changed)
        memory = target.array.memory
        memory.changes += 1
        for array in changed:
            array.__dict__["seen_changes"] = memory.changes

    def _store(self, target: Tensor, symbol: Value, recorded: bool, changed: list[Any]) -> None:
        """Let a tensor stand for a new value, and all that it comes from for theirs.

        `changed` takes the arrays of these tensors.
        """
        array: Any = target.array
        value = symbol if recorded else self.revalued(self.symbol_of(target), symbol)
        source, steps = way_back(target)
        if steps:
            self._refuse_overlapping(source)
            for before, step in steps:
                self._refuse_gaps(before, step)
            old = self.symbol_of(source)
            texts = tuple([text_of_step(step, t.array) for t, step in steps])
            whole = self.insert("wengert::_write_view", old, old, symbol, texts)
            self._store(source, whole, recorded, changed)
        elif array.origin is not None:
            source, step = array.origin
            whole = symbol
            if step.operator is not None and step.operator.name == _OTHER_DTYPE:
                old, dtype = self.symbol_of(source), from_numpy(source.array.dtype)
                whole = self.insert(prim.OPERATOR + _OTHER_DTYPE, old, symbol, dtype)
            elif step.operator is not None:
                self._refuse_overlapping(source)
                self._refuse_gaps(source, step)
                old, text = self.symbol_of(source), text_of_step(step, source.array)
                whole = self.insert("wengert::_write_view", old, old, symbol, (text,))
            self._store(source, whole, False, changed)
        array.__dict__["symbol"] = value
        changed.append(array)

    def _refuse_overlapping(self, t: Tensor) -> None:
        if may_overlap(t.array):
            raise SharedMemory(f"{_OVERLAPPING}.\n  {where()}")

    def _refuse_gaps(self, source: Tensor, step: Step) -> None:
        """Refuse a view by strides that may show what another view has left out."""
        if (
            step.operator is not None
            and step.operator.name == "_as_strided"
            and source.array.origin is not None
            and not is_dense(source.array)
        ):
            raise SharedMemory(f"{_GAPS}.\n  {where()}")
