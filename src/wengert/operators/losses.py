"""Loss functions as single nodes, with the reduction built in.

`reduction` is 0 for none, 1 for the mean and 2 for the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from ..backends.layout import laid_out
from ..backends.reductions import reduce_all
from ..backends.vector_loops import vector_loop
from ..core import dtypes
from ..core.errors import shape_text
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..dispatch.operator import Operator
from ..transforms.batching.moving import (
    at_front,
    batch_size,
    flattened,
    padded,
    reshaped,
    with_batch,
)
from ..transforms.batching.rules import aligned
from . import shapes
from .activations import log_sigmoid, tied
from .along import widened, working_dtype
from .declare import elementwise, linear, primitive
from .pointwise import clamp, log, log1p, sigmoid, sign, where

__all__ = []

NONE, MEAN, SUM = range(3)


def _reduced(xp: Any, values: Any, reduction: int) -> Any:
    if reduction == NONE:
        return values
    if reduction == MEAN and values.size:  # of nothing NumPy would warn
        return xp.mean(values)
    return xp.sum(values) if reduction == SUM else xp.full((), math.nan, values.dtype)


def _kernel(
    name: str, element: Callable, leading: Callable = lambda values: values[:2]
) -> Callable:
    """The kernel of a loss from the loss of each element; the reduction is the last argument.

    `leading` picks the operands that decide on the order of losses that are not reduced.
    """

    key = f"{name} of elements"
    loop = vector_loop(key)

    def kernel(xp: Any, *args: Any) -> Any:
        if loop is not None and args[-1] != NONE:
            loss = loop.run(args[:-1])
            total = None if loss is None else reduce_all(loss, args[-1] == MEAN)
            if total is not None:
                return total
        tensors = [each for each in args if hasattr(each, "dtype")]
        goal = reduce(dtypes.promote_types, [dtypes.from_numpy(t.dtype) for t in tensors]).numpy
        if goal.kind in "biuc":
            kind = dtypes.from_numpy(goal).scalar_name
            raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")
        work = working_dtype(goal)
        *values, reduction = [
            each.astype(work, copy=False) if hasattr(each, "dtype") else each for each in args
        ]
        loss = None if loop is None else loop.run(tuple(values))
        if loss is None:
            loss = element(xp, *values)
        if reduction == NONE:
            loss = laid_out(loss, leading(values))
        loss = _reduced(xp, loss, reduction)
        return xp.asarray(loss).astype(goal, copy=False)

    kernel.element, kernel.loop_key = element, key  # type: ignore[attr-defined]
    return kernel


def _times_log(xp: Any, x: Any) -> Any:
    return xp.where(x == 0, x, x * xp.log(xp.where(x == 0, 1, x)))


def _times_log_differential(t: Tensor, x: Tensor) -> Tensor:
    """Zero where `x` is; where there is no logarithm, what takes no part gets no gradient."""
    nowhere = (x == 0) | ((x < 0) & (t == 0))
    return where(nowhere, 0, t * (log(where(x == 0, 1, x)) + 1))


times_log = elementwise(
    "_times_log(Tensor self) -> Tensor",
    _times_log,
    lambda t, self: _times_log_differential(t, self),
    doc="``self * log(self)``, and zero at zero.",
)


def _loss_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """The losses of all elements, then the reduction of each example's."""
    operands, dim = aligned(operator, args, dims)
    losses = at_front(operator.call((*operands[:-1], NONE)), dim)
    if args[-1] == NONE or losses.array.ndim == 1:
        return losses, 0
    inner = tuple(range(1, losses.array.ndim))
    return (losses.mean(inner) if args[-1] == MEAN else losses.sum(inner)), 0


def _kept(shape: tuple[int, ...], reduction: int) -> tuple[int, ...]:
    return shape if reduction == NONE else ()


