"""Functions that are no operators, as dispatch modes and classes of tensors see them.

Making tensors, drawing random numbers and reading an element have no kernels of their own. Where a
mode is active, or a tensor's class handles operators, they are handed over like operators: as
overloads that `wengert.ops` knows, with a schema.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..core.state import thread_state
from ..core.tensor import Tensor
from .schema import Schema
from .schema_parser import parse
from .torch_dispatch import override_function

_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
)
_DRAW = "Generator? generator=None"
_LIKE = f"Tensor self, *, {_OPTIONS}, MemoryFormat? memory_format=None"
_SCHEMAS = (
    f"empty.memory_format(SymInt[] size, *, {_OPTIONS}, MemoryFormat? memory_format=None) "
    "-> Tensor",
    f"empty_strided(SymInt[] size, SymInt[] stride, *, {_OPTIONS}) -> Tensor",
    f"zeros(SymInt[] size, *, {_OPTIONS}) -> Tensor",
    f"ones(SymInt[] size, *, {_OPTIONS}) -> Tensor",
    f"full(SymInt[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor",
    f"scalar_tensor(Scalar s, *, {_OPTIONS}) -> Tensor",
    f"arange(Scalar end, *, {_OPTIONS}) -> Tensor",
    f"arange.start(Scalar start, Scalar end, *, {_OPTIONS}) -> Tensor",
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {_OPTIONS}) -> Tensor",
    f"eye(SymInt n, *, {_OPTIONS}) -> Tensor",
    f"eye.m(SymInt n, SymInt m, *, {_OPTIONS}) -> Tensor",
    f"linspace(Scalar start, Scalar end, int steps, *, {_OPTIONS}) -> Tensor",
    f"logspace(Scalar start, Scalar end, int steps, float base=10., *, {_OPTIONS}) -> Tensor",
    f"rand(SymInt[] size, *, {_OPTIONS}, {_DRAW}) -> Tensor",
    f"randn(SymInt[] size, *, {_OPTIONS}, {_DRAW}) -> Tensor",
    f"randint(SymInt high, SymInt[] size, *, {_OPTIONS}, {_DRAW}) -> Tensor",
    f"randint.low(SymInt low, SymInt high, SymInt[] size, *, {_OPTIONS}, {_DRAW}) -> Tensor",
    f"randperm(SymInt n, *, {_OPTIONS}, {_DRAW}) -> Tensor",
    f"empty_like({_LIKE}) -> Tensor",
    f"zeros_like({_LIKE}) -> Tensor",
    f"ones_like({_LIKE}) -> Tensor",
    f"full_like({_LIKE.replace('self,', 'self, Scalar fill_value,')}) -> Tensor",
    f"rand_like({_LIKE}) -> Tensor",
    f"randn_like({_LIKE}) -> Tensor",
    f"new_empty(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor",
    f"new_zeros(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor",
    f"new_ones(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor",
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor",
    f"bernoulli(Tensor self, *, {_DRAW}) -> Tensor",
    f"multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, {_DRAW}) -> Tensor",
    f"uniform_(Tensor(a!) self, float from=0., float to=1., *, {_DRAW}) -> Tensor(a!)",
    f"normal_(Tensor(a!) self, float mean=0., float std=1., *, {_DRAW}) -> Tensor(a!)",
    f"bernoulli_.float(Tensor(a!) self, float p=0.5, *, {_DRAW}) -> Tensor(a!)",
    f"exponential_(Tensor(a!) self, float lambd=1., *, {_DRAW}) -> Tensor(a!)",
    f"random_(Tensor(a!) self, *, {_DRAW}) -> Tensor(a!)",
    f"random_.to(Tensor(a!) self, int to, *, {_DRAW}) -> Tensor(a!)",
    f"random_.from(Tensor(a!) self, int from, int? to, *, {_DRAW}) -> Tensor(a!)",
    "_local_scalar_dense(Tensor self) -> Scalar",
)
_SIZED = {"empty", "zeros", "ones", "rand", "randn"}
_NEW = {"new_empty", "new_zeros", "new_ones"}
# Overloads by the number of positional arguments, where that tells them apart.
_BY_COUNT = {
    "arange": {2: ".start", 3: ".start_step"},
    "eye": {2: ".m"},
    "randint": {3: ".low"},
    "random_": {2: ".to", 3: ".from"},
}


#: The functions of the package by name, see `tensor/registration.py`.
PUBLIC: dict[str, Any] = {}


class HandledFunction:
    """One overload of a function, called by its public name."""

    family = "function"
    facts: dict[str, Any] = {}

    def __init__(self, schema: str) -> None:
        self.name = schema[: schema.index("(")]
        self.text = schema

    @cached_property
    def schema(self) -> Schema:
        return parse(self.text)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.name.partition(".")[0]
        if name == "_local_scalar_dense":
            return args[0].item()
        function = PUBLIC.get(name) or getattr(Tensor, name)
        return function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<function {self.text}>"


HANDLED: dict[str, HandledFunction] = {f.name: f for f in map(HandledFunction, _SCHEMAS)}


def handle(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a mode or a class makes of a call of a public function; NotImplemented if none is asked.

    Inside a transform, where new tensors belong to a level, no mode is asked.
    """
    if thread_state().levels or kwargs.get("out") is not None:
        return NotImplemented
    options = {key: value for key, value in kwargs.items() if value is not None}
    requires_grad = options.pop("requires_grad", False)
    if name in _SIZED:
        args = (list(_size(name, args, options)),)
    elif name in _NEW and args:
        args = (args[0], list(_size(name, args[1:], options)))
    overload = name + _BY_COUNT.get(name, {}).get(len(args), "")
    function = HANDLED.get(overload) or next(
        f for key, f in HANDLED.items() if key.partition(".")[0] == name
    )
    out = override_function(function, args, options)
    if out is NotImplemented or not requires_grad:
        return out
    return out.requires_grad_(requires_grad)


def _size(name: str, sizes: tuple, options: dict[str, Any]) -> tuple[int, ...]:
    from ..core.size import parse_size

    return parse_size(name, sizes, options.pop("size", None))


def handle_by_class(name: str, like: Tensor, *args: Any, **options: Any) -> Any:
    """The same for a call from inside the library that only the class of `like` is asked about."""
    if type(like) is Tensor:
        return NotImplemented
    given = {key: value for key, value in options.items() if value is not None}
    return override_function(HANDLED[name], (like, *args), given)
