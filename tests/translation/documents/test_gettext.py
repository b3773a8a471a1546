"""PO files: messages are filled in and marked, and everything else stays."""

import time

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.gettext import read_po
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

HEADER = (
    '# Title\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n'
    '"Content-Type: text/plain; charset=UTF-8\\n"\n'
)
RULE = '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'


def translated(messages: str, target: str = "de", overwrite: bool = False) -> str:
    content = (HEADER + RULE + messages).encode()
    options = ReadingOptions(LanguagePair("en", target), overwrite)
    document = read_po(content, "a.po", options)
    found = translate_document(document, uppercase).decode()
    return found.removeprefix(HEADER + RULE) if target == "de" else found


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('msgid "a dog"\nmsgstr ""\n', '#, fuzzy\nmsgid "a dog"\nmsgstr "A DOG"\n'),
        (
            '#: a.c:1\n#, c-format\nmsgid "a"\nmsgstr ""\n',
            '#: a.c:1\n#, fuzzy, c-format\nmsgid "a"\nmsgstr "A"\n',
        ),
        (
            'msgctxt "menu"\nmsgid ""\n"a "\n"dog"\nmsgstr ""\n',
            '#, fuzzy\nmsgctxt "menu"\nmsgid ""\n"a "\n"dog"\nmsgstr "A DOG"\n',
        ),
        ('msgid "a"\nmsgstr "ein"\n', 'msgid "a"\nmsgstr "ein"\n'),
        ('msgid "12"\nmsgstr ""\n', 'msgid "12"\nmsgstr ""\n'),
        ('#~ msgid "a"\n#~ msgstr "b"\n', '#~ msgid "a"\n#~ msgstr "b"\n'),
        (
            'msgid "a \\"b\\" \\\\ <b>c</b>"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "a \\"b\\" \\\\ <b>c</b>"\nmsgstr "A \\"B\\" \\\\ <b>C</b>"\n',
        ),
        (
            'msgid "a.\\nb\\n"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "a.\\nb\\n"\nmsgstr ""\n"A.\\n"\n"B\\n"\n',
        ),
        (
            'msgid "one"\nmsgid_plural "many"\nmsgstr[0] ""\nmsgstr[1] ""\n',
            '#, fuzzy\nmsgid "one"\nmsgid_plural "many"\nmsgstr[0] "ONE"\nmsgstr[1] "MANY"\n',
        ),
        ('msgid "a"\nmsgstr ""', '#, fuzzy\nmsgid "a"\nmsgstr "A"\n'),
    ],
)
def test_messages_are_filled_in(message: str, expected: str) -> None:
    assert translated(message) == expected


@pytest.mark.parametrize(
    ("target", "forms", "rule"),
    [("ja", 1, "nplurals=1; plural=(0);"), ("pl", 3, "nplurals=3; plural=(n==1 ? 0 : n%10>=2")],
)
def test_the_target_language_has_its_own_number_of_forms(
    target: str, forms: int, rule: str
) -> None:
    plural = 'msgid "one"\nmsgid_plural "many"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    found = translated(plural, target)
    assert f'"Language: {target}\\n"' in found and rule in found
    assert found.count("msgstr[") == forms and f'msgstr[{forms - 1}] "MANY"' in found


def test_a_translation_is_replaced_if_asked_for() -> None:
    found = translated('msgid "a"\nmsgstr "ein"\n', overwrite=True)
    assert found == '#, fuzzy\nmsgid "a"\nmsgstr "A"\n'


def test_a_line_of_no_message_is_refused() -> None:
    message = "a.po: line 7 is 'what is this', expected a string in double quotes, or msgid"
    with pytest.raises(DataError, match=message):
        translated("what is this\n")


@pytest.mark.parametrize(
    "text", [" " * 200_000 + "a", "<b>" * 20_000 + "a" + "</b>" * 20_000, "<b><" * 20_000]
)
def test_a_long_message_takes_linear_time(text: str) -> None:
    start = time.process_time()
    translated(f'msgid "{text}"\nmsgstr ""\n')
    assert time.process_time() - start < 5