def _loss_shape(x: Any, target: Any, *args: Any) -> tuple[int, ...]:
    return _kept(shapes.broadcast(x, target), args[-1])


def _spread(g: Tensor, slope: Tensor, reduction: int) -> Tensor:
    """The gradient of each element from that of the reduced loss."""
    return slope * (g / slope.array.size if reduction == MEAN else g)


def _collected(terms: list[Tensor], reduction: int) -> Tensor:
    """The tangent of the reduced loss from the contributions of its arguments."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    if reduction == NONE:
        return total
    return total.mean() if reduction == MEAN else total.sum()


def _loss(
    schema: str, element: Callable, slope: Callable, name: str, doc: str, leading: int = 2
) -> Any:
    """A loss of the difference of two tensors with one option, the width of its square part.

    `slope` is the derivative by the difference.
    """
    return primitive(
        schema,
        _kernel(name, element, lambda values: values[:leading]),
        {
            "self": lambda g, self, target, width, reduction: _spread(
                g, slope(_difference(self, target), width), reduction
            ),
            "target": lambda g, self, target, width, reduction: _spread(
                g, slope(_difference(target, self), width), reduction
            ),
        },
        lambda tangents, self, target, width, reduction: _collected(
            _difference_terms(tangents, slope(_difference(self, target), width)), reduction
        ),
        widens=False,
        shape=_loss_shape,
        batch=_loss_batched,
        doc=doc,
    )


def _difference(x: Tensor, y: Tensor) -> Tensor:
    """`x - y` in which truth values are 0 and 1, as they are in the kernel."""
    if y.array.dtype.kind == "b":
        return x - y.to(x.dtype)
    return x.to(y.dtype) - y if x.array.dtype.kind == "b" else x - y


def _difference_terms(tangents: dict, slope: Tensor) -> list[Tensor]:
    terms = []
    if "self" in tangents:
        terms.append(slope * tangents["self"])
    if "target" in tangents:
        terms.append(-slope * tangents["target"])
    return terms


def _is_value() -> bool:
    """Whether only the value of a slope is asked for, and not how it changes at the width."""
    state = thread_state()
    return not state.grad_enabled and not state.layers


def _clipped(difference: Tensor, width: float) -> Tensor:
    return clamp.call((difference, -width, width))


def _square(xp: Any, x: Any, target: Any) -> Any:
    difference = x - target
    return difference * difference


def _smooth(xp: Any, x: Any, target: Any, beta: float) -> Any:
    size = xp.abs(x - target)
    return xp.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


def _huber(xp: Any, x: Any, target: Any, delta: float) -> Any:
    size = xp.abs(x - target)
    return xp.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


mse_loss = primitive(
    "_mse_loss(Tensor self, Tensor target, int reduction) -> Tensor",
    _kernel("mse_cpu", _square),
    {
        "self": lambda g, self, target, reduction: _spread(
            g, 2 * _difference(self, target), reduction
        ),
        "target": lambda g, self, target, reduction: _spread(
            g, 2 * _difference(target, self), reduction
        ),
    },
    lambda tangents, self, target, reduction: _collected(
        _difference_terms(tangents, 2 * _difference(self, target)), reduction
    ),
    widens=False,
    shape=_loss_shape,
    batch=_loss_batched,
    doc="The squared differences of two tensors.",
)
smooth_l1_loss = _loss(
    "_smooth_l1_loss(Tensor self, Tensor target, float width, int reduction) -> Tensor",
    _smooth,
    lambda difference, beta: (
        _clipped(difference / beta, 1.0)
        if _is_value()
        else where(difference.abs() < beta, difference / beta, sign(difference))
    ),
    "smooth_l1_cpu",
    "Differences in size, squared where they are smaller than `width`.",
)
huber_loss = _loss(
    "_huber_loss(Tensor self, Tensor target, float width, int reduction) -> Tensor",
    _huber,
    # At the width itself the second derivative is that outside.
    lambda difference, delta: (
        _clipped(difference, delta)
        if _is_value()
        else where(difference.abs() >= delta, delta * difference.sign(), difference)
    ),
    "huber_cpu",
    "Squared differences, which grow only linearly beyond `width`.",
    leading=1,
)


# Binary cross entropy -----------------------------------------------------------------------------


def _weighed(values: Any, weight: Any) -> Any:
    return values if weight is None else values * weight


def _cross(xp: Any, x: Any, target: Any, weight: Any) -> Any:
    if not ((x >= 0) & (x <= 1)).all().item():
        raise RuntimeError("all elements of input should be between 0 and 1")
    if not ((target >= 0) & (target <= 1)).all().item():
        raise RuntimeError("all elements of target should be between 0 and 1")
    hit = xp.maximum(xp.log(x), -100)
    miss = xp.maximum(xp.log1p(-x), -100)
    return _weighed((target - 1) * miss - target * hit, weight)


def _cross_slope(x: Tensor, target: Tensor, weight: Any) -> Tensor:
    return _weighed((x - target) / clamp(x * (1 - x), min=1e-12), weight)


def _cross_target_slope(x: Tensor, weight: Any) -> Tensor:
    return _weighed(clamp(log1p(-x), min=-100) - clamp(log(x), min=-100), weight)


def _terms(tangents: dict, slope: Tensor, target_slope: Tensor) -> list[Tensor]:
    terms = []
    if "self" in tangents:
        terms.append(slope * tangents["self"])
    if "target" in tangents:
        terms.append(target_slope * tangents["target"])
    return terms


binary_cross_entropy = primitive(
    "_binary_cross_entropy(Tensor self, Tensor target, Tensor? weight, int reduction) -> Tensor",
    _kernel("binary_cross_entropy", _cross, lambda values: values[:1]),
    {
        "self": lambda g, self, target, weight, reduction: _spread(
            g, _cross_slope(self, target, weight), reduction
        ),
        "target": lambda g, self, weight, reduction: _spread(
            g, _cross_target_slope(self, weight), reduction
        ),
    },
    lambda tangents, self, target, weight, reduction: _collected(
        _terms(
            tangents, _cross_slope(self, target, weight), _cross_target_slope(self, weight)
        ),
        reduction,
    ),
    widens=False,
    shape=_loss_shape,
    batch=_loss_batched,
    raises="values",
    doc="Cross entropy of probabilities with targets between 0 and 1.",
)


def _logits(xp: Any, x: Any, target: Any, weight: Any, pos_weight: Any) -> Any:
    rest = xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(-x, 0)
    if pos_weight is not None:
        rest = rest * (1 + (pos_weight - 1) * target)
    return _weighed((1 - target) * x + rest, weight)


def _logits_slope(x: Tensor, target: Tensor, weight: Any, pos_weight: Any) -> Tensor:
    if pos_weight is None:
        return _weighed(sigmoid(x) - target, weight)
    positive = pos_weight * target
    return _weighed((positive + 1 - target) * sigmoid(x) - positive, weight)


def _logits_target_slope(x: Tensor, weight: Any, pos_weight: Any) -> Tensor:
    if pos_weight is None:
        return _weighed(-x, weight)
    return _weighed(log_sigmoid(-x) - pos_weight * log_sigmoid(x), weight)


binary_cross_entropy_with_logits = primitive(
    "_binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight, "
    "Tensor? pos_weight, int reduction) -> Tensor",
    _kernel("binary_cross_entropy_with_logits", _logits, lambda values: values[1:2]),
    {
        "self": lambda g, self, target, weight, pos_weight, reduction: _spread(
            g, _logits_slope(self, target, weight, pos_weight), reduction
        ),
        "target": lambda g, self, weight, pos_weight, reduction: _spread(
            g, _logits_target_slope(self, weight, pos_weight), reduction
        ),
    },
    lambda tangents, self, target, weight, pos_weight, reduction: _collected(
        _terms(
            tangents,
            _logits_slope(self, target, weight, pos_weight),
            _logits_target_slope(self, weight, pos_weight),
        ),
        reduction,
    ),
    widens=False,
    shape=_loss_shape,
    batch=_loss_batched,
    doc="Cross entropy of the sigmoid of the tensor with targets between 0 and 1.",
)


# Negative log likelihood --------------------------------------------------------------------------


def _class_weights(
    xp: Any, shape: tuple, target: Any, weight: Any, ignore_index: int, dtype: Any
) -> tuple[Any, Any]:
    """Valid class numbers, and the weight of each target, zero for those to ignore."""
    kept = target != ignore_index
    classes = xp.where(kept, target, 0)
    count = shape[1] if len(shape) > 1 else shape[0]
    outside = (classes < 0) | (classes >= count)
    if outside.any().item():
        raise IndexError(
            f"Target {target[outside].reshape(-1)[0].item()} is out of bounds. The input has "
            f"{count} classes, counted from 0"
        )
    if weight is None:
        return classes, kept.astype(dtype)
    return classes, xp.where(kept, weight[classes], 0).astype(dtype)


def _check_nll(x: Any, target: Any, weight: Any) -> None:
    if target.dtype not in (dtypes.int64.numpy, dtypes.uint8.numpy):
        raise RuntimeError(
            "expected target dtype to be Long or Byte, but got "
            f"{dtypes.from_numpy(target.dtype).scalar_name}"
        )
    if x.dtype.kind in "biuc":
        kind = dtypes.from_numpy(x.dtype).scalar_name
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{kind}'")
    expected = x.shape[:1] + x.shape[2:] if x.ndim > 1 else ()
    if target.shape != expected:
        raise RuntimeError(
            f"Expected target size {shape_text(expected)}, got {shape_text(target.shape)}"
        )
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if weight is not None and weight.dtype != x.dtype:
        raise RuntimeError(
            f"expected scalar type {dtypes.from_numpy(x.dtype).scalar_name} but found "
            f"{dtypes.from_numpy(weight.dtype).scalar_name} for the weights"
        )
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {shape_text(weight.shape)}"
        )


def _nll(xp: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    _check_nll(x, target, weight)
    goal, x = x.dtype, widened(x)
    classes, weights = _class_weights(xp, x.shape, target, weight, ignore_index, x.dtype)
    if x.ndim == 2:
        picked = x[xp.arange(x.shape[0]), classes]
    elif x.ndim == 1:
        picked = x[classes]
    else:
        picked = xp.take_along_axis(x, classes[:, None], 1)[:, 0]
    loss = xp.where(weights == 0, 0, -picked * weights)
    if reduction != NONE:
        loss = loss.sum()
    if reduction == MEAN:
        loss = loss / weights.sum()
    return xp.asarray(loss).astype(goal, copy=False)


def _nll_backward(
    xp: Any, g: Any, size: tuple, target: Any, weight: Any, reduction: int, ignore_index: int
) -> Any:
    classes, weights = _class_weights(xp, size, target, weight, ignore_index, g.dtype)
    if reduction == MEAN:
        g = g / weights.sum()
    values = xp.where(weights == 0, 0, -weights * g)
    out = xp.zeros(size, g.dtype)
    if len(size) == 2:
        out[xp.arange(size[0]), classes] = values
    elif len(size) == 1:
        out[classes] = values
    else:
        grid = [xp.arange(n) for n in classes.shape]
        key = list(xp.meshgrid(*grid, indexing="ij", sparse=True))
        out[(key[0], classes, *key[1:])] = values
    return out


def _target_weights(
    target: Tensor, weight: Any, weight_dim: int | None, ignore_index: int
) -> Tensor:
    """The weight of each target, zero for those to ignore; both are batched in front."""
    kept = target != ignore_index
    if weight is None:
        return kept
    classes = where(kept, target, 0).long()
    if weight_dim is None:
        picked = weight[classes]
    else:
        rows = at_front(weight, weight_dim).gather(1, flattened(classes, 0))
        picked = reshaped(rows, target.array.shape)
    return where(kept, picked, 0)


def _summed_examples(values: Tensor) -> Tensor:
    return values.sum(tuple(range(1, values.array.ndim))) if values.array.ndim > 1 else values


def _as_one_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of all examples in one batch; an example of one row alone has none to merge."""
    return (shape[0] * shape[1], *shape[2:]) if len(shape) > 1 else shape


