"""Writes what is derived from the declarations of operators into the tree.

    python tools/generate.py           writes the files that are stale
    python tools/generate.py --check   exits with 1 if one is

- `operators/names.py`: which module declares what, and which names are functions, methods or
  aliases, so that the import of the package need not import the modules.
- `docs/operators.md`: what is declared of each operator.
- `__init__.pyi`: the functions of the package with their arguments, for type checkers and editors.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import operator_facts

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "wengert"
NAMES = PACKAGE / "operators" / "names.py"
STUB = PACKAGE / "__init__.pyi"
PAGE = ROOT / "docs" / "operators.md"
#: What the package declares when it is imported; all other modules wait for their first use.
CORE = ("arithmetic", "copying")
MADE_BY = "Made by `make generate` from the declarations: do not edit."

# The names of operators --------------------------------------------------------------------------


def modules() -> dict[str, ModuleType]:
    """The modules that declare operators, by name: those that list public names."""
    found = {}
    for path in sorted((PACKAGE / "operators").glob("*.py")):
        if "\n__all__ = " in path.read_text():
            found[path.stem] = importlib.import_module(f"wengert.operators.{path.stem}")
    return found


def facts_of(value: Any) -> dict[str, Any]:
    return getattr(value, "facts", None) or {}


def names_text() -> str:
    """What `operators/names.py` should say."""
    from wengert.core.registry import operators

    found, declared = modules(), operators()
    listed = {name for module in found.values() for name in module.__all__}
    deferred: dict[str, list[str]] = {}
    aliases: dict[str, str] = {}
    functions: set[str] = set()
    methods: set[str] = set()
    numpy: dict[str, str] = {}
    for stem, module in found.items():
        names: list[str] = []
        for name in module.__all__:
            facts = facts_of(getattr(module, name))
            others = facts.get("also", "").split()
            aliases.update(dict.fromkeys(others, name))
            numpy.update(dict.fromkeys(facts.get("numpy", "").split(), name))
            public = facts.get("public", "function method")
            functions.update([name] if public in ("function", "") else [])
            methods.update([name] if public in ("method", "") else [])
            names += [name, *others]
            if name + "_" in declared and name + "_" not in listed:
                names += [each + "_" for each in (name, *others)]
        if stem not in CORE:
            deferred[stem] = sorted(names)
    parts = [
        f'"""{MADE_BY}\n\nWhich module declares which operators, and what is made of their names.\n'
        '"""\n\nfrom __future__ import annotations\n',
        "#: What each module that is imported on first use has; a last underscore: in place.",
        "DEFERRED: dict[str, tuple[str, ...]] = {",
        *[f'    "{stem}": {_tuple(names, 4)},' for stem, names in deferred.items()],
        "}  # fmt: skip",
        "#: Other names of functions and methods.",
        f"ALIASES = {_mapping(aliases)}",
        "#: What is no method of Tensor, and what is no function.",
        f"FUNCTIONS_ONLY = frozenset({_tuple(sorted(functions), 0)})  # fmt: skip",
        f"METHODS_ONLY = frozenset({_tuple(sorted(methods), 0)})  # fmt: skip",
        "#: Ours for the names of NumPy's ufuncs, where they differ.",
        f"NUMPY_NAMES = {_mapping(numpy)}",
    ]
    return "\n".join(parts) + "\n"


def _tuple(names: Iterable[str], indent: int) -> str:
    """A tuple of strings in as few lines as fit."""
    items = [f'"{name}"' for name in names]
    one = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if len(one) < 70 - indent:
        return one
    pad = " " * (indent + 4)
    return f"(\n{_filled(items, pad)}\n{' ' * indent})"


def _mapping(values: dict[str, str]) -> str:
    items = [f'"{key}": "{value}"' for key, value in sorted(values.items())]
    return f"{{\n{_filled(items, '    ')}\n}}  # fmt: skip"


def _filled(items: list[str], pad: str) -> str:
    glued = [item.replace(" ", "\0") for item in items]  # a pair stays on one line
    text = textwrap.fill(", ".join(glued) + ",", 100, initial_indent=pad, subsequent_indent=pad)
    return text.replace("\0", " ")


# The stub ----------------------------------------------------------------------------------------

_TYPES = {
    "Tensor": "Tensor",
    "Tensor?": "Tensor | None",
    "Tensor[]": "_Sequence[Tensor]",
    "Tensor?[]": "_Sequence[Tensor | None]",
    "int": "_int",
    "int[]": "_int | _Sequence[_int]",
    "float": "_float",
    "Scalar": "_Number",
    "bool": "_bool",
    "str": "str",
    "dtype": "dtype",
}


