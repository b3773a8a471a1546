"""Strings files of Apple: strings are translated; keys, comments and white space stay."""

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import USUAL_TEXTS, ReadingOptions
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

DOGS = '{n, plural,\\n one {<b>#</b> \\"dog\\"} other {# dogs}}'


def translated(content: bytes, options: ReadingOptions = USUAL_TEXTS) -> bytes:
    document = read_document(content, "a.strings", "apple-strings", options)
    return translate_document(document, uppercase)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"a" = "b c";\n', '"a" = "B C";\n'),
        ('/* "a" = "b"; */\n// "a"\n\n"a"="b" ;"c" = "d";', None),
        ('a.b-c = "b";\r\n', 'a.b-c = "B";\r\n'),
        ('"a\\"" /* x */ = // y\n "b";', '"a\\"" /* x */ = // y\n "B";'),
        ('"a" = "say \\"b\\" \\\\ \\n c\td";', '"a" = "SAY \\"B\\" \\\\ \\n C\\tD";'),
        ('"a" = "\\U00e4 \\ud83d\\ude00";', '"a" = "Ä 😀";'),
        ('"a" = "\\\'b\\\'";', '"a" = "\'B\'";'),
        ('"a" = "12 \\U00e4b" ;\n"b" = "\\U00c4";', None),
        ('"a" = "";\n"b";\n', '"a" = "";\n"b";\n'),
        (f'"a" = "b <i>c</i> {DOGS}";', f'"a" = "B <i>C</i> {DOGS}";'),
        ('"a" = "img/a.png";', '"a" = "img/a.png";'),
        ("", ""),
        ("/* a */", "/* a */"),
    ],
)
def test_only_strings_change(source: str, expected: str | None) -> None:
    if expected is None:
        expected = source.replace('="b" ;"c" = "d"', '="B" ;"c" = "D"').replace("\\U00e4b", "ÄB")
    assert translated(source.encode()).decode() == expected


def test_only_the_keys_asked_for_are_translated() -> None:
    assert translated(b'"a"="b"; c="d";', ReadingOptions(key=("c",))) == b'"a"="b"; c="D";'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b'"a" = "b";\n"c" = "d"\n',
            'a.strings: line 2, column 1: \'"c" = "d"\\\\n\', expected "key"',
        ),
        (b'"a" = "b;', 'line 1, column 1: \'"a" = "b;\', expected'),
        (b"<plist>", "line 1, column 1: '<plist>'"),
        (b"/* a", "line 1, column 1: '/\\* a'"),
        (b"bplist00\xd1\x00\x00", "a.strings: has zero bytes, so it is a binary file; save it as"),
    ],
)
def test_another_text_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated(content)
