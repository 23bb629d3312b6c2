"""Layers that change sizes, and bags of embeddings."""

from __future__ import annotations

from typing import Any, Self

from ...core.tensor import Tensor
from .. import functional as F
from .layer import Layer
from .linear import EmbeddingTable


class Upsample(
    Layer,
    fields=(
        "size=None, scale_factor=None, mode='nearest', align_corners=None, "
        "recompute_scale_factor=None"
    ),
):
    """Gives signals, pictures and volumes another size."""

    scale_factor: Any
    forward = F.interpolate

    def _prepare(self, values: dict[str, Any]) -> None:
        """Keep factors as floats."""
        self.name = type(self).__name__
        factor = self.scale_factor
        if isinstance(factor, (tuple, list)):
            self.scale_factor = tuple([float(each) for each in factor])
        elif factor is not None:
            self.scale_factor = float(factor) if factor else None

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        name = "scale_factor" if self.scale_factor is not None else "size"
        return f"{name}={getattr(self, name)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample, fields="size=None, scale_factor=None"):
    """Gives pictures another size by taking the nearest elements."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Set the options that are not fields."""
        self.mode, self.align_corners, self.recompute_scale_factor = "nearest", None, None
        super()._prepare(values)


class UpsamplingBilinear2d(Upsample, fields="size=None, scale_factor=None"):
    """Gives pictures another size by interpolation between corners that stay in place."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Set the options that are not fields."""
        self.mode, self.align_corners, self.recompute_scale_factor = "bilinear", True, None
        super()._prepare(values)


class PixelShuffle(Layer):
    """Makes places of channels."""

    forward = F.pixel_shuffle


class PixelUnshuffle(Layer):
    """Makes channels of places."""

    forward = F.pixel_unshuffle


class ChannelShuffle(Layer):
    """Takes the channels of all groups in turn."""

    forward = F.channel_shuffle


class Fold(Layer):
    """Adds columns up to pictures of which they are the windows."""

    forward = F.fold


class Unfold(Layer):
    """Takes all windows of pictures as columns."""

    forward = F.unfold


class EmbeddingBag(
    EmbeddingTable,
    fields=(
        "num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
        "mode='mean', sparse=False, _weight=None, include_last_offset=False, padding_idx=None"
    ),
    shown=(
        "*num_embeddings, *embedding_dim, max_norm?, norm_type?, scale_grad_by_freq?, mode, "
        "padding_idx?"
    ),
    passing="_weight",
):
    """Looks bags of rows up in a table of parameters, and adds them up."""

    def forward(
        self, input: Tensor, offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """The bags of rows that the input names, which begin at `offsets`."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """A layer with a given table, which by default is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        make: Any = cls
        layer = make(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
            include_last_offset, padding_idx,
        )  # fmt: skip
        layer.weight.requires_grad_(not freeze)
        return layer
