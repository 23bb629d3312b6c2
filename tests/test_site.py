"""The site: every public name is documented, every page is in the navigation, and it builds."""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wengert

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "tools"))

import reference  # noqa: E402

NAVIGATION = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]


def test_every_public_name_is_documented():
    assert reference.undocumented() == []


def test_every_public_module_is_in_the_reference():
    modules = {name for name in dir(wengert) if inspect.ismodule(getattr(wengert, name))}
    listed = {name.partition(".")[0] for _, names in reference.PAGES.values() for name in names}
    assert modules - listed == set(reference.LEFT_OUT)


@pytest.mark.parametrize("key", reference.PAGES)
def test_pages_of_the_reference_list_every_name_once(key):
    text = reference.page(key)
    headings = re.findall(r"^### (\w+) \{ #([\w.]+) \}$", text, re.MULTILINE)
    expected = [
        entry.name for module in reference.PAGES[key][1] for entry in reference.entries(module)
    ]
    assert [name for name, _ in headings] == expected
    assert len({anchor for _, anchor in headings}) == len(headings)
    assert text.count("\n```") % 2 == 0
    assert " at 0x" not in text


def test_examples_of_docstrings_become_blocks():
    text = reference.with_examples("Say ``this``.\n\n>>> 1 + 1\n2\n\nMore.")
    assert text == "Say `this`.\n\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."


def test_every_page_is_in_the_navigation():
    pages = {path.name for path in (REPOSITORY / "docs").glob("*.md")}
    pages |= {f"api/{key}.md" for key in reference.PAGES}
    listed = re.findall(r": ([\w/-]+\.md)$", NAVIGATION, re.MULTILINE)
    assert sorted(listed) == sorted(pages)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    pytest.importorskip("material")
    pytest.importorskip("pygraphviz")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "-q", "-d", folder]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.full
def test_the_site_is_built_without_a_warning_and_fetches_nothing(site):
    assert '<div class="drawing"><svg' in (site / "index.html").read_text(encoding="utf-8")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe)[^>]* src="(https?:[^"]*)"', text)
        fetched += re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="(https?:[^"]*)"', text)
        assert not fetched, page
    assert (site / "pictures" / "graph.html").exists()


@pytest.mark.full
def test_the_site_can_be_searched_from_its_files(site):
    pytest.importorskip("playwright")
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium, to open pages with, is not installed")
    troubles: list[str] = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: r.url.startswith("http") and troubles.append(r.url))
        page.goto((site / "first-gradient.html").as_uri())
        page.wait_for_load_state("networkidle")
        page.keyboard.press("f")
        page.keyboard.type("checkpoint")
        page.wait_for_selector(".md-search-result__item")
        assert "Saved tensors and memory" in page.inner_text(".md-search-result__list")
        page.goto((site / "gallery.html").as_uri())
        page.frame_locator("iframe[title]").locator("#scene .vertex").first.wait_for()
        browser.close()
    assert troubles == []