def stub_text() -> str:
    """What `__init__.pyi` should say."""
    import wengert

    imports, classes, values, functions = [], [], [], []
    for name in sorted(dir(wengert)):
        if name.startswith("_") and name not in ("__version__", "__compiled__"):
            continue
        value = getattr(wengert, name)
        if isinstance(value, ModuleType):
            imports.append(f"from . import {name} as {name}")
        elif isinstance(value, type) and type(value) is not type and name != value.__name__:
            values.append(f"{name} = {value.__name__}")
        elif isinstance(value, type) and type(value) is not type and not _defined(value):
            base = "Tensor" if name.endswith("Tensor") else "TypedStorage"
            classes.append(f"class {name}({base}): ...")
        elif isinstance(value, type):
            imports.append(f"from .{_home(value)} import {value.__name__} as {name}")
        elif callable(value):
            functions.append(_function(name, value))
        elif isinstance(value, wengert.dtype):
            values.append(f"{name}: dtype")
        else:
            kind = type(value).__name__
            plain = {"bool": "_bool", "float": "_float", "str": "str", "NoneType": "None"}
            plain["TorchVersion"] = "str"
            values.append(f"{name}: {plain.get(kind, kind)}")
    head = (
        f'"""{MADE_BY}"""\n\n# ruff: noqa\n'
        "from collections.abc import Sequence as _Sequence\nfrom typing import Any as _Any\n"
    )
    builtins = "\n".join(
        f"from builtins import {name} as _{name}" for name in ("bool", "complex", "float", "int")
    )
    number = "_Number = _int | _float | _complex\n"
    parts = [head + builtins, *imports, "", *classes, number, *values, "", *functions]
    return "\n".join(parts) + "\n"


def _defined(value: type) -> bool:
    """Whether a class is written down; those of tensors and storages of one type are made."""
    try:
        return bool(_home(value))
    except LookupError:
        return False


def _home(value: type) -> str:
    """The module that defines a class, below the package."""
    for name, module in list(sys.modules.items()):
        if name.startswith("wengert.") and vars(module).get(value.__name__) is value:
            source = getattr(module, "__file__", "") or ""
            if f"class {value.__name__}" in Path(source).read_text():
                return name.removeprefix("wengert.")
    raise LookupError(f"nobody defines {value}")


def _function(name: str, value: Any) -> str:
    """One function of the stub: an operator by its schema, another by its signature."""
    target = getattr(value, "function", value)
    if hasattr(target, "sizes_from"):
        return _by_effect(name, target)
    schema = getattr(value, "schema", None)
    if schema is not None:
        return _by_schema(name, schema)
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return f"def {name}(*args: _Any, **kwargs: _Any) -> _Any: ..."
    wrapped = getattr(target, "__wrapped__", None)
    if wrapped is not None and getattr(wrapped, "schema", None) is not None:
        return f"def {name}(input: _Any, *args: _Any, **kwargs: _Any) -> _Any: ..."
    parts = []
    star = False
    for parameter in signature.parameters.values():
        text = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = True
            parts.append(f"*{text}: _Any")
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{text}: _Any")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        default = "" if parameter.default is parameter.empty else " = ..."
        parts.append(f"{text}: {_annotation(parameter.annotation)}{default}")
    returns = _annotation(signature.return_annotation)
    return f"def {name}({', '.join(parts)}) -> {returns}: ..."


def _by_effect(name: str, effect: Any) -> str:
    """A function that makes or draws; its sizes may be given one by one."""
    if not effect.overloads:
        return f"def {name}(*args: _Any, **kwargs: _Any) -> Tensor: ..."
    parts = []
    for overload in effect.overloads[:1]:
        for argument in overload.schema.arguments:
            word = "input" if argument.name == "self" else argument.name
            if argument.keyword_only or argument.name == "size":
                break
            if len(effect.overloads) == 1:
                parts.append(f"{word}: {_TYPES.get(argument.type, '_Any')}")
    return f"def {name}({', '.join([*parts, '*size: _Any', '**options: _Any'])}) -> Tensor: ..."


def _annotation(annotation: Any) -> str:
    """An annotation as the stub can say it; what it cannot name is anything."""
    known = {"Tensor": "Tensor", "Tensor | None": "Tensor | None", "bool": "_bool", "int": "_int"}
    return known.get(annotation if isinstance(annotation, str) else "", "_Any")


