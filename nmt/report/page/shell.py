"""The page around the chapters: one file that asks nothing of any network."""

from collections.abc import Sequence
from pathlib import Path

from nmt.report.page.html import Html, element, joined

SECURITY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
"""even if a text were taken for markup, the browser would fetch nothing and send nothing"""


def page(title: str, subtitle: str, chapters: Sequence[tuple[str, str, Html]], made: str) -> str:
    """A whole HTML file; each chapter is its anchor, its short name and its section."""
    links = (element("a", name, href=f"#{anchor}") for anchor, name, _ in chapters)
    body = joined(
        [
            element("header", element("h1", title), element("p", subtitle)),
            element("nav", element("div", *links), aria_label="chapters"),
            element("main", *(section for _, _, section in chapters)),
            element("footer", made),
            element("script", Html(_asset("page.js"))),
        ]
    )
    head = joined(
        [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{SECURITY}">'),
            # without it a browser would ask the server for an icon
            element("link", rel="icon", href="data:,"),
            element("title", title),
            element("style", Html(_asset("page.css"))),
        ]
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">{element("head", head)}{element("body", body)}</html>\n'
    )


def _asset(name: str) -> str:
    """A file that stands beside this one; none holds what would end a script or a style."""
    return Path(__file__).with_name(name).read_text("utf-8")
