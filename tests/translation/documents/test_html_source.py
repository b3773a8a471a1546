import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.translation.documents.html import page_text
from nmt.translation.documents.html_source import read_tokens
from nmt.translation.documents.tokens import Token, source_of

PIECES = st.sampled_from(
    ["<", "</", "<!--", "-->", "<!", ">", "<b", "</b>", " a", "=", '"', "'", "&amp;", "\n", "\r\n"]
    + ["<?", "<script>", "</script>", "x", "/>", "<![", "]", "--", "<!DOCTYPE", "]]>", "<![CDATA["]
)


@given(st.lists(PIECES, max_size=20).map("".join) | st.text(max_size=30))
def test_the_tokens_are_the_source(html: str) -> None:
    tokens = read_tokens(html)
    assert source_of(tokens) == html
    for token in tokens:
        if token.kind == "start":
            assert token.source.lower().startswith(f"<{token.name}")
        if token.kind == "end":
            assert token.source.startswith("</")


def test_tags_texts_and_the_rest_are_told_apart() -> None:
    html = (
        "<!DOCTYPE html>\n<P Class='x>y' hidden title=\"a &amp; b\">1 < 2 &lt; 3<br/></p >"
        "<!-- <b> --><script>if (a<b) '</p>'</script><?php x ?>"
    )
    found = [(t.kind, t.name, t.source) for t in read_tokens(html) if t.kind != "text"]
    assert found[:4] + found[-2:] == [
        ("other", "", "<!DOCTYPE html>"),
        ("start", "p", "<P Class='x>y' hidden title=\"a &amp; b\">"),
        ("start", "br", "<br/>"),
        ("end", "p", "</p >"),
        ("end", "script", "</script>"),
        ("other", "", "<?php x ?>"),
    ]
    assert ("other", "", "<!-- <b> -->") in found
    assert [name for kind, name, _ in found if kind == "start"] == ["p", "br", "script"]
    assert "".join(t.source for t in read_tokens(html)[3:6]) == "1 < 2 &lt; 3"
    paragraph = read_tokens(html)[2]
    assert paragraph.attributes == (("class", "x>y"), ("hidden", None), ("title", "a & b"))
    assert [paragraph.attribute(name) for name in ("title", "hidden", "id")] == [
        "a & b",
        None,
        None,
    ]
    assert Token("start", "", "a", (("id", "1"), ("id", "2"))).attribute("id") == "1"


@pytest.mark.parametrize(
    ("html", "kinds"),
    [
        ("text <b", ["text", "other"]),
        ("a <3 b", ["text"]),
        ("text <!-- comment > <b>", ["text", "other"]),
        ("a</>b", ["text", "other", "text"]),
        ("<b>x</b", ["start", "text", "other"]),
        ("", []),
    ],
)
def test_what_never_ends_is_neither_tag_nor_text(html: str, kinds: list[str]) -> None:
    assert [token.kind for token in read_tokens(html)] == kinds


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<script><!-- a </script>b", "b"),
        ("<style><!-- a </style>b <!-- c > d", "b "),
        ("<a title='<!--'>b</a>", "b"),
        ("<script><!-- <script> </script> a --></script>b", "b"),
        ("<script><!-- <SCRIPT src=a> </script> <script> </script> a </script>b", "b"),
        ("<script><!-- <scripts> </script>b", "b"),
        ("<script><!-- --> <script></script>b", "b"),
        ("<script><!--> <script></script>b", "b"),
        ("<script> <script></script>b", "b"),
    ],
)
def test_a_script_ends_where_it_ends_in_browsers(html: str, text: str) -> None:
    assert page_text(html) == text


@pytest.mark.parametrize(
    "part",
    ["<b>", "<", "<!--", "<a", "<!a", "<?", "</", "</a", '<a b="', "&a", "<script>", "<![CDATA["]
    + ["<a a a a", "<style>a", "<!-->", "<!DOCTYPE x [", "<![", "<b></i>"]
    + ["<script><!--", "<script><!--<script></script>"],
)
@pytest.mark.parametrize("end", ["", ">", '">', "-->"])
def test_no_page_takes_quadratic_time(part: str, end: str) -> None:
    """In quadratic time the long page would take a hundred times as long as the short one."""

    def seconds(length: int) -> float:
        start = time.process_time()
        read_tokens(part * length + end)
        return time.process_time() - start

    # the better of two: the garbage collector may fall into one of them
    assert min(seconds(10_000), seconds(10_000)) < 40 * seconds(1_000) + 0.2
