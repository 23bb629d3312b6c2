"""Products of vectors, matrices and batches of matrices, and what is composed of them.

The gradient of a product is a product with one factor transposed. `mm_right` and `mm_left` are
those, as operators of their own: together with `mm` each is the gradient of the others, and no
transposed view is made on the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.loop_codes import PRODUCT
from ..core.ndarrays import ndarrays
from ..core.registry import operator_named
from ..core.state import overriding, thread_state
from ..core.tensor import Tensor
from ..dispatch.base_operator import present
from ..dispatch.binding import check_operand
from ..dispatch.operator import Operator
from ..dispatch.out import copy_to_out
from ..dispatch.schema_parser import parse
from ..dispatch.torch_function import PLAIN, override_operands, override_operator
from ..transforms.batching import products as batched
from ..transforms.batching.moving import at_front
from . import products, shapes, views
from .declare import by_loop, linear

__all__ = ["bmm", "dot", "ger", "kron", "matmul", "mm", "mv", "outer", "trace", "vdot"]

_ndarrays = ndarrays
_overriding = overriding

# Matrices -----------------------------------------------------------------------------------------


mm = linear(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    products.mm,
    {
        "self": by_loop(PRODUCT + 4, lambda g, mat2: mm_right.call2(g, mat2)),
        "mat2": by_loop(PRODUCT + 3, lambda g, self: mm_left.call2(self, g)),
    },
    guarded=False,
    shape=shapes.product,
    batch=batched.product(0, 0, 1, "bmm"),
    cost="product",
    doc="Product of two matrices.",
)
mm_right: Operator = linear(
    "_mm_right(Tensor self, Tensor other) -> Tensor",
    products.mm_right,
    {
        "self": by_loop(PRODUCT, lambda g, other: mm.call2(g, other)),
        "other": by_loop(PRODUCT + 2, lambda g, self: mm_left.call2(g, self)),
    },
    guarded=False,
    name="MmBackward0",
    shape=shapes.product_right,
    batch=batched.product(0, 0, 0, "_bmm_right"),
    cost="product",
    doc="Product of a matrix with the adjoint of another.",
)
mm_left: Operator = linear(
    "_mm_left(Tensor self, Tensor other) -> Tensor",
    products.mm_left,
    {
        "self": by_loop(PRODUCT + 5, lambda g, other: mm_right.call2(other, g)),
        "other": by_loop(PRODUCT + 1, lambda g, self: mm.call2(self, g)),
    },
    guarded=False,
    name="MmBackward0",
    shape=shapes.product_left,
    batch=batched.product(0, 1, 1, "_bmm_left"),
    cost="product",
    doc="Product of the adjoint of a matrix with another.",
)


# Batches of matrices ------------------------------------------------------------------------------


bmm = linear(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    products.bmm,
    {
        "self": lambda g, mat2: bmm_right.call2(g, mat2),
        "mat2": lambda g, self: bmm_left.call2(self, g),
    },
    shape=shapes.product,
    batch=batched.product(1, 1, 2, "bmm"),
    cost="product",
    doc="Products of the matrices of two batches.",
)
bmm_right: Operator = linear(
    "_bmm_right(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: products.bmm(xp, a, products.adjoint(b)),
    {
        "self": lambda g, other: bmm.call2(g, other),
        "other": lambda g, self: bmm_left.call2(g, self),
    },
    name="BmmBackward0",
    shape=shapes.product_right,
    batch=batched.product(1, 1, 1, "_bmm_right"),
    cost="product",
    doc="Products of matrices with the adjoints of others.",
)
bmm_left: Operator = linear(
    "_bmm_left(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: products.bmm(xp, products.adjoint(a), b),
    {
        "self": lambda g, other: bmm_right.call2(other, g),
        "other": lambda g, self: bmm.call2(self, g),
    },
    name="BmmBackward0",
    shape=shapes.product_left,
    batch=batched.product(1, 2, 2, "_bmm_left"),
    cost="product",
    doc="Products of the adjoints of matrices with others.",
)


# Vectors ------------------------------------------------------------------------------------------


mv: Operator = linear(
    "mv(Tensor self, Tensor vec) -> Tensor",
    products.mv,
    {
        "self": lambda g, vec: outer(g, vec.conj()),
        "vec": lambda g, self: mv.call2(products.adjoint_view(self), g),
    },
    shape=lambda mat, vec: mat.shape[:1],
    batch=batched.matrix_vector,
    cost="product",
    doc="Product of a matrix with a vector.",
)


def _dot_kernel(xp: Any, a: Any, b: Any) -> Any:
    products.check_vectors("dot", a, b)
    return products.multiply(xp, a, b)


dot = linear(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    _dot_kernel,
    {
        "self": lambda g, tensor: g * tensor.conj(),
        "tensor": lambda g, self: g * self.conj(),
    },
    shape=shapes.number,
    batch=batched.inner,
    cost="product",
    doc="Sum of the products of two vectors.",
    aliases={"other": "tensor"},
)


def _vdot(xp: Any, a: Any, b: Any) -> Any:
    products.check_vectors("vdot", a, b)
    return products.multiply(xp, a.conj() if a.dtype.kind == "c" else a, b)


vdot = linear(
    "vdot(Tensor self, Tensor other) -> Tensor",
    _vdot,
    {"self": lambda g, other: g.conj() * other, "other": lambda g, self: g * self},
    shape=shapes.number,
    batch=batched.inner,
    cost="product",
    doc="Sum of the products of two vectors, the first conjugated.",
)


def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All products of the elements of two vectors, as a matrix."""
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector.array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {vector.array.ndim}-D"
            )
    result = views.reshape(input, (input.array.size, 1)) * vec2
    return result if out is None else copy_to_out("outer", result, out)


