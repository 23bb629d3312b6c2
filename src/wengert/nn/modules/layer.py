"""Layers as declarations: fields, parameters with their initialisation, and one function.

A layer says what it has::

    class Linear(Layer, fields="in_features, out_features, bias=True"):
        weight = parameter("out_features", "in_features", init=kaiming_uniform(a=sqrt(5)))
        bias = parameter("out_features", init=uniform_by_fan("weight"), when="bias")
        forward = F.linear

The constructor, `forward`, `reset_parameters` and `extra_repr` follow from that. Arguments of the
function that are fields, parameters or buffers of the layer, or `training`, are read from it; the
others are the arguments of `forward`. Where no `fields` are declared, they are those of the
function behind its first argument.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from ...core import PACKAGE_FOLDER
from ...core.tensor import AbstractOperator
from ...creation.factories import empty
from ...dispatch.overridable import Overridable
from ..parameter import Parameter
from .module import Module

#: Arguments of functions that no layer has: they choose a type or a reduction in other ways.
_FUNCTION_ONLY = frozenset(("_stacklevel", "dtype", "out"))


class ParameterDeclaration(NamedTuple):
    """Shape, initialisation and condition of a parameter."""

    sizes: tuple[str | int, ...]
    init: Callable[[Any, Parameter], Any]
    when: tuple[str, ...]

    def shape(self, layer: Layer) -> tuple[int, ...]:
        """The sizes, in which the names of fields stand for their values."""
        shape: list[int] = []
        for size in self.sizes:
            value = getattr(layer, size) if isinstance(size, str) else size
            shape.extend(value if isinstance(value, tuple) else (value,))
        return tuple(shape)


def parameter(*sizes: str | int, init: Callable[[Any, Parameter], Any], when: str = "") -> Any:
    """Declare a parameter of a layer.

    `sizes` are numbers or names of fields. `init` gets the layer and the parameter. `when` names
    fields, separated by blanks, without any of which the parameter is None.
    """
    return ParameterDeclaration(sizes, init, tuple(when.split()))


class Layer(Module):
    """A module that is declared by its class statement; see the text of this file.

    Arguments of the class statement:

    - `fields`: the arguments of the constructor, as they stand in a `def`; where there are
      parameters, `device` and `dtype` follow those that are not by keyword only.
    - `shown`: what the text of the module shows, separated by commas: `name` as name=value, `*name`
      the value alone, `name?` only where it is not the default. Without it, all fields.
    - `buffers`: fields that are registered as buffers.
    - `passing`: fields that only the constructor reads.
    """

    _parameter_declarations: ClassVar[dict[str, ParameterDeclaration]] = {}
    _field_defaults: ClassVar[dict[str, Any]] = {}
    _shown: ClassVar[str | None] = None
    _buffer_fields: ClassVar[frozenset[str]] = frozenset()
    _passing_fields: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(
        cls,
        fields: str | None = None,
        shown: str | None = None,
        buffers: str = "",
        passing: str = "",
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        own = {
            name: value
            for name, value in vars(cls).items()
            if isinstance(value, ParameterDeclaration)
        }
        for name in own:
            delattr(cls, name)  # instances have it in their table
        cls._parameter_declarations = {**cls._parameter_declarations, **own}
        cls._buffer_fields = cls._buffer_fields.union(buffers.split())
        cls._passing_fields = cls._passing_fields.union(passing.split())
        function = vars(cls).get("forward")
        declares_function = isinstance(function, (AbstractOperator, Overridable))
        if declares_function and fields is None:
            fields = _fields_of(function)
        if fields is not None:
            cls._field_defaults = _defaults(fields)
            if "__init__" not in vars(cls):
                cls.__init__ = _constructor(cls, fields)  # type: ignore[method-assign]
        if shown is not None:
            cls._shown = shown
        if declares_function:
            cls.forward = _forward(cls, function)  # type: ignore[method-assign]

    def _construct(self, values: dict[str, Any], device: Any = None, dtype: Any = None) -> None:
        """Set fields and buffers, check them, make the parameters and give them values."""
        Module.__init__(self)
        for name, value in values.items():
            if name in self._buffer_fields:
                self.register_buffer(name, value)
            elif name not in self._parameter_declarations and name not in self._passing_fields:
                setattr(self, name, value)
        self._prepare(values)
        for name, declaration in self._parameter_declarations.items():
            made = None
            if all(values[field] for field in declaration.when):
                made = Parameter(empty(declaration.shape(self), device=device, dtype=dtype))
            self.register_parameter(name, made)
        self.reset_parameters()

    def _prepare(self, values: dict[str, Any]) -> None:
        """Check and complete the fields; called before the parameters are made."""

    def reset_parameters(self) -> None:
        """Give all parameters their initial values anew."""
        for name, declaration in self._parameter_declarations.items():
            value = getattr(self, name)
            if value is not None:
                declaration.init(self, value)

    def extra_repr(self) -> str:
        """The fields, as the declaration shows them."""
        shown = self._shown
        if shown is None:
            shown = ", ".join(
                name + "?" * (name == "inplace")
                for name in self._field_defaults
                if name not in self._passing_fields
            )
        parts = []
        for entry in shown.split(", ") if shown else ():
            name = entry.strip("*?")
            value = getattr(self, name)
            if name in self._parameter_declarations:
                value = value is not None
            if entry.startswith("*"):
                parts.append(f"{value!r}")
            elif not entry.endswith("?") or value != self._field_defaults[name]:
                parts.append(f"{name}={value!r}")
        return ", ".join(parts)


def _fields_of(function: Any) -> str:
    """The arguments of a function behind its first, as they would stand in a `def`."""
    _, *others = inspect.signature(function).parameters.values()
    kept = [each for each in others if each.name not in _FUNCTION_ONLY]
    return ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in kept
    )


def _defaults(fields: str) -> dict[str, Any]:
    """The fields by name, each with its default."""
    declared: Any = ast.parse(f"def declared({fields}): pass").body[0]
    names = [argument.arg for argument in declared.args.args]
    defaults = [ast.literal_eval(default) for default in declared.args.defaults]
    required = [inspect.Parameter.empty] * (len(names) - len(defaults))
    found = dict(zip(names, [*required, *defaults], strict=True))
    for argument, default in zip(declared.args.kwonlyargs, declared.args.kw_defaults, strict=True):
        found[argument.arg] = ast.literal_eval(default)
    return found


def _constructor(cls: type[Layer], fields: str) -> Any:
    """The method `__init__` that the fields of a layer describe."""
    has_parameters = bool(cls._parameter_declarations)
    positional, star, by_name = fields.partition("*, ")
    signature = [positional.rstrip(", ")] if positional else []
    signature += ["device=None, dtype=None"] if has_parameters else []
    signature += [star + by_name] if star else []
    values = ", ".join(f"{name!r}: {name}" for name in cls._field_defaults)
    passed = ", device, dtype" if has_parameters else ""
    return _method(
        cls,
        "__init__",
        f"""
        def __init__({", ".join(["self", *signature])}):
            self._construct({{{values}}}{passed})
        """,
        {},
    )


def _forward(cls: type[Layer], function: Any) -> Any:
    """The method `forward` that calls a function with fields and parameters of the layer."""
    known = {*cls._field_defaults, *cls._parameter_declarations, "training"}
    known.difference_update(cls._passing_fields)
    inputs: list[str] = []
    passed: list[str] = []
    by_keyword = False
    for each in inspect.signature(function).parameters.values():
        by_keyword = by_keyword or each.kind is each.KEYWORD_ONLY
        if each.name in known:
            passed.append(f"{each.name}=" * by_keyword + f"self.{each.name}")
        elif each.default is each.empty:
            inputs.append(each.name)
            passed.append(each.name)
        else:
            by_keyword = True
    return _method(
        cls,
        "forward",
        f"""
        def forward({", ".join(["self", *inputs])}):
            return function({", ".join(passed)})
        """,
        {"function": function, "__doc__": function.__doc__},
    )


def _method(cls: type, name: str, source: str, variables: dict[str, Any]) -> Any:
    """A method of a class, from its text."""
    namespace = {**variables, "__name__": cls.__module__}
    # A file of this package: nodes and errors then name the line that calls the layer.
    file = f"{PACKAGE_FOLDER}<{cls.__qualname__}.{name}>"
    exec(compile(textwrap.dedent(source), file, "exec"), namespace)
    method = namespace[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    method.__module__ = cls.__module__
    method.__doc__ = variables.get("__doc__")
    return method
