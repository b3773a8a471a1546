"""Subword pieces: labels that can be read, and words that can be put together again."""

from nmt.report.pieces import Pieces, readable, whole_words


def test_a_piece_that_goes_on_a_word_is_told_by_its_dot() -> None:
    pieces = readable(["▁The", "▁work", "ing", "▁", "class", ".", "▁New▁York", "$"])
    assert pieces.labels == ["The", "work", "·ing", "␣", "·class", ".", "New York", "$"]
    assert pieces.words == [0, 1, 1, 2, 2, 2, 3, 3]


def test_characters_need_no_dots() -> None:
    assert readable(["▁", "a", "▁", "c", "a"]) == Pieces(["␣", "a", "␣", "c", "a"], [0, 0, 1, 1, 1])


def test_the_first_piece_begins_a_word_whatever_it_is() -> None:
    assert readable(["ing", "er", "▁a"]) == Pieces(["ing", "·er", "a"], [0, 0, 1])


def test_both_ends_are_words_of_their_own() -> None:
    pieces = readable(["▁a", "bc"])
    assert pieces.ended() == Pieces(["a", "·bc", "</s>"], [0, 0, 1])
    assert pieces.started() == Pieces(["<s>", "a", "·bc"], [0, 1, 1])
    assert readable([]).ended() == Pieces(["</s>"], [0])


def test_words_are_spelt_as_in_the_text() -> None:
    pieces = readable(["▁work", "ing", "▁", "class", ".", "▁", "▁x"])
    assert whole_words(pieces) == Pieces(["working", "class.", "␣", "x"], [0, 1, 2, 3])