ger = outer


# The typed names of operators that the compiled form calls directly.
_mm, _mv, _dot, _bmm = mm, mv, dot, bmm

# matmul -------------------------------------------------------------------------------------------


class Matmul(Operator):
    """Product of tensors of any rank: chooses dot, mv, mm or bmm by the number of dimensions."""

    def __init__(self) -> None:
        schema = parse("matmul(Tensor self, Tensor other) -> Tensor")
        Operator.__init__(self, "matmul", schema, "composite", products.multiply)
        self.doc = "Product of vectors, matrices or batches of matrices, which broadcast."

    def call2(self, x: Any, y: Any) -> Any:
        if _overriding.possible:
            out = override_operator(self, (x, y), {})
            if out is not PLAIN:
                return out
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            given = (x, y)
            x, y = check_operand(x), check_operand(y)
            if not isinstance(x, Tensor) or not isinstance(y, Tensor):
                return override_operands(self, *given)
        a, b = x, y
        left, right = _ndarrays.ndim_of(a.array), _ndarrays.ndim_of(b.array)
        if left == 2:
            if right == 2:
                return _mm.call2(x, y)
            if right == 1:
                return _mv.call2(x, y)
        elif left == 1 and right == 1:
            return _dot.call2(x, y)
        return _matmul(a, b, left, right)

    def call(self, args: tuple) -> Any:
        return self.call2(*args)


present(Matmul)
matmul = Matmul()


def _matmul(x: Tensor, y: Tensor, left: int, right: int) -> Tensor:
    if left == 0 or right == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D"
        )
    if left == 3 and right == 3 and x.array.shape[0] == y.array.shape[0]:
        state = thread_state()
        if not state.layers and not (state.grad_enabled and (x.requires() or y.requires())):
            return _bmm.call2(x, y)  # without the views that a graph would have
    if left == 1 and right == 2:
        return mm.call2(views.unsqueeze.call((x, 0)), y).squeeze_(0)
    if right <= 2 and (x.array.flags.c_contiguous or y.requires()):
        return _folded(x, y)
    if left == 1 and (y.array.flags.c_contiguous or x.requires()):
        return _folded(views.transpose.call((y, -2, -1)), x)
    return _batched(x, y)


