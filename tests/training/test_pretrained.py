"""What fits of another model is taken, by name, shape and spelling; what does not is named."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import CheckpointError, ConfigError
from nmt.exchange.engine import EXCLUDED_BIAS
from nmt.recipe.config import TokenizerConfig
from nmt.run.checkpoint import load_weights
from nmt.run.directory import RunDirectory, weights_folder
from nmt.training import pretrained
from nmt.training.train import train
from tests.training.runs import Recipe, Trained, quiet, same_weights

Begin = Callable[..., tuple[RunDirectory, list[str]]]
BEGIN = "training.initialize_from={}"


@pytest.fixture
def first(trained: Trained) -> RunDirectory:
    """The run that other ones begin with."""
    return trained()


@pytest.fixture
def begin(recipe: Recipe, tmp_path: Path) -> Begin:
    """Begin with the weights in a folder and take one step that changes hardly anything.

    Returns the run and its log.
    """

    def begun(folder: Path, *settings: str) -> tuple[RunDirectory, list[str]]:
        log: list[str] = []
        rate = ("training.peak_learning_rate=1e-12", "training.warmup_steps=1")
        config = recipe("training.max_steps=1", *rate, BEGIN.format(folder), *settings)
        return train(config, tmp_path / "run", log.append), log

    return begun


def test_the_same_recipe_begins_with_all_of_the_best_weights(
    begin: Begin, first: RunDirectory
) -> None:
    run, log = begin(first.path)
    found, expected = load_weights(run.checkpoint(1)), load_weights(weights_folder(first.path))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert any(line.startswith(f"initialised {len(expected)} of {len(expected)}") for line in log)
    assert not any("new, or new in part" in line for line in log)


def test_rows_of_another_vocabulary_are_taken_by_spelling(
    begin: Begin, first: RunDirectory
) -> None:
    run, _ = begin(first.path, "tokenizer.vocabulary_size=44")
    old, new = (Tokenizer.load(r.tokenizer).target.pieces for r in (first, run))
    there = load_weights(weights_folder(first.path))["target_embedding.weight"]
    here = load_weights(run.checkpoint(1))["target_embedding.weight"]
    both = sorted(set(old) & set(new))
    assert 20 < len(both) < 48
    rows = here[[new.index(piece) for piece in both]], there[[old.index(piece) for piece in both]]
    torch.testing.assert_close(*rows, atol=1e-6, rtol=0)


def test_what_does_not_fit_is_named(begin: Begin, first: RunDirectory) -> None:
    other = "model.d_ff=20", "model.encoder_layers=2", "model.embeddings=target"
    _, log = begin(first.checkpoint(12), *other)
    (new,) = (line for line in log if "new, or new in part" in line)
    assert "source_embedding.weight (not there)" in new
    assert "encoder.layers.0.feed_forward.inner.weight ((64, 64) there, (20, 64) here)" in new


def test_a_model_that_is_absent_or_does_not_fit_is_an_error(
    begin: Begin, first: RunDirectory, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="nowhere: not a run directory: no such directory"):
        begin(Path("nowhere"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match="none of its weights fits this model .*use its"):
        begin(first.path, "model.d_model=8", "model.d_ff=9")


def test_a_resumed_run_keeps_its_own_weights(
    recipe: Recipe, trained: Trained, first: RunDirectory, tmp_path: Path
) -> None:
    begin = BEGIN.format(first.path)
    for last in (8, 12):
        run = train(recipe(begin, f"training.max_steps={last}"), tmp_path / "run", quiet)
    assert same_weights(run.checkpoint(12), trained(begin).checkpoint(12))


def test_a_piece_without_a_row_in_an_imported_parent_begins_with_its_parts() -> None:
    pairs = [SentencePair("aba ab aba", "aba ab c")] * 4
    tokenizer = learn_vocabulary(pairs, TokenizerConfig(kind="char", vocabulary_size=40)).target
    id_ = tokenizer.pieces.index("a")
    rows = torch.randn(tokenizer.size, 8)
    bias = torch.randn(tokenizer.size)
    rows[id_], bias[id_] = 0, EXCLUDED_BIAS
    for saved in (rows, bias):
        begun = torch.ones_like(saved)
        copied, _ = pretrained._transfer_rows(saved, tokenizer, begun, tokenizer)
        assert copied == tokenizer.size - 1
        assert (begun[id_] == 1).all()


def test_a_new_piece_begins_with_the_mean_of_the_pieces_that_spell_it() -> None:
    letters = TokenizerConfig(kind="char", vocabulary_size=40)
    words = TokenizerConfig(kind="bpe", vocabulary_size=15)
    pairs = [SentencePair("aba ab aba", "aba ab c")] * 4
    old, new = (learn_vocabulary(pairs, config).target for config in (letters, words))
    saved = torch.randn(old.size, 8)
    begun = torch.zeros(new.size, 8)
    copied, composed = pretrained._transfer_rows(saved, old, begun, new)
    row = {piece: saved[i] for i, piece in enumerate(old.pieces)}
    composite = [piece for piece in new.pieces[4:] if piece not in row]
    assert "ab" in composite or "▁ab" in composite
    assert (copied, composed) == (new.size - len(composite), len(composite))
    for i, piece in enumerate(new.pieces):
        spelled = [row[letter] for letter in piece] if piece in composite else [row[piece]]
        torch.testing.assert_close(begun[i], torch.stack(spelled).mean(0))
