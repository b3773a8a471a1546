"""Subword pieces: labels that can be read, and words that can be put together again."""

from nmt.report.pieces import Pieces, join_words, readable_pieces


def test_a_piece_that_continues_a_word_has_a_dot() -> None:
    pieces = readable_pieces(["▁The", "▁work", "ing", "▁", "class", ".", "▁New▁York", "$"])
    assert pieces.labels == ["The", "work", "·ing", "␣", "·class", ".", "New York", "$"]
    assert pieces.words == [0, 1, 1, 2, 2, 2, 3, 3]


def test_characters_need_no_dots() -> None:
    assert readable_pieces(["▁", "a", "▁", "c", "a"]) == Pieces(
        ["␣", "a", "␣", "c", "a"], [0, 0, 1, 1, 1]
    )


def test_the_first_piece_begins_a_word_whatever_it_is() -> None:
    assert readable_pieces(["ing", "er", "▁a"]) == Pieces(["ing", "·er", "a"], [0, 0, 1])


def test_start_and_end_are_words_of_their_own() -> None:
    pieces = readable_pieces(["▁a", "bc"])
    assert pieces.with_end() == Pieces(["a", "·bc", "</s>"], [0, 0, 1])
    assert pieces.with_start() == Pieces(["<s>", "a", "·bc"], [0, 1, 1])
    assert readable_pieces([]).with_end() == Pieces(["</s>"], [0])


def test_joined_words_are_spelt_as_in_the_text() -> None:
    pieces = readable_pieces(["▁work", "ing", "▁", "class", ".", "▁", "▁x"])
    assert join_words(pieces) == Pieces(["working", "class.", "␣", "x"], [0, 1, 2, 3])
