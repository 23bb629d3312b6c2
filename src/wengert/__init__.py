"""Wengert: PyTorch's autograd as a library of its own, on NumPy arrays."""

from ._version import __version__ as __version__
from .native import native as _native
from .tensor import Tensor as Tensor

__compiled__ = bool(_native.compiled)
