"""Losses of counts, distances, margins and alignments as modules; layers that draw."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .layer import Layer
from .linear import PairwiseDistance
from .loss import _REDUCTION, Loss
from .regularisation import _DROPOUT, _DropoutNd


class PoissonNLLLoss(
    Loss,
    fields=(
        "log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction='mean'"
    ),
):
    """The negative logarithm of the probabilities of counts."""

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The loss of rates, or of their logarithms, for counts."""
        return F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(Loss, fields="*, full=False, eps=1e-6, reduction='mean'"):
    """The negative logarithm of the densities of normal distributions."""

    forward = F.gaussian_nll_loss


class HingeEmbeddingLoss(Loss, fields=f"margin=1.0, {_REDUCTION}"):
    """Distances of what is alike, and what those of others lack to a margin."""

    forward = F.hinge_embedding_loss


class MultiLabelMarginLoss(Loss, fields=_REDUCTION):
    """What scores of several target classes lack to exceed those of others by one."""

    forward = F.multilabel_margin_loss


class SoftMarginLoss(Loss, fields=_REDUCTION):
    """The logistic loss of numbers and signs."""

    forward = F.soft_margin_loss


class CosineEmbeddingLoss(Loss, fields=f"margin=0.0, {_REDUCTION}"):
    """One less the cosine of what is alike, else what it exceeds a margin by."""

    forward = F.cosine_embedding_loss


class MarginRankingLoss(Loss, fields=f"margin=0.0, {_REDUCTION}"):
    """What lacks to a margin by which one of two numbers should be larger."""

    forward = F.margin_ranking_loss


class MultiMarginLoss(
    Loss, fields=f"p=1, margin=1.0, weight=None, {_REDUCTION}", buffers="weight"
):
    """What the score of the target class lacks to exceed all others by a margin."""

    forward = F.multi_margin_loss

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the power and the weight."""
        super()._prepare(values)
        if self.p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got "
                f"{self.weight.dim()}D instead"
            )


class MultiLabelSoftMarginLoss(Loss, fields=f"weight=None, {_REDUCTION}", buffers="weight"):
    """The mean cross entropy of classes, each of which the target holds or not."""

    forward = F.multilabel_soft_margin_loss


class TripletMarginLoss(
    Loss, fields=f"margin=1.0, p=2.0, eps=1e-6, swap=False, {_REDUCTION}"
):
    """What distances to positive examples lack to be smaller than to negative ones."""

    forward = F.triplet_margin_loss

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the margin."""
        super()._prepare(values)
        _check_margin("TripletMarginLoss", self.margin)


class TripletMarginWithDistanceLoss(
    Loss, fields="*, distance_function=None, margin=1.0, swap=False, reduction='mean'"
):
    """The triplet margin loss with a distance of one's own."""

    distance_function: Any
    forward = F.triplet_margin_with_distance_loss

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the margin, and choose the Euclidean distance where none is given."""
        super()._prepare(values)
        _check_margin("TripletMarginWithDistanceLoss", self.margin)
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")


class CTCLoss(Loss, fields="blank=0, reduction='mean', zero_infinity=False"):
    """The loss of label sequences over all their alignments with the inputs."""

    forward = F.ctc_loss


class AlphaDropout(_DropoutNd, fields=_DROPOUT):
    """Dropout to a negative value that keeps mean and variance of what SELU gives."""

    forward = F.alpha_dropout


class FeatureAlphaDropout(_DropoutNd, fields=_DROPOUT):
    """Alpha dropout of whole channels."""

    forward = F.feature_alpha_dropout


class RReLU(Layer, fields=f"lower=0.125, upper={1 / 3!r}, inplace=False",
            shown="lower, upper, inplace?"):  # fmt: skip
    """Keeps what is positive, and multiplies all else by slopes drawn while training."""

    forward = F.rrelu
