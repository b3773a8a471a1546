"""Marks stand around the words of a match that translate words which the sentence lacks."""

from typing import Any

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.alignment_model import Point
from nmt.data.tokens.match_marks import MARKS, MatchMarker
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import TokenizerConfig

PAIR = SentencePair("the old house , article 12 .", "das alte kleine Haus , Artikel 12 13 .")
WORDS = ["the", "old", "new", "house", "here", ",", "article", ".", "12", "13"]


class StandInAligner:
    """Links words as it is told."""

    def __init__(self, links: str) -> None:
        pairs = (link.split("-") for link in links.split())
        self.links: list[Point] = [(int(i), int(j)) for i, j in pairs]

    def align(self, pairs: Any, rows: Any) -> list[list[Point]]:
        return [self.links] * len(rows)


@pytest.mark.parametrize(
    ("sentence", "source", "target", "links", "marked"),
    [
        ("the old house", "the old house", "das alte Haus", "0-0 1-1 2-2", "das alte Haus"),
        ("the new house", "the old house", "das alte Haus", "0-0 1-1 2-2", "das < alte > Haus"),
        ("the new house", "the old", "das alte", "0-0 1-1", "das < alte >"),
        ("here", "the old house", "das alte Haus", "0-0 1-1 2-2", "< das alte Haus >"),
        # a word without a link differs only between two that do
        ("here", "the old house", "das kleine Haus", "0-0 2-2", "< das kleine Haus >"),
        ("the here", "the house", "das kleine Haus", "0-0 1-2", "das kleine < Haus >"),
        ("here", "the house", "das Haus kleine", "0-0 1-1", "< das Haus > kleine"),
        # a word that also translates a shared word does not differ
        ("the new house", "the old house", "das Haus", "0-0 1-1 2-1", "das Haus"),
        # a number that the sentence has is right, whatever it is linked with
        ("article 13", "article 12", "Artikel 13", "0-0 1-1", "Artikel 13"),
        ("article 13", "article 12", "Artikel 12", "0-0 1-1", "Artikel < 12 >"),
    ],
)
def test_words_that_differ_are_marked(
    sentence: str, source: str, target: str, links: str, marked: str
) -> None:
    config = TokenizerConfig(kind="word", vocabulary_size=21)
    pairs = [PAIR, SentencePair(" ".join(WORDS), "das Haus")]
    model = learn_vocabulary(pairs, config, symbols=MARKS).source
    aligner: Any = StandInAligner(links)
    rows = [model.encode([text]) for text in (sentence, source, target)]
    [ids] = MatchMarker(model, aligner).mark(*rows)
    pieces = [model.pieces[i].strip("▁") for i in ids]
    names = dict(zip(MARKS, "<>", strict=True))
    assert " ".join(names.get(piece, piece) for piece in pieces) == f"{marked} </s>"


def test_no_matches_are_no_matches() -> None:
    config = TokenizerConfig(kind="word", vocabulary_size=19)
    model = learn_vocabulary([PAIR], config, symbols=MARKS).source
    aligner: Any = StandInAligner("")
    assert MatchMarker(model, aligner).mark([], [], []) == []
