"""Parameters that are functions of others: what is trained is put through modules when it is read.

`register_parametrization` replaces a parameter or buffer by an attribute that is computed from the
original each time, or once inside `cached()`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...autograd.grad_mode import no_grad
from ...core.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

_caching = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor at most once inside the block."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _kind(value: Any) -> str:
    return type(value).__name__


class ParametrizationList(ModuleList):
    """The modules that a tensor is put through, one after the other, and what they start from.

    That is `original`, or `original0`, `original1` and so on where `right_inverse` of the first
    module returns several tensors.
    """

    def __init__(
        self, modules: Sequence[Module], original: Tensor, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        continue  # taken for the identity
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {_kind(new)}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            self._take_over(original, new)
        else:
            self._take_several(original, new)
        if not unsafe:
            self._check_result(self(), shape, dtype)

    def _take_over(self, original: Tensor, new: Tensor) -> None:
        """Keep the tensor itself, which an optimizer may know, with other values."""
        for name in ("dtype", "device"):
            if getattr(original, name) != getattr(new, name):
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {name}.\n"
                    f"original.{name}: {getattr(original, name)}\n"
                    f"right_inverse(original).{name}: {getattr(new, name)}"
                )
        if new is not original:
            original.data = new.detach()
        _register(self, "original", original)

    def _take_several(self, original: Tensor, new: Sequence[Any]) -> None:
        for i, each in enumerate(new):
            if not isinstance(each, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {i} of the sequence with type {_kind(each)}."
                )
            if isinstance(original, Parameter):
                each = Parameter(each, original.requires_grad)
            each.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", each)

    def _check_result(self, result: Any, shape: Any, dtype: Any) -> None:
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {_kind(result)}.")
        for name, before in (("dtype", dtype), ("shape", shape)):
            if getattr(result, name) != before:
                raise ValueError(
                    f"Registering a parametrization may not change the {name} of the tensor, "
                    f"unless `unsafe` flag is enabled.\nunparametrized {name}: {before}\n"
                    f"parametrized {name}: {getattr(result, name)}"
                )

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parametrized tensor becomes `value`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {_kind(module)} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {_kind(value)}")
                self._set("original", value, "The tensor")
                return
            if not isinstance(value, Sequence):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {_kind(value)}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, each in enumerate(value):
                if not isinstance(each, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors. Got element "
                        f"{i} of type {_kind(each)}."
                    )
                self._set(f"original{i}", each, f"Tensor {i}")

    def _set(self, name: str, value: Tensor, called: str) -> None:
        original = getattr(self, name)
        if value.dtype != original.dtype:
            raise ValueError(
                f"{called} returned by `right_inverse` has dtype {value.dtype} while `{name}` has "
                f"dtype {original.dtype}"
            )
        original.data = value.detach()

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        if self.is_tensor:
            originals = [self.original]
        else:
            originals = [getattr(self, f"original{i}") for i in range(self.ntensors)]
        first, *others = list(self)
        result = first(*originals)
        for module in others:
            result = module(result)
        return result


# Modules with parametrized tensors ----------------------------------------------------------------


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """A copy of a parametrized module, which refuses to be pickled."""
    known = memo.get(id(self))
    if known is None:
        known = memo[id(self)] = self.__new__(type(self))
        known.__dict__ = copy.deepcopy(self.__dict__, memo)
    return known


def _refuse_state(self: Any) -> Any:
    """Refused: what is computed has no place in a pickle."""
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). Save the "
        "state, and load it into a module that is parametrized in the same way."
    )


def _inject_class(module: Module) -> None:
    """Give a module a class of its own, in which properties can stand for its parameters."""
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_state}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    members["__module__"] = cls.__module__
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    def read(self: Any) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _caching:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def _check_further(module: Module, name: str, parametrization: Module) -> None:
    """Raise unless one more parametrization keeps type and shape, and so does its inverse."""
    value = getattr(module, name)
    result = parametrization(value)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {_kind(result)}.")
    for field in ("dtype", "shape"):
        if getattr(result, field) != getattr(value, field):
            raise ValueError(
                f"Registering a parametrization may not change the {field} of the tensor, unless "
                f"the `unsafe` flag is enabled.\nmodule.{name}.{field}: {getattr(value, field)}\n"
                f"parametrization(module.{name}).{field}: {getattr(result, field)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {_kind(back)}"
        )
    for field in ("dtype", "shape"):
        if getattr(back, field) != getattr(value, field):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {field} "
                f"as module.{name}, unless the `unsafe` flag is enabled.\nmodule.{name}.{field}: "
                f"{getattr(value, field)}\nreturned {field}: {getattr(back, field)}"
            )


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a parameter or buffer be what a module computes from it; returns the module.

    Where it is parametrized already, the new parametrization comes last. With `unsafe`, type and
    shape may change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        chain = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module is parametrized, or without a name, whether any is."""
    chains = getattr(module, "parametrizations", None)
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(
    module: Any, tensor_name: str, leave_parametrized: bool = True
) -> Any:
    """Make a parametrized tensor a parameter or buffer again; returns the module.

    It keeps the value that it has, or with `leave_parametrized=False` that of the original.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class of a module, without what parametrizations have made of it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Parametrize another module in the same way, with the same originals; returns that module."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        numbers = [""] if source.is_tensor else range(source.ntensors)
        for number in numbers:
            setattr(target, f"original{number}", getattr(source, f"original{number}"))
    return to_module
