"""Settings of how modules are converted, which PyTorch keeps under this name."""

from __future__ import annotations

from ..core.settings import get_overwrite_module_params_on_conversion as _get
from ..core.settings import set_overwrite_module_params_on_conversion as _set

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
]  # fmt: skip

get_overwrite_module_params_on_conversion = _get
set_overwrite_module_params_on_conversion = _set


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions exchange the content of parameters with that of others: never."""
    return False


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Accept that conversions do not exchange contents; that they should is refused."""
    if value:
        raise NotImplementedError(
            "set_swap_module_params_on_conversion(True) is not supported: conversions change the "
            "data of parameters, which stay the same objects anyway"
        )
