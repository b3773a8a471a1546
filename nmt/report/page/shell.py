"""The page around the chapters: one HTML file that needs no network."""

from collections.abc import Sequence
from pathlib import Path

from nmt.report.page.html import Html, concatenate, element

SECURITY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
"""with this policy the browser loads and sends nothing, even if a text became markup"""


def build_page(
    title: str, subtitle: str, chapters: Sequence[tuple[str, str, Html]], made: str
) -> str:
    """Return a complete HTML file; a chapter is its anchor, its short name and its section."""
    links = (element("a", name, href=f"#{anchor}") for anchor, name, _ in chapters)
    body = concatenate(
        [
            element("header", element("h1", title), element("p", subtitle)),
            element("nav", element("div", *links), aria_label="chapters"),
            element("main", *(section for _, _, section in chapters)),
            element("footer", made),
            element("script", Html(_asset("page.js"))),
        ]
    )
    head = concatenate(
        [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{SECURITY}">'),
            # without this link a browser would request an icon from the server
            element("link", rel="icon", href="data:,"),
            element("title", title),
            element("style", Html(_asset("page.css"))),
        ]
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">{element("head", head)}{element("body", body)}</html>\n'
    )


def _asset(name: str) -> str:
    """Read a file of this folder; none contains the end tag of a script or a style."""
    return Path(__file__).with_name(name).read_text("utf-8")
