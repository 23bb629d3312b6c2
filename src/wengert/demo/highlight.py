"""Python source as coloured HTML."""

import inspect
import textwrap
from collections.abc import Callable

import pygments
from markupsafe import Markup
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


def source_of(*functions: Callable) -> Markup:
    """The sources of functions, one below the other, as the inside of a ``pre`` element."""
    source = "\n\n".join(textwrap.dedent(inspect.getsource(f)) for f in functions)
    return Markup(pygments.highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip())
