"""Binding the arguments of `Function.apply` to the parameters of `forward`."""

from __future__ import annotations

import inspect
from typing import Any

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters:
    """What `forward` takes by position; computed once for each `forward`."""

    def __init__(self, forward: Any) -> None:
        self.forward = forward
        self.signature = inspect.signature(forward)
        parameters = self.signature.parameters.values()
        self.names = [p.name for p in parameters if p.kind in _POSITIONAL]
        self.open = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)


def parameters_of(function: Any) -> Parameters:
    forward = function.forward
    known = function._parameters
    if known is None or known.forward is not forward:
        known = function._parameters = Parameters(forward)
    return known


def bind(function: Any, args: tuple, kwargs: dict, separate: bool) -> tuple:
    """All arguments by position.

    With `setup_context`, defaults are filled in, since it sees every input of `forward`. Without,
    the arguments that are given must be the first ones, as every one of them gets a gradient.
    """
    parameters = parameters_of(function)
    if not separate:
        return _join(parameters.names[1:], args, kwargs)
    count = len(parameters.names)
    if not kwargs and (len(args) == count or (parameters.open and len(args) > count)):
        return args
    bound = parameters.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    refused = [name for name in bound.kwargs if name in kwargs]
    if refused:
        raise _unexpected(refused[0])
    return bound.args


def _join(names: list[str], args: tuple, kwargs: dict) -> tuple:
    for name in kwargs:
        if name not in names:
            raise _unexpected(name)
        if names.index(name) < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    count = len(args) + len(kwargs)
    for position in range(len(args), count):
        if names[position] not in kwargs:
            raise TypeError(
                f"forward() missing required argument: '{names[position]}' (position {position}); "
                "apply() fills in no defaults before an argument that is given by name"
            )
    return (*args, *(kwargs[name] for name in names[len(args) : count]))


def _unexpected(name: str) -> TypeError:
    return TypeError(
        f"forward() got an unexpected keyword argument '{name}': the inputs of a Function are its "
        "positional parameters"
    )
