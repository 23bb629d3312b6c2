"""The templates of the report, which lie beside this file."""

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

_environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1e3 * seconds:.1f} ms"


def formatted(value: Any, form: str) -> str:
    """What an f-string makes of a value."""
    return format(value, form)


_environment.filters.update(duration=duration, as_=formatted)


def render(template: str, **values: Any) -> Markup:
    """A template filled in; what is not `Markup` is escaped, and a missing value is an error."""
    return Markup(_environment.get_template(template).render(values))
