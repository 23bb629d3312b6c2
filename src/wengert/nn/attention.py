"""How attention is computed: here in one way, whatever a program chooses."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.missing import missing

#: Whether to say why an implementation is not chosen: there is one.
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's implementations of `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__ = enum.Enum.__str__


@contextmanager
def sdpa_kernel(
    backends: Iterable[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[None]:
    """Accept a choice of implementations: there is one, whose results all of them have."""
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, Iterable) or not all(isinstance(b, SDPBackend) for b in given):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    yield


def list_flash_attention_impls() -> list[str]:
    """The registered implementations of flash attention, of which there are none."""
    return []


def current_flash_attention_impl() -> str | None:
    """The implementation of flash attention that is active, of which there is none."""
    return None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Go back to the usual implementation of attention, which is the only one."""


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
