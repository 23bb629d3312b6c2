"""Loss functions."""

from __future__ import annotations

import math
import warnings

from ...autograd.grad_mode import is_grad_enabled
from ...core.tensor import Tensor
from ...operators import losses
from ...operators.softmax import log_softmax

_REDUCTIONS = {"none": losses.NONE, "mean": losses.MEAN, "sum": losses.SUM}


def legacy_reduction(size_average: bool | None, reduce: bool | None, stacklevel: int) -> str:
    """The reduction that the two older arguments choose, with a warning."""
    average = size_average is None or size_average
    whole = reduce is None or reduce
    reduction = ("mean" if average else "sum") if whole else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' "
        "instead.",
        stacklevel=stacklevel,
    )
    return reduction


def _reduction(reduction: str, size_average: bool | None, reduce: bool | None) -> int:
    """The number of a reduction; the two older arguments take precedence, with a warning."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, stacklevel=5)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    if reduction == losses.NONE:
        return loss
    return loss.mean() if reduction == losses.MEAN else loss.sum()


def _refuse_gradient(function: str, **constants: Tensor | None) -> None:
    """Refuse weights that require gradients: no loss has a derivative by them."""
    for name, value in constants.items():
        if value is not None and value.requires() and is_grad_enabled():
            raise RuntimeError(
                f"{function} is not differentiable with respect to argument '{name}'. This input "
                "cannot have requires_grad True."
            )


def _warn_sizes(input: Tensor, target: Tensor) -> None:
    if input.array.shape != target.array.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _weighted(values: Tensor, weight: Tensor, reduction: int) -> Tensor:
    """Values times weights; their mean is the weighted one."""
    total = _reduced(values * weight, losses.SUM if reduction == losses.MEAN else reduction)
    if reduction != losses.MEAN:
        return total
    return total / weight.expand(values.array.shape).sum()


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared differences of two tensors."""
    _warn_sizes(input, target)
    code = _reduction(reduction, size_average, reduce)
    if weight is None:
        return losses.mse_loss.call((input, target, code))
    return _weighted(losses.mse_loss.call((input, target, losses.NONE)), weight, code)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The sizes of the differences of two tensors."""
    _warn_sizes(input, target)
    code = _reduction(reduction, size_average, reduce)
    values = (input - target).abs()
    return _reduced(values, code) if weight is None else _weighted(values, weight, code)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Sizes of the differences of two tensors, squared where they are smaller than `beta`."""
    _warn_sizes(input, target)
    code = _reduction(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return _reduced((input - target).abs(), code)
    return losses.smooth_l1_loss.call((input, target, float(beta), code))


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half of the squared differences of two tensors, growing only linearly beyond `delta`."""
    _warn_sizes(input, target)
    code = _reduction(reduction, None, None)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is None:
        return losses.huber_loss.call((input, target, float(delta), code))
    values = losses.huber_loss.call((input, target, float(delta), losses.NONE))
    return _reduced(values * weight, code)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Divergence of `input`, logarithms of probabilities, from the distribution `target`."""
    for kind, word in (("biu", "Integral"), ("c", "Complex")):
        if input.array.dtype.kind in kind or target.array.dtype.kind in kind:
            raise RuntimeError(f"kl_div: {word} inputs not supported.")
    by_batch = reduction == "batchmean" and size_average is None and reduce is None
    code = _reduction("sum" if by_batch else reduction, size_average, reduce)
    if code == losses.MEAN:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.",
            stacklevel=2,
        )
    if log_target:
        values = target.exp() * (target - input)
    else:
        values = losses.times_log(target) - target * input
    total = _reduced(values, code)
    if by_batch and input.array.ndim:
        total = total / input.array.shape[0]
    return total


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of probabilities with targets between 0 and 1."""
    code = _reduction(reduction, size_average, reduce)
    if input.array.shape != target.array.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    _refuse_gradient("binary_cross_entropy", weight=weight)
    return losses.binary_cross_entropy.call((input, target, weight, code))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of `sigmoid(input)` with targets between 0 and 1."""
    code = _reduction(reduction, size_average, reduce)
    if input.array.shape != target.array.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    _refuse_gradient(
        "binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight
    )
    return losses.binary_cross_entropy_with_logits.call((input, target, weight, pos_weight, code))


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of the target classes; `input` holds logarithms."""
    code = _reduction(reduction, size_average, reduce)
    return _nll(input, target, weight, code, ignore_index)


def _nll(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Tensor:
    shape, batch = input.array.shape, target.array.shape
    if not shape:
        raise ValueError(f"Expected 1 or more dimensions (got {len(shape)})")
    if len(shape) == 1 and len(batch) == 1:
        if batch != (1,):
            raise ValueError(
                f"For 1D input, 1D target must have size 1, but got target size: {batch[0]}"
            )
        target = target.reshape(())
    elif len(shape) > 1 and batch[:1] != shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({batch[0] if batch else 0})."
        )
    elif len(shape) == 2 and len(batch) > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported: got a target of "
            f"{len(batch)} dimensions"
        )
    elif len(shape) > 2 and len(batch) != len(shape) - 1:
        raise RuntimeError(
            f"only batches of spatial targets supported ({len(shape) - 1}D tensors) but got "
            f"targets of dimension: {len(batch)}"
        )
    _refuse_gradient("nll_loss", weight=weight)
    return losses.nll_loss.call((input, target, weight, reduction, ignore_index))


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of `softmax(input)` with classes or, in the shape of `input`, probabilities."""
    code = _reduction(reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(
            f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}"
        )
    class_dim = 0 if input.array.ndim == 1 else 1
    if input.array.shape == target.array.shape:
        if not target.is_floating_point():
            raise RuntimeError(
                "Expected floating point type for target with class probabilities, got "
                f"{target.dtype.scalar_name}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_cross_entropy(input, target, weight, code, label_smoothing, class_dim)
    likelihood = log_softmax.call((input, class_dim, None))
    loss = _nll(likelihood, target, weight, code, ignore_index)
    if label_smoothing == 0:
        return loss
    smooth = _smoothing_loss(likelihood, target, weight, code, ignore_index, class_dim)
    share = label_smoothing / input.array.shape[class_dim]
    return loss * (1 - label_smoothing) + smooth * share


def _per_class(weight: Tensor, likelihood: Tensor, class_dim: int) -> Tensor:
    """Class weights in a shape that broadcasts against the input."""
    after = likelihood.array.ndim - 1 - class_dim
    return weight.reshape((1,) * class_dim + (-1,) + (1,) * after)


def _smoothing_loss(
    likelihood: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    class_dim: int,
) -> Tensor:
    """The loss that all classes together contribute when labels are smoothed."""
    weighed = likelihood
    if weight is not None:
        weighed = likelihood * _per_class(weight, likelihood, class_dim)
    ignored = target == ignore_index
    values = (-weighed.sum(class_dim)).masked_fill(ignored, 0)
    if reduction == losses.NONE:
        return values
    if reduction == losses.SUM:
        return values.sum()
    if weight is None:
        return values.sum() / (~ignored).sum()
    chosen = target.masked_fill(ignored, 0)
    return values.sum() / weight[chosen].masked_fill(ignored, 0).sum()


def _soft_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    label_smoothing: float,
    class_dim: int,
) -> Tensor:
    likelihood = log_softmax.call((input, class_dim, None))
    classes = input.array.shape[class_dim]
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    values = likelihood * target
    if weight is not None:
        if weight.array.shape != (classes,):
            raise RuntimeError(
                f"cross_entropy: weight tensor should be defined either for all {classes} classes "
                f"or no classes but got weight tensor of shape: {list(weight.array.shape)}"
            )
        values = values * _per_class(weight, likelihood, class_dim)
    if reduction == losses.NONE:
        return -values.sum(class_dim)
    total = -values.sum()
    if reduction == losses.MEAN:
        total = total / (input.array.size / classes if classes else math.nan)
    return total
