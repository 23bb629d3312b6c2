"""Schedules that raise and lower the learning rate, and the momentum against it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict

from ..optimizer import Group, Optimizer
from .base import LRScheduler, callable_state, check_optimizer, for_each_group, set_value


class MomentumScheduler(LRScheduler):
    """A schedule that moves the momentum too, or the first beta of an optimizer that has betas."""

    cycle_momentum: bool
    use_beta1: bool

    def _find_momentum(self) -> None:
        known = self.optimizer.defaults
        if "momentum" not in known and "betas" not in known:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in known

    def _begin_momentum(self, largest: list[Any], smallest: list[Any]) -> None:
        for group, most, least in zip(self.optimizer.param_groups, largest, smallest):
            self._set_momentum(group, most)
            group["max_momentum"] = most
            group["base_momentum"] = least

    def _set_momentum(self, group: Group, value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


def _triangular(cycle: float) -> float:
    return 1.0


def _triangular2(cycle: float) -> float:
    return 1 / 2.0 ** (cycle - 1)


def _exponential(gamma: float, iteration: float) -> float:
    return gamma**iteration


class CyclicLR(MomentumScheduler):
    """Moves the rates between `base_lr` and `max_lr` in straight lines, over and over.

    The height of a cycle stays ("triangular"), is halved by each ("triangular2"), falls by `gamma`
    with each step ("exp_range"), or is what `scale_fn` says of the cycle or of the iteration.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs):
                set_value(group, "lr", rate)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._find_scale()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            self.base_momentums = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._begin_momentum(self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _find_scale(self) -> None:
        if self._scale_fn_custom is None:
            scales: dict[str, tuple[Callable, str]] = {
                "triangular": (_triangular, "cycle"),
                "triangular2": (_triangular2, "cycle"),
                "exp_range": (partial(_exponential, self.gamma), "iterations"),
            }
            self._scale_fn_ref, self.scale_mode = scales[self.mode]

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, by its number or by the iteration."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        if place <= self.step_ratio:
            height = place / self.step_ratio
        else:
            height = (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, least, most in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums
            ):
                self._set_momentum(group, most - (most - least) * height * scale)
        return [
            least + (most - least) * height * scale
            for least, most in zip(self.base_lrs, self.max_lrs)
        ]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer and functions; of an object that is called, its own."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        if state["_scale_fn_custom"] is not None:
            state["_scale_fn_custom"] = callable_state(state["_scale_fn_custom"])
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of such a scheduler returned; a function stays."""
        function = self._scale_fn_custom
        super().load_state_dict(state_dict)
        self._scale_fn_custom = function
        if state_dict["_scale_fn_custom"] is not None:
            function.__dict__.update(state_dict["_scale_fn_custom"])
        self._find_scale()


class Phase(TypedDict):
    """A part of one cycle: where it ends, and which options of a group it goes between."""

    end_step: float
    start_lr: str
    end_lr: str
    start_momentum: str
    end_momentum: str


def _cosine(start: Any, end: Any, part: float) -> Any:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _line(start: Any, end: Any, part: float) -> Any:
    return (end - start) * part + start


class OneCycleLR(MomentumScheduler):
    """One cycle over the whole training: up to `max_lr`, then down to far below the beginning."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not (isinstance(pct_start, float) and 0 <= pct_start <= 1):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        largest = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, largest):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            most_momentum = for_each_group("max_momentum", optimizer, max_momentum)
            least_momentum = for_each_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                self._begin_momentum(most_momentum, least_momentum)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        phase, part = self._place()
        between = _cosine if self._anneal_func_type == "cos" else _line
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, between(start, end, part))
        return rates

    def _place(self) -> tuple[Phase, float]:
        """The phase of this step, and which part of it has passed."""
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if self.last_epoch <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        return phase, (self.last_epoch - start) / (end - start)


def _total_steps(total: Any, epochs: Any, steps_per_epoch: Any) -> int:
    given = {"total_steps": total} if total is not None else {
        "epochs": epochs, "steps_per_epoch": steps_per_epoch
    }  # fmt: skip
    if None in given.values():
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(total: int, part: float, three: bool) -> list[Phase]:
    """Up and down; or up, down by as many steps, and further down in the rest."""
    top = float(part * total) - 1
    borders: list[tuple[float, str, str]] = [(top, "initial_lr", "max_lr")]
    if three:
        borders.append((float(2 * part * total) - 2, "max_lr", "initial_lr"))
    borders.append((total - 1, borders[-1][2], "min_lr"))
    momentum = {"initial_lr": "max_momentum", "max_lr": "base_momentum", "min_lr": "max_momentum"}
    return [
        Phase(
            end_step=end_step,
            start_lr=start,
            end_lr=end,
            start_momentum=momentum[start],
            end_momentum=momentum[end],
        )
        for end_step, start, end in borders
    ]
