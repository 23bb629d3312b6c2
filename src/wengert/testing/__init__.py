"""Helpers of tests: comparing tensors, and making random ones."""

from typing import Any

from ..core.missing import missing
from .comparison import assert_allclose as assert_allclose
from .comparison import assert_close as assert_close
from .creation import make_tensor as make_tensor


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
