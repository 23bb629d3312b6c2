"""A kernel on arrays of any class: what `Declaration.run_kernel` does if they are not NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import broadcast_error
from .backend import Backend, backend_of, is_array
from .layout import laid_out, with_steps
from .placement import of_array, transfer


def run_on(like: Any, operator: Any, args: tuple) -> Any:
    """The kernel of an operator on arguments of which `like` is an array of another class."""
    if operator.moves_operands:
        args = (args[0], *_moved(args[1:], of_array(args[0])))
        if type(args[0]) is not type(like):
            return operator.run_kernel(args)
    backend = backend_of(like)
    if operator.list_positions and type(args[0]) is np.ndarray:
        backend = backend_of(args[0])  # of the tensor that is indexed, not of the indices
    args = gathered(backend, operator, args, like)
    by_shape = backend.shape_only and operator.meta_rule is not None
    if operator.is_view and not by_shape:
        first = args[0] if backend.shape_only or args[0].size else with_steps(args[0])
        out = operator.kernel(backend.xp, first, *args[1:])
        return backend.settled(operator, args, out)
    token = backend.silence()
    try:
        if by_shape:
            return backend.settled(operator, args, operator.meta_rule(*args))
        if operator.dtype_rule is not None:
            args = operator.promoted(args)
        out = backend.as_result(backend.compute(operator, args), like)
    except (NotImplementedError, AttributeError) as error:
        if backend.shape_only or not _is_lacking(backend, error):
            raise
        raise NotImplementedError(
            f"{operator.name}() is not supported on arrays of class "
            f"{backend.array_class.__name__}: {error}"
        ) from error
    except ValueError as error:
        raise (
            broadcast_error(operator.name, args, error) if operator.broadcasts else error
        ) from None
    finally:
        backend.restore(token)
    if operator.broadcasts and operator.dtype_rule is not None and not backend.shape_only:
        return _in_order(out, operator.leading(args))
    return backend.settled(operator, args, out)


def _is_lacking(backend: Backend, error: Exception) -> bool:
    """Whether the namespace or the arrays lack a function, or what was asked of one."""
    if isinstance(error, AttributeError):
        return error.obj is backend.xp or isinstance(error.obj, backend.array_class)
    return True


def gathered(backend: Backend, operator: Any, args: tuple, like: Any) -> tuple:
    """The arguments as arrays on the device of one of them; an error for tensors on another.

    Single elements and lists of indices may be in the memory of the CPU, and are copied.
    """
    found = []
    for value, argument in zip(args, operator.schema.arguments, strict=True):
        if type(value) is list:
            indices = argument.type == "Tensor?[]"
            found.append([_beside(backend, operator.name, v, like, indices) for v in value])
        else:
            found.append(_beside(backend, operator.name, value, like, False))
    return tuple(found)


def _beside(backend: Backend, name: str, value: Any, like: Any, is_index: bool) -> Any:
    if not is_array(value) or backend_of(value) is backend:
        return value
    if type(value) is np.ndarray and value.ndim == 0:
        return backend.number(value, value.dtype, like)
    if is_index:
        return _index_beside(backend, value, like)
    raise RuntimeError(
        f"{name.lstrip('_')}(): Expected all tensors to be on the same device, but found at least "
        f"two devices, {backend.device_type} and {backend_of(value).device_type}!"
    )


def _index_beside(backend: Backend, value: Any, like: Any) -> Any:
    """Indices on the device of the indexed tensor, to which those of the CPU are copied."""
    if type(value) is not np.ndarray:
        raise RuntimeError(
            "indices should be on the same device as the indexed tensor or on the cpu, but got "
            f"indices on {backend_of(value).device_type} for a tensor on {backend.device_type}"
        )
    return value if backend.shape_only else backend.from_numpy(value, backend.device_of(like))


def _moved(args: tuple, place: Any) -> list:
    return [transfer(value, place) if is_array(value) else value for value in args]


def _in_order(out: Any, leading: tuple) -> Any:
    """Results laid out in memory as the operands are."""
    if type(out) is tuple:
        return tuple([laid_out(o, leading) for o in out])
    return laid_out(out, leading)
