import pytest

from nmt.translation.documents.marked_text import MarkedText
from nmt.translation.documents.tag_places import InlineTag
from nmt.translation.documents.tokens import source_of
from nmt.translation.html.blocks import Elements, find_blocks
from nmt.translation.html.source import read_tokens
from nmt.translation.html.text import read_block


def read(html: str) -> MarkedText:
    tokens = read_tokens(html)
    elements = Elements(tokens)
    [block] = find_blocks(tokens, elements)
    return read_block(tokens, elements.partners, block)


def drawn(text: str, tags: list[InlineTag]) -> str:
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
    found = read(html)
    assert drawn(found.text, found.tags) == text


def test_tags_are_inside_of_the_elements_that_they_are_in() -> None:
    found = read("a <b><img>b <i>c</i></b> d")
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
    found = read(html)
    assert (source_of(found.before), found.text, source_of(found.after)) == (before, text, after)


def test_the_white_space_around_a_tag_belongs_to_it() -> None:
    found = read("a\n  <br>\n b<img> c &nbsp; d")
    assert [source_of(tag.opening) for tag in found.tags] == ["\n  <br>\n ", "<img> ", " &nbsp; "]
    assert [tag.needs_space for tag in found.tags] == [False, False, True]


def test_kept_elements_are_spans_of_the_text() -> None:
    found = read("Call <code>f( <i>x</i> &lt; 1)</code> <span translate=no>My\n Co</span> now")
    assert found.text == "Call f( x < 1) My Co now"
    assert {found.text[slice(*span)]: source_of(tokens) for span, tokens in found.kept.items()} == {
        "f( x < 1)": "<code>f( <i>x</i> &lt; 1)</code>",
        "My Co": "<span translate=no>My\n Co</span>",
    }


def test_text_is_written_with_the_entities_of_its_block() -> None:
    assert read("&copy; &quot;a&quot; &eacute;").escape('© "é" & <b>') == (
        "&copy; &quot;&eacute;&quot; &amp; &lt;b&gt;"
    )
    assert read("a").escape("a\x00b\x1b\tc\x7f") == "ab\tc"  # no page may have the others
    assert read("a &#39; b").escape("it's ©") == "it&#39;s ©"
