"""The functions by which pickles make tensors again, with the arguments that PyTorch gives them.

Each checks all of its arguments, since a forged file may call it with anything.
"""

from __future__ import annotations

from typing import Any

from ..backends import meta
from ..core import dtypes
from ..core.layouts import layout, strided
from ..core.tensor import FRESH, Tensor, set_fields, wrap
from ..nn.parameter import Parameter
from ..operators.complex import conj_physical
from ..operators.pointwise import neg
from ..tensor.subclasses import bare, make_wrapper_subclass
from .storage import Storage, check_geometry, tensor_in


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor that looks at a storage of its own type."""
    dtype = storage.dtype if isinstance(storage, Storage) else dtypes.uint8
    return tensor_in(storage, dtype, offset, size, stride)


def rebuild_tensor_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any,
    metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A leaf that looks at a storage of its own type."""
    tensor = rebuild_tensor(storage, offset, size, stride)
    return _as_leaf(_described(tensor, storage, metadata), requires_grad, hooks)


def rebuild_tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any,
    dtype: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A leaf that looks at a storage of bytes as elements of `dtype`."""
    tensor = tensor_in(storage, _checked_dtype(dtype), offset, size, stride)
    return _as_leaf(_described(tensor, storage, metadata), requires_grad, hooks)


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A leaf without memory."""
    check_geometry(size, stride)
    kind = _checked_dtype(dtype)
    in_bytes = tuple([s * kind.itemsize for s in stride])
    return _as_leaf(wrap(meta.of_strides(size, in_bytes, kind.numpy)), requires_grad, {})


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> Any:
    """A parameter around the memory of a tensor."""
    _check_leaf(data, requires_grad, hooks)
    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    """A parameter with attributes that a program has set."""
    return set_state(rebuild_parameter(data, requires_grad, hooks), state)


def rebuild_from_type(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or one with attributes that a program has set."""
    if not any(function is each for each in TENSOR_FUNCTIONS):
        raise ValueError("a tensor of a subclass is made by a function that makes no tensors")
    if not (isinstance(kind, type) and issubclass(kind, Tensor)):
        raise ValueError("the class of a tensor is no subclass of Tensor")
    tensor = function(*arguments)
    if type(tensor) is not kind:
        made = bare(kind)
        made.adopt(tensor)
        set_fields(made, needs_grad=tensor.requires_grad)
        tensor = made
    own = getattr(kind, "__setstate__", None)
    if own is not None and own is not getattr(Tensor, "__setstate__", None):
        tensor.__setstate__(state)
        return tensor
    return set_state(tensor, state)


def rebuild_wrapper_subclass(
    kind: Any, dtype: Any, size: Any, stride: Any, offset: Any, layout: Any, device: Any,
    requires_grad: Any,
) -> Tensor:  # fmt: skip
    """A tensor of a subclass without memory of its own; what it stands for is in its attributes."""
    check_geometry(size, stride)
    made: Tensor = make_wrapper_subclass(
        kind, size, stride, offset, None, _checked_dtype(dtype), layout, device,
        requires_grad=requires_grad,
    )  # fmt: skip
    return made


def layout_named(name: Any) -> layout:
    """The layout of that name; there is one."""
    if name != "torch.strided":
        raise ValueError("only dense tensors are supported, and the file names another layout")
    return strided


def set_state(tensor: Any, state: Any) -> Any:
    """Set the attributes that a tensor was saved with, none of which may change what it is."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, dict):
            raise ValueError("the attributes of a tensor are no dictionary")
        for name, value in part.items():
            if type(name) is not str or _is_own(name):
                raise ValueError("a tensor was saved with an attribute that would change it")
            setattr(tensor, name, value)
    return tensor


def _is_own(name: str) -> bool:
    """Whether all tensors have an attribute of this name that can be set."""
    return (
        name in FRESH or name.startswith("__") or hasattr(getattr(Tensor, name, None), "__set__")
    )


def _checked_dtype(given: Any) -> dtypes.dtype:
    if type(given) is not dtypes.dtype:
        raise ValueError(f"the dtype of a tensor is a {type(given).__name__}")
    return given


def _check_leaf(tensor: Any, requires_grad: Any, hooks: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise ValueError(f"a parameter has a {type(tensor).__name__} in place of a tensor")
    if type(requires_grad) is not bool:
        raise ValueError("requires_grad of a tensor is neither True nor False")
    if hooks:
        raise ValueError("a tensor was saved with hooks, which is not supported")
    if requires_grad and not dtypes.is_differentiable(tensor.array.dtype):
        raise ValueError("only Tensors of floating point and complex dtype can require gradients")


def _as_leaf(tensor: Tensor, requires_grad: Any, hooks: Any) -> Tensor:
    _check_leaf(tensor, requires_grad, hooks)
    set_fields(tensor, needs_grad=requires_grad)
    return tensor


def _described(tensor: Tensor, storage: Storage, metadata: Any) -> Tensor:
    """The tensor that lazy conjugation and negation stand for: here they make a copy."""
    for name, meant in (metadata or {}).items():
        if name not in ("conj", "neg") or type(meant) is not bool:
            raise ValueError("a tensor is described by metadata that is not known")
        if meant:
            if tensor.array.nbytes > storage.nbytes():  # a copy could take all memory
                raise ValueError("an expanded tensor is conjugated or negated lazily")
            tensor = wrap((conj_physical if name == "conj" else neg)(tensor).array)
    return tensor


TENSOR_FUNCTIONS = (
    rebuild_tensor, rebuild_tensor_v2, rebuild_tensor_v3, rebuild_meta_tensor, rebuild_parameter,
    rebuild_parameter_with_state, rebuild_wrapper_subclass,
)  # fmt: skip
