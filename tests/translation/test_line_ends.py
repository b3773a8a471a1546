"""List marks, headings, quotes and white space stay at the ends of a line."""

from typing import Any, cast

import pytest

from nmt.config import DecodingConfig
from nmt.run_directory import LoadedModel
from nmt.translation.line import Line, Terminology, numbered_lines
from nmt.translation.line_ends import inner_span
from nmt.translation.spans import linked_words
from nmt.translation.translator import TranslationRequest, Translator

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


@pytest.mark.parametrize("document", [False, True])
def test_the_ends_stay_in_the_translation(copying_run: LoadedModel, document: bool) -> None:
    texts = [
        "- a dog",
        "  1) a dog.  ",
        "# a",
        "> > ein Hund. ein Hund",
        "\u3000a\u00a0",
        "-",
        " 5 ",
    ]
    pipeline = Translator(copying_run).pipeline(TranslationRequest(document=document))
    found = [best.text for best, *_ in pipeline.translate(numbered_lines(texts))]
    assert found == texts
    batches = cast(Any, copying_run.model).batches
    assert max(length for _, length in batches) <= len("ein Hund. ein Hund") + 2


def test_links_count_the_ends(copying_run: LoadedModel) -> None:
    pipeline = Translator(copying_run).pipeline(TranslationRequest(alignments=True))
    [[found]] = pipeline.translate([Line(1, "- a dog ")])
    assert found.alignment is not None
    assert found.alignment.words == ((1, 1), (2, 2))
    assert linked_words(found.alignment.links, "- a dog ", found.text) == ((1, 1), (2, 2))


def test_a_beginning_that_is_asked_for_is_the_beginning(copying_run: LoadedModel) -> None:
    settings = DecodingConfig(beam_size=2)
    lines = [Line(1, "- a dog", Terminology.of(prefix="* a"))]
    [[found]] = Translator(copying_run, settings).pipeline().translate(lines)
    assert found.text.startswith("* a")
