"""Makes notebooks of three pages: `python tools/notebooks.py` writes them into notebooks/.

Blocks of Python become cells. Results that a page shows are left out: running a cell shows them.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "notebooks"
PAGES = ("first-gradient", "how-autograd-works", "memory")
RESULT = re.compile(r"^```text\n.*?^```\n\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([\w/.-]+\.md)")


def notebook(name: str) -> str:
    """The notebook of a page, as text; its links lead to the pages."""
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    text = LINK.sub(r"](../docs/\1", RESULT.sub("", page))
    made = jupytext.reads(text, fmt="md")
    for number, cell in enumerate(made.cells):
        cell["id"] = f"{name}-{number}"  # else every run would name them anew
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return nbformat.writes(made, version=4, indent=1) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in PAGES:
        (FOLDER / f"{name}.ipynb").write_text(notebook(name), encoding="utf-8")


if __name__ == "__main__":
    main()
