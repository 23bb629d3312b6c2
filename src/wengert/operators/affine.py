"""Products that are added to something: addmm and its relatives, and the linear layer."""

from __future__ import annotations

from typing import Any

from ..backends.layout import laid_out
from ..backends.loop_codes import PASS_ON, PRODUCT, SCALE
from ..backends.matrices import matrices
from ..core import dtypes
from ..core.errors import shape_text
from ..core.ndarrays import ndarrays
from ..core.numbers import check_number
from ..core.tensor import Tensor
from ..transforms.batching import products as batched
from . import products, shapes
from .declare import by_loop, composite, primitive
from .matmul import bmm, bmm_left, bmm_right, matmul, mm, mm_left, mm_right, mv, outer

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm", "linear"]


# Products that are added to something -------------------------------------------------------------


def _scaled(g: Tensor, factor: Any) -> Tensor:
    return g if factor == 1 else g * _conjugate(factor)


def _conjugate(factor: Any) -> Any:
    return factor.conjugate() if isinstance(factor, complex) else factor


def _factor(number: Any, product: Any) -> Any:
    """A number that a product is multiplied by, which its dtype must be able to hold."""
    return check_number(number, dtypes.from_numpy(product.dtype))


def _added(xp: Any, x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * product` in the memory of `product`; beta zero leaves even NaN out.

    A ValueError says that `x` does not expand to the shape of the product.
    """
    if product.dtype.kind in "iu":
        beta, alpha = [product.dtype.type(_factor(each, product)) for each in (beta, alpha)]
    elif isinstance(beta, complex) or isinstance(alpha, complex):
        beta, alpha = _factor(beta, product), _factor(alpha, product)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        xp.broadcast_to(x, product.shape)
        return product
    return xp.add(product, x if beta == 1 else x * beta, out=product)


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


def _plus(xp: Any, multiply: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    if not x.dtype == a.dtype == b.dtype:
        name, other = ("self", x) if b.dtype != x.dtype else ("mat1", a)
        raise RuntimeError(
            f"{name} and mat2 must have the same dtype, but got "
            f"{products.scalar_name(other)} and {products.scalar_name(b)}"
        )
    kind = x.dtype
    if ndarrays.is_half(x):
        # Product and sum are rounded once, at the end, and so is `beta * x` within the sum.
        a, b = a.astype(xp.float32), b.astype(xp.float32)
        if beta not in (0, 1):
            x, beta = x.astype(xp.float64), float(xp.float32(beta))
        else:
            x = x.astype(xp.float32)
    product = multiply(xp, a, b)
    try:
        return _added(xp, x, product, beta, alpha).astype(kind, copy=False)
    except ValueError:
        raise _expansion_error(x, product.shape) from None


def _addmm(xp: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    if beta == 1 and alpha == 1:
        out = matrices.addmm(x, a, b)
        if out is not None:
            return out
    for name, matrix in (("mat1", a), ("mat2", b)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.ndim}-D tensor")
    return _plus(xp, products.mm, x, a, b, beta, alpha)


def _added_product(x: Any, y: Any, z: Any, *rest: Any) -> tuple[int, ...]:
    return shapes.product(y, z)


addmm = primitive(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmm,
    {
        "self": by_loop(SCALE, lambda g, beta: _scaled(g, beta)),
        "mat1": by_loop(
            PRODUCT + 4, lambda g, mat2, alpha: _scaled(mm_right.call2(g, mat2), alpha)
        ),
        "mat2": by_loop(
            PRODUCT + 3, lambda g, mat1, alpha: _scaled(mm_left.call2(mat1, g), alpha)
        ),
    },
    lambda tangents, mat1, mat2, beta, alpha: _sum_tangents(
        tangents, mm, "mat1", mat1, "mat2", mat2, beta, alpha
    ),
    guarded=False,
    inplace=True,
    widens=False,
    shape=_added_product,
    batch=batched.added(batched.by_operator("mm")),
    cost="product",
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
    shape=lambda x, mat, *rest: mat.shape[:1],
    batch=batched.added(batched.by_operator("mv")),
    cost="product",
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
    shape=_added_product,
    batch=batched.added(batched.by_operator("bmm")),
    cost="product",
    doc="`beta * input + alpha * (batch1 @ batch2)` for batches of matrices.",
)


def _addbmm(xp: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    for name, batch in (("batch1", a), ("batch2", b)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a.shape[0] != b.shape[0]:
        raise RuntimeError(
            "batch1 and batch2 must have same number of batches, got "
            f"{a.shape[0]} and {b.shape[0]}"
        )
    if a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({a.shape[1]}x{a.shape[2]} and "
            f"{b.shape[1]}x{b.shape[2]})"
        )
    inner = a.shape[0] * a.shape[2]
    side_by_side = a.transpose(1, 0, 2).reshape(a.shape[1], inner)
    return _plus(xp, products.mm, x, side_by_side, b.reshape(inner, b.shape[2]), beta, alpha)


def _for_batch(g: Tensor, batch: Tensor) -> Tensor:
    return g.expand((batch.array.shape[0], *g.array.shape))


addbmm = primitive(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor",
    _addbmm,
    {
        "self": lambda g, beta: _scaled(g, beta),
        "batch1": lambda g, batch2, alpha: _scaled(
            bmm_right.call2(_for_batch(g, batch2), batch2), alpha
        ),
        "batch2": lambda g, batch1, alpha: _scaled(
            bmm_left.call2(batch1, _for_batch(g, batch1)), alpha
        ),
    },
    lambda tangents, batch1, batch2, beta, alpha: _sum_tangents(
        tangents, _summed_bmm, "batch1", batch1, "batch2", batch2, beta, alpha
    ),
    inplace=True,
    widens=False,
    shape=lambda x, y, z, *rest: (y.shape[1], z.shape[2]),
    batch=batched.added(batched.summed_bmm),
    cost="product",
    doc="`beta * input + alpha *` the sum of all products of the matrices of two batches.",
)


def _summed_bmm(a: Tensor, b: Tensor) -> Tensor:
    return bmm.call2(a, b).sum(0)


def _check_kind(name: str, number: Any, goal: Any) -> None:
    """Refuse a factor of another kind than the result, which addr() alone does not round."""
    if isinstance(number, bool) and goal.kind != "b":
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if isinstance(number, (float, complex)) and goal.kind in "biu":
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number."
        )


def _addr(xp: Any, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    for name, vector in (("vec1", a), ("vec2", b)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    goal = dtypes.result_dtype([x, a, b])
    for name, number in (("beta", beta), ("alpha", alpha)):
        _check_kind(name, number, goal)
    product = xp.multiply.outer(a.astype(goal, copy=False), b.astype(goal, copy=False))
    try:
        if goal.kind == "b":
            out = (product & bool(alpha)) | (xp.broadcast_to(x, product.shape) & bool(beta))
        else:
            out = _added(xp, x.astype(goal, copy=False), product, beta, alpha)
    except ValueError:
        raise _expansion_error(x, product.shape) from None
    return laid_out(out, (x, product))


addr = primitive(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addr,
    {
        "self": lambda g, beta: _scaled(g, beta),
        "vec1": lambda g, vec2, alpha: _scaled(mv.call2(g, vec2.conj()), alpha),
        "vec2": lambda g, vec1, alpha: _scaled(mv.call2(g.t(), vec1.conj()), alpha),
    },
    lambda tangents, vec1, vec2, beta, alpha: _sum_tangents(
        tangents, outer, "vec1", vec1, "vec2", vec2, beta, alpha
    ),
    inplace=True,
    shape=lambda x, y, z, *rest: (*y.shape, *z.shape),
    batch=batched.added(batched.outer, promotes=True),
    doc="`beta * input + alpha * outer(vec1, vec2)`.",
    out="casts",
)


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
        "bias": by_loop(PASS_ON, lambda g: g),
        "self": by_loop(
            PRODUCT,
            lambda g, weight: mm.call2(
                g, weight if weight.array.dtype.kind != "c" else weight.conj()
            ),
        ),
        "weight": by_loop(PRODUCT + 2, lambda g, self: _affine_weight(g, self)),
    },
    lambda tangents, self, weight: _affine_tangent(tangents, self, weight),
    widens=False,
    name="AddmmBackward0",
    shape=lambda bias, x, weight: (x.shape[0], weight.shape[0]),
    batch=batched.affine,
    cost="product",
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


@composite(public="")
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
