"""The texts in ICU messages are translated, and their syntax stays."""

import re
from dataclasses import replace
from typing import Any, cast

import pytest

from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.run.model import LoadedModel
from nmt.translation.documents.translate import texts_translator
from nmt.translation.line import Alignment, Line, Terminology, Translation, numbered_lines
from nmt.translation.message_texts import MessageTexts
from nmt.translation.request import TranslationRequest
from nmt.translation.spans import Link, linked_words
from nmt.translation.translator import Translator
from tests.reversing_translator import translate_html

USUAL = ProtectedText(USUAL_PATTERNS)
LINES = [
    "One {n, plural, one {# dog} other { # dogs. They''re {x}! }}.",
    "{g, select, male {He left} other {They left}}",
    "- {n, plural, =0 {- no} other {a {g, select, f {it''s '{'{x}'}'} other {b}} c}}",
    "no message",
    "{n, plural, one {not parsed}}",
    "{n, number, percent} {d, date, short}",
    "a {n, plural, other {dog}} {n, plural, other {dog}} b",
]


def in_capitals(line: Line) -> Translation:
    """A translation of a line into capitals, without what is protected in it."""
    kept = {i for span in line.protected for i in range(*span)}
    kept |= {i for m in USUAL.find_messages(line.text) for i in range(*m.span)}
    return Translation("".join(c if i in kept else c.upper() for i, c in enumerate(line.text)), 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a {n, plural, one {# b} other {# c}} d", "A {n, plural, one {# B} other {# C}} D"),
        (
            "{n, plural, offset:1 =0{no} other{{x} a {d, date, long} b}}",
            "{n, plural, offset:1 =0{NO} other{{x} A {d, date, long} B}}",
        ),
        (
            "{g, select, f {a {n, plural, one {b #} other {#}} c} other {d}} e",
            "{g, select, f {A {n, plural, one {B #} other {#}} C} other {D}} E",
        ),
        ("{n, plural, other {it''s '{a}' b'c}}", "{n, plural, other {IT''S '{a}' B''C}}"),
        ("{n, plural, other {it's '{a}' b'c}}", "{n, plural, other {IT'S '{a}' B'C}}"),
        ("{n, plural, other {a <b>c</b>}}", "{n, plural, other {A <b>C</b>}}"),
        ("{n, plural, one {a}} b", "{n, plural, one {a}} B"),
        ("{n, plural, other {a}}{n, plural, other {a}}", "{n, plural, other {A}}" * 2),
        ("'{n, plural, other {a}}'", "'{N, PLURAL, OTHER {A}}'"),  # it is no message
    ],
)
def test_the_texts_are_put_into_their_places(text: str, expected: str) -> None:
    messages = MessageTexts([Line(1, text)], USUAL)
    rows = [[in_capitals(line)] for line in messages.lines]
    assert [[each.text for each in row] for row in messages.put_back(rows)] == [[expected]]


@pytest.mark.parametrize(
    ("translated", "expected"),
    [
        ("l'{x}", "l''{x}"),  # a single one would quote the brace
        ("l'a {x} d'#", "l'a {x} d''#"),
        ("{x} a'", "{x} a''"),
        ("{x} {a} #", "{x} '{'a'}' #"),  # the model has made up braces
        ("a '' b {x}", "a '''' b {x}"),
    ],
)
def test_a_translation_does_not_become_syntax(translated: str, expected: str) -> None:
    messages = MessageTexts([Line(1, "a {n, plural, other {# of {x}}}")], USUAL)
    rows = [[Translation(text, 0.0)] for text in (f"l'{messages.lines[0].text[2:]}", translated)]
    [[found]] = messages.put_back(rows)
    assert found.text == f"l''{{n, plural, other {{{expected}}}}}"


def test_a_text_whose_tags_change_places_stays_as_it_was() -> None:
    text = "{n, plural, one {a <b>c</b>} other {d {g, select, other {<i>e</i>}} f}}"
    messages = MessageTexts([Line(1, text)], USUAL)
    texts = [text, "C</b> A <b>", "D {g, select, other {<i>e</i>}} F", "<i>E</i>"]
    [[found]] = messages.put_back([[Translation(each, 0.0)] for each in texts])
    assert found.text == text.replace("d", "D").replace(" f}", " F}").replace("e</", "E</")


def test_links_move_with_the_texts() -> None:
    text = "{n, plural, other {a}} b"
    messages = MessageTexts([Line(1, text)], USUAL)
    links = (Link((0, 22), (0, 22)), Link((23, 24), (23, 24)))
    rows = [[Translation(text, 0.0, alignment=Alignment(links=links))], [Translation("xyz", 0.0)]]
    [[found]] = messages.put_back(rows)
    assert found.alignment is not None
    assert [link.target for link in found.alignment.links] == [(0, 24), (25, 26)]
    assert (4, 4) in linked_words(found.alignment.links, text, found.text)


def test_only_the_usual_patterns_find_messages() -> None:
    lines = [Line(1, LINES[1])]
    for protected in (ProtectedText(), ProtectedText([r"\{.*\}"])):
        assert MessageTexts(lines, protected).lines == lines
    assert len(MessageTexts([replace(lines[0], protected=((0, 8),))], USUAL).lines) == 1
    terms = Terminology.of({"a": "b"}, terms=["c"], prefix="d")
    texts = MessageTexts([Line(7, LINES[1], terms)], USUAL).lines[1:]
    assert [(line.number, line.text) for line in texts] == [(7, "He left"), (7, "They left")]
    found = [line.terminology.digest for line in texts if line.terminology]
    assert found == [Terminology.of({"a": "b"}).digest] * 2


@pytest.mark.parametrize("document", [False, True])
def test_the_texts_are_searched(copying_run: LoadedModel, document: bool) -> None:
    request = TranslationRequest(protected=USUAL, document=document)
    pipeline = Translator(copying_run, DecodingConfig(beam_size=1)).pipeline(request)
    done: list[int] = []
    for window_lines in (1, 100):
        rows = pipeline.translate(numbered_lines(LINES), window_lines, progress=done.append)
        assert [best.text for best, *_ in rows] == LINES
    assert sum(done) == 2 * len(LINES)
    batches = cast(Any, copying_run.model).batches
    batches.clear()
    assert len(list(pipeline.translate(numbered_lines([LINES[1]])))) == 1
    assert sum(size for size, _ in batches) == 2  # "He left" and "They left"


@pytest.mark.parametrize("document", [False, True])
def test_a_glossary_holds_in_the_texts(copying_run: LoadedModel, document: bool) -> None:
    terms = Terminology.of({"dog": "Hund", "dogs": "2 Hunde", "bee": "Biene"})
    request = TranslationRequest(protected=USUAL, document=document, terminology=terms)
    text = "{n, plural, one {dog} other {{g, select, f {dogs} other {bee}}}}"
    found = Translator(copying_run).pipeline(request).translate(numbered_lines([text, "bee"]))
    expected = ["{n, plural, one {Hund} other {{g, select, f {2 Hunde} other {Biene}}}}", "Biene"]
    assert [best.text for best, *_ in found] == expected


@pytest.mark.parametrize("sampled", [False, True])
def test_each_translation_has_the_best_texts(random_run: LoadedModel, sampled: bool) -> None:
    """The model is untrained, so its texts are arbitrary, but the syntax must hold."""
    sampling = Sampling() if sampled else None
    translator = Translator(random_run, sampling=sampling)
    request = TranslationRequest(n_best=3, protected=USUAL)
    syntax = re.compile(r"(?s)\{n, plural, one \{.*#.*\} other \{.*#.*\}\}")
    for row in translator.pipeline(request).translate(numbered_lines(LINES[:1])):
        messages = [USUAL.find_messages(each.text) for each in row]
        assert all(len(found) == 1 and len(found[0].texts) == 2 for found in messages)
        written = {each.text[slice(*m.span)] for each, [m] in zip(row, messages, strict=True)}
        assert len(written) == 1
        assert all(map(syntax.fullmatch, written))


def test_a_page_has_messages(copying_run: LoadedModel) -> None:
    translator = Translator(copying_run, DecodingConfig(beam_size=1))
    request = TranslationRequest(protected=USUAL)
    page = f"<p>{LINES[0]} <b>Two</b>.</p><p>{LINES[1]}</p><img alt='{LINES[6]}'>"
    assert translate_html(page, texts_translator(translator, request)) == page
