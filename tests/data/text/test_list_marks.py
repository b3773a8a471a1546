"""List marks, headings, quotes and white space are not part of the text of a line."""

import pytest

from nmt.data.text.list_marks import inner_span

# the text that the model gets is between the bars
ENGLISH = [
    *("- |Hello|", "* |Hello|", "+ |Hello|", "• |Hello|", "•|Hello|", "– |Hello|", "— |Hello|"),
    *("1) |Hello|", "12) |Hello|", "(1) |Hello|", "a) |Hello|", "(a) |Hello|", "iv) |Hello|"),
    *("1. |Hello|", "1.1. |Hello|", "# |Title|", "###### |Title|", "> |Hello|", "> > |Hello|"),
    *(">> |Hello|", ">|Hello|", "> - 1) |Hello|", "- [ ] |Hello|", "- [x] |Hello|", "☐ |Hello|"),
    *("① |Hello|", "①|你好|", "・|项目|", "→ |Hello|", "- |5|", "* |1950|", "\t- |Hello|"),
    *("  |Hello|  ", "\u3000|你好|\u3000", "\t|Hello|\u00a0", "|Hello| ", "- |Hello|\r"),
    # what looks like a mark
    *(
        "|1. hello|",
        "|1.5 million|",
        "|1950. Hello|",
        "|A. Smith|",
        "|a. hello|",
        "|#1 fan|",
        "|# 8 fan|",
        "## |8 fans|",
    ),
    *("|-Hello|", "|-5 degrees|", "|*bold* text|", "|**bold** text|", "|... and so|", "|1000) x|"),
    *("|>:( no|", "|(laughs) Hello|", '|"Hello"|', "|5|", "|---|", "- - |-|", "|-|", "| - |"),
    *("|>>fr<< Hello|", "|Hello|", "||", "|  |", "|I|", "|≥ 5 dogs|", "|1 ) x|", "|$5 a dog|"),
]
GERMAN = ["|1. Mai|", "|1. FC Köln|", "|3. Oktober|", "1) |Hallo|", "- |1. Mai|"]


@pytest.mark.parametrize(
    ("language", "marked"),
    [("en", text) for text in ENGLISH]
    + [(code, text) for code in ("de", "de-AT") for text in GERMAN],
)
def test_the_model_gets_the_text_between_the_ends(language: str, marked: str) -> None:
    before, inside, after = marked.split("|")
    text = before + inside + after
    start, end = inner_span(text, language)
    assert (text[:start], text[start:end], text[end:]) == (before, inside, after)
