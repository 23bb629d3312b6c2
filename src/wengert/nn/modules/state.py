"""A module's state as a dictionary of tensors by path, and back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...autograd.grad_mode import no_grad
from ...core.handles import RemovableHandle
from ...core.tensor import Tensor
from ..parameter import Parameter, is_lazy
from .registration import Registry, add_hook

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """The keys that a state did not have, and those that it had beside the module's."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, "
            f"unexpected_keys={self.unexpected_keys!r})"
        )

    def __str__(self) -> str:
        return repr(self)


class Stateful(Registry):
    """What saves and loads the parameters and persistent buffers of a module."""

    #: Written into the metadata of a state, for modules that read states of older versions.
    _version = 1

    _state_dict_hooks: OrderedDict[int, Callable]
    _state_dict_post_hooks: OrderedDict[int, bool]
    _state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_pre_hooks_with_module: OrderedDict[int, bool]
    _load_state_dict_post_hooks: OrderedDict[int, Callable]

    # Hooks -----------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads the module."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`.

        It may change the dictionary in place and returns None.
        """
        handle = RemovableHandle(self._state_dict_hooks, extra_dict=self._state_dict_post_hooks)
        self._state_dict_hooks[handle.id] = hook
        self._state_dict_post_hooks[handle.id] = True
        return handle

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)`, which may return another."""
        return add_hook(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable, with_module: bool = False
    ) -> RemovableHandle:
        """Call `hook` with the arguments of `_load_from_state_dict` before it."""
        hooks = self._load_state_dict_pre_hooks
        handle = RemovableHandle(hooks, extra_dict=self._load_state_dict_pre_hooks_with_module)
        hooks[handle.id] = hook
        if with_module:
            self._load_state_dict_pre_hooks_with_module[handle.id] = True
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call a hook before the state is loaded into this module.

        It gets (module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs) and may change the dictionary and the lists.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the lists."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # Saving ----------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """What the state holds beside tensors; a class that has such overrides this."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called: a module "
            "with extra state overrides it."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take over what `get_extra_state` has returned; overridden together with it."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called: a module "
            "with extra state overrides it."
        )

    def _persistent_buffers(self) -> dict[str, Tensor | None]:
        left_out = self._non_persistent_buffers_set
        return {name: value for name, value in self._buffers.items() if name not in left_out}

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Write the module's own state, without that of its children, into `destination`."""
        for name, value in {**self._parameters, **self._persistent_buffers()}.items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by path, detached unless `keep_vars`."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
                stacklevel=2,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given.get("destination", destination)
            prefix = given.get("prefix", prefix)
            keep_vars = given.get("keep_vars", keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for number, hook in self._state_dict_hooks.items():
            result = hook(self, destination, prefix, local_metadata)
            if result is not None:
                if number in self._state_dict_post_hooks:
                    raise RuntimeError("state_dict post-hook must return None")
                destination = result
        return destination

    # Loading ---------------------------------------------------------------------------------

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the module's own state, without that of its children, and note what goes wrong."""
        arguments = (
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs,
        )  # fmt: skip
        for number, hook in self._load_state_dict_pre_hooks.items():
            if number in self._load_state_dict_pre_hooks_with_module:
                hook(self, *arguments)
            else:
                hook(*arguments)
        assign = local_metadata.get("assign_to_params_buffers", False)
        tables = {**self._parameters, **self._persistent_buffers()}
        own = {name: value for name, value in tables.items() if value is not None}
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_value(name, value, key, state_dict[key], assign)
                if problem is not None:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA_STATE
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_value(
        self, name: str, value: Tensor, key: str, given: Any, assign: bool
    ) -> str | None:
        """Load one tensor; what is wrong with it is returned as text."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(given)}"
            )
        if is_lazy(value):  # and so is what is given, or it would have a shape by now
            return None
        if value.ndim == 0 and given.ndim == 1 and given.numel():
            given = given[0]
        if given.shape != value.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {value.shape}."
            )
        if value.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=5,
            )
        try:
            with no_grad():
                if assign:
                    self._assign_loaded(name, value, given)
                else:
                    value.copy_(given)
        except Exception as error:
            return (
                f'While {"swapping" if assign else "copying"} the parameter named "{key}", whose '
                f"dimensions in the model are {value.size()} and whose dimensions in the "
                f"checkpoint are {given.size()}, an exception occurred : {error.args}."
            )
        return None

    def _assign_loaded(self, name: str, value: Tensor, given: Tensor) -> None:
        if isinstance(value, Parameter):
            if isinstance(given, Parameter):
                given.requires_grad_(value.requires_grad)
            else:
                given = Parameter(given, requires_grad=value.requires_grad)
        setattr(self, name, given)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy a state, as `state_dict` returns it, into the module.

        With `strict` the keys must be exactly the module's. With `assign` the given tensors become
        those of the module. Returns missing and unexpected keys.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            state._metadata = metadata

        def load(module: Any, state: dict[str, Any], prefix: str = "") -> None:
            local_metadata = dict((metadata or {}).get(prefix[:-1], {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                state, prefix, local_metadata, True, missing, unexpected, errors
            )
            for name, child in module._modules.items():
                if child is not None:
                    path = f"{prefix}{name}."
                    part = {key: value for key, value in state.items() if key.startswith(path)}
                    load(child, part, path)
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be modified, "
                        "it should be done inplace."
                    )

        load(self, state)
        if strict:
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
            if unexpected:
                errors.insert(
                    bool(missing), f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. "
                )
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return _IncompatibleKeys(missing, unexpected)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
