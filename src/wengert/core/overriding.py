"""Whether anything in the process could override a call: modes of some thread, or classes.

Mostly nothing does, and a call finds that out by one look at `overriding.possible`.
"""

from __future__ import annotations


class Overriding:
    """Counts what may override calls; one instance, `overriding`.

    `modes` is the number of active modes in all threads, `possible` is not zero if there is one of
    them or a class of tensors that overrides functions.
    """

    def __init__(self) -> None:
        self.modes = 0
        self.possible = 0
        self.has_classes = False

    def count_modes(self, change: int) -> None:
        """Note that so many modes more are active in some thread."""
        self.modes += change
        self.possible += change

    def note_class(self) -> None:
        """Note that there are tensors whose class overrides functions."""
        if not self.has_classes:
            self.has_classes = True
            self.possible += 1


overriding = Overriding()
