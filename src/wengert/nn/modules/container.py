"""Modules that hold others: in sequence, in a list, in a dictionary."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from .module import Module, indented


class Indexed(Module):
    """A module whose children are named by their positions."""

    def _position(self, index: Any, end: int = 0) -> int:
        """A position from the front; negative ones count from the back."""
        length = len(self)
        index = operator.index(index)
        if not -length <= index < length + end:
            raise IndexError(f"index {index} is out of range")
        return index + length if index < 0 else index

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[self._position(index)]

    def _renumber(self, modules: Iterable[Any]) -> None:
        table = {str(i): module for i, module in enumerate(modules)}
        self._modules.clear()
        self._modules.update(table)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        gone = names[index] if isinstance(index, slice) else [self._name_at(index)]
        self._renumber([self._modules[name] for name in names if name not in gone])

    def append(self, module: Any) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before the one at a position."""
        modules = [*self]
        modules.insert(self._position(index, end=1), module)
        self._renumber(modules)
        return self

    def extend(self, modules: Any) -> Self:
        """Add several modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, other: Any) -> Self:
        return self.extend(other)

    def pop(self, key: Any) -> Any:
        """Take a module out."""
        module = self[key]
        del self[key]
        return module

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError


class Sequential(Indexed):
    """Calls its modules one after the other, each with the result of the one before."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named: dict[str, Any] = {str(i): module for i, module in enumerate(args)}
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0]
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: Any, module: Any) -> None:
        setattr(self, self._name_at(index), module)

    def insert(self, index: int, module: Any) -> Self:
        """Put a module before the one at a position."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        return super().insert(index, module)

    def extend(self, sequential: Any) -> Self:
        """Add the modules of an iterable at the end."""
        return super().extend(sequential)

    def _check_sequential(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is "
                "given."
            )

    def __add__(self, other: Any) -> Sequential:
        self._check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        self._check_sequential(other)
        return self.extend(other)

    def __mul__(self, other: Any) -> Sequential:
        return Sequential(*[*self] * self._times(other))

    def __rmul__(self, other: Any) -> Sequential:
        return self * other

    def __imul__(self, other: Any) -> Self:
        return self.extend([*self] * (self._times(other) - 1))

    def _times(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other


class ModuleList(Indexed):
    """A list of modules, which it registers."""

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[str(self._position(index))]

    def __setitem__(self, index: Any, module: Any) -> None:
        setattr(self, str(self._position(index)), module)

    def extend(self, modules: Any) -> Self:
        """Add several modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        return super().extend(modules)

    def insert(self, index: int, module: Any) -> None:
        """Put a module before the one at a position, as lists do."""
        modules = [*self]
        modules.insert(index, module)
        self._renumber(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return type(self)([*self, *other])

    def __repr__(self) -> str:
        """As that of a module, with children that look alike in one entry."""
        runs: list[tuple[int, int, str]] = []
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            f"  ({first}): {indented(text)}\n"
            if first == last
            else f"  ({first}-{last}): {last - first + 1} x {indented(text)}\n"
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n{''.join(lines)})"


class ModuleDict(Module):
    """A dictionary of modules, which it registers, in the order of insertion."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of keys and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a dictionary or of pairs of keys and modules."""
        for key, module in entries("ModuleDict", modules):
            self[key] = module


def entries(owner: str, given: Any) -> list[tuple[str, Any]]:
    """The pairs of a mapping or of an iterable of pairs."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got "
            f"{type(given).__name__}"
        )
    if isinstance(given, (Mapping, ModuleDict)) or hasattr(given, "keys"):
        return list(given.items())  # type: ignore[union-attr]
    pairs = []
    for position, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{owner} update sequence element #{position} should be Iterable; is "
                f"{type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{owner} update sequence element #{position} has length {len(pair)}; 2 is required"
            )
        pairs.append(pair)
    return pairs


class Container(Module):
    """A module that holds those it is given by name; deprecated, as every module can."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)
