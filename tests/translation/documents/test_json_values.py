"""JSON, JSON Lines and ARB: texts change, and every other byte stays."""

import contextlib
import json
import random
import time

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.translate import TranslateTexts, translate_document
from tests.reversing_translator import copying, reversing, uppercase

I18NEXT = """{
  "nav": {"home": "Home", "sign_in": "Sign in", "url": "https://a.org"},
  "items_one": "{{count}} item",
  "items_other": "{{count}} items",
  "welcome": "Welcome, <1>{{name}}</1>!\\nHave fun."
}
"""
PRODUCTS = """[
\t{"id": "sku_1", "name": "A red chair", "price": 12.50, "tags": ["wood", "for the garden"],
\t "image": "img/chair.png", "colour": "#ff0000", "stock": null, "on_sale": true},
\t{"id": "sku_2", "name": "Table", "price": 1E+400, "tags": []}
]"""
CHROME = """{"appName": {"message": "My extension", "description": "The name"},
 "hi": {"message": "Hi $NAME$", "placeholders": {"name": {"content": "$1"}}}}"""
WITH_COMMENTS = (
    '// settings\n{ /* all */ "a": "One text", "b": NaN, "c": -Infinity, "a": "Two", }\n'
)
ESCAPED = (
    '{"a":"Caf\\u00e9 \\ud83d\\ude00","b":"\\u003cb\\u003eA word\\u003c\\/b\\u003e","c":"x\\ty"}'
)
LINES = '{"text": "A dog."}\n\n{"text": "A cat.", "n": 1}\r\n["Yes"] "No" 3\n'
ARB = """{
  "@@locale": "en",
  "title": "My app",
  "@title": {"description": "The title", "type": "text"},
  "dogs": "{n, plural, one {# dog} other {# dogs}}"
}"""
FILES = [
    ("json", I18NEXT.encode()),
    ("json", I18NEXT.replace("\n", "\r\n").encode("utf-16")),
    ("json", b"\xef\xbb\xbf" + PRODUCTS.encode()),
    ("json", CHROME.encode()),
    ("json", WITH_COMMENTS.encode()),
    ("json", ESCAPED.encode()),
    ("json", b'{"a":' * 250 + b'"Deep"' + b"}" * 250),
    ("json", b'"A text"'),
    ("json", "{'x': 1}".replace("'", '"').encode() + b"\n\n"),
    ("jsonl", LINES.encode()),
    ("jsonl", b""),
    ("arb", ARB.encode()),
]


def translated(
    content: str | bytes,
    key: str = "json",
    translate: TranslateTexts = uppercase,
    options: ReadingOptions | None = None,
) -> str:
    content = content if isinstance(content, bytes) else content.encode()
    document = read_document(content, f"a.{key}", key, options or ReadingOptions())
    return translate_document(document, translate).decode()


@pytest.mark.parametrize(("key", "content"), FILES)
def test_a_copy_is_the_same_bytes(key: str, content: bytes) -> None:
    document = read_document(content, "a", key, ReadingOptions())
    assert translate_document(document, copying) == content


@pytest.mark.parametrize(("key", "content"), FILES)
def test_what_is_written_is_json(key: str, content: bytes) -> None:
    document = read_document(content, "a", key, ReadingOptions())
    read_document(translate_document(document, reversing), "a", key, ReadingOptions())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"a": "A \\"dog\\""}', '{"a": "A \\"DOG\\""}'),
        ('{"a": "b\\\\c d\\/e"}', '{"a": "B\\\\C D\\/E"}'),
        ('{"a": "caf\\u00e9"}', '{"a": "CAF\\u00c9"}'),
        ('{"a": "café \\u00e9"}', '{"a": "CAFÉ É"}'),
        ('{"a": "x \\u0027 \\u003cb>z"}', '{"a": "X \\u0027 \\u003cb>Z"}'),
        ('{"a": "One.\\r\\nTwo\\r\\n"}', '{"a": "ONE.\\r\\nTWO\\r\\n"}'),
        ('{"a": ["one", {"b": "two"}], "c": "a_b"}', '{"a": ["ONE", {"b": "TWO"}], "c": "a_b"}'),
        ('{"a": 12, "b": "12", "c": true}', '{"a": 12, "b": "12", "c": true}'),
    ],
)  # fmt: skip
def test_texts_are_translated(content: str, expected: str) -> None:
    assert translated(content) == expected


