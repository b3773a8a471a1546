"""Bilingual files: unedited, they give the document itself; edited, what a person has written."""

import contextlib
import re

import pytest

from nmt.errors import DataError
from nmt.memory.match import Match
from nmt.translation.documents.bilingual import (
    OriginalFile,
    apply_bilingual,
    bilingual_document,
)
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.translate import TranslateTexts, translate_document
from nmt.translation.line import Translation
from tests.office_files import word_file
from tests.reversing_translator import copying, guessing, reversing, uppercase

READING = ReadingOptions(LanguagePair("en", "de"))
RUNS = (
    "<w:p><w:r><w:t>a </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>big</w:t></w:r>"
    '<w:r><w:br/><w:t xml:space="preserve"> dog &amp; co</w:t></w:r></w:p>'
)
DOCUMENTS = {
    "office": word_file(RUNS),
    "html": (
        b"<p>a <b>big <i>old</i></b> dog<br>and <code>x</code> a&nbsp;cat &lt; b</p>"
        b'<p title="a title">one<img src="x" alt="a picture"> two</p><p>a <b>big</b> dog</p>'
    ),
    "subtitles": b"1\n00:00:01,000 --> 00:00:03,000\n<i>a big</i>\ndog sleeps\n",
    "xliff": (
        b"<xliff><trans-unit id='1'><source>a <g id='7'>b</g> <x id='8'/>c &lt;i&gt;d&lt;/i&gt;"
        b" <mrk mtype='protected'>kept</mrk></source></trans-unit></xliff>"
    ),
    "tmx": (
        b'<tmx><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a <ph>{0}</ph>b  c</seg>'
        b"</tuv></tu></body></tmx>"
    ),
    "po": (
        b'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n#, c-format\nmsgid "a <b>%d</b>\\ndog"\n'
        b'msgid_plural "dogs, \\"%d\\""\nmsgstr[0] ""\nmsgstr[1] ""\n'
    ),
    "json": b'{"title": "a big {name}\\n\\ndog &amp; \\"cat\\"."}',
    "yaml": b"menu:\n  title: a big dog\nother: 'it''s a dog'\n",
    "properties": b"key = a {0} \\u00e9 dog\n",
}


@pytest.fixture(autouse=True)
def _fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")  # TMX has one


def direct(key: str, content: bytes, translate: TranslateTexts) -> bytes:
    return translate_document(read_document(content, "a", key, READING), translate)


def bilingual(key: str, content: bytes, translate: TranslateTexts = uppercase) -> str:
    document = read_document(content, "a", key, READING)
    original = OriginalFile('b/a<"1">', content, key, READING)
    return translate_document(bilingual_document(document, original), translate).decode()


def applied(edited: str, content: bytes) -> bytes:
    return apply_bilingual(edited.encode(), "a.xliff", content, "a")


@pytest.mark.parametrize("key", DOCUMENTS)
@pytest.mark.parametrize("translate", [copying, uppercase, reversing, guessing])
def test_unedited_it_gives_the_translated_document(key: str, translate: TranslateTexts) -> None:
    content = DOCUMENTS[key]
    made = bilingual(key, content, translate)
    assert applied(made, content) == direct(key, content, translate)


PAGE = b"<p>a <b>big</b> dog<br>sleeps</p><p>a cat</p>"


