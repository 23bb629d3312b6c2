"""Samples of views, of joining and taking apart, and of rearranging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .reductions import over, with_
from .table import DType, Make, Operation, Sample


def on(*cases: tuple) -> Callable[[Make], list[Sample]]:
    """Samples from a shape and the arguments after the tensor, a dictionary for those by name."""

    def samples(make: Make) -> list[Sample]:
        found = []
        for shape, *args in cases:
            kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
            found.append(Sample(make(*shape), *args, **kwargs))
        return found

    return samples


def several(*shapes: tuple, **kwargs: Any) -> Callable[[Make], list[Sample]]:
    """Samples whose first argument is a list of tensors, once for each tuple of shapes."""

    def samples(make: Make) -> list[Sample]:
        return [Sample([make(*shape) for shape in group], **kwargs) for group in shapes]

    return samples


def spread(*shapes: tuple, **kwargs: Any) -> Callable[[Make], list[Sample]]:
    """The same with the tensors as separate arguments."""

    def samples(make: Make) -> list[Sample]:
        return [Sample(*[make(*shape) for shape in group], **kwargs) for group in shapes]

    return samples


def _joined(make: Make) -> list[Sample]:
    return [
        Sample([make(2, 3), make(1, 3)]),
        Sample((make(2, 1), make(2, 2), make(2, 0)), 1),
        Sample([make(2, 2), make(2, 1)], dim=-1),
        Sample([make(0), make(2, 2)]),
        Sample([make(2)]),
    ]


def _stacked(make: Make) -> list[Sample]:
    return [
        Sample([make(2, 3), make(2, 3)]),
        Sample((make(2), make(2), make(2)), 1),
        Sample([make(), make()], dim=-1),
        Sample([make(0, 2), make(0, 2)]),
    ]


def attribute(name: str) -> Callable[[Any], Callable]:
    """Reads an attribute of a tensor."""
    return lambda lib: lambda x: getattr(x, name)


def _polar(make: Make) -> list[Sample]:
    shapes = (((2, 3), (2, 3)), ((2, 1), (3,)), ((), ()))
    return [Sample(make.positive(*first), make(*second)) for first, second in shapes]


def _repeats(make: Make) -> list[Sample]:
    return [
        Sample(make(2, 3), 2),
        Sample(make(2, 3), 2, dim=1),
        Sample(make(3), make.index(3, high=3)),
        Sample(make(2, 3), make.index(2, high=3), dim=0),
    ]


SIZES = [(2, 3), (), (0, 3)]
VIEWS = [
    Operation("Tensor.view", on(((2, 6), 3, 4), ((2, 6), (-1, 4)), ((), 1), ((0, 3), 3, 0)),
              any_layout=False),
    Operation("Tensor.view_as", lambda make: [Sample(make(2, 3), make.mask(3, 2))],
              any_layout=False, covers=("view",)),
    Operation("Tensor.view to a dtype", on(((2, 4), DType("int64"))), path="Tensor.view",
              differentiable=False, complex=False, own_dtype=True, any_layout=False,
              covers=("view",)),
    Operation("reshape", on(((2, 6), (3, 4)), ((2, 3), (-1,)), ((), (1, 1)), ((0, 3), (3, 0))),
              covers=("view", "_reshape_alias", "_unsafe_view")),
    Operation("Tensor.reshape_as", lambda make: [Sample(make(2, 3), make.mask(3, 2))]),
    Operation("flatten", on(((2, 2, 2),), ((2, 2, 2), 1), ((2, 2, 2), 0, 1), ((),), ((0, 3),))),
    Operation("ravel", on(*[(shape,) for shape in SIZES])),
    Operation("unflatten", on(((2, 6), 1, (2, -1)), ((4,), 0, (2, 2)))),
    Operation("Tensor.expand", on(((2, 1), 2, 3), ((1, 3), (2, -1, 3)), ((), 2), ((1, 0), 2, 0))),
    Operation("Tensor.expand_as", lambda make: [Sample(make(2, 1), make.mask(2, 3))],
              covers=("expand",)),
    Operation("broadcast_to", on(((2, 1), (2, 3)), ((3,), (2, 3)), ((), (2,))),
              covers=("expand",)),
    Operation("squeeze", on(((2, 1, 3, 1),), ((1, 2, 1), 0), ((2, 1), 0), ((1, 2, 1), (0, 2)),
                            ((),), ((0, 1),))),
    Operation("unsqueeze", on(((2, 3), 0), ((2, 3), -1), ((), 0), ((0, 2), 1))),
    Operation("permute", on(((2, 3, 1), (2, 0, 1)), ((2, 3), (-1, 0)), ((), ()))),
    Operation("transpose", on(((2, 3), 0, 1), ((2, 3, 1), -1, 0), ((), 0, 0), ((0, 3), 0, 1))),
    Operation("t", on(((2, 3),), ((3,),), ((),))),
    Operation("swapaxes", on(((2, 3), 0, 1))),
    Operation("swapdims", on(((2, 3, 1), 0, 2))),
    Operation("movedim", on(((2, 3, 1), 0, 2), ((2, 3, 1), (0, 1), (-1, 0)))),
    Operation("moveaxis", on(((2, 3, 1), 0, 2))),
    Operation("Tensor.T", on(((2, 3),), ((3,),)), path=attribute("T"), method=False),
    Operation("Tensor.mT", on(((2, 3, 2),)), path=attribute("mT"), method=False),
    Operation("Tensor.H", on(((2, 3),)), path=attribute("H"), method=False),
    Operation("Tensor.mH", on(((2, 3, 2),)), path=attribute("mH"), method=False),
    Operation("adjoint", on(((2, 3),), ((2, 3, 2),))),
    Operation("select", on(((2, 3), 0, 1), ((2, 3), -1, -2), ((2, 0), 0, 0))),
    Operation("narrow", on(((4, 2), 0, 1, 2), ((2, 4), 1, -2, 2), ((0, 2), 0, 0, 0)),
              covers=("slice",)),
    Operation("diagonal", on(((3, 3),), ((2, 3), 1), ((2, 3, 3), -1, 2, 1), ((2, 3), 5))),
    Operation("Tensor.unfold", on(((5,), 0, 3, 1), ((2, 6), 1, 2, 3), ((5, 2), 0, 2, 2))),
    Operation("as_strided", on(((2, 6), (3, 2), (2, 1)), ((2, 6), (2, 2), (3, 1), 2),
                               ((6,), (2, 3), (1, 1))), any_layout=False),
    Operation("unbind", on(((2, 3),), ((2, 3), 1), ((0, 2),))),
    Operation("split", on(((5, 2), 2), ((2, 4), [1, 3], 1), ((4,), 2), ((0, 2), 1)),
              covers=("split_with_sizes",)),
    Operation("split_with_sizes", on(((5, 2), [2, 3]), ((2, 3), (1, 2), 1))),
    Operation("chunk", on(((5, 2), 2), ((2, 4), 3, 1), ((0, 2), 2))),
    Operation("tensor_split", on(((5, 2), 3), ((2, 4), (1, 3), 1), ((4,), 3))),
    Operation("hsplit", on(((2, 4), 2), ((4,), (1, 3)))),
    Operation("vsplit", on(((4, 2), 2))),
    Operation("dsplit", on(((1, 2, 4), 2))),
    Operation("real", on(*[(shape,) for shape in SIZES])),
    Operation("imag", on(*[(shape,) for shape in SIZES]), real=False, integer=False, half=False),
    Operation("view_as_real", on(*[(shape,) for shape in SIZES]), real=False, integer=False,
              half=False, method=False),
    Operation("view_as_complex", on(((3, 2),), ((2,),), ((0, 2),)), complex=False, integer=False,
              half=False, any_layout=False, method=False),
    Operation("Tensor.detach", on(*[(shape,) for shape in SIZES]), differentiable=False),
]  # fmt: skip

COPIES = [
    Operation("clone", on(*[(shape,) for shape in SIZES])),
    Operation("Tensor.contiguous", on(*[(shape,) for shape in SIZES])),
    Operation("Tensor.to", on(((2, 3), DType("complex128")))),
    Operation("Tensor.to float32", on(((2, 3), DType("float32"))), path="Tensor.to", complex=False,
              coarse=True, half=False),
    Operation("Tensor.type_as", lambda make: [Sample(make(2, 3), make(1))], half=False),
    Operation("Tensor.double", on(((2, 3),)), complex=False, own_dtype=True),
    Operation("Tensor.fill", on(((2, 3), 1.5)),
              path=lambda lib: lambda x, value: x.clone().fill_(value), covers=("fill", "fill_"),
              method=False),
    Operation("Tensor.fill by a tensor", lambda make: [Sample(make(2, 3), make())],
              path=lambda lib: lambda x, value: x.clone().fill_(value), method=False),
    Operation("Tensor.zero", on(((2, 3),)), path=lambda lib: lambda x: x.clone().zero_(),
              covers=("zero", "zero_"), method=False),
    Operation("Tensor.copy", lambda make: [Sample(make(2, 3), make(3)), Sample(make(2), make())],
              path=lambda lib: lambda x, src: x.clone().copy_(src), covers=("copy", "copy_"),
              method=False),
    Operation("conj", on(*[(shape,) for shape in SIZES]), covers=("_conj",)),
    Operation("conj_physical", on(*[(shape,) for shape in SIZES]), out=True),
    Operation("resolve_conj", on(((2, 3),))),
    Operation("resolve_neg", on(((2, 3),))),
    Operation("complex", spread(((2, 3), (2, 3)), ((2, 1), (3,)), ((), ())), complex=False,
              integer=False, half=False, method=False, out=True),
    Operation("polar", _polar, complex=False,
              integer=False, half=False, method=False, out=True),
    Operation("angle", over(with_(), values=Make.apart, empty=with_()), out=True),
]  # fmt: skip

JOINING = [
    Operation("cat", _joined, covers=("_cat",), method=False, out=True),
    Operation("concat", _joined, method=False, out=True),
    Operation("concatenate", _joined, method=False, out=True),
    Operation("stack", _stacked, method=False, out=True),
    Operation("hstack", several(((2, 1), (2, 2)), ((2,), (1,)), ((), ())), method=False, out=True),
    Operation("vstack", several(((1, 2), (2, 2)), ((2,), (2,)), ((), ())), method=False, out=True),
    Operation("row_stack", several(((2,), (1, 2))), method=False, out=True),
    Operation("dstack", several(((1, 2), (1, 2)), ((2,), (2,)), ((), ())), method=False, out=True),
    Operation("column_stack", several(((2,), (2, 2)), ((), ())), method=False, out=True),
    Operation("block_diag", spread(((2, 2), (3,), ()), ((1, 2),)), method=False),
    Operation("atleast_1d", spread(((),), ((2,),), ((), (2,))), method=False),
    Operation("atleast_2d", spread(((),), ((2,),), ((), (2, 1))), method=False),
    Operation("atleast_3d", spread(((),), ((2,),), ((2, 1), (2,))), method=False),
    Operation("broadcast_tensors", spread(((2, 1), (3,)), ((), (2,))), method=False),
    Operation("meshgrid", spread(((2,), (3,)), ((2,), ()), indexing="ij"), method=False),
    Operation("meshgrid of columns", spread(((2,), (3,)), indexing="xy"), path="meshgrid",
              method=False),
    Operation("cartesian_prod", spread(((2,), (3,)), ((2,),)), method=False),
]  # fmt: skip

ARRANGING = [
    Operation("flip", on(((2, 3), (0,)), ((2, 3), (0, 1)), ((2, 3), (-1,)), ((0, 2), (1,)))),
    Operation("fliplr", on(((2, 3),))),
    Operation("flipud", on(((2, 3),), ((3,),))),
    Operation("rot90", on(((2, 3),), ((2, 3), 2), ((2, 3, 1), -1, (2, 0)))),
    Operation("roll", on(((2, 3), 1), ((2, 3), (1, -1), (0, 1)), ((2, 3), 4, 1), ((0, 2), 1))),
    Operation("Tensor.repeat", on(((2, 3), 2, 1), ((3,), (2, 2)), ((), 3), ((2, 2), 0, 1))),
    Operation("tile", on(((2, 3), (2,)), ((2,), (2, 2)), ((), (3,)))),
    Operation("repeat_interleave", _repeats,
              needs_data="the numbers of repetitions decide the shape"),
    Operation("tril", on(((3, 3),), ((2, 3), 1), ((2, 3, 3), -1), ((0, 3),)), out=True),
    Operation("triu", on(((3, 3),), ((2, 3), 1), ((2, 3, 3), -1), ((0, 3),)), out=True),
    Operation("diag", on(((3,),), ((2,), -1), ((2, 3), 1)), out=True),
    Operation("diag_embed", on(((2, 3),), ((2,), 1), ((2, 2), -1, 0, 2))),
    Operation("diagflat", on(((2, 2),), ((2,), 1))),
    Operation("diagonal_copy", on(((3, 3),), ((2, 3), 1)), method=False, out=True),
]  # fmt: skip
