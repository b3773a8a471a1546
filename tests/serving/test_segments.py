"""Texts are cut into sentences and put together again with all their white space."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.serving.models import Direction, LoadedVersion, ServedModel, directions_of
from nmt.serving.segments import SegmentedText, align_text
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Alignment, Terminology, Translation
from tests.serving.served_runs import write_run


@pytest.fixture(scope="module")
def direction(en_de: Path) -> Direction:
    return direction_of(en_de)


def direction_of(run: Path, tag: str = "") -> Direction:
    current = LoadedVersion.read(str(run), ServerSettings(models=["run"]))
    return Direction(ServedModel("en-de", str(run), current), "en", "de", tag)


def split(text: str, direction: Direction, terminology: Terminology | None = None) -> SegmentedText:
    return SegmentedText.split(text, direction.model.current, direction, terminology)


@settings(deadline=None, max_examples=200)
@given(text=st.text(st.sampled_from("aB .!?\n\r\t\u00a0。—\u2028😀"), max_size=60))
def test_a_text_whose_sentences_stay_as_they_are_stays_as_it_is(
    direction: Direction, text: str
) -> None:
    cut = split(text, direction)
    sentences = [text[start:end] for start, end in cut.spans]
    assert [line.text for line in cut.lines] == sentences
    joined, spans = cut.join(sentences)
    assert [joined[start:end] for start, end in spans] == sentences
    if "。" not in text:  # a space is added after it, or not, as the target language has it
        assert joined == text


def test_the_beginning_holds_for_the_first_sentence_alone(direction: Direction) -> None:
    cut = split("\nOne dog. Two.\nThree.", direction, Terminology.of(forbidden=["x"], prefix="So"))
    terms = [line.terminology for line in cut.lines]
    assert [t.prefix for t in terms if t] == ["So", "", ""]
    assert all(t and t.forbidden == ("x",) for t in terms)


def test_a_space_between_sentences_follows_the_target_language(direction: Direction) -> None:
    assert split("One. Two.\n Three.", direction).join(["一。", "二。", "三。"])[0] == (
        "一。二。\n 三。"
    )
    assert split("一。二。", direction).join(["One.", "Two."])[0] == "One. Two."


def test_a_line_of_100_000_letters_is_divided(direction: Direction) -> None:
    cut = split("x" * 100_000, direction)
    assert all(len(line.ids or ()) <= 1024 for line in cut.lines)
    assert cut.join([line.text for line in cut.lines])[0].replace(" ", "") == "x" * 100_000


def test_aligned_words_are_counted_over_the_whole_text(direction: Direction) -> None:
    cut = split("A bee.  The dog.", direction)
    translations = [
        Translation("x y z.", 0.0, alignment=Alignment(((0, 2), (1, 0)))),
        Translation("u.", 0.0, alignment=Alignment(((1, 0), (7, 0), (0, 9)))),
    ]
    words = align_text(cut, translations, is_tagged=False)
    assert words.source == [(0, 1), (2, 6), (8, 11), (12, 16)]
    assert words.target == [(0, 1), (2, 3), (4, 6), (8, 10)]
    assert words.pairs == [(0, 2), (1, 0), (3, 3)]


def test_a_tag_is_read_before_each_sentence_and_is_no_word(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "en", "de", tags=[">>de<<", ">>fra<<"])
    tagged = direction_of(run, ">>de<<")
    found = [(d.source, d.target, d.tag) for d in directions_of(tagged.model)]
    assert set(found) == {
        *(("en", "de", ">>de<<"), ("fr", "de", ">>de<<")),
        *(("en", "fr", ">>fra<<"), ("de", "fr", ">>fra<<")),
    }
    cut = split("One. Two.", tagged)
    assert [line.text for line in cut.lines] == [">>de<<One.", ">>de<<Two."]
    assert cut.spans == [(0, 4), (5, 9)]
    translations = [Translation("a", 0.0, alignment=Alignment(((0, 0), (1, 0))))] * 2
    assert align_text(cut, translations, is_tagged=True).pairs == [(0, 0), (1, 1)]
