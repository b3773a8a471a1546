"""A text written as a scalar of YAML is read as the same text, in every style."""

import random

import pytest
import yaml

from nmt.translation.documents.yaml_scalars import ScalarSource

TEXTS = [
    *("yes", "No", "y", "null", "~", "12", "1e3", "2020-01-01", "12:30", "0o7", "=", "<<", "on"),
    *("- a", "? a", ": a", "a: b", "a:", "a #b", "#a", "&a", "*a", "!a", "|a", ">a", "%a", "@a"),
    *(
        "`a",
        "[a",
        "{a",
        "a]",
        "a, b",
        "'a'",
        '"a"',
        "it's",
        'a "b"',
        "'",
        "\\",
        "a\\nb",
        "-",
        "---",
    ),
    *(
        "é",
        "ß 😀",
        "a\tb",
        " a",
        "a ",
        "a  b",
        "a\nb",
        "a\n\nb",
        "%{count} a",
        ":year",
        "a?",
        "...",
    ),
]
STYLES = {
    "plain": ("old", "old"),
    "single": ("'old'", "old"),
    "double": ('"old"', "old"),
    "literal": ("|\n    old\n", "old\n"),
    "literal, no end": ("|-\n    old\n", "old"),
    "literal, all ends": ("|+\n\n    old\n\n\n", "\nold\n\n\n"),
    "folded": (">\n    old\n    older\n", "old older\n"),
    "folded, no end": (">-  # comment\n    old\n\n    x\n", "old\nx"),
    "explicit": ("|2-\n      old\n    x\n", "  old\nx"),
}


def read(source: str) -> object:
    end = "" if source.endswith("\n") else "\n"
    return yaml.safe_load(f"k:\n  a: {source}{end}  z: 1\n")["k"]["a"]


@pytest.mark.parametrize(
    ("style", "in_flow"),
    [*((style, False) for style in STYLES), ("plain", True), ("single", True), ("double", True)],
)
def test_what_is_written_is_read_again(style: str, in_flow: bool) -> None:
    source, old = STYLES[style]
    assert read(source) == old
    draw = random.Random(0)
    texts = TEXTS + ["".join(draw.choices("ab ,:#-'\"\n[]{}&*!|>%", k=8)) for _ in range(80)]
    edges = old[: len(old) - len(old.lstrip("\n"))], old[len(old.rstrip("\n")) :]
    for text in texts:
        if source[0] in "|>":  # line breaks at both ends stay those of the file
            text = edges[0] + (text.strip("\n") or "a") + edges[1]
        written = ScalarSource(source, old, in_flow).write(text, False)
        found = read(f"[{written}]")[0] if in_flow else read(written)  # type: ignore[index]
        assert found == text, (text, written)


@pytest.mark.parametrize(
    ("source", "old", "text", "expected"),
    [
        ("old", "old", "new text", "new text"),
        ("old", "old", "a: b", '"a: b"'),
        ("old", "old", 'a: "b"', "'a: \"b\"'"),
        ("'old'", "old", "it's", "'it''s'"),
        ('"old"', "old", "yes", '"yes"'),
        ("|\n  old\n\n", "old\n", "a\n\nb\n", "|\n  a\n\n  b\n\n"),
        ("|\r\n  old\r\n", "old\n", "a\nb\n", "|\r\n  a\r\n  b\r\n"),
        (">\n  one two three\n  four\n", "one two three four\n", "x\ny\n", ">\n  x\n\n  y\n"),
        (">\n  old\n", "old\n", "a\n b\n", "|\n  a\n   b\n"),
        ("| # why\n  old\n\n", "old\n", " a\n", '" a\\n" # why\n\n'),
        (">\n  " + "a " * 20 + "\n", "old\n", "b " * 29 + "b\n", ">\n" + ("  " + "b " * 19 + "b\n")
         + "  " + "b " * 9 + "b\n"),
    ],
)  # fmt: skip
def test_the_style_stays_if_it_can(source: str, old: str, text: str, expected: str) -> None:
    assert ScalarSource(source, old, False).write(text, False) == expected


def test_a_file_in_ascii_stays_so() -> None:
    assert ScalarSource('"old"', "old", False).write("é 😀", True) == r'"\u00e9 \U0001f600"'
