"""The name under which PyTorch's users import `wengert.utils.pytree`; it is the same module."""

import sys

from . import pytree

sys.modules[__name__] = pytree
