"""Products of vectors, matrices and batches of matrices, and what is composed of them.

The gradient of a product is a product with one factor transposed. `_mm_right` and `_mm_left` are
those, as operators of their own: together with `mm` each is the gradient of the others, and no
transposed view is made on the way.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np

from .. import dtypes
from ..binding import check_operand
from ..dispatch import Operator, copy_to_out
from ..errors import shape_text
from ..native import native
from ..schema import parse
from ..tensor import Tensor
from . import contraction, views
from .declare import linear as _linear
from .declare import primitive as _primitive
from .pointwise import ADD

_native = native
_C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half"}


def _multiply(xp: Any, a: Any, b: Any) -> Any:
    """xp.matmul, in which 16-bit floats are summed as float32."""
    kind = a.dtype
    if kind.itemsize == 2 and kind.kind not in "iu":
        return xp.matmul(a.astype(xp.float32), b.astype(xp.float32)).astype(kind)
    if kind.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    return xp.matmul(a, b)


def _adjoint(a: Any) -> Any:
    """The conjugate transpose of the last two dimensions of an array."""
    return a.swapaxes(-1, -2) if a.dtype.kind != "c" else a.swapaxes(-1, -2).conj()


def _c_name(array: Any) -> str:
    name = dtypes.from_numpy(array.dtype).name
    return _C_NAMES.get(name, name)


def _scalar_name(array: Any) -> str:
    return dtypes.from_numpy(array.dtype).scalar_name


# Matrices -----------------------------------------------------------------------------------------


def _check_matrices(a: Any, b: Any) -> None:
    if a.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if b.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    _check_inner(a, b)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{_c_name(a)} != {_c_name(b)}"
        )


def _check_inner(a: Any, b: Any) -> None:
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )


def _mm(xp: Any, a: Any, b: Any) -> Any:
    out = _native.matmul(a, b)
    if out is not None:
        return out
    _check_matrices(a, b)
    return _multiply(xp, a, b)


mm = _linear(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    _mm,
    {
        "self": lambda g, mat2: _mm_right.call2(g, mat2),
        "mat2": lambda g, self: _mm_left.call2(self, g),
    },
    doc="Product of two matrices.",
)
_mm_right = _linear(
    "_mm_right(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: _mm(xp, a, _adjoint(b)),
    {
        "self": lambda g, other: mm.call2(g, other),
        "other": lambda g, self: _mm_left.call2(g, self),
    },
    name="MmBackward0",
    doc="Product of a matrix with the adjoint of another.",
)
_mm_left = _linear(
    "_mm_left(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: _mm(xp, _adjoint(a), b),
    {
        "self": lambda g, other: _mm_right.call2(other, g),
        "other": lambda g, self: mm.call2(self, g),
    },
    name="MmBackward0",
    doc="Product of the adjoint of a matrix with another.",
)


# Batches of matrices --------------------------------------------------------------------------------


def _bmm(xp: Any, a: Any, b: Any) -> Any:
    for name, batch in (("batch1", a), ("batch2", b)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"{shape_text((a.shape[0], a.shape[2]))} but got: {shape_text(b.shape[:2])}."
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected scalar type {_scalar_name(a)} but found {_scalar_name(b)}"
        )
    return _multiply(xp, a, b)


bmm = _linear(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    _bmm,
    {
        "self": lambda g, mat2: _bmm_right.call2(g, mat2),
        "mat2": lambda g, self: _bmm_left.call2(self, g),
    },
    doc="Products of the matrices of two batches.",
)
_bmm_right = _linear(
    "_bmm_right(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: _bmm(xp, a, _adjoint(b)),
    {
        "self": lambda g, other: bmm.call2(g, other),
        "other": lambda g, self: _bmm_left.call2(g, self),
    },
    name="BmmBackward0",
    doc="Products of matrices with the adjoints of others.",
)
_bmm_left = _linear(
    "_bmm_left(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: _bmm(xp, _adjoint(a), b),
    {
        "self": lambda g, other: _bmm_right.call2(other, g),
        "other": lambda g, self: bmm.call2(self, g),
    },
    name="BmmBackward0",
    doc="Products of the adjoints of matrices with others.",
)


# Vectors ------------------------------------------------------------------------------------------


def _check_matrix_vector(rows: int, a: Any, v: Any, ndim: int = 1) -> None:
    if a.ndim != 2 or v.ndim != 1 or ndim > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {ndim}, {a.ndim}, {v.ndim}"
        )
    if a.shape[1] != v.shape[0] or rows not in (1, a.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({rows}), mat ({a.shape[0]}x{a.shape[1]}), vec "
            f"({v.shape[0]})"
        )


def _mv(xp: Any, a: Any, v: Any) -> Any:
    _check_matrix_vector(1, a, v)
    if a.dtype != v.dtype:
        raise RuntimeError(
            f"mv input tensors must have the same dtype, but got {_scalar_name(a)} and "
            f"{_scalar_name(v)}"
        )
    return _multiply(xp, a, v)


mv = _linear(
    "mv(Tensor self, Tensor vec) -> Tensor",
    _mv,
    {
        "self": lambda g, vec: outer(g, vec.conj()),
        "vec": lambda g, self: mv.call2(self.mH, g),
    },
    doc="Product of a matrix with a vector.",
)


def _check_vectors(name: str, a: Any, b: Any) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found {_scalar_name(a)} and "
            f"{_scalar_name(b)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {shape_text(a.shape)} and src "
            f"{shape_text(b.shape)} to have the same number of elements, but got {a.size} and "
            f"{b.size} elements respectively"
        )


def _dot(xp: Any, a: Any, b: Any) -> Any:
    _check_vectors("dot", a, b)
    return _multiply(xp, a, b)


dot = _linear(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    _dot,
    {
        "self": lambda g, tensor: g * tensor.conj(),
        "tensor": lambda g, self: g * self.conj(),
    },
    doc="Sum of the products of two vectors.",
    aliases={"other": "tensor"},
)


def _vdot(xp: Any, a: Any, b: Any) -> Any:
    _check_vectors("vdot", a, b)
    return _multiply(xp, a.conj() if a.dtype.kind == "c" else a, b)


vdot = _linear(
    "vdot(Tensor self, Tensor other) -> Tensor",
    _vdot,
    {"self": lambda g, other: g.conj() * other, "other": lambda g, self: g * self},
    doc="Sum of the products of two vectors, the first conjugated.",
)


def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All products of the elements of two vectors, as a matrix."""
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector.array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {vector.array.ndim}-D"
            )
    result = views.unsqueeze.call((input, 1)) * vec2
    return result if out is None else copy_to_out("outer", result, out)


