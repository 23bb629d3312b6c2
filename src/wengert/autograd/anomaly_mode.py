"""Anomaly detection: which forward call made the node that failed, or that returned NaN."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ..core.native import native
from ..core.scopes import AnomalySwitched, Restoring
from ..core.state import anomaly
from ..core.tensor import Tensor

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly(Restoring):
    """Context manager under which a failing backward shows the forward call behind it.

    Nodes made inside remember the stack they were made from. When one of them raises in a backward
    run inside, a warning and a note on the exception show that stack; with `check_nan`, a node that
    returns NaN raises too.

    >>> import wengert
    >>> x = wengert.zeros(1, requires_grad=True)
    >>> with wengert.autograd.detect_anomaly():
    ...     try:
    ...         (x.sqrt() * x).sum().backward()
    ...     except RuntimeError as error:
    ...         print(error)
    Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.target = anomaly
        self.before = {"enabled": anomaly.enabled, "check_nan": anomaly.check_nan}
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. Every recorded operation now keeps its stack, "
            "which is slow: use it for debugging only.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        # Plain assignments, so no interrupt comes between them and the block.
        anomaly.enabled = True
        anomaly.check_nan = self.check_nan


class set_detect_anomaly(AnomalySwitched):
    """Switch anomaly detection on or off, at once; as a context manager it is undone at the end."""


def is_anomaly_enabled() -> bool:
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    return anomaly.check_nan


def forward_stack() -> list[str]:
    """The calling stack as text, up to the first frame of this package."""
    import traceback

    code = native.caller()
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
