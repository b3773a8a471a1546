"""Protected parts arrive exactly once, whatever a model makes of the numbers in their place."""

import os
import random
import re
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import DataError
from nmt.evaluation.metrics import bleu
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel, load_model
from nmt.translation.line import (
    Alignment,
    EncodedLine,
    Line,
    Terminology,
    Translation,
    has_words,
    numbered_lines,
)
from nmt.translation.protected import ProtectionTransform
from nmt.translation.request import TranslationRequest
from nmt.translation.spans import Link
from nmt.translation.translator import Translator
from tests.stand_in_models import Copier

USUAL = ProtectedText(USUAL_PATTERNS)
LINES = [
    "See https://x.org/a?b=1, or mail a@b.de.",
    "{name} has %d of 3 dogs",
    "{name}: https://x.org",
    "{a}{b}",
    "",
    "no part",
    "One {a}. Two {b}! 1 {c}.",
    "a {not a part}",
]


@pytest.fixture
def copier(copying_run: LoadedModel) -> Translator:
    return Translator(copying_run, DecodingConfig(beam_size=1))


@pytest.fixture
def transform(copier: Translator) -> ProtectionTransform:
    return ProtectionTransform(copier.searcher, USUAL)


def restored(
    transform: ProtectionTransform, line: Line, text: str, links: list[Link] | None = None
) -> Translation:
    """A translation of a hidden line after its parts are restored."""
    alignment = None if links is None else Alignment(links=tuple(links))
    encoded = EncodedLine(line, [5, 3])
    [[found]] = transform.restore([encoded], [[Translation(text, 0.0, alignment=alignment)]])
    return found


def test_an_error_shows_the_line_with_its_parts(copier: Translator) -> None:
    contradiction = Terminology.of(terms=["Hund"], forbidden=["hund"])
    pipeline = copier.pipeline(TranslationRequest(protected=USUAL, terminology=contradiction))
    with pytest.raises(DataError, match="the line 'See {a} and {b}': 'Hund' is asked for"):
        list(pipeline.translate(numbered_lines(["See {a} and {b}"])))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("See https://x.org, or a@b.de!", "See 1, or 2!"),
        ("1 {a} and 12 {b} of 3", "1 4 and 12 5 of 3"),  # numbers of the line are not used
        ("{x}s and K{y}", "1 s and K 2"),
        ("foo_{x} and {y}_", "foo_ 1 and 2 _"),  # an underscore belongs to a word
        ("no part", "no part"),
    ],
)
def test_a_number_takes_the_place_of_each_part(
    transform: ProtectionTransform, text: str, hidden: str
) -> None:
    [line] = transform.protect([Line(1, text)])
    assert line.text == hidden
    assert restored(transform, line, hidden).text == text  # a copy loses the spaces that were added
    assert restored(transform, line, f"{hidden} !").text.count("{") == text.count("{")


def test_a_number_of_a_term_stands_for_no_part(transform: ProtectionTransform) -> None:
    of_all_lines = Terminology.of({"2": "two"}, forbidden=["no 3"])
    of_line = Terminology.of({"dog": "Hund 1"}, terms=["No. 5"], prefix="Chapter 7: ")
    transform = replace(transform, terminology=of_all_lines)
    [line] = transform.protect([Line(1, "the dog {a} {b} {c}", of_line)])
    assert line.text == "the dog 4 6 8"


@pytest.mark.parametrize("text", ["{a}", " {a}, https://x.org!", "%s: %d"])
def test_a_line_without_other_words_is_copied(transform: ProtectionTransform, text: str) -> None:
    [line] = transform.protect([Line(1, text)])
    assert not has_words(line.text)
    assert restored(transform, line, line.text).text == text


def test_a_line_names_parts_of_its_own(transform: ProtectionTransform) -> None:
    text = "Die Firma My Company hat {x}."
    [line] = transform.protect([Line(1, text, protected=((10, 20),))])
    assert [part.text for part in line.parts] == ["My Company", "{x}"]
    [line] = transform.protect([Line(1, text, protected=((25, 29),))])  # overlaps {x}
    assert [part.text for part in line.parts] == ["{x}."]


