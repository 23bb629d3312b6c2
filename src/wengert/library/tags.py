"""What can be said about an operator besides its schema."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Tag(Enum):
    """A fact about a custom operator, for programs that ask for ``op.tags``.

    The names are PyTorch's, where compilers read them; here no layer does.
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


Tags = Tag | Iterable[Tag] | None


def tag_tuple(tags: Tags) -> tuple[Tag, ...]:
    """One tag, several or None as a tuple, each once; TypeError for anything else."""
    if tags is None:
        return ()
    given = (tags,) if isinstance(tags, Tag) else tuple(tags)
    for tag in given:
        if not isinstance(tag, Tag):
            raise TypeError(f"tags must be wengert.Tag or a sequence of them, got {tag!r}")
    return tuple(dict.fromkeys(given))
