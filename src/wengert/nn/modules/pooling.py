"""Pools of neighbouring elements as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.tensor import Tensor
from .. import functional as F
from .conv import per_dimension
from .layer import Layer


class _Pool(Layer):
    """A pool whose windows follow each other where no stride is given."""

    stride: Any

    def _prepare(self, values: dict[str, Any]) -> None:
        """Let the stride be the kernel's size where none is given."""
        if self.stride is None:
            self.stride = self.kernel_size


_MAX = (
    "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False"
)


class _MaxPoolNd(_Pool, shown="kernel_size, stride, padding, dilation, ceil_mode"):
    pass


class MaxPool1d(_MaxPoolNd, fields=_MAX):
    """Takes the largest element of every window of signals."""

    forward = F.max_pool1d


class MaxPool2d(_MaxPoolNd, fields=_MAX):
    """Takes the largest element of every window of pictures."""

    forward = F.max_pool2d


class MaxPool3d(_MaxPoolNd, fields=_MAX):
    """Takes the largest element of every window of volumes."""

    forward = F.max_pool3d


_AVG = "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"


class _AvgPoolNd(_Pool, shown="kernel_size, stride, padding"):
    pass


class AvgPool1d(_AvgPoolNd, fields=_AVG):
    """Takes the mean of every window of signals."""

    forward = F.avg_pool1d

    def _prepare(self, values: dict[str, Any]) -> None:
        """Keep all options as tuples."""
        super()._prepare(values)
        for name in ("kernel_size", "stride", "padding"):
            setattr(self, name, per_dimension(getattr(self, name), 1))


class AvgPool2d(_AvgPoolNd, fields=f"{_AVG}, divisor_override=None"):
    """Takes the mean of every window of pictures."""

    forward = F.avg_pool2d


class AvgPool3d(_AvgPoolNd, fields=f"{_AVG}, divisor_override=None"):
    """Takes the mean of every window of volumes."""

    forward = F.avg_pool3d


_LP = "norm_type, kernel_size, stride=None, ceil_mode=False"


class LPPool1d(Layer, fields=_LP):
    """Takes the norm of every window of signals."""

    forward = F.lp_pool1d


class LPPool2d(Layer, fields=_LP):
    """Takes the norm of every window of pictures."""

    forward = F.lp_pool2d


class LPPool3d(Layer, fields=_LP):
    """Takes the norm of every window of volumes."""

    forward = F.lp_pool3d


class AdaptiveAvgPool1d(Layer, fields="output_size"):
    """Takes the means of a given number of parts of signals."""

    forward = F.adaptive_avg_pool1d


class AdaptiveAvgPool2d(Layer, fields="output_size"):
    """Takes the means of a given number of parts of pictures."""

    forward = F.adaptive_avg_pool2d


class AdaptiveAvgPool3d(Layer, fields="output_size"):
    """Takes the means of a given number of parts of volumes."""

    forward = F.adaptive_avg_pool3d


_ADAPTIVE = "output_size, return_indices=False"


class AdaptiveMaxPool1d(Layer, fields=_ADAPTIVE, shown="output_size"):
    """Takes the largest elements of a given number of parts of signals."""

    forward = F.adaptive_max_pool1d


class AdaptiveMaxPool2d(Layer, fields=_ADAPTIVE, shown="output_size"):
    """Takes the largest elements of a given number of parts of pictures."""

    forward = F.adaptive_max_pool2d


class AdaptiveMaxPool3d(Layer, fields=_ADAPTIVE, shown="output_size"):
    """Takes the largest elements of a given number of parts of volumes."""

    forward = F.adaptive_max_pool3d


class _MaxUnpoolNd(Layer, shown="kernel_size, stride, padding"):
    """Puts the largest elements of windows back to where they were, among zeros."""

    _dimensions: ClassVar[int]
    stride: Any

    def __init_subclass__(cls, dimensions: int = 0, **options: Any) -> None:
        super().__init_subclass__(**options)
        if dimensions:
            cls._dimensions = dimensions

    def _prepare(self, values: dict[str, Any]) -> None:
        """Keep all options as tuples."""
        if self.stride is None:
            self.stride = self.kernel_size
        for name in ("kernel_size", "stride", "padding"):
            setattr(self, name, per_dimension(getattr(self, name), self._dimensions))

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Zeros with the input at the places that `indices` tells."""
        function = getattr(F, f"max_unpool{self._dimensions}d")
        return function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


_UNPOOL = "kernel_size, stride=None, padding=0"


class MaxUnpool1d(_MaxUnpoolNd, dimensions=1, fields=_UNPOOL):
    """Undoes MaxPool1d as far as possible."""


class MaxUnpool2d(_MaxUnpoolNd, dimensions=2, fields=_UNPOOL):
    """Undoes MaxPool2d as far as possible."""


class MaxUnpool3d(_MaxUnpoolNd, dimensions=3, fields=_UNPOOL):
    """Undoes MaxPool3d as far as possible."""


class _FractionalMaxPoolNd(Layer, shown=""):
    """A pool whose windows begin at random places."""

    _dimensions: ClassVar[int]
    output_size: Any
    output_ratio: Any
    kernel_size: Any

    def __init_subclass__(cls, dimensions: int = 0, **options: Any) -> None:
        super().__init_subclass__(**options)
        if dimensions:
            cls._dimensions = dimensions

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check that either a size or a ratio is given."""
        name = type(self).__name__
        count = self._dimensions
        self.kernel_size = per_dimension(self.kernel_size, count)
        self.register_buffer("_random_samples", values["_random_samples"])
        if self.output_size is None and self.output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if self.output_size is not None and self.output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_size is not None:
            self.output_size = per_dimension(self.output_size, count)
        else:
            given, self.output_ratio = self.output_ratio, per_dimension(self.output_ratio, count)
            if not all(0 < ratio < 1 for ratio in self.output_ratio):
                raise ValueError(f"output_ratio must be between 0 and 1 (got {given})")

    def forward(self, input: Tensor) -> Any:
        """The largest elements of windows that begin at random places."""
        function = getattr(F, f"fractional_max_pool{self._dimensions}d")
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


_FRACTIONAL = (
    "kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None"
)


class FractionalMaxPool2d(
    _FractionalMaxPoolNd, dimensions=2, fields=_FRACTIONAL, passing="_random_samples"
):
    """Takes the largest elements of windows of pictures that begin at random places."""


class FractionalMaxPool3d(
    _FractionalMaxPoolNd, dimensions=3, fields=_FRACTIONAL, passing="_random_samples"
):
    """Takes the largest elements of windows of volumes that begin at random places."""
