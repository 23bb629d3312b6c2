"""Products of matrices: small ones are loops, larger ones are steps that run C, see
`product_step` in backends/matrices.pyx."""

from __future__ import annotations

import math

import numpy as np

from ...backends.matrices import matrices
from ...core.scalar.expressions import Unsupported
from .building import Builder, Value, source_of
from .emitter import Kernel
from .loops import SCRATCH, Access, Call
from .nests import CHUNKS

#: Products with fewer multiplications are loops.
SMALL = 8192
#: Batches of products with fewer multiplications are not worth waking other threads.
_WORTH_SPLITTING = 400_000


def product(builder: Builder, a: Value, b: Value) -> Value:
    """The product of matrices, or of batches of them, of one type."""
    if a.kind not in ("f32", "f64") or a.kind != b.kind:
        raise Unsupported(f"products of {a.kind} and {b.kind}")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    a = builder.expanded(a, (*batch, rows, inner))
    b = builder.expanded(b, (*batch, inner, columns))
    shape = (*batch, rows, columns)
    if inner == 0 or 0 in shape:
        return builder.uniform(shape, a.kind, 0.0)
    if rows * inner * columns <= SMALL:
        return _as_loop(builder, a, b, shape)
    return _as_step(builder, a, b, shape)


def product_sum(
    builder: Builder, a: Value, b: Value, start: Value, factor: float, least: float
) -> Value:
    """`start + factor * (a @ b)` of matrices, where no element is less than `least`.

    `Unsupported` where a loop does as well: of small products, and where what is added is not in
    memory.
    """
    shape = a.shape[:-1] + b.shape[1:]
    if (
        len(shape) != 2
        or a.kind not in ("f32", "f64")
        or not a.kind == b.kind == start.kind
        or math.prod(shape) * a.shape[-1] <= SMALL
        or start.number is not None
        or start.buffer is None
    ):
        raise Unsupported("a sum that is better a loop")
    start = builder.expanded(start, shape)
    down, along = start.view.strides
    if down < 0 or along != start.view.itemsize:
        raise Unsupported("a sum with a matrix whose columns lie apart")
    return _as_step(builder, a, b, shape, source_of(start), factor, least)


def _as_loop(builder: Builder, a: Value, b: Value, shape: tuple[int, ...]) -> Value:
    """A product as a loop over its result, with a sum of products in each place."""
    if shape[-1] > 1:  # vectors along the columns want them side by side
        builder.in_memory(b)
        if b.view.strides[-1] != b.view.itemsize:
            b = builder.packed(b)
    a, b = source_of(builder.in_memory(a)), source_of(builder.in_memory(b))
    inner = a.shape[-1]
    loop = builder.loop_for(shape, [a, b])
    left, right = builder.access(a), builder.access(b)
    left_strides = (*left.strides[:-1], 0)
    right_strides = (*right.strides[:-2], 0, right.strides[-1])
    at = loop.body.write(
        "dot", a.kind, inner,
        Access(left.buffer, left.offset, left_strides),
        Access(right.buffer, right.offset, right_strides),
        left.strides[-1], right.strides[-2],
    )  # fmt: skip
    return builder.computed(loop, at)


def _as_step(
    builder: Builder,
    a: Value,
    b: Value,
    shape: tuple[int, ...],
    start: Value | None = None,
    factor: float = 1.0,
    least: float = -math.inf,
) -> Value:
    if not matrices.step:
        raise Unsupported("products of larger matrices need the compiled package and a known BLAS")
    a, b = _by_rows_or_columns(builder, a), _by_rows_or_columns(builder, b)
    out = builder.buffer(a.kind, shape, SCRATCH)
    reads = [x.buffer.id for x in (a, b, start) if x is not None and x.buffer is not None]
    made = builder.call(
        "gemm",
        set(reads),
        {out.id},
        left=builder.access(a),
        right=builder.access(b),
        start=None if start is None else builder.access(start),
        factor=factor,
        least=least,
        out=out.id,
        shape=shape,
        inner=a.shape[-1],
        kind=a.kind,
    )
    return builder.whole(out, made.order + 0.5)


def _by_rows_or_columns(builder: Builder, value: Value) -> Value:
    """A value whose matrices BLAS can read: one of the last two dimensions is contiguous."""
    builder.in_memory(value)
    view = value.view
    steps = [s // view.itemsize for s in view.strides]
    rows, columns = view.shape[-2:]
    down, along = (steps[-2] if rows > 1 else 0), (steps[-1] if columns > 1 else 0)
    plain = (along == 1 or columns == 1) and (rows == 1 or down >= max(columns, 1))
    turned = (down == 1 or rows == 1) and (columns == 1 or along >= max(rows, 1))
    batch = [(n, s) for n, s in zip(view.shape[:-2], steps[:-2], strict=True) if n > 1]
    uniform = all(
        s == n_next * s_next
        for (_, s), (n_next, s_next) in zip(batch, batch[1:], strict=False)
    )
    if (plain or turned) and uniform and all(s >= 0 for _, s in batch):
        return source_of(value)
    return builder.packed(value)


# Steps --------------------------------------------------------------------------------------------


def product_step(call: Call) -> tuple[Kernel, list[int]]:
    """The step of a product: a kernel without text, and the numbers after its slots."""
    given = call.arguments
    left, right, shape, inner = given["left"], given["right"], given["shape"], given["inner"]
    rows, columns = shape[-2:]
    left_step, left_turned = _leading(left, rows, inner)
    right_step, right_turned = _leading(right, inner, columns)
    start: Access | None = given["start"]
    numbers = [
        start is not None, 0 if start is None else start.strides[-2], given["kind"] == "f64",
        left_turned, right_turned, rows, columns, inner, left_step, right_step,
        math.prod(shape[:-2]), _between(left, shape), _between(right, shape),
        0 if start is None else _between(start, shape),
        *[int(np.float64(given[name]).view(np.int64)) for name in ("factor", "least")],
    ]  # fmt: skip
    out = Access(given["out"], 0, ())
    slots = [(x.buffer, x.offset) for x in (left, right, out, start or out)]
    return Kernel("", set(), slots), numbers


def product_chunks(call: Call) -> tuple[int, int, int]:
    """The rows of a product's step, how many make a chunk, and how many chunks there are.

    Chunks are matrices of a batch; a single product is split when it runs.
    """
    shape, inner = call.arguments["shape"], call.arguments["inner"]
    batch = math.prod(shape[:-2])
    if batch == 1 or math.prod(shape) * inner < _WORTH_SPLITTING:
        return batch, batch, 1
    chunk = -(-batch // CHUNKS)
    return batch, chunk, -(-batch // chunk)


def _leading(access: Access, rows: int, columns: int) -> tuple[int, bool]:
    """The distance between rows, or between columns where the matrix lies turned."""
    down, along = access.strides[-2:]
    if along == 1 or columns == 1:
        return max(down, columns, 1), False
    assert down == 1 or rows == 1
    return max(along, rows, 1), True


def _between(access: Access, shape: tuple[int, ...]) -> int:
    """The distance between the matrices of a batch."""
    lengths = zip(shape[:-2], access.strides[:-2], strict=True)
    return next((step for n, step in reversed(list(lengths)) if n > 1), 0)
