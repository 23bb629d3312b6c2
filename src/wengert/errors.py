"""Messages of errors that several modules raise."""

from __future__ import annotations

from typing import Any

import numpy as np


def shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def broadcast_error(name: str, args: tuple, cause: ValueError) -> Exception:
    """For operands whose shapes do not broadcast; any other ValueError is passed through."""
    shapes = [a.shape for a in args if isinstance(a, np.ndarray)]
    for i, left in enumerate(shapes):
        for right in shapes[i + 1 :]:
            for offset, (a, b) in enumerate(zip(reversed(left), reversed(right), strict=False)):
                if a != b and a != 1 and b != 1:
                    dim = max(len(left), len(right)) - 1 - offset
                    return RuntimeError(
                        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                        f"non-singleton dimension {dim}: {name}() got shapes "
                        + " and ".join(shape_text(s) for s in shapes)
                    )
    return cause


def dimension_error(dim: int, ndim: int) -> IndexError:
    low, high = -max(ndim, 1), max(ndim, 1) - 1
    return IndexError(
        f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
    )


def inplace_view_error(t: Any, indirect: bool) -> RuntimeError:
    """For an in-place change through (or, `indirect`, behind) a view that forbids it."""
    from .tensor import VIEW_INFERENCE, VIEW_MULTI_OUTPUT, VIEW_NO_GRAD

    creation = t.view_meta.creation
    node = t.node
    which = f"Output {t.output_index} of {node.name()}" if node is not None else "This view"
    what = (
        "is a view and its base or another view of its base has been modified inplace."
        if indirect
        else "is a view and is being modified inplace."
    )
    if creation == VIEW_MULTI_OUTPUT:
        return RuntimeError(
            f"{which} {what} This view is the output of a function that returns multiple views. "
            "Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one."
        )
    if creation == VIEW_NO_GRAD:
        return RuntimeError(
            "A view was created in no_grad mode and "
            + (
                "its base or another view of its base has been modified inplace"
                if indirect
                else "is being modified inplace"
            )
            + " with grad mode enabled. Given that this use case is ambiguous and error-prone, it "
            "is forbidden. Move both the view and the inplace operation either inside the no_grad "
            "block (if it must not be tracked) or outside (if it must)."
        )
    if creation == VIEW_INFERENCE:
        return RuntimeError(
            "A view was created in inference mode and "
            + (
                "its base or another view of its base has been modified inplace"
                if indirect
                else "is being modified inplace"
            )
            + " in normal mode. Make both the view and the change in the same mode."
        )
    return RuntimeError(
        f"{which} {what} This view was created inside a custom Function (or because an input was "
        "returned as-is) and the autograd logic to handle view+inplace would override the custom "
        "backward associated with the custom Function, leading to incorrect gradients. This "
        "behavior is forbidden. You can fix this by cloning the output of the custom Function."
    )
