"""Sums of products over named indices, reduced to permutations and products of matrices."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ..backends.geometry import wrap_dim
from ..core.errors import shape_text
from ..core.state import thread_state
from ..core.tensor import Tensor
from ..dispatch.out import copy_to_out
from .declare import composite
from .matmul import bmm, bmm_right, mm, mm_right
from .products import total_size
from .views import view_

__all__ = ["chain_matmul", "einsum", "inner", "tensordot"]

_ELLIPSIS = "..."
_SUBSCRIPTS = 52


# tensordot ----------------------------------------------------------------------------------------


@composite(public="function")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Products summed over the last `dims` dimensions of `a` and first of `b`, or over pairs."""
    first, second = _paired_dims(a.array.ndim, b.array.ndim, dims)
    result = _summed_products(a, b, first, second)
    return result if out is None else copy_to_out("tensordot", result, out, (), True)


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
        result = _summed_products(input, other, [-1], [-1])
    return result if out is None else copy_to_out("inner", result, out, (), True)


def _paired_dims(ndim: int, other_ndim: int, dims: Any) -> tuple[list[int], list[int]]:
    """The dimensions of both tensors that tensordot's argument `dims` pairs."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(ndim, other_ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    first, second = [list(each) if not isinstance(each, int) else [each] for each in dims]
    return first, second


def _summed_products(a: Tensor, b: Tensor, first: list[int], second: list[int]) -> Tensor:
    """Products summed over pairs of dimensions."""
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    shape, other = a.array.shape, b.array.shape
    first_dims = [wrap_dim(dim, len(shape)) for dim in first]
    second_dims = [wrap_dim(dim, len(other)) for dim in second]
    for i, j, dim, other_dim in zip(first_dims, second_dims, first, second, strict=True):
        if shape[i] == other[j]:
            continue
        if shape[i] == 1:
            b = b.sum(j, True)
        elif other[j] == 1:
            a = a.sum(i, True)
        else:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {shape[i]} in dim {dim} "
                f"and second has size {other[j]} in dim {other_dim}"
            )
    free = [i for i in range(len(shape)) if i not in first_dims]
    other_free = [i for i in range(len(other)) if i not in second_dims]
    inner = total_size([a.array.shape[i] for i in first_dims])
    rows = [shape[i] for i in free]
    columns = [other[i] for i in other_free]
    if not free and not other_free:
        left, right = _permuted(a, first_dims).reshape(-1), _permuted(b, second_dims).reshape(-1)
        return left.dot(right).reshape(())
    left = _permuted(a, free + first_dims).reshape(total_size(rows), inner)
    right = _permuted(b, second_dims + other_free).reshape(inner, total_size(columns))
    return left.mm(right).reshape((*rows, *columns))


def _permuted(x: Tensor, dims: list[int]) -> Tensor:
    return x if dims == list(range(len(dims))) else x.permute(tuple(dims))


# einsum -------------------------------------------------------------------------------------------


@composite(public="function")
def einsum(*args: Any) -> Tensor:
    """Products summed over the indices that an equation names, as in ``einsum("ij,jk->ik", a, b)``.

    The operands may also alternate with lists of integer subscripts, the last list being the
    result's.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    equation = args[0] if isinstance(args[0], str) else _equation_of(args)
    operands = list(args[1:]) if isinstance(args[0], str) else list(args[:-1:2])
    if not isinstance(args[0], str) and len(args) % 2 == 0:
        operands = list(args[::2])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if len(operands) == 2:
        x, y = operands
        pair = _pair(equation, x.array.shape, y.array.shape)
        if pair is not None:
            return _multiplied(x, y, pair)
    labelled, result = _read(equation, tuple([operand.array.ndim for operand in operands]))
    parts = _prepared(operands, labelled)
    x, labels = parts[0]
    for i in range(1, len(parts)):
        later = {label for _, rest in parts[i + 1 :] for label in rest}
        x, labels = _contract(x, labels, *parts[i], later, result)
    rest = [label for label in labels if label not in result]
    order = [labels.index(label) for label in (*result, *rest)]
    x = _permuted(x, order) if rest or len(parts) > 1 else x.permute(tuple(order))
    return x.sum(tuple(range(len(result), len(order)))) if rest else x


