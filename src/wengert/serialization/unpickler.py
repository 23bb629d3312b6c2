"""An unpickler that runs no code: a file may only name what is on a list.

It reads protocols 2 to 5 without recursion. A pickle that is cut off, that names or calls anything
else, or that makes no sense raises UnpicklingError.
"""

from __future__ import annotations

import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError, decode_long
from typing import Any

from ..nn.parameter import Parameter
from .names import ALLOWED, CALLABLE, full_name, hashable, refuse_absent
from .rebuild import set_state
from .safe_globals import allowed_by_name

#: Modules of which nothing can be allowed.
BLOCKED = ("sys", "os", "posix", "nt")
_INSTRUCTIONS: dict[int, Callable[[SafeUnpickler], None]] = {}


class LocationError(Exception):
    """Carries an error of `map_location`, which is the program's own, out of the unpickler."""


def instruction(*codes: bytes) -> Callable:
    """Declare what an instruction of pickles does."""

    def declare(function: Callable) -> Callable:
        _INSTRUCTIONS.update({code[0]: function for code in codes})
        return function

    return declare


class SafeUnpickler:
    """Runs the instructions of one pickle; `persistent_load` gives the storages that it names."""

    def __init__(self, data: bytes, persistent_load: Callable[[tuple], Any]) -> None:
        self.data = data
        self.position = 0
        self.persistent_load = persistent_load
        self.allowed_by_program = allowed_by_name()
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.protocol = 0

    def load(self) -> Any:
        """The object that was pickled."""
        try:
            while True:
                code = self.take(1)[0]
                if code == b"."[0]:
                    return self.stack.pop()
                if code not in _INSTRUCTIONS:
                    raise UnpicklingError(f"Unsupported operand {code}")
                _INSTRUCTIONS[code](self)
        except (UnpicklingError, LocationError):
            raise
        except IndexError as error:
            raise UnpicklingError("the pickle takes more values than it has made") from error
        except RecursionError as error:
            raise UnpicklingError("the pickle is nested too deeply") from error
        except Exception as error:
            raise UnpicklingError(f"{error or type(error).__name__}") from error

    def take(self, count: int) -> bytes:
        part = self.data[self.position : self.position + count]
        if len(part) != count:
            raise UnpicklingError("pickle data was truncated")
        self.position += count
        return part

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def line(self) -> str:
        end = self.data.find(b"\n", self.position)
        if end < 0:
            raise UnpicklingError("pickle data was truncated")
        text = self.data[self.position : end].decode()
        self.position = end + 1
        return text

    def pop_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marked.pop()
        return items

    def find(self, module: str, name: str) -> Any:
        """What a name in the file stands for, if the file may name it."""
        if self.protocol < 3:
            if (module, name) in NAME_MAPPING:
                module, name = NAME_MAPPING[module, name]
            else:
                module = IMPORT_MAPPING.get(module, module)
        full = full_name(module, name)
        if module in BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        if full in ALLOWED:
            return ALLOWED[full]
        if full in self.allowed_by_program:
            return self.allowed_by_program[full]
        refuse_absent(full)
        raise UnpicklingError(not_allowed(full))

    def is_allowed_by_program(self, value: Any) -> bool:
        return any(value is each for each in self.allowed_by_program.values())


def not_allowed(full: str) -> str:
    """The message for a name that is not on the list."""
    shown = full.removeprefix("builtins.")
    return (
        f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
        f"`wengert.serialization.add_safe_globals([{shown}])` or the "
        f"`wengert.serialization.safe_globals([{shown}])` context manager to allowlist this "
        "global if you trust this class/function. If you trust the whole file, weights_only=False "
        "loads it as any pickle, which can run code that the file contains."
    )


# Values that stand in the pickle.

