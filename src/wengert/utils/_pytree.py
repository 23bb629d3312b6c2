"""Trees of containers, under the name of PyTorch's module: it is `wengert.core.trees.pytree`."""

import sys

from ..core.trees import pytree
from ..core.trees.pytree import *  # noqa: F403 - for type checkers, which do not follow the next line

sys.modules[__name__] = pytree
