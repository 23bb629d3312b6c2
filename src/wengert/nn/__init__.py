"""Building blocks of networks: functions, and the tensors that are trained."""

from . import functional as functional
from . import parameter as parameter
from .parameter import Parameter as Parameter
