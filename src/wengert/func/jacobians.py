"""Jacobians and Hessians: batches of vector products over a standard basis."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..core.tensor import Tensor
from ..core.trees.pytree import tree_flatten, tree_map, tree_unflatten
from ..creation.factories import zeros
from ..creation.ranges import eye
from ..operators.joining import cat
from .arguments import Argnums, chosen_argnums, selected
from .differentiation import PullBack, check_outputs
from .forward import jvp_in
from .mapping import vmap


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func` in reverse mode, row by row.

    A Jacobian has the shape of the output followed by that of the input; for trees of outputs and
    inputs it is a tree of outputs of trees of inputs. All rows are computed at once, or
    `chunk_size` of them at a time. With `has_aux`, `func` returns a pair (output, tree of tensors).

    >>> import wengert
    >>> wengert.func.jacrev(wengert.sin)(wengert.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = chosen_argnums(argnums, len(args))
        _refuse_complex("jacrev", selected(args, chosen), "inputs")
        pulled = PullBack(func, args, kwargs, chosen, has_aux)
        outputs, inputs = pulled.values, tree_flatten(selected(args, chosen))[0]
        _refuse_complex("jacrev", outputs, "outputs")
        sizes = [out.numel() for out in outputs]
        columns = _in_chunks(pulled, sum(sizes), chunk_size)
        blocks = [rows.split(sizes) if len(sizes) > 1 else (rows,) for rows in columns]
        jacobians = [
            tree_unflatten(
                [
                    _shaped(block[i], (*out.shape, *x.shape))
                    for block, x in zip(blocks, inputs, strict=True)
                ],
                pulled.input_spec,
            )
            for i, out in enumerate(outputs)
        ]
        result = tree_unflatten(jacobians, pulled.output_spec)
        return (result, pulled.aux) if has_aux else result

    return jacobian


def _shaped(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    return t if t.array.shape == shape else t.reshape(shape)


def _in_chunks(pulled: PullBack, total: int, chunk_size: int | None) -> list[Tensor]:
    """The products with the whole basis of the outputs, one tensor for each input."""
    outputs = pulled.values

    def rows_of(*cotangents: Tensor) -> list[Tensor]:
        return pulled.products(cotangents)

    if chunk_size is None or chunk_size >= total:
        return vmap(rows_of)(*_basis(outputs, 0, total))
    parts = []
    for start in range(0, total, chunk_size):
        basis = _basis(outputs, start, min(start + chunk_size, total))
        if chunk_size == 1:
            rows = rows_of(*[each.squeeze(0) for each in basis])
            parts.append([row.unsqueeze(0) for row in rows])
        else:
            parts.append(vmap(rows_of)(*basis))
    return [cat(list(each)) for each in zip(*parts, strict=True)]


def _basis(tensors: list, start: int, stop: int) -> list[Tensor]:
    """Rows `start` to `stop` of the standard basis of all elements of `tensors`, tensor by tensor.

    Each result has the rows in front and the shape of its tensor behind.
    """
    count = stop - start
    made = []
    before = 0
    for t in tensors:
        size = t.numel()
        options = {"dtype": t.dtype, "device": t.device}
        if len(tensors) == 1 and count == size:
            block = eye(size, **options)
        else:
            block = zeros(count, size, **options)
            first, last = max(start, before), min(stop, before + size)
            if first < last:
                part = block[first - start : last - start, first - before : last - before]
                part.diagonal().fill_(1)
        made.append(_shaped(block, (count, *t.shape)))
        before += size
    return made


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func` in forward mode, column by column.

    The result is that of `jacrev`; forward mode is cheaper where there are fewer inputs than
    outputs. `randomness` is that of the `vmap` over the columns.
    """

    @wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = chosen_argnums(argnums, len(args))
        primals = selected(args, chosen)
        _refuse_complex("jacfwd", primals, "inputs")
        flat, spec = tree_flatten(primals)
        check_outputs(flat, "jacfwd(f)(*args)")
        output_spec: Any = None

        def columns_of(*tangents: Tensor) -> Any:
            nonlocal output_spec
            output, products, aux = jvp_in(
                lambda *given: func(*given, **kwargs), chosen, args, flat, list(tangents), spec,
                False, has_aux,
            )  # fmt: skip
            output_spec = tree_flatten(output)[1]
            leaves = tree_flatten(products)[0]
            return (leaves, aux) if has_aux else leaves

        total = sum([x.numel() for x in flat])
        result = vmap(columns_of, randomness=randomness)(*_basis(flat, 0, total))
        aux = None
        if has_aux:
            result, aux = result
            aux = tree_map(lambda leaf: leaf[0], aux)
        _refuse_complex("jacfwd", result, "outputs")
        jacobians = [
            tree_unflatten(_blocks(columns.movedim(0, -1), flat), spec) for columns in result
        ]
        jacobian = tree_unflatten(jacobians, output_spec)
        return (jacobian, aux) if has_aux else jacobian

    return jacobian


def _blocks(columns: Tensor, inputs: list) -> list[Tensor]:
    """The part of each input in the columns of one output, which are in the last dimension."""
    shape = columns.shape[:-1]
    parts = [columns]
    if len(inputs) > 1:
        parts = columns.split([x.numel() for x in inputs], -1)
    return [_shaped(part, (*shape, *x.shape)) for part, x in zip(parts, inputs, strict=True)]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that computes the Hessian of `func`: forward mode over reverse mode.

    >>> import wengert
    >>> wengert.func.hessian(lambda x: x.sin().sum())(wengert.tensor([1.0, 2.0]))
    tensor([[-0.8415, -0.0000],
            [-0.0000, -0.9093]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _refuse_complex(api: str, tree: Any, what: str) -> None:
    for index, leaf in enumerate(tree_flatten(tree)[0]):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor as number "
                f"{index} of them"
            )
