"""Functions of the package whose arguments are others than those of `nn.functional`.

There a reduction is a number: 0 for none, which is what PyTorch does where it is not given, 1 for
the mean, 2 for the sum. `train` has no default, and parameters stand before statistics.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...dispatch.overridable import Overridable
from .. import functional as F
from . import normalisation
from .bags import bag_contents
from .layers import _check_probability, _masked
from .randomness import _by_channels

_REDUCTIONS = ("none", "mean", "sum")


def _named(reduction: int) -> str:
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


# Normalisation ------------------------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Each channel with mean 0 and variance 1 over the batch, then scaled and shifted."""
    return normalisation.normalized(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Each channel of each example with mean 0 and variance 1, then scaled and shifted."""
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Groups of channels of each example with mean 0 and variance 1; channels are then scaled."""
    return F.group_norm(input, num_groups, weight, bias, eps)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """The input with mean 0 and variance 1 over its last dimensions, then scaled and shifted."""
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


# Dropout ------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """In training, zeros with probability `p` and the rest scaled up to keep the mean."""
    return F.dropout(input, p, train)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """The in-place form of `dropout`."""
    return F.dropout(input, p, train, True)


def _feature_dropped(input: Tensor, p: float, train: bool, inplace: bool) -> Tensor:
    _check_probability(p)
    if not train or p == 0 or not input.array.size:
        return input
    return _masked(input, _by_channels(input), p, inplace)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels."""
    return _feature_dropped(input, p, train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """The in-place form of `feature_dropout`."""
    return _feature_dropped(input, p, train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout to a negative value, which keeps mean 0 and variance 1 of what SELU gives."""
    return F.alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """The in-place form of `alpha_dropout`."""
    return F.alpha_dropout(input, p, train, True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Alpha dropout of whole channels."""
    return F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """The in-place form of `feature_alpha_dropout`."""
    return F.feature_alpha_dropout(input, p, train, True)


# Pools and bags -----------------------------------------------------------------------------------


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The largest elements of so many parts of signals as are wanted, and where they are."""
    return F.adaptive_max_pool1d(input, output_size, True)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest element of every window of signals, and where it is."""
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bags of rows by mode 0, 1 or 2 (sum, mean, max), and the bag of each row.

    Then follow the sizes of the bags, and for the mode max the row that each element comes from.
    """
    word = ("sum", "mean", "max")[mode]
    out = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, word, sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    bag, sizes, rows = bag_contents(
        indices, weight, offsets, word, include_last_offset, padding_idx
    )
    return out, bag, sizes, rows


# Losses -------------------------------------------------------------------------------------------


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """Divergence of `input`, logarithms of probabilities, from the distribution `target`."""
    loss = F.kl_div(input, target, reduction="none", log_target=log_target)
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithms of the probabilities of label sequences, over all alignments."""
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _named(reduction), zero_infinity
    )


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """The negative logarithm of the probabilities of counts."""
    return F.poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_named(reduction)
    )


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """What distances to positive examples lack to be smaller by a margin than to negative ones."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_named(reduction)
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """One less the cosine of what is alike (target 1), else (-1) what it exceeds a margin by."""
    return F.cosine_embedding_loss(
        input1, input2, target, margin, reduction=_named(reduction)
    )


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """Distances of what is alike (target 1), and what distances of others (-1) lack to a margin."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_named(reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """What lacks to a margin by which the first (target 1) or second (-1) should be larger."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_named(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """Cross entropy of `sigmoid(input)` with targets between 0 and 1."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight=pos_weight, reduction=_named(reduction)
    )


NAMES = tuple(
    name
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and not name.startswith("_")
)
globals().update(
    {name: Overridable(globals()[name], module="wengert", name=name) for name in NAMES}
)
