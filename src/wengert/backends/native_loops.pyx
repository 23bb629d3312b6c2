"""Kernels in C of operators and gradient rules: those written by hand, and the vector loops.

`native_loops.py` beside this file is the interface without C.
"""

from . import (
    copy_kernels, index_kernels, network_kernels, product_kernels, reduction_kernels,
)
from .kernels import kernel_of
from .vector_loops import vector_loop

__all__ = [
    "copy_kernels", "index_kernels", "native_loop", "network_kernels", "product_kernels",
    "reduction_kernels",
]


def native_loop(str key):
    """What computes the operator or rule of this key on plain arrays; None if nothing does."""
    found = kernel_of(key)
    return vector_loop(key) if found is None else found
