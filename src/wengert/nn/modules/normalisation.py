"""Normalisation layers of channels: over batches, examples, groups and neighbours."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from ...core import dtypes
from ...core.tensor import Tensor
from ...creation.factories import ones, tensor, zeros
from ...creation.ranges import arange
from .. import functional as F
from .. import init
from .layer import Layer, parameter


def _ones(layer: Any, t: Tensor) -> None:
    init.ones_(t)


def _zeros(layer: Any, t: Tensor) -> None:
    init.zeros_(t)


class _NormBase(Layer, shown="*num_features, eps, momentum, affine, bias, track_running_stats"):
    """A layer that may follow means and variances of what it sees."""

    _version = 2
    #: The numbers of dimensions of inputs.
    _ranks: ClassVar[tuple[int, ...]]
    num_batches_tracked: Any

    def __init_subclass__(cls, ranks: tuple[int, ...] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        if ranks:
            cls._ranks = ranks

    weight = parameter("num_features", init=_ones, when="affine")
    bias = parameter("num_features", init=_zeros, when="affine bias")

    def _construct(self, values: dict[str, Any], device: Any = None, dtype: Any = None) -> None:
        super()._construct(values, device, dtype)
        tracks, count = self.track_running_stats, self.num_features
        for name, make in (("running_mean", zeros), ("running_var", ones)):
            self.register_buffer(name, make(count, device=device, dtype=dtype) if tracks else None)
        batches = tensor(0, dtype=dtypes.int64, device=device) if tracks else None
        self.register_buffer("num_batches_tracked", batches)

    def reset_running_stats(self) -> None:
        """Forget all batches."""
        if self.track_running_stats and "running_mean" in self._buffers:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget all batches and give the parameters their initial values."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._ranks:
            expected = " or ".join(f"{rank}D" for rank in self._ranks)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        """Take states over that were written before batches were counted."""
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Gives each channel mean 0 and variance 1 over the batch, then scales and shifts it."""

    def forward(self, input: Tensor) -> Tensor:
        """The input, normalised by the batch while training, else by the running statistics."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        follows = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if follows else None,
            self.running_var if follows else None,
            self.weight, self.bias, by_batch, factor, self.eps,
        )  # fmt: skip


_BATCH = "num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, bias=True"


class BatchNorm1d(_BatchNorm, ranks=(2, 3), fields=_BATCH):
    """Batch normalisation of vectors or signals."""


class BatchNorm2d(_BatchNorm, ranks=(4,), fields=_BATCH):
    """Batch normalisation of pictures."""


class BatchNorm3d(_BatchNorm, ranks=(5,), fields=_BATCH):
    """Batch normalisation of volumes."""


class SyncBatchNorm(
    _BatchNorm,
    fields="num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, "
    "process_group=None, *, bias=True",
):
    """Batch normalisation over the batches of all processes that train together, here one."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replace all batch normalisations in a module, which keep their parameters."""
        made = module
        if isinstance(module, _BatchNorm):
            make: Any = SyncBatchNorm
            made = make(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group, bias=module.bias is not None,
            )  # fmt: skip
            made.training = module.training
            for table in ("_parameters", "_buffers"):
                getattr(made, table).update(getattr(module, table))
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    """Gives each channel of each example mean 0 and variance 1, then scales and shifts it."""

    def forward(self, input: Tensor) -> Tensor:
        """The input, normalised example by example."""
        self._check_input_dim(input)
        place = input.dim() - self._ranks[0]
        if input.size(place) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={place} to match num_features "
                    f"({self.num_features}), but got: {input.size(place)}."
                )
            warnings.warn(
                f"input's size at dim={place} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        single = input.dim() == self._ranks[0]
        out = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return out.squeeze(0) if single else out


_INSTANCE = (
    "num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, *, bias=True"
)


class InstanceNorm1d(_InstanceNorm, ranks=(2, 3), fields=_INSTANCE):
    """Instance normalisation of signals."""


class InstanceNorm2d(_InstanceNorm, ranks=(3, 4), fields=_INSTANCE):
    """Instance normalisation of pictures."""


class InstanceNorm3d(_InstanceNorm, ranks=(4, 5), fields=_INSTANCE):
    """Instance normalisation of volumes."""


class GroupNorm(
    Layer,
    fields="num_groups, num_channels, eps=1e-5, affine=True, *, bias=True",
    shown="*num_groups, *num_channels, eps, affine, bias",
):
    """Gives groups of channels mean 0 and variance 1, then scales and shifts channels."""

    weight = parameter("num_channels", init=_ones, when="affine")
    bias = parameter("num_channels", init=_zeros, when="affine bias")
    forward = F.group_norm

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check that the groups are equally large."""
        if self.num_channels % self.num_groups:
            raise ValueError(
                f"num_channels ({self.num_channels}) must be divisible by num_groups "
                f"({self.num_groups})"
            )


class LocalResponseNorm(
    Layer,
    fields="size, alpha=0.0001, beta=0.75, k=1.0",
    shown="*size, alpha, beta, k",
):
    """Divides by a power of the mean square of neighbouring channels."""

    forward = F.local_response_norm


class CrossMapLRN2d(
    Layer,
    fields="size, alpha=0.0001, beta=0.75, k=1",
    shown="*size, alpha, beta, k",
):
    """Divides by a power of the sum of squares of neighbouring channels and of the first one.

    PyTorch's sums never lose the first channel; `LocalResponseNorm` has neighbours alone.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The normalised pictures, which have four dimensions."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = int((self.size - 1) / 2 + 1)
        channel = arange(input.size(1), device=input.device)
        distance = channel - channel.unsqueeze(1)
        summed = (distance < reach) & ((distance > -reach) | (channel == 0))
        sums = (summed.to(input.dtype) @ (input * input).flatten(2)).reshape(input.shape)
        return input * (sums * (self.alpha / self.size) + self.k).pow(-self.beta)
