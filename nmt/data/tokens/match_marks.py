"""Marks in a match: its target words that translate words which the new sentence lacks.

Xu, Crego and Senellart, 2020, tell the words of a match apart by whether they are aligned with
words that both sources share. Here two symbols stand around each run of words that are not:

    source <match-high> das <differs> alte </differs> Haus </s>

The source of the match is compared with the sentence word by word, and a statistical aligner links
it with its target. The symbols are no text, as those of `nmt.data.tokens.matches`.
"""

from collections.abc import Sequence

import numpy as np

from nmt.data.text.similarity import shared_words
from nmt.data.tokens.alignment_model import AlignmentModel, Point
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import SubwordModel
from nmt.data.tokens.vocabulary import symbol_id
from nmt.data.tokens.word_reader import Word, WordReader

MARKS = ("<differs>", "</differs>")


class MatchMarker:
    """Puts marks into the targets of matches."""

    def __init__(self, model: SubwordModel, aligner: AlignmentModel) -> None:
        """Take the vocabulary of both languages, which has `MARKS`, and an aligner of its ids."""
        self._aligner, self._reader = aligner, WordReader(model)
        begin, end = (symbol_id(model, mark) for mark in MARKS)
        assert begin is not None and end is not None
        self._begin, self._end = begin, end

    def mark(
        self,
        sentences: Sequence[Sequence[int]],
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
    ) -> list[list[int]]:
        """Return the ids of the targets of some matches, with marks.

        Match i, given as ids with EOS, is `sources[i]` and `targets[i]`; it was found for
        `sentences[i]`.
        """
        pairs = TokenStore.of(sources, targets)
        links = self._aligner.align(pairs, np.arange(len(pairs)))
        marked = []
        for sentence, source, target, points in zip(
            sentences, sources, targets, links, strict=True
        ):
            asked = [word.text for word in self._reader.words(sentence)[1]]
            of_source, of_target = (self._reader.words(ids)[1] for ids in (source, target))
            differing = _differing(asked, of_source, of_target, points)
            marked.append(self._with_marks(target, of_target, differing))
        return marked

    def _with_marks(
        self, target: Sequence[int], words: Sequence[Word], differing: Sequence[bool]
    ) -> list[int]:
        """Return the ids of a target with marks around each run of words that differ."""
        marked, end = list[int](), 0  # the end of what is copied
        is_open = False
        for word, differs in zip(words, differing, strict=True):
            if differs != is_open and word.tokens.start >= end:
                marked += [*target[end : word.tokens.start], self._begin if differs else self._end]
                is_open, end = differs, word.tokens.start
        if not is_open:
            return [*marked, *target[end:]]
        return [*marked, *target[end:-1], self._end, target[-1]]


def _differing(
    asked: Sequence[str], source: Sequence[Word], target: Sequence[Word], points: Sequence[Point]
) -> list[bool]:
    """Return for each word of a target whether all that it translates differs from the sentence.

    `asked` are the words of the sentence, and `points` link the ids of the pair. A word without
    links differs between two that do. A number or sign that the sentence has as well does not.
    """
    shared = shared_words([word.text for word in source], asked)
    word_of = [
        {token: n for n, word in enumerate(side) for token in word.tokens}
        for side in (source, target)
    ]
    linked: list[set[bool]] = [set() for _ in target]  # whether each linked word is shared
    for i, j in points:
        if i in word_of[0] and j in word_of[1]:
            linked[word_of[1][j]].add(word_of[0][i] in shared)
    known = set(asked)
    differing: list[bool | None] = []
    for word, are_shared in zip(target, linked, strict=True):
        if word.text in known and not any(map(str.isalpha, word.text)):
            differing.append(False)
        else:
            differing.append(not any(are_shared) if are_shared else None)
    last = False
    for n, differs in enumerate(differing):
        if differs is None:
            following = next((each for each in differing[n:] if each is not None), False)
            differs = last and following
        differing[n] = last = differs
    return [bool(differs) for differs in differing]
