"""Segmentations are drawn with a probability proportional to P(x)^alpha (Kudo, 2018)."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.hashed_random import hash_integers
from nmt.data.tokens.subword_regularization import SubwordRegularization
from nmt.data.tokens.token_store import Sentences, TokenStore
from nmt.data.tokens.tokenizer import UNK, SubwordModel, Tokenizer
from nmt.data.tokens.unigram_sampling import UnigramSampling
from nmt.data.tokens.vocabulary import learn_vocabulary, parse_model
from nmt.recipe.config import TokenizerConfig
from tests.data.tokens.tokenizers import dense_unigram, drawn_segmentation

Split = tuple[str, ...]
DRAWS = 30_000


def segmentations(word: str, scores: dict[str, float]) -> Iterator[Split]:
    """All ways to cut a word into pieces."""
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        if word[:end] in scores:
            for rest in segmentations(word[end:], scores):
                yield (word[:end], *rest)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("word", ["house", "kleiner", "das"])
def test_segmentations_have_the_probabilities_of_the_paper(word: str, alpha: float) -> None:
    model = dense_unigram().source
    scores = {p.piece: p.score for p in parse_model(model.model, "").pieces if p.type == 1}
    weights = {
        split: math.exp(alpha * sum(scores[piece] for piece in split))
        for split in segmentations(f"▁{word}", scores)
    }
    assert len(weights) > 3
    rows = model.encode([f"small {word} dog"]) * DRAWS
    store = TokenStore.of(rows, rows)
    regularization = SubwordRegularization(Tokenizer(model), alpha, seed=3)
    found = regularization.draw(store, np.arange(DRAWS), 1).source
    counts: Counter[Split] = Counter()
    for i in range(DRAWS):
        pieces = [model.pieces[token] for token in found.sentence(i)]
        starts = [place for place, piece in enumerate(pieces) if piece.startswith("▁")]
        counts[tuple(pieces[starts[1] : starts[2]])] += 1
    assert counts.keys() <= weights.keys()
    for split, weight in weights.items():
        chance = weight / sum(weights.values())
        deviation = (chance * (1 - chance) / DRAWS) ** 0.5
        assert counts[split] / DRAWS == pytest.approx(chance, abs=4.5 * deviation + 1e-9), split


@pytest.mark.parametrize("byte_fallback", [False, True], ids=["characters", "bytes"])
@pytest.mark.parametrize("code", ["eng", "jpn", "tha"])
def test_a_large_exponent_gives_the_best_segmentation_of_real_text(
    test_data: Path, code: str, byte_fallback: bool
) -> None:
    lines = [*read_lines(test_data / "flores101" / f"{code}.devtest.xz")]
    settings = TokenizerConfig(
        kind="unigram", vocabulary_size=1700, byte_fallback=byte_fallback, character_coverage=0.99
    )
    model = learn_vocabulary([SentencePair(line, line) for line in lines[::2]], settings).source
    rows = model.encode(lines)
    sampling = UnigramSampling(parse_model(model.model, ""))
    texts = sampling.table.spell(Sentences.of(rows), hash_integers(1, np.arange(len(rows))))
    best = sampling(texts, 1e6)
    scores = np.array([p.score for p in parse_model(model.model, "").pieces])
    found = np.bincount(texts.texts, np.where(best >= 0, scores[best], 0.0))
    # equally good segmentations may differ from those of SentencePiece
    assert found == pytest.approx(np.array([scores[row].sum() for row in rows]), rel=1e-5)
    other = sampling(texts, 0.3)
    drawn = [other[(texts.texts == i) & (other >= 0)].tolist() for i in range(len(rows))]
    assert drawn != rows
    assert model.decode(drawn) == model.decode(rows)


def test_no_character_becomes_unknown() -> None:
    """A model may lack a character that its longer pieces have."""
    proto = parse_model(dense_unigram().source.model, "")
    [piece] = (piece for piece in proto.pieces if piece.piece == "h")
    piece.type = 5  # unused
    model = SubwordModel(proto.SerializeToString())
    [row] = model.encode(["the house hh"])
    for alpha in (0.001, 0.9):
        drawn = drawn_segmentation(model, row, alpha)
        assert drawn.count(UNK) == row.count(UNK) == 1
        assert model.decode([drawn]) == model.decode([row])
