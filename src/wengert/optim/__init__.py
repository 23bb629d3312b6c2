"""Optimizers, which change parameters by their gradients, and schedules of their learning rates."""

from typing import Any

from . import lr_scheduler as lr_scheduler
from .adam import Adam as Adam
from .adam import Adamax as Adamax
from .adam import AdamW as AdamW
from .adam import NAdam as NAdam
from .adam import RAdam as RAdam
from .adaptive import Adadelta as Adadelta
from .adaptive import Adagrad as Adagrad
from .adaptive import RMSprop as RMSprop
from .descent import ASGD as ASGD
from .descent import SGD as SGD
from .descent import Rprop as Rprop
from .lbfgs import LBFGS as LBFGS
from .optimizer import Optimizer as Optimizer

_REFUSED = {
    "Adafactor": "not there yet; nearest: Adam",
    "Muon": "not there yet; nearest: SGD with momentum",
    "SparseAdam": "not planned because there are no sparse tensors; nearest: Adam",
    "swa_utils": "not there yet; nearest: ASGD, which averages parameters",
    "swap_in_optimizer_params_and_state": "not there yet",
}


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        raise AttributeError(f"wengert.optim has no attribute {name!r}: {_REFUSED[name]}")
    raise AttributeError(f"module 'wengert.optim' has no attribute {name!r}")
