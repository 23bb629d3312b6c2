"""Dropout and normalisation over the last dimensions."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .. import init
from .layer import Layer, parameter


class _DropoutNd(Layer, shown="p, inplace"):
    """A layer with the probability that something is left out while training."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the probability."""
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")


_DROPOUT = "p=0.5, inplace=False"


class Dropout(_DropoutNd, fields=_DROPOUT):
    """Makes elements zero at random while training, and scales up the others."""

    forward = F.dropout


class Dropout1d(_DropoutNd, fields=_DROPOUT):
    """Makes whole channels zero at random while training, of signals."""

    forward = F.dropout1d


class Dropout2d(_DropoutNd, fields=_DROPOUT):
    """Makes whole channels zero at random while training, of pictures."""

    forward = F.dropout2d


class Dropout3d(_DropoutNd, fields=_DROPOUT):
    """Makes whole channels zero at random while training, of volumes."""

    forward = F.dropout3d


def _as_shape(layer: Any) -> None:
    given = layer.normalized_shape
    layer.normalized_shape = (given,) if isinstance(given, int) else tuple(given)


class LayerNorm(
    Layer,
    fields="normalized_shape, eps=1e-5, elementwise_affine=True, bias=True",
    shown="*normalized_shape, eps, elementwise_affine, bias",
):
    """Gives the last dimensions mean 0 and variance 1, then scales and shifts them."""

    weight = parameter(
        "normalized_shape", init=lambda layer, t: init.ones_(t), when="elementwise_affine"
    )
    bias = parameter(
        "normalized_shape", init=lambda layer, t: init.zeros_(t), when="elementwise_affine bias"
    )
    forward = F.layer_norm

    def _prepare(self, values: dict[str, Any]) -> None:
        """Make a shape of a single size."""
        _as_shape(self)


class RMSNorm(
    Layer,
    fields="normalized_shape, eps=None, elementwise_affine=True",
    shown="*normalized_shape, eps, elementwise_affine",
):
    """Divides the last dimensions by the root of the mean of their squares, and scales them."""

    weight = parameter(
        "normalized_shape", init=lambda layer, t: init.ones_(t), when="elementwise_affine"
    )

    def forward(self, x: Any) -> Any:
        """The input, scaled to a mean square of 1 and by the weight."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def _prepare(self, values: dict[str, Any]) -> None:
        """Make a shape of a single size."""
        _as_shape(self)
