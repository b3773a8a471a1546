"""YAML: scalars that are texts change at their places, and every other byte stays."""

import random
import time

import pytest
import yaml

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.translate import TranslateTexts, translate_document
from nmt.translation.documents.yaml_values import read_yaml
from tests.reversing_translator import copying, uppercase

RAILS = """---
en:
  date:
    day_names: [Sunday, Monday]   # from Sunday
    abbr_month_names:
    -
    - Jan
    formats:
      default: "%Y-%m-%d"
    order:
    - :year
    - :month
  errors:
    blank: can't be blank
    invalid: 'Validation failed: %{errors}'
    too_long:
      one: is too long (maximum is 1 character)
      other: "is too long (maximum is %{count} characters)"
    "yes": Yes please
  number: {precision: 3, delimiter: ",", unit: $}
"""
FRONT_MATTER = """title: A day at the sea
date: 2026-11-28
draft: false
tags:
  - sea
  - "the beach"
image: /img/sea.jpg
summary: >-
  We went to the sea,
  and it was cold.

  But nice.
"""
ANCHORS = """defaults: &defaults
  label: &label Save it
  kind: !!str button
other:
  <<: *defaults
  again: *label
  own: !local {a: b c}
? - a complex
  - key
: A value
*label : z w
"""
BLOCKS = """a: |
  One line
    is indented

  Another one.


b: |2-
    Two spaces
  less
c: >+
  Folded text
  goes on.

# a comment
d: "Over
  two lines"
e: plain text
  goes on
f: 'single ''quoted'''
"""
DOCUMENTS = "%YAML 1.1\n---\nA text\n...\n---\n- Two words\n- - nested\n  - list\n--- # empty\n"
SYMFONY = (
    'login.title: "Log in"\nlogin.btn: \'Sign in\'\nerror:\n    404: "Not found"\n    on: No\n'
)
ASCII = 'a: "Caf\\u00e9"\nb: "Stra\\xdfe \\U0001f600"\n'
FLOW = '{"a": "One text", b: [two texts, "three: texts"], c: {d: e f}}\n'
FILES = [
    *(RAILS, FRONT_MATTER, ANCHORS, BLOCKS, DOCUMENTS, SYMFONY, ASCII, FLOW),
    *(
        "",
        "# nothing\n",
        "A text",
        "a: One",
        RAILS.replace("\n", "\r\n"),
        "k: 'é 😀 ü' # ö\nl: ä b",
    ),
]


def translated(
    content: str, translate: TranslateTexts = uppercase, options: ReadingOptions | None = None
) -> str:
    document = read_yaml(TextFile("a.yml", content), options or ReadingOptions())
    return translate_document(document, translate).decode()


@pytest.mark.parametrize("content", FILES)
def test_a_copy_is_the_same(content: str) -> None:
    assert translated(content, copying) == content


def test_texts_of_all_styles_are_translated() -> None:
    assert translated(BLOCKS) == (
        "a: |\n  ONE LINE\n    IS INDENTED\n\n  ANOTHER ONE.\n\n\nb: |2-\n    TWO SPACES\n  LESS\n"
        "c: >+\n  FOLDED TEXT GOES ON.\n\n# a comment\n"
        "d: \"OVER TWO LINES\"\ne: PLAIN TEXT GOES ON\nf: 'SINGLE ''QUOTED'''\n"
    )
    assert translated(FLOW) == '{"a": "ONE TEXT", b: [TWO TEXTS, "THREE: TEXTS"], c: {d: E F}}\n'
    assert translated(ASCII) == 'a: "CAF\\u00c9"\nb: "STRASSE \\U0001f600"\n'


def test_anchors_tags_and_keys_stay() -> None:
    assert translated(ANCHORS) == (
        ANCHORS.replace("Save it", "SAVE IT").replace("A value", "A VALUE").replace("z w", "Z W")
        .replace("{a: b c}", "{a: B C}")
    )  # fmt: skip


@pytest.mark.parametrize("content", FILES)
def test_the_same_values_are_read_again(content: str) -> None:
    def strings(text: str) -> list[str]:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        return [e.value.upper() for e in events if isinstance(e, yaml.ScalarEvent)]

    assert strings(translated(content)) == strings(content)


@pytest.mark.parametrize(
    ("source", "target", "content", "expected"),
    [
        ("en", "de", "en:\n  a: b\n", "de:\n  a: B\n"),
        ("en", "de", "# c\n'en-GB': # d\n  a: b\n", "# c\n'de': # d\n  a: B\n"),
        ("en", "no", "en:\n  a: b\n", '"no":\n  a: B\n'),
        ("en", "pt_BR", "en_US:\n  a: b\n", "pt_BR:\n  a: B\n"),
        ("en", "de", "en:\n  a: b\nfr:\n  a: c\n", "en:\n  a: B\nfr:\n  a: C\n"),
        ("en", "de", "en: b\n", "en: B\n"),
        ("fr", "de", "en:\n  a: b\n", "en:\n  a: B\n"),
        ("und", "und", "en:\n  a: b\n", "en:\n  a: B\n"),
    ],
)
def test_the_language_at_the_top_is_replaced(
    source: str, target: str, content: str, expected: str
) -> None:
    assert translated(content, options=ReadingOptions(LanguagePair(source, target))) == expected


def test_numbers_dates_and_codes_stay() -> None:
    content = "a: 12\nb: 2020-01-01\nc: yes\nd: ~\ne: .nan\nf: btn_ok\ng: :year\nh: !x y z\n"
    assert translated(content) == content


def test_a_key_chooses_values() -> None:
    options = ReadingOptions(key=("errors.too_long", "formats"), skip_key=("one",))
    found = translated(RAILS, options=options)
    changed = "is too long (maximum is %{count} characters)"
    assert found == RAILS.replace(changed, changed.upper())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: b: c", "line 1, column 5: is no YAML: mapping values are not allowed"),
        ("a:\n  - b\n c: d", "line 3, column 2: is no YAML"),
        ("a: 'b", "is no YAML: found unexpected end of stream"),
        ("\ta: x", "line 1, column 1: is no YAML: found character that cannot start"),
        ("a: \x01", "line 1, column 4: is no YAML: "),
        ("a: *b", "a.yml"),
        ("[" * 100_000, "column 257: more than 256 values are inside each other; divide the file"),
        ("\ufeff\ufeffa: b", "a second mark of the byte order"),
    ],
)
def test_a_damaged_file_is_refused(content: str, message: str) -> None:
    if content == "a: *b":  # an alias of nothing is no matter here: it stays
        assert translated(content) == content
        return
    with pytest.raises(DataError, match=message):
        translated(content)


def test_damaged_bytes_are_refused_or_stay() -> None:
    draw = random.Random(0)
    parts = [
        '"',
        "'",
        "{",
        "]",
        ":",
        "\n",
        "\xff",
        "\x00",
        "|",
        ">",
        "  ",
        "# ",
        "- ",
    ]
    for _ in range(300):
        content = draw.choice([file for file in FILES if "&" not in file])
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(content) + 1)
            content = content[:at] + draw.choice(parts) + content[at + draw.choice([0, 1, 4]) :]
        try:
            found = translated(content, copying)
        except DataError:
            continue
        assert found == content


def test_a_long_file_takes_linear_time() -> None:
    start = time.process_time()
    translated("".join(f"k{i}: A small dog\n" for i in range(5_000)))
    assert time.process_time() - start < 10
