"""Schedules that multiply: the learning rate of an epoch is a factor times another rate."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, callable_state, values_of

Lambda = Callable[[int], float]


class FactorScheduler(LRScheduler):
    """Multiplies present rates by `_factor`; in closed form, the first ones by `_whole_factor`."""

    def _factor(self) -> float:
        """By what the rates of the epoch before are multiplied."""
        raise NotImplementedError

    def _whole_factor(self) -> float:
        """By what the rates of the beginning are multiplied."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        factor = self._factor()
        rates = values_of(self.optimizer, "lr")
        return rates if factor == 1 else [rate * factor for rate in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._whole_factor()
        return [base * factor for base in self.base_lrs]


class StepLR(FactorScheduler):
    """Multiplies the rates by `gamma` every `step_size` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        at_border = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self.gamma if at_border else 1.0

    def _whole_factor(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(FactorScheduler):
    """Multiplies the rates by `gamma` at each of the epochs in `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones.get(self.last_epoch, 0)

    def _whole_factor(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(FactorScheduler):
    """Multiplies the rates by `factor` until epoch `total_iters`."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def _whole_factor(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(FactorScheduler):
    """Multiplies the rates by a factor that goes from one value to another in `total_iters`."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return 1.0 + rise / before

    def _whole_factor(self) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


class ExponentialLR(FactorScheduler):
    """Multiplies the rates by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _whole_factor(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(FactorScheduler):
    """Lets the rates fall to zero in `total_iters` epochs, by a power of what is left of them."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _left(self, epoch: int) -> float:
        return 1.0 - min(self.total_iters, epoch) / self.total_iters

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        return (self._left(self.last_epoch) / self._left(self.last_epoch - 1)) ** self.power

    def _whole_factor(self) -> float:
        return self._left(self.last_epoch) ** self.power


class FunctionScheduler(LRScheduler):
    """Asks functions of the epoch, one for each group or one for all."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Lambda | list[Lambda], last_epoch: int = -1
    ) -> None:
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        elif len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, and of functions what objects among them hold."""
        return super().state_dict() | {"lr_lambdas": list(map(callable_state, self.lr_lambdas))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of such a scheduler returned; functions stay."""
        functions = self.lr_lambdas
        super().load_state_dict(state_dict)
        self.lr_lambdas = functions
        for function, state in zip(functions, state_dict["lr_lambdas"]):
            if state is not None:
                function.__dict__.update(state)

    def _factors(self) -> list[float]:
        return [function(self.last_epoch) for function in self.lr_lambdas]


class LambdaLR(FunctionScheduler):
    """Multiplies the rates of the beginning by functions of the epoch."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [base * factor for base, factor in zip(self.base_lrs, self._factors())]


class MultiplicativeLR(FunctionScheduler):
    """Multiplies the rates of the epoch before by functions of the epoch."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Lambda | list[Lambda], last_epoch: int = -1
    ) -> None:
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        rates = values_of(self.optimizer, "lr")
        if self._is_initial:
            return rates
        return [rate * factor for rate, factor in zip(rates, self._factors())]
