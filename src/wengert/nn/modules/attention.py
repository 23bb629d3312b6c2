"""Attention of several heads as a layer."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..functional.attention import additive_mask
from .layer import Layer, parameter
from .linear import Linear


class NonDynamicallyQuantizableLinear(Linear):
    """The projection behind attention: a linear layer under the name that PyTorch gives it."""


def _xavier_uniform(layer: Any, t: Tensor) -> None:
    init.xavier_uniform_(t)


def _xavier_normal(layer: Any, t: Tensor) -> None:
    init.xavier_normal_(t)


class MultiheadAttention(
    Layer,
    fields=(
        "embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, "
        "kdim=None, vdim=None, batch_first=False"
    ),
    shown="",
    passing="bias add_bias_kv device dtype",
):
    """Attention of several heads, with projections of query, key and value and of the result."""

    q_proj_weight = parameter("embed_dim", "embed_dim", init=_xavier_uniform, when="separate")
    k_proj_weight = parameter("embed_dim", "kdim", init=_xavier_uniform, when="separate")
    v_proj_weight = parameter("embed_dim", "vdim", init=_xavier_uniform, when="separate")
    in_proj_weight = parameter("_joint_dim", "embed_dim", init=_xavier_uniform, when="joint")
    in_proj_bias = parameter(
        "_joint_dim", init=lambda layer, t: layer._clear_biases(t), when="bias"
    )
    bias_k = parameter(1, 1, "embed_dim", init=_xavier_normal, when="add_bias_kv")
    bias_v = parameter(1, 1, "embed_dim", init=_xavier_normal, when="add_bias_kv")

    def _construct(self, values: dict[str, Any], device: Any = None, dtype: Any = None) -> None:
        super()._construct({**values, "device": device, "dtype": dtype}, device, dtype)

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the sizes and make the projection of the result."""
        size, heads = self.embed_dim, self.num_heads
        if size <= 0 or heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got embed_dim="
                f"{size} and num_heads={heads} instead"
            )
        self.kdim = size if values["kdim"] is None else values["kdim"]
        self.vdim = size if values["vdim"] is None else values["vdim"]
        self.head_dim = size // heads
        if self.head_dim * heads != size:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self._qkv_same_embed_dim = self.kdim == size and self.vdim == size
        self._joint_dim = 3 * size
        values["joint"] = self._qkv_same_embed_dim
        values["separate"] = not self._qkv_same_embed_dim
        self.out_proj = NonDynamicallyQuantizableLinear(
            size, size, values["bias"], values["device"], values["dtype"]
        )

    def _clear_biases(self, t: Tensor) -> None:
        init.zeros_(t)
        init.zeros_(self.out_proj.bias)

    def _reset_parameters(self) -> None:
        """Give all parameters but the weight of the last projection their initial values anew."""
        self.reset_parameters()

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output of all heads, and with `need_weights` the attention weights, else None."""
        key_padding_mask = additive_mask(
            key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask"
        )
        attn_mask = additive_mask(attn_mask, "attn_mask", query.dtype)
        turned = self.batch_first and query.dim() == 3
        if turned:
            # What is one tensor stays one, and is projected by one product.
            found: dict[int, Tensor] = {}
            for each in (query, key, value):
                found.setdefault(id(each), each.transpose(1, 0))
            query, key, value = [found[id(each)] for each in (query, key, value)]
        result, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (result.transpose(1, 0) if turned else result), weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one of (batch, heads, length, length), and which kind that is.

        The kind is 1 for a mask of keys alone, which is returned as it is, else 2.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            hidden = key_padding_mask.view(batch, 1, 1, length)
            merged = merged + hidden.expand(-1, self.num_heads, -1, -1)
        return merged, 2
