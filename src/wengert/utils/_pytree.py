"""The name under which PyTorch's users import `wengert.utils.pytree`; it is the same module."""

import sys

from . import pytree
from .pytree import *  # noqa: F403 - for type checkers, which do not follow the line below

sys.modules[__name__] = pytree
