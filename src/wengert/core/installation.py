"""How the package was installed: whether it was meant to be compiled and is not."""

from __future__ import annotations


def reason_uncompiled() -> str | None:
    """Why an installation is not compiled, as noted when it was built; None for other packages."""
    try:
        from .._uncompiled import REASON  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return REASON


def warn_if_uncompiled() -> None:
    """Tell the program that imports the package that it will be slow, and why."""
    reason = reason_uncompiled()
    if reason is not None:
        import warnings

        warnings.warn(
            f"Wengert is not compiled: {reason}. Small operations take several times as long. "
            "Install a C compiler and the headers of Python, then install Wengert again",
            UserWarning,
            stacklevel=3,
        )
