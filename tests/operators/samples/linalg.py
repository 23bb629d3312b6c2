"""Samples of linear algebra.

Vectors of decompositions are determined up to a factor of length one, and only Hermitian matrices
are given to what reads one triangle: there the operation is a function that sees to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .shapes import on, spread
from .table import Make, Operation, Sample


def _regular(make: Make, *shape: int) -> np.ndarray:
    """Matrices far from singular, without coinciding eigenvalues."""
    n = shape[-1]
    weights = np.diag(3 + np.arange(n))
    return make(*shape, low=-1, high=1) + weights.astype(int)


def _square(*extra: dict, shapes: tuple = ((3, 3), (2, 2, 2), (1, 1), (0, 2, 2))) -> Callable:
    """Regular matrices of some shapes, and one with other arguments for each of `extra`."""

    def samples(make: Make) -> list[Sample]:
        plain = [Sample(_regular(make, *shape)) for shape in shapes]
        return plain + [Sample(_regular(make, 2, 3, 3), **kwargs) for kwargs in extra]

    return samples


def _equations(*extra: dict) -> Callable[[Make], list[Sample]]:
    """Matrices and right sides, with broadcast batches."""

    def samples(make: Make) -> list[Sample]:
        pairs = [
            ((3, 3), (3, 2)), ((2, 2, 2), (2, 1)), ((2, 2), (2, 2, 1)), ((2, 1, 2, 2), (3, 2, 1)),
            ((2, 2), (2, 0)),
        ]  # fmt: skip
        found = [Sample(_regular(make, *a), make(*b), **extra[0]) for a, b in pairs]
        found += [Sample(_regular(make, 2, 3, 3), make(3, 3), **kwargs) for kwargs in extra[1:]]
        return found

    return samples


def _systems(make: Make) -> list[Sample]:
    return [
        *_equations({}, {"left": False})(make),
        Sample(_regular(make, 3, 3), make(3)),
        Sample(_regular(make, 2, 2, 2), make(2, 2)),
    ]


def _triangular_systems(make: Make) -> list[Sample]:
    found = _equations({"upper": True}, {"upper": False}, {"upper": False, "left": False})(make)
    found += [
        Sample(_regular(make, 2, 2), make(2, 2), upper=upper, left=left, unitriangular=True)
        for upper in (True, False)
        for left in (True, False)
    ]
    return found


def _rectangles(*extra: dict, shapes: tuple = ((3, 2), (2, 3), (2, 3, 2), (2, 2))) -> Callable:
    def samples(make: Make) -> list[Sample]:
        plain = [Sample(make(*shape)) for shape in shapes]
        return plain + [Sample(make(*shape), **kwargs) for kwargs in extra for shape in shapes]

    return samples


def _tall_and_wide(*extra: dict) -> Callable[[Make], list[Sample]]:
    """Matrices that are not square, of full rank."""

    def samples(make: Make) -> list[Sample]:
        given = [_regular(make, 3, 3)[:, :2], _regular(make, 3, 3)[:2], _regular(make, 2, 2, 2)]
        return [Sample(x.copy(), **kwargs) for x in given for kwargs in ({}, *extra)]

    return samples


def _named(name: str) -> Callable[[Any], Callable]:
    def resolve(lib: Any) -> Callable:
        value = lib
        for part in name.split("."):
            value = getattr(value, part)
        return value

    return resolve


def _on_hermitian(name: str, change: Callable = lambda x: x) -> Callable[[Any], Callable]:
    """The function of the Hermitian part of its argument, with a change of its results."""

    def resolve(lib: Any) -> Callable:
        function = _named(name)(lib)
        return lambda x, *args, **kwargs: change(function(_hermitian(x), *args, **kwargs))

    return resolve


def _hermitian(x: Any) -> Any:
    return (x + x.mH) / 2 if x.is_floating_point() or x.is_complex() else x


def _on_triangle(name: str, position: int) -> Callable[[Any], Callable]:
    """The function of the lower triangle, with a real diagonal, of one argument; upper if asked."""

    def resolve(lib: Any) -> Callable:
        function = _named(name)(lib)

        def call(*args: Any, upper: bool = False) -> Any:
            given = list(args)
            x = given[position]
            lower = x.tril(-1) + (x.real if x.is_complex() else x).diagonal(0, -2, -1).diag_embed()
            given[position] = lower.mH if upper else lower
            return function(*given, upper=upper)

        return call

    return resolve


def _sizes(found: Any) -> tuple:
    """Absolute values, which factors of length one do not change."""
    return tuple(part.abs() for part in found)


def _eigen(lib: Any) -> Callable:
    """Eigenvalues in an order that both libraries share, and sizes of vectors in that order."""

    def call(x: Any) -> tuple:
        values, vectors = lib.linalg.eig(x)
        order = values.abs().argsort(-1)
        sizes = vectors.abs()
        picked = sizes.gather(-1, order.unsqueeze(-2).expand(sizes.shape))
        return values.gather(-1, order), picked

    return call


def _eigenvalues(lib: Any) -> Callable:
    def call(x: Any) -> Any:
        values = lib.linalg.eigvals(x)
        return values.gather(-1, values.abs().argsort(-1))

    return call


def _least_squares(lib: Any) -> Callable:
    return lambda *args, **kwargs: lib.linalg.lstsq(*args, **kwargs).solution


def _overdetermined(make: Make) -> list[Sample]:
    return [
        Sample(make(3, 2), make(3, 2)),
        Sample(make(2, 3), make(2, 1)),
        Sample(make(2, 3, 2), make(2, 3)),
        Sample(make(2, 2, 3), make(2, 2, 1), driver="gelsd"),
    ]


def _norms(*orders: Any) -> Callable[[Make], list[Sample]]:
    def samples(make: Make) -> list[Sample]:
        return [
            *[Sample(_regular(make, 3, 3), order) for order in orders],
            Sample(make(2, 3, 2)),
            Sample(make(2, 3, 2), orders[0], (0, 2)),
            Sample(make(2, 3, 2), orders[-1], dim=(2, 0), keepdim=True),
        ]

    return samples


_INF = float("inf")
_ORDERS = ("fro", "nuc", 1, -1, 2, -2, _INF, -_INF)


def _all_norms(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3)),
        Sample(make(3), 1),
        Sample(make(3), _INF, keepdim=True),
        Sample(make(2, 3, 2), 3, 1),
        *[Sample(_regular(make, 3, 3), order) for order in _ORDERS],
        Sample(make(2, 3, 2), "nuc", (0, 1), True),
    ]


def _conditions(make: Make) -> list[Sample]:
    return [Sample(make(2, 3)), *[Sample(_regular(make, 2, 3, 3), order) for order in _ORDERS]]


def _powers(make: Make) -> list[Sample]:
    return [Sample(make(2, 3, 3), n) for n in (0, 1, 2, 3, 5)]


def _negative_powers(make: Make) -> list[Sample]:
    return [Sample(_regular(make, 2, 3, 3), n) for n in (-1, -2)]


def _tensor_inverses(make: Make) -> list[Sample]:
    return [
        Sample(_regular(make, 6, 6).reshape(2, 3, 6), 2),
        Sample(_regular(make, 4, 4).reshape(4, 2, 2), ind=1),
    ]


def _tensor_solutions(make: Make) -> list[Sample]:
    return [
        Sample(_regular(make, 4, 4).reshape(2, 2, 4), make(2, 2)),
        Sample(_regular(make, 4, 4).reshape(2, 2, 2, 2), make(2, 2), dims=(0, 2)),
    ]


def _factored(make: Make) -> list[Sample]:
    pairs = [((3, 2), (3, 3)), ((2, 2, 1), (2, 2)), ((2, 1), (2, 2, 2))]
    found = [Sample(make(*b), _regular(make, *a)) for b, a in pairs]
    return [*found, Sample(make(3, 2), _regular(make, 3, 3), upper=True)]


def _operation(name: str, samples: Callable, path: Any = "", **facts: Any) -> Operation:
    facts = {"method": False, "half": False, "integer": False, **facts}
    return Operation(name, samples, path, **facts)


_SOME = on(((3, 3),), ((2, 2, 2),))
_FULL = ((3, 3), (2, 2, 2), (1, 1))
_UPPER = _square({"upper": True}, shapes=((3, 3), (2, 2, 2)))
_VECTORS = spread(((2, 3), (2, 3)), ((3,), (3,)), ((1, 3), (2, 3)))

LINALG = [
    _operation("linalg.inv", _square(), out=True, covers=("_linalg_inv",)),
    _operation("inverse", _square(), out=True, method=True),
    _operation("linalg.inv_ex", _square({"check_errors": True}), out=True),
    _operation("linalg.solve", _systems, out=True, covers=("_linalg_solve",)),
    _operation("linalg.solve_ex", _systems, out=True),
    _operation(
        "linalg.solve_triangular", _triangular_systems, out=True,
        covers=("linalg_solve_triangular",),
    ),
    _operation("triangular_solve", spread(((2, 2), (2, 2)), ((2, 1), (3, 2, 2))), method=True),
    _operation("linalg.det", _square(shapes=_FULL[:2]), out=True, covers=("linalg_det",)),
    _operation("det", _square(shapes=_FULL[:2]), method=True),
    _operation("linalg.slogdet", _square(), out=True, covers=("linalg_slogdet",)),
    _operation("slogdet", _square(), out=True, method=True),
    _operation("logdet", _square(), method=True),
    _operation("linalg.cholesky", _UPPER, _on_hermitian("linalg.cholesky")),
    _operation("linalg.cholesky_ex", _UPPER, _on_hermitian("linalg.cholesky_ex")),
    _operation("cholesky", _UPPER, _on_hermitian("cholesky")),
    _operation("cholesky_solve", _factored, _on_triangle("cholesky_solve", 1)),
    _operation("cholesky_inverse", _UPPER, _on_triangle("cholesky_inverse", 0)),
    _operation(
        "linalg.eigh", _square({"UPLO": "U"}, shapes=((3, 3), (2, 2, 2))),
        _on_hermitian("linalg.eigh", _sizes), covers=("linalg_eigh",),
    ),
    _operation(
        "linalg.eigvalsh", _square({"UPLO": "U"}, shapes=_FULL), _on_hermitian("linalg.eigvalsh")
    ),
    _operation(
        "linalg.svd", _rectangles({"full_matrices": False}, shapes=((3, 2), (2, 3), (2, 2, 2))),
        lambda lib: lambda x, full_matrices=False: _sizes(
            lib.linalg.svd(x, full_matrices=full_matrices)
        ),
    ),
    _operation("linalg.svdvals", _rectangles(), out=True),
    _operation("svd", _rectangles(), lambda lib: lambda x: _sizes(lib.svd(x))),
    _operation("linalg.qr", _rectangles(), covers=("linalg_qr",), out=True),
    _operation("qr", _rectangles(), out=True, method=True),
    _operation("linalg.eig", _square(shapes=((3, 3), (2, 2, 2))), _eigen, covers=("linalg_eig",)),
    _operation("linalg.eigvals", _square(shapes=((3, 3), (2, 2, 2))), _eigenvalues),
    _operation(
        "linalg.pinv", _tall_and_wide({"rtol": 1e-9}, {"atol": 1e-9}), covers=("linalg_pinv",),
        out=True,
    ),
    _operation("pinverse", _tall_and_wide(), method=True),
    _operation("linalg.lstsq", _overdetermined, _least_squares),
    _operation("linalg.matrix_exp", _SOME, covers=("linalg_matrix_exp",), half=True),
    _operation("matrix_exp", _SOME, method=True, half=True),
    _operation("linalg.matrix_power", _powers, integer=True, half=True, out=True, half_scale=20),
    _operation("matrix_power", _powers, integer=True, half=True, out=True, method=True,
               half_scale=20),
    _operation("linalg.matrix_power of inverses", _negative_powers, _named("linalg.matrix_power")),
    _operation("linalg.vector_norm", on(((2, 3),), ((2, 3), 1, 0), ((3,), 3.0)), half=True,
               out=True),
    _operation("linalg.matrix_norm", _norms(*_ORDERS), out=True),
    _operation("linalg.norm", _all_norms, out=True),
    _operation("linalg.cond", _conditions, out=True),
    _operation("linalg.matrix_rank", _rectangles(), differentiable=False, own_dtype=True, out=True),
    _operation(
        "linalg.multi_dot",
        lambda make: [
            Sample([make(2, 3), make(3, 1), make(1, 2)]),
            Sample([make(3), make(3, 2), make(2)]),
        ],
        integer=True, half=True, out=True, half_scale=4,
    ),
    _operation("linalg.cross", _VECTORS, integer=True, half=True, out=True, half_scale=4),
    _operation("cross", _VECTORS, integer=True, half=True, out=True, method=True, half_scale=4),
    _operation("linalg.vecdot", _VECTORS, half=True, out=True, half_scale=4),
    _operation("linalg.diagonal", on(((2, 3),), ((2, 2, 3), {"offset": 1})), integer=True,
               half=True),
    _operation("linalg.vander", on(((3,),), ((2, 3), {"N": 4})), integer=True),
    _operation("vander", on(((3,),), ((3,), 2), ((3,), {"N": 4, "increasing": True})),
               integer=True, half=True),
    _operation("linalg.tensorinv", _tensor_inverses, out=True),
    _operation("linalg.tensorsolve", _tensor_solutions, out=True),
    _operation("linalg.matmul", spread(((2, 3), (3, 2)), ((2, 2, 3), (3,))), integer=True,
               half=True, out=True),
]  # fmt: skip
