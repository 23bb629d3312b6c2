"""Losses with linear layers of their own: for many classes, most of which are rare, and plain."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core import dtypes
from ...core.tensor import Tensor
from ...operators.joining import cat
from ...operators.pointwise import where
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .loss import Loss
from .module import Module


class AdaptiveOutput(NamedTuple):
    """The logarithms of the probabilities of targets, and the negative of their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Scores frequent classes directly, and rare ones in clusters with smaller layers."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            ends != sorted(set(ends))
            or ends[0] <= 0
            or ends[-1] > n_classes - 1
            or any(int(end) != end for end in ends)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        make: Any = Linear
        options = {"device": device, "dtype": dtype}
        self.head = make(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            first = make(in_features, inner, bias=False, **options)
            self.tail.append(Sequential(first, make(inner, size, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Give all parameters their initial values anew."""
        for layer in (self.head, *[each for pair in self.tail for each in pair]):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> AdaptiveOutput:
        """The logarithms of the probabilities of target classes, and the loss."""
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but "
                f"found inputs with size {input_.shape}"
            )
        if target_.dim() and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        rows = input_ if target_.dim() else input_.unsqueeze(0)
        target = target_.reshape(-1)
        if ((target < 0) | (target >= self.n_classes)).any():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        places = target
        inside = rows.new_zeros(rows.size(0))
        for i, (start, stop) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            member = (target >= start) & (target < stop)
            places = where(member, self.shortlist_size + i, places)
            chosen = member.nonzero().squeeze(1)
            if chosen.numel():
                scores = F.log_softmax(self.tail[i](rows.index_select(0, chosen)), 1)
                own = (target.index_select(0, chosen) - start).unsqueeze(1)
                inside = inside.index_copy(0, chosen, scores.gather(1, own).squeeze(1))
        head = F.log_softmax(self.head(rows), 1)
        output = inside + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return AdaptiveOutput(output if target_.dim() else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, layer in enumerate(self.tail):
            place = self.shortlist_size + i
            parts.append(F.log_softmax(layer(input), 1) + head[:, place : place + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class; of rare ones only where a cluster is more so than the others."""
        first = self.head(input).argmax(1)
        rare = first >= self.shortlist_size
        if not rare.any():
            return first
        return where(rare, self.log_prob(input).argmax(1), first)


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch computes the cross entropy of a linear layer in pieces; checked, and kept."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dtypes.dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        method = self.chunking_method
        known = method in (None, "auto") or re.fullmatch("aspect_ratio(:0*[1-9][0-9]*)?", method)
        if not known:
            raise ValueError(f"invalid chunking_method: {method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        floating = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
        if self.acc_dtype is not None and self.acc_dtype not in floating:
            raise ValueError(
                "acc_dtype must be one of None, float16, bfloat16, float32 and float64, got "
                f"{self.acc_dtype!r}"
            )


class LinearCrossEntropyLoss(Loss, buffers="weight"):
    """Cross entropy of the scores of a linear layer of its own."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        Module.__init__(self)
        self.register_buffer("weight", weight)
        self.reduction, self.num_classes, self.out_features = reduction, num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = (
            ignore_index,
            label_smoothing,
            options,
        )
        make: Any = Linear
        count = math.prod(out_features, start=num_classes)
        self.linear = make(in_features, count, bias=bias, device=device, dtype=dtype)

    def extra_repr(self) -> str:
        """The fields, in which the reduction stands without quotation marks."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The cross entropy of the scores with the target."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )
