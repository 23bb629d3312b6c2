"""Losses of counts, of distances and of margins between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core import dtypes
from ...core.errors import shape_text
from ...core.tensor import Tensor
from ...operators.affine import linear
from ...operators.contraction import tensordot
from ...operators.pointwise import minimum, where
from . import losses
from .activations import logsigmoid
from .layers import pairwise_distance
from .losses import _reduced, _reduction, cross_entropy

_EPSILON = 1e-12


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the probabilities of counts, without terms of the target alone.

    With `full` the missing term is added by Stirling's formula, for counts above one.
    """
    code = _reduction(reduction, size_average, reduce)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        known = where(target > 1, target, 2)
        stirling = known * known.log() - known + 0.5 * (2 * math.pi * known).log()
        loss = loss + where(target > 1, stirling, 0)
    return _reduced(loss, code)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the densities of normal distributions with variances `var`."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = input.new_full(input.array.shape, var)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    spread: Any = var
    shape, given = input.array.shape, spread.array.shape
    if given != shape:
        differing = [m for n, m in zip(shape, given, strict=False) if n != m]
        if given == shape[:-1]:
            spread = spread.unsqueeze(-1)
        elif len(given) != len(shape) or differing != [1]:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    # The gradient passes by the limit, so that a variance below it can grow.
    limited = spread + (spread.detach().clamp(min=eps) - spread.detach())
    loss = 0.5 * (limited.log() + (input - target) ** 2 / limited)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, _reduction(reduction, None, None))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances of what is alike (target 1), and what distances of others (-1) lack to a margin."""
    code = _reduction(reduction, size_average, reduce)
    apart = where(target != 1, (margin - input).clamp(min=0), 0)
    return _reduced(apart + where(target != -1, input, 0), code)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The logistic loss of numbers and signs."""
    code = _reduction(reduction, size_average, reduce)
    return _reduced((-input * target).exp().log1p(), code)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What lacks to a margin by which the first (target 1) or second (-1) should be larger."""
    code = _reduction(reduction, size_average, reduce)
    if not input1.array.ndim == input2.array.ndim == target.array.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0), code)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """One less the cosine of what is alike (target 1), else (-1) what it exceeds a margin by."""
    code = _reduction(reduction, size_average, reduce)
    ndim = target.array.ndim
    if ndim > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported, but got target of size "
            f"{shape_text(target.array.shape)}"
        )
    if input1.array.ndim != ndim + 1 or input2.array.ndim != ndim + 1:
        raise RuntimeError(
            f"{ndim}D target tensor expects {ndim + 1}D input tensors, but found inputs with sizes "
            f"{shape_text(input1.array.shape)} and {shape_text(input2.array.shape)}."
        )
    squares = [(x * x).sum(-1) + _EPSILON for x in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / (squares[0] * squares[1]).sqrt()
    alike = where(target == 1, 1 - cosine, 0)
    return _reduced(alike + where(target == -1, (cosine - margin).clamp(min=0), 0), code)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What distances to positive examples lack to be smaller by a margin than to negative ones."""
    code = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplets(
        lambda x, y: pairwise_distance(x, y, p, eps), anchor, positive, negative, margin, swap, code
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The triplet margin loss with a distance of one's own."""
    code = _reduction(reduction, None, None)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplets(distance, anchor, positive, negative, margin, swap, code)


def _triplets(
    distance: Callable, anchor: Tensor, positive: Tensor, negative: Tensor, margin: float,
    swap: bool, code: int,
) -> Tensor:  # fmt: skip
    ranks = [t.array.ndim for t in (anchor, positive, negative)]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {ranks[0]}D, positive {ranks[1]}D, and negative "
            f"{ranks[2]}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return _reduced((margin + near - far).clamp(min=0), code)


# Classes ------------------------------------------------------------------------------------------


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over all classes of the cross entropy of each, which the target holds or not."""
    if size_average is None and reduce is None and reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    code = _reduction(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(-1) / input.array.shape[-1], code)


def _rows(name: str, input: Tensor) -> tuple[Tensor, bool]:
    """The input as a matrix, and whether it was a vector."""
    shape = input.array.shape
    if len(shape) not in (0, 1, 2) or (len(shape) and not shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{shape_text(shape)}"
        )
    single = len(shape) < 2
    return input.reshape((1, -1)) if single else input, single


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What the score of the target lacks to exceed all others by a margin, or its square."""
    code = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.array.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    rows, single = _rows("multi_margin_loss", input)
    count, classes = rows.array.shape
    labels = target.reshape(-1)
    if labels.array.shape != (count,) or target.array.ndim > 1:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples. Expected target size [{count}], but got {shape_text(target.array.shape)}: "
            "inconsistent target size"
        )
    if weight is not None and weight.array.shape != (classes,):
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got "
            f"{shape_text(weight.array.shape)}"
        )
    if target.dtype is not dtypes.int64:
        raise RuntimeError(
            f"expected scalar type Long but found {target.dtype.scalar_name} for argument "
            "'target' of multi_margin_loss()"
        )
    own = rows.gather(1, labels.unsqueeze(1))
    lacking = (margin - own + rows).clamp(min=0)
    lacking = lacking if p == 1 else lacking * lacking
    if weight is not None:
        lacking = lacking * weight.index_select(0, labels).unsqueeze(1)
    classes_of = labels.new_tensor(list(range(classes)))
    loss = where(classes_of == labels.unsqueeze(1), 0, lacking).sum(1) / classes
    if single and code == losses.losses.NONE:
        return loss.reshape(())
    return _reduced(loss, code)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What scores of target classes lack to exceed those of others by one.

    The classes stand in front of the first negative number in each row of the target.
    """
    code = _reduction(reduction, size_average, reduce)
    rows, single = _rows("multilabel_margin_loss", input)
    if target.array.shape != input.array.shape:
        raise RuntimeError(
            f"inconsistent target size: {shape_text(target.array.shape)} for input of size: "
            f"{shape_text(input.array.shape)}"
        )
    labels = target.reshape(rows.array.shape)
    classes = rows.array.shape[1]
    valid = (labels >= 0).long().cumprod(1) == 1
    places = where(valid, labels, classes)
    marks = labels.new_zeros((rows.array.shape[0], classes + 1)).scatter(1, places, 1)
    others = (marks[:, :classes] == 0).unsqueeze(1)
    own = rows.gather(1, where(valid, labels, 0)).unsqueeze(2)
    lacking = (1 - own + rows.unsqueeze(1)).clamp(min=0)
    loss = where(valid.unsqueeze(2) & others, lacking, 0).sum((1, 2)) / classes
    if single and code == losses.losses.NONE:
        return loss.reshape(())
    return _reduced(loss, code)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Cross entropy of the scores that a linear layer gives.

    `options` say how PyTorch computes the same in pieces, to save memory; here all is one piece.
    """
    if input.array.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.array.ndim}")
    if linear_weight.array.ndim < 2:
        raise RuntimeError(
            "expected linear_weight with dimensionality at least 2, got "
            f"{linear_weight.array.ndim}"
        )
    if input.array.shape[-1] != linear_weight.array.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.array.shape[-1]} and {linear_weight.array.shape[-1]}, respectively"
        )
    if linear_bias is not None and linear_bias.array.shape != linear_weight.array.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {linear_weight.array.shape[:-1]}, got "
            f"{linear_bias.array.shape}"
        )
    if linear_weight.array.ndim > 2 and input.array.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.array.shape)} "
            f"requires batched input, (N, {input.array.shape[0]}), got unbatched input with shape "
            f"{tuple(input.array.shape)}"
        )
    if linear_weight.array.ndim == 2:
        scores = linear(input, linear_weight, linear_bias)
    else:
        scores = tensordot(input, linear_weight, ([-1], [-1]))
        scores = scores if linear_bias is None else scores + linear_bias
    if ignore_index is not None and target.array.shape == scores.array.shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return cross_entropy(
        scores, target, weight, ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction, label_smoothing=label_smoothing,
    )  # fmt: skip
