"""Tracing: a Python function run once on shapes, with every operator call noted in a graph.

The function runs at a transform level of its own (`levels.py`), so autograd, vmap and the rest work
inside it. Its tensors carry a shape-only tensor and the graph's `Value` that stands for them.

In-place operations become new values. A view is written back into its base (`write_view`), and
other views of the base are made again when they are next read, which the version counter tells.
Tensors that the function gets from elsewhere become inputs after the function's own; tensors that
it makes become constants. What it has changed of either kind of input is an output at the end.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ..backends import meta
from ..creation import full
from ..drawing import DRAWS
from ..generator import fork_rng
from ..levels import Level, LevelArray, level_array
from ..operators.write_view import step_text
from ..state import thread_state
from ..tensor import Tensor, wrap
from ..utils.pytree import tree_flatten, tree_unflatten
from . import primitives as prim
from .ir import Graph
from .nodes import Value, split_arguments
from .types import type_of, without_grad

__all__ = ["TraceError", "TraceLevel", "Traced", "trace"]


class TraceError(RuntimeError):
    """The function cannot be traced; the message shows the line of the program."""


class Traced:
    """What `trace` returns: the graph, and how a call of the function relates to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.in_tree: Any = None
        self.out_tree: Any = None
        self.constants: list[Any] = []
        self.output_literals: list[Any] = []
        self.captured: list[Tensor] = []
        self.mutated: list[int] = []

    @property
    def returned(self) -> int:
        """How many of the graph's outputs are results; mutated inputs come after them."""
        return len(self.graph.outputs) - len(self.mutated)

    def inputs_of(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """The graph's inputs for a call with these arguments."""
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                f"traced with arguments of the structure {self.in_tree}, called with {tree}"
            )
        return [*[leaf for leaf in leaves if isinstance(leaf, Tensor)], *self.captured]

    def result_of(self, outputs: tuple) -> Any:
        """The function's result from those of the graph's outputs that are results."""
        supply = iter(outputs)
        leaves = [next(supply) if literal is _HOLE else literal for literal in self.output_literals]
        return tree_unflatten(leaves, self.out_tree)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on the interpreter as the function, changes of inputs included."""
        from .interpreter import run

        inputs = self.inputs_of(*args, **kwargs)
        outputs = run(self.graph, *inputs)
        self.write_back(inputs, outputs[self.returned :])
        return self.result_of(outputs[: self.returned])

    def write_back(self, inputs: list[Tensor], values: tuple) -> None:
        """Change the inputs that the function changes."""
        for position, value in zip(self.mutated, values, strict=True):
            target = inputs[position]
            with set_grad_enabled(is_grad_enabled() and not (target.is_leaf and target.requires())):
                target.copy_(value)

    def __str__(self) -> str:
        return str(self.graph)


_HOLE = object()


def trace(function: Callable, *examples: Any, **keywords: Any) -> Traced:
    """Record what `function` does with arguments like `examples`.

    Tensors among them are inputs; everything else is fixed at the value it has here.

    >>> import wengert
    >>> from wengert.compiler import trace
    >>> traced = trace(lambda x, n: (x * n).sin(), wengert.ones(2), 3)
    >>> [node.kind for node in traced.graph.nodes()]
    ['wengert::mul', 'wengert::sin']
    """
    leaves, in_tree = tree_flatten((examples, keywords))
    level = TraceLevel()
    names = _parameter_names(function, examples, keywords)
    with level.entered(), _without_hooks():
        stand_ins = [
            level.add_input(leaf, names.get(id(leaf))) if isinstance(leaf, Tensor) else leaf
            for leaf in leaves
        ]
        args, kwargs = tree_unflatten(stand_ins, in_tree)
        result = function(*args, **kwargs)
        out_leaves, out_tree = tree_flatten(result)
        traced = level.finished(out_leaves)
    traced.in_tree, traced.out_tree = in_tree, out_tree
    return traced


@contextmanager
def _without_hooks() -> Iterator[None]:
    """Saved-tensor hooks are for the values of a program, not for its shapes."""
    state = thread_state()
    hooks, state.saved_hooks = state.saved_hooks, []
    try:
        yield
    finally:
        state.saved_hooks = hooks


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

    __slots__ = (
        "graph", "inputs", "stand_ins", "originals", "input_values", "captured", "constant"
    )  # fmt: skip

    def __init__(self, graph: Graph | None = None) -> None:
        Level.__init__(self, "trace")
        self.graph = Graph() if graph is None else graph
        self.inputs: list[Tensor] = []
        self.stand_ins: dict[int, Tensor] = {}
        self.originals: list[Tensor] = []
        self.input_values: list[Value] = []
        self.captured: list[Tensor] = []
        self.constant: set[Value] = set()  # values that no input's gradient can come from

    # Tensors of the level ------------------------------------------------------------------

    def add_input(self, example: Tensor, name: str | None = None) -> Tensor:
        """A further input of the graph, of the type of `example`; the tensor that stands for it."""
        value = self.graph.add_input(type_of(example), name)
        stand_in = self.stand_in(value, shape_only(example.array))
        stand_in.needs_grad = example.requires()
        self.stand_ins[id(example)] = stand_in
        self.originals.append(example)
        self.inputs.append(stand_in)
        self.input_values.append(value)
        return stand_in

    def stand_in(self, value: Value, array: Any) -> Tensor:
        """A tensor of this level for a value of the graph."""
        return wrap(self.array_of(value, wrap(array)))

    def array_of(self, value: Value, shape: Tensor) -> LevelArray:
        array = level_array(shape, self)
        array.__dict__["symbol"] = value
        array.__dict__["version"] = 0
        return array

    def lift(self, t: Tensor) -> Tensor:
        """A tensor from outside the function: an input if it was there before, else a constant."""
        known = self.stand_ins.get(id(t))
        if known is not None:
            return known
        stand_in = self.add_input(t)
        self.captured.append(t)
        return stand_in

    def inside(self, t: Tensor) -> Tensor:
        """A tensor as one of this level."""
        array = t.array
        return t if type(array) is LevelArray and array.level is self else self.lift(t)

    def made(self, t: Tensor) -> Tensor:
        """A tensor that the function has made itself: a constant of the graph."""
        value = self.graph.constant(t)
        self.constant.add(value)
        return self.stand_in(value, shape_only(t.array))

    def seen(self, t: Any) -> Any:
        return self.stand_ins.get(id(t), t)

    def detached(self, t: Tensor) -> Tensor:
        """The same memory without history; a change of either is one of both."""
        t = self.inside(t)
        array: Any = t.array
        symbol = self.graph.insert("wengert::_stop_gradient", self.symbol_of(t))
        symbol.type = array.symbol.type
        self.constant.add(symbol)
        out = self.stand_in(symbol, array.value.array)
        out.counter = t.shared_counter()
        out.array.__dict__["version"] = out.version()
        out.array.__dict__["source"] = t
        return out

    def unknown(self, action: str) -> TraceError:
        """The refusal of a value that is known only when the graph runs."""
        return TraceError(
            f"{action} needs the value of a tensor, which is not known while a function is traced: "
            "the graph must hold for all values. Use where() or the control flow of "
            f"wengert.compiler (cond, while_loop, scan, map).\n  {where()}"
        )

    # Calls -----------------------------------------------------------------------------------

    def call(self, operator: Any, args: tuple) -> Any:
        if getattr(operator, "mutated", ()):
            return self.write_custom(operator, args)
        if operator.mutates:
            self.write(operator, args)
            return None
        return self.node(operator, tuple([self.symbol_or_literal(a) for a in args]), args)

    def node(self, operator: Any, symbols: tuple, args: tuple) -> Any:
        """Note one call; what it returns, as arrays of this level."""
        shapes = tuple([self.shape_of(a) for a in args])
        state = thread_state()
        enabled, state.grad_enabled = state.grad_enabled, False
        try:
            with self.below():
                out = operator.call(shapes)
        except NotImplementedError as error:
            raise TraceError(f"{operator.name}(): {error}; {where()}") from None
        finally:
            state.grad_enabled = enabled
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
        values = [self.cut_off(v) for v in node.outputs] if not enabled else list(node.outputs)
        if all(value in self.constant for value in inputs):
            self.constant.update(values)
        arrays = [self.array_of(v, o) for v, o in zip(values, outs, strict=True)]
        return arrays[0] if isinstance(out, Tensor) else type(out)(arrays)

    def cut_off(self, value: Value) -> Value:
        """What stands for a value that was computed without recording: no gradient passes it."""
        if all(v in self.constant for v in value.node.inputs):
            return value
        barrier = self.graph.insert("wengert::_stop_gradient", value)
        barrier.type = value.type
        self.constant.add(barrier)
        return barrier

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
            raise TraceError(f"{name}(): give tensors as positional arguments; {where()}")
        inputs = [self.inside(args[i]) for i in positions]
        examples = list(args)
        with self.below(), fork_rng():
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

    # Views and changes in place ------------------------------------------------------------------

    def symbol_of(self, t: Tensor) -> Value:
        """The value that a tensor has now; a view of a changed base is made again."""
        array: Any = t.array
        view = t.view_meta
        if array.version == t.version():
            return array.symbol
        source = array.__dict__.get("source")
        if source is not None:
            symbol = self.graph.insert("wengert::_stop_gradient", self.symbol_of(source))
        elif view is not None:
            symbol = self.symbol_of(view.base)
            for operator, args in steps_of(view.steps):
                symbol = self.graph.insert(prim.OPERATOR + operator.name, symbol, *args)
        else:
            return array.symbol
        symbol.type = array.symbol.type
        array.__dict__["symbol"] = symbol
        array.__dict__["version"] = t.version()
        return symbol

    def write(self, operator: Any, args: tuple) -> None:
        """An in-place operator as its functional form; the target stands for the new value."""
        target = args[0]
        symbols = tuple([self.symbol_or_literal(a) for a in args])
        result = self.node(operator.functional, symbols, args)
        symbol = self.fitted(result, target.array, operator)
        self.assign(target, symbol)

    def write_custom(self, operator: Any, args: tuple) -> Any:
        """A custom operator that mutates as its functional form, see `library.functional`."""
        from ..library.functional import functional_form

        form = functional_form(operator)
        symbols = tuple([self.symbol_or_literal(a) for a in args])
        out = self.node(form, symbols, args) if form.schema.returns else ()
        arrays = out if isinstance(out, tuple) else (out,)
        targets = [args[i] for i in operator.mutated if args[i] is not None]
        count = len(arrays) - len(targets)
        for target, array in zip(targets, arrays[count:], strict=True):
            self.assign(target, self.fitted(array, target.array, operator))
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
            from ..dtypes import from_numpy

            symbol = self.graph.insert("wengert::_to_copy", symbol, from_numpy(target.dtype))
            symbol.type = without_grad(type_of(target.value))
        return symbol

    def assign(self, target: Tensor, symbol: Value) -> None:
        """Let a tensor, and the base that it is a view of, stand for new values."""
        view = target.view_meta
        source = target.array.__dict__.get("source")
        if source is not None:
            self.assign(source, symbol)
        elif view is not None:
            base = view.base
            whole = self.graph.insert(
                "wengert::_write_view", self.symbol_of(base), symbol, _step_texts(view.steps)
            )
            whole.type = base.array.__dict__["symbol"].type
            self.assign(base, whole)
        array: Any = target.array
        array.__dict__["symbol"] = symbol
        array.__dict__["version"] = target.version() + 1  # the count after this operation

    # The end ---------------------------------------------------------------------------------

    def finished(self, results: list) -> Traced:
        """Close the graph with the function's results and the inputs that it has changed."""
        traced = Traced(self.graph)
        for leaf in results:
            if isinstance(leaf, Tensor):
                self.graph.register_output(self.symbol_of(self.inside(leaf)))
                traced.output_literals.append(_HOLE)
            else:
                traced.output_literals.append(leaf)
        for position, (t, value) in enumerate(zip(self.inputs, self.input_values, strict=True)):
            now = self.symbol_of(t)
            if now is not value:
                self._refuse_shared_memory(position)
                traced.mutated.append(position)
                self.graph.register_output(now)
        traced.captured = self.captured
        return traced

    def _refuse_shared_memory(self, position: int) -> None:
        """A change of one input must not be a change of another one that the graph cannot see."""
        changed = self.originals[position].array
        for i, other in enumerate(self.originals):
            if i != position and np.may_share_memory(changed, other.array):
                raise TraceError(
                    f"input {position} of the graph is changed in place and shares its memory with "
                    f"input {i}: pass one of them, and make the other from it inside the function"
                )


def steps_of(steps: tuple | None) -> list[tuple[Any, tuple]]:
    """The calls that lead from a base to its view, in order."""
    calls = []
    while steps is not None:
        steps, operator, args = steps
        calls.append((operator, args))
    return calls[::-1]


def _step_texts(steps: tuple | None) -> tuple[str, ...]:
    return tuple([step_text(operator.name, args) for operator, args in steps_of(steps)])


def shape_only(array: Any) -> Any:
    """An array of the same shape, strides and dtype without elements."""
    if isinstance(array, meta.MetaArray):
        return array
    return meta.of_strides(array.shape, array.strides, array.dtype)


def where() -> str:
    """The line of the program that is running, outside of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and "/wengert/" in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None:
        return ""
    name, line = frame.f_code.co_filename, frame.f_lineno
    return f"{name}:{line}: {linecache.getline(name, line).strip()}"
