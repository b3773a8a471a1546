"""Subword pieces as labels for people, and the words that they form."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

START, END = "<s>", "</s>"
CONTINUATION = "·"
"""the mark of a piece that continues a word"""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text in subword pieces: the label of each piece, and the number of its word from 0."""

    labels: list[str]
    words: list[int]

    def with_end(self) -> "Pieces":
        """Append the end of the sentence as a word of its own."""
        return Pieces([*self.labels, END], [*self.words, max(self.words, default=-1) + 1])

    def with_start(self) -> "Pieces":
        """Prepend the start of the sentence as a word of its own."""
        return Pieces([START, *self.labels], [0, *(word + 1 for word in self.words)])


def readable_pieces(pieces: Sequence[str]) -> Pieces:
    """Turn subword pieces into labels: word boundaries become spaces, a lone boundary becomes ␣.

    A piece of letters that continues a word begins with `CONTINUATION`, unless all pieces are
    single characters.
    """
    labels, words, word = [], [], -1
    characters = all(len(piece.strip("▁")) <= 1 for piece in pieces)
    for piece in pieces:
        begins = piece.startswith("▁") or word < 0
        word += begins
        label = piece.replace("▁", " ").strip() or "␣"
        continues = not begins and not characters and label[0].isalnum()
        labels.append(CONTINUATION + label if continues else label)
        words.append(word)
    return Pieces(labels, words)


def join_words(pieces: Pieces) -> Pieces:
    """Return one label per word, made of the labels of its pieces."""
    numbered = groupby(zip(pieces.words, pieces.labels, strict=True), lambda pair: pair[0])
    labels = []
    for _, group in numbered:
        first, *others = (label for _, label in group)
        begins = "" if first == "␣" and others else first
        labels.append(begins + "".join(label.removeprefix(CONTINUATION) for label in others))
    return Pieces(labels, list(range(len(labels))))
