"""What a recorded graph holds for its backward, as data: one row for each saved tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..core.dtypes import dtype, from_numpy
from ..core.tensor import Tensor
from ..tape.blame import line_number
from ..tape.node import AccumulateGrad, Node, edge_node, edges, kept_items
from ..tape.saved import SavedVariable


class Line(NamedTuple):
    """A line of a program, and the function it stands in."""

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}, in {self.function}"


class Row(NamedTuple):
    """One saved tensor: the node that saved it, its name there, and the bytes it keeps alive.

    `bytes` is the size of the tensor. `held` is the size of its memory if this row is the first
    that needs it and the graph alone keeps it: 0 for parameters, for what was given as known, and
    for memory that an earlier row holds. A view holds all of the memory it is a part of.
    """

    node: str
    name: str
    shape: tuple[int, ...]
    dtype: dtype
    bytes: int
    held: int
    line: Line | None
    sequence: int


class Memory(tuple[Row, ...]):
    """The rows of a graph in the order in which the program saved them."""

    __slots__ = ()

    @property
    def total(self) -> int:
        """Bytes that are kept for backward alone."""
        return sum(row.held for row in self)

    def by_line(self) -> dict[Line | None, int]:
        """Bytes held by each line of the program, the largest first."""
        sums: dict[Line | None, int] = {}
        for row in self:
            sums[row.line] = sums.get(row.line, 0) + row.held
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        lines = self.by_line().items()
        rows = [f"{held:>14,}  {line or 'unknown'}" for line, held in lines if held]
        return "\n".join([*rows, f"{self.total:>14,}  bytes in total"])


def memory(loss: Tensor | Iterable[Tensor], known: Iterable[Tensor] = ()) -> Memory:
    """What the graph behind one or several tensors holds for backward; `known` is not counted.

    >>> import wengert
    >>> x = wengert.ones(1000, requires_grad=True)
    >>> table = wengert.autograd.graph.memory(x.exp().sum())
    >>> [(row.node, row.name, row.held) for row in table]
    [('ExpBackward0', 'result', 4000)]
    """
    nodes = recorded_nodes((loss,) if isinstance(loss, Tensor) else loss)
    seen = {id(memory_of(t.array)) for t in known}
    seen |= {id(memory_of(n.variable.array)) for n in nodes if isinstance(n, AccumulateGrad)}
    rows = []
    for node in nodes:
        for name, array in saved_arrays(node):
            whole = memory_of(array)
            held = 0 if id(whole) in seen else whole.nbytes
            seen.add(id(whole))
            rows.append(
                Row(
                    node.name(), name, tuple(array.shape), from_numpy(array.dtype), array.nbytes,
                    held, line_of(node), node.sequence,
                )  # fmt: skip
            )
    return Memory(rows)


def recorded_nodes(results: Iterable[Tensor]) -> list[Node]:
    """All nodes behind some tensors, leaves' sinks included, in the order they were recorded."""
    pending = [node for node in map(edge_node, results) if node is not None]
    found = dict.fromkeys(pending)
    while pending:
        for following in edges(pending.pop()):
            if following is not None and following not in found:
                found[following] = None
                pending.append(following)
    return sorted(found, key=lambda node: node.sequence)


def line_of(node: Node) -> Line | None:
    """The line of the program that recorded a node, None if no Python code did."""
    code = node.code
    if code is None:
        return None
    return Line(code.co_filename, line_number(code, node.lasti), code.co_qualname)


def saved_arrays(node: Node) -> Iterator[tuple[str, Any]]:
    """The name and the array of each tensor that a node holds, packed ones included."""
    names = node.plan.saved_names
    for index, item in enumerate(kept_items(node)):
        name = names[index] if index < len(names) else f"saved_tensors[{index}]"
        for array in _arrays_in(item):
            yield name, array


def _arrays_in(item: Any) -> Iterator[Any]:
    """The arrays of a saved value; what a pack hook has made is searched for tensors."""
    if isinstance(item, SavedVariable):
        if item.hooks is not None:
            yield from _arrays_in(item.packed)
        else:
            yield item.array if item.is_output else item.tensor.array
    elif isinstance(item, Tensor):
        yield item.array
    elif isinstance(item, tuple | list):
        for part in item:
            yield from _arrays_in(part)


def memory_of(array: Any) -> Any:
    """The array that owns the memory which `array` is a view of."""
    while True:
        base = getattr(array, "base", None)
        if type(base) is not type(array):
            return array
        array = base
