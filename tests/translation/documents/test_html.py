"""Pages keep all but their text, whatever the translator does; tags are there once and nested."""

import os
import random
import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import count
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText
from nmt.errors import DataError
from nmt.evaluation.metrics import bleu
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel, load_model
from nmt.translation.documents.html import page_text, read_block
from nmt.translation.documents.html_blocks import Elements, find_blocks
from nmt.translation.documents.html_source import read_tokens
from nmt.translation.documents.marked_text import MarkedText
from nmt.translation.documents.tag_places import InlineTag
from nmt.translation.documents.tokens import source_of
from nmt.translation.documents.translate import TranslateTexts, texts_translator
from nmt.translation.line import Line, Translation
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator
from tests.reversing_translator import copying, guessing, reversing, translate_html, uppercase

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


@pytest.mark.parametrize("translate", [reversing, guessing])
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
    found = translate_html(page, copying)
    assert without_space(found) == without_space(page)
    assert tags_of(found) == tags_of(page)


@settings(max_examples=60, deadline=None)
@given(page=PAGES)
@example(page="<div><p id='0'>dog <br id='1'/> <br id='2'/> <b id='3'>dog a </b> </p></div>")
def test_the_text_is_what_the_translator_wrote(page: str) -> None:
    written: list[str] = []

    def recorded(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        found = reversing(lines, with_links)
        written.extend(without_space(translation.text) for translation in found)
        return found

    root = ElementTree.fromstring(translate_html(page, recorded))
    texts = [without_space("".join(block.itertext())) for block in root]
    source = [without_space("".join(block.itertext())) for block in ElementTree.fromstring(page)]
    # two line breaks in a row end a text, so a block may have several
    runs = range(len(written) + 1)
    joined = {"".join(written[first:end]) for first in runs for end in runs}
    for text, original in zip(texts, source, strict=True):
        assert text in joined or text == original


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a dog</p>", "<p>A DOG</p>"),
        ("plain  text\n", "PLAIN TEXT\n"),
        ("<p>1 &amp; 2 &lt; &copy; &quot;y&quot; &#39;z&#39; it's</p>", None),
        ("<p> \n a\n  dog \t</p>", "<p> \n A DOG \t</p>"),
        (
            "<ruby>a<rt>b</rt><rp>)</rp> c<rt>d</ruby> e",
            "<ruby>A<rt>b</rt><rp>)</rp> C<rt>d</ruby> E",
        ),
        ("<!--[if IE]><p>a</p><![endif]-->b<![CDATA[c]]>", None),
        ("<P CLASS=x  id='y'>a<BR/>b</P >", "<P CLASS=x  id='y'>A<BR/>B</P >"),
        (
            "<p>a&#10;b &#x9; c&#13;&#10;d&#1; e &Tab;</p>",
            "<p>A&#10;B &#x9; C&#13;&#10;D&#1; E &Tab;</p>",
        ),
        ("<img alt='one\n two&#10;three&#xa;&#10;7'>", "<img alt='ONE TWO&#10;THREE&#10;&#10;7'>"),
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
    if page.startswith("<!--"):
        expected = page.replace("b<!", "B<!")
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
    assert calls == [(["a dog", "Home"], False), (["a b", "a b"], True)]


def read_text(html: str) -> MarkedText:
    tokens = read_tokens(html)
    elements = Elements(tokens)
    [block] = find_blocks(tokens, elements)
    return read_block(tokens, elements.partners, block)


def text_with_brackets(text: str, tags: list[InlineTag]) -> str:
    """A text with brackets around elements, and "|" for a tag between words, "_" for a space."""
    marks: list[tuple[int, str]] = []
    pending = list(reversed(tags))
    while pending:
        tag = pending.pop()
        if tag.is_element:
            marks += [(tag.span[0], "["), (tag.span[1], "]")]
        else:
            marks.append((tag.span[0], "_" if tag.replaces_space else "|"))
        pending += tag.children
    for at, mark in sorted(marks, key=lambda each: each[0], reverse=True):
        text = text[:at] + mark + text[at:]
    return text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("one <b>two</b> three", "one [two] three"),
        ("one<b> two </b>three", "one [two] three"),
        ("a <b>b <i>c</i></b> d", "a [b [c]] d"),
        ("a<br>b", "a_ b"),
        ("a <b>&shy;</b>b", "a_ b"),  # a soft hyphen is no word
        ("a <img> b", "a_ b"),
        ("a<img>b", "a|b"),
        ("a<img> b", "a_ b"),
        ("a <b></b><i> </i> b", "a_ b"),  # elements without text are tags between words
        ("a&nbsp;b", "a_ b"),
        ("a \n\t b&amp;&eacute;&#65;&shy;c <i>d</i> e", "a b&éAc [d] e"),
        ("a <code>f(x)</code>b", "a f(x)b"),
        ("H<sub>2</sub>O", "H[2]O"),
        ("a &shy; b", "a b"),
        ("a <code>&nbsp;</code> b", "a_ b"),
    ],
)
def test_a_block_is_a_text_with_tags(html: str, text: str) -> None:
    found = read_text(html)
    assert text_with_brackets(found.text, found.tags) == text


