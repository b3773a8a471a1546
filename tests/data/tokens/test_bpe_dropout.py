"""BPE-dropout draws as Algorithm 1 of Provilkov et al. (2020) does; with p = 0 it is BPE."""

import itertools
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.subword_regularization import SubwordRegularization
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary, parse_model
from nmt.recipe.config import TokenizerConfig
from tests.data.tokens.tokenizers import TEXTS, drawn_segmentation, learn

Split = tuple[str, ...]
DRAWS = 30_000


def probabilities(word: str, ranks: dict[str, int], p: float) -> dict[Split, float]:
    """The probability of each segmentation of a word, from all the ways to leave out merges."""

    @cache
    def of(split: Split) -> dict[Split, float]:
        merges = [
            (ranks[left + right], i)
            for i, (left, right) in enumerate(itertools.pairwise(split))
            if left + right in ranks
        ]
        total: dict[Split, float] = {}
        for kept in itertools.product((True, False), repeat=len(merges)):
            chance = p ** kept.count(False) * (1 - p) ** kept.count(True)
            others = [merge for merge, is_kept in zip(merges, kept, strict=True) if is_kept]
            ends: dict[Split, float] = {split: 1.0}
            if others:
                i = min(others)[1]
                ends = of((*split[:i], split[i] + split[i + 1], *split[i + 2 :]))
            for end, share in ends.items():
                total[end] = total.get(end, 0.0) + chance * share
        return total

    return of(tuple(word))


def drawn(model: SubwordModel, text: str, alpha: float, count: int) -> TokenStore:
    """Many segmentations of a text, as those of many pairs."""
    rows = model.encode([text]) * count
    store = TokenStore.of(rows, rows)
    return SubwordRegularization(Tokenizer(model), alpha, seed=3).draw(store, np.arange(count), 1)


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("word", ["house", "sieht", "eeee", "Haus"])
def test_segmentations_have_the_probabilities_of_the_paper(word: str, p: float) -> None:
    model = learn(vocabulary_size=75, normalization="identity").source
    pieces = parse_model(model.model, "").pieces
    ranks = {piece.piece: -piece.score for piece in pieces if piece.type == 1}
    expected = probabilities(f"▁{word}", ranks, p)
    assert len(expected) > 3
    # another word before and after it, which has segmentations of its own
    found = drawn(model, f"small {word} dog", p, DRAWS).source
    counts: Counter[Split] = Counter()
    for i in range(DRAWS):
        pieces = [model.pieces[token] for token in found.sentence(i)]
        starts = [place for place, piece in enumerate(pieces) if piece.startswith("▁")]
        counts[tuple(pieces[starts[1] : starts[2]])] += 1
    assert counts.keys() <= expected.keys()
    for split, chance in expected.items():
        deviation = (chance * (1 - chance) / DRAWS) ** 0.5
        assert counts[split] / DRAWS == pytest.approx(chance, abs=4.5 * deviation + 1e-9), split


LANGUAGES = [("eng",), ("jpn",), ("zho_simpl",), ("tha",), ("khm", "fin"), ("ara", "hin", "vie")]


@pytest.mark.parametrize("codes", LANGUAGES, ids="-".join)
@pytest.mark.parametrize("byte_fallback", [False, True], ids=["characters", "bytes"])
def test_without_dropout_real_text_keeps_its_ids(
    test_data: Path, codes: tuple[str, ...], byte_fallback: bool
) -> None:
    """Also of languages without spaces, and where the vocabulary lacks characters."""
    files = [test_data / "flores101" / f"{code}.devtest.xz" for code in codes]
    lines = [line for file in files for line in read_lines(file)]
    settings = TokenizerConfig(
        vocabulary_size=4000, byte_fallback=byte_fallback, character_coverage=0.99
    )
    model = learn_vocabulary([SentencePair(line, line) for line in lines[::2]], settings).source
    rows = model.encode(lines)
    store = TokenStore.of(rows, rows)
    everything = np.arange(len(rows))
    kept = SubwordRegularization(Tokenizer(model), 0.0, 1).draw(store, everything, 1)
    assert np.array_equal(kept.source.ids, store.source.ids)
    assert np.array_equal(kept.target.offsets, store.target.offsets)
    other = SubwordRegularization(Tokenizer(model), 0.2, 1).draw(store, everything, 1).source
    assert len(other.ids) > 1.01 * len(store.source.ids)
    assert model.decode([other.sentence(i).tolist() for i in range(len(rows))]) == model.decode(
        rows
    )


def test_without_dropout_multi30k_keeps_its_ids(
    multi30k_lines: tuple[list[str], list[str]],
) -> None:
    english, german = multi30k_lines
    pairs = [SentencePair(*pair) for pair in zip(english, german, strict=True)]
    tokenizer = learn_vocabulary(pairs, TokenizerConfig(vocabulary_size=4000))
    store = TokenStore.of(tokenizer.source.encode(english), tokenizer.target.encode(german))
    kept = SubwordRegularization(tokenizer, 0.0, 1).draw(store, np.arange(len(store)), 1)
    assert np.array_equal(kept.source.ids, store.source.ids)
    assert np.array_equal(kept.target.ids, store.target.ids)


def test_a_word_keeps_its_pieces_if_others_would_have_no_id() -> None:
    """The model lacks a character that its longer pieces have, or has a piece only for merging."""
    proto = parse_model(learn().source.model, "")
    for kind in (3, 5):  # control, unused
        [piece] = (piece for piece in proto.pieces if piece.piece == "s")
        piece.type = kind
        model = SubwordModel(proto.SerializeToString())
        [row] = model.encode(["sieht s das Haus"])
        spellings = {"".join(model.pieces[i] for i in row if model.pieces[i] != "s")}
        for alpha in (0.0, 0.3, 0.99):
            found = drawn_segmentation(model, row, alpha)
            assert row.count(1) == found.count(1)
            spellings.add("".join(model.pieces[i] for i in found))
            if alpha == 0:
                assert found == row
        assert len(spellings) == 1


def test_more_dropout_gives_more_pieces() -> None:
    model = learn(vocabulary_size=90, normalization="identity").source
    lengths = [len(drawn(model, TEXTS[1], p, 100).source.ids) for p in (0.0, 0.1, 0.5, 0.9, 0.999)]
    assert lengths == sorted(set(lengths))
