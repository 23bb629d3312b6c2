"""The pages in a browser: they open, fold, zoom, search and answer, and report no error."""

import shutil

import pytest

pytest.importorskip("pygraphviz")
pytest.importorskip("playwright")

from playwright.sync_api import sync_playwright

from viz.models import GPT, tokens
from wengert import viz

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    model, batch = GPT(), tokens()
    viz.graph(model, batch).save(folder / "graph.html")
    viz.memory(model, batch).save(folder / "memory.html")
    viz.profile(lambda: model(*batch).backward()).save(folder / "profile.html")
    return folder


@pytest.fixture
def visit(browser, pages):
    """Opens a page; whatever it logs or fetches fails the test."""
    troubles = []
    context = browser.new_context(viewport={"width": 1200, "height": 800})

    def opened(name):
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        address = (pages / name).as_uri()
        page.on("request", lambda r: r.url == address or troubles.append(r.url))
        page.goto(address)
        return page

    yield opened
    context.close()
    assert troubles == []


def targets(page):
    return page.eval_on_selector_all("#scene .vertex", "all => all.map((e) => e.dataset.target)")


def test_a_large_graph_opens_folded(visit):
    page = visit("graph.html")
    page.wait_for_selector("#scene .vertex")
    assert len(targets(page)) < 30


def test_groups_open_and_close(visit):
    page = visit("graph.html")
    whole = targets(page)
    page.click(".vertex.group")
    assert "h.0 … h.11" in page.inner_text("#path")
    assert targets(page) != whole
    page.locator("#scene .vertex.group").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#path button").count() == 3
    page.keyboard.press("Escape")
    page.click("#path button >> nth=0")
    assert targets(page) == whole


def test_search_finds_a_parameter_and_its_path_to_the_loss(visit):
    page = visit("graph.html")
    page.keyboard.press("/")
    page.keyboard.type("h.3.attn.qkv.weight")
    assert page.locator("#results button").first.inner_text().startswith("h.3.attn.qkv.weight")
    page.keyboard.press("Enter")
    assert page.inner_text("#details h2") == "h.3.attn.qkv.weight"
    assert page.locator(".vertex.chosen").count() == 1
    page.click("#trace")
    assert page.locator("#picture.tracing .vertex.on").count() > 5
    assert page.locator("#picture.tracing .vertex:not(.on)").count() > 0
    page.click("#path button >> nth=0")
    on = page.eval_on_selector_all(".vertex.on", "all => all.map((e) => e.ariaLabel)")
    assert "NllLoss" in on and "tok.weight" not in on
    page.fill("#search", "no such thing")
    assert page.inner_text("#results") == "nothing found"


def test_click_shows_what_a_node_is(visit):
    page = visit("graph.html")
    page.click("#scene .vertex.function")
    details = page.inner_text("#details")
    assert "LogSoftmaxBackward0" in details and "models.py" in details
    assert "Saved for backward" in details and "12.50 KB" in details
    page.click("#details h3:has-text('From') + ul button")
    assert "ViewBackward0" in page.inner_text("#details")


def test_zoom_pan_and_fit(visit):
    page = visit("graph.html")
    camera = "document.querySelector('#scene').getAttribute('transform')"
    fitted = page.evaluate(camera)
    page.mouse.move(400, 400)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"{camera} !== {fitted!r}")
    zoomed = page.evaluate(camera)
    page.mouse.move(60, 600)
    page.mouse.down()
    page.mouse.move(160, 640, steps=4)
    page.mouse.up()
    assert page.evaluate(camera) not in (zoomed, fitted)
    page.click("#in")
    page.click("#out")
    page.click("#fit")
    assert page.evaluate(camera) == fitted


def test_dark_and_light(visit):
    page = visit("graph.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != light
    assert page.inner_text("#theme") == "Light"


def test_the_page_of_memory(visit):
    page = visit("memory.html")
    assert "held for backward" in page.inner_text("#sum")
    assert "12" in page.inner_text("#advice tr:has(code:text-is('Block'))")
    rows = page.locator("#lines tr:visible").count()
    page.fill("#search", "softmax")
    assert page.locator("#lines tr:visible").count() < rows


def test_the_flame_chart(visit):
    page = visit("profile.html")
    before = page.get_attribute("#flames", "data-to")
    box = page.locator("#flames").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 10)
    page.mouse.wheel(0, -600)
    page.wait_for_function(f"document.querySelector('#flames').dataset.to !== {before!r}")
    page.dblclick("#flames")
    assert page.get_attribute("#flames", "data-to") == before
    page.fill("#search", "Softmax")
    assert "aten::" in page.inner_text("#sums")
    page.click("#theme")
