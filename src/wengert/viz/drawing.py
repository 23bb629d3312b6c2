"""Drawings of graphs: the way from what a program hands over to pages and SVG."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..compiler import Graph, Traced, trace
from ..core.tensor import Tensor
from ..core.trees.pytree import tree_leaves
from ..nn.modules.module import Module
from . import folding
from .folding import SMALL, Group
from .layout import family_of, operator_name
from .pages import frame, page, write
from .recorded import RecordedGraph, Vertex, of_tensors
from .scopes import Scope, Watch, arguments_of, title_of
from .svg import draw_view, path
from .traced import of_graph
from .views import HEIGHT, View, Views


class Drawing:
    """A graph that can be looked at: in a notebook, as a page (``.html``) or as ``.svg``."""

    def __init__(self, graph: RecordedGraph, root: Group, title: str) -> None:
        self.graph = graph
        self.title = title
        self._views = Views(graph, root)

    @property
    def nodes(self) -> list[Vertex]:
        """What is drawn, as data."""
        return self.graph.vertices

    @cached_property
    def _data(self) -> dict[str, Any]:
        views = self._views
        numbers = range(len(views.groups))
        return {
            "title": self.title,
            "height": HEIGHT,
            "vertices": [_vertex_data(v, views.home[i]) for i, v in enumerate(self.nodes)],
            "edges": self.graph.edges,
            "results": self.graph.results,
            "groups": [
                {
                    "label": group.label,
                    "kind": group.kind,
                    "repeated": group.repeated,
                    "parent": views.parent[number],
                    "view": _view_data(views.view(number)),
                }
                for number, group in zip(numbers, views.groups, strict=True)
            ],
        }

    def html(self) -> str:
        """One page with everything: pan, zoom, search, details, paths."""
        return page("graph", self.title, self._data)

    def svg(self, vertical: bool = True) -> str:
        """The graph as it is first seen, folded if it is large, downward or to the right."""
        return draw_view(self._views.view(0, vertical), self.title)

    def save(self, path: str | Path) -> Path:
        """Write ``.html`` or ``.svg``, by the ending of `path`, which is returned."""
        return write(path, {".html": self.html, ".svg": self.svg})

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return frame(self.html(), 560)

    def __repr__(self) -> str:
        return f"<Drawing of {self.title}: {len(self.nodes)} nodes>"


def graph(
    target: Tensor | Sequence[Tensor] | Callable | Graph | Traced,
    inputs: Any = (),
    *,
    names: Mapping[str, Tensor] | Module | None = None,
    fold: bool | int = True,
    title: str | None = None,
) -> Drawing:
    """Draw the graph behind a tensor, or the one that calling a function or module records.

    `inputs` are the arguments of the call: a tuple, or one tensor. Parameters of modules that are
    called are named by themselves; `names` gives further names, or the module that has them. If
    nothing is recorded, because no input requires grad, the function is traced. A graph of the
    compiler is drawn as it is. Graphs of more than 40 nodes, or `fold` of them, are folded:
    modules, functions and repetitions are boxes that open.

    >>> import wengert
    >>> x = wengert.ones(3, requires_grad=True)
    >>> wengert.viz.graph((x.exp() * x).sum(), names={"x": x})
    <Drawing of SumBackward0: 4 nodes>
    """
    known = dict(names.named_parameters()) if isinstance(names, Module) else dict(names or {})
    limit = 2**63 if fold is False else SMALL if fold is True else fold
    if isinstance(target, Graph | Traced):
        drawn = of_graph(target.graph if isinstance(target, Traced) else target, {})
        return _folded(drawn, (), limit, title or "graph")
    scopes: list[Scope] = []
    if callable(target) and not isinstance(target, Tensor):
        arguments = arguments_of(inputs)
        title = title_of(target, title)
        with Watch() as watch:
            results = tree_leaves(target(*arguments))
        scopes = watch.scopes
        known = {**_input_names(target, arguments), **watch.parameters(), **known}
        if not any(isinstance(t, Tensor) and t.requires_grad for t in results):
            return _folded(_traced(target, arguments, known), (), limit, title)
    else:
        results = [target] if isinstance(target, Tensor) else list(target)
    tensors = [t for t in results if isinstance(t, Tensor) and t.grad_fn is not None]
    if not tensors:
        raise RuntimeError(
            "viz.graph(): element 0 of tensors does not require grad and does not have a grad_fn: "
            "no graph was recorded that could be drawn"
        )
    drawn = of_tensors(tensors, known)
    return _folded(drawn, scopes, limit, title or drawn.vertices[0].kind)


def _folded(graph: RecordedGraph, scopes: Iterable[Scope], limit: int, title: str) -> Drawing:
    return Drawing(graph, folding.fold(graph, scopes, limit), title)


def _traced(target: Callable, arguments: Sequence[Any], known: dict[str, Tensor]) -> RecordedGraph:
    """The graph of a function, its inputs called by the names of the tensors they stand for."""
    traced = trace(target, *arguments)
    name_of = {id(t): name for name, t in known.items()}
    stand_for = [*(t for t in tree_leaves(arguments) if isinstance(t, Tensor)), *traced.captured]
    names = {i: name_of[id(t)] for i, t in enumerate(stand_for) if id(t) in name_of}
    return of_graph(traced.graph, names)


def _input_names(target: Callable, arguments: Sequence[Any]) -> dict[str, Tensor]:
    """Tensors among the arguments, by the names of a function's own parameters."""
    function = getattr(target, "forward", target)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return {}
    first = 1 if hasattr(function, "__self__") else 0
    named = zip(code.co_varnames[first : code.co_argcount], arguments, strict=False)
    found: dict[str, Tensor] = {}
    for name, value in named:
        if isinstance(value, Tensor):
            found[name] = value
        elif isinstance(value, dict):
            found.update((str(k), v) for k, v in value.items() if isinstance(v, Tensor))
    return found


def _vertex_data(vertex: Vertex, home: int) -> dict[str, Any]:
    line = vertex.line
    data: dict[str, Any] = {
        "kind": vertex.kind,
        "name": operator_name(vertex.kind),
        "leaf": vertex.leaf,
        "shape": vertex.shape,
        "dtype": vertex.dtype,
        "family": family_of(vertex),
        "held": vertex.held,
        "saved": [vars(saved) for saved in vertex.saved],
        "hooks": vertex.hooks,
        "group": home,
        "note": vertex.note,
    }
    if line is not None:
        text = linecache.getline(line.file, line.number).strip()
        data["line"] = [line.file, line.number, line.function, text]
    return data


def _view_data(view: View) -> dict[str, Any]:
    return {
        "width": round(view.width, 1),
        "height": round(view.height, 1),
        "cards": [
            [c.target, c.title, c.subtitle, c.family, round(c.x, 1), round(c.y, 1), round(c.width)]
            for c in view.cards
        ],
        "lines": [[a, b, path(points)] for a, b, points in view.lines],
    }
