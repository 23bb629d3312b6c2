"""What a model owns: parameters, which an optimizer changes, and buffers, which it does not."""

from __future__ import annotations

from typing import Any

from ..backends.casting import copy_array
from ..core.arrays import unmarked
from ..core.tensor import Tensor, wrap
from ..creation.factories import empty
from ..dispatch.torch_function import disabled_torch_function_impl
from ..tensor.pickling import check_storage
from ..tensor.subclasses import make_subclass

__all__ = ["Buffer", "Parameter"]


class ParameterMeta(type):
    """Lets an instance of another subclass of Tensor be a parameter too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=ParameterMeta):
    """A leaf tensor that shares the memory of `data` and by default requires gradients.

    An instance of another subclass stays what it is: it becomes a parameter of its own class.
    """

    __torch_function__ = disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter(): argument 'data' must be Tensor, not {type(data).__name__}"
            )
        if type(data) is Tensor or issubclass(type(data), Parameter):
            made = make_subclass(cls, data)
        else:
            made = data.detach()
            if type(made) is not type(data):
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                    "that detach() returns an instance of the same type, but return type "
                    f"{type(made).__name__} was found instead"
                )
            made._is_param = True
        made.requires_grad = bool(requires_grad)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is None:
            check_storage(self)
            known = type(self)(wrap(copy_array(unmarked(self.array))), self.requires_grad)
            memo[id(self)] = known
        return known


class BufferMeta(type):
    """Lets an instance of another subclass of Tensor be a buffer too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return (
            cls is Buffer
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=BufferMeta):
    """A tensor that a module registers as a buffer when it becomes an attribute of one.

    It shares the memory of `data` and is a tensor of the same class.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made
