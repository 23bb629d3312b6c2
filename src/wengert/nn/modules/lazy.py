"""Layers that find a size out from their first input.

`lazy_form` derives such a layer from the declaration of another: its parameters have no shape until
the first call, which makes it a layer of the other class.
"""

from __future__ import annotations

import inspect
import warnings
from itertools import chain
from typing import Any, ClassVar

from ...autograd.grad_mode import no_grad
from ...core.tensor import Tensor
from ...creation.factories import zeros
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .layer import Layer
from .linear import Linear
from .module import Module
from .normalisation import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)


class LazyModuleMixin:
    """A module whose parameters get their shapes in its first call.

    A subclass, whose other base is a module, sets uninitialised parameters in its constructor and
    defines `initialize_parameters`. After the first call it is an instance of `cls_to_become`.
    """

    cls_to_become: ClassVar[type | None] = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._await_input()

    def _await_input(self: Any) -> None:
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write the state; what has no shape is written as it is."""
        for name, value in {**self._parameters, **self._persistent_buffers()}.items():
            if value is not None:
                as_it_is = keep_vars or is_lazy(value)
                destination[prefix + name] = value if as_it_is else value.detach()

    def _lazy_load_hook(self: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Give tensors without a shape that of what is loaded."""
        for name, value in chain(self._parameters.items(), self._buffers.items()):
            given = state.get(prefix + name)
            if is_lazy(value) and given is not None and not is_lazy(given):
                with no_grad():
                    value.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all parameters shapes and values that fit the arguments of a call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self: Any) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(t) for t in chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(
        self: Any, module: Any, args: tuple, kwargs: dict[str, Any] | None = None
    ) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class _LazyLayer(LazyModuleMixin):
    """What all derived lazy layers share; a class says which field is unknown, and where it is."""

    _unknown: ClassVar[str]
    _dim: ClassVar[int]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(type(self)).bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        made = {"device": values.pop("device"), "dtype": values.pop("dtype")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tensors without elements
            self.cls_to_become.__init__(
                self, **{self._unknown: 0, **values}, device="meta", dtype=made["dtype"]
            )
        self._given = values
        for name, value in self._parameters.items():
            if value is not None:
                self._parameters[name] = UninitializedParameter(**made)
        for name, value in self._buffers.items():
            if value is not None:
                self._buffers[name] = (
                    UninitializedBuffer(**made)
                    if 0 in value.shape
                    else zeros(value.shape, dtype=value.dtype, device=made["device"])
                )
        self._await_input()

    def reset_parameters(self: Any) -> None:
        """Give parameters that have a shape their initial values."""
        if not self.has_uninitialized_params() and getattr(self, self._unknown):
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Tensor, *rest: Any, **options: Any) -> None:
        """Take over shapes and values of a layer of the class to become, made for this input."""
        waits = self.has_uninitialized_params()
        if not waits and getattr(self, self._unknown):
            return
        first = next(t for t in chain(self._parameters.values(), self._buffers.values())
                     if t is not None)  # fmt: skip
        place = first.data.device if waits else "meta"
        size = input.shape[self._dim]
        layer = self.cls_to_become(
            **{self._unknown: size, **self._given}, device=place, dtype=first.data.dtype
        )
        if waits:
            for mine, values in (
                (self._parameters, layer._parameters),
                (self._buffers, layer._buffers),
            ):
                for name, value in values.items():
                    if is_lazy(mine[name]):
                        mine[name].materialize(tuple(value.shape))
                        mine[name].data = value.data
        kept = {"training", "_given", *_tables()}
        self.__dict__.update({k: v for k, v in vars(layer).items() if k not in kept})
        del self._given


def _tables() -> set[str]:
    """The names of what every module has: parameters, buffers, hooks."""
    return set(vars(Module()))


def lazy_form(cls: type[Layer], unknown: str, dim: int, **defaults: Any) -> Any:
    """A layer of which the field `unknown` is the size of its first input in dimension `dim`.

    Other fields may have other `defaults`.
    """
    signature = inspect.signature(cls)
    parameters = [
        each.replace(default=defaults.get(each.name, each.default))
        for each in signature.parameters.values()
        if each.name != unknown
    ]
    name = f"Lazy{cls.__name__}"
    return type(
        name,
        (_LazyLayer, cls),
        {
            "__doc__": f"{cls.__doc__} The first input tells {unknown}.",
            "__module__": __name__,
            "__qualname__": name,
            "__signature__": signature.replace(parameters=parameters),
            "cls_to_become": cls,
            "_unknown": unknown,
            "_dim": dim,
        },
    )


LazyLinear = lazy_form(Linear, "in_features", -1)
LazyConv1d, LazyConv2d, LazyConv3d = (
    lazy_form(cls, "in_channels", dim) for cls, dim in ((Conv1d, -2), (Conv2d, -3), (Conv3d, -4))
)
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    lazy_form(cls, "in_channels", dim)
    for cls, dim in ((ConvTranspose1d, -2), (ConvTranspose2d, -3), (ConvTranspose3d, -4))
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    lazy_form(cls, "num_features", 1) for cls in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    lazy_form(cls, "num_features", 1, affine=True, track_running_stats=True)
    for cls in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
