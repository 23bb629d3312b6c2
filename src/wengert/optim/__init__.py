"""Optimizers, which change parameters by their gradients, and schedules of their learning rates."""

from typing import Any

from ..core.loading import load
from ..core.missing import missing
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
from .matrices import Adafactor as Adafactor
from .matrices import Muon as Muon
from .optimizer import Optimizer as Optimizer
from .swapping import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state


def __getattr__(name: str) -> Any:
    if name == "swa_utils":
        return load("optim.swa_utils")
    raise missing(__name__, name)
