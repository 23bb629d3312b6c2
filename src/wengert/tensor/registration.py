"""Gathers the declared operators into the functions of the package and the methods of Tensor."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..core.classes import classes
from ..core.loading import load
from ..core.registry import declared_operators, makers, operator_named
from ..core.tensor import AbstractOperator, Tensor, complete
from ..creation import factories as creation
from ..dispatch.effects import Effect
from ..dispatch.overridable import Overridable, OverridableProperty
from ..dispatch.rebasing import regenerate_view
from ..dispatch.torch_dispatch import disabled_torch_dispatch_impl
from ..dispatch.torch_function import (
    MODES_ONLY,
    PLAIN,
    default_torch_function,
    marked,
    override_method,
)
from ..operators import arithmetic, copying
from ..operators.catalogue import MODULE_OF
from ..operators.names import ALIASES, DEFERRED, FUNCTIONS_ONLY, METHODS_ONLY
from ..tape.cycles import show_graph
from . import attributes, methods, numpy_protocol, subclasses
from .refused_methods import METHODS as REFUSED_METHODS

# What a module lists in `__all__` becomes a function and a method, unless its facts say otherwise.
CORE_MODULES: tuple[ModuleType, ...] = (arithmetic, copying)


# What nobody can override: settings, and what only converts what it is given.
NOT_OVERRIDABLE = {
    "Generator", "as_tensor", "asarray", "default_generator", "fork_rng", "from_dlpack",
    "from_numpy", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
    "__array_function__", "__array_ufunc__",
}  # fmt: skip


#: Functions that draw random numbers and what they draw from, declared by their first use.
RANDOM_FUNCTIONS = (
    "Generator", "bernoulli", "binomial", "default_generator", "fork_rng", "get_rng_state",
    "initial_seed", "manual_seed", "multinomial", "normal", "poisson", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state",
)  # fmt: skip
#: The functions of modules that are imported by the first use of one.
_LATER_FUNCTIONS = {
    **{"operators." + module: names for module, names in DEFERRED.items()},
    "creation.random": RANDOM_FUNCTIONS,
    "creation.ranges": ("arange", "eye", "linspace", "logspace", "tril_indices", "triu_indices"),
}
_LATER_MODULES = {name: module for module, names in _LATER_FUNCTIONS.items() for name in names}

#: Methods of Tensor by the module that defines them, which is imported by their first use.
LATER_METHODS = {
    **dict.fromkeys(
        ("bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_",
         "multinomial", "normal_", "random_", "uniform_"),
        "creation.random",
    ),
    **dict.fromkeys(
        ("new", "resize_", "resize_as_", "set_", "share_memory_", "storage", "storage_type",
         "untyped_storage"),
        "tensor.memory",
    ),
    **dict.fromkeys(
        ("apply_", "dim_order", "fill_diagonal_", "map2_", "map_", "module_load",
         "new_empty_strided", "pin_memory", "prelu", "to_dense", "where"),
        "tensor.more_methods",
    ),
}  # fmt: skip


class _DeferredMethod:
    """Stands in Tensor for a method whose operator is not declared yet."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return function_of(self.name).__get__(instance, owner)


class _LaterMethod:
    """Stands in Tensor for a method of a module that is imported when the method is first used."""

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module

    def __get__(self, instance: Any, owner: type) -> Any:
        source = load(self.module)
        if self.module == "tensor.out_of_scope":
            function = source.look_up("wengert.Tensor", self.name)
        else:
            function = getattr(source, self.name)
        value = Overridable(function, module="wengert.tensor", name=f"Tensor.{self.name}")
        if Tensor.__dict__.get(self.name) is self:
            classes.attach(Tensor, self.name, value)
        return getattr(instance if instance is not None else owner, self.name)


