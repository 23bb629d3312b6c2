"""Parameters: leaf tensors that a model owns and an optimizer changes."""

from __future__ import annotations

from typing import Any

from ..conversion import copy_array
from ..creation import empty
from ..pickling import check_storage
from ..tensor import Tensor, wrap

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A leaf tensor that shares the memory of `data` and by default requires gradients."""

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter(): argument 'data' must be Tensor, not {type(data).__name__}"
            )
        self.adopt(data)
        if requires_grad:
            self.requires_grad = True

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is None:
            check_storage(self)
            known = type(self)(wrap(copy_array(self.array)), self.requires_grad)
            memo[id(self)] = known
        return known
