"""TS files of Qt Linguist: messages without a translation get one, and all else stays."""

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

FILE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="{language}" sourcelanguage="en_US">
<context>
    <name>a window</name>
{messages}
</context>
</TS>
"""
UNFINISHED = '<translation type="unfinished">'


def file_of(*messages: str, language: str = "de_AT") -> bytes:
    rows = "\n".join(f"    <message>\n        {each}\n    </message>" for each in messages)
    return FILE.format(messages=rows, language=language).encode()


def translated(content: bytes, target: str = "de", overwrite: bool = False) -> str:
    options = ReadingOptions(LanguagePair("en", target), overwrite)
    document = read_document(content, "a.ts", "ts", options)
    return translate_document(document, uppercase).decode()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"<source>a dog</source>\n  {UNFINISHED}</translation>", "A DOG"),
        ('<source>a dog</source>\n  <translation type="unfinished"/>', "A DOG"),
        (f"<source>&amp;open</source>{UNFINISHED}</translation>", "&amp;OPEN"),
        (f"<source>it&apos;s &quot;a&quot;</source>{UNFINISHED}</translation>", None),
        (f"<source>&lt;b&gt;a&lt;/b&gt; dog</source>{UNFINISHED}</translation>", None),
        (f"<source>%1 of %n and %L2</source>{UNFINISHED}</translation>", "%1 OF %n AND %L2"),
    ],
)
def test_an_unfinished_message_gets_a_translation_to_look_at(
    message: str, expected: str | None
) -> None:
    if expected is None:
        expected = "IT&apos;S &quot;A&quot;" if "apos" in message else "&lt;b&gt;A&lt;/b&gt; DOG"
    before, _, _ = message.partition("<translation")
    new = f"{before}{UNFINISHED}{expected}</translation>"
    assert translated(file_of(message)) == file_of(new).decode()


def test_a_message_without_the_element_gets_one() -> None:
    found = translated(file_of("<source>a dog</source>"))
    new = f"<source>a dog</source>\n        {UNFINISHED}A DOG</translation>"
    assert found == file_of(new).decode()


@pytest.mark.parametrize(
    "message",
    [
        "<source>a dog</source><translation>Ein Hund</translation>",
        f"<source>a dog</source>{UNFINISHED}Ein Hund</translation>",
        '<source>a dog</source><translation type="vanished"></translation>',
        '<source>a dog</source><translation type="obsolete"></translation>',
        f"<source>%1</source>{UNFINISHED}</translation>",
        f"<source></source>{UNFINISHED}</translation>",
    ],
)
def test_what_has_a_translation_or_no_text_stays(message: str) -> None:
    assert translated(file_of(message)) == file_of(message).decode()


def test_overwrite_translates_anew() -> None:
    message = "<source>a dog</source><translation>Ein Hund</translation>"
    new = f"<source>a dog</source>{UNFINISHED}A DOG</translation>"
    assert translated(file_of(message), overwrite=True) == file_of(new).decode()


@pytest.mark.parametrize(("target", "count"), [("de", 2), ("ja", 1), ("ru", 3), ("ar", 6)])
def test_a_plural_has_the_forms_of_the_language(target: str, count: int) -> None:
    source = "<source>%n dog(s)</source>\n        "
    forms = "\n            <numerusform></numerusform>" * 2 + "\n        "
    content = file_of(f"{source}{UNFINISHED}{forms}</translation>", language=target)
    content = content.replace(b"<message>", b'<message numerus="yes">')
    new = "\n            <numerusform>%n DOG(S)</numerusform>" * count + "\n        "
    assert translated(content, target) == content.decode().replace(forms, new)


def test_the_target_language_is_declared() -> None:
    content = file_of("<source>a dog</source>", language="")
    assert 'language="pt_BR"' in translated(content, "pt_BR")
    kept = file_of("<source>a dog</source><translation>Un chien</translation>", language="fr")
    with pytest.raises(DataError, match="a.ts: its language is fr, but the model translates int"):
        translated(kept)
    with pytest.raises(DataError, match="a.ts: its sourcelanguage is en_US, but the model tra"):
        read_document(kept, "a.ts", "ts", ReadingOptions(LanguagePair("fr", "de")))


def test_a_source_with_elements_stays_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    content = file_of(f'<source>a <byte value="x1b"/></source>{UNFINISHED}</translation>')
    assert translated(content) == content.decode()
    assert "a.ts: 'a <byte value=" in capsys.readouterr().err


def test_it_is_known_by_its_content_alone() -> None:
    assert recognise_format("a.txt", file_of()) == "ts"
    assert recognise_format("a.ts", b"const a: number = 1;\n") is None
