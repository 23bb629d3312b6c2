"""The loss of sequences without a known alignment (connectionist temporal classification)."""

from __future__ import annotations

import math
from typing import Any

from ...core.errors import shape_text
from ...core.tensor import Tensor
from ...operators.joining import stack
from ...operators.nn import constant_pad_nd
from ...operators.pointwise import where
from ...operators.softmax import logsumexp
from .losses import _REDUCTIONS, _reduced

#: Stands for the logarithm of zero, so that slopes stay finite.
_NEVER = -1e30


def _lengths(name: str, given: Any, count: int) -> list[int]:
    values = given.tolist() if isinstance(given, Tensor) else list(given)
    values = [values] if isinstance(values, int) else values
    if len(values) != count:
        raise RuntimeError(f"{name} must be of size batch_size")
    return values


def _labels(targets: Tensor, lengths: list[int]) -> Tensor:
    """The targets of each sequence in a row, filled up by the first of all."""
    count, most = len(lengths), max([1, *lengths])
    if targets.array.ndim == 2:
        if targets.array.shape[0] != count or targets.array.shape[1] < max([0, *lengths]):
            raise RuntimeError(
                f"Expected tensor to have size at least {max(lengths)} at dimension 1, but got "
                f"size {shape_text(targets.array.shape)} for argument #2 'targets' (while checking "
                "arguments for ctc_loss_cpu)"
            )
        return constant_pad_nd.call((targets, (0, max(most - targets.array.shape[1], 0)), 0))[
            :, :most
        ]
    if targets.array.shape[0] != sum(lengths):
        raise RuntimeError(
            f"Expected target_lengths to add up to the number of targets, "
            f"{targets.array.shape[0]}, but got {sum(lengths)}"
        )
    places, start = [], 0
    for length in lengths:
        places += [start + i if i < length else 0 for i in range(most)]
        start += length
    if not start:
        return targets.new_zeros((count, most))
    return targets.index_select(0, targets.new_tensor(places)).reshape(count, most)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithms of the probabilities of label sequences, over all alignments.

    `log_probs` has the dimensions time, batch and class, and is taken to come from log_softmax: its
    gradient is that of the scores before. Labels are repeated or separated by `blank`.
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if log_probs.array.ndim == 2:
        log_probs, single = log_probs.unsqueeze(1), True
        targets = targets.unsqueeze(0) if targets.array.ndim == 1 else targets
    else:
        single = False
    steps, count, classes = log_probs.array.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if log_probs.array.dtype.kind != "f" or targets.array.dtype.kind not in "iu":
        raise RuntimeError(
            "ctc_loss: log_probs must be floating-point numbers and targets whole numbers, but got "
            f"{log_probs.dtype} and {targets.dtype}"
        )
    times = _lengths("input_lengths", input_lengths, count)
    sizes = _lengths("target_lengths", target_lengths, count)
    for value in times:
        if not 0 <= value <= steps:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {steps}, but got value {value} "
                "(while checking arguments for ctc_loss_cpu)"
            )
    if min([0, *sizes]) < 0:
        raise RuntimeError("Expected target_lengths to have value at least 0")
    labels = _labels(targets.long(), sizes)
    loss = _alignments(log_probs, labels, times, sizes, blank)
    if zero_infinity:
        loss = where(loss == math.inf, 0, loss)
    if reduction == "mean":
        loss = loss / loss.new_tensor([float(max(size, 1)) for size in sizes])
    if single and reduction == "none":
        return loss.squeeze(0)
    return _reduced(loss, _REDUCTIONS[reduction])


def _alignments(
    log_probs: Tensor, labels: Tensor, times: list[int], sizes: list[int], blank: int
) -> Tensor:
    """The loss of each sequence: a sum over the ways through its labels with blanks between."""
    steps, count, _ = log_probs.array.shape
    blanks = labels.new_full(labels.array.shape, blank)
    states = stack([blanks, labels], 2).reshape(count, -1)
    states = constant_pad_nd.call((states, (0, 1), blank))
    width = states.array.shape[1]
    before = constant_pad_nd.call((states, (2, 0), blank))[:, :width]
    skips = (states != blank) & (states != before)
    skips = skips & (labels.new_tensor(list(range(width))) >= 2)
    scores = log_probs.gather(2, states.unsqueeze(0).expand(steps, count, width))
    scores = where(scores == -math.inf, _NEVER, scores)
    ways = constant_pad_nd.call(
        (log_probs.new_zeros((count, 1)), (0, width - 1), _NEVER)
    )  # before the first step, all ways are at the first state
    duration = labels.new_tensor(times).unsqueeze(1)
    for step in range(steps):
        shifted = constant_pad_nd.call((ways, (1, 0), _NEVER))[:, :width]
        if step == 0:  # they begin there or at the first label
            arriving = stack([ways, shifted], 0)
        else:
            far = constant_pad_nd.call((ways, (2, 0), _NEVER))[:, :width]
            arriving = stack([ways, shifted, where(skips, far, _NEVER)], 0)
        found = (logsumexp(arriving, (0,)) + scores[step]).clamp(min=_NEVER)
        ways = where(duration > step, found, ways)
    last = labels.new_tensor([2 * size for size in sizes]).unsqueeze(1)
    final = ways.gather(1, last)
    previous = ways.gather(1, (last - 1).clamp(min=0))
    previous = where(last > 0, previous, _NEVER)
    loss = -logsumexp(stack([final, previous], 0), (0,)).squeeze(1)
    loss = where(loss > -_NEVER / 10, math.inf, loss)
    # The scores before log_softmax get the gradient; a sum that is always one carries its part.
    total = log_probs.exp().sum(2)
    within = labels.new_tensor(list(range(steps))).unsqueeze(1) < duration.t()
    total = where(within, total - total.detach(), 0).sum(0)
    return loss + where(loss == math.inf, 0, total)
