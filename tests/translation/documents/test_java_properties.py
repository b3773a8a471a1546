"""Properties files: strings are translated; keys, comments and white space stay."""

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import USUAL_TEXTS, ReadingOptions
from nmt.translation.documents.java_properties import read_properties
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

DOGS = "{n, plural,\\n one {<b>#</b> dog''s} other {# dogs}}"


def translated(content: bytes, options: ReadingOptions = USUAL_TEXTS) -> bytes:
    return translate_document(read_properties(content, "a.properties", options), uppercase)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a=b c\n", "a=B C\n"),
        ("# a=b\n! a=b\n\n  a.b : c\r\nd e f", "# a=b\n! a=b\n\n  a.b : C\r\nd E F"),
        ("a\\ b\\=c = d\n", "a\\ b\\=c = D\n"),
        ("a\nb=\nc=12\n", "a\nb=\nc=12\n"),
        ("a=img/a.png\nb=org.example.Name\nc=true\n", "a=img/a.png\nb=org.example.Name\nc=true\n"),
        ("a=and/or\nb=a.\nc=a. b.c\n", "a=AND/OR\nb=A.\nc=A. B.C\n"),
        # a string over several lines
        ("a = b \\\n    c\nd=e\n", "a = B C\nd=E\n"),
        ("a = b.\\n\\\n    c\n", "a = B.\\n\\\n    C\n"),
        ("# a \\\nb=c\n", "# a \\\nb=C\n"),
        ("a=b\\", "a=B"),
        # escapes
        ("a=b\\\\c\\td\\:\n", "a=B\\\\C\\tD:\n"),
        ("a=12\\:\\u0041\\:\n", "a=12\\:\\u0041\\:\n"),  # the translation is the same
        ("a=\\ b\n", "a=\\ B\n"),
        ("a=<b>c</b>\\u00a0d\n", "a=<b>C</b>\\u00a0D\n"),
        ("a=\\u00e4 \\ud83d\\ude00\n", "a=\\u00c4 \\ud83d\\ude00\n"),
        ("a=b\\ud83d\n", "a=b\\ud83d\n"),  # half of a character
        # quotes of a MessageFormat
        ("a=it''s {0}\n", "a=IT''S {0}\n"),
        ("a=it's {0}\n", "a=IT'S {0}\n"),
        ("a=it's ''b''\n", "a=IT'S ''B''\n"),
        # an ICU message
        (f"a=b <i>c</i> {DOGS} d\n", f"a=B <i>C</i> {DOGS} D\n"),
        (f"a=it''s {DOGS} {{0}}\n", f"a=IT''S {DOGS} {{0}}\n"),
        ("a=btn_ok\ntype=button\nb=button\n", "a=btn_ok\ntype=button\nb=BUTTON\n"),
        ("", ""),
    ],
)
def test_only_strings_change(source: str, expected: str) -> None:
    assert translated(source.encode()).decode() == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a=\xe4\n", b"a=\xc4\n"),
        (b"a=\xff \xe4\n", b"a=\\u0178 \xc4\n"),  # Latin-1 lacks it
        ("a=ä\n".encode(), "a=Ä\n".encode()),
        ("\ufeffa=b\n".encode(), "\ufeffa=B\n".encode()),
    ],
)
def test_a_file_keeps_its_encoding(content: bytes, expected: bytes) -> None:
    assert translated(content) == expected


def test_only_the_keys_asked_for_are_translated() -> None:
    options = ReadingOptions(key=("a.*", "b"), skip_key=("*.c",))
    found = translated(b"a.b=x\na.c=x\nb=x\nbb=x\n", options)
    assert found == b"a.b=X\na.c=x\nb=X\nbb=x\n"


def test_a_key_that_is_nowhere_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    translated(b"menu.title=x\n", ReadingOptions(key=("menu.titel",)))
    assert capsys.readouterr().err == (
        "warning: a.properties: no text has the key 'menu.titel'; did you mean 'menu.title'?\n"
    )


def test_utf_16_is_refused() -> None:
    with pytest.raises(DataError, match="is in UTF-16, which no properties file is; save it as U"):
        translated("a=b".encode("utf-16"))
