"""From pieces to words, on matrices made by hand."""

import pytest
import torch

from nmt.translation.word_alignment import Alignment, align_words, word_spans


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁a", "▁small", "▁dog"], [[0], [1], [2]]),
        (["▁un", "believ", "able", "▁do", "g", "s"], [[0], [0], [0], [1], [1], [1]]),
        (["▁", "d", "o", "g", "▁", "a"], [[0], [0], [0], [0], [1], [1]]),
        (["dog", "▁a"], [[0], [1]]),  # a model that writes no space in front
        (["▁of▁the", "▁dog", "s▁a"], [[0, 1], [2], [2, 3]]),
        (["▁a", "▁", "▁", "▁b", "▁"], [[0], [1], [1], [1], []]),
        (["▁a▁", "b"], [[0], [1]]),
        (["▁", "<0xF0>", "<0x9F>", "▁", "x"], [[0], [0], [0], [1], [1]]),
        (["▁a", "<0x20>", "b", "<0x0A>", "c", "\n", "d"], [[0], [1], [1], [2], [2], [3], [3]]),
        (["▁", "▁"], [[], []]),
        ([], []),
    ],
)
def test_each_piece_is_a_part_of_words(pieces: list[str], words: list[list[int]]) -> None:
    assert [list(span) for span in word_spans(pieces)] == words


def test_words_go_together_where_any_of_their_pieces_do() -> None:
    source = ["▁the", "▁dog", "s", "▁sleep"]
    target = ["▁die", "▁Hund", "e", "▁schlaf", "en"]
    weights = torch.tensor(
        [
            [0.9, 0.1, 0.0, 0.0],
            [0.1, 0.8, 0.1, 0.0],
            [0.0, 0.3, 0.6, 0.1],
            [0.0, 0.1, 0.2, 0.7],
            [0.0, 0.5, 0.1, 0.4],  # "en" goes with "dogs", and so the word with two
        ]
    )
    words = align_words(source, target, weights.argmax(1).tolist())
    assert words == ((0, 0), (1, 1), (1, 2), (2, 2))
    assert Alignment(words).pharaoh() == "0-0 1-1 1-2 2-2"


def test_word_level_models_align_one_to_one() -> None:
    assert align_words(["▁a", "▁b", "▁c"], ["▁x", "▁y", "▁z"], [2, 0, 1]) == (
        (0, 1),
        (1, 2),
        (2, 0),
    )


def test_nothing_aligns_with_nothing() -> None:
    assert align_words(["▁a"], [], []) == ()
    assert Alignment().pharaoh() == ""
