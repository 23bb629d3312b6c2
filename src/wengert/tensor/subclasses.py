"""Subclasses of Tensor: how instances are made."""

from __future__ import annotations

from typing import Any

from ..backends.numpy import dense_strides
from ..core import dtypes
from ..core.arrays import made_here, wrapper_array
from ..core.collector import collector
from ..core.devices import as_device
from ..core.layouts import check_options, keeps_order
from ..core.loading import load
from ..core.registry import operator_named
from ..core.size import sequence_size
from ..core.state import overriding, thread_state
from ..core.tensor import Tensor, set_fields, wrap
from ..creation.factories import legacy_array
from ..dispatch.torch_dispatch import overrides_dispatch
from ..dispatch.torch_function import PLAIN, override_method
from ..tape.leaves import require_grad
from ..tape.tangents import set_tangent, tangent_of

_new = Tensor.__new__


def bare(cls: type) -> Any:
    """An instance without an array, past every `__new__` and `__init__` that a subclass has."""
    return _new(cls)


def tensor_new(cls: type, *args: Any, **options: Any) -> Any:
    """``Tensor.__new__``: an instance from data or sizes.

    There is no `__init__` of Tensor, so a subclass whose `__new__` or `__init__` takes more
    arguments need not keep them from it, and the `__init__` of its other bases is found.
    """
    out = bare(cls)
    fill(out, args, options)
    return out


def fill(out: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Give an instance without an array the data, the sizes or the tensor that it is made from."""
    device = options.pop("device", None)
    given = _by_keyword(args, options) if options else args
    if len(given) == 1 and device is None and isinstance(given[0], Tensor):
        become_view(out, given[0])
    else:
        Tensor.adopt(out, made_here(wrap(legacy_array(given, device))))


def _by_keyword(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """What is given as ``data=``, ``size=`` or ``other=``, as positional arguments."""
    ((name, value),) = options.items() if len(options) == 1 and not args else ((None, None),)
    if name == "size" and isinstance(value, (tuple, list)):
        return tuple(value)
    if name == "data" and not isinstance(value, (int, Tensor)):
        return (value,)
    if name == "other" and isinstance(value, Tensor):
        return (value,)
    raise _wrong_combination(args, options)


def _wrong_combination(args: tuple[Any, ...], options: dict[str, Any]) -> TypeError:
    kinds = [type(each).__name__ for each in args]
    kinds += [f"{name}={type(value).__name__}" for name, value in options.items()]
    return TypeError(
        f"new() received an invalid combination of arguments - got ({', '.join(kinds)}), but "
        "expected data, sizes or a tensor, and perhaps device=...; a subclass that takes "
        "other keywords needs a __new__ that does not pass them on"
    )


def check_subclass(cls: Any, function: str) -> None:
    """Refuse what is no class of tensors."""
    if not isinstance(cls, type):
        raise TypeError(
            f"{function}(): argument 'cls' must be a class, not {type(cls).__name__}"
        )
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            f"possible: {cls.__name__} does not"
        )


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """A new leaf of type `cls` around the memory of `data`."""
    check_subclass(cls, "_make_subclass")
    if not isinstance(data, Tensor):
        raise TypeError(
            f"_make_subclass(): argument 'data' must be Tensor, not {type(data).__name__}"
        )
    out = bare(cls)
    Tensor.adopt(out, data.detach())
    set_fields(out, needs_grad=require_grad)
    return out


def make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    *,
    storage_size: int | None = None,
) -> Any:
    """A new leaf of type `cls` without memory: a size, strides, a dtype and a device.

    The class handles every operator on it in `__torch_dispatch__`, and knows what it stands for.
    """
    check_subclass(cls, "_make_wrapper_subclass")
    if not overrides_dispatch(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if dispatch_sizes_strides_policy or dispatch_device or dispatch_layout:
        raise NotImplementedError(
            "_make_wrapper_subclass(): sizes, strides, devices and layouts are what is given here; "
            "that the class computes them is not supported"
        )
    if storage_size is not None:
        raise NotImplementedError("_make_wrapper_subclass(): a wrapper has no storage")
    check_options(layout, pin_memory)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    shape = sequence_size("_make_wrapper_subclass", size)
    if strides is None:
        if storage_offset:
            raise RuntimeError("setting storage offset without stride not supported")
        in_bytes = dense_strides(shape, tuple(range(len(shape), 0, -1)), kind.itemsize)
    else:
        if len(strides) != len(shape):
            raise RuntimeError(
                f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
                f"({len(strides)})"
            )
        in_bytes = tuple([int(step) * kind.itemsize for step in strides])
    keeps_order(memory_format)
    array = wrapper_array(shape, in_bytes, kind.numpy, as_device(device), storage_offset or 0)
    out = bare(cls)
    Tensor.adopt(out, wrap(array))
    if requires_grad:
        require_grad(out)
    return out


def as_subclass(self: Tensor, cls: type) -> Any:
    """This tensor as an instance of `cls`: a view of it, which gradients flow through."""
    check_subclass(cls, "as_subclass")
    return retyped(_view_of(self), cls)


def become_view(out: Any, tensor: Tensor) -> None:
    """Make a new instance of a class, which has no array yet, a view of a tensor."""
    _take_over(out, _view_of(tensor))


def _view_of(tensor: Tensor) -> Tensor:
    alias = operator_named("alias")
    state = thread_state()
    disabled, state.function_disabled = state.function_disabled, 2
    try:
        return alias.call1(tensor)
    finally:
        state.function_disabled = disabled


def retyped(source: Tensor, cls: type) -> Any:
    """A fresh tensor, which nobody else holds, as an instance of `cls` in its place.

    What a class that handles operators has made stays what it is.
    """
    if type(source) is cls or overrides_dispatch(type(source)):
        return source
    out = bare(cls)
    _take_over(out, source)
    return out


def _take_over(out: Any, source: Tensor) -> None:
    """Give an instance without an array everything that a fresh tensor has."""
    Tensor.adopt(out, source)
    set_fields(
        out, needs_grad=source.needs_grad, node=source.node, output_index=source.output_index,
        view_meta=source.view_meta,
    )  # fmt: skip
    if thread_state().dual_level >= 0:
        tangent = tangent_of(source)
        if tangent is not None:
            set_tangent(out, tangent)
    if out.node is not None and out.node.shown:
        collector.show(out)


def text_of(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """``Tensor.__repr__`` as subclasses call it, which may say what their instances contain."""
    given = {} if tensor_contents is None else {"tensor_contents": tensor_contents}
    if overriding.possible:
        found = override_method("__repr__", (self,), given)
        if found is not PLAIN:
            return found
    return load("tensor.printing").tensor_repr(self, tensor_contents)


text_of.__name__, text_of.__qualname__ = "__repr__", "Tensor.__repr__"

METHODS: dict[str, Any] = {
    "__repr__": text_of,
    "__new__": staticmethod(tensor_new),
    "as_subclass": as_subclass,
    "_make_subclass": staticmethod(make_subclass),
    "_make_wrapper_subclass": staticmethod(make_wrapper_subclass),
}
