"""Transformers: layers of an encoder and a decoder, stacks of them, and both together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ...autograd.grad_mode import is_grad_enabled
from ...core.errors import warn_user
from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..functional.attention import additive_mask, causal_mask
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .linear import Linear
from .module import Module
from .regularisation import Dropout, LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    """An activation given as a function or by name."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _is_causal(mask: Tensor | None, hint: bool | None, size: int) -> bool:
    """Whether a mask hides exactly what lies ahead; a hint other than None is believed."""
    if hint is not None or mask is None:
        return bool(hint)
    if mask.shape != (size, size):
        return False
    return bool((mask == causal_mask(size, mask.device, mask.dtype)).all())


def _length(x: Tensor, batch_first: bool) -> int:
    return x.shape[1 if batch_first and x.dim() == 3 else 0]


class _Block(Module):
    """What the layers of encoder and decoder share: attention, a network of two layers, norms."""

    def _build(
        self,
        attentions: tuple[str, ...],
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        made: dict[str, Any],
    ) -> None:
        for name in attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        steps = range(1, len(attentions) + 2)
        for i in steps:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
        for i in steps:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"activation": F.relu, **state})

    def _residual(self, x: Tensor, number: int, step: Callable[[Tensor], Tensor]) -> Tensor:
        """The input plus what a step makes of it, normalised before the step or at the end."""
        norm, drop = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.norm_first:
            return x + drop(step(norm(x)))
        return norm(x + drop(step(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Block):
    """Attention of a sequence to itself, then a network of two layers at each place."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._build(
            ("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
            batch_first, norm_first, bias, {"device": device, "dtype": dtype},
        )  # fmt: skip
        chosen = self.activation
        if chosen is F.relu or isinstance(chosen, ReLU):
            self.activation_relu_or_gelu = 1
        else:
            self.activation_relu_or_gelu = 2 if chosen is F.gelu or isinstance(chosen, GELU) else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The sequence after attention to itself and the network."""
        padding = additive_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask"
        )
        mask = additive_mask(src_mask, "src_mask", src.dtype)

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(
                x, x, x, padding, need_weights=False, attn_mask=mask, is_causal=is_causal
            )[0]

        return self._residual(self._residual(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Block):
    """Attention of a sequence to itself and to another one, then a network of two layers."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._build(
            ("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation,
            layer_norm_eps, batch_first, norm_first, bias, {"device": device, "dtype": dtype},
        )  # fmt: skip

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The sequence after attention to itself and to `memory`, and the network."""

        def attend_itself(x: Tensor) -> Tensor:
            return self.self_attn(
                x, x, x, tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask,
                is_causal=tgt_is_causal,
            )[0]  # fmt: skip

        def attend_memory(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, need_weights=False,
                attn_mask=memory_mask, is_causal=memory_is_causal,
            )[0]  # fmt: skip

        x = self._residual(tgt, 1, attend_itself)
        x = self._residual(x, 2, attend_memory)
        return self._residual(x, 3, self._feed_forward)


def _clones(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """A stack of copies of one encoder layer."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_padding_is_computed(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warn_user(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{reason}"
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The sequence after all layers and the last norm.

        Where PyTorch leaves padding at the end out of the computation, in evaluation without
        gradients, it is zero here too.
        """
        padding = additive_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask"
        )
        mask = additive_mask(mask, "mask", src.dtype)
        first = self.layers[0]
        length = _length(src, first.self_attn.batch_first)
        is_causal = _is_causal(mask, is_causal, length)
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding
            )
        if mask is None and padding is not None and self._leaves_out(src, padding):
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0)
        return output if self.norm is None else self.norm(output)

    def _leaves_out(self, src: Tensor, padding: Tensor) -> bool:
        """Whether PyTorch computes without what is padding."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3:
            return False
        if is_grad_enabled() and any(t.requires_grad for t in (src, *first.parameters())):
            return False
        hidden = padding != 0
        at_end = not bool((hidden[:, :-1] & ~hidden[:, 1:]).any())
        return at_end or not self.mask_check


def _why_padding_is_computed(layer: Any) -> str:
    """Why padding is part of the computation with such layers; empty where it is not."""
    name = "encoder_layer"
    if not isinstance(layer, TransformerEncoderLayer):
        return f"{name} was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return f"{name}.norm_first was True"
    if not attention.batch_first:
        return (
            f"{name}.self_attn.batch_first was not True"
            "(use batch_first for better inference performance)"
        )
    if not attention._qkv_same_embed_dim:
        return f"{name}.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return f"{name}.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return f"{name}.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return f"{name}.norm1.eps was not equal to {name}.norm2.eps"
    return f"{name}.self_attn.num_heads is odd" if attention.num_heads % 2 else ""


class TransformerDecoder(Module):
    """A stack of copies of one decoder layer."""

    def __init__(
        self, decoder_layer: Module, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The sequence after all layers, which attend to `memory`, and the last norm."""
        length = _length(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder, and a decoder that attends to what the encoder makes of another sequence."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}

        def stack(layer_class: Any, stack_class: Any, count: int) -> Any:
            layer = layer_class(
                d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                norm_first, bias, **made,
            )  # fmt: skip
            return stack_class(
                layer, count, LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            )

        self.encoder = (
            stack(TransformerEncoderLayer, TransformerEncoder, num_encoder_layers)
            if custom_encoder is None
            else custom_encoder
        )
        self.decoder = (
            stack(TransformerDecoderLayer, TransformerDecoder, num_decoder_layers)
            if custom_decoder is None
            else custom_decoder
        )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """What the decoder makes of `tgt`, given what the encoder makes of `src`."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: Any = None
    ) -> Tensor:
        """A mask that hides what lies ahead: minus infinity above the diagonal, else zeros."""
        return causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for each in self.parameters():
            if each.dim() > 1:
                init.xavier_uniform_(each)
