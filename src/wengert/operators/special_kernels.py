"""What the special functions share: kernels of SciPy, and rules that refuse a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.backend import backend_of, is_array
from ..core.tensor import Tensor


def by_scipy(name: str) -> Callable[..., Any]:
    """A kernel that is a function of scipy.special, which is imported by the first call."""

    def kernel(xp: Any, *args: Any) -> Any:
        arrays = [a for a in args if is_array(a)]
        if len(arrays) < len(args):  # SciPy would compute in double precision beside a number
            args = tuple([a if is_array(a) else xp.asarray(a, arrays[0].dtype) for a in args])
        return backend_of(arrays[0]).special(name)(*args)

    return kernel


def refused(what: str) -> Callable[[Tensor], Tensor]:
    """A rule for an argument by which there is no derivative: `what` names it in the error."""

    def rule(t: Tensor) -> Tensor:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


def numbers_first(first: Any, second: Any) -> int:
    """PyTorch's count of overloads: 1 if the first operand is a number, 2 if the second is."""
    if not isinstance(first, Tensor):
        return 1
    return 0 if isinstance(second, Tensor) else 2
