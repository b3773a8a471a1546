"""HTML from plain values: whatever is no markup yet is escaped, so that no text can become code."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

VOID = {"br", "hr", "input", "link", "meta"}


class Html(str):
    """Markup, safe to be put into a page as it is."""

    __slots__ = ()


def element(tag: str, /, *children: str, **attributes: str | int | float | bool | None) -> Html:
    """`<tag attributes>children</tag>`; a child that is no `Html` is text.

    `class_` is the attribute class and `data_x` is data-x; one that is None or False is left out,
    and True stands alone.
    """
    given = "".join(
        f" {_attribute_name(key)}" + ("" if value is True else f'="{_escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{joined(children)}</{tag}>")


def joined(children: Iterable[str]) -> Html:
    """One after the other, text escaped."""
    return Html("".join(c if isinstance(c, Html) else _escaped(c) for c in children))


def _attribute_name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _escaped(text: str) -> str:
    """Also without the characters that no HTML file may hold: NUL and lone surrogates."""
    plain = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return html.escape(plain, quote=True)


def json_block(identifier: str, value: Any) -> Html:
    """Data for the page's script; no text in it can end the block, for it holds no `<`."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Html(f'<script type="application/json" id="{_escaped(identifier)}">{safe}</script>')


def section(identifier: str, title: str, *children: str) -> Html:
    """A chapter of the page."""
    return element("section", element("h2", title), *children, id=identifier)


def missing(sentence: str) -> Html:
    """Why there is nothing to show."""
    return element("p", sentence, class_="missing")


def note(sentence: str) -> Html:
    """What one needs to know to read what stands beside it."""
    return element("p", sentence, class_="note")


def folded(summary: str, *children: str) -> Html:
    """Shown on a click."""
    return element("details", element("summary", summary), *children)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> Html:
    """A table that scrolls by itself where it is too wide; after `text_columns`, numbers."""

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


def settings(rows: Iterable[tuple[str, str]]) -> Html:
    """Names and values of a machine, in a table that breaks long values."""
    cells = (
        element("tr", element("th", _breakable(key), scope="row"), element("td", value))
        for key, value in rows
    )
    return element("table", *cells, class_="settings")


def _breakable(name: str) -> Html:
    """A long name may go on in the next line behind a dot or an underscore."""
    parts = re.split(r"(?<=[._])", name)
    return Html("<wbr>".join(joined([part]) for part in parts))


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names and values."""
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *rows, class_="facts")
