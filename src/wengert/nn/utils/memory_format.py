"""Weights of convolutions in another order of memory, with their shapes as they are."""

from __future__ import annotations

from typing import Any

from ...core.layouts import memory_format as memory_format_class
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d


def _convert(module: Any, kinds: tuple[Any, ...], memory_format: memory_format_class) -> Any:
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: memory_format_class) -> Any:
    """Store the weights of all two-dimensional convolutions of a module in another order."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: memory_format_class) -> Any:
    """Store the weights of all three-dimensional convolutions of a module in another order."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
