"""Samples of matrix products and other contractions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .shapes import on, spread
from .table import Make, Operation, Sample


def _added(shape: tuple, *factors: tuple) -> Callable[[Make], list[Sample]]:
    """A tensor to add to, and the factors; with and without weights, and broadcast."""

    def samples(make: Make) -> list[Sample]:
        def drawn() -> list:
            return [make(*factor) for factor in factors]

        return [
            Sample(make(*shape), *drawn()),
            Sample(make(*shape), *drawn(), beta=2, alpha=3),
            Sample(make(shape[-1]), *drawn(), beta=0),
            Sample(make(), *drawn(), alpha=-1),
        ]

    return samples


def _equations(make: Make) -> list[Sample]:
    cases: list[tuple[str, list[tuple]]] = [
        ("ij,jk->ik", [(2, 3), (3, 2)]),
        ("bij,bjk", [(2, 2, 3), (2, 3, 2)]),
        ("...ij,...j->...i", [(2, 2, 3), (3,)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,jk,kl->il", [(2, 2), (2, 3), (3, 2)]),
        ("a,a", [(3,), (3,)]),
        ("bij,kj->bik", [(2, 1, 3), (2, 3)]),
        ("ij,j->ij", [(2, 3), (3,)]),
    ]
    return [Sample(text, *[make(*shape) for shape in shapes]) for text, shapes in cases]


def _affine(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(4, 3), make(4)),
        Sample(make(2, 3), make(4, 3)),
        Sample(make(3), make(2, 3), make(2)),
        Sample(make(2, 2, 3), make(2, 3), bias=make(2)),
        Sample(make(0, 3), make(2, 3), make(2)),
    ]


def _tensor_dots(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), make(3, 2), 1),
        Sample(make(2, 3), make(2, 3)),
        Sample(make(2, 3), make(3), dims=([1], [0])),
        Sample(make(2), make(3), dims=0),
    ]


_MATMUL = spread(
    ((2, 3), (3, 2)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (3, 2)),
    ((2, 1, 2, 3), (2, 3, 2)), ((2, 2, 3), (3,)), ((3,), (2, 3, 2)), ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
)  # fmt: skip


def _operator(lib: Any) -> Callable:
    return lambda a, b: a @ b


PRODUCTS = [
    Operation("matmul", _MATMUL, covers=("_mm_right", "_mm_left"), out=True),
    Operation("@", _MATMUL, path=_operator, method=False),
    Operation("mm", spread(((2, 3), (3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 2))), out=True),
    Operation("bmm", spread(((2, 2, 3), (2, 3, 2)), ((0, 2, 3), (0, 3, 2))), out=True),
    Operation("mv", spread(((2, 3), (3,)), ((2, 0), (0,))), out=True),
    Operation("dot", spread(((3,), (3,)), ((0,), (0,))), out=True),
    Operation("vdot", spread(((3,), (3,))), out=True),
    Operation("inner", spread(((3,), (3,)), ((2, 3), (2, 3)), ((), (2,))), out=True),
    Operation("outer", spread(((2,), (3,)), ((0,), (2,))), out=True),
    Operation("ger", spread(((2,), (3,))), out=True),
    Operation("addmm", _added((2, 4), (2, 3), (3, 4)), out=True),
    Operation("addmv", _added((2,), (2, 3), (3,)), out=True),
    Operation("baddbmm", _added((2, 2, 4), (2, 2, 3), (2, 3, 4)), out=True),
    Operation("addbmm", _added((2, 4), (2, 2, 3), (2, 3, 4)), out=True),
    Operation("addr", _added((2, 3), (2,), (3,)), out=True),
    Operation("nn.functional.linear", _affine, covers=("_affine",), method=False),
    Operation("einsum", _equations, method=False),
    Operation("tensordot", _tensor_dots, method=False, out=True),
    Operation("kron", spread(((2, 2), (1, 3)), ((2,), (2, 2)), ((), (2,))), out=True),
    Operation("trace", on(((3, 3),), ((2, 3),))),
    Operation("chain_matmul", spread(((2, 3), (3, 1), (1, 2))), method=False, out=True),
]  # fmt: skip
