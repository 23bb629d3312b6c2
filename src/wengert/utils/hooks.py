"""Handles of hooks, under the name of PyTorch's module: it is `wengert.core.handles`."""

import sys

from ..core import handles
from ..core.handles import *  # noqa: F403 - for type checkers, which do not follow the next line

sys.modules[__name__] = handles
