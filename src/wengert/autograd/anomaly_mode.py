"""Anomaly detection: which forward call made the node that failed, or that returned NaN."""

from __future__ import annotations

import warnings

from ..core.scopes import AnomalySwitched, Restoring
from ..core.state import anomaly

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
    """Whether anomaly detection is on."""
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN."""
    return anomaly.check_nan

