"""Text never becomes markup."""

import json
from html.parser import HTMLParser

import pytest

from nmt.report.page.html import (
    Html,
    collapsible,
    concatenate,
    element,
    json_block,
    settings_table,
    table,
)

HOSTILE_TEXTS = [
    "<script>alert(1)</script>",
    "</script><b>",
    "\" onclick='x'",
    "&amp; <!-- ]]>",
    "</style>",
]


class Reader(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_text_is_escaped_in_every_element(text: str) -> None:
    for made in (
        element("p", text),
        concatenate(["", text]),
        collapsible(text),
        table([text], [[text]]),
    ):
        assert read(made).text.startswith(text)
        assert not {"script", "b", "style"} & set(read(made).tags)
    assert read(settings_table([("key", text)])).text == f"key{text}"


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_text_is_escaped_in_attributes(text: str) -> None:
    assert read(element("p", title=text)).attributes == {"title": text}


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "\u2028", "\ud800"])
def test_json_data_cannot_end_its_block(text: str) -> None:
    block = json_block("data", {"text": text})
    assert block.count("<") == 2 and block.endswith("</script>")
    assert json.loads(block.partition(">")[2].removesuffix("</script>")) == {"text": text}


def test_characters_that_html_forbids_are_replaced() -> None:
    element("p", "a\0\ud800b").encode("utf-8")
    assert "\0" not in element("p", "a\0b")


def test_false_attributes_are_omitted_and_underscores_become_hyphens() -> None:
    made = element("i", class_="x", aria_label="y", hidden=True, id=None, open=False, data_n=0)
    assert made == '<i class="x" aria-label="y" hidden data-n="0"></i>'
    assert element("br") == "<br>"


def test_markup_is_not_escaped_twice() -> None:
    assert element("p", Html("<b>a</b>"), "<") == "<p><b>a</b>&lt;</p>"
