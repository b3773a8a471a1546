"""PO files: messages are filled in and marked, and everything else stays."""

import re
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


DOGS = "{n, plural, one {<b>%d</b> dog}  other {%d dogs}}"


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
        # no line end after the last line
        ('msgid "a"\nmsgstr ""', '#, fuzzy\nmsgid "a"\nmsgstr "A"'),
        (
            'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""',
            '#, fuzzy\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] "A"\nmsgstr[1] "B"',
        ),
        # flags of an obsolete message, and of a previous one
        (
            '#, fuzzy\n#~ msgid "a"\n#~ msgstr "b"\n\nmsgid "a"\nmsgstr ""\n',
            '#, fuzzy\n#~ msgid "a"\n#~ msgstr "b"\n\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n',
        ),
        (
            '#, fuzzy\n#, c-format\n#| msgid "z"\nmsgid "a"\nmsgstr ""\n',
            '#, fuzzy\n#, c-format\n#| msgid "z"\nmsgid "a"\nmsgstr "A"\n',
        ),
        (
            '#| msgid "z"\nmsgid "a"\nmsgstr ""\n',
            '#, fuzzy\n#| msgid "z"\nmsgid "a"\nmsgstr "A"\n',
        ),
        # a message twice
        (
            'msgid "a"\nmsgstr ""\n\nmsgid "a"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "a"\nmsgstr "A"\n\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n',
        ),
        # one of two forms
        (
            'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "eins"\nmsgstr[1] ""\n',
            '#, fuzzy\nmsgid "one"\nmsgid_plural "many"\nmsgstr[0] "eins"\nmsgstr[1] "MANY"\n',
        ),
        # line ends and control characters in texts
        (
            'msgid "\\aa.\\r\\n\\r\\nb"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "\\aa.\\r\\n\\r\\nb"\nmsgstr ""\n"\\aA.\\r\\n"\n"\\r\\n"\n"B"\n',
        ),
        # an ICU message
        (
            f'#, python-brace-format\nmsgid "a.\\n<i>b</i> {DOGS} {{c}}"\nmsgstr ""\n',
            f'#, fuzzy, python-brace-format\nmsgid "a.\\n<i>b</i> {DOGS} {{c}}"\nmsgstr ""\n'
            f'"A.\\n"\n"<i>B</i> {DOGS} {{c}}"\n',
        ),
        # the flags say what a placeholder is
        (
            '#, c-format\nmsgid "%dpx % d {a}"\nmsgstr ""\n',
            '#, fuzzy, c-format\nmsgid "%dpx % d {a}"\nmsgstr "%d PX % d {A}"\n',
        ),
        (
            '#, python-brace-format\nmsgid "%d a {a}"\nmsgstr ""\n',
            '#, fuzzy, python-brace-format\nmsgid "%d a {a}"\nmsgstr "%D A {a}"\n',
        ),
        (
            '#, no-c-format\nmsgid "5% de a"\nmsgstr ""\n',
            '#, fuzzy, no-c-format\nmsgid "5% de a"\nmsgstr "5% DE A"\n',
        ),
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


def filled(content: bytes, target: str = "de") -> bytes:
    options = ReadingOptions(LanguagePair("en", target))
    return translate_document(read_po(content, "a.po", options), uppercase)


@pytest.mark.parametrize(
    ("target", "one", "forms"),
    [
        # 1 and 21 have the same form in Russian, so it needs the number
        ("ru", "one", ["%D MANY", "%D MANY", "%D MANY"]),
        ("ru", "%d one", ["%D ONE", "%D MANY", "%D MANY"]),
        ("pl", "one", ["ONE", "%D MANY", "%D MANY"]),
        ("ar", "one", ["%D MANY", "ONE", *["%D MANY"] * 4]),
        ("ja", "one", ["%D MANY"]),
        ("pt", "one", ["ONE", "%D MANY"]),
        ("pt_BR", "one", ["%D MANY", "%D MANY"]),
        # other languages that begin with the letters of Korean and Czech
        ("kok", "one", ["ONE", "%D MANY"]),
        ("csb", "one", ["ONE", "%D MANY", "%D MANY"]),
        ("zh_Hant", "one", ["%D MANY"]),
    ],
)
def test_the_form_of_one_has_the_singular_if_it_stands_for_no_other_number(
    target: str, one: str, forms: list[str]
) -> None:
    message = f'msgid "{one}"\nmsgid_plural "%d many"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    found = translated(message, target).split("\n")
    assert [line.partition('"')[2][:-1] for line in found if line.startswith("msgstr[")] == forms


