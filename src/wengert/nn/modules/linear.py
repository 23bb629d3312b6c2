"""Affine layers, embeddings, distances, and layers that change the shape alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

from ...autograd.grad_mode import no_grad
from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .layer import Layer, parameter
from .module import Module


def _fan_in_uniform(layer: Any, t: Tensor) -> None:
    """Uniform within one over the root of the fan in of the layer's weight."""
    fan_in, _ = init._calculate_fan_in_and_fan_out(layer.weight)
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    init.uniform_(t, -bound, bound)


class Identity(Module):
    """Returns its argument; arguments of the constructor are not used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The argument."""
        return input


class Linear(Layer, fields="in_features, out_features, bias=True"):
    """Applies an affine map to the last dimension."""

    weight = parameter(
        "out_features", "in_features",
        init=lambda layer, t: init.kaiming_uniform_(t, a=math.sqrt(5)),
    )  # fmt: skip
    bias = parameter("out_features", init=_fan_in_uniform, when="bias")
    forward = F.linear


def _bilinear_uniform(layer: Any, t: Tensor) -> None:
    bound = 1 / math.sqrt(layer.weight.size(1))
    init.uniform_(t, -bound, bound)


class Bilinear(Layer, fields="in1_features, in2_features, out_features, bias=True"):
    """Applies a bilinear map to the last dimensions of two inputs, and adds a bias."""

    weight = parameter("out_features", "in1_features", "in2_features", init=_bilinear_uniform)
    bias = parameter("out_features", init=_bilinear_uniform, when="bias")

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the size of the first input, by which the initial values are scaled."""
        if self.in1_features <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got (in1_features={self.in1_features})"
            )

    forward = F.bilinear


class EmbeddingTable(Layer):
    """A layer with a table of parameters, of which one row may stay zero."""

    padding_idx: int | None

    weight = parameter("num_embeddings", "embedding_dim", init=lambda layer, t: layer._draw_rows(t))

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the padding index, and count a negative one from the end."""
        index, count = values["padding_idx"], values["num_embeddings"]
        if index is not None:
            if index >= count or index < -count:
                raise AssertionError("Padding_idx must be within num_embeddings")
            self.padding_idx = index % count

    def _construct(self, values: dict[str, Any], device: Any = None, dtype: Any = None) -> None:
        given = values["_weight"]
        if given is None:
            super()._construct(values, device, dtype)
        else:
            shape = (values["num_embeddings"], values["embedding_dim"])
            if tuple(given.shape) != shape:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            super()._construct(values, "meta")
            self.weight = Parameter(given)
        self.weight.requires_grad_(not values.get("_freeze", False))

    def _draw_rows(self, t: Tensor) -> None:
        init.normal_(t)
        if self.padding_idx is not None:
            with no_grad():
                t[self.padding_idx].fill_(0)


class Embedding(
    EmbeddingTable,
    fields=(
        "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, "
        "scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False"
    ),
    shown=(
        "*num_embeddings, *embedding_dim, padding_idx?, max_norm?, norm_type?, "
        "scale_grad_by_freq?, sparse?"
    ),
    passing="_weight _freeze",
):
    """Looks rows up in a table of parameters."""

    forward = F.embedding

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """A layer with a given table, which by default is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        make: Callable[..., Self] = cls
        return make(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip


class Flatten(Layer, fields="start_dim=1, end_dim=-1"):
    """Makes one dimension of a range of them."""

    def forward(self, input: Tensor) -> Tensor:
        """The input with the dimensions from `start_dim` to `end_dim` as one."""
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer, fields="dim, unflattened_size"):
    """Makes several dimensions of one."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the kinds of both fields."""
        if not isinstance(self.dim, int):
            raise TypeError("invalid argument type for dim parameter: names are not supported")
        if not isinstance(self.unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(self.unflattened_size).__name__}"
            )
        for position, size in enumerate(self.unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {position}"
                )

    def forward(self, input: Tensor) -> Tensor:
        """The input with the dimension `dim` as several."""
        return input.unflatten(self.dim, self.unflattened_size)


class CosineSimilarity(Layer, fields="dim=1, eps=1e-8", shown=""):
    """The cosine of the angle between vectors along a dimension."""

    forward = F.cosine_similarity


class PairwiseDistance(Layer, fields="p=2.0, eps=1e-6, keepdim=False", shown="", passing="p"):
    """The norm of the difference of vectors along the last dimension."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Keep the order of the norm under its name."""
        self.norm = values["p"]

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distances of both inputs."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
