"""Wengert: PyTorch's autograd as a library of its own, on NumPy arrays."""

import gc as _gc
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any as _Any

# First of all: called from the depth of our own imports, NumPy's can take 12 ms longer (Python 3.11
# then allocates and frees a piece of its stack in every call of a function).
import numpy as _numpy

# Nothing that the import makes is garbage: looking for some takes the collector 2 ms.
_collects = _gc.isenabled()
_gc.disable()
try:
    from .core.loading import find_compiled_modules as _find_compiled_modules

    _find_compiled_modules(__path__[0])
    from . import autograd as autograd
    from .autograd.grad_mode import enable_grad as enable_grad
    from .autograd.grad_mode import inference_mode as inference_mode
    from .autograd.grad_mode import is_grad_enabled as is_grad_enabled
    from .autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
    from .autograd.grad_mode import no_grad as no_grad
    from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
    from .core.classes import COMPILED as __compiled__
    from .core.devices import device as device
    from .core.devices import get_default_device as get_default_device
    from .core.devices import set_default_device as set_default_device
    from .core.dtypes import bfloat16 as bfloat16
    from .core.dtypes import bool as bool
    from .core.dtypes import can_cast as can_cast
    from .core.dtypes import cdouble as cdouble
    from .core.dtypes import cfloat as cfloat
    from .core.dtypes import complex64 as complex64
    from .core.dtypes import complex128 as complex128
    from .core.dtypes import double as double
    from .core.dtypes import dtype as dtype
    from .core.dtypes import finfo as finfo
    from .core.dtypes import float as float
    from .core.dtypes import float16 as float16
    from .core.dtypes import float32 as float32
    from .core.dtypes import float64 as float64
    from .core.dtypes import get_default_dtype as get_default_dtype
    from .core.dtypes import half as half
    from .core.dtypes import iinfo as iinfo
    from .core.dtypes import int as int
    from .core.dtypes import int8 as int8
    from .core.dtypes import int16 as int16
    from .core.dtypes import int32 as int32
    from .core.dtypes import int64 as int64
    from .core.dtypes import long as long
    from .core.dtypes import promote_types as promote_types
    from .core.dtypes import result_type as result_type
    from .core.dtypes import set_default_dtype as set_default_dtype
    from .core.dtypes import short as short
    from .core.dtypes import uint8 as uint8
    from .core.dtypes import uint16 as uint16
    from .core.dtypes import uint32 as uint32
    from .core.dtypes import uint64 as uint64
    from .core.layouts import channels_last as channels_last
    from .core.layouts import channels_last_3d as channels_last_3d
    from .core.layouts import contiguous_format as contiguous_format
    from .core.layouts import layout as layout
    from .core.layouts import memory_format as memory_format
    from .core.layouts import preserve_format as preserve_format
    from .core.layouts import strided as strided
    from .core.loading import load as _load
    from .core.public_names import MODULES as _MODULES
    from .core.public_names import NAMES as _NAMES
    from .core.size import Size as Size
    from .core.size import broadcast_shapes as broadcast_shapes
    from .core.tensor import Tensor as Tensor
    from .creation.factories import *  # noqa: F403
    from .tensor import registration as _registration

    newaxis = None
    legacy_contiguous_format = contiguous_format

    if not __compiled__:
        from .core import installation as _installation

        _installation.warn_if_uncompiled()

    globals().update(_registration.bind())
finally:
    if _collects:
        if not _gc.get_freeze_count():
            # All of it is old now; else the collector would look through it as soon as it may.
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()


def is_tensor(obj: _Any) -> _Any:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_inference(input: Tensor) -> _Any:
    """Whether `input` was made in inference mode."""
    return input.is_inference()


_FUNCTIONS = _registration.deferred_functions()


def __getattr__(name: str) -> _Any:
    if name in _FUNCTIONS:
        value = globals()[name] = _registration.function_of(name)
        return value
    if name in _MODULES:
        return _load(name)
    if name in _NAMES:
        return getattr(_load(_NAMES[name]), name)
    if name in _inplace_functions():
        return getattr(Tensor, name)
    if name == "__all__":  # what `from wengert import *` takes: no modules
        names = {*_own_names(), *_FUNCTIONS, *_inplace_functions(), *_NAMES}
        return sorted(each for each in names if each[0] != "_")
    if name[:2] == "__":  # asked for by Python itself
        raise AttributeError(f"module 'wengert' has no attribute {name!r}")
    return _load("tensor.out_of_scope").look_up(__name__, name)


def _inplace_functions() -> frozenset[str]:
    """The names of in-place methods that are functions too."""
    return _load("tensor.inplace_functions").FUNCTIONS


def _own_names() -> list[str]:
    """The names here that are no modules: every imported module of the package is a name here."""
    return [name for name, value in globals().items() if type(value) is not type(_numpy)]


def __dir__() -> list[str]:
    names = {*_own_names(), *_FUNCTIONS, *_MODULES, *_NAMES, *_inplace_functions()}
    return sorted({*names, "autograd"})