@pytest.mark.parametrize(
    ("header", "target", "expected"),
    [
        # a country is kept, and so are the plural forms
        (["Language: de_AT"], "de", ["Language: de_AT", "nplurals=2; plural=(n != 1);"]),
        (["Language: pt_BR"], "pt", ["Language: pt_BR", "nplurals=2; plural=(n > 1);"]),
        (["Language: pt"], "pt_BR", ["Language: pt\\n"]),
        (["Language: fr"], "pt_BR", ["Language: pt_BR\\n", "plural=(n > 1);"]),
        (["Language: zh_CN"], "zh_Hant", ["Language: zh_Hant\\n"]),
        (["Language: zh_TW"], "zh_Hant", ["Language: zh_TW\\n"]),
        (["Language: sr@latin"], "sr", ["Language: sr@latin\\n", "nplurals=3;"]),
        ([], "de", ["Language: de\\n", "Plural-Forms: nplurals=2"]),
        # fields on two lines, two fields on a line, and a last one without an end
        (
            ["Language: pl", 'Plural-Forms: nplurals=3; "\n"plural=(n==1 ? 0 : "\n"n<5 ? 1 : 2);'],
            "pl",
            ['nplurals=3; "\n"plural=(n==1 ? 0 : "\n"n<5 ? 1 : 2);'],
        ),
        (
            ["Language: fr", 'Plural-Forms: nplurals=2; "\n"plural=(n > 1);', "X-A: b"],
            "pl",
            ["Language: pl\\n", '"Plural-Forms: nplurals=3; plural=(n==1 ?', '"X-A: b\\n"'],
        ),
        (["X-A: b\\nLanguage: \\nX-C: d"], "de", ['"X-A: b\\nLanguage: de\\nX-C: d\\n"']),
        # plural forms that are none
        (
            ["Language: de", "Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;"],
            "de",
            ["nplurals=2;"],
        ),
        (["Language: de", "Plural-Forms: nplurals=999; plural=n;"], "de", ["nplurals=2;"]),
        (["Language: de", "Plural-Forms: nplurals=2; plural=n/0;"], "de", ["plural=(n != 1);"]),
        (["Language: de", "Plural-Forms: nplurals=2; plural=((;"], "de", ["plural=(n != 1);"]),
        (["Content-Type: text/plain; charset=CHARSET"], "de", ["charset=UTF-8\\n"]),
    ],
)
def test_the_header_says_the_target_language(
    header: list[str], target: str, expected: list[str]
) -> None:
    fields = "".join(f'"{line}\\n"\n' for line in header)
    content = f'msgid ""\nmsgstr ""\n{fields}\nmsgid "a"\nmsgstr ""\n'
    found = filled(content.encode(), target).decode()
    assert all(part in found for part in expected)
    assert found.count("Language:") == found.count("Plural-Forms:") == 1
    assert found.endswith('\n\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n')


def test_a_header_is_added_and_found_wherever_it_is() -> None:
    message = 'msgid "a"\nmsgstr ""\n'
    assert b'charset=UTF-8\\n"\n' in filled(message.encode())
    found = filled(f'{message}\nmsgid ""\nmsgstr "X-A: b"\n'.encode()).decode()
    assert found.endswith('\n\nmsgid ""\nmsgstr "X-A: b\\n"\n' + found.partition('b\\n"\n')[2])
    assert found.count('msgid ""') == 1 and '"Language: de\\n"' in found


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_stay(end: str, mark: str) -> None:
    plural = 'msgid "a.\\nb"\nmsgid_plural "c"\nmsgstr[0] ""\n'
    content = (mark + HEADER + plural).replace("\n", end).encode()
    found = filled(content, "pl").decode()
    lines = found.removeprefix(mark).split(end)
    assert found.startswith(mark) and 'msgstr[2] "C"' in lines
    assert not any("\r" in line or "\n" in line for line in lines)


