"""Validation: the loss of the formula, the BLEU of the translations, and nothing learnt."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from nmt.data.fuzzy_repair import NearPair
from nmt.data.text.parallel_text import SentencePair, read_pairs
from nmt.data.tokens.matches import match_symbols
from nmt.data.tokens.tokenizer import BOS
from nmt.data.tokens.vocabulary import learn_vocabulary, with_symbols
from nmt.evaluation.metrics import bleu, chrf_metric
from nmt.run.model import LoadedModel, build_model
from nmt.training import validation
from nmt.training.validation import (
    KEPT_EXAMPLES,
    ExampleTranslation,
    PreparedMatches,
    Validation,
    ValidationText,
    Validator,
    delete_examples_after,
    read_examples,
    thin_out_examples,
    write_examples,
)
from nmt.translation.memory_matches import MemoryUse
from nmt.translation.translator import Translator
from tests.training.runs import Recipe

MakeRun = Callable[..., LoadedModel]


@pytest.fixture
def pairs(corpus: Path) -> list[SentencePair]:
    return list(read_pairs(corpus / "validation.en", corpus / "validation.de"))


def texts(**pairs: list[SentencePair]) -> list[ValidationText]:
    """Validation texts by their labels, all into German."""
    return [ValidationText(label, of_text, "de") for label, of_text in pairs.items()]


@pytest.fixture
def make_run(recipe: Recipe, corpus: Path, tmp_path: Path) -> MakeRun:
    def made(*settings: str) -> LoadedModel:
        config = recipe(*settings)
        text = read_pairs(corpus / "train.en", corpus / "train.de")
        tokenizer = learn_vocabulary(text, config.tokenizer)
        return LoadedModel(config, tokenizer, build_model(config, tokenizer), tmp_path)

    return made


@torch.inference_mode()
def loss_one_by_one(loaded: LoadedModel, pairs: list[SentencePair]) -> float:
    """Mean cross-entropy of a target token, each sentence alone."""
    loaded.model.eval()
    total, tokens = 0.0, 0
    for pair in pairs:
        source = torch.tensor(loaded.tokenizer.source.encode([pair.source]))
        target = torch.tensor(loaded.tokenizer.target.encode([pair.target]))
        logits = loaded.model(source, F.pad(target[:, :-1], (1, 0), value=BOS))
        total += F.cross_entropy(logits[0].double(), target[0], reduction="sum").item()
        tokens += target.shape[1]
    return total / tokens


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
def test_loss_is_the_unsmoothed_mean_per_token_without_dropout(
    make_run: MakeRun, pairs: list[SentencePair], monkeypatch: pytest.MonkeyPatch, batch_tokens: int
) -> None:
    monkeypatch.setattr(validation, "BATCH_TOKENS", batch_tokens)
    loaded = make_run("training.validation_metric=loss")
    result = Validator(texts(all=pairs), loaded, "fp32").validate()
    assert result.loss == pytest.approx(loss_one_by_one(loaded, pairs), rel=1e-5)
    assert (result.quality, result.translations) == ({}, [])


def test_loss_and_translations_are_those_of_sources_with_their_matches(
    make_run: MakeRun, pairs: list[SentencePair]
) -> None:
    loaded = make_run("data.memory={}", "training.validation_metric=bleu")
    tokenizer = with_symbols(loaded.tokenizer, match_symbols(loaded.config.data))
    loaded = LoadedModel(loaded.config, tokenizer, build_model(loaded.config, tokenizer), Path())
    match = NearPair("a", pairs[0].target, 0.95)
    memory = MemoryUse((PreparedMatches({pairs[0].source: [match]}, "en"),), exact=False)
    plain, found = (Validator(texts(all=pairs), loaded, "fp32", m) for m in (None, memory))
    symbol = tokenizer.source.pieces.index("<match-high>")
    rows = torch.cat([batch.source.flatten() for batch in found.batches])
    assert (rows == symbol).sum() == 1
    assert not any((batch.source == symbol).any() for batch in plain.batches)
    assert found.validate().loss != plain.validate().loss


@pytest.mark.parametrize(("metric", "name"), [("bleu", "BLEU"), ("chrf", "chrF")])
def test_the_score_is_that_of_the_translations(
    make_run: MakeRun, pairs: list[SentencePair], metric: str, name: str
) -> None:
    loaded = make_run(f"training.validation_metric={metric}")
    result = Validator(texts(all=pairs), loaded, "fp32").validate(beam_size=3)
    settings = loaded.config.decoding.model_copy(update={"beam_size": 3})
    loaded.model.eval()
    sources = (pair.source for pair in pairs)
    translations = [t.text for t in Translator(loaded, settings).translations(sources)]
    assert result.translations == translations
    references = [pair.target for pair in pairs]
    score = chrf_metric().score if metric == "chrf" else bleu
    expected = score(translations, references, confidence=False).value
    assert result.quality == {metric: expected} and result.score == expected
    assert f"nats/token, {name} {expected:.2f}" in str(result)


def test_each_of_several_texts_has_the_score_of_its_own_sentences(
    make_run: MakeRun, pairs: list[SentencePair]
) -> None:
    loaded = make_run("training.validation_metric=chrf")
    joined = Validator(texts(all=pairs), loaded, "fp32").validate()
    result = Validator(texts(news=pairs[:3], talks=pairs[3:]), loaded, "fp32").validate()
    assert joined.quality_of_parts == {}
    assert (result.loss, result.quality) == (joined.loss, joined.quality)
    assert result.translations == joined.translations and result.score == joined.score
    references = [pair.target for pair in pairs]
    expected = {}
    for name, part in (("news", slice(3)), ("talks", slice(3, None))):
        lines = result.translations[part], references[part]
        expected[f"chrf {name}"] = chrf_metric().score(*lines, confidence=False).value
    assert result.quality_of_parts == expected
    assert result.figures() == {**joined.figures(), **expected}
    scores = [f"{name[5:]} {score:.2f}" for name, score in expected.items()]
    assert str(result) == f"{joined} ({', '.join(scores)})"


def test_tags_have_a_score_of_their_own_unless_they_are_one_text(
    make_run: MakeRun, pairs: list[SentencePair], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = make_run("training.validation_metric=chrf")
    monkeypatch.setattr(loaded.tokenizer.source, "tag_length", lambda text: text.rfind("<") + 1)

    def tagged(tag: str, part: slice) -> list[SentencePair]:
        return [SentencePair(f">>{tag}<<{pair.source}", pair.target) for pair in pairs[part]]

    into = texts(a=tagged("de", slice(2)), b=tagged("fr", slice(2, 4)), c=tagged("fr", slice(4, 6)))
    result = Validator(into, loaded, "fp32").validate()
    assert list(result.quality_of_parts) == ["chrf a", "chrf b", "chrf c", "chrf >>fr<<"]


def test_a_line_of_the_log_has_six_scores_of_texts_at_most() -> None:
    parts = {f"bleu t{number}": float(number) for number in (3, 1, 4, 15, 9, 2)}
    few = str(Validation(1.0, {"bleu": 5.0}, [], parts))
    assert few.endswith("BLEU 5.00 (t3 3.00, t1 1.00, t4 4.00, t15 15.00, t9 9.00, t2 2.00)")
    many = str(Validation(1.0, {"bleu": 5.0}, [], {**parts, "bleu a": 7.0}))
    assert many.endswith("BLEU 5.00 (7 texts and tags, from t1 1.00 to t15 15.00)")


def test_each_text_is_divided_into_words_as_its_own_language_is(
    make_run: MakeRun, pairs: list[SentencePair]
) -> None:
    loaded = make_run("training.validation_metric=bleu")
    into = [ValidationText("a", pairs[:4], "de"), ValidationText("b", pairs[4:], "zh")]
    result = Validator(into, loaded, "fp32").validate()
    translations, references = result.translations, [pair.target for pair in pairs]

    def score(part: slice, tokenizer: str) -> float:
        return bleu(translations[part], references[part], tokenizer, confidence=False).value

    expected = {"bleu a": score(slice(4), "13a"), "bleu b": score(slice(4, None), "zh")}
    assert result.quality_of_parts == expected
    assert result.quality == {"bleu": score(slice(None), "13a")}


def test_validation_leaves_weights_and_training_mode_as_they_were(
    make_run: MakeRun, pairs: list[SentencePair]
) -> None:
    loaded = make_run()
    before = [parameter.detach().clone() for parameter in loaded.model.parameters()]
    first, second = (Validator(texts(all=pairs), loaded, "fp32").validate() for _ in range(2))
    assert first == second
    assert loaded.model.training
    assert all(p.grad is None for p in loaded.model.parameters())
    assert all(map(torch.equal, before, loaded.model.parameters()))


def test_models_are_chosen_by_the_metric_or_else_by_loss() -> None:
    assert Validation(3.0, {"bleu": 20.0}, []).score > Validation(2.0, {"bleu": 19.0}, []).score
    assert Validation(2.0, {}, []).score > Validation(3.0, {}, []).score
    assert Validation(2.0, {"chrf": 19.0}, ["a"]).figures() == {"loss": 2.0, "chrf": 19.0}


# -- example translations -------------------------------------------------------------------------

EXAMPLES = [
    ExampleTranslation("a dog", "ein Hund", "ein Mann"),
    ExampleTranslation("", "</script>", "model      \u2028\r"),
]


def test_examples_are_read_by_step_in_order_and_those_of_later_steps_are_deleted(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "translations"
    write_examples(folder, 5, [])
    delete_examples_after(folder, 0)
    assert not folder.exists() and read_examples(folder) == {}
    write_examples(folder, 500, EXAMPLES)
    for step in (100_000_000, 500, 1000):
        write_examples(folder, step, EXAMPLES[:1] if step == 500 else EXAMPLES)
    found = {500: EXAMPLES[:1], 1000: EXAMPLES, 100_000_000: EXAMPLES}
    assert list(read_examples(folder).items()) == list(found.items())
    delete_examples_after(folder, 1000)
    assert list(read_examples(folder)) == [500, 1000]


@pytest.mark.parametrize(
    "content", [b"", b"notes\n", b"source     a\nreference  b\n", b"\xff\n" * 4]
)
def test_a_file_that_holds_no_examples_is_skipped(tmp_path: Path, content: bytes) -> None:
    write_examples(tmp_path, 5, EXAMPLES)
    (tmp_path / "step-00000010.txt").write_bytes(content)
    (tmp_path / "step-notes.txt").write_text("mine")
    assert read_examples(tmp_path) == {5: EXAMPLES}


@pytest.mark.parametrize(
    ("validations", "kept"),
    [
        (1, [1]),
        (32, [*range(1, 33)]),
        (33, [*range(2, 33, 2), 33]),
        (34, [*range(2, 35, 2)]),
        (66, [*range(4, 65, 4), 66]),
        (1000, [*range(32, 1000, 32), 1000]),
    ],
)
@pytest.mark.parametrize("stopped_after", [None, 13])
def test_few_files_of_examples_stay_and_are_spread_evenly(
    tmp_path: Path, validations: int, kept: list[int], stopped_after: int | None
) -> None:
    for number in range(1, validations + 1):
        write_examples(tmp_path, 250 * number, EXAMPLES)
        if number != stopped_after:  # as if the run had been killed between the two
            thin_out_examples(tmp_path, 250 * number, 250)
    assert [*read_examples(tmp_path)] == [250 * number for number in kept]
    assert len(kept) <= KEPT_EXAMPLES
