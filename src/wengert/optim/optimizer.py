"""The base of all optimizers: groups of parameters, their state, checkpoints and hooks.

An optimizer of a program derives from `Optimizer` and has a `step`. Those of this package derive
from `wengert.optim.rule.UpdateRule`, which makes `step` from a formula.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

from ..autograd.profiler import record_function
from ..core import dtypes
from ..core.handles import RemovableHandle
from ..core.tensor import Tensor

__all__ = [
    "Optimizer",
    "register_optimizer_step_pre_hook",
    "register_optimizer_step_post_hook",
]

Group = dict[str, Any]

_all_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_all_post_hooks: OrderedDict[int, Callable] = OrderedDict()

#: The hooks of an optimizer, each in a dictionary of its own.
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _Required:
    """The default of an option that every group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def _registered(
    hooks: OrderedDict[int, Callable], hook: Callable, prepend: bool = False
) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Have ``hook(optimizer, args, kwargs)`` called before each step of every optimizer."""
    return _registered(_all_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Have ``hook(optimizer, args, kwargs)`` called after each step of every optimizer."""
    return _registered(_all_post_hooks, hook)


def _with_hooks(step: Callable) -> Callable:
    """A `step` that runs the hooks around it, once even if it calls that of its base class."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:
            return step(self, *args, **kwargs)
        self._stepping = self._opt_called = True
        try:
            with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                return self._step_with_hooks(step, (self, *args), kwargs)
        finally:
            self._stepping = False

    return hooked


class Optimizer:
    """Changes parameters by their gradients; `step` of a derived class says how.

    `params` are tensors, pairs of a name and a tensor, or dictionaries: groups with options of
    their own under the names in `defaults`.
    """

    _stepping = False
    #: Whether `step` was called since a scheduler began to watch.
    _opt_called = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params).__name__}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(
                f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"
            )
        return text + ")"

    # Steps -----------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; a `closure` computes the loss and its gradients first."""
        raise NotImplementedError

    def _step_with_hooks(self, step: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        for hook in (*_all_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{hook} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{changed}."
                    )
                args, kwargs = changed
        out = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_all_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            for p in self._parameters():
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    def _parameters(self) -> Iterator[Any]:
        for group in self.param_groups:
            yield from group["params"]

    # Groups ----------------------------------------------------------------------------------

    def add_param_group(self, param_group: Group) -> None:
        """Optimize further parameters, with the options that the group gives and the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        self._take_parameters(param_group)
        for p in param_group["params"]:
            self._check_parameter(p)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    @staticmethod
    def _take_parameters(group: Group) -> None:
        """Make the parameters of a group a list, and a list of their names if they have any."""
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names and len(names) != len(params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        group["params"] = [p[1] for p in params] if names else params
        if names:
            group["param_names"] = names

    def _check_parameter(self, p: Any) -> None:
        if not isinstance(p, Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                f"{type(p).__module__}.{type(p).__qualname__}"
            )
        if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_group(self, group: Group) -> None:
        params = set(group["params"])
        if len(params) != len(group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error",
                stacklevel=4,
            )
        for other in self.param_groups:
            if ("param_names" in group) != ("param_names" in other):
                which = "with names" if "param_names" in group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {which} to the optimizer"
                )
        if not params.isdisjoint(self._parameters()):
            raise ValueError("some parameters appear in more than one parameter group")

    # Checkpoints -----------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with numbers in the place of parameters.

        The tensors are those of the optimizer: steps that follow change them.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups, first = [], 0
        for group in self.param_groups:
            for number, p in enumerate(group["params"], first):
                numbers.setdefault(id(p), number)
            first += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
        }
        return self._changed_by(
            self._optimizer_state_dict_post_hooks, {"state": state, "param_groups": groups}
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state and the options that `state_dict` of such an optimizer returned.

        Parameters are matched by position. State gets dtype and device of its parameter, the
        counters of steps keep theirs.
        """
        state_dict = self._changed_by(self._optimizer_load_state_dict_pre_hooks, state_dict.copy())
        groups = deepcopy(state_dict["param_groups"])
        self._check_sizes(groups)
        params = {
            number: p
            for group, saved in zip(self.param_groups, groups)
            for p, number in zip(group["params"], saved["params"])
        }
        fused = {number for group in groups if group.get("fused") for number in group["params"]}
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _cast(params[key], value, key in fused)
            else:
                state[key] = value
        for group, saved in zip(self.param_groups, groups):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _changed_by(self, hooks: OrderedDict[int, Callable], state_dict: Any) -> Any:
        """The dictionary after hooks, each of which may return another one."""
        for hook in hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        return state_dict

    def _check_sizes(self, saved: list[Group]) -> None:
        if len(self.param_groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, other in zip(self.param_groups, saved):
            if len(group["params"]) != len(other["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )

    # Hooks -----------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Have ``hook(optimizer, args, kwargs)`` called before each step; it may return others."""
        return _registered(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Have ``hook(optimizer, args, kwargs)`` called after each step."""
        return _registered(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer)`` called before `state_dict` collects anything."""
        return _registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer, state_dict)`` change what `state_dict` returns."""
        return _registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer, state_dict)`` change what `load_state_dict` takes over."""
        return _registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Have ``hook(optimizer)`` called after a state was loaded."""
        return _registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # Typed here since they are made by name.
    _optimizer_step_pre_hooks: OrderedDict[int, Callable]
    _optimizer_step_post_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable]


def _cast(p: Any, value: Any, fused: bool, key: Any = None) -> Any:
    """A loaded value of the state of a parameter, its tensors in the parameter's dtype."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtype=dtypes.float32) if fused else value
        dtype = p.dtype if p.is_floating_point() else value.dtype
        return value.to(dtype=dtype, device=p.device)
    if isinstance(value, dict):
        return {name: _cast(p, each, fused, name) for name, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_cast(p, each, fused) for each in value)  # type: ignore[call-arg]
    return value
