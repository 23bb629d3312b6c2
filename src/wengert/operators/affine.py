"""Products that are added to something: addmm and its relatives, and the linear layer."""

from __future__ import annotations

from typing import Any

from ..dispatch import copy_to_out
from ..errors import shape_text
from ..native import native
from ..tensor import Tensor
from . import products
from .declare import primitive
from .matmul import bmm, bmm_left, bmm_right, matmul, mm, mm_left, mm_right, mv, outer
from .pointwise import ADD

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm", "linear"]

_native = native

# Products that are added to something -------------------------------------------------------------


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
            f"{products.scalar_name(first)} and {products.scalar_name(second)}"
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
    return _plus(xp, products.mm, x, a, b, beta, alpha)


addmm = primitive(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmm,
    {
        "self": lambda g, beta: _scaled(g, beta),
        "mat1": lambda g, mat2, alpha: _scaled(mm_right.call2(g, mat2), alpha),
        "mat2": lambda g, mat1, alpha: _scaled(mm_left.call2(mat1, g), alpha),
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
) -> Tensor:
    """The tangent of `beta * self + alpha * multiply(left, right)`."""
    terms = []
    if left_name in tangents:
        terms.append(multiply(tangents[left_name], right) * alpha)
    if right_name in tangents:
        terms.append(multiply(left, tangents[right_name]) * alpha)
    if "self" in tangents:
        terms.append(tangents["self"] * beta)
    return _total(terms)


def _total(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _addmv(xp: Any, x: Any, a: Any, v: Any, beta: Any, alpha: Any) -> Any:
    products.check_matrix_vector(x.shape[0] if x.ndim else 1, a, v, x.ndim)
    return _plus(xp, products.mv, x, a, v, beta, alpha)


addmv = primitive(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmv,
    {
        "self": lambda g, beta: _scaled(g, beta),
        "mat": lambda g, vec, alpha: _scaled(outer(g, vec.conj()), alpha),
        "vec": lambda g, mat, alpha: _scaled(mv.call2(products.adjoint_view(mat), g), alpha),
    },
    lambda tangents, mat, vec, beta, alpha: _sum_tangents(
        tangents, mv, "mat", mat, "vec", vec, beta, alpha
    ),
    inplace=True,
    widens=False,
    doc="`beta * input + alpha * (mat @ vec)`.",
)
baddbmm = primitive(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor",
    lambda xp, x, a, b, beta, alpha: _plus(xp, products.bmm, x, a, b, beta, alpha),
    {
        "self": lambda g, beta: _scaled(g, beta),
        "batch1": lambda g, batch2, alpha: _scaled(bmm_right.call2(g, batch2), alpha),
        "batch2": lambda g, batch1, alpha: _scaled(bmm_left.call2(batch1, g), alpha),
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


# The linear layer ---------------------------------------------------------------------------------


def _affine(xp: Any, bias: Any, x: Any, weight: Any) -> Any:
    return _addmm(xp, bias, x, weight.T, 1, 1)


def _affine_weight(g: Tensor, x: Tensor) -> Tensor:
    product = mm_left.call2(g, x)
    return product if product.array.dtype.kind != "c" else product.conj()


affine = primitive(
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
    return _total(terms).expand((x.array.shape[0], weight.array.shape[0]))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`, over the last dimension of `input`."""
    ndim = input.array.ndim
    if weight.array.ndim != 2 or ndim == 0:
        product = matmul.call2(input, weight.t())
        return product if bias is None else product + bias
    if bias is None:
        if ndim == 2 and weight.array.dtype.kind != "c":
            return mm_right.call2(input, weight)
        return matmul.call2(input, weight.t())
    if ndim == 2:
        return affine.call((bias, input, weight))
    if bias.array.ndim > 1:
        return matmul.call2(input, weight.t()) + bias
    *batch, size = input.array.shape
    flat = input.reshape(products.total_size(batch), size)
    return affine.call((bias, flat, weight)).reshape(*batch, weight.array.shape[0])
