"""What a program asks before it chooses a CUDA device. There are none: operators run on the CPU.

Questions are answered, seeds and caches of no device are no work, and what needs a device raises.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.loading import load
from ..core.missing import missing


def is_available() -> bool:
    """Whether tensors can be computed with on a CUDA device."""
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices can be computed with."""
    return 0


def is_initialized() -> bool:
    """Whether CUDA was used."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the devices know bfloat16."""
    return False


def get_arch_list() -> list[str]:
    """For which devices there is code."""
    return []


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device, of which there is none."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices, of which there are none."""


def seed_all() -> None:
    """Seed the generators of all devices, of which there are none."""


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all devices."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of the generators of all devices."""
    for _ in new_states:
        _refuse()


def empty_cache() -> None:
    """Free what is cached on the device, which is nothing."""


def memory_allocated(device: Any = None) -> int:
    """How many bytes tensors on the device take."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise AssertionError(
        "wengert is not compiled with CUDA enabled: there are no CUDA devices. Ask "
        "cuda.is_available() first"
    )


_NEED_A_DEVICE = frozenset((
    "Event", "Stream", "current_device", "current_stream", "default_stream",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "init",
    "initial_seed", "ipc_collect", "mem_get_info", "memory_summary", "reset_peak_memory_stats",
    "seed", "set_device", "set_rng_state", "set_stream", "stream", "synchronize",
))  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _NEED_A_DEVICE:
        return _refuse
    if name == "amp":
        return load("cuda.amp")
    raise missing("wengert.cuda", name)
