"""Which target tokens a batch has, and what is found with these alone."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nmt
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.lexicon import Lexicon
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import CheckpointError, ConfigError
from nmt.machine.buckets import round_up_to_bucket
from nmt.recipe.config import DecodingConfig, TokenizerConfig
from nmt.run.model import LoadedModel
from nmt.search.ensemble import Ensemble, restrict_models
from nmt.search.hypothesis import Hypothesis
from nmt.search.shortlist import Shortlist, in_whole_vocabulary
from nmt.translation.line import Terminology, numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator
from tests.search.plain_search import random_transformer

SIZE = 1000


def shortlist_of(shared: bool = True) -> Shortlist:
    """Token s is translated by s + 500 and, less often, by s + 501."""
    candidates = np.zeros((SIZE, 2), np.int64)
    candidates[4:400] = np.arange(504, 900)[:, None] + [0, 1]
    return Shortlist(candidates, np.array([0, 1, 2, 3, 600]), SIZE, shared)


def test_a_batch_has_the_candidates_of_its_tokens_and_what_is_always_there() -> None:
    ids = shortlist_of().target_ids([[5, 9, EOS], [5, EOS]]).tolist()
    assert ids[:4] == [0, 1, 2, 3]  # the special ones keep their ids
    assert {505, 506, 509, 510, 600, 5, 9} <= set(ids)
    assert ids == sorted(set(ids))
    unshared = shortlist_of(shared=False).first(1).target_ids([[50, 90, EOS]]).tolist()
    assert {550, 590, 600} <= set(unshared)
    assert not {50, 90, 551} & set(unshared)


def test_the_numbers_of_target_tokens_are_few() -> None:
    counts = {
        len(shortlist_of().target_ids([list(range(4, last)), [EOS]])) for last in range(5, 300)
    }
    assert len(counts) <= 56  # eight from each power of two to the next
    assert all(round_up_to_bucket(count, 4) == count for count in counts)
    everything = shortlist_of().target_ids([list(range(SIZE))])
    assert len(everything) <= SIZE


@pytest.fixture
def saved(tmp_path: Path, byte_tokenizer: Tokenizer) -> tuple[Path, Shortlist]:
    """The file of a shortlist for the vocabularies of `byte_tokenizer`, and what it holds."""
    sizes = byte_tokenizer.source.size, byte_tokenizer.target.size
    table = np.random.default_rng(1).integers(0, sizes[1], (sizes[0], 5))
    shortlist = Shortlist(table, np.arange(8), sizes[1], byte_tokenizer.shared)
    path = tmp_path / "shortlist.npz"
    shortlist.save(path, byte_tokenizer)
    return path, shortlist


def test_what_is_written_is_read_again(
    saved: tuple[Path, Shortlist], byte_tokenizer: Tokenizer
) -> None:
    path, written = saved
    read = Shortlist.load(path, byte_tokenizer)
    assert np.array_equal(read.candidates, written.candidates)
    assert np.array_equal(read.always, written.always)
    assert read.digest == written.digest != written.first(4).digest
    with np.load(path) as arrays:  # an older version of nmt wrote no format
        np.savez(path, **{name: arrays[name] for name in arrays if name != "format"})
    assert Shortlist.load(path, byte_tokenizer).digest == written.digest


def test_what_cannot_be_read_is_named(
    saved: tuple[Path, Shortlist], byte_tokenizer: Tokenizer
) -> None:
    path, written = saved
    whole = path.read_bytes()
    for damaged in (whole[:-9], b"", b"text", whole.replace(b"always", b"alwaYs")):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"damaged .*learn it again: nmt shortlist --mo"):
            Shortlist.load(path, byte_tokenizer)
    with np.load(io.BytesIO(whole)) as arrays:
        np.savez(path, **{**arrays, "format": np.array(2)})
    with pytest.raises(CheckpointError, match="newer version of nmt .format 2, expected 1"):
        Shortlist.load(path, byte_tokenizer)
    config = TokenizerConfig(kind="char", vocabulary_size=280, byte_fallback=True)
    written.save(path, learn_vocabulary([SentencePair("noch ein Hund", "a big dog")], config))
    with pytest.raises(CheckpointError, match=r"other vocabularies than the run's; learn it again"):
        Shortlist.load(path, byte_tokenizer)
    path.unlink()
    with pytest.raises(ConfigError, match=r"there is no shortlist; `nmt shortlist --model"):
        Shortlist.load(path, byte_tokenizer)
    with pytest.raises(ConfigError, match=r"`nmt shortlist --model 'my run'`"):
        Shortlist.load(Path("my run", path.name), byte_tokenizer)


def test_it_is_learnt_from_pairs_of_ids(byte_tokenizer: Tokenizer) -> None:
    rows = [[4 + i % 20, 5 + i % 7, EOS] for i in range(200)]
    store = TokenStore.of(rows, [[token + 30 for token in row[:-1]] + [EOS] for row in rows])
    lexicon = Lexicon(store, byte_tokenizer.target.size)
    lexicon.learn()
    shortlist = Shortlist.learn(lexicon, store, byte_tokenizer)
    assert shortlist.always[:4].tolist() == [0, 1, 2, 3]
    assert set(range(34, 54)) <= set(shortlist.always.tolist())  # so few are all frequent
    targets = [[34, 35, EOS], [34, 99, EOS]]
    assert shortlist.coverage(rows[:2], targets) == pytest.approx(5 / 6)


def test_members_of_an_ensemble_are_restricted_and_hypotheses_have_ids_of_the_whole() -> None:
    shortlist = Shortlist(np.zeros((12, 1), np.int64), np.array([0, 1, 2, 3, 7, 9]), 12, False)
    ensemble: Any = Ensemble([random_transformer(1), random_transformer(2)])

    source = torch.tensor([[5, 6, EOS], [7, EOS, 0]])
    ids = shortlist.target_ids(source.tolist())
    restricted: Any = restrict_models(ensemble, torch.from_numpy(ids))
    with torch.inference_mode():
        cache = restricted.start(restricted.encode(source), source)
        log_p = restricted.step(torch.full((2, 1), BOS), cache)
    assert log_p.shape == (2, 1, 6)
    assert log_p.exp().sum(-1) == pytest.approx(1.0, abs=1e-4)
    found = in_whole_vocabulary([[Hypothesis((4, 5, 4), -1.5), Hypothesis((), -2.0)]], ids)
    assert found == [[Hypothesis((7, 9, 7), -1.5), Hypothesis((), -2.0)]]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_has_tokens_of_the_shortlist_alone(
    random_run: LoadedModel, beam_size: int
) -> None:
    tokenizer = random_run.tokenizer
    size = tokenizer.target.size
    random = np.random.default_rng(1)
    table = random.integers(4, size, (tokenizer.source.size, 2))
    shortlist = Shortlist(table, np.arange(4), size, tokenizer.shared)
    settings = DecodingConfig(beam_size=beam_size, max_length_offset=4)
    texts = ["A dog sleeps.", "Two men"]
    allowed = set(shortlist.target_ids(tokenizer.source.encode(texts)).tolist())
    assert len(allowed) < size
    for found in Translator(random_run, settings, shortlist=shortlist).translations(texts):
        assert set(found.tokens) <= allowed
    whole = Translator(random_run, settings).translations(texts)
    assert not all(set(found.tokens) <= allowed for found in whole)


def test_terms_and_forbidden_words_have_the_whole_vocabulary(random_run: LoadedModel) -> None:
    size = random_run.tokenizer.target.size
    nothing = np.zeros((random_run.tokenizer.source.size, 1), np.int64)
    shortlist = Shortlist(nothing, np.arange(4), size, shared=False)
    asked = Terminology.of({"dog": "Hund"})
    translator = Translator(random_run, shortlist=shortlist)
    pipeline = translator.pipeline(TranslationRequest(terminology=asked))
    [one], [other] = pipeline.translate(numbered_lines(["A dog sleeps.", "Two men"]))
    assert "Hund" in one.text
    assert set(other.tokens) <= set(shortlist.target_ids([[EOS]]).tolist())


def test_coverage_is_measured_in_the_ids_of_the_whole_vocabulary(random_run: LoadedModel) -> None:
    size = random_run.tokenizer.target.size
    table = np.arange(size)[:, None]
    everything = Shortlist(table, np.arange(size), size, shared=True)
    settings = DecodingConfig(beam_size=3, max_length_offset=5, coverage_penalty=0.3)
    found = [
        next(Translator(random_run, settings, shortlist=shortlist).translations(["A dog"]))
        for shortlist in (None, everything)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("candidates", [0, 201, True, "many"])
def test_load_takes_a_number_of_candidates(candidates: object) -> None:
    with pytest.raises(ConfigError, match=f"from 1 to 200, got {candidates!r}"):
        nmt.load("run", shortlist=candidates)  # type: ignore[arg-type]
