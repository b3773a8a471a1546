"""Subword pieces: labels that can be read, and words that can be put together again."""

import pytest

from nmt.report.pieces import Pieces, join_words, readable_pieces


@pytest.mark.parametrize(
    ("pieces", "labels", "words"),
    [
        (
            ["▁The", "▁work", "ing", "▁", "class", ".", "▁New▁York", "$"],
            ["The", "work", "·ing", "␣", "·class", ".", "New York", "$"],
            [0, 1, 1, 2, 2, 2, 3, 3],
        ),
        (["▁", "a", "▁", "c", "a"], ["␣", "a", "␣", "c", "a"], [0, 0, 1, 1, 1]),
        (["ing", "er", "▁a"], ["ing", "·er", "a"], [0, 0, 1]),
    ],
    ids=["a dot continues a word", "characters need no dots", "the first piece begins a word"],
)
def test_labels_and_words(pieces: list[str], labels: list[str], words: list[int]) -> None:
    assert readable_pieces(pieces) == Pieces(labels, words)


def test_start_and_end_are_words_of_their_own() -> None:
    pieces = readable_pieces(["▁a", "bc"])
    assert pieces.with_end() == Pieces(["a", "·bc", "</s>"], [0, 0, 1])
    assert pieces.with_start() == Pieces(["<s>", "a", "·bc"], [0, 1, 1])
    assert readable_pieces([]).with_end() == Pieces(["</s>"], [0])


def test_joined_words_are_spelt_as_in_the_text() -> None:
    pieces = readable_pieces(["▁work", "ing", "▁", "class", ".", "▁", "▁x"])
    assert join_words(pieces) == Pieces(["working", "class.", "␣", "x"], [0, 1, 2, 3])
