"""The documentation runs: every example in the pages and docstrings, every link, every path."""

import ast
import contextlib
import doctest
import inspect
import io
import linecache
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wengert.core.registry import operators

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "wengert"
DOCS, TOOLS = REPOSITORY / "docs", REPOSITORY / "tools"
GUIDES = ("CONTRIBUTING.md", "CHANGELOG.md", "README.md")
PAGES = [
    *[REPOSITORY / name for name in GUIDES if (REPOSITORY / name).exists()],
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RAISES = re.compile(r"(\w+(?:Error|Warning)): (.*)", re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
SOURCE_PATH = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|pyx|pxd))`")
#: What tools/site.py adds to the pages; building the site checks these links.
GENERATED = re.compile(r"api/\w+\.md|pictures/\w+\.html")
COMPARISON = re.compile(r"^\| `(\w+)` \| `(.+?)` \| `(.+?)` \|$", re.MULTILINE)
DIFFERENCES = REPOSITORY / "docs" / "differences.md"
MOST_MET = 20


class Example(NamedTuple):
    """A Python block, its line in the page, and the text block after it, its output or error."""

    line: int
    code: str
    expected: str | None


def examples(page: Path) -> list[Example]:
    """The Python blocks of a page; a text block counts as a result only if nothing is between."""
    text = page.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    found = []
    for i, block in enumerate(blocks):
        if block[1] != "python":
            continue
        after = blocks[i + 1] if i + 1 < len(blocks) else None
        follows = (
            after is not None
            and after[1] == "text"
            and not text[block.end() : after.start()].strip()
        )
        line = text.count("\n", 0, block.start()) + 2
        found.append(Example(line, block[2], after[2] if after is not None and follows else None))
    return found


def run(page: Path, example: Example, namespace: dict[str, Any]) -> str:
    """Execute an example as part of its page, so that errors name the page and its line."""
    code = compile("\n" * (example.line - 1) + example.code, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def agrees(shown: str, actual: str) -> bool:
    """Whether the parts of `shown` between its dots occur in `actual` in this order."""
    position = 0
    actual = " ".join(actual.split())
    for part in shown.split("..."):
        words = " ".join(part.split())
        position = actual.find(words, position)
        if position < 0:
            return False
        position += len(words)
    return True


def check(page: Path, example: Example, namespace: dict[str, Any]) -> None:
    """Run an example and compare what it raises or prints with what the page shows."""
    where = f"{page.name}:{example.line}"
    raises = RAISES.match(example.expected or "")
    if raises is None:
        printed = run(page, example, namespace)
        if example.expected is not None:
            assert printed == example.expected, f"{where} prints something else"
        return
    try:
        run(page, example, namespace)
    except Exception as error:
        assert type(error).__name__ == raises[1], f"{where} raises {error!r}"
        assert agrees(raises[2], str(error)), f"{where} says: {error}"
    else:
        pytest.fail(f"{where} raises nothing")


@pytest.fixture
def no_operator_stays():
    """Removes the operators that a page declares: other tests look at all there are."""
    known = set(operators())
    yield
    for name in set(operators()) - known:
        del operators()[name]


@pytest.mark.usefixtures("no_operator_stays")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_run_in_order(page):
    linecache.checkcache(str(page))
    namespace: dict[str, Any] = {"__name__": page.stem}
    for example in examples(page):
        check(page, example, namespace)


def test_the_page_of_errors_is_complete():
    shown = [example.expected for example in examples(REPOSITORY / "docs" / "errors.md")]
    messages = [text for text in shown if text is not None]
    assert len(messages) >= MOST_MET
    assert len(set(messages)) == len(messages)


def outcome(program: Callable[[Any], Any], lib: Any) -> str:
    """What a program of the page of differences returns or raises under one library."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(program(lib))
    except Exception as error:
        return type(error).__name__


def test_differences_are_as_described(lib):
    namespace: dict[str, Any] = {}
    for example in examples(DIFFERENCES):
        run(DIFFERENCES, example, namespace)
    rows = COMPARISON.findall(DIFFERENCES.read_text(encoding="utf-8"))
    programs = [name for name, value in namespace.items() if inspect.isfunction(value)]
    assert [name for name, _, _ in rows] == programs
    column = 1 if lib.__name__ == "wengert" else 2
    shown = {row[0]: row[column] for row in rows}
    assert {name: outcome(namespace[name], lib) for name in programs} == shown


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page have, on the site as on GitHub."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    missing = []
    for link, anchor in LINK.findall(prose):
        if ":" in link or GENERATED.fullmatch(link):
            continue
        target = page.parent / link if link else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append((link, anchor))
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_source_files_that_a_page_names_exist(page):
    named = set(SOURCE_PATH.findall(page.read_text(encoding="utf-8")))
    roots = (PACKAGE, REPOSITORY)
    ours = [name for name in named if not name.startswith("torch/")]
    assert not [name for name in ours if not any((root / name).is_file() for root in roots)]


def docstring_examples() -> Iterator[Any]:
    """A parameter per docstring with examples, found in the source: compiled code has them too."""
    parser = doctest.DocTestParser()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ">>>" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            doc = ast.get_docstring(node)
            if doc is None or ">>>" not in doc:
                continue
            name = f"{path.relative_to(PACKAGE).as_posix()}:{getattr(node, 'name', 'module')}"
            line = node.body[0].lineno - 1
            yield pytest.param(parser.get_doctest(doc, {}, name, str(path), line), id=name)


@pytest.mark.parametrize("example", list(docstring_examples()))
def test_examples_in_docstrings(example):
    report = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(example, out=report.write)
    assert not report.getvalue(), report.getvalue()


def test_gallery_shows_what_its_tool_draws():
    """Drawing takes as long as the examples do, so this compares names."""
    drawn = re.findall(r"^@draws\ndef (\w+)", (TOOLS / "gallery.py").read_text("utf-8"), re.M)
    shown = re.findall(r"\]\(gallery/(\w+)\.svg\)", (DOCS / "gallery.md").read_text("utf-8"))
    assert sorted(shown) == sorted(drawn)
    assert sorted(path.stem for path in (DOCS / "gallery").iterdir()) == sorted(drawn)
    assert all((REPOSITORY / "examples" / f"{name}.py").exists() for name in drawn)