ger = outer


def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sums of products over the last dimensions of both tensors."""
    shape, other_shape = input.array.shape, other.array.shape
    if not shape or not other_shape:
        result = input * other
    elif shape[-1] != other_shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{shape_text(shape)} and {shape_text(other_shape)}"
        )
    else:
        result = contraction.tensordot(input, other, [-1], [-1])
    return result if out is None else copy_to_out("inner", result, out)


# matmul -------------------------------------------------------------------------------------------


class Matmul(Operator):
    """Product of tensors of any rank: chooses dot, mv, mm or bmm by the number of dimensions."""

    def __init__(self) -> None:
        schema = parse("matmul(Tensor self, Tensor other) -> Tensor")
        Operator.__init__(self, "matmul", schema, "composite", _multiply)
        self.doc = "Product of vectors, matrices or batches of matrices, which broadcast."

    def call2(self, x: Any, y: Any) -> Any:
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            x, y = check_operand(self, x, y), check_operand(self, y, x)
            if not isinstance(x, Tensor) or not isinstance(y, Tensor):
                return NotImplemented
        if x.array.ndim == 2 and y.array.ndim == 2:
            return mm.call2(x, y)
        return _matmul(x, y)

    def call(self, args: tuple) -> Any:
        return self.call2(*args)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)


matmul = Matmul()


def _matmul(x: Tensor, y: Tensor) -> Tensor:
    left, right = x.array.ndim, y.array.ndim
    if left == 0 or right == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D"
        )
    if left == 1 and right == 1:
        return dot.call2(x, y)
    if left == 2 and right == 1:
        return mv.call2(x, y)
    if left == 1 and right == 2:
        return mm.call2(views.unsqueeze.call((x, 0)), y).squeeze(0)
    if right <= 2 and (x.array.flags.c_contiguous or y.requires()):
        return _folded(x, y)
    if left == 1 and (y.array.flags.c_contiguous or x.requires()):
        return _folded(views.transpose.call((y, -2, -1)), x)
    return _batched(x, y)


def _folded(x: Tensor, y: Tensor) -> Tensor:
    """A batch times one matrix or vector: one product with all rows of the batch."""
    *batch, inner_size = x.array.shape
    rows = contraction.product(batch)
    flat = x.reshape(rows, inner_size)
    if y.array.ndim == 1:
        return views.unsafe_view.call((mv.call2(flat, y), tuple(batch)))
    return views.unsafe_view.call((mm.call2(flat, y), (*batch, y.array.shape[1])))


def _batched(x: Tensor, y: Tensor) -> Tensor:
    """Two batches, whose leading dimensions broadcast; a vector is a matrix of one row or column."""
    shape, other = x.array.shape, y.array.shape
    rows = () if len(shape) == 1 else (shape[-2],)
    columns = () if len(other) == 1 else (other[-1],)
    if len(shape) == 1:
        x = views.unsqueeze.call((x, 0))
    if len(other) == 1:
        y = views.unsqueeze.call((y, 1))
    batch = _broadcast(shape[:-2], other[:-2])
    count = contraction.product(batch)
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


# Products that are added to something ---------------------------------------------------------------


def _scaled(g: Tensor, factor: Any) -> Tensor:
    return g if factor == 1 else g * _conjugate(factor)


def _conjugate(factor: Any) -> Any:
    return factor.conjugate() if isinstance(factor, complex) else factor


def _added(xp: Any, x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * product`; a factor of zero leaves even NaN out."""
    kind = product.dtype
    if x.ndim > product.ndim or xp.broadcast_shapes(x.shape, product.shape) != product.shape:
        raise ValueError("not expandable")
    if kind.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product.astype(kind, copy=False)
    if alpha == 1 and beta == 1 and x.dtype == kind:
        out = _native.binary(ADD, product, x)
        if out is not None:
            return out
    return (product + (x if beta == 1 else x * beta)).astype(kind, copy=False)