@pytest.mark.parametrize("document", [False, True])
def test_a_model_that_copies_copies_the_parts(copier: Translator, document: bool) -> None:
    asked = TranslationRequest(protected=USUAL, document=document)
    found = [best.text for best, *_ in copier.pipeline(asked).translate(numbered_lines(LINES))]
    assert found == LINES


A, B = "see 1 and 2 now", "sieh 1 und 2 jetzt"


@pytest.mark.parametrize(
    ("text", "links", "expected"),
    [
        ("2 sieh 1", [], "{b} sieh {a}"),  # in another order
        ("sieh 1 und 1 und 2", [], "sieh {a} und und {b}"),  # a copy too many is deleted
        ("sieh 1 und 1, 2", [((4, 5), (11, 12))], "sieh und {a}, {b}"),  # the aligned one stays
        ("sieh eins und 2", [((4, 5), (5, 9))], "sieh {a} und {b}"),  # what it was made
        ("sieh eins und 2", [((4, 5), (7, 9))], "sieh {a} und {b}"),  # the whole word
        ("sieh und 2", [((0, 3), (0, 4))], "sieh {a} und {b}"),  # after the word before it
        ("und 2", [], "{a} und {b}"),
        ("2", [((0, 3), (0, 0))], "{a} {b}"),
        ("", [], "{a} {b}"),
    ],
)
def test_the_alignment_tells_where_a_part_belongs(
    transform: ProtectionTransform, text: str, links: list[Any], expected: str
) -> None:
    [line] = transform.protect([Line(1, "see {a} and {b} now")])
    assert line.text == "see 1 and 2 now"
    found = restored(transform, line, text, [Link(*link) for link in links])
    assert " ".join(found.text.split()) == expected


TOKENS = st.sampled_from(["1", "2", "3", "12", "ab", ".", " ", "x1", "1.", "der "])
SPANS = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair)))


@settings(max_examples=300, deadline=None)
@example(tokens=["1.", "der ", "1"], links=[Link((0, 0), (0, 6))])  # a part before a deleted copy
@given(
    tokens=st.lists(TOKENS, max_size=8),
    links=st.lists(st.builds(Link, SPANS, SPANS), max_size=8),
)
def test_each_part_is_there_exactly_once(tokens: list[str], links: list[Link]) -> None:
    """For any text with any alignment."""
    transform = ProtectionTransform(cast(Any, StandInSearcher()), USUAL)
    [line] = transform.protect([Line(1, "{a}x and https://x.org, %s")])
    text = "".join(tokens)
    links = [link for link in links if link.target[1] <= len(text)]
    found = restored(transform, line, text, links)
    for part in ("{a}", "https://x.org", "%s"):
        assert found.text.count(part) == 1
        start = "{a}x and https://x.org, %s".index(part)
        assert found.alignment is not None
        exact = dict(found.alignment.links)[start, start + len(part)]
        assert found.text[slice(*exact)] == part


class StandInSearcher:
    """What `hide` needs of a searcher: a vocabulary."""

    @property
    def loaded(self) -> "StandInSearcher":
        return self

    tokenizer = source = loaded


SYMBOLS = [
    "👍",
    "👍🏽",
    "👨\u200d👩\u200d👧",
    "🇩🇪",
    "1️⃣",
    "❤️",
    "✓",
    "→",
    "☎",
    "♥",
    "€",
    "⚠️",
    "\ue000",
]
PLACEHOLDERS = [
    "{name}",
    "{{x}}",
    "%s",
    "%1$d",
    "${v}",
    "%{n}",
    "https://x.org/a?b=1",
    "a@b.org",
    ":name",
]


