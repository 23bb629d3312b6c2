"""Building blocks of networks: functions, modules, and the tensors that are trained."""

from typing import Any

from ..core.missing import missing
from . import attention as attention
from . import functional as functional
from . import init as init
from . import modules as modules
from . import parameter as parameter
from . import utils as utils
from .modules import *  # noqa: F403
from .modules.module import factory_kwargs as factory_kwargs
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