def _by_schema(name: str, schema: Any) -> str:
    parts = []
    star = False
    for argument in schema.arguments:
        kind = _TYPES.get(argument.type) or _TYPES.get(argument.type.rstrip("?"), "_Any")
        if argument.type == "Tensor" and argument.name == "other":
            kind = "Tensor | _Number"
        if argument.type.endswith("?") and not kind.endswith("None") and kind != "_Any":
            kind += " | None"
        if argument.keyword_only and not star:
            star = True
            parts.append("*")
        required = repr(argument.default) == "<required>"
        word = "input" if argument.name == "self" else argument.name
        parts.append(f"{word}: {kind}{'' if required else ' = ...'}")
    if not star:
        parts.append("*")
    parts.append("out: _Any = ...")
    returns = "Tensor" if len(schema.returns) == 1 and "[" not in schema.returns[0] else "_Any"
    return f"def {name}({', '.join(parts)}) -> {returns}: ..."


# The page ----------------------------------------------------------------------------------------

_COLUMNS = (
    "operator", "family", "kernel", "gradient", "double", "forward mode", "batching", "complex",
    "in place", "view", "native", "other names",
)  # fmt: skip
_LEGEND = """\
What is declared of each operator; no cell is empty. A dimension in the name of an operator is that
of PyTorch's overload.

- **kernel**: what computes it on arrays. A composite is made of operators, and has what these have.
- **gradient**: the arguments that have a rule. **double**: rules are written in operators, so
  second derivatives are derived from them. `not differentiable`: the result carries no gradient.
- **forward mode**: derived from the gradient's rule, or a rule of its own.
- **batching**: by the rule for broadcasting operators, by a rule of its own, or by a loop over the
  examples, which warns.
- **complex**: whether complex numbers are taken; `by its kernel` where other arguments decide.
- **native**: what compiled graphs make of it: a view, a loop over its scalar form, or else the
  loops that its kernel consists of, and a call of the operator where it has others.
"""


def page_text() -> str:
    """What `docs/operators.md` should say: a row for each operator and each composite."""
    from wengert.core.registry import operators

    found, declared = modules(), operators()
    rows = {}
    for name, operator in declared.items():
        if not operator.mutates and not name.startswith("_"):
            rows[name] = _row(name, operator, name + "_" in declared)
    for module in found.values():
        for name in module.__all__:
            value = getattr(module, name)
            if name not in declared and not hasattr(value, "schema"):
                others = facts_of(value).get("also", "").replace(" ", ", ") or "none"
                inplace = f"`{name}_`" if name + "_" in declared else "none"
                rows[name] = [
                    f"`{name}`", "composite", "its operators'", *["as its operators"] * 5, inplace,
                    *["as its operators"] * 2, others,
                ]  # fmt: skip
    lines = [
        "# Operators",
        "",
        f"<!-- {MADE_BY} -->",
        _LEGEND,
        "| " + " | ".join(_COLUMNS) + " |",
        "|" + "---|" * len(_COLUMNS),
        *["| " + " | ".join(rows[name]) + " |" for name in sorted(rows)],
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, operator: Any, has_inplace: bool) -> list[str]:
    names = [operator.schema.arguments[i].name for i in operator.grad_positions]
    without = "not differentiable"
    if operator.family == "primitive":
        forward = "rule" if operator.jvp_rule is not None else "none"
    else:
        forward = "derived"
    if operator.batch_rule is None:
        batching = "loop"
    else:
        batching = "broadcasting" if operator.broadcasts else "rule"
    return [
        f"`{name}`",
        operator.family,
        operator_facts.kernel(operator),
        ", ".join(names) or without,
        "derived" if names else without,
        forward if names else without,
        batching,
        operator_facts.complex_numbers(operator),
        f"`{name}_`" if has_inplace else "none",
        "yes" if operator.is_view else "no",
        operator_facts.native(operator),
        operator.facts.get("also", "").replace(" ", ", ") or "none",
    ]


def stale() -> dict[Path, str]:
    """The files that do not say what they should, with what that is."""
    wanted = {NAMES: names_text(), STUB: stub_text(), PAGE: page_text()}
    return {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text() != text
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="say what is stale, write nothing")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    if not options.check and NAMES.read_text() != (names := names_text()):
        NAMES.write_text(names)
        print(f"written: {NAMES.relative_to(ROOT)}")
        # What the package has by these names is seen by another interpreter.
        return subprocess.run([sys.executable, __file__], check=False).returncode
    found = stale()
    for path, text in found.items():
        print(("stale: " if options.check else "written: ") + str(path.relative_to(ROOT)))
        if not options.check:
            path.write_text(text)
    return 1 if found and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