def _nll_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """All examples in one batch and without reduction, then the reduction of each of them."""
    x, target, weight, reduction, ignore_index = args
    size = batch_size(args, dims)
    x, target = with_batch(x, dims[0], size), with_batch(target, dims[1], size)
    rows = reshaped(x, _as_one_batch(x.array.shape)) if x.array.ndim > 2 else x
    targets = reshaped(target, _as_one_batch(target.array.shape))
    shared = weight if dims[2] is None else None
    losses = reshaped(
        operator.call((rows, targets, shared, NONE, ignore_index)), target.array.shape
    )
    if reduction == NONE and dims[2] is None:
        return losses, 0
    weights = _target_weights(target, weight, dims[2], ignore_index)
    if dims[2] is not None:
        losses = where(weights == 0, 0, losses * weights)
    if reduction == NONE:
        return losses, 0
    total = _summed_examples(losses)
    return total / _summed_examples(weights) if reduction == MEAN else total, 0


def _nll_backward_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    """The gradient of each loss before the reduction, then all examples in one batch."""
    g, shape, target, weight, reduction, ignore_index = args
    size = batch_size(args, dims)
    g, target = with_batch(g, dims[0], size), with_batch(target, dims[2], size)
    weights = _target_weights(target, weight, dims[3], ignore_index)
    if reduction == MEAN:
        g = g / _summed_examples(weights)
    if reduction != NONE:
        g = padded(g, 0, target.array.ndim - 1).expand(target.array.shape)
    if dims[3] is not None:
        g = where(weights == 0, 0, g * weights)
    rows = _as_one_batch(target.array.shape)
    whole = (size, *shape)
    out = operator.call(
        (
            reshaped(g, rows),
            _as_one_batch(whole) if len(shape) > 1 else whole,
            reshaped(target, rows),
            weight if dims[3] is None else None,
            NONE,
            ignore_index,
        )
    )
    return reshaped(out, whole), 0


