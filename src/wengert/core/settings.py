"""Settings of PyTorch that have one meaning here: they are remembered and change nothing.

Results are the same in every run, float32 products are computed in float32, and the number of
threads is that of NumPy's BLAS, which its environment variables set.
"""

from __future__ import annotations

import os

_PRECISIONS = ("highest", "high", "medium")


class _Settings:
    deterministic = False
    warn_only = False
    precision = "highest"
    threads = 0
    interop_threads = 0


_settings = _Settings()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same in every run, as they always are."""
    _settings.deterministic, _settings.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether a program asked for results that are the same in every run."""
    return _settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether a program asked for warnings in place of errors."""
    return _settings.deterministic and _settings.warn_only


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of lower precision; they are computed in float32 all the same."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"precision must be one of {', '.join(_PRECISIONS)}, not {precision!r}")
    _settings.precision = precision


def get_float32_matmul_precision() -> str:
    """The precision that a program has allowed for products of float32."""
    return _settings.precision


def set_num_threads(threads: int) -> None:
    """Note how many threads a program wants; those of BLAS are set by OMP_NUM_THREADS."""
    _settings.threads = _positive("set_num_threads", threads)


def get_num_threads() -> int:
    """How many threads a program asked for, else how many processors there are."""
    return _settings.threads or len(os.sched_getaffinity(0))


def set_num_interop_threads(threads: int) -> None:
    """Note how many threads a program wants for independent operators, which run in turn."""
    _settings.interop_threads = _positive("set_num_interop_threads", threads)


def get_num_interop_threads() -> int:
    """How many threads for independent operators a program asked for, else one."""
    return _settings.interop_threads or 1


def _positive(name: str, threads: int) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise RuntimeError(f"{name} expects an int, but got {type(threads).__name__}")
    if threads <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return threads
