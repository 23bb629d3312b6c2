"""`compile`: a function is traced for each kind of arguments, and its graph runs from then on."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import os
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ...backends.geometry import may_share_memory, offset_of
from ...core.arrays import LevelArray
from ...core.classes import COMPILED
from ...core.state import thread_state
from ...core.tensor import Tensor
from ...core.trees.pytree import tree_flatten, tree_map_only
from ...dispatch.levels import OutsideAllLevels
from ..interpret.program import Program
from ..ir.graph import Graph
from ..native.program import uncollected
from ..native.runtime import Entry, by_vector
from ..passes.rematerialize import Policy
from ..passes.reroll import reroll
from ..trace.capture import record
from ..trace.refusals import Effect, SharedMemory, TraceError
from ..trace.traced import Traced
from . import backends
from .checks import same
from .effects import Snapshot, Sources, Stores, iterator_of
from .executable import DEFAULT_PASSES, Executable, Pass
from .floats import Floats, Place, differing_floats, float_changes, masked
from .guards import (
    ByIdentity,
    differences,
    is_leaf,
    leaf_key,
    modes_key,
    repeats_key,
    same_structure,
    tensor_key,
)
from .lanes import lane_for
from .surroundings import Surroundings
from .tracing import DifferentiableLevel
from .transformed import GraphOperator, examples_of, has_dual_level, is_plain
from .walk import has_attributes

_recompiles = logging.getLogger("wengert.compiler.recompiles")
_graphs = logging.getLogger("wengert.compiler.graphs")
_native = logging.getLogger("wengert.compiler.native")
_llvm = logging.getLogger("wengert.compiler.llvm")

# So many compilations of one function, or method of one object, mean that something changes with
# every call.
LIMIT = 64


#: How many frames lie between a warning and the program that has called.
_OUTSIDE = 4 if COMPILED else 5


class Compilation:
    """One trace of a function, with what has to hold for it to be used again."""

    def __init__(
        self,
        key: tuple,
        traced: Traced,
        executable: Executable,
        surroundings: Surroundings,
        sources: Sources,
        tensors: list[Tensor],
        reason: str,
        floats: Floats,
    ) -> None:
        self.key = key
        self.floats = floats
        self.traced = traced
        self.executable = executable
        self.surroundings = surroundings
        self.sources = sources
        self.reason = reason
        self._apart: dict[int, Any] = {}  # arrays of inputs that share no memory with each other
        #: How long it took to trace the function.
        self.seconds = 0.0
        self.calls = 0
        self.attributes = [surroundings.attributes_of(t) for t in tensors]
        looked_up = sources.numbers() | {number for number, _ in floats.sources}
        self.captured = [
            (t, t.array, tensor_key(t))
            for i, t in enumerate(traced.captured)
            if i not in looked_up and not surroundings.watches(t)
        ]

    @property
    def is_spent(self) -> bool:
        """Whether it has served the call that it was made for and cannot serve another."""
        return self.surroundings.unwatchable is not None and self.calls > 0

    def obstacle(self, tensors: list[Tensor]) -> str | None:
        """What has changed since it was made, apart from the kinds of the arguments."""
        if self.is_spent:
            return None  # no other one would serve longer
        for t, given in zip(tensors, self.attributes, strict=True):
            if (given or has_attributes(t)) and not same(
                self.surroundings.attributes_of(t), given
            ):
                return "an attribute of a tensor, which the function reads, is not what it was"
        for i, t, gradient in self.traced.gradients:
            if (t if i is None else tensors[i]).gradient is not gradient:
                return "the .grad of a tensor, which the function reads, is another one"
        for i, t, begin in self.traced.offsets:
            if offset_of((t if i is None else tensors[i]).array) != begin:
                return "a tensor, whose storage_offset() the function reads, begins elsewhere"
        for i, t in self.traced.identified:
            if tensors[i] is not t:
                return f"argument {i} is no longer the tensor that the function has from outside"
        for t, array, key in self.captured:
            if (t.array is not array or t.requires() != bool(key[3])) and tensor_key(t) != key:
                return "a tensor that the function has from outside is of another kind"
        changed = self.surroundings.changed()
        if changed is not None:
            return f"`{changed}`, which the function reads, is not what it was"
        current = self.sources.current()
        if isinstance(current, str):
            return f"`{current}`, which the function reads, is of another kind"
        return self.floats.obstacle()

    def inputs(self, tensors: list[Tensor], leaves: Sequence[Any]) -> list[Tensor]:
        """The inputs of the graph: tensors among the arguments, which are `leaves`, and what the
        function has from elsewhere."""
        captured = self.traced.captured
        if self.floats.sources:
            captured = list(captured)
            self.floats.fill(captured, leaves)
        if self.sources.places:
            captured = list(captured)
            current = self.sources.current()
            for number, store, leaf in self.sources.places:
                captured[number] = current[store][leaf]  # type: ignore[assignment, index]
        return [*tensors, *captured]

    def shares_changes(self, inputs: list[Tensor]) -> bool:
        """Whether an input that is changed shares memory with another one. What the function has
        from elsewhere is compared anew only where it has another array."""
        mutated = self.traced.mutated
        if not mutated:
            return False
        count = len(inputs) - len(self.traced.captured)
        arrays = [t.array for t in inputs]
        known = self._apart
        new = [i for i, a in enumerate(arrays) if i < count or known.get(i) is not a]
        for i in new:
            is_changed = i in mutated
            for j in range(len(arrays)) if is_changed else mutated:
                if i != j and may_share_memory(arrays[i], arrays[j]):
                    return True
        self._apart = dict(enumerate(arrays[count:], count))
        return False

    def __call__(self, inputs: list[Tensor]) -> Any:
        self.calls += 1
        return self.traced.finish(inputs, self.executable(*inputs))

    @functools.cached_property
    def operator(self) -> GraphOperator | None:
        """The graph as an operator inside transforms; None where these must see each operator, and
        what the function does beside computing its results."""
        traced, executable = self.traced, self.executable
        if (
            traced.mutated
            or traced.gradients
            or traced.given_gradients
            or traced.offsets
            or traced.identified
            or traced.store is not None
            or self.surroundings.unwatchable is not None
            or executable.generators
            or any(type(t.array) is LevelArray for t in traced.captured)
            or not is_plain(executable.graph)
        ):
            return None
        strides: list[tuple[int, ...] | None] = [None] * len(executable.graph.outputs)
        for recipe in traced.recipes:
            if not recipe.is_input and recipe.before is None:
                strides[recipe.index] = recipe.strides
        return GraphOperator(executable, strides)

    def inside(self, inputs: list[Tensor]) -> Any:
        """The result inside transforms."""
        assert self.operator is not None
        self.calls += 1
        return self.traced.finish(inputs, self.operator(*inputs))


class Refused:
    """Why calls of a kind run uncompiled."""

    __slots__ = ("error", "tries", "is_warned")

    def __init__(self, error: Exception, tries: int) -> None:
        self.error = error
        self.tries = tries
        self.is_warned = False

    @property
    def tries_again(self) -> bool:
        """Whether the next call is traced: what only the first one stores, such as a cache, is no
        reason not to."""
        return self.tries < 2 and isinstance(self.error, Effect)


class Compiled(Entry):
    """A function with its compilations; made by `compile`."""

    def __init__(
        self,
        function: Callable,
        passes: Sequence[Pass],
        recompute: Policy | None,
        make: Callable[[Graph], Any] = Program,
        fullgraph: bool = False,
        rerolls: bool = True,
    ) -> None:
        self.rerolls = rerolls
        self.function = function
        self.make = make
        self.fullgraph = fullgraph
        self.passes = tuple(passes)
        self.recompute = recompute
        self.compilations: list[Compilation] = []
        self._by_key: dict[tuple, list[Compilation]] = {}
        self._lock = threading.RLock()
        self._warned = False
        self._warned_uncompiled = False
        #: Kinds of calls that run uncompiled.
        self._refused: dict[tuple, Refused] = {}
        self._counts: Counter[tuple] = Counter()  # of compilations, by the objects they are for
        self._passed = 0
        self._calls_before = -1
        #: Floats among the arguments that are inputs of graphs, by structure and number of these;
        #: those, and places elsewhere, whose values the function needs.
        self._loose: dict[tuple, set[int]] = {}
        self._needed: set[tuple] = set()
        self._places: dict[tuple, Place] = {}
        self._sorts_keywords = not _takes_any_keywords(function)
        functools.update_wrapper(self, function, updated=())

    def take(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call."""
        state = thread_state()
        levels = state.levels
        has_duals = has_dual_level(state) if levels else state.dual_level >= 0
        if state.modes or state.function_modes or has_duals:
            return self.function(*args, **kwargs)  # what is around must see each operator
        if levels and any(level.traces for level in levels):
            return self.function(*args, **kwargs)  # its nodes are nodes of the graph around
        if kwargs and self._sorts_keywords:
            kwargs = dict(sorted(kwargs.items()))
        leaves: Sequence[Any] = args
        structure = None
        if kwargs or not all(map(is_leaf, args)):
            leaves, structure = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        repeats = repeats_key(tensors)
        if repeats is not None:
            tensors = list({id(t): t for t in tensors}.values())
        key = (structure, tuple([leaf_key(leaf) for leaf in leaves]), repeats, modes_key())
        exact = key
        if self._loose:
            key = masked(key, self._loose.get((structure, len(leaves)), ()))
        made = self._known(key, tensors)
        if made is None:
            refused = self._refused.get(key)
            if refused is None or refused.tries_again:
                with uncollected():
                    made = self._compiled(exact, key, args, kwargs, tensors)
        if made is None:
            return self._uncompiled(key, args, kwargs)
        if levels:
            return self._inside(made, args, kwargs, tensors, leaves)
        if not made.is_spent:
            inputs = made.inputs(tensors, leaves)
            if not made.shares_changes(inputs):
                if made.calls:
                    result = made(inputs)
                else:
                    with uncollected():
                        result = made(inputs)
                if structure is None and made.calls > 1:
                    self.lane = lane_for(made, args, key[3])
                return result
        elif all(each.is_spent for each in self.compilations):
            self._run_plain()
        return self.function(*args, **kwargs)

    def _inside(
        self, made: Compilation, args: tuple, kwargs: dict[str, Any], tensors: list[Tensor],
        leaves: Sequence[Any],
    ) -> Any:  # fmt: skip
        """The result of a call inside transforms."""
        operator = made.operator
        if operator is not None and operator.serves():
            with uncollected():
                return made.inside(made.inputs(tensors, leaves))
        return self.function(*args, **kwargs)

    def _run_plain(self) -> None:
        """Count a call that runs uncompiled where nothing is compiled: after many of them nothing
        is looked at any more."""
        self._passed += 1
        if self._passed >= LIMIT:
            self.plain = self.function

    def _uncompiled(self, key: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run the function as it is. If that fails as tracing did, the program is wrong, and what
        it does when it is right is not known yet."""
        refused = self._refused.get(key)
        if refused is None or refused.is_warned:
            if refused is not None and not self.compilations:
                self._run_plain()
            return self.function(*args, **kwargs)
        try:
            result = self.function(*args, **kwargs)
        except BaseException:
            if not isinstance(refused.error, TraceError):
                self._refused.pop(key, None)
            raise
        if not refused.tries_again:
            refused.is_warned = True
            self._warn_uncompiled(str(refused.error))
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _known(self, key: tuple, tensors: list[Tensor]) -> Compilation | None:
        for made in self._by_key.get(key, ()):
            if made.obstacle(tensors) is None:
                return made
        return None

    def _compiled(
        self, exact: tuple, key: tuple, args: tuple, kwargs: dict[str, Any], tensors: list[Tensor]
    ) -> Compilation | None:
        """A new compilation; None where the function has to run as it is. `exact` is the key of the
        call with the values of all floats."""
        with self._lock:
            known = self._known(key, tensors)  # another thread may have made it meanwhile
            if known is not None:
                return known
            count = self._counts[_objects(key)]
            if count >= LIMIT:
                self._pass_by(key, tensors, count)
                return None
            reason = self._reason(key, tensors)
            _recompiles.info("compiling %s: %s", self._name(), reason)
            try:
                made = self._made_general(exact, key, args, kwargs, tensors, reason)
            except SharedMemory as error:
                _recompiles.info("%s runs uncompiled: %s", self._name(), error)
                return None
            except Exception as error:
                if self.fullgraph:
                    raise
                self._refuse(key, error)
                return None
            self._refused.pop(key, None)
            self._counts[_objects(key)] += 1
            self.compilations.append(made)
            self._by_key.setdefault(made.key, []).insert(0, made)
            if made.surroundings.unwatchable is not None:
                self._warn_uncompiled(
                    f"it reads {made.surroundings.unwatchable}, which cannot be watched. Read it "
                    "outside of the function, and pass what is read as an argument"
                )
            return made

    def _pass_by(self, key: tuple, tensors: list[Tensor], count: int) -> None:
        """A call of yet another kind, where there are too many: when mostly such calls come, none
        is looked at any more."""
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._name()} was compiled {LIMIT} times; calls of other kinds run uncompiled "
                f"from now on. This one differs: {self._reason(key, tensors)}",
                stacklevel=_OUTSIDE,
            )
        calls = sum([made.calls for made in self.compilations])
        if self._calls_before < 0:
            self._calls_before = calls
        self._passed += 1
        if self._passed >= LIMIT:
            if 3 * (calls - self._calls_before) <= self._passed:
                self.plain = self.function
            self._passed, self._calls_before = 0, -1

    def _made_general(
        self,
        exact: tuple,
        key: tuple,
        args: tuple,
        kwargs: dict[str, Any],
        tensors: list[Tensor],
        reason: str,
    ) -> Compilation:
        """A compilation that takes floats as inputs where another one differs in these alone and
        the function does not need their values."""
        kind = (key[0], len(key[1]))
        places = self._changed_floats(key)
        loose = self._loose.get(kind, set())
        needed: set[tuple] = set()
        while True:
            numbers = [i for i in loose if (*kind, i) not in needed]
            held = [place for place in places if place.identity not in needed]
            general = masked(exact, numbers)
            floats = Floats(general, held)
            try:
                made = self._made(general, args, kwargs, tensors, reason, floats)
            except Exception:
                if not floats:
                    raise
                arguments, others = floats.needed()
                needed.update((*kind, i) for i in arguments)
                needed.update(place.identity for place in others)
                continue
            self._needed |= needed
            loose.intersection_update(numbers)
            return made

    def _changed_floats(self, key: tuple) -> list[Place]:
        """Note which arguments differ from those of an earlier call as floats alone; the places
        of floats elsewhere that have had other values."""
        for made in self._by_key.get(key, ())[:1]:
            for place in float_changes(made.surroundings.changes()):
                self._places[place.identity] = place
        for made in reversed(self.compilations):
            numbers = differing_floats(made.key, key)
            if numbers:
                kind = (key[0], len(key[1]))
                known = self._loose.setdefault(kind, set())
                known.update(i for i in numbers if (*kind, i) not in self._needed)
                break
        return [
            place
            for identity, place in self._places.items()
            if identity not in self._needed and type(place.read()) is float
        ]

    def _made(
        self,
        key: tuple,
        args: tuple,
        kwargs: dict[str, Any],
        tensors: list[Tensor],
        reason: str,
        floats: Floats,
    ) -> Compilation:
        """Trace the function; afterwards all is as if it had not run."""
        objects = [part.value for part in _objects(key)]
        surroundings = Surroundings()
        iterator = iterator_of(self.function, objects)
        if iterator is not None:
            raise TraceError(
                f"the function may take values from the iterator `{iterator}`, which tracing would "
                "use up: take them outside of it and pass them as arguments"
            )
        begin = time.perf_counter()
        snapshot = Snapshot(self.function, objects)
        stores = Stores(snapshot, surroundings)
        args, kwargs = tree_map_only(np.ndarray, np.copy, (args, kwargs))
        outside: Any = contextlib.nullcontext()
        if thread_state().levels:
            args, kwargs = examples_of((args, kwargs))
            outside = OutsideAllLevels()
        grad_enabled = is_grad_enabled()

        def stored() -> list[Any]:
            floats.put_back()
            return stores.leaves()

        try:
            if floats:
                args, kwargs = floats.put(args, kwargs)
            with outside, set_grad_enabled(grad_enabled), surroundings.watching():
                # What the function sets of context variables ends with the copy.
                traced = copy_context().run(
                    record, DifferentiableLevel(), self.function, args, kwargs, True, stored
                )
            floats.check(traced.literals, surroundings.code)
        finally:
            floats.put_back()
            snapshot.restore()
        if stores.each:
            traced.store = stores.put
        floats.close(traced.captured)
        sources = Sources(stores.each, traced.captured)
        surroundings.note(self.function, objects, sources.skipped | floats.skipped)
        _graphs.info("%s:\n%s", self._name(), traced.graph)
        if self.rerolls:
            reroll(traced.graph)
        executable = Executable(
            traced.graph, self.passes, self.recompute, traced.mutated, self.make
        )
        made = Compilation(
            key, traced, executable, surroundings, sources, tensors, reason, floats
        )
        made.seconds = time.perf_counter() - begin
        return made

    def _refuse(self, key: tuple, error: Exception) -> None:
        """Run calls of this kind uncompiled, or all of them if none was ever compiled."""
        tries = self._refused[key].tries if key in self._refused else 0
        self._refused[key] = Refused(error, tries + 1)
        if len(self._refused) >= LIMIT and not self.compilations:
            self.plain = self.function
        _recompiles.info("%s runs uncompiled: %s", self._name(), error)

    def _warn_uncompiled(self, reason: str) -> None:
        if not self._warned_uncompiled:
            self._warned_uncompiled = True
            warnings.warn(f"{self._name()} runs uncompiled: {reason}", stacklevel=_OUTSIDE)

    def _reason(self, key: tuple, tensors: list[Tensor]) -> str:
        """Why none of the compilations serves a call."""
        if not self.compilations:
            return "the first call"
        alike = self._by_key.get(key)
        if alike:
            return str(alike[0].obstacle(tensors))
        # The one that differs least tells most; of several, the last.
        keys = [made.key for made in reversed(self.compilations)]
        keys = [known for known in keys if same_structure(known, key)] or keys
        ways: list[list[str]] = [differences(known, key) for known in keys]
        closest = min(ways, key=len)
        return "; ".join(closest)

    def _name(self) -> str:
        return getattr(self.function, "__qualname__", repr(self.function))

    def __repr__(self) -> str:
        return f"<compiled {self._name()}, {len(self.compilations)} compilations>"


by_vector(Compiled)


def _objects(key: tuple) -> tuple[ByIdentity, ...]:
    """The objects that a call is given: each may have its own compilations."""
    return tuple([part for part in key[1] if isinstance(part, ByIdentity)])


def _takes_any_keywords(function: Callable) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is None or bool(code.co_flags & inspect.CO_VARKEYWORDS)


#: PyTorch's names of how much to try for speed.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Trace a function at its first call and run the graph from then on.

    The graph is made again for other shapes, dtypes, strides, `requires_grad`, modes or Python
    arguments. Results are differentiable as those of the function are. A function that a graph
    cannot stand for, because it reads values of tensors or has effects that are not a store of
    tensors, runs as it is, with a warning that says why; with `fullgraph` that is an error.
    `backend` says what runs the graph: ``native`` makes machine code, ``interpreter`` calls the
    operators. `options` may hold ``passes``, functions from graph to graph, ``recompute``, a policy
    for what the backward computes again rather than keeps (None: nothing), and ``reroll``, whether
    blocks that repeat, as those of a loop in Python, become one loop of the graph. PyTorch's hints
    about speed, `mode` and `dynamic`, are accepted and change nothing: a graph is always made for
    the shapes it meets.

    >>> import wengert
    >>> @wengert.compile
    ... def loss(x):
    ...     return (x.sin() ** 2).sum()
    >>> x = wengert.ones(2, requires_grad=True)
    >>> loss(x).backward()
    >>> x.grad
    tensor([0.9093, 0.9093])
    """
    if mode is not None and mode not in MODES:
        raise ValueError(f"compile(): Unrecognized mode={mode!r}; there are {', '.join(MODES)}")
    if mode is not None and options is not None:
        raise RuntimeError(
            "compile(): Either mode or options can be specified, but both can't be specified at "
            "the same time."
        )
    make = backends.chosen(backend)
    chosen = dict(options or {})
    passes = chosen.pop("passes", DEFAULT_PASSES)
    recompute = chosen.pop("recompute", Policy())
    rerolls = bool(chosen.pop("reroll", True))
    if chosen:
        raise ValueError(
            f"compile(): unknown options {sorted(chosen)}; there are passes, recompute and reroll"
        )
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, backend=backend, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile(): a function is needed, not {type(model).__name__}")
    if disable:
        return model
    if hasattr(type(model), "_as_compiled"):  # a module stays one
        return model._as_compiled(  # type: ignore[attr-defined]
            fullgraph=fullgraph, backend=backend, options=options
        )
    return Compiled(model, passes, recompute, make, fullgraph, rerolls)


def explain(function: Any, details: bool = False) -> str:
    """The compilations of a compiled function: how often each was used, and why it was made.

    With `details` also what became machine code, what calls operators and why, the memory it takes,
    and how long it took to make.
    """
    if not isinstance(function, Compiled):
        raise TypeError("explain(): the function is not compiled; see wengert.compile")
    lines = [f"{function._name()}: {len(function.compilations)} compilations"]
    for i, made in enumerate(function.compilations):
        graph = made.traced.graph
        lines.append(
            f"  {i}. {len(list(graph.nodes()))} nodes, {made.calls} calls: {made.reason}"
        )
        if made.surroundings.unwatchable is not None:
            lines.append(
                "     such calls run uncompiled from then on: what the function reads cannot be "
                f"watched ({made.surroundings.unwatchable})"
            )
        if made.traced.mutated:
            lines.append(f"     changes its inputs {made.traced.mutated}")
        if made.floats.sources:
            lines.append(f"     takes {len(made.floats.sources)} floats of any value")
        if details:
            lines.append(f"     traced in {made.seconds * 1e3:.1f} ms")
            for name, program in made.executable.made():
                text = program.text() if hasattr(program, "text") else "runs on the interpreter"
                lines.append(f"     {name}: " + text.replace("\n", "\n     "))
    return "\n".join(lines)


def _log_as_asked() -> None:
    """Switch on the logs that the environment variable WENGERT_LOG names."""
    loggers = {"recompiles": _recompiles, "graphs": _graphs, "native": _native, "llvm": _llvm}
    for name in filter(None, os.environ.get("WENGERT_LOG", "").split(",")):
        if name not in loggers:
            raise ValueError(f"WENGERT_LOG: {name!r} is unknown; there are {', '.join(loggers)}")
        logger = loggers[name]
        logger.setLevel(logging.INFO)
        if not logger.handlers:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            logger.addHandler(handler)


_log_as_asked()