def test_units_have_the_marks_of_the_text() -> None:
    sources = re.findall(
        "<source>(.*)</source>\n<target[^>]*>(.*)</target>", bilingual("html", PAGE)
    )
    marks = '{} <g id="1">{}</g> {}<x id="2" equiv-text="&lt;br&gt;"/>{}'
    assert sources == [
        (marks.format("a", "big", "dog", "sleeps"), marks.format("A", "BIG", "DOG", "SLEEPS")),
        ("a cat", "A CAT"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (">A CAT<", ">eine &lt; Katze<", b"<p>eine &lt; Katze</p>"),
        ("A <g", "ein <mrk mtype='seg' mid='1'>neuer</mrk> <g", b"<p>ein neuer <b>BIG</b> DOG<br>"),
        ("A <g", "ein\n      <g", b"<p>ein <b>BIG</b> DOG<br>"),
        # what programs write around it
        ("<body>", "<body><group>", b"<p>A CAT</p>"),
        ('state="needs-review-translation"', 'state="final"', b"<p>A CAT</p>"),
        ("<source>a cat", "<source>a  cat ", b"<p>A CAT</p>"),
    ],
)
def test_what_is_edited_is_in_the_document(old: str, new: str, expected: bytes) -> None:
    edited = bilingual("html", PAGE).replace(old, new)
    if "<group>" in new:
        edited = edited.replace("</body>", "</group></body>")
    assert expected in applied(edited, PAGE)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("A CAT", " ", "unit 2 has no target"),
        ("<source>a cat", "<source>a dog", "unit 2 has another source text"),
        ('id="2" xml:space', 'id="9" xml:space', "unit 2 is missing"),
        ('id="2" xml:space', 'id="9" xml:space', "unit 9 is not in the document and is ignored"),
        ("A CAT", 'A<x id="1"/>', 'unit 2 has <x id="1"/> more often in its target'),
        ("A CAT", "A<ph id='1'>x</ph>", "unit 2 has <ph> more often in its target"),
        ('<g id="1">BIG</g>', "BIG", 'unit 1 has no <g id="1"> in its target'),
        ('<g id="1">BIG</g>', '<x id="1"/>', 'unit 1 has no <g id="1"> in its target'),
        (
            'DOG<x id="2" equiv-text="&lt;br&gt;"/>',
            "DOG",
            'unit 1 has no <x id="2"/> in its target',
        ),
    ],
)
def test_a_text_stays_if_its_unit_is_wrong(
    old: str, new: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = bilingual("html", PAGE)
    assert old in made
    found = applied(made.replace(old, new), PAGE)
    said = capsys.readouterr().err
    assert f"a.xliff: {problem}" in said
    assert "; this text of the document stays as it is" in said
    stays = b"<p>a cat</p>" if "unit 1" not in problem else b"<p>a <b>big</b> dog<br>sleeps</p>"
    assert stays in found


def test_many_wrong_units_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    page = b"<p>a b</p>" * 30
    edited = re.sub("<target.*</target>", "", bilingual("html", page))
    assert applied(edited, page) == direct("html", page, copying)
    said = capsys.readouterr().err
    assert said.count("has no target") == 10
    assert "30 units in all are not applied" in said


@pytest.mark.parametrize(
    ("edited", "content", "message"),
    [
        (
            bilingual("html", PAGE),
            PAGE + b" ",
            "made from another document than a, or a has changed",
        ),
        ("<xliff/>", PAGE, "is no file of `nmt translate --bilingual`"),
        ("<xliff><trans-unit id='1'/></xliff>", PAGE, "is no file of `nmt translate --bilingual`"),
        ("<xliff>", PAGE, "a.xliff: is no well-formed XML"),
        (re.sub('reading="{.*}"', 'reading="1"', bilingual("html", PAGE)), PAGE, "was changed"),
        (bilingual("html", PAGE).replace("overwrite", "x"), PAGE, "was changed"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    edited: str, content: bytes, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        applied(edited, content)


def test_damage_is_an_error_of_the_data_or_none() -> None:
    made = bilingual("html", PAGE)
    pieces = list(re.finditer(r"[<>/=\"]|[a-z]{2,}|\d+", made))
    for found in pieces[::2]:
        for new in ("", "&x;", "7"):
            damaged = made[: found.start()] + new + made[found.end() :]
            with contextlib.suppress(DataError):
                applied(damaged, PAGE)


def test_a_unit_from_a_translation_memory_says_so_and_is_applied() -> None:
    content = b"A dog.\n"
    document = read_document(content, "a.md", "markdown", READING)
    bilingual = bilingual_document(document, OriginalFile("a.md", content, "markdown", READING))
    match = Match("A dog!", "EIN HUND!", 0.75, identity=1)
    written = bilingual.write([Translation("EIN HUND.", 0.0, match=match)], [])
    assert b'state-qualifier="fuzzy-match">EIN HUND.</target>' in written
    assert b'</target><alt-trans match-quality="75%"' in written
    assert apply_bilingual(written, "a.xlf", content, "a.md") == b"EIN HUND.\n"
