"""Signals, pictures and volumes in other sizes."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.tensor import Tensor
from ...operators.resampling import resample
from . import adaptive_pooling

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
#: The number of dimensions of inputs of each mode that does not serve all.
_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}


def _as_floats(value: Any) -> Any:
    return tuple([float(v) for v in value]) if isinstance(value, (tuple, list)) else float(value)


def _checked_sizes(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The lengths of the result, and the factors where they are to be used as they are."""
    planes = input.array.shape[2:]
    count = len(planes)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        given = tuple(size) if isinstance(size, (tuple, list)) else (size,) * count
        if len(given) != count:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(planes)} and output size of {size}. Please "
                "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in "
                "(o1, o2, ...,oK) format."
            )
        return tuple([int(n) for n in given]), ()
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = (
        tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * count
    )
    if len(factors) != count:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {list(planes)} and scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    sizes = tuple([int(n * factor) for n, factor in zip(planes, factors, strict=True)])
    return sizes, () if recompute else tuple([float(factor) for factor in factors])


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input in another size, given by lengths or by factors.

    With `align_corners` the first and last elements keep their places. `antialias` smooths what
    becomes smaller.
    """
    ndim = input.array.ndim
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | "
            "bilinear | bicubic | trilinear"
        )
    sizes, factors = _checked_sizes(
        input, size, scale_factor, bool(recompute_scale_factor) or (mode == "area" and size is None)
    )
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    if mode in _RANKS and ndim in (3, 4, 5) and ndim != _RANKS[mode] and mode.endswith("linear"):
        raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {_RANKS[mode]}D input")
    known = mode in ("nearest", "nearest-exact", "area") or _RANKS.get(mode) == ndim
    if ndim not in (3, 4, 5) or not known:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
            f"{_MODES} (got {mode})"
        )
    if mode == "area":
        return getattr(adaptive_pooling, f"adaptive_avg_pool{ndim - 2}d")(input, sizes)
    if mode == "lanczos":
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    if min(sizes) <= 0 or min(input.array.shape[1:]) <= 0:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"{input.array.shape[2:]} output {sizes}"
        )
    kind = {"bicubic": "cubic"}.get(mode, "linear" if mode.endswith("linear") else mode)
    kind += " aa" * antialias
    return resample.call((input, sizes, kind, bool(align_corners), factors))


def _warn_older(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """An older name of `interpolate`."""
    _warn_older("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """An older name of `interpolate`, which takes the nearest elements."""
    _warn_older("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """An older name of bilinear `interpolate` with `align_corners`."""
    _warn_older("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
