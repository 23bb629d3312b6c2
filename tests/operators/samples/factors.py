"""Samples of factors of matrices, short Fourier transforms, copies of views and histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .linalg import _named, _operation, _regular
from .table import Fixed, Make, Operation, Sample


def _matrices(make: Make) -> list[Sample]:
    return [
        Sample(_regular(make, 3, 3)),
        Sample(_regular(make, 3, 3)[:, :2].copy()),
        Sample(np.stack([_regular(make, 3, 3)[:2]] * 2)),
    ]


def _factors(lib: Any) -> Callable:
    """The factors without what is not differentiable."""
    return lambda x: lib.linalg.lu(x)[1:]


def _packed(lib: Any) -> Callable:
    """Of matrices that stay regular if all elements are the same."""

    def call(x: Any) -> Any:
        weight = 3 * lib.eye(*x.shape[-2:], dtype=x.dtype, device=x.device)
        return lib.linalg.lu_factor(x + weight).LU

    return call


def _packed_with_info(lib: Any) -> Callable:
    return lambda x: lib.linalg.lu_factor_ex(x).LU


def _unpacked(lib: Any) -> Callable:
    def call(x: Any) -> Any:
        pivots = lib.arange(1, min(x.shape[-2:]) + 1, dtype=lib.int32, device=x.device)
        return lib.lu_unpack(x, pivots.expand((*x.shape[:-2], len(pivots))).contiguous())[1:]

    return call


def _solved(lib: Any) -> Callable:
    def call(x: Any, b: Any, **kwargs: Any) -> Any:
        pivots = lib.arange(1, x.shape[-1] + 1, dtype=lib.int32, device=x.device)
        pivots = pivots.expand(x.shape[:-1]).contiguous()
        return lib.linalg.lu_solve(x, pivots, b, **kwargs)

    return call


def _right_sides(make: Make) -> list[Sample]:
    return [
        Sample(_regular(make, 3, 3), make(3, 2)),
        Sample(_regular(make, 2, 2, 2), make(2, 2, 1), adjoint=True),
        Sample(_regular(make, 2, 2), make(1, 2), left=False),
    ]


def _reflections(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 2, low=-0.5, high=0.5), make(2, low=0.5, high=1)),
        Sample(make(2, 2, 2, low=-0.5, high=0.5), make(2, 1, low=0.5, high=1)),
    ]


def _reflected(make: Make) -> list[Sample]:
    v, tau = make(3, 2, low=-0.5, high=0.5), make(2, low=0.5, high=1)
    return [
        Sample(v, tau, make(3, 2)),
        Sample(v, tau, make(3, 1), transpose=True),
        Sample(v, tau, make(2, 3), left=False),
    ]


def _hermitian_factors(lib: Any) -> Callable:
    return lambda x: lib.linalg.ldl_factor((x + x.mT) / 2).LD


def _ldl_solutions(lib: Any) -> Callable:
    def call(x: Any, b: Any) -> Any:
        return lib.linalg.ldl_solve(*lib.linalg.ldl_factor((x + x.mT) / 2), b)

    return call


def _signals(make: Make) -> list[Sample]:
    return [
        Sample(make(8), 4, window=make(4, low=0.5, high=1), return_complex=True),
        Sample(
            make(2, 8), 4, 2, 2, make(2, low=0.5, high=1), center=False, normalized=True,
            onesided=False, return_complex=True,
        ),
    ]  # fmt: skip


def _spectra(make: Make) -> list[Sample]:
    window = Fixed(np.array([0.5, 1.0, 0.9, 0.6]))
    return [
        Sample(make(3, 4), 4, 1, window=window),
        Sample(make(2, 4, 3), 4, window=window, onesided=False, length=3),
    ]


def _one(*args: Any, shape: tuple[int, ...] = (2, 3), **kwargs: Any) -> Callable:
    return lambda make: [Sample(make(*shape), *args, **kwargs)]


def _copies(name: str, samples: Callable, **facts: Any) -> Operation:
    return Operation(name, samples, **{"method": False, "out": True, **facts})


def _parts(name: str, *args: Any, method: bool = False) -> Operation:
    return Operation(name, _one(*args), method=method)


def _strided(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 3), make(2, 2), (2, 2), (1, 3)),
        Sample(make(6), make(3), (3,), (2,), 1),
    ]


def _counts(make: Make) -> list[Sample]:
    return [
        Sample(make(6), 3, range=(-2.0, 2.0)),
        Sample(make(2, 3), 2, range=(-1.0, 1.0), density=True),
    ]


def _cells(make: Make) -> list[Sample]:
    return [
        Sample(make(5, 2), [2, 4], range=[-2.0, 2.0, -2.0, 2.0]),
        Sample(make(4, 2), 2, range=[-1.0, 1.0, -2.0, 2.0]),
    ]


def _places(make: Make) -> list[Sample]:
    some = Fixed(np.array([[0, 1], [2, 0]]))
    return [Sample(some, size=3), Sample(some, size=1, fill_value=4)]


def _first(name: str) -> Callable[[Any], Callable]:
    return lambda lib: lambda *args, **kwargs: _named(name)(lib)(*args, **kwargs)[0]


_ONLY_VALUES = {"differentiable": False, "complex": False, "integer": False}

FACTORS = [
    _operation("linalg.lu", _matrices, _factors),
    _operation("linalg.lu_factor", _matrices, _packed, covers=("_linalg_lu_factor",)),
    _operation("linalg.lu_factor_ex", _matrices, _packed_with_info),
    _operation("lu_unpack", _matrices, _unpacked, covers=("_lu_unpack",)),
    _operation("linalg.lu_solve", _right_sides, _solved),
    _operation("linalg.householder_product", _reflections, out=True),
    _operation("orgqr", _reflections, out=True, method=True),
    _operation("ormqr", _reflected, out=True, method=True),
    _operation(
        "linalg.ldl_factor", lambda make: [Sample(_regular(make, 3, 3))], _hermitian_factors,
        differentiable=False,
    ),
    _operation(
        "linalg.ldl_solve", lambda make: [Sample(_regular(make, 3, 3), make(3, 2))],
        _ldl_solutions, differentiable=False,
    ),
    _operation("geqrf", _matrices, differentiable=False, out=True, method=True),
    _operation("stft", _signals, complex=False, method=True, own_dtype=True),
    _operation("istft", _spectra, real=False, method=True, own_dtype=True),
    _copies("alias_copy", _one()),
    _copies("view_copy", _one((3, 2))),
    _copies("expand_copy", _one((2, 2, 3))),
    _copies("squeeze_copy", _one(0, shape=(1, 3))),
    _copies("unsqueeze_copy", _one(1)),
    _copies("permute_copy", _one((1, 0))),
    _copies("transpose_copy", _one(0, 1)),
    _copies("t_copy", _one()),
    _copies("select_copy", _one(1, 1)),
    _copies("slice_copy", _one(1, 0, None, 2)),
    _copies("narrow_copy", _one(1, 1, 2), method=True),
    _copies("unfold_copy", _one(1, 2, 1)),
    _copies("as_strided_copy", _one((2, 2), (1, 2)), any_layout=False),
    _copies("view_as_complex_copy", _one(shape=(3, 2)), complex=False, integer=False, half=False,
            own_dtype=True),
    _copies("view_as_real_copy", _one(), real=False, integer=False, half=False, own_dtype=True),
    _parts("unbind_copy"), _parts("split_copy", 1), _parts("split_with_sizes_copy", (1, 1)),
    _parts("unsafe_chunk", 2, method=True), _parts("unsafe_split", 1, method=True),
    _parts("unsafe_split_with_sizes", (1, 1), method=True),
    Operation("as_strided_scatter", _strided, any_layout=False, covers=("_as_strided_scatter",)),
    Operation("fill", _one(2.0), method=False),
    Operation("frobenius_norm", _one((0, 1)), method=False, integer=False),
    Operation("nuclear_norm", _one(), method=False, integer=False, half=False),
    Operation("norm_except_dim", _one(2, 1), method=False, integer=False),
    Operation("histogram", _counts, _first("histogram"), **_ONLY_VALUES,
              covers=("_histogramdd",)),
    Operation("histogramdd", _cells, _first("histogramdd"), method=False, **_ONLY_VALUES),
    Operation(
        "nonzero_static", _places, differentiable=False, own_dtype=True, out=True,
        covers=("_nonzero_static",),
    ),
]  # fmt: skip