class _Pair(NamedTuple):
    """How two operands become one product: an order of dimensions and a shape for each, or None.

    `turned` is how the second becomes the transposed factor, where that takes no other order.
    """

    left: tuple[Any, Any]
    right: tuple[Any, Any]
    turned: tuple[Any, Any] | None
    result: tuple[Any, Any]
    batched: bool


@lru_cache(maxsize=256)
def _pair(equation: str, shape: tuple[int, ...], other: tuple[int, ...]) -> _Pair | None:
    """What a product of two operands of some shapes comes down to; None if it is not one alone."""
    (labels, others), result = _read(equation, (len(shape), len(other)))
    sizes = dict(zip(labels, shape, strict=True))
    shared = [label for label in labels if label in others]
    batch = [label for label in shared if label in result]
    summed = [label for label in shared if label not in result]
    mine = [label for label in labels if label not in others]
    theirs = [label for label in others if label not in labels]
    if (
        not summed
        or any(label not in result for label in mine + theirs)
        or len({*labels}) < len(labels)
        or len({*others}) < len(others)
        or any(sizes.get(label, n) != n for label, n in zip(others, other, strict=True))
    ):
        return None
    sizes.update(zip(others, other, strict=True))
    front = [batch] if batch else []
    turned = _grouping(others, sizes, *front, theirs, summed)
    made = batch + mine + theirs
    order = [made.index(label) for label in result]
    whole = tuple([sizes[label] for label in made])
    grouped = tuple([total_size([sizes[n] for n in group]) for group in (*front, mine, theirs)])
    return _Pair(
        _grouping(labels, sizes, *front, mine, summed),
        _grouping(others, sizes, *front, summed, theirs),
        turned if turned[0] is None else None,
        (None if order == sorted(order) else tuple(order), None if whole == grouped else whole),
        bool(batch),
    )


def _multiplied(x: Tensor, y: Tensor, pair: _Pair) -> Tensor:
    left = _arranged(x, *pair.left)
    state = thread_state()
    plain = not state.layers and not (state.grad_enabled and (x.requires() or y.requires()))
    if plain and pair.turned is not None and y.array.dtype.kind != "c":
        right = _arranged(y, *pair.turned)
        product = (bmm_right if pair.batched else mm_right).call2(left, right)
    else:
        product = (bmm if pair.batched else mm).call2(left, _arranged(y, *pair.right))
    order, shape = pair.result
    if shape is not None:
        product = product.reshape(shape)
    return product if order is None else product.permute(order)


def _equation_of(args: tuple) -> str:
    """The equation that alternating operands and subscript lists stand for."""
    lists = [_letters(each) for each in args[1::2]]
    equation = ",".join(lists)
    return equation + "->" + _letters(args[-1]) if len(args) % 2 else equation


def _letters(subscripts: Any) -> str:
    text = ""
    for each in subscripts:
        if each is Ellipsis:
            text += _ELLIPSIS
        elif isinstance(each, int) and 0 <= each < _SUBSCRIPTS:
            text += chr(ord("A") + each) if each < 26 else chr(ord("a") + each - 26)
        else:
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range "
                f"[0, {_SUBSCRIPTS})"
            )
    return text


@lru_cache(maxsize=256)
def _read(equation: str, ndims: tuple[int, ...]) -> tuple[list[list[Any]], list[Any]]:
    """A label for each dimension of each operand, and those of the result."""
    inputs, output = _parse(equation, len(ndims))
    labelled = [
        _labels(i, tokens, ndim)
        for i, (tokens, ndim) in enumerate(zip(inputs, ndims, strict=True))
    ]
    result = _result_labels(output, labelled)
    _check_result(result, labelled)
    return labelled, result


def _parse(equation: str, count: int) -> tuple[list[list[str]], list[str] | None]:
    """Letters and ellipses of each operand and, if given, of the result."""
    left, arrow, right = equation.partition("->")
    inputs = []
    start = 0
    for i, text in enumerate(left.split(",")):
        inputs.append(_tokens(text, start, f"operand {i}"))
        start += len(text) + 1
    if len(inputs) > count:
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(inputs) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return inputs, _tokens(right, len(left) + 2, "output") if arrow else None


