import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.translation.hidden_parts import find_numbers, has_other_words, hidden_parts, hide
from nmt.translation.line import Line
from nmt.translation.spans import Span, apply_edits

TEXTS = st.text(st.sampled_from("ab 12.äx"), min_size=1, max_size=20)


def spans_in(text: str, bounds: list[int], step: int) -> list[Span]:
    """Spans from drawn numbers; those of step 1 touch each other, those of step 2 do not."""
    inside = sorted({bound % (len(text) + 1) for bound in bounds})
    return list(zip(inside[::step], inside[1::step], strict=False))


@given(TEXTS, st.lists(st.integers(0, 1000), max_size=8), st.sampled_from([1, 2]))
def test_hidden_parts_can_be_put_back(text: str, bounds: list[int], step: int) -> None:
    spans = spans_in(text, bounds, step)
    line = hide(Line(1, text), spans)
    parts = hidden_parts(line)
    assert [part.edit.text for part in parts] == [text[start:end] for start, end in spans]
    assert apply_edits(line.text, [part.edit for part in parts]) == text
    assert not any(part.number in text for part in parts)


def test_a_sentence_has_only_some_of_the_parts_of_its_line() -> None:
    line = hide(Line(1, "One {a}. Two {b}."), [(4, 7), (13, 16)])
    sentence = Line(2, line.text[7:], hidden=line.hidden)
    assert sentence.text == "Two 2."
    assert [(part.number, part.edit.text) for part in hidden_parts(sentence)] == [("2", "{b}")]


def test_parts_that_touch_become_words_of_their_own() -> None:
    line = hide(Line(1, "x{a}{b}c"), [(1, 4), (4, 7)])
    assert line.text == "x 1 2 c"


def test_numbers_are_whole_words() -> None:
    assert find_numbers("1, 12 a1 1.") == {"1": [(0, 1), (9, 10)], "12": [(3, 5)]}


@pytest.mark.parametrize(
    ("text", "hidden", "other"),
    [("(1) 2!", "12", False), ("1 3", "12", True), ("1 a", "1", True), ("...", "", False)],
)
def test_what_is_not_hidden_may_be_words(text: str, hidden: str, other: bool) -> None:
    line = Line(1, text, hidden=tuple((number, "{x}") for number in hidden))
    assert has_other_words(line) is other
