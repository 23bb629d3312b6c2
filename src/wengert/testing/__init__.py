"""Helpers of tests: comparing tensors, and making random ones."""

from .comparison import assert_allclose as assert_allclose
from .comparison import assert_close as assert_close
from .creation import make_tensor as make_tensor