def _tokens(text: str, start: int, where: str) -> list[str]:
    tokens: list[str] = []
    i = 0
    while i < len(text):
        character = text[i]
        if character == ".":
            if _ELLIPSIS in tokens:
                raise RuntimeError(
                    f"einsum(): found '.' for {where} for which an ellipsis was already found"
                    if where != "output"
                    else "einsum(): found '.' for output but an ellipsis (...) was already found"
                )
            if text[i : i + 3] != _ELLIPSIS:
                raise RuntimeError(
                    f"einsum(): found '.' for {where} that is not part of any ellipsis (...)"
                )
            tokens.append(_ELLIPSIS)
            i += 3
            continue
        if character.isascii() and character.isalpha():
            tokens.append(character)
        elif character != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + i} in the equation string, "
                "subscripts must be in [a-zA-Z]"
            )
        i += 1
    return tokens


def _labels(i: int, tokens: list[str], ndim: int) -> list[Any]:
    """A label for each dimension; those under an ellipsis are numbered from the last."""
    named = len(tokens) - (_ELLIPSIS in tokens)
    if named > ndim or (named < ndim and _ELLIPSIS not in tokens):
        which = "more than the number of" if _ELLIPSIS in tokens else "does not match the number of"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) {which} dimensions "
            f"({ndim}) for operand {i}"
            + ("" if _ELLIPSIS in tokens else " and no ellipsis was given")
        )
    labels: list[Any] = []
    for token in tokens:
        labels += list(range(ndim - named - 1, -1, -1)) if token == _ELLIPSIS else [token]
    return labels


def _result_labels(output: list[str] | None, labelled: list[list[Any]]) -> list[Any]:
    """The result's labels: as given, or the ellipsis and then each letter that occurs once."""
    numbers = [label for labels in labelled for label in labels if isinstance(label, int)]
    covered = list(range(max(numbers, default=-1), -1, -1))
    if output is not None:
        return [
            each
            for token in output
            for each in (covered if token == _ELLIPSIS else [token])
        ]
    letters = [label for labels in labelled for label in labels if isinstance(label, str)]
    return covered + sorted(each for each in set(letters) if letters.count(each) == 1)


def _check_result(result: list[Any], labelled: list[list[Any]]) -> None:
    known = {label for labels in labelled for label in labels}
    for i, label in enumerate(result):
        if label in result[:i]:
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the output"
            )
        if label not in known:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input "
                "operand"
            )


def _prepared(
    operands: list[Tensor], labelled: list[list[Any]]
) -> list[tuple[Tensor, list[Any]]]:
    """Each operand with distinct labels, and without the dimensions of size one that broadcast."""
    sizes: dict[Any, int] = {}
    parts = []
    for i, (x, labels) in enumerate(zip(operands, labelled, strict=True)):
        labels = list(labels)
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                x = _on_diagonal(x, labels, label, i)
        for label, size in zip(labels, x.array.shape, strict=True):
            seen = sizes.get(label, 1)
            if size != seen and size != 1 and seen != 1:
                name = _ELLIPSIS if isinstance(label, int) else label
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {i} which does not "
                    f"broadcast with previously seen size {seen}"
                )
            sizes[label] = size if seen == 1 else seen
        parts.append((x, labels))
    return [_without_broadcast(x, labels, sizes) for x, labels in parts]


def _on_diagonal(x: Tensor, labels: list[Any], label: Any, i: int) -> Tensor:
    """Merge the first two dimensions with the same label into one, the last; updates `labels`."""
    first = labels.index(label)
    second = labels.index(label, first + 1)
    size, other = x.array.shape[first], x.array.shape[second]
    if size != other:
        raise RuntimeError(
            f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, "
            f"{other} != {size}"
        )
    del labels[second], labels[first]
    labels.append(label)
    return x.diagonal(0, first, second)


def _without_broadcast(
    x: Tensor, labels: list[Any], sizes: dict[Any, int]
) -> tuple[Tensor, list[Any]]:
    kept = [
        i for i, label in enumerate(labels) if x.array.shape[i] == sizes[label]
    ]
    if len(kept) == len(labels):
        return x, labels
    return x.reshape(tuple([x.array.shape[i] for i in kept])), [labels[i] for i in kept]


