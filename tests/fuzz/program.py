"""A program is a list of steps, and a step is Python source that runs on either library.

`torch` in the source is whichever library runs it. Helpers that programs may call are defined in
`HELPERS`; a printed program contains the ones it uses, and so stands alone.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap

HELPERS = {
    "seen": """
        def seen(*tensors):
            return [None if t is None else t.tolist() for t in tensors]
    """,
    "weigh": """
        def weigh(y):
            if isinstance(y, (tuple, list)):
                return sum(weigh(part) for part in y)
            y = torch.view_as_real(y) if y.is_complex() else y
            weights = torch.linspace(0.5, 1.5, y.numel(), dtype=torch.float64)
            return (y.sin() * weights.reshape(y.shape).to(y.dtype)).sum()
    """,
    "derivatives": """
        def derivatives(y, xs, order):
            found = []
            for _ in range(order):
                y = [part for part in (y if isinstance(y, (tuple, list)) else [y])
                     if part.requires_grad]
                gs = [torch.zeros_like(x) for x in xs]
                if y:
                    gs = torch.autograd.grad(
                        weigh(y), xs, create_graph=True, materialize_grads=True
                    )
                found += gs
                y = gs
            return found
    """,
    "tangent": """
        def tangent(x):
            # Nowhere zero, which one library may miss by a rounding error.
            steps = torch.linspace(-0.937, 1.061, x.numel(), dtype=torch.float64)
            return steps.reshape(x.shape).to(x.dtype)
    """,
    "compiled": """
        def compiled(f):
            return torch.compile(f) if torch.__name__ == "wengert" else f
    """,
    "compilations": """
        def compilations(f):
            return max(1, len(f.compilations)) if torch.__name__ == "wengert" else 1
    """,
    "cond": """
        def cond(condition, yes, no, operands):
            if torch.__name__ == "wengert":
                return torch.compiler.cond(condition, yes, no, operands)
            return yes(*operands) if condition else no(*operands)
    """,
    "while_loop": """
        def while_loop(condition, body, carried):
            if torch.__name__ == "wengert":
                return torch.compiler.while_loop(condition, body, carried)
            while condition(*carried):
                carried = body(*carried)
            return carried
    """,
    "scan": """
        def scan(combine, carried, rows, reverse=False):
            if torch.__name__ == "wengert":
                return torch.compiler.scan(combine, carried, rows, reverse=reverse)
            made = []
            for row in reversed(rows) if reverse else rows:
                carried, result = combine(carried, row)
                made.append(result)
            return carried, torch.stack(made[::-1] if reverse else made)
    """,
    "map_rows": """
        def map_rows(f, rows):
            if torch.__name__ == "wengert":
                return torch.compiler.map(f, rows)
            return torch.stack([f(row) for row in rows])
    """,
    "vmap": """
        def vmap(f, in_dims=0, out_dims=0):
            return torch.func.vmap(f, in_dims, out_dims)
    """,
    "jacobian": """
        def jacobian(f):
            return torch.func.jacrev(f)
    """,
    "linearized": """
        def linearized(f, x):
            return torch.func.linearize(f, x)[1](tangent(x))
    """,
    "sampled": """
        def sampled(name):
            from operators.samples import BY_NAME

            return BY_NAME[name].resolve(torch)
    """,
    "checkpoint": """
        def checkpoint(f, *args):
            from importlib import import_module

            utils = import_module(torch.__name__ + ".utils.checkpoint")
            return utils.checkpoint(f, *args, use_reentrant=False)
    """,
}
HELPERS = {name: textwrap.dedent(source).strip() for name, source in HELPERS.items()}
WORDS = {name: re.compile(rf"\b{name}\b") for name in HELPERS}


#: The names that a line gives to values.
ASSIGNED = re.compile(r"((?:\w+, )*\w+) = ")


@functools.lru_cache(maxsize=20000)
def _compiled(source: str):
    """The code of a step: definitions and the like are there in many programs."""
    return compile(source, "<step>", "exec")


class Step:
    """One top-level statement, or a few that belong together, as source."""

    def __init__(self, source: str) -> None:
        self.source = source

    @functools.cached_property
    def code(self):
        return _compiled(self.source)

    @functools.cached_property
    def targets(self) -> list[str]:
        """Names that the step assigns at its top level, `with` blocks included."""
        if "\n" not in self.source:
            names = ASSIGNED.match(self.source)
            return names[1].split(", ") if names else []
        return [name for name in _assigned(ast.parse(self.source).body) if name not in HELPERS]

    def __repr__(self) -> str:
        return self.source


def _assigned(body):
    for node in body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from (part.id for part in parts if isinstance(part, ast.Name))
        elif isinstance(node, (ast.With, ast.For, ast.If, ast.Try)):
            yield from _assigned(node.body)


class Program:
    """Steps, and whether they are run on PyTorch too."""

    def __init__(self, steps: list[Step], ours: bool = False) -> None:
        self.steps = steps
        self.ours = ours

    @functools.cached_property
    def text(self) -> str:
        return "\n".join(step.source for step in self.steps)

    def uses(self, *names: str) -> bool:
        """Whether any of the words stands in the source."""
        return any(re.search(rf"\b{name}\b", self.text) for name in names)

    def helpers(self) -> list[str]:
        """The source of the helpers that it needs, and of those that they need."""
        needed, text = [], self.text
        for _ in range(2):
            needed = [name for name in HELPERS if WORDS[name].search(text)]
            text = "\n".join([self.text, *(HELPERS[name] for name in needed)])
        return [HELPERS[name] for name in needed]

    def printed(self, library: str = "wengert") -> str:
        """The program as a script, with the helpers that it needs."""
        head = [f"import {library} as torch", ""]
        if self.uses("log"):
            head.append("log = []")
        return "\n".join([*head, *(helper + "\n" for helper in self.helpers()), self.text])
