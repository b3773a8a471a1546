"""Texts of programs: tags, entities, several lines, and quotes of messages."""

import pytest

from nmt.translation.documents.document import Document
from nmt.translation.documents.strings import QUOTED_BRACES, StringSyntax, string_segments
from nmt.translation.documents.tokens import source_of
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

DOGS = "{n, plural,\n one {<b>#</b> dog.\n\nA}\n  other {<i>#</i> dogs}}"


def translated(text: str, syntax: StringSyntax) -> tuple[list[str], str]:
    """The texts that the model gets, and what becomes of the whole."""
    tokens, segments = string_segments(text, syntax)
    document = Document(segments, lambda: source_of(tokens).encode())
    texts = list(document.texts())
    return texts, translate_document(document, uppercase).decode()


@pytest.mark.parametrize(
    ("text", "segments", "expected"),
    [
        ("a <b>b</b> c", ["a b c"], "A <b>B</b> C"),
        ("a <b or c> d", ["a <b or c> d"], "A <B OR C> D"),
        ("a <5 or >6", ["a <5 or >6"], "A <5 OR >6"),
        ('a <a href="x y" target=_blank>b</a>', ["a b"], 'A <a href="x y" target=_blank>B</a>'),
        ("a <a href=%s {attributes}>b</a>", ["a b"], "A <a href=%s {attributes}>B</a>"),
        ("a <input disabled> b", ["a b"], "A <input disabled> B"),
        ("a <0>b</0> <1/>c", ["a b c"], "A <0>B</0> <1/>C"),
        ("a.\r\nb\r\nc", ["a.", "b c"], "A.\r\nB\r\nC"),
        ("a\r\n\r\nb", ["a", "b"], "A\r\n\r\nB"),
        # entities are characters for the model, and what was an entity becomes one
        ("Tom &amp; Jerry <b>a</b>", ["Tom & Jerry a"], "TOM &amp; JERRY <b>A</b>"),
        ("a &lt; b &gt; c > d", ["a < b > c > d"], "A &lt; B &gt; C &gt; D"),
        ("it&#39;s &quot;a&quot;", ['it\'s "a"'], "IT&#39;S &quot;A&quot;"),
        ("a&nbsp;b", ["a b"], "A&nbsp;B"),
        ("a & b", ["a & b"], "A & B"),
        # shortcuts stay
        ("Ctrl+O", [], "Ctrl+O"),
        ("<Control><Shift>o", [], "<Control><Shift>o"),
        ("Open...\tCtrl+O", ["Open..."], "OPEN...\tCtrl+O"),
        ("Delete\tDel", ["Delete"], "DELETE\tDel"),
        ("&Save &amp; go", ["Save & go"], "&SAVE &amp; GO"),
        # control characters stay
        ("a \x1b b", ["a b"], "A \x1b B"),
        # an ICU message is a word, with its tags, spaces and line breaks
        (f"a  <b>b</b> {DOGS} c", [f"a b {DOGS} c"], f"A  <b>B</b> {DOGS} C"),
        (f"<p>{DOGS}</p>", [DOGS], f"<p>{DOGS}</p>"),
        (f"a.\n{DOGS}\n\nb", ["a.", DOGS, "b"], f"A.\n{DOGS}\n\nB"),
        (f"a &amp; {DOGS} &lt; b", [f"a & {DOGS} < b"], f"A &amp; {DOGS} &lt; B"),
        (f"<b>a {DOGS[:-1]}</b>}}", [f"a {DOGS[:-1]}</b>}}"], f"<b>A {DOGS[:-1]}</b>}}"),
    ],
)
def test_a_text_keeps_its_marks(text: str, segments: list[str], expected: str) -> None:
    assert translated(text, StringSyntax()) == (segments, expected)


@pytest.mark.parametrize(
    ("text", "segments", "expected"),
    [
        ("it''s {0}", ["it's {0}"], "IT''S {0}"),
        ("it''s '{' a", ["it's '{' a"], "IT''S '{' A"),
        ("a <a href=''x''>b</a>", ["a b"], "A <a href=''x''>B</a>"),
    ],
)
def test_doubled_quotes_of_a_message_are_one_for_the_model(
    text: str, segments: list[str], expected: str
) -> None:
    assert translated(text, StringSyntax(QUOTED_BRACES, True)) == (segments, expected)
