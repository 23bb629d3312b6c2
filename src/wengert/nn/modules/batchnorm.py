"""Batch normalisation under the name of the module that PyTorch has it in."""

from .normalisation import BatchNorm1d as BatchNorm1d
from .normalisation import BatchNorm2d as BatchNorm2d
from .normalisation import BatchNorm3d as BatchNorm3d
from .normalisation import SyncBatchNorm as SyncBatchNorm
from .normalisation import _BatchNorm as _BatchNorm
from .normalisation import _NormBase as _NormBase