#: Operators of Python's symbols, as ``@`` and ``&``, that are declared by their first use.
LATER_SYMBOLS = (
    "abs", "bitwise_and", "bitwise_and_", "bitwise_left_shift", "bitwise_left_shift_",
    "bitwise_not", "bitwise_or", "bitwise_or_", "bitwise_right_shift", "bitwise_right_shift_",
    "bitwise_xor", "bitwise_xor_", "eq", "ge", "gt", "le", "lt", "matmul", "ne",
)  # fmt: skip


class _DeferredOperator(AbstractOperator):
    """Stands for the operator of a symbol in the table of Tensor until its first use."""

    def __init__(self, name: str) -> None:
        self.name = name

    def call1(self, x: Any) -> Any:
        return self.declared().call1(x)

    def call2(self, x: Any, y: Any) -> Any:
        return self.declared().call2(x, y)

    def declared(self) -> AbstractOperator:
        operator = function_of(self.name) if self.name == "matmul" else operator_named(self.name)
        _complete_table(**{self.name: operator})
        return operator


def _deferred_getitem(self: Tensor, index: Any) -> Any:
    _bind_indexing()
    return Tensor.__getitem__(self, index)


def _deferred_setitem(self: Tensor, index: Any, value: Any) -> None:
    _bind_indexing()
    Tensor.__setitem__(self, index, value)


def _bind_indexing() -> None:
    """Let ``x[i]`` and ``x[i] = y`` go to their operators."""
    source = load("operators.getitem")
    _complete_table(
        getitem=Overridable(source.getitem, public=Tensor.__getitem__),
        setitem=Overridable(source.setitem, public=Tensor.__setitem__),
    )


def _deferred_repr(t: Tensor) -> str:
    return load("tensor.printing").tensor_repr(t)


def _deferred_reduce_gradient(*args: Any) -> Tensor:
    reduce_gradient = load("operators.fitting").reduce_gradient
    makers.reduce_gradient = reduce_gradient
    return reduce_gradient(*args)


# What Tensor's own methods call, see `core.tensor.complete`.
_table: dict[str, Any] = {}


def _complete_table(**operators: Any) -> None:
    _table.update(operators)
    complete(_table)


_deferred: dict[str, dict[str, Any]] = {}


def function_of(name: str) -> Any:
    """The function of that name, after binding all those of its module."""
    module = _LATER_MODULES[name]
    if module not in _deferred:
        source = load(module)
        made = _overridable_functions(
            {each: _declared(source, _original(each)) for each in _LATER_FUNCTIONS[module]}
        )
        # Threads that come here together agree on what the first of them has made. What a program
        # has put into Tensor or taken from it in the meantime remains so.
        for each, value in _deferred.setdefault(module, made).items():
            if isinstance(Tensor.__dict__.get(each), _DeferredMethod):
                classes.attach(Tensor, each, value)
    return _deferred[module][name]


def _original(name: str) -> str:
    """The name of which another one, or that of its in-place form, is an alias."""
    if name.endswith("_") and name[:-1] in ALIASES:
        return ALIASES[name[:-1]] + "_"
    return ALIASES.get(name, name)


def _declared(source: ModuleType, name: str) -> Any:
    """What a module has under a name; the operator if the name is of a derived in-place form."""
    if name.endswith("_") and not hasattr(source, name):
        return operator_named(name)
    return getattr(source, name)


def deferred_functions() -> frozenset[str]:
    """The names of the functions of the package that `function_of` finds."""
    return frozenset(
        name for name in _LATER_MODULES if name not in METHODS_ONLY and not name.endswith("_")
    )


def _core_operators() -> dict[str, Any]:
    """What the modules of the core list, by name, with the aliases."""
    found = {name: getattr(m, name) for m in CORE_MODULES for name in m.__all__}
    found.update({alias: found[name] for alias, name in ALIASES.items() if name in found})
    return found


