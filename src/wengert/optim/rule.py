"""Optimizers as update rules: one formula for one parameter, from which `step` is derived.

A rule is written in operators. It gets a parameter `p`, its gradient `g`, its state `s` and the
options `o`, assigns new state to `s` and returns the new parameter:

    def update(self, p, g, s, o):
        s.square_avg = s.square_avg * o.alpha + (1 - o.alpha) * g * g
        return p - o.lr * g / (s.square_avg.sqrt() + o.eps)

The results are written into the memory of the parameter and of the state, without a record, or
with one if the optimizer is differentiable. Signs for maximization, weight decay, the counter of
steps and complex parameters, which are pairs of real ones here, are seen to before the rule.

`foreach` and `fused` name other ways to compute the same in PyTorch; here they are accepted and
change nothing. `capturable` is for the graphs of accelerators and refused on all other devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..autograd.grad_mode import enable_grad, set_grad_enabled
from ..core import dtypes
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..creation.factories import full_like, tensor
from ..dispatch.levels import trace_around
from ..operators.complex import view_as_complex, view_as_real
from .optimizer import Group, Optimizer
from .together import update_together

#: What an option is called where it is refused because it is negative.
_NOT_NEGATIVE = {
    "lr": "learning rate",
    "eps": "epsilon value",
    "weight_decay": "weight_decay value",
    "momentum": "momentum value",
    "lr_decay": "lr_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
    "momentum_decay": "momentum_decay value",
}


class Filled(NamedTuple):
    """State of the shape of the parameter that begins with one value in all places."""

    value: Any


ZEROS = Filled(0.0)


def options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The options among the arguments of an optimizer's ``__init__``."""
    return {
        name: value
        for name, value in arguments.items()
        if name not in ("self", "params", "__class__")
    }


def toward(value: Any, average: Any, weight: Any) -> Any:
    """A running average, moved toward a value; the weight may be a tensor of any dtype."""
    return average + weight * (value - average)


