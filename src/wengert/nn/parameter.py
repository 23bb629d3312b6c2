"""What a model owns: parameters, which an optimizer changes, and buffers, which it does not."""

from __future__ import annotations

from typing import Any, ClassVar

from ..backends.casting import copy_array
from ..core.arrays import unmarked
from ..core.tensor import Tensor, TensorMeta, wrap
from ..creation.factories import empty
from ..dispatch.torch_function import disabled_torch_function_impl
from ..tensor.pickling import check_storage
from ..tensor.subclasses import make_subclass

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip


class ParameterMeta(TensorMeta):
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


class BufferMeta(TensorMeta):
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


# Without a shape ----------------------------------------------------------------------------------

#: What may be done with a tensor whose shape is not known, beside reading and setting attributes.
_ALLOWED = frozenset((
    "__get__", "__hash__", "__set__", "char", "copy_", "cpu", "cuda", "double", "float",
    "get_device", "half", "int", "is_complex", "is_floating_point", "long", "short", "size", "to",
))  # fmt: skip

_CASTS = frozenset(("char", "cpu", "cuda", "double", "float", "half", "int", "long", "short", "to"))


class UninitializedTensorMixin:
    """What parameters and buffers have in common whose shape is not known yet."""

    cls_to_become: ClassVar[type]

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of a shape, whose elements have no particular values."""
        known = self.data
        device = known.device if device is None else device
        self.__class__ = self.cls_to_become
        self.data = empty(shape, device=device, dtype=dtype or known.dtype)

    @property
    def shape(self) -> Any:
        """Refused: not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        """Refused: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self: Any, protocol: Any) -> tuple:
        return type(self), (self.requires_grad, self.data.device, self.data.dtype)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Refuse whatever needs elements."""
        if getattr(func, "__name__", "") in _ALLOWED:
            return disabled_torch_function_impl(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` "
            "with a dummy batch to initialize the parameters before calling torch functions"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet; `materialize` gives it one."""

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        made = make_subclass(cls, empty(0, device=device, dtype=dtype))
        made.requires_grad = requires_grad
        return made


class _MaterializedBuffer(Tensor):
    """A buffer that had no shape before; a tensor like any other."""

    __torch_function__ = disabled_torch_function_impl


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet; `materialize` gives it one."""

    cls_to_become = _MaterializedBuffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        made = make_subclass(cls, empty(0, device=device, dtype=dtype))
        made.requires_grad = requires_grad
        made.persistent = persistent
        made._is_buffer = True
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Refuse whatever needs elements; what is cast or moved waits for a shape as before."""
        result = super().__torch_function__(func, types, args, kwargs)
        if type(result) is Tensor and getattr(func, "__name__", "") in _CASTS:
            waiting = args[0]
            return cls(False, result.device, result.dtype, waiting.persistent)
        return result


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