_CONSTANTS: dict[bytes, Any] = {b"N": None, b"\x88": True, b"\x89": False, b")": ()}
_NUMBERS = {b"J": "<i", b"K": "<B", b"M": "<H", b"G": ">d"}
_EMPTY: dict[bytes, Callable[[], Any]] = {b"]": list, b"}": dict, b"\x8f": set}
_TEXTS = {b"X": "<I", b"\x8c": "<B", b"\x8d": "<Q", b"U": "<B", b"T": "<i"}
_BYTES = {b"B": "<I", b"C": "<B", b"\x8e": "<Q"}


def _pushes(make: Callable[..., Any], *fixed: Any) -> Callable[[SafeUnpickler], None]:
    return lambda machine: machine.stack.append(make(machine, *fixed))


def _counted(machine: SafeUnpickler, layout: str) -> bytes:
    count = machine.number(layout)
    if count < 0:
        raise UnpicklingError("a length is negative")
    return machine.take(count)


def _text(machine: SafeUnpickler, layout: str) -> str:
    return str(_counted(machine, layout), "utf-8", "surrogatepass")


for _code, _value in _CONSTANTS.items():
    instruction(_code)(_pushes(lambda machine, value: value, _value))
for _code, _layout in _NUMBERS.items():
    instruction(_code)(_pushes(SafeUnpickler.number, _layout))
for _code, _kind in _EMPTY.items():
    instruction(_code)(_pushes(lambda machine, kind: kind(), _kind))
for _code, _layout in _BYTES.items():
    instruction(_code)(_pushes(_counted, _layout))
for _code, _layout in _TEXTS.items():
    instruction(_code)(_pushes(_text, _layout))
instruction(b"\x8a")(_pushes(lambda machine: decode_long(_counted(machine, "<B"))))
instruction(b"\x8b")(_pushes(lambda machine: decode_long(_counted(machine, "<i"))))
instruction(b"\x96")(_pushes(lambda machine: bytearray(_counted(machine, "<Q"))))


@instruction(b"\x80")
def _protocol(machine: SafeUnpickler) -> None:
    machine.protocol = machine.take(1)[0]
    if not 2 <= machine.protocol <= 5:
        raise UnpicklingError(f"unsupported pickle protocol: {machine.protocol}")


@instruction(b"\x95")
def _frame(machine: SafeUnpickler) -> None:
    machine.take(8)


# The stack and the memo.


@instruction(b"(")
def _mark(machine: SafeUnpickler) -> None:
    machine.marked.append(machine.stack)
    machine.stack = []


@instruction(b"0")
def _pop(machine: SafeUnpickler) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


@instruction(b"1")
def _pop_mark(machine: SafeUnpickler) -> None:
    machine.pop_mark()


@instruction(b"q", b"r", b"\x94")
def _put(machine: SafeUnpickler) -> None:
    code = machine.data[machine.position - 1 : machine.position]
    if code == b"\x94":
        place = len(machine.memo)
    else:
        place = machine.number("<B" if code == b"q" else "<I")
    machine.memo[place] = machine.stack[-1]


@instruction(b"h", b"j")
def _get(machine: SafeUnpickler) -> None:
    short = machine.data[machine.position - 1] == b"h"[0]
    place = machine.number("<B" if short else "<I")
    if place not in machine.memo:
        raise UnpicklingError(f"Memo value not found at index {place}")
    machine.stack.append(machine.memo[place])


# Containers.


def _top(machine: SafeUnpickler, *kinds: type) -> Any:
    """The value on top, which must be of one of these types or of a subclass that is allowed."""
    top = machine.stack[-1]
    kind = type(top)
    if kind not in kinds and not (
        issubclass(kind, kinds) and machine.is_allowed_by_program(kind)
    ):
        names = ", ".join(each.__name__ for each in kinds)
        raise UnpicklingError(f"Can only put items into {names}, but got {kind}")
    return top


@instruction(b"t")
def _tuple(machine: SafeUnpickler) -> None:
    items = machine.pop_mark()
    machine.stack.append(tuple(items))


def _tuple_of(count: int) -> Callable[[SafeUnpickler], None]:
    def make(machine: SafeUnpickler) -> None:
        if len(machine.stack) < count:
            raise IndexError
        machine.stack[-count:] = [tuple(machine.stack[-count:])]

    return make


