"""Python source as coloured HTML."""

import inspect
import io
import keyword
import textwrap
import tokenize
from collections.abc import Callable
from html import escape

KINDS = {tokenize.COMMENT: "comment", tokenize.STRING: "string", tokenize.NUMBER: "number"}


def source_of(*functions: Callable) -> str:
    """The sources of functions, one below the other, as the inside of a ``pre`` element."""
    return highlight("\n\n".join(textwrap.dedent(inspect.getsource(f)) for f in functions))


def highlight(source: str) -> str:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    pieces: list[str] = []
    done = 0
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = kind_of(token, previous)
        if kind:
            row, column = token.start
            start = starts[row - 1] + column
            pieces.append(escape(source[done:start], quote=False))
            pieces.append(f'<span class="{kind}">{escape(token.string, quote=False)}</span>')
            done = start + len(token.string)
        if token.string.strip():
            previous = token.string
    pieces.append(escape(source[done:].rstrip(), quote=False))
    return "".join(pieces)


def kind_of(token: tokenize.TokenInfo, previous: str) -> str | None:
    if token.type == tokenize.NAME:
        if keyword.iskeyword(token.string):
            return "keyword"
        return "name" if previous in ("def", "class") else None
    return KINDS.get(token.type)
