"""Layers as functions: normalisation, dropout, embedding and padding."""

from __future__ import annotations

import warnings
from typing import Any

from ...autograd.grad_mode import no_grad
from ...backends.allocation import new_array_like
from ...backends.backend import backend_of
from ...backends.placement import of_array
from ...core import dtypes
from ...core.arrays import WrapperArray
from ...core.state import thread_state
from ...core.tensor import Tensor, wrap
from ...creation.drawing import draws
from ...creation.factories import empty_like
from ...creation.sampling import fill_bernoulli
from ...operators import indexing, joining, pointwise
from ...operators import nn as layers
from ...operators.norms import norm, vector_norm
from ...operators.padding import continued
from ...transforms.memory import plain

# Normalisation ------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The input with mean 0 and variance 1 over its last dimensions, then scaled and shifted."""
    shape = _shape_argument("layer_norm", normalized_shape)
    return layers.native_layer_norm.call((input, shape, weight, bias, float(eps)))[0]


def _shape_argument(name: str, given: Any) -> tuple[int, ...]:
    if isinstance(given, int):
        raise TypeError(
            f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int"
        )
    return tuple(given)


def rms_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """The input divided by the root of the mean of its squares over the last dimensions."""
    shape = _shape_argument("rms_norm", normalized_shape)
    return layers.rms_norm(input, shape, weight, eps)


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: Any = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """The vectors along a dimension divided by their norms, at least `eps`."""
    size = norm(input, p, dim, True).clamp(min=eps).expand_as(input)
    return input / size if out is None else pointwise.div(input, size, out=out)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angles between vectors along a dimension."""
    common = dtypes.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{common.scalar_name}"
        )
    if x1.array.shape != x2.array.shape:
        x1, x2 = joining.broadcast_tensors(x1, x2)
    first, second = [
        x / vector_norm(x, 2, dim, True).clamp(min=eps) for x in (x1.to(common), x2.to(common))
    ]
    return (first * second).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norms of the differences of vectors along the last dimension."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


# Dropout ------------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """In training, zeros with probability `p` and the rest scaled up to keep the mean."""
    _check_probability(p)
    if not training or p == 0 or input.array.size == 0:
        return input
    return _masked(input, input, p, inplace)


def _masked(input: Tensor, pattern: Tensor, p: float, inplace: bool) -> Tensor:
    """The input times random zeros and ones in the shape of `pattern`, scaled up."""
    kind = dtypes.from_numpy(input.array.dtype)
    if p < 1 and kind.category < dtypes.FLOATING:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {kind.scalar_name}: "
            "dropout() scales what it keeps"
        )
    mask = dropout_mask(pattern, p) if p < 1 else pattern.new_zeros(())
    return input.mul_(mask) if inplace else input * mask


@draws()
def dropout_mask(pattern: Tensor, p: float) -> Tensor:
    """Random zeros, and ones scaled up to keep the mean."""
    if thread_state().levels:
        return thread_state().levels[-1].drawn_like(lambda t: dropout_mask(t, p), pattern)
    kind = dtypes.from_numpy(pattern.array.dtype)
    if type(pattern.array) is WrapperArray:
        ones = empty_like(pattern, dtype=kind.to_real()).bernoulli_(1 - p)
        return ones / (1 - p)
    noise = new_array_like(pattern.array, kind.to_real(), of_array(pattern.array))
    fill_bernoulli(noise, 1 - p)
    noise /= 1 - p
    return wrap(noise)


def _feature_dropout(
    name: str, input: Tensor, ranks: tuple[int, int], p: float, training: bool, inplace: bool
) -> Tensor:
    """Dropout of whole channels; `ranks` are those of one sample and of a batch.

    What has three dimensions is for `dropout2d` a batch of sequences, as PyTorch has kept it.
    """
    _check_probability(p)
    ndim = input.array.ndim
    if name == "dropout1d" and ndim not in ranks:
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input.")
    if ndim < 2 and name == "dropout2d":
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if ndim not in ranks:
        warnings.warn(
            f"{name}: Received a {ndim}-D input, which is deprecated and will result in an error "
            f"in a future release; expected {ranks[0]}-D or {ranks[1]}-D.",
            stacklevel=3,
        )
    alone = ndim != ranks[1] and name != "dropout2d"
    if alone:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    if training and p != 0 and input.array.size:
        pattern = input.detach()[(slice(None),) * 2 + (slice(0, 1),) * (input.array.ndim - 2)]
        input = _masked(input, pattern, p, inplace)
    if alone:
        return input.squeeze_(0) if inplace else input.squeeze(0)
    return input


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of sequences."""
    return _feature_dropout("dropout1d", input, (2, 3), p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of images."""
    return _feature_dropout("dropout2d", input, (3, 4), p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of volumes."""
    return _feature_dropout("dropout3d", input, (4, 5), p, training, inplace)


# Embedding ----------------------------------------------------------------------------------------


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices in `input`.

    The row `padding_idx` gets no gradient. With `max_norm`, rows that are used and longer than that
    are shortened in place.
    """
    rows = weight.array.shape[0] if weight.array.ndim else 0
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    return indexing.embedding.call((weight, input, padding_idx, scale_grad_by_freq, sparse))


def _shorten_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        read = plain(indices, "embedding(max_norm=...)").array
        used = wrap(backend_of(read).xp.unique(read))
        rows = weight[used]
        sizes = vector_norm(rows, norm_type, 1, True)
        factors = pointwise.where(sizes > max_norm, max_norm / (sizes + 1e-7), 1)
        weight[used] = rows * factors


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a row of zeros with a one in its place."""
    return indexing.one_hot.call((tensor, num_classes))


# Padding ------------------------------------------------------------------------------------------


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """The tensor with a border: `pad` holds widths before and after, the last dimension first.

    The border is a constant, or by `mode` reflects, replicates or continues the tensor.
    """
    widths = tuple(pad)
    ndim = input.array.ndim
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(widths)} and input of dimension {ndim}"
        )
    if mode == "constant":
        return layers.constant_pad_nd.call((input, widths, 0 if value is None else value))
    if value is not None and value != 0:
        raise ValueError(f"Padding mode \"{mode}\" doesn't take in value argument")
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    count = len(widths) // 2
    if ndim not in (count + 1, count + 2):
        raise NotImplementedError(
            f"Padding size {len(widths)} is not supported for {ndim}D input tensor."
        )
    for i in range(count):
        dim = ndim - 1 - i
        input = continued(input, dim, widths[2 * i], widths[2 * i + 1], mode)
    return input
