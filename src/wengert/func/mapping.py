"""`vmap`: a function of one example, applied to a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from ..core.tensor import Tensor
from ..core.trees.pytree import _broadcast_to_and_flatten, tree_flatten
from ..creation.generator import get_rng_state, set_rng_state
from ..dispatch.levels import Level, lifted, unwrapped
from ..operators.joining import cat
from ..transforms.levels import VmapLevel


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies `func` to every example of a batch, all at once.

    `in_dims` says which dimension of each tensor among the arguments counts the examples, None
    for one that they share; it is an int for all or has the structure of the arguments. `out_dims`
    says the same of the results. Keyword arguments are shared.

    Random numbers inside are refused, or the `randomness` is the "same" for all examples or
    "different". With `chunk_size` only so many examples are computed at once.

    >>> import wengert
    >>> wengert.vmap(wengert.dot)(wengert.ones(3, 2), wengert.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        dims = _flat_in_dims(func, in_dims, args, leaves, spec)
        size = _batch_size(leaves, dims)
        call = _Call(func, spec, kwargs, out_dims, randomness)
        if chunk_size is None or chunk_size >= size:
            return call.on(leaves, dims, size)
        return _in_chunks(call, leaves, dims, size, chunk_size)

    return mapped


def vmap_tangents(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func` applied to every member of batches of tangents, along their first dimension."""

    def mapped(*tangents: Tensor) -> Any:
        call = _Call(func, tree_flatten(tangents)[1], {}, 0, "error")
        call.of_derivatives = True
        return call.on([*tangents], [0] * len(tangents), tangents[0].shape[0])

    return mapped


class _Call:
    """One call of a mapped function: everything but the batch."""

    of_derivatives = False

    def __init__(
        self, func: Callable, spec: Any, kwargs: dict[str, Any], out_dims: Any, randomness: str
    ) -> None:
        self.func = func
        self.spec = spec
        self.kwargs = kwargs
        self.out_dims = out_dims
        self.randomness = randomness

    def on(self, leaves: list, dims: list, size: int) -> Any:
        """The results for one batch."""
        results, _, spec = self.flat(leaves, dims, size)
        return spec.unflatten(results)

    def flat(self, leaves: list, dims: list, size: int) -> tuple[list, list, Any]:
        """The results for one batch as leaves, their batch dimensions and their structure."""
        level = VmapLevel(size, self.randomness, of_derivatives=self.of_derivatives)
        with level.entered():
            args = self.spec.unflatten(
                [
                    leaf if dim is None else lifted(leaf, level, dim)
                    for leaf, dim in zip(leaves, dims, strict=True)
                ]
            )
            results, spec = tree_flatten(self.func(*args, **self.kwargs))
            places = _flat_out_dims(self.func, self.out_dims, results, spec)
            found = [
                self.unwrap(level, result, place)
                for result, place in zip(results, places, strict=True)
            ]
        return [_placed(value, dim, place, size) for value, dim, place in found], places, spec

    def unwrap(self, level: Level, result: Any, place: int | None) -> tuple:
        """One result below the level, its batch dimension, and where that is to be."""
        name = function_name(self.func)
        if not isinstance(result, Tensor):
            if place is None:
                return result, None, None
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. "
                "With out_dims=None in its place, anything can be returned that examples share"
            )
        value, dim = unwrapped(result, level)
        if place is None and dim is not None:
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None: "
                "the examples have different values, which need a dimension"
            )
        return value, dim, place


def _placed(value: Any, dim: int | None, place: int | None, size: int) -> Any:
    """A result with its batch dimension in its place."""
    if place is None:
        return value
    if dim is None:
        value, dim = value.expand((size, *value.array.shape)), 0
    return value if dim == place else value.movedim(dim, place)


def _in_chunks(call: _Call, leaves: list, dims: list, size: int, chunk_size: int) -> Any:
    """The results of several smaller batches, joined."""
    chunks = [
        leaf.split(chunk_size, dim) if dim is not None else None
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    parts = []
    state = get_rng_state() if call.randomness == "same" else None
    for i, start in enumerate(range(0, size, chunk_size)):
        now = [
            leaf if chunk is None else chunk[i]
            for leaf, chunk in zip(leaves, chunks, strict=True)
        ]
        if state is not None:
            set_rng_state(state)  # every chunk draws what the first one has drawn
        flat, places, spec = call.flat(now, dims, min(chunk_size, size - start))
        parts.append(flat)
    joined = [
        each[0] if place is None else cat(list(each), place)
        for each, place in zip(zip(*parts, strict=True), places, strict=True)
    ]
    return spec.unflatten(joined)


# Which dimensions --------------------------------------------------------------------------------


def _flat_in_dims(func: Callable, in_dims: Any, args: tuple, leaves: list, spec: Any) -> list:
    """The dimension of each leaf among the arguments, counted from the front, or None."""
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{_call_text(func, in_dims)}: expected `in_dims` to be int or a tuple with an entry "
            f"for each argument, got: {type(in_dims)}"
        )
    if not leaves:
        raise ValueError(
            f"vmap({function_name(func)})(<inputs>): got no inputs, so there is nothing to take "
            "the number of examples from"
        )
    if isinstance(in_dims, int):
        dims: list | None = [in_dims] * len(leaves)
    else:
        dims = _broadcast_to_and_flatten(in_dims, spec, is_leaf=lambda dim: dim is None)
    if dims is None:
        raise ValueError(
            f"{_call_text(func, in_dims)}: in_dims is not compatible with the structure of "
            f"`inputs`: {tree_flatten(in_dims)[1]} against {spec}"
        )
    return [
        _in_dim(func, in_dims, leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)
    ]


def _in_dim(func: Callable, in_dims: Any, leaf: Any, dim: Any) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise ValueError(
            f"{_call_text(func, in_dims)}: in_dim must be either an integer dimension or None, "
            f"and {dim!r} is given for an input"
        )
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{_call_text(func, in_dims)}: Got in_dim={dim} for an input but the input is of type "
            f"{type(leaf)}, which has no dimensions. Its in_dim must be None"
        )
    rank = leaf.array.ndim
    if not -rank <= dim < rank:
        raise ValueError(
            f"{_call_text(func, in_dims)}: Got in_dim={dim} for some input, but that input is a "
            f"Tensor of dimensionality {rank}: its dimensions are {-rank} to {rank - 1}"
            if rank
            else f"{_call_text(func, in_dims)}: Got in_dim={dim} for some input, but that input is "
            "a Tensor of dimensionality 0, in which no dimension counts examples"
        )
    return dim % rank


def _batch_size(leaves: list, dims: list) -> int:
    sizes = [
        leaf.array.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None
    ]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, the number "
            f"of examples; got {sizes}"
        )
    return sizes[0]


def _flat_out_dims(func: Callable, out_dims: Any, results: list, spec: Any) -> list:
    """Where the batch dimension of each result goes; None for a result that has none."""
    if isinstance(out_dims, int) and not isinstance(out_dims, bool):
        return [out_dims] * len(results)
    dims = _broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda dim: dim is None)
    single = len(results) == 1 and spec.is_leaf()
    if single and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = list(out_dims)
    name = function_name(func)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            f"the structure of `outputs`: {tree_flatten(out_dims)[1]} against {spec}"
        )
    if not all(dim is None or isinstance(dim, int) for dim in dims):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
            "collection of these, one for each output: the place of the examples in it"
        )
    return dims


def function_name(func: Any) -> str:
    """How an error message calls a function."""
    if isinstance(func, partial):
        return f"functools.partial({function_name(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


def _call_text(func: Any, in_dims: Any) -> str:
    return f"vmap({function_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
