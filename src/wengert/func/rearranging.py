"""`rearrange`: reshaping and permuting by a pattern that names the dimensions."""

from __future__ import annotations

import math
import re
from typing import Any

from ..core.tensor import Tensor
from ..operators.joining import stack

_WORD = re.compile(r"\.\.\.|[()]|[^\s()]+?(?=\.\.\.|[\s()]|$)")
Groups = list[list[str]]
_REST = ["..."]  # the ellipsis as dimensions of their own, not joined by parentheses


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """The elements of a tensor with its dimensions split, joined and reordered by `pattern`.

    Both sides of the ``->`` name every dimension; names in parentheses make up one dimension
    together, ``1`` and ``()`` are dimensions of length 1, and ``...`` stands for all that is not
    named. Of the names in one group all lengths but one must be given. A list of tensors is stacked
    first.

    >>> import wengert
    >>> images = wengert.zeros(8, 3, 4, 6)
    >>> wengert.func.rearrange(images, "n c (h a) (w b) -> n (h w) (c a b)", a=2, b=2).shape
    wengert.Size([8, 6, 12])
    """
    whole: Tensor = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"Pattern must contain a single '->' separator: {pattern!r}")
    left, right = (_parsed(side) for side in sides)
    _check_names(pattern, left, right, axes_lengths)
    left, right = _with_ellipsis(left, right, whole.array.ndim)
    if len(left) != whole.array.ndim:
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of "
            f"dimensions in the tensor ({whole.array.ndim})"
        )
    lengths = dict(axes_lengths)
    for group, length in zip(left, whole.array.shape, strict=True):
        _measure(group, length, lengths)
    names = [name for group in left for name in group]
    order = [names.index(name) for group in right for name in group]
    split = whole.reshape([lengths[name] for name in names])
    joined = [math.prod(lengths[name] for name in group) for group in right]
    return split.permute(order).reshape(joined)


def _parsed(side: str) -> Groups:
    """The dimensions of one side, each as the names that make it up."""
    groups: Groups = []
    inside = False
    for word in _WORD.findall(side):
        if word == "(":
            if inside:
                raise ValueError(
                    f"Axis composition is one-level: brackets inside brackets in {side!r}"
                )
            groups.append([])
            inside = True
        elif word == ")":
            if not inside:
                raise ValueError(f"Imbalanced parentheses in expression: {side!r}")
            inside = False
        elif word == "1":
            if not inside:
                groups.append([])
        else:
            _check_word(word, side)
            if inside:
                groups[-1].append(word)
            else:
                groups.append(_REST if word == "..." else [word])
    if inside:
        raise ValueError(f"Imbalanced parentheses in expression: {side!r}")
    return groups


def _check_word(word: str, side: str) -> None:
    if word == "...":
        return
    if "." in word:
        raise ValueError(f"Expression may contain dots only inside ellipsis (...): {side!r}")
    if word.isdigit():
        raise ValueError(f"rearrange only supports unnamed axes of size 1, not {word}")
    unknown = re.search(r"\W", word)
    if unknown:
        raise ValueError(f"Unknown character {unknown[0]!r} in {side!r}")
    if not word.isidentifier() or word.startswith("_") or word.endswith("_"):
        raise ValueError(
            f"Invalid axis identifier: {word}; it must be a Python name that neither begins nor "
            "ends with an underscore"
        )


def _check_names(pattern: str, left: Groups, right: Groups, lengths: dict[str, Any]) -> None:
    sides = [[name for group in side for name in group] for side in (left, right)]
    for names in sides:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    "Expression may contain dots only inside ellipsis (...); only one ellipsis is "
                    f"possible: {pattern!r}"
                    if name == "..."
                    else f"Indexing expression contains duplicate dimension {name!r}"
                )
    if "..." in sides[1] and "..." not in sides[0]:
        raise ValueError(
            f"Ellipsis found in right side, but not left side of a pattern {pattern!r}"
        )
    if "..." in sides[0] and not any(group is _REST for group in left):
        raise ValueError(
            f"Ellipsis is parenthesis in the left side is not allowed: {pattern!r}"
        )
    apart = set(sides[0]) ^ set(sides[1])
    if apart:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {apart}"
        )
    unused = set(lengths) - set(sides[0])
    if unused:
        raise ValueError(f"Identifiers not found in rearrange expression: {unused}")


def _with_ellipsis(left: Groups, right: Groups, ndim: int) -> tuple[Groups, Groups]:
    """Both sides with names of their own for the dimensions that the ellipsis stands for."""
    if _REST not in left:
        return left, right
    names = [f"...{i}" for i in range(ndim - len(left) + 1)]
    at = left.index(_REST)
    left = [*left[:at], *[[name] for name in names], *left[at + 1 :]]
    new: Groups = []
    for group in right:
        if group is _REST:
            new += [[name] for name in names]
        elif "..." in group:
            at = group.index("...")
            new.append([*group[:at], *names, *group[at + 1 :]])
        else:
            new.append(group)
    return left, new


def _measure(group: list[str], length: int, lengths: dict[str, int]) -> None:
    """Find the length of the one name in a group that has none yet."""
    unknown = [name for name in group if name not in lengths]
    if len(unknown) > 1:
        raise ValueError(
            f"cannot infer the sizes of two dimensions at once: {' and '.join(unknown)}"
        )
    known = math.prod(lengths[name] for name in group if name in lengths)
    if unknown:
        if known == 0 or length % known:
            raise ValueError(
                f"inferred dimension does not evenly fit into larger dimension: {length} for "
                f"({' '.join(group)}), of which {known} is given"
            )
        lengths[unknown[0]] = length // known
    elif known != length:
        raise ValueError(
            f"Dimension sizes do not match: {length} against {known} for ({' '.join(group)})"
        )
