"""Losses as modules: their functions, with weights as buffers."""

from __future__ import annotations

import warnings
from typing import Any

from .. import functional as F
from ..functional.losses import legacy_reduction
from .layer import Layer

_REDUCTION = "size_average=None, reduce=None, reduction='mean'"


class Loss(Layer, shown="", passing="size_average reduce"):
    """A layer of two inputs whose reduction older arguments may choose too."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Let the older arguments, where given, choose the reduction."""
        average, reduce = values.get("size_average"), values.get("reduce")
        if average is not None or reduce is not None:
            self.reduction = legacy_reduction(average, reduce, stacklevel=5)


class L1Loss(Loss, fields=_REDUCTION):
    """The sizes of the differences."""

    forward = F.l1_loss


class MSELoss(Loss, fields=_REDUCTION):
    """The squared differences."""

    forward = F.mse_loss


class SmoothL1Loss(Loss, fields=f"{_REDUCTION}, beta=1.0"):
    """The sizes of the differences, squared where they are smaller than `beta`."""

    forward = F.smooth_l1_loss


class HuberLoss(Loss, fields="reduction='mean', delta=1.0"):
    """The squared differences, and beyond `delta` their sizes."""

    forward = F.huber_loss


class KLDivLoss(Loss, fields=f"{_REDUCTION}, log_target=False"):
    """The Kullback-Leibler divergence of logarithms of probabilities from a target."""

    forward = F.kl_div


class NLLLoss(
    Loss,
    fields=("weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'"),
    buffers="weight",
):
    """The negative logarithms of the probabilities of target classes."""

    forward = F.nll_loss


class NLLLoss2d(
    NLLLoss,
    fields="weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'",
):
    """An older name of NLLLoss."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Warn that there is a newer name."""
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement.",
            FutureWarning,
            stacklevel=4,
        )
        super()._prepare(values)


class CrossEntropyLoss(
    Loss,
    fields=(
        "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', "
        "label_smoothing=0.0"
    ),
    buffers="weight",
):
    """Cross entropy of softmax with target classes or probabilities."""

    forward = F.cross_entropy


class BCELoss(Loss, fields=f"weight=None, {_REDUCTION}", buffers="weight"):
    """Cross entropy of probabilities with a target of such."""

    forward = F.binary_cross_entropy


class BCEWithLogitsLoss(
    Loss,
    fields=f"weight=None, {_REDUCTION}, pos_weight=None",
    buffers="weight pos_weight",
):
    """Cross entropy of sigmoids with a target of probabilities."""

    forward = F.binary_cross_entropy_with_logits
