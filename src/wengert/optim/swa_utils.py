"""Averages of the parameters of a model during training, and a learning rate for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.tensor import Tensor
from ..creation.factories import tensor
from ..nn.modules.module import Module
from .lr_scheduler.base import LRScheduler, for_each_group
from .optimizer import Optimizer

__all__ = [
    "AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip

Average = Callable[[Tensor, Tensor, Any], Tensor]
AverageOfAll = Callable[[list[Tensor], list[Tensor], Any], None]


def get_swa_avg_fn() -> Average:
    """The average of all models so far, each with the same weight."""

    def average(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return averaged + (current - averaged) / (num_averaged + 1)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An average in which the weight of a model falls by `decay` with each one that follows."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    def average(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * averaged + (1 - decay) * current

    return average


def _of_all(average: Average) -> AverageOfAll:
    """An average of many parameters, written into those of the first list."""

    def update(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        with no_grad():
            for old, new in zip(averaged, current, strict=True):
                old.copy_(average(old, new, num_averaged))

    return update


def get_swa_multi_avg_fn() -> AverageOfAll:
    """`get_swa_avg_fn` for lists of parameters, in place."""
    return _of_all(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageOfAll:
    """`get_ema_avg_fn` for lists of parameters, in place."""
    return _of_all(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that `update_parameters` saw."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageOfAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model) if device is None else deepcopy(model).to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model makes of its inputs."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the average; the first are copied."""
        averaged, current = self._values(self.module), self._values(model)
        current = [new.to(old.device) for old, new in zip(averaged, current, strict=True)]
        if self.n_averaged == 0:
            for old, new in zip(averaged, current, strict=True):
                old.copy_(new)
        elif self.multi_avg_fn is not None:
            # One call for each type, as for functions that compute with whole lists.
            kinds = dict.fromkeys(each.dtype for each in averaged)
            for kind in kinds:
                pairs = [
                    pair for pair in zip(averaged, current, strict=True) if pair[0].dtype is kind
                ]
                means, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
                self.multi_avg_fn(means, values, self.n_averaged)
        else:
            _of_all(self.avg_fn or get_swa_avg_fn())(averaged, current, self.n_averaged)
        if not self.use_buffers:
            for old, new in zip(self.module.buffers(), model.buffers(), strict=True):
                old.detach().copy_(new.detach())
        self.n_averaged += 1

    def _values(self, model: Module) -> list[Tensor]:
        """What of a model is averaged, without history."""
        buffers = model.buffers() if self.use_buffers else ()
        return [each.detach() for each in chain(model.parameters(), buffers)]


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the statistics of the batch norms of a model anew, by one pass over a loader.

    Batches are tensors, or sequences whose first item is the input.
    """
    norms = [each for each in model.modules() if hasattr(each, "reset_running_stats")]
    if not norms:
        return
    momenta = [each.momentum for each in norms]
    was_training = model.training
    model.train()
    with no_grad():
        for each in norms:
            each.reset_running_stats()
            each.momentum = None  # the average of all batches
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
    for each, momentum in zip(norms, momenta, strict=True):
        each.momentum = momentum
    model.train(was_training)


def _linear(part: float) -> float:
    return part


def _cosine(part: float) -> float:
    return (1 - math.cos(math.pi * part)) / 2


_STRATEGIES = {"cos": _cosine, "linear": _linear}


class SWALR(LRScheduler):
    """Takes the learning rates to `swa_lr` in `anneal_epochs` epochs, and keeps them there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = for_each_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in _STRATEGIES:
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            begin = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + begin * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """How far the rates have gone after so many steps, from 0 to 1."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return _STRATEGIES[self._anneal_strategy](part)
