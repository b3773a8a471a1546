"""Pages keep all but their text, whatever the translator does; tags are there once and nested."""

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import DecodingConfig
from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText
from nmt.errors import DataError
from nmt.run_directory import LoadedModel
from nmt.translation.line import Line, Translation
from nmt.translation.markup import TranslateTexts, texts_translator, translate_html
from nmt.translation.translator import TranslationRequest, Translator
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

    def recorded(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        found = reversing(lines, with_links)
        written.extend(without_space(translation.text) for translation in found)
        return found

    root = ElementTree.fromstring(translate_html(page, recorded))
    texts = [without_space("".join(block.itertext())) for block in root]
    source = [without_space("".join(block.itertext())) for block in ElementTree.fromstring(page)]
    for text, original in zip(texts, source, strict=True):
        assert text in written or text == original


def uppercase(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    """Copies of the texts in capitals, with the links of a copy."""
    return [replace(found, text=found.text.upper()) for found in copying(lines, with_links)]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a dog</p>", "<p>A DOG</p>"),
        ("plain  text\n", "PLAIN TEXT\n"),
        ("<p>1 &amp; 2 &lt; &copy; &quot;y&quot; &#39;z&#39; it's</p>", None),
        ("<p> \n a\n  dog \t</p>", "<p> \n A DOG \t</p>"),
        ("<P CLASS=x  id='y'>a<BR/>b</P >", "<P CLASS=x  id='y'>A<BR/>B</P >"),
        ("<p>one&nbsp;two &nbsp; <b>x</b> y</p>", "<p>ONE&nbsp;TWO &nbsp; <b>X</b> Y</p>"),
        ("<!DOCTYPE html><!-- a --><title>a</title>", "<!DOCTYPE html><!-- a --><title>A</title>"),
        ("<p translate=no>a</p>b <code>c</code>", "<p translate=no>a</p>B <code>c</code>"),
        ("<img alt='a dog' title=\"x\" src=a>", "<img alt='A DOG' title=\"X\" src=a>"),
        ("<meta name=description content='a'>", "<meta name=description content='A'>"),
        ("<td>a</td>", "<td>A</td>"),  # a part of a page stays one
        ("{{#if x}}<li>a{{/if}}", "{{#IF X}}<li>A{{/IF}}"),
        ("<p>Tom & J < 3 <b", "<p>TOM &amp; J &lt; 3 <b"),
    ],
)
def test_all_but_the_text_stays(page: str, expected: str | None) -> None:
    if expected is None:
        expected = page.replace("y", "Y").replace("z&", "Z&").replace("it's", "IT'S")
        expected = expected.replace("&copY;", "&copy;").replace("'", "&#39;")  # as the first one
    assert translate_html(page, uppercase) == expected


@pytest.mark.parametrize(
    "page",
    [
        *("", " \n ", "<p></p>", "<script>a</script><style>b</style><pre>c</pre>"),
        "<p title='...'>★ 😀 <b>—</b> <img alt='→'></p>",
        "<p translate=no>a <b title=c>b</b></p><textarea>d</textarea>",
    ],
)
def test_a_page_without_text_to_translate_calls_no_model(page: str) -> None:
    def fail(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        raise AssertionError(lines)

    assert translate_html(page, fail) == page


def test_only_texts_with_tags_are_aligned_and_equal_ones_translated_once() -> None:
    calls: list[tuple[list[str], bool]] = []

    def recorded(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        calls.append(([line.text for line in lines], with_links))
        return copying(lines, with_links)

    page = "<ul><li><a>Home</a><li>Home<li>a <b>b</b><li>a <b>b</b></ul><img alt='a  dog'>"
    translate_html(page, recorded)
    assert calls == [(["Home", "a dog"], False), (["a b", "a b"], True)]


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(DataError, match="the page"):
        translate_html("<p>\ud800</p>", copying)


def test_a_hundred_thousand_nested_tags_are_no_problem() -> None:
    depth = 50_000
    page = "<div>" * depth + "<b>" * depth + "a dog" + "</b>" * depth + "</div>" * depth
    assert translate_html(page, uppercase) == page.replace("a dog", "A DOG")


def test_entities_of_a_document_type_are_not_expanded() -> None:
    declared = (
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///x">]>'
    )
    found = translate_html(f"{declared}<p>a &b; &c;</p>", copying)
    assert found == f"{declared}<p>a &amp;b; &amp;c;</p>"


def test_a_model_translates_a_page(copying_run: LoadedModel) -> None:
    """Sentences are split, and the tags of each are placed by its own alignment."""
    translator = Translator(copying_run, DecodingConfig(beam_size=1))
    page = "<p>A dog. https://x.org <b>sleeps</b>!</p><p>One <code>f( x )</code>.</p><img alt='a'>"
    request = TranslationRequest(protected=ProtectedText(USUAL_PATTERNS))
    assert translate_html(page, texts_translator(translator, request)) == page