def _methods(found: dict[str, Any]) -> dict[str, Any]:
    """The operators that are methods, their in-place variants and the properties."""
    table = {name: value for name, value in found.items() if name not in FUNCTIONS_ONLY}
    for name, operator in declared_operators().items():
        if name.endswith("_") and not name.startswith("_"):
            table[name] = operator
    for alias, name in ALIASES.items():
        if name + "_" in table:
            table[alias + "_"] = table[name + "_"]
    table.update({name: getattr(creation, name) for name in creation.NEW_METHODS})
    for source in (attributes, methods, numpy_protocol):
        table.update(source.PROPERTIES | source.METHODS)
    return table


def _is_called_directly(value: Any) -> bool:
    """Whether calls need nothing in front of them: operators look for overrides themselves."""
    return isinstance(value, (AbstractOperator, Overridable)) and not isinstance(value, Effect)


def _overridable_functions(table: dict[str, Any]) -> dict[str, Any]:
    """Functions in the form that classes and modes can override; aliases remain one function."""
    made: dict[Any, Overridable] = {}
    for name, value in table.items():
        if not _is_called_directly(value) and name not in NOT_OVERRIDABLE and value not in made:
            made[value] = Overridable(value, name=name)
    return {name: made.get(value, value) for name, value in table.items()}


def _overridable_methods(table: dict[str, Any]) -> dict[str, Any]:
    """Methods and properties of Tensor in the form that classes and modes can override."""
    made: dict[Any, Any] = {}
    for name, value in table.items():
        if isinstance(value, property):
            made[value] = OverridableProperty(value, name)
        elif (
            not _is_called_directly(value)
            and name not in NOT_OVERRIDABLE
            and value not in made
        ):
            made[value] = Overridable(value, module="wengert.tensor", name=f"Tensor.{name}")
    return {name: made.get(value, value) for name, value in table.items()}


def _bind_subclasses() -> None:
    """Complete Tensor for its subclasses."""
    MODES_ONLY.add(creation.tensor)
    classes.hide_init(Tensor)
    for name, value in subclasses.METHODS.items():
        classes.attach(Tensor, name, value)
    classes.attach(Tensor, "__torch_function__", classmethod(default_torch_function))
    classes.attach(Tensor, "__torch_dispatch__", staticmethod(disabled_torch_dispatch_impl))


#: Names from Python 2 that PyTorch's tensors still have.
_OLDER = {
    "__div__": "__truediv__", "__idiv__": "__itruediv__", "__rdiv__": "__rtruediv__",
    "__long__": "__int__", "__nonzero__": "__bool__",
}  # fmt: skip


def bind() -> dict[str, Any]:
    """Complete Tensor and the engine; returns the functions of the package."""
    found = _overridable_functions(_core_operators())
    for name, value in _overridable_methods(_methods(found)).items():
        classes.attach(Tensor, name, value)
    for name in MODULE_OF:
        if name not in FUNCTIONS_ONLY:
            classes.attach(Tensor, name, _DeferredMethod(name))
    for name, module in LATER_METHODS.items():
        classes.attach(Tensor, name, _LaterMethod(name, module))
    for names in REFUSED_METHODS.values():
        for name in names.split():
            classes.attach(Tensor, name, _LaterMethod(name, "tensor.out_of_scope"))
    for name, newer in _OLDER.items():
        classes.attach(Tensor, name, getattr(Tensor, newer))
    _bind_subclasses()
    _table.update(declared_operators())
    _complete_table(
        **{name: _DeferredOperator(name) for name in LATER_SYMBOLS},
        getitem=_deferred_getitem,
        setitem=_deferred_setitem,
        regenerate_view=regenerate_view,
        show_graph=show_graph,
        repr=_deferred_repr,
        override_method=override_method,
        plain=PLAIN,
        marked=marked,
        fill=subclasses.fill,
    )
    makers.reduce_gradient = _deferred_reduce_gradient
    functions = {name: value for name, value in found.items() if name not in METHODS_ONLY}
    makers_of_tensors = {name: getattr(creation, name) for name in creation.__all__}
    return functions | _overridable_functions(methods.FUNCTIONS | makers_of_tensors)
