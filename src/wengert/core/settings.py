"""Settings of the process: threads, determinism, precision, warnings.

Results do not depend on them: operators are deterministic and compute products in full precision,
so that a program that asks for less gets more.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .pool import set_thread_count, thread_count

# Threads ------------------------------------------------------------------------------------------

#: How OpenBLAS, which NumPy is mostly linked with, calls what counts its threads.
_SPELLINGS = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


class _Threads:
    """The number of threads between operators, and how BLAS is asked for its own."""

    between: int = 1
    library: Any = None


def _blas(function: str) -> Any:
    """A function of the BLAS that NumPy is linked with, None if it has none of that name."""
    if _Threads.library is None:
        from numpy.linalg import _umath_linalg

        _Threads.library = ctypes.CDLL(_umath_linalg.__file__)
    for spelling in _SPELLINGS:
        found = getattr(_Threads.library, spelling.format(function), None)
        if found is not None:
            return found
    return None


def get_num_threads() -> int:
    """The number of threads that an operator may use."""
    return thread_count()


def set_num_threads(nthreads: int) -> None:
    """Let each operator use so many threads: those of native loops, and those of BLAS."""
    _check_count("set_num_threads", nthreads)
    change = _blas("set_num_threads")
    if change is None:
        raise RuntimeError(
            "set_num_threads(): NumPy's BLAS has no function for it; set OPENBLAS_NUM_THREADS, "
            "MKL_NUM_THREADS or OMP_NUM_THREADS before the program starts"
        )
    change(ctypes.c_int(nthreads))
    set_thread_count(nthreads)


def get_num_interop_threads() -> int:
    """The most threads that may run operators of one program side by side."""
    return _Threads.between


def set_num_interop_threads(nthreads: int) -> None:
    """Allow operators of one program to run side by side; they run one after the other anyway."""
    _check_count("set_num_interop_threads", nthreads)
    _Threads.between = nthreads


def _check_count(function: str, count: Any) -> None:
    if type(count) is not int:
        raise RuntimeError(f"{function} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{function} expects a positive integer, but got {count}")


# Determinism and precision ------------------------------------------------------------------------


class _Modes:
    """What was asked for."""

    deterministic: int = 0
    precision: str = "highest"
    warn_always: bool = False
    overwrites_parameters: bool = False


_DEBUG_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operators that always give the same results, which all of them do."""
    _Modes.deterministic = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Whether determinism was asked for."""
    return _Modes.deterministic > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether determinism was asked for with `warn_only`."""
    return _Modes.deterministic == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Ask for determinism by a number or a word: 0 "default", 1 "warn" or 2 "error"."""
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    _Modes.deterministic = debug_mode


def get_deterministic_debug_mode() -> int:
    """How determinism was asked for: 0 not at all, 1 with warnings, 2 with errors."""
    return _Modes.deterministic


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be less precise than "highest"; they are not."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the precision is "
            f"{_Modes.precision!r}"
        )
    _Modes.precision = precision


def get_float32_matmul_precision() -> str:
    """The precision that was asked for, "highest" at first."""
    return _Modes.precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers can be treated as zero: False, NumPy keeps them."""
    return False


# Warnings -----------------------------------------------------------------------------------------


def set_warn_always(b: bool) -> None:
    """Let warnings that come once in a process come every time."""
    _Modes.warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """Whether warnings come every time."""
    return _Modes.warn_always


# Conversions of modules ---------------------------------------------------------------------------


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether `Module.to` and its kind make new parameters, instead of changing the old."""
    return _Modes.overwrites_parameters


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Choose whether `Module.to` and its kind make new parameters."""
    _Modes.overwrites_parameters = bool(value)


#: What PyTorch was built with; here NumPy and SciPy have it.
has_lapack = True
has_spectral = True
has_mkl = False
has_openmp = False
