"""HTML from plain values: everything that is not `Html` is escaped, so no text can become code."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

VOID_ELEMENTS = {"br", "hr", "input", "link", "meta"}


class Html(str):
    """Markup that goes into the page without escaping."""

    __slots__ = ()


def element(tag: str, /, *children: str, **attributes: str | int | float | bool | None) -> Html:
    """Return `<tag attributes>children</tag>`; a child that is not `Html` is escaped.

    `class_` becomes the attribute class, and `data_x` becomes data-x. Attributes that are None or
    False are omitted; those that are True have no value.
    """
    given = "".join(
        f" {_attribute_name(key)}" + ("" if value is True else f'="{_escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID_ELEMENTS:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{concatenate(children)}</{tag}>")


def concatenate(children: Iterable[str]) -> Html:
    """Concatenate the children, and escape those that are text."""
    return Html("".join(c if isinstance(c, Html) else _escaped(c) for c in children))


def _attribute_name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _escaped(text: str) -> str:
    """Escape text, and replace what an HTML file must not contain: NUL and lone surrogates."""
    plain = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return html.escape(plain, quote=True)


def json_block(identifier: str, value: Any) -> Html:
    """Return data for the page's script; it contains no `<`, so no text in it can end the block."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Html(f'<script type="application/json" id="{_escaped(identifier)}">{safe}</script>')


def section(identifier: str, title: str, *children: str) -> Html:
    """Return a chapter of the page."""
    return element("section", element("h2", title), *children, id=identifier)


def placeholder(sentence: str) -> Html:
    """Return a sentence that says why there is nothing to show."""
    return element("p", sentence, class_="missing")


def note(sentence: str) -> Html:
    """Return a paragraph that explains the content next to it."""
    return element("p", sentence, class_="note")


def collapsible(summary: str, *children: str) -> Html:
    """Return content that is hidden until the reader clicks on the summary."""
    return element("details", element("summary", summary), *children)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> Html:
    """Return a table that scrolls by itself; columns after the first `text_columns` are numbers."""

    def cells(kind: str, values: Sequence[str]) -> Html:
        return element(
            "tr",
            *(
                element(kind, value, class_=None if n < text_columns else "number")
                for n, value in enumerate(values)
            ),
        )

    body = element("tbody", *(cells("td", row) for row in rows))
    top = element("thead", cells("th", head))
    return element("div", element("table", top, body), class_="scroll")


def settings_table(rows: Iterable[tuple[str, str]]) -> Html:
    """Return a table of names and values that breaks long lines."""
    cells = (
        element("tr", element("th", _breakable(key), scope="row"), element("td", value))
        for key, value in rows
    )
    return element("table", *cells, class_="settings")


def _breakable(name: str) -> Html:
    """Allow a line break after each dot and underscore of a name."""
    parts = re.split(r"(?<=[._])", name)
    return Html("<wbr>".join(concatenate([part]) for part in parts))


def definition_list(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return a list of names and values."""
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *rows, class_="facts")
