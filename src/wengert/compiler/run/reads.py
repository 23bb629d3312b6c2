"""What the code of a Python function can read: the names in it.

Attributes may also be read by computed names; then all attributes of an object count as read.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType
from typing import Any

#: In their presence any attribute can have been read.
_REFLECTIVE = frozenset((
    "__dict__", "vars", "dir", "attrgetter", "methodcaller", "__getattribute__", "__reduce_ex__",
    "__reduce__", "__getstate__", "getattr_static", "getmembers",
))  # fmt: skip
#: These read the attribute that their second argument names.
_BY_NAME = ("getattr", "hasattr")
#: These change an attribute of any name.
_WRITE_BY_NAME = frozenset(("setattr", "delattr", "__setattr__", "__delattr__"))

#: Reads the attributes that a pattern or its class names.
_MATCH_CLASS = dis.opmap["MATCH_CLASS"]
_IMPORT = dis.opmap["IMPORT_NAME"]
#: Read a variable that is not local: the others among `dis.hasname` read attributes and import.
_LOAD_VARIABLE = frozenset(
    dis.opmap[name]
    for name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    if name in dis.opmap
)
_STORE_VARIABLE = frozenset((dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]))
#: These import a module of any name.
_BY_MODULE_NAME = frozenset(("import_module", "__import__"))

#: Methods that the interpreter looks up by itself.
SPECIAL = frozenset(
    name
    for cls in (object, type, int, float, complex, str, list, dict, set, property, type(None))
    for name in dir(cls)
    if name.startswith("__") and callable(getattr(cls, name, None))
) | {
    "__getattr__", "__set_name__", "__enter__", "__exit__", "__next__", "__missing__", "__index__",
    "__fspath__", "__length_hint__", "__matmul__", "__rmatmul__", "__imatmul__", "__bytes__",
    "__copy__", "__deepcopy__", "__instancecheck__", "__subclasscheck__", "__torch_function__",
    "__torch_dispatch__", "__array__", "__array_ufunc__", "__array_function__", "__complex__",
    "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__ilshift__", "__irshift__",
    "__slots__", "__mro_entries__", "__class_getitem__", "__match_args__",
}  # fmt: skip
SPECIAL -= {"__class__", "__subclasshook__", "__init_subclass__", "__doc__"}


def names_read(code: CodeType) -> tuple[set[str], bool]:
    """The names of attributes and variables that a code can read, and whether it can read others
    as well."""
    names = set(code.co_names)
    if not _REFLECTIVE.isdisjoint(names) or _MATCH_CLASS in code.co_code[::2]:
        return names, True
    if names.isdisjoint(_BY_NAME):
        return names, False
    constants = _constant_names(code)
    return (names, True) if constants is None else (names | constants, False)


@lru_cache(maxsize=4096)
def names_used(code: CodeType) -> tuple[frozenset[str], bool, frozenset[str]]:
    """The names that a code can read or write, functions within it included; whether there may be
    others; and those among them that are global variables."""
    names, computed = names_read(code)
    computed = computed or not _WRITE_BY_NAME.isdisjoint(names)
    variables = set(globals_read(code))
    if not _STORE_VARIABLE.isdisjoint(code.co_code[::2]):
        variables.update(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner, inner_computed, inner_variables = names_used(constant)
            names |= inner
            variables |= inner_variables
            computed = computed or inner_computed
    return frozenset(names), computed, frozenset(variables)


@lru_cache(maxsize=4096)
def globals_read(code: CodeType) -> frozenset[str]:
    """The names of global variables and of what is built in that a code reads."""
    return frozenset(
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opcode in _LOAD_VARIABLE
    )


def modules_imported(code: CodeType, variables: dict[str, Any]) -> set[str]:
    """The names of modules that a code imports, or has tried to."""
    if not _BY_MODULE_NAME.isdisjoint(code.co_names):
        return set(sys.modules)
    if _IMPORT not in code.co_code[::2]:
        return set()
    package = variables.get("__package__") or variables.get("__name__") or ""
    found: set[str] = set()
    before: list[Any] = [None, None]  # what was loaded last: the level and the list of names
    for instruction in dis.get_instructions(code):
        if instruction.opcode == _IMPORT:
            level, parts = before
            name = str(instruction.argval)
            if isinstance(level, int) and level > 0:
                around = ".".join(package.split(".")[: package.count(".") + 2 - level])
                name = f"{around}.{name}" if name else around
            whole = name.split(".")
            found.update([".".join(whole[: i + 1]) for i in range(len(whole))])
            found.update([f"{name}.{part}" for part in parts or ()])
        before = [before[1], instruction.argval]
    return found


def _constant_names(code: CodeType) -> set[str] | None:
    """The names that `getattr` and `hasattr` are given, None where one is not written there."""
    found: set[str] = set()
    instructions = list(dis.get_instructions(code))
    for i, instruction in enumerate(instructions):
        if instruction.argval in _BY_NAME and instruction.opname.startswith(("LOAD", "STORE")):
            name = _name_argument(instructions[i + 1 :])
            if name is None:
                return None
            found.add(name)
    return found


def _name_argument(instructions: list[dis.Instruction]) -> str | None:
    """The second argument of the call whose function has just been loaded, if it is written there.

    The call is the one that takes all that was put on the stack since.
    """
    depth = 0
    for i, instruction in enumerate(instructions):
        opname, argument = instruction.opname, instruction.arg
        if opname == "PUSH_NULL" and i == 0:
            continue
        if opname in ("PRECALL", "CALL") and depth == argument:
            before = instructions[i - argument + 1 : i]
            simple = argument == 2 or (argument == 3 and before[1].opname.startswith("LOAD_"))
            if simple and before[0].opname == "LOAD_CONST":
                name = before[0].argval
                return name if isinstance(name, str) else None
            return None
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            return None
        depth += dis.stack_effect(instruction.opcode, argument, jump=False)
        if depth < 0:
            return None
    return None
