from hypothesis import given
from hypothesis import strategies as st

from nmt.translation.line import Line
from nmt.translation.placeholders import (
    original_text,
    placeholder_of,
    put_placeholders,
    sentence_of,
    without_tags,
)
from nmt.translation.spans import Edit, Span

TEXTS = st.text(st.sampled_from("ab 12.äx"), min_size=1, max_size=20)


def spans_in(text: str, bounds: list[int], step: int) -> list[Span]:
    """Spans from drawn numbers; those of step 1 touch each other, those of step 2 do not."""
    inside = sorted({bound % (len(text) + 1) for bound in bounds})
    return list(zip(inside[::step], inside[1::step], strict=False))


@given(TEXTS, st.lists(st.integers(0, 1000), max_size=8), st.sampled_from([1, 2]))
def test_placeholders_can_be_put_back(text: str, bounds: list[int], step: int) -> None:
    spans = spans_in(text, bounds, step)
    line = put_placeholders(Line(1, text), spans)
    assert [part.text for part in line.parts] == [text[start:end] for start, end in spans]
    assert original_text(line) == text
    assert not any(placeholder_of(line, part) in text for part in line.parts)


@given(TEXTS, st.lists(st.integers(0, 1000), max_size=8), st.data())
def test_parts_can_be_hidden_one_after_another(
    text: str, bounds: list[int], data: st.DataObject
) -> None:
    """What the vocabulary lacks is hidden in a sentence whose addresses are hidden already."""
    spans = spans_in(text, bounds, 2)
    later = data.draw(st.lists(st.sampled_from(spans), unique=True)) if spans else []
    line = put_placeholders(Line(1, text), [span for span in spans if span not in later])
    kept = [span for span, _ in line.parts]
    rest = [
        (line.text.index(text[start:end]), line.text.index(text[start:end]) + end - start)
        for start, end in later[:1]
        if text[start:end] in line.text
    ]
    free = [span for span in rest if not any(a < span[1] and span[0] < b for a, b in kept)]
    line = put_placeholders(line, free, placeholders=dict.fromkeys(free, ""))
    assert original_text(line) == text


def test_a_sentence_has_only_some_of_the_parts_of_its_line() -> None:
    line = put_placeholders(Line(1, "One {a}. Two {b}."), [(4, 7), (13, 16)])
    sentence = sentence_of(line, (7, 13), tags=">>fr<< ")
    assert sentence.text == ">>fr<< Two 2."
    assert sentence.parts == (Edit((11, 12), "{b}"),)
    copied = without_tags(sentence)
    assert copied.text == "Two 2."
    assert original_text(copied) == "Two {b}."


def test_parts_that_touch_become_words_of_their_own() -> None:
    line = put_placeholders(Line(1, "x{a}{b}c"), [(1, 4), (4, 7)])
    assert line.text == "x 1 2 c"
