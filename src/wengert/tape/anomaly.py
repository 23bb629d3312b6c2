"""Where a node that has failed, or that returned NaN, was made."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ..core.frames import frames
from ..core.tensor import Tensor


def forward_stack() -> list[str]:
    """The calling stack as text, up to the first frame of this package."""
    import traceback

    code = frames.caller()
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return traceback.format_stack(frame) if frame is not None else []


def refuse_nan(node: Any, outputs: list) -> None:
    """Raise if one of a node's results contains NaN."""
    for i, g in enumerate(outputs):
        if isinstance(g, Tensor) and not g.is_meta and _has_nan(g):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _has_nan(g: Tensor) -> bool:
    value: Any = g
    while hasattr(value.array, "value"):  # inside a transform: look at the values themselves
        value = value.array.value
    return bool(value.isnan().any())


def explain(node: Any, error: BaseException) -> None:
    """Say where a node that has failed comes from: by warnings, and by a note on its exception.

    There is one warning for its forward call and one for each backward that led to that call. Where
    a filter turns warnings into exceptions the note alone tells: the error itself must not be lost.
    """
    parts = _history(node)
    error.add_note("".join(parts))
    for part in parts:
        try:
            warnings.warn(part, stacklevel=2)
        except Warning:
            return


def _history(node: Any) -> list[str]:
    """The forward call of a node, and of the nodes whose backward made it, in words."""
    words = f"Error detected in {node.name()}. "
    stack = node.metadata.get("traceback_")
    if stack is None:
        words += (
            "No forward pass information available: enable anomaly detection during the forward "
            "pass too."
        )
    else:
        words += "Traceback of forward call that caused the error:\n" + "".join(stack)
    parts = [words]
    parent = node.metadata.get("parent_")
    while parent is not None:
        words = f"\n\nPrevious calculation was induced by {parent.name()}. "
        stack = parent.metadata.get("traceback_")
        if stack is None:
            words += "No forward pass information available of that node."
            return [*parts, words]
        words += "Traceback of forward call that induced the previous calculation:\n"
        parts.append(words + "".join(stack))
        parent = parent.metadata.get("parent_")
    return parts
