"""Facts of an operator that its declaration decides though no field states them.

Whether complex numbers are taken is asked as a call asks it: dtypes that are declared as refused,
then the kernel itself, on a few small arguments that fit the schema. Whether there is a scalar form
is asked as the compiler asks it: the kernel is called with elements for arrays.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

#: Shapes that all tensors of a trial call have, and values for arguments without a default.
SHAPES = ((2, 2), (2,), (1, 2, 2), (1, 2, 2, 2), (1, 2, 2, 2, 2), ())
NUMBERS = {"int": [1, 0], "float": [1.0], "Scalar": [1], "bool": [False], "str": ["L", "mean"]}
LISTS = [(1,), (0, 1), (2, 2), (1, 1, 1), ()]


def kernel(operator: Any) -> str:
    """What computes it: a function of NumPy, or one of a module of the package."""
    if operator.ufunc is not None:
        return f"`numpy.{operator.ufunc.__name__}`"
    function = operator.kernel
    module = function.__module__.rpartition(".")[2]
    if function.__name__ in ("<lambda>", "kernel"):
        return f"expression in `{module}`"
    return f"`{module}.{function.__name__}`"


def complex_numbers(operator: Any) -> str:
    """Whether it takes complex numbers: yes, refused, or as its kernel decides."""
    if "c" in operator.refuses:
        return "refused"
    if operator.family in ("elementwise", "linear") or operator.is_view:
        return "yes"
    if _accepts(operator, "complex128"):
        return "yes"
    real = _accepts(operator, "float64") or _accepts(operator, "int64")
    return "refused" if real else "by its kernel"


def _accepts(operator: Any, dtype: str) -> bool:
    """Whether some trial call succeeds with tensors of this dtype."""
    import wengert

    tensors = [wengert.ones(shape, dtype=getattr(wengert, dtype)) for shape in SHAPES]
    for alike in (*[[tensor] for tensor in tensors], tensors[:3]):
        choices = [_values(argument, alike, wengert) for argument in operator.schema.arguments]
        for args in itertools.islice(itertools.product(*choices), 60):
            with warnings.catch_warnings(), wengert.no_grad():
                warnings.simplefilter("ignore")
                try:
                    operator.call(tuple(args))
                except Exception:
                    continue
            return True
    return False


def _values(argument: Any, tensors: list, lib: Any) -> list:
    """Values to try for an argument: its default, or a few that have its type."""
    from wengert.dispatch.schema import REQUIRED

    integers = [lib.zeros(tensor.shape, dtype=lib.int64) for tensor in tensors]
    if argument.type == "Tensor":
        if "mask" in argument.name:
            return [tensor == 0 for tensor in integers]
        return integers if "ind" in argument.name else tensors
    if argument.type.startswith("Tensor"):
        pairs = [[tensor, tensor] for tensor in tensors]
        return [integers[:1]] if "ind" in argument.name else pairs
    if argument.default is not REQUIRED:
        return [argument.default]
    if argument.type.startswith("int[]"):
        return LISTS
    return NUMBERS.get(argument.base, [None])


def native(operator: Any) -> str:
    """What compiled graphs make of it: a view, a scalar form in a loop, or its kernel's loops."""
    if operator.is_view:
        return "view"
    if (operator.family == "elementwise" or operator.broadcasts) and _has_form(operator):
        return "scalar form"
    return "kernel or call"


def _has_form(operator: Any) -> bool:
    import numpy as np

    from wengert.compiler.native.forms import Operand, form_of
    from wengert.core.scalar.expressions import TYPES, Unsupported
    from wengert.dispatch.schema import REQUIRED

    dtypes = [np.dtype(name) for name in ("float64", "int64", "bool")]
    for dtype, result in itertools.product(dtypes, dtypes):
        arguments = [
            Operand(TYPES[dtype], False) if argument.type == "Tensor"
            else 1 if argument.default is REQUIRED else argument.default
            for argument in operator.schema.arguments
        ]  # fmt: skip
        try:
            form_of(operator, arguments, [result])
        except Unsupported:
            continue
        return True
    return False