def _summed(x: Tensor, labels: list[Any], keep: set[Any]) -> tuple[Tensor, list[Any]]:
    """Sum over the dimensions whose label nobody needs any more."""
    dims = tuple([i for i, label in enumerate(labels) if label not in keep])
    if not dims:
        return x, labels
    return x.sum(dims), [label for label in labels if label in keep]


def _contract(
    x: Tensor,
    labels: list[Any],
    y: Tensor,
    others: list[Any],
    later: set[Any],
    result: list[Any],
) -> tuple[Tensor, list[Any]]:
    """Multiply two operands and sum over the labels they share and nobody else needs."""
    keep = later.union(result)
    x, labels = _summed(x, labels, keep.union(others))
    y, others = _summed(y, others, keep.union(labels))
    shared = [label for label in labels if label in others]
    batch = [label for label in shared if label in keep]
    summed = [label for label in shared if label not in keep]
    mine = [label for label in labels if label not in others]
    theirs = [label for label in others if label not in labels]
    if not summed:
        known = batch + mine + theirs
        order = [label for label in result if label in known]
        order += [label for label in known if label not in result]
        return _aligned(x, labels, order) * _aligned(y, others, order), order
    sizes = dict(zip((*labels, *others), (*x.array.shape, *y.array.shape), strict=True))
    shape = tuple([sizes[label] for label in batch + mine + theirs])
    if batch:
        left = _grouped(x, labels, batch, mine, summed)
        product = left.bmm(_grouped(y, others, batch, summed, theirs))
    else:
        product = _grouped(x, labels, mine, summed).mm(_grouped(y, others, summed, theirs))
    return _reshaped(product, shape), batch + mine + theirs


def _aligned(x: Tensor, labels: list[Any], order: list[Any]) -> Tensor:
    """`x` with its dimensions in the given order, and ones for the labels it has not."""
    permuted = _permuted(x, [labels.index(label) for label in order if label in labels])
    sizes = iter(permuted.array.shape)
    return _reshaped(permuted, tuple([next(sizes) if label in labels else 1 for label in order]))


def _grouped(x: Tensor, labels: list[Any], *groups: list[Any]) -> Tensor:
    """`x` with one dimension for each group of labels."""
    sizes = dict(zip(labels, x.array.shape, strict=True))
    return _arranged(x, *_grouping(labels, sizes, *groups))


def _grouping(labels: list[Any], sizes: dict[Any, int], *groups: list[Any]) -> tuple[Any, Any]:
    """The order of dimensions and the shape that give each group of labels a dimension.

    None stands for what is so already.
    """
    order = [labels.index(label) for group in groups for label in group]
    shape = tuple([total_size([sizes[label] for label in group]) for group in groups])
    given = tuple([sizes[labels[i]] for i in order])
    return None if order == sorted(order) else tuple(order), None if shape == given else shape


def _arranged(x: Tensor, order: Any, shape: Any) -> Tensor:
    if order is not None:
        x = x.permute(order)
    return x if shape is None else x.reshape(shape)


def _reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x.array.shape == shape else x.reshape(shape)


# Chains of matrices -------------------------------------------------------------------------------


@composite(public="function")
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of several matrices, in the order that takes the fewest multiplications.

    The product of one matrix is a copy.
    """
    result = multiplied_in_best_order(list(matrices))
    result = result.clone() if len(matrices) == 1 else view_.call((result, result.array.shape))
    return result if out is None else copy_to_out("chain_matmul", result, out, (), True)


def multiplied_in_best_order(matrices: list[Tensor]) -> Tensor:
    """Product of matrices with the fewest multiplications of numbers."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for i, matrix in enumerate(matrices):
        if matrix.array.ndim != 2:
            raise RuntimeError(
                f"Tensor dimension is {matrix.array.ndim}, expected 2 instead (argument {i})"
            )
    sizes = [matrices[0].array.shape[0], *[matrix.array.shape[1] for matrix in matrices]]
    count = len(matrices)
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )

    def multiplied(i: int, j: int) -> Tensor:
        if i == j:
            return matrices[i]
        return multiplied(i, split[i][j]).mm(multiplied(split[i][j] + 1, j))

    return multiplied(0, count - 1)
