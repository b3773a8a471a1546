"""Text in capitals is translated in small letters, and put into capitals again."""

from dataclasses import replace
from typing import Any

import pytest

from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText
from nmt.recipe.config import DataConfig
from nmt.run.model import LoadedModel
from nmt.translation.capitals import CapitalsTransform, upper
from nmt.translation.line import (
    Alignment,
    EncodedLine,
    Line,
    Terminology,
    Translation,
    numbered_lines,
)
from nmt.translation.request import TranslationRequest
from nmt.translation.spans import Link
from nmt.translation.translator import Translator


def transform(
    run: LoadedModel, source: str = "en", target: str = "de", **asked: Any
) -> CapitalsTransform:
    data = DataConfig(source_language=source, target_language=target)
    return CapitalsTransform(data, run.tokenizer.source, Terminology.of(**asked))


@pytest.mark.parametrize(
    ("language", "text", "lower"),
    [
        ("en", "A SMALL DOG, AND A CAT.", "A small dog, and a cat."),
        ("en", '"AND I RUN," I SAID.', '"And I run," I said.'),
        ("en", "STOP!", "Stop!"),
        ("de", "DIE STRASSE IST GROẞ", "Die strasse ist groß"),
        ("tr", "ISPARTA İLE İZMİR", "Isparta ile izmir"),
        ("en", "İZMİR IS BIG", "İzmir is big"),
        ("nl", "IJSLAND IS KOUD", "IJsland is koud"),
        ("el", "Ο ΔΡΟΜΟΣ", "Ο δρομος"),
        ("ru", "МАЛЕНЬКАЯ СОБАКА", "Маленькая собака"),
        # not in capitals, too short, or without capitals
        *[
            ("en", text, text)
            for text in ("A dog of NASA", "USA", "OK, TV, US", "I", "A", "5 €", "", "iOS")
        ],
        ("zh", "我喜欢狗", "我喜欢狗"),
        ("ka", "პატარა ძაღლი", "პატარა ძაღლი"),
    ],
)
def test_the_model_gets_small_letters(
    copying_run: LoadedModel, language: str, text: str, lower: str
) -> None:
    [line] = transform(copying_run, language, "en" if language != "en" else "de").lower(
        [Line(1, text)]
    )
    assert (line.text, line.capitals) == (lower, lower != text)
    assert len(line.text) == len(text)


def test_terms_in_capitals_stay(copying_run: LoadedModel) -> None:
    of_all = transform(copying_run, glossary={"NASA": "Nasa", "dog": "Köter"})
    of_line = Terminology.of({"CIA": "CIA"})
    [line] = of_all.lower([Line(1, "A DOG OF NASA AND CIA", of_line)])
    assert line.text == "A dog of NASA and CIA"


@pytest.mark.parametrize(
    ("language", "text", "capitals"),
    [("de", "große Straße", "GROSSE STRASSE"), ("tr", "ılık ismi", "ILIK İSMİ"), ("en", "i", "I")],
)
def test_capitals_are_those_of_the_language(language: str, text: str, capitals: str) -> None:
    assert upper(text, language) == capitals


def test_links_count_letters_that_become_two(copying_run: LoadedModel) -> None:
    line = replace(Line(1, "A big street is here"), capitals=True)
    alignment = Alignment(links=(Link((0, 5), (0, 5)), Link((5, 12), (5, 12))))
    found = Translation("große Straße da", 0.0, alignment=alignment)
    [[upper_case]] = transform(copying_run).restore([EncodedLine(line, [5, 3])], [[found]])
    assert upper_case.text == "GROSSE STRASSE DA"
    assert upper_case.alignment is not None
    spans = [upper_case.text[slice(*target)] for _, target in upper_case.alignment.links]
    assert spans == ["GROSSE", " STRASSE"]


TEXTS = [
    *("A SMALL DOG. AND A CAT? YES!", "- A SMALL DOG", "SEE {name}, AND %s", "😀 A SMALL DOG 👍!"),
    *("A small DOG", "NASA", "A DOG AND https://x.org/Ab"),
]


@pytest.mark.parametrize("asked", [{}, {"document": True}, {"alignments": True}])
def test_a_copy_in_capitals_is_the_text(copying_run: LoadedModel, asked: dict[str, Any]) -> None:
    request = TranslationRequest(protected=ProtectedText(USUAL_PATTERNS), **asked)
    pipeline = Translator(copying_run).pipeline(request)
    found = [best.text for best, *_ in pipeline.translate(numbered_lines(TEXTS))]
    assert found == TEXTS


def test_a_term_in_the_translation_stays_as_it_is_written(copying_run: LoadedModel) -> None:
    request = TranslationRequest(terminology=Terminology.of({"dog": "Hund"}))
    [[found]] = Translator(copying_run).pipeline(request).translate([Line(1, "A SMALL DOG NOW")])
    assert "Hund" in found.text
    assert found.text.replace("Hund", "").isupper()
