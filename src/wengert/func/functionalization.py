"""`functionalize`: a function whose results do not alias what it has changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..backends.geometry import may_share_memory
from ..core.arrays import plain_array
from ..core.tensor import Tensor
from ..core.trees.pytree import tree_flatten, tree_map


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function that computes what `func` does, and leaves no trace of how it wrote in place.

    Arguments that `func` changes are changed, and no result shares memory with one of them. With
    ``remove="mutations_and_views"`` no result is a view of any argument.

    >>> import wengert
    >>> x = wengert.zeros(2)
    >>> y = wengert.func.functionalize(lambda x: x.add_(1))(x)
    >>> y.mul_(3), x
    (tensor([3., 3.]), tensor([1., 1.]))
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are: 'mutations' and 'mutations_and_views'"
        )

    @wraps(func, updated=())
    def functional(*args: Any, **kwargs: Any) -> Any:
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
        versions = [t.version() for t in tensors]
        result = func(*args, **kwargs)
        changed = [t for t, v in zip(tensors, versions, strict=True) if t.version() != v]

        def free(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            is_view = remove == "mutations_and_views" and not any(leaf is t for t in tensors)
            return leaf.clone() if _shares(leaf, tensors if is_view else changed) else leaf

        return tree_map(free, result)

    return functional


def _shares(leaf: Tensor, tensors: list[Tensor]) -> bool:
    return any(may_share_memory(plain_array(leaf), plain_array(t)) for t in tensors)
