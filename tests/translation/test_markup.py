"""Pages keep all but their text, whatever the translator does; tags are there once and nested."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.translation.line import Line, Translation
from nmt.translation.markup import TranslateTexts, translate_html
from tests.reversing_translator import copying, guessing, reversing

WORDS = st.sampled_from(["dog", "a", "Hund,", "(big)", "H2O", "&amp;", "x.y", "&lt;3", "«Ω»", "7"])
SPACE = st.sampled_from([" ", "", "\n  "])
NAMES = st.sampled_from(["b", "i", "a", "span", "x-y"])
POINTS = st.sampled_from(
    ["<br id='#'/>", "<img id='#' src='a>b'/>", "<!-- # -->", "<i id='#'></i>"]
)
KEPT = st.sampled_from(["<code id='#'>f( x )</code>", "<b id='#' translate='no'>My <u>Co</u></b>"])


def _element(content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda name, inside: f"<{name} id='#'>{inside}</{name}>", NAMES, content)


def _several(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.builds(str.__add__, parts, SPACE), min_size=1, max_size=5).map("".join)


SENTENCES = _several(st.recursive(WORDS | POINTS | KEPT, lambda inner: _element(_several(inner))))


def numbered(page: str) -> str:
    """The page with a number in place of each "#"."""
    parts = page.split("#")
    return "".join(f"{part}{i}" for i, part in enumerate(parts[:-1])) + parts[-1]


PAGES = st.lists(SENTENCES.map(lambda text: f"<p id='#'>{text}</p>"), min_size=1, max_size=3).map(
    lambda blocks: numbered("<div>" + "\n".join(blocks) + "</div>")
)


def tags_of(page: str) -> list[str]:
    return sorted(re.findall(r"""<!--.*?-->|<(?:"[^"]*"|'[^']*'|[^>])*>""", page))


def ancestors(page: str) -> dict[str, list[str]]:
    """The ids of the elements around each element, by its id."""
    found: dict[str, list[str]] = {}
    pending = [(ElementTree.fromstring(page), list[str]())]
    while pending:
        element, around = pending.pop()
        inside = [*around, element.get("id", "")]
        if "id" in element.attrib:  # what is inside of a kept element has none
            found[element.attrib["id"]] = around
        pending += [(child, inside) for child in element]
    return found


def without_space(page: str) -> str:
    return re.sub(r"\s", "", page)


@pytest.mark.parametrize("translate", [copying, reversing, guessing])
@settings(max_examples=60, deadline=None)
@given(page=PAGES)
def test_every_tag_is_there_once_and_the_page_is_well_formed(
    translate: TranslateTexts, page: str
) -> None:
    found = translate_html(page, translate)
    assert tags_of(found) == tags_of(page)
    assert ancestors(found) == ancestors(page)


@settings(max_examples=60, deadline=None)
@given(page=PAGES)
def test_a_copied_page_is_the_page(page: str) -> None:
    assert without_space(translate_html(page, copying)) == without_space(page)


@settings(max_examples=60, deadline=None)
@given(page=PAGES)
def test_the_text_is_what_the_translator_wrote(page: str) -> None:
    written: list[str] = []

    def recorded(lines: list[Line], with_links: bool) -> list[Translation]:
        found = reversing(lines, with_links)
        written.extend(without_space(translation.text) for translation in found)
        return found

    root = ElementTree.fromstring(translate_html(page, recorded))
    texts = [without_space("".join(block.itertext())) for block in root]
    source = [without_space("".join(block.itertext())) for block in ElementTree.fromstring(page)]
    for text, original in zip(texts, source, strict=True):
        assert text in written or text == original
