"""Attention as functions: of queries, keys and values, and of several heads with projections."""

from __future__ import annotations

import math
from typing import Any

from ...core import dtypes
from ...core.errors import c_name, warn_user
from ...core.tensor import Tensor
from ...creation.factories import full, ones, zeros_like
from ...operators.affine import linear
from ...operators.joining import cat
from ...operators.softmax import softmax
from .layers import dropout, pad

# Scaled dot products ------------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Values averaged by the softmax of the products of queries and keys.

    A boolean mask says which keys take part, any other is added to the products. With
    `enable_gqa`, several heads of the query share one head of key and value.
    """
    _check_operands(query, key, value, attn_mask)
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if enable_gqa:
        key, value = _shared_heads(query, key), _shared_heads(query, value)
    width = query.array.shape[-1]
    factor = scale if scale is not None else (1 / math.sqrt(width) if width else 1.0)
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        seen = ones(scores.array.shape[-2:], dtype=dtypes.bool, device=scores.device).tril()
        weights = softmax(scores.masked_fill(~seen, -math.inf), -1)
    elif attn_mask is None:
        weights = softmax(scores, -1)
    else:
        weights = _masked_softmax(scores, attn_mask)
    return dropout(weights, dropout_p) @ value


def _check_operands(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    if min(query.array.ndim, key.array.ndim, value.array.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.array.ndim} key.dim: {key.array.ndim} and value.dim: {value.array.ndim} "
            "instead."
        )
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{c_name(query.dtype)} key.dtype: {c_name(key.dtype)} and value.dtype: "
            f"{c_name(value.dtype)} instead."
        )
    if mask is not None and mask.dtype not in (dtypes.bool, dtypes.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {c_name(mask.dtype)} and  query.dtype: "
            f"{c_name(query.dtype)} instead."
        )


def _shared_heads(query: Tensor, shared: Tensor) -> Tensor:
    """The heads of key or value, each repeated for the heads of the query that share it."""
    wanted, found = query.size(-3), shared.size(-3)
    if found == 0 or wanted % found:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query: "
            f"got {found} and {wanted}"
        )
    return shared.repeat_interleave(wanted // found, -3)


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax along the last dimension; a row that is masked throughout gives zeros, not NaN."""
    if mask.array.dtype.kind == "b":
        scores = scores.masked_fill(~mask, -math.inf)
    else:
        scores = scores + mask.to(scores.dtype)
    empty = (scores == -math.inf).all(-1, True)
    return softmax(scores.masked_fill(empty, 0), -1).masked_fill(empty, 0)


# Masks --------------------------------------------------------------------------------------------