def with_parts(line: str, chance: random.Random) -> tuple[str, list[str]]:
    """A line with one to three parts between its words, and these parts."""
    words, parts = line.split(), chance.sample([*SYMBOLS, *PLACEHOLDERS], chance.randint(1, 3))
    for part in parts:
        words.insert(chance.randint(0, len(words)), part)
    return " ".join(words), parts


def text_without(text: str, parts: list[str]) -> str:
    for part in sorted(parts, key=len, reverse=True):
        assert text.count(part) == 1 or any(part in other for other in parts if other != part)
        text = text.replace(part, " ", 1)
    return re.sub(r" ([.,!?;:])", r"\1", " ".join(text.split()))


class WithoutDigits(Copier):
    """Copies all but digits: it writes the letter x for each."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer.target.size)
        letter = tokenizer.target.encode(["x"])[0][-2]
        for digit in "123456789":
            token = tokenizer.target.encode([digit])[0][-2]
            self.certainty.data[token] = self.certainty.data[letter]


@pytest.mark.parametrize("asked", [{}, {"document": True}, {"alignments": True}])
def test_a_model_that_copies_no_numbers_reads_the_line_without_them(
    copying_run: LoadedModel, asked: dict[str, Any]
) -> None:
    loaded = replace(copying_run, weights=cast(Any, WithoutDigits(copying_run.tokenizer)))
    pipeline = Translator(loaded).pipeline(TranslationRequest(protected=USUAL, **asked))
    texts = [
        *(
            "See {a} and %s, or {b}{c}!",
            "{a} {b} 👍 is a dog",
            "👍 {a} is a dog {b} 👍.",
            "a ({name})",
        ),
        *(
            "One {a}. Two {b}! See https://x.org.",
            "A {a} 👍 b 🎉 %s c",
            "Привет {a}, dog",
            "x{a}y {b}z",
        ),
        *("SEE {name} AND A DOG 👍", "- See {a} ", "“{a}”, a dog"),
    ]
    found = [best for best, *_ in pipeline.translate(numbered_lines(texts))]
    assert [best.text for best in found] == texts
    if "alignments" in asked:  # each part is linked with its copy, without the space beside it
        for text, best in zip(texts, found, strict=True):
            links = best.alignment.links if best.alignment else ()
            assert {Link(span, span) for span in USUAL.find(text)} <= {*links}


def test_an_untrained_model_loses_no_part(random_run: LoadedModel) -> None:
    pipeline = Translator(random_run).pipeline(TranslationRequest(protected=USUAL))
    parts = [*SYMBOLS, *PLACEHOLDERS]
    texts = [f"A man {part} with a dog." for part in parts]
    found = [best.text for best, *_ in pipeline.translate(numbered_lines(texts))]
    assert [text.count(part) for text, part in zip(found, parts, strict=True)] == [1] * len(parts)


@pytest.mark.slow
def test_2000_lines_keep_their_parts_and_their_bleu(
    multi30k_lines: tuple[list[str], list[str]], random_run: LoadedModel
) -> None:
    """By an untrained model; NMT_TEST_RUN names a run of Multi30k, whose BLEU is compared."""
    sources, references = multi30k_lines
    path = os.environ.get("NMT_TEST_RUN")
    translator = Translator(load_model(path, torch.device("cpu")) if path else random_run)
    chance = random.Random(1)
    texts, parts = zip(*(with_parts(line, chance) for line in sources), strict=True)
    pipeline = translator.pipeline(TranslationRequest(protected=USUAL))
    found = [best.text for best, *_ in pipeline.translate(numbered_lines(texts))]
    rest = [text_without(*each) for each in zip(found, parts, strict=True)]
    if path:
        plain = [text_without(best.text, []) for best in translator.translations(sources)]
        scores = [bleu(each, references, confidence=False).value for each in (plain, rest)]
        print(f"BLEU of plain text {scores[0]:.2f}, of the text without the parts {scores[1]:.2f}")
        assert scores[1] > scores[0] - 0.5
