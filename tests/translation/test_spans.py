from hypothesis import given
from hypothesis import strategies as st

from nmt.translation.spans import (
    Edit,
    Link,
    apply_edits,
    compose_links,
    linked_words,
    overlap,
    shift_span,
    span_after,
)

TEXT = "abcdefghij"
EDITS = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 3), st.sampled_from(["", "X", "YYYY"])), max_size=4
)


def in_order(drawn: list[tuple[int, int, str]]) -> list[Edit]:
    """The edits that neither overlap nor touch."""
    edits: list[Edit] = []
    for start, length, text in sorted(drawn):
        if start + length <= len(TEXT) and (not edits or edits[-1].span[1] < start):
            edits.append(Edit((start, start + length), text))
    return edits


@given(EDITS)
def test_what_is_not_edited_moves_with_its_text(drawn: list[tuple[int, int, str]]) -> None:
    edits = in_order(drawn)
    text = apply_edits(TEXT, edits)
    for start in range(len(TEXT)):
        span = start, start + 1
        if not any(overlap(span, edit.span) for edit in edits):
            assert text[slice(*span_after(span, edits))] == TEXT[start]
    assert text[slice(*span_after((0, len(TEXT)), edits))].strip("XY") in text


def test_a_replaced_span_moves_to_what_has_replaced_it() -> None:
    edits = [Edit((1, 2), "BBB"), Edit((4, 6), "")]
    assert apply_edits(TEXT, edits) == "aBBBcdghij"
    assert span_after((1, 2), edits) == (1, 4)
    assert span_after((2, 3), edits) == (4, 5)
    assert span_after((0, 7), edits) == (0, 7)
    assert shift_span((1, 3), 2) == (3, 5)


def test_words_are_linked_if_some_of_their_characters_are() -> None:
    links = [Link((0, 1), (4, 7)), Link((3, 8), (0, 2)), Link((2, 3), (3, 4))]
    assert linked_words(links, "ab  cd ef", "xy zw v") == ((0, 1), (0, 2), (1, 0), (2, 0))
    assert linked_words([], "a", "b") == ()
    assert linked_words([Link((0, 3), (0, 3))], "   ", "a b") == ()


def test_links_of_a_translation_of_a_translation_join_what_both_join() -> None:
    first = [Link((0, 3), (4, 8)), Link((4, 9), (0, 4)), Link((10, 12), (8, 10))]
    second = [Link((0, 4), (5, 7)), Link((4, 9), (0, 4)), Link((20, 22), (8, 9))]
    assert set(compose_links(first, second)) == {
        Link((4, 9), (5, 7)),
        Link((0, 3), (0, 4)),
        Link((10, 12), (0, 4)),
    }
    assert compose_links([], second) == compose_links(first, []) == ()
