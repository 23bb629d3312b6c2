"""Dispatch modes, under the name of PyTorch's module: it is `wengert.dispatch.modes`."""

import sys

from ..dispatch import modes
from ..dispatch.modes import *  # noqa: F403 - for type checkers, which do not follow the next line

sys.modules[__name__] = modes