@pytest.mark.parametrize(
    ("charset", "text", "expected"),
    [
        ("ISO-8859-1", "ä", "iso-8859-1"),
        ("ISO-8859-1", "ÿ", "utf-8"),  # Ÿ is not in it
        ("KOI8-R", "ж", "koi8-r"),
        ("SHIFT_JIS", "ソ", "shift_jis"),
        ("GB18030", "诶", "gb18030"),
    ],
)
def test_a_charset_that_lacks_a_letter_becomes_utf_8(
    charset: str, text: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    header = f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; "\n"charset={charset}\\n"\n'
    content = f'{header}\nmsgid "{text}"\nmsgstr ""\n'.encode(charset)
    found = filled(content).decode(expected)
    assert f'msgstr "{text.upper()}"' in found
    is_changed = expected == "utf-8"
    assert f"charset={'UTF-8' if is_changed else charset}\\n" in found
    assert ("lacks characters of the translation, such as 'Ÿ'" in capsys.readouterr().err) == (
        is_changed
    )


def test_a_translation_is_replaced_if_asked_for() -> None:
    found = translated('msgid "a"\nmsgstr "ein"\n', overwrite=True)
    assert found == '#, fuzzy\nmsgid "a"\nmsgstr "A"\n'


@pytest.mark.parametrize(
    ("fields", "overwrite", "message"),
    [
        ("Language: de_AT", False, ""),
        ("Language: fr", True, "Language was fr and is de now"),
        ("Language: C", False, ""),
        ("Language: fr_FR.UTF-8", False, "Language is fr_FR.UTF-8, but the model translates into"),
        (
            "Language: fr",
            False,
            "translations of the file stay .2.; .* into fr, .* again with .overwrite.",
        ),
        ("X-Source-Language: fr\\nLanguage: de", True, "X-Source-Language is fr, .* from en"),
        ("X-Source-Language: C\\nLanguage: de", True, ""),
    ],
)
def test_languages_of_the_header_are_compared(
    fields: str, overwrite: bool, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = "".join(f'\nmsgid "{text}"\nmsgstr "x"\n' for text in "ab")
    content = f'msgid ""\nmsgstr "{fields}\\n"\n{messages}\nmsgid "c"\nmsgstr ""\n'.encode()
    options = ReadingOptions(LanguagePair("en", "de"), overwrite)
    said = ""
    try:
        read_po(content, "a.po", options)
    except DataError as error:
        said = str(error)
    said += capsys.readouterr().err
    assert re.search(f"a.po: its .*{message}", said) if message else not said


STRINGS = "a string in double quotes, or msgid"
ORDER = "a msgid, its msgid_plural if it has one"


@pytest.mark.parametrize(
    ("messages", "line", "expected"),
    [
        ("what is this\n", "7 is 'what is this'", STRINGS),
        ('msgid "a\nmsgstr ""\n', "7 is 'msgid \"a'", STRINGS),
        ('# a\n"a"\n', "8 is '\"a\"'", STRINGS),
        ('\nmsgstr "a"\n', "8 is 'msgstr \"a\"'", ORDER),
        ('\nmsgstr[0] "a"\n', "8 is 'msgstr[0]", ORDER),
        ('msgctxt "a"\nmsgstr "a"\n', "8 is 'msgstr", ORDER),
        ('msgctxt "a"\n\nmsgctxt "b"\nmsgid "c"\n', "9 is 'msgctxt", ORDER),
        ('msgid "a"\nmsgid "b"\n', "8 is 'msgid", ORDER),
        ('msgid "a"\nmsgstr ""\nmsgstr ""\n', "9 is 'msgstr", ORDER),
        ('msgid "a"\nmsgstr[0] ""\n', "8 is 'msgstr[0]", ORDER),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr ""\n', "9 is 'msgstr", ORDER),
        ('msgctxt "a"\n', "7 is 'msgctxt \"a\"'", "a msgstr after it"),
        ('msgid "a"\n', "7 is 'msgid \"a\"'", "a msgstr after it"),
    ],
)
def test_a_line_of_no_message_is_refused(messages: str, line: str, expected: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"a.po: line {line}")) as caught:
        translated(messages)
    assert f"expected {expected}" in str(caught.value)


@pytest.mark.parametrize(
    "text", [" " * 200_000 + "a", "<b>" * 20_000 + "a" + "</b>" * 20_000, "<b><" * 20_000]
)
def test_a_long_message_takes_linear_time(text: str) -> None:
    start = time.process_time()
    translated(f'msgid "{text}"\nmsgstr ""\n')
    assert time.process_time() - start < 5


def test_many_headers_take_linear_time() -> None:
    start = time.process_time()
    filled(b'msgid ""\nmsgstr ""\n' + b'"Content-Type: "\n' * 5000)
    assert time.process_time() - start < 5
