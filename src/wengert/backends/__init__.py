"""Arrays and the libraries behind them; under PyTorch's names, settings of libraries not used."""

from types import ModuleType

from ..core.loading import load

_SETTINGS = ("cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp")


def __getattr__(name: str) -> ModuleType:
    if name in _SETTINGS:
        from importlib import import_module

        return import_module("." + name, __name__)
    raise load("core.missing").missing(__name__, name)
