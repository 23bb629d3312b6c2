"""The notebooks are those of their pages, and run."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("jupytext")

import nbformat

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "tools"))

import notebooks  # noqa: E402


def test_there_is_a_notebook_for_each_page():
    assert {path.stem for path in notebooks.FOLDER.glob("*.ipynb")} == set(notebooks.PAGES)


@pytest.mark.parametrize("name", notebooks.PAGES)
def test_a_notebook_is_that_of_its_page(name):
    """`make generate` writes them anew."""
    written = (notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert written == notebooks.notebook(name)
    cells = nbformat.reads(written, as_version=4).cells
    assert sum(cell.cell_type == "code" for cell in cells) >= 5
    assert not any("```" in cell.source for cell in cells if cell.cell_type == "code")


@pytest.mark.full
@pytest.mark.parametrize("name", notebooks.PAGES)
def test_a_notebook_runs(name):
    pytest.importorskip("pygraphviz")
    client = pytest.importorskip("nbclient")
    notebook = nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4)
    client.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert shown
    if name == "how-autograd-works":
        drawn = [each for each in shown if "image/svg+xml" in each.get("data", {})]
        assert len(drawn) >= 3 and all("text/html" in each["data"] for each in drawn)
