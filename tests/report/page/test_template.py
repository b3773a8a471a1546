"""Text never becomes markup, and the page is whole in one file."""

import json
import re
from html.parser import HTMLParser

import pytest

from nmt.report.metrics_log import Curve
from nmt.report.page.charts import ChartLine, line_chart
from nmt.report.page.template import breakable, render

HOSTILE_TEXTS = [
    "<script>alert(1)</script>",
    "</script><b>",
    "\" onclick='x'",
    "&amp; <!-- ]]> {{ 1 }}",
    "</style>",
]


class Reader(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: dict[str, str | None] = {}
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_text_is_escaped_in_elements_and_attributes(text: str) -> None:
    environment = {"resumed": [], text: text}
    values = {"sections": {text: {"key": text}}, "other": {}, "environment": environment}
    found = Reader(render("configuration.html", {"configuration": {**values, "resumed": [values]}}))
    assert found.text.count(text) >= 4
    assert not {"script", "b", "style"} & found.tags
    charts = [*line_chart(text, "", [ChartLine("x", Curve((1,), (2.0,)), "blue")], ".2f")]
    training = {"charts": charts, "roll_backs": [], "validations": {"rows": []}}
    found = Reader(render("training.html", {"training": training}))
    assert found.attributes["aria-label"] == f"{text}, , over the optimiser steps"


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "\u2028", "\ud800"])
def test_json_data_cannot_end_their_block(text: str) -> None:
    html = render("attention.html", {"attention": {"sentences": [{"text": text}]}})
    (block,) = re.findall(r'id="attention-data">(.*?)</script>', html)
    assert "<" not in block and json.loads(block) == [{"text": text}]


def test_characters_that_html_forbids_are_replaced() -> None:
    html = render("quality.html", {"quality": "a\0\ud800b"})
    assert "a\ufffd?b" in html
    html.encode("utf-8")


def test_a_name_can_break_after_dots_and_underscores() -> None:
    assert breakable("a.b_<c") == "a.<wbr>b_<wbr>&lt;c"


def test_the_page_refers_to_no_other_file_and_its_script_and_style_end_once() -> None:
    page = {"name": "x", "languages": "en → de", "version": "1", "made": "now"}
    html = render("page.html", {**page, "chapters": ["quality"], "quality": "text"})
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", html)
    assert not re.findall(r"@import|url\(", html)
    addresses = set(re.findall(r"https?://[^\s\"')]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name and not an address
    assert "default-src 'none'" in html
    assert html.count("</script>") == html.count("</style>") == 1
    assert "<title>x</title>" in html and html.startswith("<!DOCTYPE html>")