def test_tags_are_inside_of_the_elements_that_they_are_in() -> None:
    found = read_text("a <b><img>b <i>c</i></b> d")
    [bold] = found.tags
    assert [source_of(tag.opening) for tag in bold.children] == ["<img>", "<i>"]
    assert (source_of(bold.opening), source_of(bold.closing), bold.span) == ("<b>", "</b>", (2, 5))


@pytest.mark.parametrize(
    ("html", "before", "text", "after"),
    [
        (" \n a b \t", " \n ", "a b", " \t"),
        ("<b>a b</b>", "<b>", "a b", "</b>"),
        ("<!-- x --> <a><b> a</b> <br></a> ", "<!-- x --> <a><b> ", "a", "</b> <br></a> "),
        ("&nbsp;<img>a<i></i><br>", "&nbsp;<img>", "a", "<i></i><br>"),
        ("<b>a</b> <i>b</i>", "", "a b", ""),
        ("<b>a</b> ", "<b>", "a", "</b> "),
    ],
)
def test_tags_at_the_ends_stay_there(html: str, before: str, text: str, after: str) -> None:
    found = read_text(html)
    assert (source_of(found.before), found.text, source_of(found.after)) == (before, text, after)


def test_the_white_space_around_a_tag_belongs_to_it() -> None:
    found = read_text("a\n  <br>\n b<img> c &nbsp; d")
    assert [source_of(tag.opening) for tag in found.tags] == ["\n  <br>\n ", "<img> ", " &nbsp; "]
    assert [tag.needs_space for tag in found.tags] == [False, False, True]


def test_kept_elements_are_spans_of_the_text() -> None:
    found = read_text("Call <code>f( <i>x</i> &lt; 1)</code> <span translate=no>My\n Co</span> now")
    assert found.text == "Call f( x < 1) My Co now"
    assert {found.text[slice(*span)]: source_of(tokens) for span, tokens in found.kept.items()} == {
        "f( x < 1)": "<code>f( <i>x</i> &lt; 1)</code>",
        "My Co": "<span translate=no>My\n Co</span>",
    }


def test_text_is_written_with_the_entities_of_its_block() -> None:
    assert read_text("&copy; &quot;a&quot; &eacute;").escape('© "é" & <b>') == (
        "&copy; &quot;&eacute;&quot; &amp; &lt;b&gt;"
    )
    assert read_text("a").escape("a\x00b\x1b\tc\x7f") == "ab\tc"  # no page may have the others
    assert read_text("a &#39; b").escape("it's ©") == "it&#39;s ©"


def test_the_text_of_a_page_is_what_is_translated() -> None:
    page = "<style>p {}</style><p title=a>One <b>dog</b> &amp; <i class=notranslate>cat</i></p>"
    assert page_text(f"{page}<pre>x</pre><!-- y --> end").split() == ["One", "dog", "&", "end"]


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


def marked_up(
    words: Sequence[str], chance: random.Random, ids: Iterator[int], depth: int = 0
) -> str:
    """Words with elements around some of them and tags between some; all ids differ."""
    parts: list[str] = []
    i = 0
    while i < len(words):
        size = chance.randint(1, min(5, len(words) - i))
        if depth < 3 and chance.random() < 0.25:
            inside = marked_up(words[i : i + size], chance, ids, depth + 1)
            name = chance.choice(["a", "b", "em", "span"])
            parts.append(f"<{name} id='{next(ids)}'>{inside}</{name}>")
            i += size
        else:
            parts.append(escape(words[i], quote=False))
            i += 1
        if chance.random() < 0.08:
            parts.append(chance.choice(["<br id='{}'/>", "<img id='{}'/>"]).format(next(ids)))
    return " ".join(parts)


@pytest.mark.slow
def test_2000_lines_of_markup_keep_their_tags_and_their_bleu(
    multi30k_lines: tuple[list[str], list[str]], random_run: LoadedModel
) -> None:
    """By an untrained model; NMT_TEST_RUN names a run of multi30k.yaml, whose BLEU is compared."""
    sources, references = multi30k_lines
    path = os.environ.get("NMT_TEST_RUN")
    translator = Translator(load_model(path, torch.device("cpu")) if path else random_run)
    chance, ids = random.Random(1), count(1)
    blocks, spans = [], []
    for source in sources:
        has_span = chance.random() < 0.3
        spans.append(f"https://x.org/{next(ids)}?a&b" if has_span else "")
        block = marked_up(source.split(), chance, ids)
        block += f" (<code>{escape(spans[-1])}</code>)" if has_span else ""
        blocks.append(f"<p>{block}</p>")
    page = f"<div>{''.join(blocks)}</div>"
    found = translate_html(page, texts_translator(translator))
    assert tags_of(found) == tags_of(page)
    assert ancestors(found) == ancestors(page)
    texts = ["".join(block.itertext()) for block in ElementTree.fromstring(found)]
    assert all(text.count(span) == 1 for text, span in zip(texts, spans, strict=True) if span)
    if path:
        plain = [translation.text for translation in translator.translations(sources)]
        without = [
            re.sub(rf" ?\(?{re.escape(span)}\)?", "", text) if span else text
            for text, span in zip(texts, spans, strict=True)
        ]
        texts = [" ".join(text.split()) for text in without]
        scores = [bleu(each, references, confidence=False).value for each in (plain, texts)]
        print(f"BLEU of plain text {scores[0]:.2f}, of the text of the page {scores[1]:.2f}")
        assert scores[1] > scores[0] - 0.5
