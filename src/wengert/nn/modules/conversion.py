"""Changing all tensors of a module: device, type, whether they are trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ...autograd.grad_mode import no_grad
from ...core.devices import as_device
from ...core.devices import device as device_class
from ...core.dtypes import dtype as dtype_class
from ...core.settings import get_overwrite_module_params_on_conversion
from ...core.tensor import Tensor
from ...creation.factories import empty_like
from ..parameter import Parameter
from .registration import Registry


class Convertible(Registry):
    """What applies a function to every parameter, gradient and buffer of a module."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace each tensor by `fn` of it; parameters stay the same objects where they can."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = _applied(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Call `fn` with every module below this one and then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast the tensors in place, by `(device, dtype)`, `(dtype)` or `(tensor)`.

        A type applies to floating point and complex tensors alone.
        """
        device, dtype, non_blocking, memory_format = _parsed(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(t: Tensor) -> Tensor:
            floating = t.is_floating_point() or t.is_complex()
            options: dict[str, Any] = {"non_blocking": non_blocking}
            if memory_format is not None and t.ndim in (4, 5):
                options["memory_format"] = memory_format
            return t.to(device=device, dtype=dtype if floating else None, **options)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move the tensors to a device without their values."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers, also those of whole numbers."""
        return self._apply(lambda t: t.type(dst_type))

    def _floating(self, cast: Callable[[Tensor], Tensor]) -> Self:
        return self._apply(lambda t: cast(t) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating point tensors to float32."""
        return self._floating(lambda t: t.float())

    def double(self) -> Self:
        """Cast floating point tensors to float64."""
        return self._floating(lambda t: t.double())

    def half(self) -> Self:
        """Cast floating point tensors to float16."""
        return self._floating(lambda t: t.half())

    def bfloat16(self) -> Self:
        """Cast floating point tensors to bfloat16."""
        return self._floating(lambda t: t.bfloat16())

    def cpu(self) -> Self:
        """Move the tensors to the processor's memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move the tensors to a GPU, where there is one."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device: Any = None) -> Self:
        """Move the tensors to an IPU, where there is one."""
        return self._moved("ipu", device)

    def xpu(self, device: Any = None) -> Self:
        """Move the tensors to an XPU, where there is one."""
        return self._moved("xpu", device)

    def mtia(self, device: Any = None) -> Self:
        """Move the tensors to an MTIA device, where there is one."""
        return self._moved("mtia", device)

    def _moved(self, kind: str, device: Any) -> Self:
        place = kind if device is None else f"{kind}:{device}" if type(device) is int else device
        return self._apply(lambda t: t.to(place))

    def share_memory(self) -> Self:
        """Refused: tensors do not move to memory that processes share."""
        raise NotImplementedError("share_memory() is not supported: tensors cannot share memory")

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say of all parameters whether they are trained."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with `set_to_none=False` make them zero."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if parameter.grad.grad_fn is not None:
                parameter.grad.detach_()
            else:
                parameter.grad.requires_grad_(False)
            parameter.grad.zero_()


def _applied(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
    gradient = parameter.grad
    with no_grad():
        changed = fn(parameter)
        changed_gradient = None if gradient is None else fn(gradient)
    kept = not get_overwrite_module_params_on_conversion()
    if kept and changed.device.type == parameter.device.type:
        if gradient is not None:
            parameter.grad = None  # a gradient must have the type of its tensor at all times
        parameter.data = changed
    else:
        parameter = Parameter(changed, parameter.requires_grad)
    if gradient is not None and changed_gradient is not None:
        parameter.grad = changed_gradient.requires_grad_(gradient.requires_grad)
    return parameter


def _parsed(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
    tensor: Tensor | None = None,
) -> tuple[Any, Any, bool, Any]:
    """The arguments of `to` in their three forms."""
    given = list(args)
    if given and isinstance(given[0], Tensor):
        tensor = given.pop(0)
    elif given and isinstance(given[0], dtype_class):
        dtype = given.pop(0)
    elif given:
        first = given.pop(0)
        if first is not None and not isinstance(first, (str, int, device_class)):
            raise TypeError(
                f"to(): a device, a dtype or a tensor is needed first, not {type(first).__name__}"
            )
        device = first
        if given and (given[0] is None or isinstance(given[0], dtype_class)):
            dtype = given.pop(0)
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if given:
        non_blocking = given.pop(0)
    if given:
        raise TypeError(f"to() got {len(args)} positional arguments, which are too many")
    if device is not None:
        device = as_device(device)
    return device, dtype, bool(non_blocking), memory_format
