"""`compile`: a function is traced for each kind of arguments, and its graph runs from then on."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from ..utils.pytree import tree_flatten
from .executable import DEFAULT_PASSES, Executable, Pass
from .guards import difference, environment_key, mode_key, value_key
from .passes.rematerialize import Policy
from .trace import Traced, record

_recompiles = logging.getLogger("wengert.compiler.recompiles")
_graphs = logging.getLogger("wengert.compiler.graphs")

# So many compilations of one function mean that something changes with every call.
LIMIT = 64


class Compilation:
    """One trace of a function, with what has to hold for it to be used again."""

    def __init__(self, key: tuple, traced: Traced, executable: Executable, reason: str) -> None:
        self.key = key
        self.traced = traced
        self.executable = executable
        self.reason = reason
        self.calls = 0

    def __call__(self, leaves: list) -> Any:
        self.calls += 1
        traced = self.traced
        inputs = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        inputs += traced.captured
        return traced.finish(inputs, self.executable(*inputs))


class Compiled:
    """A function with its compilations; made by `compile`."""

    def __init__(
        self, function: Callable, passes: Sequence[Pass], recompute: Policy | None
    ) -> None:
        self.function = function
        self.passes = tuple(passes)
        self.recompute = recompute
        self.compilations: dict[tuple, Compilation] = {}
        self.gave_up = False
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.gave_up:
            return self.function(*args, **kwargs)
        leaves, tree = tree_flatten((args, kwargs))
        key = (
            tree,
            tuple([value_key(leaf) for leaf in leaves]),
            mode_key(),
            environment_key(self.function),
        )
        known = self.compilations.get(key)
        if known is None:
            known = self._compile(key, args, kwargs)
            if known is None:
                return self.function(*args, **kwargs)
        return known(leaves)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _compile(self, key: tuple, args: tuple, kwargs: dict) -> Compilation | None:
        reason = "the first call"
        if self.compilations:
            reason = difference(list(self.compilations)[-1], key)
        if len(self.compilations) >= LIMIT:
            self.gave_up = True
            warnings.warn(
                f"{self._name()} was compiled {LIMIT} times and runs uncompiled from now on; the "
                f"last time because of {reason}",
                stacklevel=3,
            )
            return None
        _recompiles.info("compiling %s: %s", self._name(), reason)
        traced = record(self.function, args, kwargs, shared=True)
        _graphs.info("%s:\n%s", self._name(), traced.graph)
        executable = Executable(traced.graph, self.passes, self.recompute, traced.mutated)
        made = Compilation(key, traced, executable, reason)
        self.compilations[key] = made
        return made

    def _name(self) -> str:
        return getattr(self.function, "__qualname__", repr(self.function))

    def __repr__(self) -> str:
        return f"<compiled {self._name()}, {len(self.compilations)} compilations>"


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = True,
    dynamic: bool | None = None,
    backend: str = "interpreter",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Trace a function at its first call and run the graph from then on.

    The graph is made again for other shapes, dtypes, strides, `requires_grad`, modes or Python
    arguments. Results are differentiable as those of the function are. `options` may hold
    ``passes``, functions from graph to graph, and ``recompute``, a policy for what the backward
    computes again rather than keeps (None: nothing).

    >>> import wengert
    >>> @wengert.compile
    ... def loss(x):
    ...     return (x.sin() ** 2).sum()
    >>> x = wengert.ones(2, requires_grad=True)
    >>> loss(x).backward()
    >>> x.grad
    tensor([0.9093, 0.9093])
    """
    unsupported = {
        "fullgraph=False": not fullgraph,
        "dynamic=True": bool(dynamic),
        f"backend={backend!r}": backend != "interpreter",
        f"mode={mode!r}": mode is not None,
    }
    asked = [name for name, given in unsupported.items() if given]
    if asked:
        raise ValueError(
            f"compile(): {', '.join(asked)} is not supported: a whole function becomes one graph "
            "for each kind of arguments, and runs on the interpreter"
        )
    chosen = dict(options or {})
    passes = chosen.pop("passes", DEFAULT_PASSES)
    recompute = chosen.pop("recompute", Policy())
    if chosen:
        raise ValueError(
            f"compile(): unknown options {sorted(chosen)}; there are passes and recompute"
        )
    if model is None:
        return functools.partial(compile, options=options, disable=disable)
    if not callable(model):
        raise TypeError(f"compile(): a function is needed, not {type(model).__name__}")
    return model if disable else Compiled(model, passes, recompute)


def explain(function: Any) -> str:
    """The compilations of a compiled function: how often each was used, and why it was made."""
    if not isinstance(function, Compiled):
        raise TypeError("explain(): the function is not compiled; see wengert.compile")
    lines = [f"{function._name()}: {len(function.compilations)} compilations"]
    for i, made in enumerate(function.compilations.values()):
        graph = made.traced.graph
        lines.append(
            f"  {i}. {len(list(graph.nodes()))} nodes, {made.calls} calls, because of {made.reason}"
        )
        if made.traced.mutated:
            lines.append(f"     changes its inputs {made.traced.mutated}")
    return "\n".join(lines)


def _log_as_asked() -> None:
    """Switch on the logs that the environment variable WENGERT_LOG names."""
    loggers = {"recompiles": _recompiles, "graphs": _graphs}
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
