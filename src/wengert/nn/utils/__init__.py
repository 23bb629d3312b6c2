"""Work on parameters: clipping of gradients, one vector of all, sequences, parametrizations."""

from typing import Any as _Any

from ...core.loading import load as _load
from ...core.missing import missing as _missing
from . import rnn as rnn
from .clip_grad import clip_grad_norm as clip_grad_norm
from .clip_grad import clip_grad_norm_ as clip_grad_norm_
from .clip_grad import clip_grad_value_ as clip_grad_value_
from .clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from .clip_grad import get_total_norm as get_total_norm
from .convert_parameters import parameters_to_vector as parameters_to_vector
from .convert_parameters import vector_to_parameters as vector_to_parameters

# Imported when first asked for.
_MODULES = frozenset((
    "fusion", "init", "memory_format", "parametrizations", "parametrize", "prune", "stateless",
))  # fmt: skip
_NAMES = {
    **dict.fromkeys(
        ("remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"), "weights"
    ),
    **dict.fromkeys(
        ("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
         "fuse_linear_bn_weights"),
        "fusion",
    ),
    **dict.fromkeys(
        ("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"),
        "memory_format",
    ),
    "skip_init": "init",
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _load(f"nn.utils.{name}")
    if name in _NAMES:
        return getattr(_load(f"nn.utils.{_NAMES[name]}"), name)
    raise _missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
