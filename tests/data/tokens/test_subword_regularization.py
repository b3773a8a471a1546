"""What is drawn is a function of (seed, step, pair), in whatever process and company."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.subword_regularization import SubwordRegularization
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS, UNK, SubwordModel, Tokenizer
from tests.data.tokens.tokenizers import (
    PAIRS,
    dense_unigram,
    drawn_segmentation,
    foreign_model,
    learn,
)

KINDS = ["bpe", "unigram"]
# two spaces in a row must come back
TEXTS = [*PAIRS[:2], SentencePair("a  dog eats !", "ein  Hund frisst !")]
IdPair = tuple[list[int], list[int]]


def tokenizer_of(kind: str) -> Tokenizer:
    if kind == "unigram":
        return dense_unigram()
    return learn(vocabulary_size=90, normalization="identity")


def store_of(tokenizer: Tokenizer) -> TokenStore:
    sources, targets = zip(*TEXTS, strict=True)
    return TokenStore.of(tokenizer.source.encode(sources), tokenizer.target.encode(targets))


def rows_of(store: TokenStore) -> list[IdPair]:
    return [
        (store.source.sentence(i).tolist(), store.target.sentence(i).tolist())
        for i in range(len(store))
    ]


def drawn(kind: str, alpha: float, step: int, places: list[int], seed: int = 1) -> list[IdPair]:
    """Other segmentations of some of `TEXTS`."""
    tokenizer = tokenizer_of(kind)
    regularization = SubwordRegularization(tokenizer, alpha, seed)
    return rows_of(regularization.draw(store_of(tokenizer), np.array(places), step))


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_change_but_no_text(kind: str) -> None:
    model = tokenizer_of(kind).source
    for step in range(5):
        sources, targets = zip(*drawn(kind, 0.3, step, [2, 0, 1]), strict=True)
        assert all(row[-1] == EOS for row in (*sources, *targets))
        assert model.decode(sources) == [TEXTS[i].source for i in (2, 0, 1)]
        assert model.decode(targets) == [TEXTS[i].target for i in (2, 0, 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_is_a_function_of_seed_step_pair_and_side(kind: str) -> None:
    together = drawn(kind, 0.5, 1, [0, 1, 2])
    assert drawn(kind, 0.5, 1, [2, 1, 0]) == together[::-1]
    assert [drawn(kind, 0.5, 1, [i])[0] for i in range(3)] == together
    assert drawn(kind, 0.5, 1, [1, 1]) == [together[1]] * 2
    assert drawn(kind, 0.5, 2, [0, 1, 2]) != together
    assert drawn(kind, 0.5, 1, [0, 1, 2], seed=2) != together
    model = tokenizer_of(kind).source
    rows = model.encode([TEXTS[0].source] * 2)
    store = TokenStore.of(rows, rows)
    both = SubwordRegularization(Tokenizer(model), 0.5, 1).draw(store, np.arange(2), 1)
    assert len({tuple(row) for pair in rows_of(both) for row in pair}) == 4


SCRIPT = """
import hashlib, sys
import numpy as np
from pathlib import Path
from nmt.data.tokens.subword_regularization import SubwordRegularization
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import Tokenizer

tokenizer = Tokenizer.load(Path(sys.argv[1]))
store = TokenStore.of(*(np.load(f"{sys.argv[1]}/{s}.npy").tolist() for s in ("source", "target")))
drawn = SubwordRegularization(tokenizer, 0.3, 1).draw(store, np.arange(len(store)), 7)
arrays = (drawn.source.ids, drawn.source.offsets, drawn.target.ids, drawn.target.offsets)
print(hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_another_process_draws_the_same(kind: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(kind)
    tokenizer.save(tmp_path)
    row = np.array(tokenizer.source.encode([TEXTS[0].source]) * 50)
    for side in ("source", "target"):
        np.save(tmp_path / f"{side}.npy", row)
    store = TokenStore.of(row.tolist(), row.tolist())
    drawn = SubwordRegularization(tokenizer, 0.3, 1).draw(store, np.arange(50), 7)
    arrays = (drawn.source.ids, drawn.source.offsets, drawn.target.ids, drawn.target.offsets)
    expected = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_symbol_stays_and_the_words_around_it_do_not(kind: str) -> None:
    model = tokenizer_of(kind).source
    [ids] = model.encode(["a small x house"])
    drawn = drawn_segmentation(model, ids, 0.5)
    assert drawn.count(UNK) == ids.count(UNK) > 0
    assert drawn != ids
    assert model.decode([drawn]) == model.decode([ids])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"split_by_whitespace": False},
        {"treat_whitespace_as_suffix": True},
        {"user_defined_symbols": ["a b"]},
        {"add_dummy_prefix": False},
        {"byte_fallback": True, "size": 270},
    ],
)
def test_models_trained_elsewhere_keep_their_text(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    path = foreign_model(
        tmp_path / "elsewhere.model",
        kind,
        **{"size": 14, "texts": ["a b a b  a b", "a b a c a b   c"], **options},
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
    )
    model = SubwordModel(path.read_bytes())
    for row in model.encode(["a b a b", " b a", "ab  a   b ", "c a b x y", "", "   "]):
        drawn = drawn_segmentation(model, row, 0.3)
        assert model.decode([drawn]) == model.decode([row])
        if kind == "bpe":
            assert drawn_segmentation(model, row, 0.0) == row
