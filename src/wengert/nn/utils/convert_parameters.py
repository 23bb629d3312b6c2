"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.tensor import Tensor
from ...operators.joining import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other."""
    given = list(parameters)
    _check_devices(given)
    return cat([each.reshape(-1) for each in given])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters be parts of a vector, whose memory they then share."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    given = list(parameters)
    _check_devices(given)
    begin = 0
    for each in given:
        end = begin + each.numel()
        each.data = vec[begin:end].view_as(each).data
        begin = end


def _check_devices(parameters: list[Tensor]) -> None:
    if len({each.device for each in parameters}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
