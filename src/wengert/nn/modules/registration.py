"""What a module holds: parameters, buffers and other modules, each registered under a name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...core.handles import RemovableHandle
from ...core.tensor import Tensor
from ..parameter import Buffer, Parameter

_parameter_hooks: OrderedDict[int, Callable] = OrderedDict()
_buffer_hooks: OrderedDict[int, Callable] = OrderedDict()
_module_hooks: OrderedDict[int, Callable] = OrderedDict()


def typename(value: Any) -> str:
    """The name of a value's type, with its module unless that is built in."""
    if isinstance(value, Tensor):
        return value.type()
    kind = value if isinstance(value, type) else type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def add_hook(hooks: OrderedDict[int, Callable], hook: Callable) -> RemovableHandle:
    """Append a hook; the handle removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a parameter is registered in any module.

    A result other than None is registered instead.
    """
    return add_hook(_parameter_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a buffer is registered in any module.

    A result other than None is registered instead.
    """
    return add_hook(_buffer_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a module is registered in another.

    A result other than None is registered instead.
    """
    return add_hook(_module_hooks, hook)


def _replaced(hooks: OrderedDict[int, Callable], module: Any, name: str, value: Any) -> Any:
    for hook in hooks.values():
        result = hook(module, name, value)
        if result is not None:
            value = result
    return value


def _check_name(module: Any, kind: str, name: Any, table: dict[str, Any]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if hasattr(module, name) and name not in table:
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        got = f", got: {name}" if kind == "module" else ""
        raise KeyError(f'{kind} name can\'t contain "."{got}')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


class Registry:
    """An object whose attributes that are parameters, buffers or modules are kept in tables."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]

    # Registration ----------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, "parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            param = _replaced(_parameter_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the state and is not trained.

        A buffer that is not persistent is not part of `state_dict`.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, "buffer", name, self._buffers)
        if tensor is not None:
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                    "(torch Tensor or None required)"
                )
            tensor = _replaced(_buffer_hooks, self, name, tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a module as a child; None reserves the name."""
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if "_modules" not in self.__dict__:
            raise AttributeError("cannot assign module before Module.__init__() call")
        _check_name(self, "module", name, self._modules)
        if module is not None:
            module = _replaced(_module_hooks, self, name, module)
        self._modules[name] = module

    def register_module(self, name: str, module: Any) -> None:
        """Add a module as a child: another name of `add_module`."""
        self.add_module(name, module)

    # Attributes ------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in fields.get("_parameters", ()):
            self._check_assigned(value, name, "parameter", "torch.nn.Parameter")
            self.register_parameter(name, value)
        elif isinstance(value, Registry):
            if "_modules" not in fields:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            self._modules[name] = _replaced(_module_hooks, self, name, value)
        elif name in fields.get("_modules", ()):
            self._check_assigned(value, name, "child module", "torch.nn.Module")
            self._modules[name] = value
        elif isinstance(value, Buffer) or name in fields.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            self._check_assigned(value, name, "buffer", "torch.nn.Buffer, torch.Tensor")
        if isinstance(value, Buffer):
            if "_buffers" not in self.__dict__:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        else:
            if value is not None:
                value = _replaced(_buffer_hooks, self, name, value)
            self._buffers[name] = value

    def _check_assigned(self, value: Any, name: str, kind: str, expected: str) -> None:
        if value is not None:
            raise TypeError(
                f"cannot assign '{typename(value)}' as {kind} '{name}' ({expected} or None "
                "expected)"
            )

    def _forget(self, name: str, kept: str) -> None:
        """Take a name out of all tables but one, in which it is then set."""
        self.__dict__.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != kept:
                self.__dict__[table].pop(name, None)
        if kept != "_buffers":
            self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        if "_modules" in fields:  # else the constructor has not run
            if name in fields["_parameters"]:
                return fields["_parameters"][name]
            if name in fields["_modules"]:
                return fields["_modules"][name]
            if name in fields["_buffers"]:
                return fields["_buffers"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        names.update(self._parameters, self._buffers, self._modules)
        return sorted(name for name in names if not name[:1].isdigit())

    # Traversal -------------------------------------------------------------------------------

    def _named_members(
        self,
        members: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Names and values of what `members` finds in this module and, by choice, in all below."""
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        seen = set()
        for path, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Paths and parameters of the module and, with `recurse`, of all modules in it."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of the module and, with `recurse`, of all modules in it."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Paths and buffers of the module and, with `recurse`, of all modules in it."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of the module and, with `recurse`, of all modules in it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Names and modules that are directly in this one, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The modules that are directly in this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Paths and modules: this one, with the path `prefix`, and all below it."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and all below it, each once or as often as it is reached."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # Access by path --------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module at a path such as "layers.0"; the empty path is the module itself."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Registry):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a module at a path, whose modules above it exist.

        With `strict` there must be one already, which is replaced.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Registry):
            raise ValueError(f'"module" is not an nn.Module, found {type(module)}')
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict and not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        if hasattr(owner, name) and not isinstance(getattr(owner, name), Registry):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "layers.0.weight"."""
        owner, name, value = self._at(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "norm.running_mean"."""
        owner, name, value = self._at(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    def _at(self, target: str) -> tuple[Any, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)
