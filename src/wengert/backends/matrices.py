"""Products of matrices, all of which are left to NumPy.

`matrices.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

from typing import Any


class Matrices:
    """Declines every product, so that callers go through NumPy; one instance, `matrices`."""

    #: The address of what multiplies matrices in compiled programs: there is none.
    step = 0

    def product(self, a: Any, b: Any, turn_a: bool, turn_b: bool) -> Any:
        return None

    def product_into(self, out: Any, a: Any, b: Any, turn_a: bool, turn_b: bool) -> bool:
        return False

    def addmm(self, x: Any, a: Any, b: Any, turn_b: bool = False) -> Any:
        return None


matrices = Matrices()
