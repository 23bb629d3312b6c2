"""Convolutions of signals, pictures and volumes, and their transposes, as layers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from .layer import Layer, parameter
from .linear import _fan_in_uniform

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def per_dimension(value: Any, count: int) -> tuple[int, ...]:
    """One number for each dimension: a single one counts for all."""
    return tuple(value) if hasattr(value, "__iter__") else (value,) * count


class _ConvNd(Layer):
    """A layer whose weight is moved over all places of its input."""

    _dimensions: ClassVar[int]

    def __init_subclass__(cls, dimensions: int = 0, **options: Any) -> None:
        super().__init_subclass__(**options)
        if dimensions:
            cls._dimensions = dimensions

    weight = parameter(
        "_weight_shape", init=lambda layer, t: init.kaiming_uniform_(t, a=math.sqrt(5))
    )
    bias = parameter("out_channels", init=_fan_in_uniform, when="bias")

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check the fields, and give each dimension its own number."""
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise ValueError(f"{name} must be divisible by groups")
        for name in ("kernel_size", "stride", "dilation"):
            setattr(self, name, per_dimension(values[name], self._dimensions))
        self.output_padding = per_dimension(values.get("output_padding", 0), self._dimensions)
        self._prepare_padding(values["padding"])
        self.transposed = isinstance(self, _ConvTransposeNd)
        outer, inner = self.out_channels, self.in_channels
        if self.transposed:
            outer, inner = inner, outer
        self._weight_shape = (outer, inner // self.groups, *self.kernel_size)

    def _prepare_padding(self, padding: Any) -> None:
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
                )
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        else:
            self.padding = per_dimension(padding, self._dimensions)
        if self.padding_mode not in _PADDING_MODES:
            raise ValueError(
                "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but "
                f"got padding_mode='{self.padding_mode}'"
            )
        if padding == "same":
            totals = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation, strict=True)]
            widths = [(t // 2, t - t // 2) for t in totals]
        else:
            widths = [(p, p) for p in self.padding] if padding != "valid" else []
        #: Widths before and after, the last dimension first, as F.pad takes them.
        self._reversed_padding_repeated_twice = [w for pair in reversed(widths) for w in pair]

    def extra_repr(self) -> str:
        """Channels, kernel and stride, and whatever else is not the default."""
        parts = [
            str(self.in_channels), str(self.out_channels),
            f"kernel_size={self.kernel_size}", f"stride={self.stride}",
        ]  # fmt: skip
        ones = (1,) * self._dimensions
        for name, default in (
            ("padding", (0,) * self._dimensions),
            ("dilation", ones),
            ("output_padding", (0,) * self._dimensions),
            ("groups", 1),
        ):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input with the weight."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        function = getattr(F, f"conv{self._dimensions}d")
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)


_CONV = (
    "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros'"
)


class Conv1d(_ConvNd, dimensions=1, fields=_CONV):
    """A convolution of signals."""


class Conv2d(_ConvNd, dimensions=2, fields=_CONV):
    """A convolution of pictures."""


class Conv3d(_ConvNd, dimensions=3, fields=_CONV):
    """A convolution of volumes."""


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution, which undoes what the steps of a convolution do to lengths."""

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check that borders are zeros, the only kind here."""
        if self.padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super()._prepare(values)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution; `output_size` chooses among lengths that steps allow."""
        extra = self._output_padding(input, output_size)
        function = getattr(F, f"conv_transpose{self._dimensions}d")
        return function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The output padding that gives a result of the wanted size."""
        if output_size is None:
            return self.output_padding
        count = self._dimensions
        ndim = input.dim()
        sizes = tuple(output_size)
        if len(sizes) == ndim:
            sizes = sizes[ndim - count :]
        if len(sizes) != count:
            raise ValueError(
                f"ConvTranspose{count}D: for {ndim}D input, output_size must have {count} or "
                f"{ndim} elements (got {len(sizes)})"
            )
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, k, s, p, d in zip(
                input.shape[ndim - count :], self.kernel_size, self.stride, self.padding,
                self.dilation, strict=True,
            )
        ]  # fmt: skip
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if not all(a <= n <= b for a, n, b in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {list(sizes)}, but valid sizes range from {least} to "
                f"{most} (for an input of {input.shape[ndim - count :]})"
            )
        return tuple([n - a for n, a in zip(sizes, least, strict=True)])


_TRANSPOSED = (
    "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, "
    "bias=True, dilation=1, padding_mode='zeros'"
)


class ConvTranspose1d(_ConvTransposeNd, dimensions=1, fields=_TRANSPOSED):
    """A transposed convolution of signals."""


class ConvTranspose2d(_ConvTransposeNd, dimensions=2, fields=_TRANSPOSED):
    """A transposed convolution of pictures."""


class ConvTranspose3d(_ConvTransposeNd, dimensions=3, fields=_TRANSPOSED):
    """A transposed convolution of volumes."""
