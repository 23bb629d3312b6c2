"""Reference counts, as far as Python tells them; nothing is hidden from the cyclic collector.

`collector.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

import sys


class Collector:
    """Who holds an object, and whether the collector sees it; one instance, `collector`."""

    def refcount(self, value: object) -> int:
        """References to `value` held outside this call and its caller's own argument.

        Since Python 3.14 some locals borrow theirs. The number says nothing then: it is large.
        """
        return sys.getrefcount(value) - 2 if sys.version_info < (3, 14) else sys.maxsize

    def hide(self, value: object) -> None:
        """Keep an object away from the cyclic collector's walks: Python has no way to do it."""

    def show(self, value: object) -> None:
        """Undo `hide`."""

    def is_hidden(self, value: object) -> bool:
        return False


collector = Collector()
