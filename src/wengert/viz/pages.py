"""Pages that stand alone: a template with its style, its script and its data inside."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "assets"


@cache
def asset(name: str) -> str:
    """The text of a file that lies beside this module."""
    return (FOLDER / name).read_text("utf-8")


def page(name: str, title: str, data: Any) -> str:
    """The page `name` with its data; nothing on it is fetched from elsewhere."""
    # In a script element only `</` and `<!--` could end the text early.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    parts = {
        "TITLE": escape(title),
        "STYLE": "".join(
            asset(f"{part}.css") for part in ("colours", "picture", "page", name)
        ),
        "DATA": text,
        "SCRIPT": asset("page.js") + asset(f"{name}.js"),
        "BODY": asset(f"{name}.html"),
    }
    written = asset("page.html")
    # The body first, since it has places of its own; the data last, since it may have anything.
    for key in ("BODY", "TITLE", "STYLE", "SCRIPT", "DATA"):
        written = written.replace(f"@{key}@", parts[key])
    return written


def frame(text: str, height: int) -> str:
    """A page inside a notebook's."""
    return (
        f'<iframe srcdoc="{escape(text)}" style="width:100%;height:{height}px;border:0" '
        'sandbox="allow-scripts"></iframe>'
    )


def write(path: str | Path, texts: dict[str, Any]) -> Path:
    """Write the text that belongs to the ending of a path, made by a function."""
    target = Path(path)
    if target.suffix not in texts:
        endings = ", ".join(texts)
        raise ValueError(f"save(): the path must end in one of {endings}, not {target.name!r}")
    target.write_text(texts[target.suffix](), "utf-8")
    return target
