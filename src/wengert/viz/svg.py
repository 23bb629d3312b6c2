"""Pictures as SVG text, alone in a file or inside a page whose colours they take."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .layout import HEIGHT, Point, lay_out
from .pages import asset
from .recorded import RecordedGraph
from .views import HEIGHT as CARD_HEIGHT
from .views import View

MARGIN = 10


def draw(graph: RecordedGraph, label: str, vertical: bool = False) -> str:
    """A graph with its leaves first and its result last, for a page that has the colours."""
    layout = lay_out(graph, vertical)
    boxes = "".join(
        f'<g class="vertex {box.family}"><title>{escape(box.vertex.kind)}</title>'
        + _rectangle(box.x, box.y, box.width, HEIGHT, 5 if box.vertex.leaf is not None else 13)
        + f'<text x="{box.x:.1f}" y="{box.y:.1f}">{escape(box.text)}</text></g>\n'
        for box in layout.boxes
    )
    return _picture(boxes, layout.lines, layout.width, layout.height, label)


def draw_view(view: View, label: str) -> str:
    """One view of a folded graph as a file of its own, light or dark as the reader's screen."""
    cards = "".join(
        f'<g class="vertex {card.family}"><title>{escape(card.title)}</title>'
        + _rectangle(card.x, card.y, card.width, CARD_HEIGHT, 5 if card.family == "leaf" else 10)
        + f'<text x="{card.x:.1f}" y="{card.y - 7:.1f}">{escape(card.title)}</text>'
        f'<text class="sub" x="{card.x:.1f}" y="{card.y + 10:.1f}">{escape(card.subtitle)}</text>'
        "</g>\n"
        for card in view.cards
    )
    lines = [points for _, _, points in view.lines]
    # Inside a page the picture is as light or dark as the page, in a file of its own as the screen.
    scheme = "color-scheme: light dark;"
    colours = asset("colours.css").replace(":root", "svg.graph").replace(scheme, "")
    style = f"<style>{colours}{asset('picture.css')}svg.graph:root {{ {scheme} }}</style>\n"
    return _picture(style + cards, lines, view.width, view.height, label)


def path(points: list[Point]) -> str:
    """A line as the attribute ``d`` of a path: a start and three points per curve."""
    start, *curve = (f"{x:.1f} {y:.1f}" for x, y in points)
    return f"M{start}C{' '.join(curve)}"


def _picture(
    inside: str, lines: Iterable[list[Point]], width: float, height: float, label: str
) -> str:
    width, height = width + 2 * MARGIN, height + 2 * MARGIN
    drawn = "".join(f'<path d="{path(points)}"/>\n' for points in lines)
    return (
        f'<svg class="graph" role="img" aria-label="{escape(label)}" '
        f'viewBox="{-MARGIN} {-MARGIN} {width:.1f} {height:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" '
        f'xmlns="http://www.w3.org/2000/svg">\n<g class="edges">\n{drawn}</g>\n{inside}</svg>\n'
    )


def _rectangle(x: float, y: float, width: float, height: float, radius: float) -> str:
    return (
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height}" rx="{radius}"/>'
    )
