"""Who is told of the calls that a function makes while it is traced.

`watching.pyx` beside this file is the compiled form, which asks again only about calls of a kind
that it has not met.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def watch(
    event: Callable[[Any, str, Any], None],
    ignored: Callable[[Any], bool],
    matters: Callable[[Any], bool],
) -> None:
    """Have `event` told of calls in this thread, as a profiler is.

    It may be spared functions whose frames are `ignored`, and functions written in C that do not
    matter, which is one answer for all objects of a class.
    """
    sys.setprofile(event)


def unwatch() -> None:
    """Tell nobody any more."""
    sys.setprofile(None)
