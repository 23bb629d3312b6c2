"""Reading HTML pages that were written: balanced, with what they refer to."""

from html.parser import HTMLParser

VOID_ELEMENTS = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that elements are balanced and collects ids, classes and references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.classes: set[str] = set()
        self.references: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)
        self.handle_startendtag(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name == "class":
                self.classes.update(value.split())
            elif name in ("src", "href", "xlink:href"):
                self.references.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
