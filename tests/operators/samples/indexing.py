"""Samples of indexing, gathering, scattering, masks and embeddings."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .shapes import on
from .table import Fixed, Make, Operation, Sample


def _keys(make: Make) -> list[tuple[tuple, Any]]:
    """Shapes and what to index them with."""
    rows = make.index(2, low=-3, high=3)
    return [
        ((3, 4), 1),
        ((3, 4), -1),
        ((3, 4), slice(0, 2)),
        ((3, 4), (slice(None), slice(1, None, 2))),
        ((3, 4), (None, 2, ...)),
        ((3, 4), (..., 0)),
        ((2, 3, 4), (1, slice(None), 2)),
        ((3,), ...),
        ((), None),
        ((), ...),
        ((3, 4), rows),
        ((3, 4), (rows, make.index(2, high=4))),
        ((3, 4), (slice(None), make.index(2, 2, high=4))),
        ((3, 2, 4), (make.index(2, high=3), slice(None), make.index(2, high=4))),
        ((3, 2, 4), (make.index(2, high=3), 1)),
        ((3, 4), (make.index(2, 1, high=3), make.index(3, high=4))),
        ((3, 4), make.mask(3, 4)),
        ((3, 4), (make.mask(3), slice(1, 3))),
        ((3, 4), (slice(None), make.mask(4))),
        ((3, 4), [0, 2]),
        ((3, 4), (True,)),
        ((3, 4), slice(2, 2)),
        ((0, 4), slice(None)),
        ((3, 4), Fixed(np.zeros(0, np.int64))),
    ]


def _reads(make: Make) -> list[Sample]:
    return [Sample(make(*shape), key) for shape, key in _keys(make)]


def _writes(make: Make) -> list[Sample]:
    """Assignments of a tensor in the shape of the part, of a 0-d one and of a number."""
    found = []
    for shape, key in _keys(make):
        target = make(*shape)
        part = target[_plain(key)]
        if _repeats(target, key):
            continue
        found.append(Sample(target, key, make(*part.shape)))
    found.append(Sample(make(3, 4), 1, make(4)))
    found.append(Sample(make(3, 4), slice(0, 2), make()))
    found.append(Sample(make(3, 4), (slice(None), 1), 2))
    found.append(Sample(make(3, 4), make.mask(3, 4), 1))
    found.append(Sample(make(3, 4), make.distinct(2, 3), make(1, 4)))
    return found


def _plain(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_plain(item) for item in key)
    return key.array if isinstance(key, Fixed) else key


def _repeats(target: np.ndarray, key: Any) -> bool:
    """Whether a key names an element twice, so that which of two values stays is undefined."""
    places = np.arange(target.size).reshape(target.shape)[_plain(key)]
    return np.unique(places).size < np.asarray(places).size


def _assign(lib: Any) -> Callable:
    def assigned(x: Any, key: Any, value: Any) -> Any:
        result = x.clone()
        result[key] = value
        return result

    return assigned


def _gathers(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), 0, make.index(2, 4, high=3)),
        Sample(make(3, 4), 1, make.index(3, 2, high=4)),
        Sample(make(3, 4), -1, make.index(2, 5, high=4)),
        Sample(make(3), 0, make.index(4, high=3)),
        Sample(make(), 0, make.index(high=1)),
        Sample(make(3, 4), 0, make.index(0, 4, high=3)),
    ]


def _along(make: Make, count: int, high: int, width: int) -> Fixed:
    """Indices that name every place at most once along the first dimension."""
    columns = [make.distinct(count, high).array for _ in range(width)]
    return Fixed(np.stack(columns, 1))


def _scatters(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), 0, _along(make, 2, 3, 4), make(2, 4)),
        Sample(make(3, 4), 0, _along(make, 2, 3, 2), make(3, 4)),
        Sample(make(3, 4), 0, _along(make, 2, 3, 4), 1.5 if make.kind == "real" else 2),
        Sample(make(4), 0, make.distinct(2, 4), make(2)),
        Sample(make(3, 4), 1, Fixed(np.zeros((3, 0), np.int64)), make(3, 0)),
    ]


def _scatter_sums(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), 0, make.index(5, 4, high=3), make(5, 4)),
        Sample(make(3, 4), 1, make.index(2, 3, high=4), make(3, 4)),
        Sample(make(4), 0, make.index(6, high=4), make(6)),
        Sample(make(), 0, make.index(high=1), make()),
    ]


def _scatter_reductions(make: Make) -> list[Sample]:
    kinds = (
        ("sum", "prod", "mean")
        if make.kind == "complex"
        else ("sum", "prod", "mean", "amax", "amin")
    )
    found = []
    for reduce in kinds:
        for include in (True, False):
            found.append(
                Sample(
                    make.apart(3, 2),
                    0,
                    make.index(4, 2, high=3),
                    make.apart(4, 2),
                    reduce,
                    include_self=include,
                )
            )
    return found  # fmt: skip


def _selections(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), 0, make.index(4, high=3)),
        Sample(make(3, 4), -1, make.index(2, high=4)),
        Sample(make(), 0, make.index(1, high=1)),
        Sample(make(3, 4), 0, make.index(0, high=3)),
    ]


def _additions(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), 0, make.index(5, high=3), make(5, 4)),
        Sample(make(3, 4), 1, make.index(2, high=4), make(3, 2), alpha=2),
        Sample(make(3), 0, make.index(2, high=3), make(2)),
        Sample(make(), 0, make.index(1, high=1), make()),
    ]


def _slice_copies(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), 0, make.distinct(2, 3), make(2, 4)),
        Sample(make(3, 4), 1, make.distinct(3, 4), make(3, 3)),
    ]


def _slice_fills(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), 0, make.index(2, high=3), 2),
        Sample(make(3, 4), 1, make.distinct(2, 4), make()),
    ]


def _mask_fills(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make.mask(3, 4), 2),
        Sample(make(3, 4), make.mask(4), make()),
        Sample(make(3, 4), make.mask(3, 1), 0),
        Sample(make(), make.mask(), 1),
        Sample(make(0, 2), make.mask(0, 2), 1),
    ]


def _mask_selections(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make.mask(3, 4)),
        Sample(make(3, 4), make.mask(4)),
        Sample(make(4), make.mask(2, 4)),
        Sample(make(0, 2), make.mask(0, 2)),
    ]


def _mask_scatters(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make.mask(3, 4), make(12)),
        Sample(make(3, 4), make.mask(4), make(3, 5)),
    ]


def _puts(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make.distinct(3, 12), make(3)),
        Sample(make(3, 4), make.index(2, 2, low=-12, high=12), make(2, 2), True),
    ]


def _index_puts(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), (make.distinct(2, 3),), make(2, 4)),
        Sample(make(3, 4), (make.distinct(2, 3), make.distinct(2, 4)), make(2)),
        Sample(make(3, 4), (make.index(4, high=3),), make(4), True),
        Sample(make(3, 4), (make.mask(3, 4),), make()),
        Sample(make(3, 4), (make.mask(3),), make(4), True),
    ]


def _takes_along(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 4), make.index(3, 2, high=4), 1),
        Sample(make(3, 4), make.index(1, 4, high=3), dim=0),
        Sample(make(3, 4), make.index(5, high=12)),
    ]


def _rows(make: Make) -> list[Sample]:
    return [
        Sample(make.index(2, 3, high=4), make(4, 2)),
        Sample(make.index(high=4), make(4, 2)),
        Sample(make.index(0, high=4), make(4, 2)),
    ]


def _sparse_values(make: Make, *shape: int) -> np.ndarray:
    return make(*shape) * make.mask(*shape).array


def _classes(make: Make) -> list[Sample]:
    return [Sample(make.index(2, 3, high=4), 5), Sample(make.index(3, high=4), num_classes=4)]


_VALUES = "the values decide the shape of the result"
INDEXING = [
    Operation("Tensor.__getitem__", _reads, path=lambda lib: operator.getitem,
              covers=("index", "slice", "select", "alias"), method=False,
              needs_data="a mask decides the shape"),
    Operation("Tensor.__setitem__", _writes, path=_assign, covers=("index_put",), method=False),
    Operation("index_put", _index_puts),
    Operation("gather", _gathers, out=True),
    Operation("scatter", _scatters, out=True),
    Operation("scatter_add", _scatter_sums, out=True),
    Operation("scatter_reduce", _scatter_reductions, out=True, half_scale=2),
    Operation("index_select", _selections, out=True),
    Operation("index_add", _additions, out=True),
    Operation("index_copy", _slice_copies, out=True),
    Operation("index_fill", _slice_fills),
    Operation("masked_fill", _mask_fills),
    Operation("masked_select", _mask_selections, out=True, needs_data=_VALUES),
    Operation("masked_scatter", _mask_scatters),
    Operation("take", lambda make: [Sample(make(3, 4), make.index(2, 2, low=-12, high=12)),
                                    Sample(make(), make.index(2, high=1)),
                                    Sample(make(3), make.index(0, high=3))], out=True),
    Operation("put", _puts),
    Operation("take_along_dim", _takes_along, out=True),
    Operation("argwhere", lambda make: [Sample(_sparse_values(make, 2, 3)), Sample(make())],
              differentiable=False, needs_data=_VALUES),
    Operation("nonzero",
              lambda make: [Sample(_sparse_values(make, 2, 3)), Sample(make()),
                            Sample(_sparse_values(make, 2, 3), as_tuple=True)],
              covers=("argwhere",), differentiable=False, needs_data=_VALUES),
    Operation("where of one", lambda make: [Sample(make.mask(2, 3))], path="where",
              differentiable=False, method=False, needs_data=_VALUES),
    Operation("nn.functional.one_hot", _classes, differentiable=False, method=False,
              needs_data="the values are checked"),
    Operation("nn.functional.embedding", _rows, integer=False, method=False),
    Operation("embedding", lambda make: [Sample(make(4, 2), make.index(2, 3, high=4))],
              integer=False, method=False),
    Operation(
        "embedding with padding",
        lambda make: [Sample(make.index(9, high=4), make(4, 2), padding_idx=1),
                      Sample(make.index(9, high=4), make(4, 2), scale_grad_by_freq=True)],
        path="nn.functional.embedding", integer=False, method=False, true_gradient=False,
    ),
    Operation("slice of a dimension", on(((3, 4), slice(1, 3))),
              path=lambda lib: operator.getitem, method=False),
]  # fmt: skip