def _expansion_error(x: Any, shape: tuple) -> RuntimeError:
    for i in range(1, min(x.ndim, len(shape)) + 1):
        if x.shape[-i] not in (1, shape[-i]):
            return RuntimeError(
                f"The expanded size of the tensor ({shape[-i]}) must match the existing size "
                f"({x.shape[-i]}) at non-singleton dimension {len(shape) - i}. Target sizes: "
                f"{shape_text(shape)}. Tensor sizes: {shape_text(x.shape)}"
            )
    return RuntimeError(
        f"expand({shape_text(x.shape)}, size={shape_text(shape)}): the number of sizes provided "
        f"({len(shape)}) must be greater or equal to the number of dimensions in the tensor "
        f"({x.ndim})"
    )


def _check_same_dtype(x: Any, a: Any, b: Any) -> None:
    if not x.dtype == a.dtype == b.dtype:
        wrong = b if b.dtype != a.dtype else x
        first, second = (x, b) if wrong is b else (x, a)
        raise RuntimeError(
            "self and mat2 must have the same dtype, but got "
            f"{_scalar_name(first)} and {_scalar_name(second)}"
        )


def _plus(xp: Any, multiply: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    if a.dtype == b.dtype or a.ndim != b.ndim:
        product = multiply(xp, a, b)
        shape = product.shape
    _check_same_dtype(x, a, b)
    try:
        return _added(xp, x, product, beta, alpha)
    except ValueError:
        raise _expansion_error(x, shape) from None


def _addmm(xp: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    for name, matrix in (("mat1", a), ("mat2", b)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.ndim}-D tensor")
    return _plus(xp, _mm, x, a, b, beta, alpha)


addmm = _primitive(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmm,
    {
        "self": lambda g, beta: _scaled(g, beta),
        "mat1": lambda g, mat2, alpha: _scaled(_mm_right.call2(g, mat2), alpha),
        "mat2": lambda g, mat1, alpha: _scaled(_mm_left.call2(mat1, g), alpha),
    },
    lambda tangents, mat1, mat2, beta, alpha: _sum_tangents(
        tangents, mm, "mat1", mat1, "mat2", mat2, beta, alpha
    ),
    inplace=True,
    widens=False,
    doc="`beta * input + alpha * (mat1 @ mat2)`.",
)


def _sum_tangents(
    tangents: dict,
    multiply: Any,
    left_name: str,
    left: Tensor,
    right_name: str,
    right: Tensor,
    beta: Any,
    alpha: Any,
) -> Any:
    """The tangent of `beta * self + alpha * multiply(left, right)`."""
    terms = []
    if left_name in tangents:
        terms.append(multiply(tangents[left_name], right) * alpha)
    if right_name in tangents:
        terms.append(multiply(left, tangents[right_name]) * alpha)
    if "self" in tangents:
        terms.append(tangents["self"] * beta)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _addmv(xp: Any, x: Any, a: Any, v: Any, beta: Any, alpha: Any) -> Any:
    _check_matrix_vector(x.shape[0] if x.ndim else 1, a, v, x.ndim)
    return _plus(xp, _mv, x, a, v, beta, alpha)


addmv = _primitive(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmv,
    {
        "self": lambda g, beta: _scaled(g, beta),
        "mat": lambda g, vec, alpha: _scaled(outer(g, vec.conj()), alpha),
        "vec": lambda g, mat, alpha: _scaled(mv.call2(mat.mH, g), alpha),
    },
    lambda tangents, mat, vec, beta, alpha: _sum_tangents(
        tangents, mv, "mat", mat, "vec", vec, beta, alpha
    ),
    inplace=True,
    widens=False,
    doc="`beta * input + alpha * (mat @ vec)`.",
)
baddbmm = _primitive(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    lambda xp, x, a, b, beta, alpha: _plus(xp, _bmm, x, a, b, beta, alpha),
    {
        "self": lambda g, beta: _scaled(g, beta),
        "batch1": lambda g, batch2, alpha: _scaled(_bmm_right.call2(g, batch2), alpha),
        "batch2": lambda g, batch1, alpha: _scaled(_bmm_left.call2(batch1, g), alpha),
    },
    lambda tangents, batch1, batch2, beta, alpha: _sum_tangents(
        tangents, bmm, "batch1", batch1, "batch2", batch2, beta, alpha
    ),
    inplace=True,
    widens=False,
    doc="`beta * input + alpha * (batch1 @ batch2)` for batches of matrices.",
)


def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * (the sum of all products of a batch)`."""
    count, rows, size = batch1.array.shape if batch1.array.ndim == 3 else (0, 0, 0)
    if not count or batch2.array.ndim != 3 or batch2.array.shape[:2] != (count, size):
        bmm(batch1, batch2)
    left = batch1.permute(1, 0, 2).reshape(rows, count * size)
    right = batch2.reshape(count * size, batch2.array.shape[2])
    return addmm(input, left, right, beta=beta, alpha=alpha, out=out)


def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    product = outer(vec1, vec2)
    result = product if alpha == 1 else product * alpha
    if beta != 0:
        result = result + (input if beta == 1 else input * beta)
    return result if out is None else copy_to_out("addr", result, out)


# The linear layer -----------------------------------------------------------------------------------


def _affine(xp: Any, bias: Any, x: Any, weight: Any) -> Any:
    return _addmm(xp, bias, x, weight.T, 1, 1)


def _affine_weight(g: Tensor, x: Tensor) -> Tensor:
    product = _mm_left.call2(g, x)
    return product if product.array.dtype.kind != "c" else product.conj()


affine = _primitive(
    "_affine(Tensor bias, Tensor self, Tensor weight) -> Tensor",
    _affine,
    {
        "bias": lambda g: g,
        "self": lambda g, weight: mm.call2(
            g, weight if weight.array.dtype.kind != "c" else weight.conj()
        ),
        "weight": lambda g, self: _affine_weight(g, self),
    },
    lambda tangents, self, weight: _affine_tangent(tangents, self, weight),
    widens=False,
    name="AddmmBackward0",
    doc="`input @ weight.T + bias` as one node.",
)


def _affine_tangent(tangents: dict, x: Tensor, weight: Tensor) -> Tensor:
    terms = []
    if "self" in tangents:
        terms.append(mm(tangents["self"], weight.t()))
    if "weight" in tangents:
        terms.append(mm(x, tangents["weight"].t()))
    if "bias" in tangents:
        terms.append(tangents["bias"])
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total.expand((x.array.shape[0], weight.array.shape[0]))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`, over the last dimension of `input`."""
    ndim = input.array.ndim
    if weight.array.ndim != 2 or ndim == 0:
        product = matmul.call2(input, weight.t())
        return product if bias is None else product + bias
    if bias is None:
        if ndim == 2 and weight.array.dtype.kind != "c":
            return _mm_right.call2(input, weight)
        return matmul.call2(input, weight.t())
    if ndim == 2:
        return affine.call((bias, input, weight))
    if bias.array.ndim > 1:
        return matmul.call2(input, weight.t()) + bias
    *batch, size = input.array.shape
    flat = input.reshape(contraction.product(batch), size)
    return affine.call((bias, flat, weight)).reshape(*batch, weight.array.shape[0])


# Composites ---------------------------------------------------------------------------------------


def einsum(*args: Any) -> Tensor:
    """Products summed over the indices that an equation names, as in ``einsum("ij,jk->ik", a, b)``.

    The operands may also alternate with lists of integer subscripts, the last list being the
    result's.
    """
    return contraction.einsum(args)


def tensordot(
    a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None
) -> Tensor:
    """Products summed over the last `dims` dimensions of `a` and the first of `b`, or over pairs."""
    first, second = contraction.paired_dims(a.array.ndim, b.array.ndim, dims)
    result = contraction.tensordot(a, b, first, second)
    return result if out is None else copy_to_out("tensordot", result, out)


def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`."""
    ndim = max(input.array.ndim, other.array.ndim)
    shape = (1,) * (ndim - input.array.ndim) + input.array.shape
    other_shape = (1,) * (ndim - other.array.ndim) + other.array.shape
    left = input.reshape(tuple([n for length in shape for n in (length, 1)]))
    right = other.reshape(tuple([n for length in other_shape for n in (1, length)]))
    whole = tuple([a * b for a, b in zip(shape, other_shape, strict=True)])
    result = views.unsafe_view.call((left * right, whole))
    return result if out is None else copy_to_out("kron", result, out)


def _trace(xp: Any, x: Any) -> Any:
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    return xp.trace(x, dtype=xp.int64 if x.dtype.kind in "biu" else None)


def _trace_backward(xp: Any, g: Any, size: tuple) -> Any:
    out = xp.zeros(size, g.dtype)
    out.reshape(-1)[: min(size) * size[1] : size[1] + 1] = g
    return out


trace = _linear(
    "trace(Tensor self) -> Tensor",
    _trace,
    lambda g, self_shape: _trace_backward_.call((g, self_shape)),
    widens=True,
    doc="Sum of the diagonal of a matrix.",
)
_trace_backward_ = _linear(
    "_trace_backward(Tensor grad, int[] size) -> Tensor",
    _trace_backward,
    lambda g: trace.call1(g),
    doc="A matrix with a gradient on its diagonal.",
)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of several matrices, in the order that takes the fewest multiplications."""
    result = contraction.multi_dot(list(matrices), mm)
    return result if out is None else copy_to_out("chain_matmul", result, out)
