"""What programs that look below `wengert.library` import from the innards of PyTorch."""

from . import autograd as autograd
