"""The reference of the public interface, written from docstrings and signatures.

It is read from the imported package and not from its text: many functions are made of declarations,
so only the running package knows all names. Operators have a page of their own, made by
`tools/generate.py`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

#: The pages: a title, and the modules whose public names it lists.
PAGES = {
    "tensors": ("Tensors", ["wengert"]),
    "autograd": (
        "Autograd",
        ["autograd", "autograd.graph", "autograd.function", "autograd.grad_mode",
         "autograd.anomaly_mode", "autograd.forward_ad", "autograd.functional"],
    ),
    "profiler": ("Profiler", ["autograd.profiler"]),
    "func": ("Function transforms", ["func"]),
    "nn": (
        "Networks",
        ["nn", "nn.functional", "nn.init", "nn.utils", "nn.parameter", "nn.attention"],
    ),
    "optim": ("Optimizers", ["optim", "optim.lr_scheduler"]),
    "linalg": ("Linear algebra, Fourier transforms, special functions",
               ["linalg", "fft", "special"]),
    "data": ("Data", ["utils.data"]),
    "distributions": ("Distributions", ["distributions", "distributions.constraints"]),
    "training": ("Mixed precision and tests", ["amp", "testing"]),
    "signal": ("Windows and masks", ["signal.windows", "masked"]),
    "files": ("Files and exchange", ["serialization", "utils.dlpack"]),
    "checkpoint": ("Checkpointing", ["utils.checkpoint"]),
    "library": ("Custom operators", ["library"]),
    "overrides": ("Overrides and trees", ["overrides", "utils._pytree"]),
    "compiler": ("Graphs and compilation", ["compiler"]),
    "viz": ("Pictures", ["viz"]),
    "random": ("Random numbers and devices", ["random", "cuda"]),
}  # fmt: skip
#: Modules that are public and not in the reference, with the reason.
LEFT_OUT = {
    "_C": "names that PyTorch's own sources use",
    "_library": "names that PyTorch's own sources use",
    "demo": "a program",
    "ops": "operators by namespace, found when they are asked for",
    "types": "aliases for annotations",
    "accelerator": "answers to programs that ask for devices",
    "as_torch": "described on the page for those who come from PyTorch",
    "backends": "answers to programs that ask what PyTorch was built with",
    "distributed": "answers to programs that ask for other processes",
    "jit": "answers to programs that ask for TorchScript",
    "__future__": "answers to programs that ask how modules are converted",
    "storage": "PyTorch's old module of storages",
    "version": "the number of the version",
}
#: Modules whose methods are for the package itself.
_RECORDS = ("wengert.core.tensor", "wengert.tape.node", "wengert.autograd.function_node")
#: Objects from elsewhere that modules carry for their own use.
_FOREIGN = ("typing", "collections", "numpy", "functools", "contextlib", "__future__", "builtins")


class Entry(NamedTuple):
    """A public name: where it is found, what it is, and what its docstring says."""

    name: str
    value: Any
    doc: str

    @property
    def is_class(self) -> bool:
        return inspect.isclass(self.value)


def module_named(name: str) -> ModuleType:
    """A module of the package by its name below it."""
    return importlib.import_module("wengert" if name == "wengert" else f"wengert.{name}")


def public_names(module: ModuleType) -> list[str]:
    """The names a program may use: `__all__`, or what does not begin with an underscore."""
    names = getattr(module, "__all__", None) or dir(module)
    found = []
    for name in sorted(set(names)):
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        foreign = isinstance(home, str) and home.partition(".")[0] in _FOREIGN
        if name[0] != "_" and not inspect.ismodule(value) and not (foreign and callable(value)):
            found.append(name)
    alien = {"annotations"} | ({"Tensor"} if module.__name__ != "wengert" else set())
    return [name for name in found if name not in alien]


def entries(module_name: str) -> Iterator[Entry]:
    """The public names of a module that are functions or classes, but not operators."""
    module = module_named(module_name)
    operators = _operator_class()
    for name in public_names(module):
        value = getattr(module, name)
        if module_name == "wengert" and isinstance(value, operators):
            continue  # on the page of operators
        if callable(value):
            yield Entry(name, value, inspect.getdoc(value) or "")


def _operator_class() -> tuple[type, ...]:
    from wengert.core.tensor import AbstractOperator

    return (AbstractOperator,)


def undocumented() -> list[str]:
    """Names on the pages of the reference, methods of classes included, that say nothing."""
    missing = []
    for _, modules in PAGES.values():
        for module in modules:
            for entry in entries(module):
                if not entry.doc:
                    missing.append(f"{module}.{entry.name}")
                if entry.is_class:
                    missing += [
                        f"{module}.{entry.name}.{name}"
                        for name, _, doc in methods(entry.value)
                        if not doc
                    ]
    return missing


def methods(cls: type) -> list[tuple[str, str, str]]:
    """Name, signature and first sentence of each public method and property of a class.

    What it has from a class that is public itself stands there.
    """
    members: dict[str, Any] = {}
    for base in cls.__mro__:
        if base is not cls and (base in public_classes() or base.__module__[:7] != "wengert"):
            break
        members = {**vars(base), **members}
    found = []
    for name, member in sorted(members.items()):
        if name[0] == "_" or not _is_method(member):
            continue
        is_property = not callable(member) and not isinstance(member, staticmethod | classmethod)
        signature = "" if is_property else signature_of(getattr(cls, name))
        doc = inspect.getdoc(member) or ""
        found.append((name, signature, doc.split("\n\n")[0].replace("\n", " ")))
    return found


@cache
def public_classes() -> frozenset[type]:
    """The classes that have an entry of their own."""
    return frozenset(
        entry.value
        for _, modules in PAGES.values()
        for module in modules
        for entry in entries(module)
        if entry.is_class
    )


def _is_method(member: Any) -> bool:
    """Whether a member of a class is for programs: the records behind tensors and nodes are not."""
    from wengert.dispatch.overridable import Overridable, OverridableProperty

    if getattr(member, "__module__", None) in _RECORDS:
        return False
    kinds = (property, staticmethod, classmethod, Overridable, OverridableProperty)
    return inspect.isfunction(member) or isinstance(member, kinds)


def signature_of(value: Any) -> str:
    """The arguments as a program writes them, without annotations; empty where unknown."""
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return ""
    bare = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r"<([\w. ]+) at 0x\w+>|<class '([\w.]+)'>", r"\1\2", text)


def with_examples(doc: str) -> str:
    """A docstring as Markdown: its examples become blocks of code, double quotes single ones."""
    lines, inside = [], False
    for line in doc.splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line if inside else re.sub(r"``([^`]+)``", r"`\1`", line))
    return "\n".join([*lines, "```"] if inside else lines)


def page(key: str) -> str:
    """One page of the reference."""
    title, modules = PAGES[key]
    lines = [f"# {title}", ""]
    if key == "tensors":
        lines += ["Operators, and so most methods, have [their own page](../operators.md).", ""]
    for name in modules:
        module = module_named(name)
        full = "wengert" if name == "wengert" else f"wengert.{name}"
        lines += [f"## {full}", "", inspect.getdoc(module) or "", ""]
        for entry in entries(name):
            lines += _entry_text(full, entry)
    return "\n".join(lines) + "\n"


def _entry_text(module: str, entry: Entry) -> list[str]:
    kind = "class " if entry.is_class else ""
    signature = signature_of(entry.value)
    lines = [f"### {entry.name} {{ #{module}.{entry.name} }}", ""]
    lines += ["```python", f"{kind}{module}.{entry.name}{signature}", "```", ""]
    lines += [with_examples(entry.doc), ""]
    table = methods(entry.value) if entry.is_class else []
    if table:
        lines += ["| | |", "|---|---|"]
        lines += [
            f"| `{name}{signature}` | {_cell(doc)} |".replace("``", "`")
            for name, signature, doc in table
        ]
        lines.append("")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
