"""Validation: the loss of the formula, the BLEU of the translations, and nothing learnt."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from nmt.config import Config
from nmt.data.text.parallel_text import SentencePair, read_pairs
from nmt.data.tokens.tokenizer import BOS
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.evaluation.metrics import bleu, chrf_metric
from nmt.run_directory import LoadedModel, build_model
from nmt.training import validation
from nmt.training.validation import Validation, Validator
from nmt.translation.translator import Translator


@pytest.fixture
def pairs(corpus: Path) -> list[SentencePair]:
    return list(read_pairs(corpus / "validation.en", corpus / "validation.de"))


@pytest.fixture
def make_run(
    recipe: Callable[..., Config], corpus: Path, tmp_path: Path
) -> Callable[..., LoadedModel]:
    def made(*settings: str) -> LoadedModel:
        config = recipe(*settings)
        text = read_pairs(corpus / "train.en", corpus / "train.de")
        tokenizer = learn_vocabulary(text, config.tokenizer)
        return LoadedModel(config, tokenizer, build_model(config, tokenizer), tmp_path)

    return made


@torch.inference_mode()
def loss_one_by_one(run: LoadedModel, pairs: list[SentencePair]) -> float:
    """Mean cross-entropy of a target token, each sentence alone."""
    total, tokens = 0.0, 0
    for pair in pairs:
        source = torch.tensor(run.tokenizer.encode_source([pair.source]))
        target = torch.tensor(run.tokenizer.encode_target([pair.target]))
        logits = run.model(source, F.pad(target[:, :-1], (1, 0), value=BOS))
        total += F.cross_entropy(logits[0].double(), target[0], reduction="sum").item()
        tokens += target.shape[1]
    return total / tokens


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
def test_loss_is_the_unsmoothed_mean_per_token_without_dropout(
    make_run: Callable[..., LoadedModel],
    pairs: list[SentencePair],
    monkeypatch: pytest.MonkeyPatch,
    batch_tokens: int,
) -> None:
    monkeypatch.setattr(validation, "BATCH_TOKENS", batch_tokens)
    run = make_run()
    result = Validator(pairs, run, "fp32").validate()
    assert result.loss == pytest.approx(loss_one_by_one(_evaluating(run), pairs), rel=1e-5)


def _evaluating(run: LoadedModel) -> LoadedModel:
    run.model.eval()
    return run


def test_bleu_is_that_of_the_translations(
    make_run: Callable[..., LoadedModel], pairs: list[SentencePair]
) -> None:
    run = make_run()
    result = Validator(pairs, run, "fp32").validate(beam_size=3)
    settings = run.config.decoding.model_copy(update={"beam_size": 3})
    run.model.eval()
    texts = [t.text for t in Translator(run, settings).translate(pair.source for pair in pairs)]
    assert result.translations == texts
    expected = bleu(texts, [pair.target for pair in pairs], confidence=False)
    assert result.quality == {"bleu": expected.value}


def test_the_metric_may_be_chrf(
    make_run: Callable[..., LoadedModel], pairs: list[SentencePair]
) -> None:
    run = make_run("training.validation_metric=chrf")
    result = Validator(pairs, run, "fp32").validate()
    references = [pair.target for pair in pairs]
    expected = chrf_metric().score(result.translations, references, confidence=False)
    assert result.quality == {"chrf": expected.value} and result.score == expected.value
    assert f"nats/token, chrF {expected.value:.2f}" in str(result)


def test_nothing_need_be_translated(
    make_run: Callable[..., LoadedModel], pairs: list[SentencePair]
) -> None:
    run = make_run("training.validation_metric=loss")
    result = Validator(pairs, run, "fp32").validate()
    assert (result.quality, result.translations) == ({}, [])


def test_validation_leaves_weights_and_training_mode_as_they_were(
    make_run: Callable[..., LoadedModel], pairs: list[SentencePair]
) -> None:
    run = make_run()
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    first, second = (Validator(pairs, run, "fp32").validate() for _ in range(2))
    assert first == second
    assert run.model.training
    assert all(p.grad is None for p in run.model.parameters())
    assert all(map(torch.equal, before, run.model.parameters()))


def test_models_are_chosen_by_the_metric_or_else_by_loss() -> None:
    assert Validation(3.0, {"bleu": 20.0}, []).score > Validation(2.0, {"bleu": 19.0}, []).score
    assert Validation(2.0, {}, []).score > Validation(3.0, {}, []).score
    assert Validation(2.0, {"chrf": 19.0}, ["a"]).figures() == {"loss": 2.0, "chrf": 19.0}
