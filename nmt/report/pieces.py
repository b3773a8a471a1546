"""Subword pieces as people read them, and the words they make up."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

START, END = "<s>", "</s>"
GOES_ON = "·"
"""stands before a piece that goes on the word before it"""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text in subword pieces: how each is shown, and which word, counted from 0, it is of."""

    labels: list[str]
    words: list[int]

    def ended(self) -> "Pieces":
        """With the end of the sentence, a word of its own."""
        return Pieces([*self.labels, END], [*self.words, self._next()])

    def started(self) -> "Pieces":
        """Behind the start of the sentence, a word of its own."""
        return Pieces([START, *self.labels], [0, *(word + 1 for word in self.words)])

    def _next(self) -> int:
        return self.words[-1] + 1 if self.words else 0


def readable(pieces: Sequence[str]) -> Pieces:
    """Subword pieces as labels: word boundaries become spaces; one alone is shown as such.

    A piece of letters that goes on a word begins with `GOES_ON`, unless all pieces are characters.
    """
    labels, words, word = [], [], -1
    characters = all(len(piece.strip("▁")) <= 1 for piece in pieces)
    for piece in pieces:
        begins = piece.startswith("▁") or word < 0
        word += begins
        label = piece.replace("▁", " ").strip() or "␣"
        goes_on = not begins and not characters and label[0].isalnum()
        labels.append(GOES_ON + label if goes_on else label)
        words.append(word)
    return Pieces(labels, words)


def whole_words(pieces: Pieces) -> Pieces:
    """Each word's labels joined."""
    numbered = groupby(zip(pieces.words, pieces.labels, strict=True), lambda pair: pair[0])
    labels = []
    for _, group in numbered:
        first, *others = (label for _, label in group)
        begins = "" if first == "␣" and others else first
        labels.append(begins + "".join(label.removeprefix(GOES_ON) for label in others))
    return Pieces(labels, list(range(len(labels))))