nll_loss = linear(
    "_nll_loss(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) "
    "-> Tensor",
    _nll,
    lambda g, self, target, weight, reduction, ignore_index: tied(
        nll_loss_backward.call((g, self.array.shape, target, weight, reduction, ignore_index)), self
    ),
    name=lambda self, *_: "NllLossBackward0" if self.array.ndim < 3 else "NllLoss2DBackward0",
    shape=lambda x, target, weight, reduction, ignore_index: _kept(target.shape, reduction),
    batch=_nll_batched,
    raises="values",
    doc="The negative of the elements at the target classes, weighed by class.",
)
nll_loss_backward: Operator = linear(
    "_nll_loss_backward(Tensor grad, int[] size, Tensor target, Tensor? weight, int reduction, "
    "int ignore_index) -> Tensor",
    _nll_backward,
    lambda g, target, weight, reduction, ignore_index: nll_loss.call(
        (g, target, weight, reduction, ignore_index)
    ),
    widens=True,
    meta=shapes.sized,
    batch=_nll_backward_batched,
    doc="Zeros of a size with a gradient, times minus the weights, at the target classes.",
)

for _operator in (
    mse_loss, smooth_l1_loss, huber_loss, binary_cross_entropy, binary_cross_entropy_with_logits,
):  # fmt: skip
    _operator.broadcasts = True
