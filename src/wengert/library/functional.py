"""Custom operators that mutate, in graphs: as operators that return what they would have written.

The functional form of ``ns::name(Tensor(a!) x, ...)`` is ``ns::name.functional(Tensor x, ...)``. It
works on copies, and returns the results first and then the copies, in the order of the arguments.
"""

from __future__ import annotations

from typing import Any

from ..dispatch.binding import bind_overload
from .operator import ANY_DEVICE, CustomOperator
from .overloads import find_custom
from .schema import Argument, FunctionSchema

_OVERLOAD = "functional"


class FunctionalForm(CustomOperator):
    """An operator that computes what another one would write."""

    def __init__(self, operator: CustomOperator) -> None:
        schema = operator._schema
        super().__init__(
            FunctionSchema(
                schema.name,
                "_".join(filter(None, (schema.overload_name, _OVERLOAD))),
                [_without_alias(argument) for argument in schema.arguments],
                [
                    *[r for r in schema.returns if not r.is_write],
                    *[_without_alias(a, named=False) for a in schema.arguments if a.is_write],
                ],
            )
        )
        self.original = operator
        self.written = operator.mutated
        self.grad_positions = ()  # mutation has no derivative
        self.records = True
        self.kernels[ANY_DEVICE] = self._on_copies

    def _on_copies(self, *args: Any, **kwargs: Any) -> Any:
        values = list(bind_overload(self, args, kwargs))
        for i in self.written:
            if values[i] is not None:
                values[i] = values[i].clone()
        out = self.original.call(tuple(values))
        copies = [values[i] for i in self.written]
        found = (*self._fresh(out), *copies)
        return found[0] if len(found) == 1 else found

    def _fresh(self, out: Any) -> list:
        """Those results of the original operator that are not written arguments."""
        returns = self.original._schema.returns
        outs = out if len(returns) > 1 else (out,) if returns else ()
        return [value for value, r in zip(outs, returns, strict=True) if not r.is_write]

    def results_of(self, args: tuple, fresh: tuple) -> Any:
        """What a call of the original operator returns: fresh results, and written arguments."""
        supply = iter(fresh)
        schema = self.original._schema
        written = {str(a.alias_info): args[i] for i, a in enumerate(schema.arguments) if a.is_write}
        outs = [written[str(r.alias_info)] if r.is_write else next(supply) for r in schema.returns]
        return None if not outs else outs[0] if len(outs) == 1 else tuple(outs)


def _without_alias(argument: Argument, named: bool = True) -> Argument:
    if not named:
        return Argument("", argument.type, argument.N)
    return Argument(
        argument.name, argument.type, argument.N, argument._default, argument.kwarg_only
    )


_forms: dict[CustomOperator, FunctionalForm] = {}


def functional_form(operator: CustomOperator) -> FunctionalForm:
    """The functional form of an operator that mutates, made once."""
    for i in operator.mutated:
        if operator.schema.arguments[i].type not in ("Tensor", "Tensor?"):
            raise NotImplementedError(
                f"{operator.name} changes the tensors of a list, which a graph cannot express"
            )
    if operator not in _forms:
        _forms[operator] = FunctionalForm(operator)
    return _forms[operator]


def find_for_graph(kind: str) -> CustomOperator:
    """The operator that a node of a graph calls, ``ns::name.overload`` or a functional form."""
    name, _, overload = kind.partition(".")
    if overload == _OVERLOAD or overload.endswith("_" + _OVERLOAD):
        base = overload.removesuffix(_OVERLOAD).removesuffix("_")
        return functional_form(find_custom(f"{name}.{base}" if base else name))
    return find_custom(kind)
