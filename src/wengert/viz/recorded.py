"""The graph behind tensors as plain data, read from the nodes that were recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..autograd.memory import Line, line_of, memory_of, saved_arrays
from ..core.dtypes import from_numpy
from ..core.tensor import Tensor
from ..tape.node import AccumulateGrad, edges


@dataclass(frozen=True)
class Saved:
    """A tensor that a node holds for backward; `shared` if an earlier node holds its memory."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    shared: bool = False


@dataclass(frozen=True)
class Vertex:
    """One recorded node: its class name, and for a leaf the name and shape of its tensor."""

    kind: str
    leaf: str | None = None
    shape: tuple[int | None, ...] = ()
    dtype: str = ""
    saved: tuple[Saved, ...] = ()
    hooks: tuple[str, ...] = ()
    line: Line | None = None
    sequence: int = -1
    note: str = ""

    @property
    def held(self) -> int:
        """Bytes that this node is the first to hold."""
        return sum(each.bytes for each in self.saved if not each.shared)


@dataclass(frozen=True)
class RecordedGraph:
    """Vertices, and (producer, consumer) pairs of vertex numbers; the last consumer is vertex 0."""

    vertices: list[Vertex]
    edges: list[tuple[int, int]]
    results: list[int] = field(default_factory=lambda: [0])

    @property
    def node_count(self) -> int:
        return len(self.vertices)


def record_graph(root: Any, names: Mapping[str, Tensor]) -> RecordedGraph:
    """The graph behind a ``grad_fn``, its leaves called as in `names`."""
    return of_nodes([root], names)


def of_tensors(results: Iterable[Tensor], names: Mapping[str, Tensor]) -> RecordedGraph:
    """The graph behind some tensors, its leaves called as in `names`."""
    nodes = [t.grad_fn for t in results]
    return of_nodes([node for node in nodes if node is not None], names)


def of_nodes(roots: list[Any], names: Mapping[str, Tensor]) -> RecordedGraph:
    """The graph that ends in some nodes, the newest of them first."""
    name_of = {id(t): name for name, t in names.items()}
    newest = sorted(set(roots), key=lambda node: -node.sequence)
    behind = _behind(newest)
    number = {node: i for i, node in enumerate(behind)}
    arrows: dict[tuple[int, int], None] = {}
    for node in behind:
        for producer in edges(node):
            if producer is not None:
                arrows[number[producer], number[node]] = None
    known: set[int] = {
        id(memory_of(n.variable.array)) for n in behind if isinstance(n, AccumulateGrad)
    }
    described = {
        node: describe(node, name_of, known) for node in sorted(behind, key=lambda n: n.sequence)
    }
    return RecordedGraph([described[n] for n in behind], list(arrows), [number[n] for n in newest])


def _behind(roots: list[Any]) -> list[Any]:
    found = dict.fromkeys(roots)
    pending = list(roots)
    while pending:
        for producer in edges(pending.pop()):
            if producer is not None and producer not in found:
                found[producer] = None
                pending.append(producer)
    return list(found)


def describe(node: Any, name_of: Mapping[int, str], known: set[int]) -> Vertex:
    """One node as data. `known` has the identities of the memory that counts elsewhere."""
    if isinstance(node, AccumulateGrad):
        tensor = node.variable
        return Vertex(
            "AccumulateGrad",
            name_of.get(id(tensor), ""),
            tuple(tensor.shape),
            tensor.dtype.name,
            hooks=_hooks(node, tensor.cold),
        )
    saved = []
    for name, array in saved_arrays(node):
        whole = id(memory_of(array))
        kind = from_numpy(array.dtype).name
        saved.append(Saved(name, tuple(array.shape), kind, array.nbytes, whole in known))
        known.add(whole)
    return Vertex(
        node.name(),
        shape=tuple(node.out_shape),
        dtype="" if node.out_dtype is None else str(node.out_dtype),
        saved=tuple(saved),
        hooks=_hooks(node, None),
        line=line_of(node),
        sequence=node.sequence,
    )


def _hooks(node: Any, leaf: Any) -> tuple[str, ...]:
    """The hooks of a node and of its tensors, each by what it is and its function's name."""
    found: list[tuple[str, Any]] = []
    cold = node.cold
    if cold is not None:
        found += [("before the node", cold.pre_hooks), ("after the node", cold.post_hooks)]
        found += [("of the tensor", hooks) for hooks in (cold.tensor_hooks or {}).values()]
    if leaf is not None:
        found += [("of the tensor", leaf.hooks), ("after accumulation", leaf.post_hooks)]
    return tuple(
        f"{getattr(hook, '__qualname__', type(hook).__name__)} ({kind})"
        for kind, hooks in found
        for hook in (hooks or {}).values()
    )
