"""Which words of a translation go with which of its source, merged from pieces to words.

A word is what spaces separate in the text as the tokenizer normalises it. SentencePiece writes a
space as "▁" in front of what follows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# a vocabulary of bytes can spell these, and the text of a translation has spaces in their place
_BLANK_BYTES = ("<0x20>", "<0x0A>", "<0x0D>")
_BOUNDARIES = frozenset("▁ \n\r")


@dataclass(frozen=True, slots=True)
class Alignment:
    """A translation word by word and piece by piece."""

    words: tuple[tuple[int, int], ...] = ()
    """positions of a source word and a target word that go together, counted from 0, in order"""
    pieces: tuple[str, ...] = ()
    """the spelling of each target token, the last one `</s>` unless it was cut at its limit"""
    log_probabilities: tuple[float, ...] = ()
    """of each token after those before it, in nats"""

    def pharaoh(self) -> str:
        """`source-target` pairs with spaces between, as word aligners write them."""
        return " ".join(f"{source}-{target}" for source, target in self.words)


def word_spans(pieces: Sequence[str]) -> list[range]:
    """The words that each piece is a part of; a space alone belongs to the word that it begins."""
    spans = []
    word, at_boundary = -1, True
    for piece in pieces:
        first = None
        for character in "▁" if piece in _BLANK_BYTES else piece:
            if character in _BOUNDARIES:
                at_boundary = True
                continue
            word += at_boundary
            at_boundary = False
            first = word if first is None else first
        spans.append(range(word + 1, word + 2) if first is None else range(first, word + 1))
    return [range(span.start, min(span.stop, word + 1)) for span in spans]


def align_words(
    source: Sequence[str], target: Sequence[str], attended: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Pairs of words from pieces: target piece t goes with source piece `attended[t]`.

    Words go together where any of their pieces do.
    """
    read, written = word_spans(source), word_spans(target)
    pairs = {
        (i, j)
        for place, words in zip(attended, written, strict=True)
        for i in read[place]
        for j in words
    }
    return tuple(sorted(pairs))