def _folded(x: Tensor, y: Tensor) -> Tensor:
    """A batch times one matrix or vector: one product with all rows of the batch."""
    *batch, inner_size = x.array.shape
    rows = products.total_size(batch)
    flat = x.reshape(rows, inner_size)
    if y.array.ndim == 1:
        return views.unsafe_view.call((mv.call2(flat, y), tuple(batch)))
    return views.unsafe_view.call((mm.call2(flat, y), (*batch, y.array.shape[1])))


def _batched(x: Tensor, y: Tensor) -> Tensor:
    """Two batches whose leading dimensions broadcast; a vector is a matrix of one row or column."""
    shape, other = x.array.shape, y.array.shape
    rows = () if len(shape) == 1 else (shape[-2],)
    columns = () if len(other) == 1 else (other[-1],)
    if len(shape) == 1:
        x = views.unsqueeze.call((x, 0))
    if len(other) == 1:
        y = views.unsqueeze.call((y, 1))
    batch = _broadcast(shape[:-2], other[:-2])
    count = products.total_size(batch)
    x = x.expand((*batch, *x.array.shape[-2:])).reshape(count, *x.array.shape[-2:])
    y = y.expand((*batch, *y.array.shape[-2:])).reshape(count, *y.array.shape[-2:])
    return views.unsafe_view.call((bmm.call2(x, y), (*batch, *rows, *columns)))


def _broadcast(first: tuple, second: tuple) -> tuple:
    try:
        return np.broadcast_shapes(first, second)
    except ValueError:
        for i in range(1, min(len(first), len(second)) + 1):
            if first[-i] != second[-i] and 1 not in (first[-i], second[-i]):
                raise RuntimeError(
                    f"The size of tensor a ({first[-i]}) must match the size of tensor b "
                    f"({second[-i]}) at non-singleton dimension "
                    f"{max(len(first), len(second)) - i}"
                ) from None
        raise


# Composites ---------------------------------------------------------------------------------------


def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`."""
    ndim = max(input.array.ndim, other.array.ndim)
    shape = (1,) * (ndim - input.array.ndim) + input.array.shape
    other_shape = (1,) * (ndim - other.array.ndim) + other.array.shape
    left = input.reshape(tuple([n for length in shape for n in (length, 1)]))
    right = other.reshape(tuple([n for length in other_shape for n in (1, length)]))
    whole = tuple([a * b for a, b in zip(shape, other_shape, strict=True)])
    result = views.unsafe_view.call(((left * right).contiguous(), whole))
    return result if out is None else copy_to_out("kron", result, out)


def _trace(xp: Any, x: Any) -> Any:
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    if x.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    return xp.trace(x, dtype=xp.int64 if x.dtype.kind in "biu" else None)


def _trace_backward(xp: Any, g: Any, size: tuple) -> Any:
    out = xp.zeros(size, g.dtype)
    out.reshape(-1)[: min(size) * size[1] : size[1] + 1] = g
    return out


def _trace_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    x = at_front(args[0], dims[0])
    if x.array.ndim != 3 or x.array.dtype.kind == "b":
        _trace(np, np.empty(x.array.shape[1:], x.array.dtype))
    return x.diagonal(0, 1, 2).sum(1), 0


def _trace_backward_batched(operator: Any, args: tuple, dims: tuple) -> tuple[Any, int]:
    g, size = at_front(args[0], dims[0]), args[1]
    length = g.array.shape[0]
    diagonal = views.unsqueeze.call((g, 1)).expand(length, min(size))
    return operator_named("diagonal_backward").call((diagonal, (length, *size), 0, 1, 2)), 0


trace = linear(
    "trace(Tensor self) -> Tensor",
    _trace,
    lambda g, self_shape: _trace_backward_.call((g, self_shape)),
    widens=True,
    shape=shapes.number,
    batch=_trace_batched,
    doc="Sum of the diagonal of a matrix.",
)
_trace_backward_: Operator = linear(
    "_trace_backward(Tensor grad, int[] size) -> Tensor",
    _trace_backward,
    lambda g: trace.call1(g),
    meta=shapes.sized,
    batch=_trace_backward_batched,
    doc="A matrix with a gradient on its diagonal.",
)