for _code, _count in {b"\x85": 1, b"\x86": 2, b"\x87": 3}.items():
    instruction(_code)(_tuple_of(_count))


@instruction(b"a")
def _append(machine: SafeUnpickler) -> None:
    item = machine.stack.pop()
    _top(machine, list).append(item)


@instruction(b"e")
def _appends(machine: SafeUnpickler) -> None:
    items = machine.pop_mark()
    _top(machine, list).extend(items)


@instruction(b"s")
def _set_item(machine: SafeUnpickler) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _top(machine, dict, OrderedDict, Counter)[hashable(key)] = value


@instruction(b"u")
def _set_items(machine: SafeUnpickler) -> None:
    items = machine.pop_mark()
    if len(items) % 2:
        raise UnpicklingError("a dictionary has a key without a value")
    target = _top(machine, dict, OrderedDict, Counter)
    for i in range(0, len(items), 2):
        target[hashable(items[i])] = items[i + 1]


@instruction(b"\x90")
def _add_items(machine: SafeUnpickler) -> None:
    items = machine.pop_mark()
    _top(machine, set).update(map(hashable, items))


@instruction(b"\x91")
def _frozenset(machine: SafeUnpickler) -> None:
    items = machine.pop_mark()
    machine.stack.append(frozenset(map(hashable, items)))


# What names, calls and builds.


@instruction(b"c")
def _global(machine: SafeUnpickler) -> None:
    module, name = machine.line(), machine.line()
    machine.stack.append(machine.find(module, name))


@instruction(b"\x93")
def _stack_global(machine: SafeUnpickler) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("a global is not named by two strings")
    machine.stack.append(machine.find(module, name))


@instruction(b"R")
def _reduce(machine: SafeUnpickler) -> None:
    arguments, function = machine.stack.pop(), machine.stack.pop()
    if not any(function is each for each in CALLABLE) and not machine.is_allowed_by_program(
        function
    ):
        raise UnpicklingError(
            f"Trying to call reduce for unrecognized function of type {type(function).__name__}"
        )
    if type(arguments) is not tuple:
        raise UnpicklingError("arguments are no tuple")
    machine.stack.append(function(*arguments))


@instruction(b"\x81")
def _new_object(machine: SafeUnpickler) -> None:
    arguments, cls = machine.stack.pop(), machine.stack.pop()
    if type(arguments) is not tuple:
        raise UnpicklingError("arguments are no tuple")
    if cls is ALLOWED["collections.OrderedDict"] or cls is Parameter:
        machine.stack.append(cls(*arguments))
    elif isinstance(cls, type) and machine.is_allowed_by_program(cls):
        machine.stack.append(cls.__new__(cls, *arguments))
    else:
        raise UnpicklingError(
            "Can only create new object for nn.Parameter or classes allowlisted via "
            f"`add_safe_globals` but got an object of type {type(cls).__name__}"
        )


@instruction(b"b")
def _build(machine: SafeUnpickler) -> None:
    state, target = machine.stack.pop(), machine.stack[-1]
    kind = type(target)
    if kind is OrderedDict:
        if not isinstance(state, dict) or not all(type(name) is str for name in state):
            raise UnpicklingError("the attributes of an OrderedDict are no dictionary")
        target.__dict__.update(state)
    elif kind is Parameter:
        set_state(target, state)
    elif machine.is_allowed_by_program(kind):
        _set_program_state(target, state)
    else:
        raise UnpicklingError(
            "Can only build Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
            f"but got {kind}"
        )


def _set_program_state(target: Any, state: Any) -> None:
    """Give an object of a class that the program allows its state, as pickle does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        target.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


@instruction(b"Q")
def _persistent(machine: SafeUnpickler) -> None:
    named = machine.stack.pop()
    if type(named) is not tuple:
        raise UnpicklingError(f"persistent_load id must be tuple, but got {type(named)}")
    machine.stack.append(machine.persistent_load(named))