def additive_mask(
    mask: Tensor | None, name: str, dtype: Any, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    """A mask to be added to scores: true elements of a boolean one become minus infinity.

    Warns if the mask `other` is of another type.
    """
    if mask is None:
        return None
    if mask.dtype != dtypes.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype != other.dtype:
        warn_user(
            f"Support for mismatched {name} and {other_name} is deprecated. "
            "Use same type for both instead."
        )
    if mask.is_floating_point():
        return mask
    return zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Minus infinity above the diagonal and zeros elsewhere."""
    return full((size, size), -math.inf, dtype=dtype, device=device).triu(1)


def _check_ranks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> None:
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    start = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`, expected"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"{start} `key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(
            f"{start} `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
                "tensor instead"
            )
        expected = (num_heads, query.shape[0], key.shape[0])
        if rank == 2 and attn_mask.dim() == 3 and attn_mask.shape != expected:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}"
            )


def _with_heads(mask: Tensor, batch: int, heads: int, rows: int, columns: int) -> Tensor:
    """A mask of all heads, of two or three dimensions, as one of four."""
    expected = (rows, columns) if mask.dim() == 2 else (batch * heads, rows, columns)
    if mask.shape != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return mask if mask.dim() == 2 else mask.reshape(batch, heads, rows, columns)


def _check_padding(mask: Tensor, batch: int, length: int) -> None:
    for dim, expected in enumerate((batch, length)):
        if mask.shape[dim] != expected:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got "
                f"{mask.shape[dim]}"
            )


# Projections --------------------------------------------------------------------------------------


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Query, key and value times their thirds of one weight; what is one tensor, in one product."""
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    size = query.size(-1)
    if query is key and key is value:
        return tuple(linear(query, weight, bias).split(size, -1))
    parts = (1, 2) if key is value else (1, 1, 1)
    sizes = [n * size for n in parts]
    biases = [None] * len(sizes) if bias is None else bias.split(sizes)
    inputs = (query, key, value)[: len(sizes)]
    results = [
        linear(*each) for each in zip(inputs, weight.split(sizes), biases, strict=True)
    ]
    if key is value:
        results[1:] = results[1].split(size, -1)
    return tuple(results)


def _projected_separately(
    inputs: tuple[Tensor, ...], weights: tuple[Tensor | None, ...], bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Query, key and value, which may differ in size, times weights of their own."""
    size = inputs[0].size(-1)
    biases = (None,) * 3 if bias is None else bias.split(size)
    results = []
    for name, x, weight, shift in zip(
        ("query", "key", "value"), inputs, weights, biases, strict=True
    ):
        if weight is None:
            raise AssertionError(
                f"use_separate_proj_weight is True but {name[0]}_proj_weight is None"
            )
        if weight.shape != (size, x.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(size, x.size(-1))}, but got {weight.shape}"
            )
        results.append(linear(x, weight, shift))
    return tuple(results)


def _check_static(name: str, given: Tensor, count: int, width: int) -> Tensor:
    for dim, expected in ((0, count), (2, width)):
        if given.size(dim) != expected:
            raise AssertionError(
                f"expecting {name}.size({dim}) of {expected}, but got {given.size(dim)}"
            )
    return given


def _check_sizes(
    query: Tensor, key: Tensor, value: Tensor, expected: int, num_heads: int, separate: bool
) -> None:
    size = query.shape[-1]
    if size != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {size}")
    if size % num_heads:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if separate and key.shape[:-1] != value.shape[:-1]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:-1]} do not match value's "
            f"{value.shape[:-1]}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _has_biases(bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> bool:
    """Whether a key and a value are added, which cannot be to given ones."""
    if bias_k is None and bias_v is None:
        return False
    if bias_k is None or bias_v is None:
        one, other = ("bias_v", "bias_k") if bias_k is None else ("bias_k", "bias_v")
        raise AssertionError(f"{one} is set but {other} is None")
    for name, given in (("key", static_k), ("value", static_v)):
        if given is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    return True


def _joined_mask(
    attn_mask: Tensor | None, padding: Tensor | None, added: int, batch: int, length: int
) -> Tensor | None:
    """Both masks as one, which does not hide the last `added` keys."""
    if added:
        attn_mask = None if attn_mask is None else pad(attn_mask, (0, added))
        padding = None if padding is None else pad(padding, (0, added))
    if padding is None:
        return attn_mask
    _check_padding(padding, batch, length)
    hidden = padding.reshape(batch, 1, 1, -1)
    return hidden if attn_mask is None else attn_mask + hidden


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: float, is_causal: bool, weighted: bool
) -> tuple[Tensor, Tensor | None]:
    """The values of all heads averaged by attention, and the weights if they are wanted."""
    if not weighted:
        return scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal), None
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    weights = dropout(softmax(scores if mask is None else scores + mask, -1), dropout_p)
    return weights @ v, weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads, with projections before and after it.

    Inputs are (length, batch, features) or (length, features). Returns the output and, with
    `need_weights`, the attention weights, by default their mean over the heads.
    """
    _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    is_batched = query.dim() == 3
    key_padding_mask = additive_mask(
        key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask"
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    # The hint replaces the mask where nothing else is masked and no weights are asked for.
    is_causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if is_causal else additive_mask(attn_mask, "attn_mask", query.dtype)
    if use_separate_proj_weight:
        q, k, v = _projected_separately(
            (query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias
        )
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if not is_batched:
        q, k, v = [each.unsqueeze(1) for each in (q, k, v)]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    rows, batch, size = q.shape
    width = size // num_heads
    if attn_mask is not None:
        attn_mask = _with_heads(attn_mask, batch, num_heads, rows, k.shape[0])

    def by_head(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], batch, num_heads, width).permute(1, 2, 0, 3)

    def static(name: str, given: Tensor) -> Tensor:
        checked = _check_static(name, given, batch * num_heads, width)
        return checked.reshape(batch, num_heads, -1, width)

    added = 0  # keys that no mask hides
    if _has_biases(bias_k, bias_v, static_k, static_v):
        more: Any = (bias_k, bias_v)
        k, v = [cat([x, each.expand(1, batch, size)]) for x, each in zip((k, v), more, strict=True)]
        added += 1
    q = by_head(q)
    k = by_head(k) if static_k is None else static("static_k", static_k)
    v = by_head(v) if static_v is None else static("static_v", static_v)
    if add_zero_attn:
        k, v = [cat([each, each.new_zeros(batch, num_heads, 1, width)], 2) for each in (k, v)]
        added += 1
    mask = _joined_mask(attn_mask, key_padding_mask, added, batch, k.shape[2])
    mixed, weights = _attended(
        q, k, v, mask, dropout_p if training else 0.0, is_causal, need_weights
    )
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    joined = mixed.permute(2, 0, 1, 3).reshape(rows * batch, size)
    result = linear(joined, out_proj_weight, out_proj_bias).reshape(rows, batch, -1)
    if is_batched:
        return result, weights
    return result.squeeze(1), None if weights is None else weights.squeeze(0)
