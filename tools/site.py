"""What the site has beyond the pages in docs/: the reference, and pictures that pages draw.

MkDocs calls these functions while it builds, see mkdocs.yml. A page that draws runs once, block by
block, as it does in the tests; a block whose last line is a drawing is followed by the picture.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

sys.path.insert(0, str(ROOT / "tools"))

import reference  # noqa: E402


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the reference."""
    for key in reference.PAGES:
        files.append(File.generated(config, f"api/{key}.md", content=reference.page(key)))
    for name, text in pictures().items():
        files.append(File.generated(config, f"pictures/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Put the pictures that a page draws behind the blocks that draw them."""
    name = page.file.src_uri
    draws = "viz.graph(" in markdown and not name.startswith("api/")
    return drawn(markdown, name) if draws else markdown


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Take the theme's one script from elsewhere, which lets files be searched, from here."""
    here = get_relative_url("offline-worker.js", page.url)
    return output.replace("https://unpkg.com/iframe-worker/shim", here)


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The page for missing pages lies at the top, as the script does."""
    return output_content.replace("https://unpkg.com/iframe-worker/shim", "offline-worker.js")


def pictures() -> dict[str, str]:
    """The pages that the gallery shows, by the names of their files."""
    path = ROOT / "examples" / "pictures.py"
    spec = importlib.util.spec_from_file_location("examples_pictures", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    with tempfile.TemporaryDirectory() as folder:
        example.draw(Path(folder))
        return {file.name: file.read_text("utf-8") for file in Path(folder).iterdir()}


def drawn(markdown: str, name: str) -> str:
    """A page with its pictures: its blocks are run in order."""
    namespace: dict[str, Any] = {"__name__": name}

    def with_picture(block: re.Match[str]) -> str:
        picture = picture_of(block[1], name, namespace)
        return block[0] if picture is None else f"{block[0]}\n\n{picture}\n"

    return BLOCK.sub(with_picture, markdown)


def picture_of(code: str, name: str, namespace: dict[str, Any]) -> str | None:
    """Run a block; what its last line draws, if it is an expression that can be drawn."""
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if not isinstance(last, ast.Expr):
                exec(compile(tree, name, "exec"), namespace)
                return None
            exec(compile(ast.Module(tree.body[:-1], []), name, "exec"), namespace)
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        except Exception:  # a block that shows an error; the tests compare which
            return None
    svg = getattr(value, "svg", None)
    # A blank line would end the element for Markdown.
    return None if svg is None else f'<div class="drawing">{re.sub(chr(10) + "+", "", svg())}</div>'
