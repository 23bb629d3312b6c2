"""Bases whose elements share memory: a change through a view is one of several elements at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.backend import has_elements
from ..backends.geometry import may_overlap, offset_of, span, strided
from ..core.arrays import LevelArray
from ..core.tensor import Tensor, wrap


class SharedPlaces:
    """Where in memory the elements of a base and of a view of it are.

    >>> import wengert
    >>> rows = (wengert.ones(4) * 1).as_strided_((2, 3), (1, 1))
    >>> rows[1].zero_()
    tensor([0., 0., 0.])
    >>> rows[0]
    tensor([1., 0., 0.])
    """

    def __init__(self, base: Any, view: Any) -> None:
        item = base.itemsize
        begins = offset_of(view) - offset_of(base)
        before = max(-begins, 0)
        ends = [span(a.shape, tuple([s // item for s in a.strides])) for a in (base, view)]
        self.count = before + max(ends[0], begins + ends[1])
        numbers = np.arange(self.count)
        places, own = (
            strided(numbers, a.shape, tuple([s // item * numbers.itemsize for s in a.strides]),
                    start * numbers.itemsize)
            for a, start in ((base, before), (view, before + begins))
        )  # fmt: skip
        first = np.full(self.count, -1)
        first[places.ravel()[::-1]] = np.arange(places.size)[::-1]
        there = first[own.ravel()]
        self.shown = wrap(np.flatnonzero(there >= 0))  # of the view, which may see more memory
        self.first = wrap(there[there >= 0])
        self.own, self.shape = wrap(own.flatten()), own.shape
        self.places = wrap(places.flatten())
        self.changed = wrap(np.isin(places, own))

    def part(self, grads: Tensor) -> Tensor:
        """The gradient of the view: what arrives at all elements in its memory."""
        memory = grads.new_zeros(self.count).index_add(0, self.places, grads.reshape(-1))
        return memory.index_select(0, self.own).reshape(self.shape)

    def with_part(self, grads: Tensor, new: Tensor | None) -> Tensor:
        """The gradient of the base before the change; one element stands for all in its place."""
        rest = grads.masked_fill(self.changed, 0)
        if new is None:
            return rest
        shown = new.reshape(-1).index_select(0, self.shown).to(rest.dtype)
        return rest.reshape(-1).index_add(0, self.first, shown).reshape(rest.array.shape)


def shared_places(base: Any, view: Any) -> SharedPlaces | None:
    """Of the arrays of a base and a view; None where no two elements of the base share memory."""
    if not may_overlap(base.shape, base.strides) or base.dtype != view.dtype:
        return None
    return SharedPlaces(base, view) if type(base) is LevelArray or has_elements(base) else None