class UpdateRule(Optimizer):
    """An optimizer that changes each parameter by itself, by the formula in `update`."""

    def __init__(self, params: Iterable, defaults: dict[str, Any]) -> None:
        check_options(defaults)
        super().__init__(params, defaults)
        if defaults.get("fused"):
            _check_fused(self.param_groups, defaults)

    def initial_state(self, o: Any) -> dict[str, Any]:
        """The state of a parameter before its first step, by name.

        A number is a counter and becomes a tensor without dimensions, `Filled` is of the shape of
        the parameter, None is yet to come.
        """
        raise NotImplementedError

    def update(self, p: Any, g: Any, s: Any, o: Any) -> Any:
        """The new parameter by gradient, state and options; new state is assigned to `s`."""
        raise NotImplementedError

    def decayed(self, p: Any, g: Any, o: Any) -> tuple[Any, Any]:
        """Parameter and gradient after weight decay, of the parameter itself where decoupled."""
        decay = getattr(o, "weight_decay", 0)
        if isinstance(decay, Tensor) or decay != 0:
            if getattr(o, "decoupled_weight_decay", False):
                return p * (1 - o.lr * decay), g
            return p, g + decay * p
        return p, g

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                # Flags that an older checkpoint does not know yet.
                if value is None or isinstance(value, bool):
                    group.setdefault(name, value)
            initial = self.initial_state(_options_of(group))
            for p in group["params"]:
                for name, value in self.state.get(p, {}).items():
                    counted = isinstance(initial.get(name), (int, float))
                    if counted and not isinstance(value, Tensor):
                        self.state[p][name] = _counter(value, group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; a `closure` computes the loss and its gradients first."""
        with set_grad_enabled(self.defaults.get("differentiable", False)):
            loss = None
            if closure is not None:
                with enable_grad():
                    loss = closure()
            for group in self.param_groups:
                self._step_group(group)
            return loss

    def _step_group(self, group: Group) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        if params and group.get("capturable"):
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported devices: "
                "accelerators whose work can be captured in a graph"
            )
        o = _options_of(group)
        initial = self.initial_state(o)
        if params and not group.get("differentiable"):
            states = [self._state_of(p, initial, group) if initial else {} for p in params]
            params = update_together(self, params, states, o, bool(group.get("maximize")))
        for p in params:
            g = -p.grad if group.get("maximize") else p.grad
            state = self._state_of(p, initial, group) if initial else {}
            if "step" in state:
                state["step"] += 1
            if group.get("differentiable"):
                new, changed = self._updated(p.clone(), g, _copies(state), o)
            else:
                new, changed = self._updated(p, g, state, o)
            for name, value in changed.items():
                _assign(state, name, value)
            p.copy_(new)

    def _state_of(self, p: Any, initial: dict[str, Any], group: Group) -> dict[str, Any]:
        state = self.state[p]
        for name, value in initial.items():
            if name not in state:
                state[name] = _beginning(p, value, group)
        return state

    def _begin(self) -> None:
        """Make the state of all parameters before their first step."""
        for group in self.param_groups:
            initial = self.initial_state(_options_of(group))
            for p in group["params"]:
                self._state_of(p, initial, group)

    def _updated(self, p: Any, g: Any, state: dict[str, Any], o: Any) -> tuple[Any, dict[str, Any]]:
        """The new parameter and the state that the rule has assigned."""
        complex_parameter = p.is_complex()
        if complex_parameter:
            p, g = view_as_real(p), view_as_real(g)
            state = {name: _as_pairs(value) for name, value in state.items()}
        if "step" in state:
            state = state | {"step": counted(state["step"])}
        s = SimpleNamespace(**state)
        p, g = self.decayed(p, g, o)
        new = self.update(p, g, s, o)
        changed = {name: value for name, value in vars(s).items() if value is not state.get(name)}
        if complex_parameter:
            return view_as_complex(new), {
                name: view_as_complex(value) if state[name] is None or state[name].dim() else value
                for name, value in changed.items()
            }
        return new, changed


def counted(counter: Tensor) -> Any:
    """The number in a counter; a tensor in a trace, whose graph must hold for all steps."""
    if thread_state().levels and trace_around(counter) is not None:
        return counter.double()
    return counter.item()


def _options_of(group: Group) -> SimpleNamespace:
    """The options of a group by name; tensors are numbers unless a derivative may be asked for."""
    read = _without_dimensions if group.get("differentiable") else number
    return SimpleNamespace(
        **{
            name: tuple(map(read, value)) if isinstance(value, tuple) else read(value)
            for name, value in group.items()
            if name not in ("params", "param_names")
        }
    )


def number(value: Any) -> Any:
    """The number in a tensor of one element, or the value itself."""
    return value.item() if isinstance(value, Tensor) else value


def _without_dimensions(value: Any) -> Any:
    return value.squeeze() if isinstance(value, Tensor) and value.dim() else value


def _counter(value: Any, group: Group) -> Any:
    """A number of the state as a tensor: float64 only where that is the default."""
    double = dtypes.get_default_dtype() is dtypes.float64 and not group.get("fused")
    dtype = dtypes.float64 if double else dtypes.float32
    return tensor(number(value), dtype=dtype, device="cpu")


def _beginning(p: Any, initial: Any, group: Group) -> Any:
    """The state of a parameter before its first step, by its declaration."""
    if initial is None:
        return None
    if not isinstance(initial, Filled):
        return _counter(initial, group)
    value = number(initial.value)
    return full_like(p, complex(value, value) if p.is_complex() else value, requires_grad=False)


def _copies(state: dict[str, Any]) -> dict[str, Any]:
    """Copies for a rule to read, since what a graph has saved must not be written over."""
    return {
        name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()
    }


def _as_pairs(value: Any) -> Any:
    return view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def _assign(state: dict[str, Any], name: str, value: Any) -> None:
    """Write new state into the memory of the old, which a checkpoint may hold."""
    known = state.get(name)
    if known is None:
        state[name] = value.clone()
    else:
        # A number is rounded to the default dtype even where a loaded counter has a wider one:
        # training goes on as if it had not been interrupted.
        known.copy_(value if isinstance(value, Tensor) else tensor(value, device="cpu"))


def check_options(defaults: dict[str, Any]) -> None:
    """Refuse options that no optimizer can have, such as a negative learning rate."""
    for name, called in _NOT_NEGATIVE.items():
        value = defaults.get(name, 0.0)
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        if not value >= 0.0:
            raise ValueError(f"Invalid {called}: {value}")
    for index, beta in enumerate(defaults.get("betas", ())):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def _check_fused(groups: list[Group], defaults: dict[str, Any]) -> None:
    if defaults["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if defaults["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    for group in groups:
        for p in group["params"]:
            if not p.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors of "
                    f"supported devices, but got {p.dtype} and {p.device.type}"
                )