def test_an_icu_message_is_a_part_of_one_text() -> None:
    message = "{n, plural,\\n one {<b>a</b> dog}\\n other {dogs}}"
    content = f'["{message}", "One {message} two\\nthree", "\\n{message}\\n"]'
    document = read_document(content.encode(), "a.json", "json", ReadingOptions())
    plain = message.replace("\\n", "\n")
    assert list(document.texts()) == [plain, f"One {plain} two three", plain]
    found = translate_document(document, uppercase).decode()
    assert found == content.replace("One", "ONE").replace("two\\nthree", "TWO\\nTHREE")


def test_a_value_with_control_characters_stays(capsys: pytest.CaptureFixture[str]) -> None:
    content = '{"a": "\\u001b[31mRed words", "b": "half \\ud800", "c": "word"}'
    assert translated(content) == content.replace('"word"', '"WORD"')
    assert capsys.readouterr().err == (
        "warning: 2 of the texts have control characters, which a translation would lose, and stay "
        "as they are; a.json: line 1, column 7: the first one\n"
    )


def test_the_key_of_the_language_is_replaced() -> None:
    options = ReadingOptions(LanguagePair("en", "pt_BR"))
    assert translated('{"en": {"a": "b"}}', options=options) == '{"pt-BR": {"a": "B"}}'
    assert translated('{"en": "b"}', options=options) == '{"en": "B"}'
    both = '{"en": {"a": "b"}, "fr": {}}'
    assert translated(both, options=options) == '{"en": {"a": "B"}, "fr": {}}'


def test_an_arb_file_has_the_locale_of_its_translation() -> None:
    found = translated(ARB, "arb", options=ReadingOptions(LanguagePair("en", "pt_BR")))
    assert found == ARB.replace('"en"', '"pt_BR"').replace("My app", "MY APP")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"line 1, column 1: got the end of the file, expected a value"),
        ('{"a": "b"', r"column 10: got the end of the file, expected ',' or '}'"),
        ('{"a" "b"}', r"""column 6: got '"b"}', expected ':'; check it with"""),
        ('{\n "a": b}', r"line 2, column 7: got 'b}', expected a value"),
        ("{'a': 1}", r"got \"'a': 1}\", expected a key or '}'"),
        ('{"a": "b\n"}', r"""got '"b', expected a value; a string must end in its line"""),
        ('["a"]]', r"expected the end of the file; check it"),
        ('{"a": 1} {}', r"expected the end of the file; name a file of several values .jsonl"),
        ('["\\x"]', r"column 2: the string \"\\x\" has an escape that JSON lacks"),
        ("[1 2]", r"got '2]', expected ',' or ']'"),
        ('{"a", 1}', r"expected ':'"),
        ("[" * 100_000, r"column 257: more than 256 values are inside each other"),
        ("/* a", r"got '/\* a', expected a value"),
    ],
)
def test_a_damaged_file_is_refused(content: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^a.json: .*{message}"):
        translated(content)


def test_damaged_bytes_are_refused_or_stay() -> None:
    draw = random.Random(0)
    parts = [
        b'"',
        b"\\",
        b"{",
        b"]",
        b",",
        b"\n",
        b"\xff",
        b"\x00",
        b"\\ud800",
        b" ",
        b"/*",
        b"<b>",
    ]
    for _ in range(300):
        key, content = draw.choice(FILES)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(content) + 1)
            content = content[:at] + draw.choice(parts) + content[at + draw.choice([0, 1, 4]) :]
        try:
            document = read_document(content, "a", key, ReadingOptions())
        except DataError:
            continue
        assert translate_document(document, copying) == content


@pytest.mark.parametrize("unit", ['{"a":"b c"},', '"', "\\", "/*", "[],", '"\\u0041 a",', "1"])
def test_a_long_file_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    content = "[" + unit * 4_000
    with contextlib.suppress(DataError):
        translated(content.removesuffix(",") + "]")
    assert time.process_time() - start < 5


def test_a_large_text_is_one_string() -> None:
    text = "A word. " * 2_000
    assert json.loads(translated(json.dumps([text])))[0] == text.upper()
