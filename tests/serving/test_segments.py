"""Texts are cut into sentences and put together again with all their white space."""

from itertools import starmap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.text.protected_text import ProtectedText
from nmt.recipe.config import ContextConfig
from nmt.serving.models import Direction, LoadedVersion, ServedModel, directions_of
from nmt.serving.segments import SegmentedText
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Alignment, Line, Terminology, Translation
from nmt.translation.spans import Link, linked_words
from tests.serving.served_runs import write_run


@pytest.fixture(scope="module")
def direction(en_de: Path) -> Direction:
    return direction_of(en_de)


def direction_of(run: Path, tag: str = "") -> Direction:
    current = LoadedVersion.read(str(run), ServerSettings(models=["run"]))
    return Direction(ServedModel("en-de", str(run), current), "en", "de", tag)


def split(text: str, direction: Direction, **line: Any) -> SegmentedText:
    """Cut a text; capitals in it are protected."""
    protected = ProtectedText(["[A-Z]+"] if line.pop("capitals", False) else [])
    return SegmentedText.split(
        Line(0, text, **line), direction.model.current, direction.tag, protected
    )


def lines_of(cut: SegmentedText) -> list[str]:
    return [segment.line.text for segment in cut.segments]


def sentences_of(cut: SegmentedText) -> list[str]:
    return [cut.text[slice(*segment.span)] for segment in cut.segments]


@settings(deadline=None, max_examples=200)
@given(
    text=st.text(st.sampled_from("aB .!?\n\r\t\u00a0。—\u2028😀1"), max_size=60),
    capitals=st.booleans(),
)
def test_a_text_whose_sentences_stay_as_they_are_stays_as_it_is(
    direction: Direction, text: str, capitals: bool
) -> None:
    cut = split(text, direction, capitals=capitals)
    sentences = sentences_of(cut)
    if not capitals:
        assert lines_of(cut) == sentences
    joined, spans = cut.join(sentences)
    assert [joined[start:end] for start, end in spans] == sentences
    if "。" not in text:  # a space is added after it, or not, as the target language has it
        assert joined == text


def test_the_beginning_holds_for_the_first_sentence_alone(direction: Direction) -> None:
    asked = Terminology.of(forbidden=["x"], prefix="So")
    cut = split("\nOne dog. Two.\nThree.", direction, terminology=asked)
    terms = [segment.line.terminology for segment in cut.segments]
    assert [t.prefix for t in terms if t] == ["So", "", ""]
    assert all(t and t.forbidden == ("x",) for t in terms)


def test_a_space_between_sentences_follows_the_target_language(direction: Direction) -> None:
    assert split("One. Two.\n Three.", direction).join(["一。", "二。", "三。"])[0] == (
        "一。二。\n 三。"
    )
    assert split("一。二。", direction).join(["One.", "Two."])[0] == "One. Two."


def test_a_line_of_100_000_letters_is_divided(direction: Direction) -> None:
    cut = split("x" * 100_000, direction)
    assert all(len(segment.line.ids or ()) <= 1024 for segment in cut.segments)
    assert cut.join(lines_of(cut))[0].replace(" ", "") == "x" * 100_000


def test_protected_parts_of_all_rows_are_hidden(direction: Direction) -> None:
    text = "See NMT now.\nABC\nthe code x()"
    cut = split(text, direction, capitals=True, protected=((26, 29),))
    assert sentences_of(cut) == ["See NMT now.", "the code x()"]
    assert lines_of(cut) == ["1 ee 2 now.", "the code 1"]


def test_words_are_aligned_over_the_whole_text(direction: Direction) -> None:
    cut = split("A bee.  The dog.", direction)
    links = [((0, 1), (4, 6)), ((1, 6), (0, 1))], [((3, 8), (0, 2))]
    texts = ["x y z.", "u."]
    translations = [
        Translation(text, 0.0, alignment=Alignment(links=tuple(starmap(Link, each))))
        for text, each in zip(texts, links, strict=True)
    ]
    joined = cut.translated([[translation] for translation in translations])
    assert joined.text == "x y z.  u."
    assert linked_words(joined.links, cut.text, joined.text) == ((0, 2), (1, 0), (3, 3))


def test_a_tag_is_read_before_each_sentence_and_has_no_links(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "en", "de", tags=[">>de<<", ">>fra<<"])
    tagged = direction_of(run, ">>de<<")
    found = [(d.source, d.target, d.tag) for d in directions_of(tagged.model)]
    assert set(found) == {
        *(("en", "de", ">>de<<"), ("fr", "de", ">>de<<")),
        *(("en", "fr", ">>fra<<"), ("de", "fr", ">>fra<<")),
    }
    cut = split("One. Two.", tagged)
    assert lines_of(cut) == [">>de<<One.", ">>de<<Two."]
    assert sentences_of(split("de\nfra. One.", tagged)) == ["de", "fra.", "One."]
    assert sentences_of(cut) == ["One.", "Two."]
    links = (Link((0, 6), (0, 1)), Link((6, 9), (1, 3)))
    translation = Translation("abc", 0.0, alignment=Alignment(links=links))
    joined = cut.translated([[translation]] * 2)
    assert joined.links == (Link((0, 3), (1, 3)), Link((5, 8), (5, 7)))


def test_protected_parts_that_touch_stay_apart(direction: Direction) -> None:
    cut = split("see ABab now.", direction, capitals=True, protected=((6, 8),))
    assert lines_of(cut) == ["see 1 2 now."]
    assert sentences_of(cut) == ["see ABab now."]


def test_list_marks_are_between_the_sentences(direction: Direction) -> None:
    text = "- One dog. Two.\n  1) Three.  \n\n# Four\n5\n> > * Six 😀"
    cut = split(text, direction)
    assert sentences_of(cut) == ["One dog.", "Two.", "Three.", "Four", "Six 😀"]
    joined, _ = cut.join([sentence.upper() for sentence in sentences_of(cut)])
    assert joined == text.upper()
    asked = split("- One.", direction, terminology=Terminology.of(prefix="* O"))
    assert sentences_of(asked) == ["- One."]


def test_a_sentence_has_those_before_it_if_its_model_has_learnt_that(
    direction: Direction, tmp_path: Path
) -> None:
    """Before them stand the sentences that the text itself has before it, two at most."""
    text, before = "A one. A two.\nA three.", (("A zero.", "Null."),)
    learnt = direction_of(write_run(tmp_path, "en", "de", context=ContextConfig()))
    cut = split(text, learnt, context=before)
    assert [segment.line.context for segment in cut.segments] == [
        before,
        (*before, ("A one.", "")),
        (("A one.", ""), ("A two.", "")),
    ]
    plain = split(text, direction, context=before)
    assert not any(segment.line.context for segment in plain.segments)
