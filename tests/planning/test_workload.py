"""The size of an epoch is found without downloading or writing anything."""

import gzip
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from nmt.data import rehearsal
from nmt.data.prepared import prepare
from nmt.data.tokens.batches import BatchPlan, StagedPlan
from nmt.errors import DataError
from nmt.planning import workload
from nmt.planning.workload import find_workload, sample_sentences
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config, parse_config
from tests.training.runs import Recipe


def test_prepared_data_are_counted(recipe: Recipe) -> None:
    config = recipe()
    made = prepare(config, lambda message: None)
    found, prepared = find_workload(config)
    assert prepared is not None and prepared.fingerprint == made.fingerprint
    lengths = made.train.source.lengths, made.train.target.lengths
    assert found.pairs == 60 and found.validation_pairs == 8
    assert (found.source_length, found.target_length) == tuple(side.mean() for side in lengths)
    assert found.steps_per_epoch == BatchPlan(*lengths, 200, config.seed).steps_per_epoch
    source, target = found.tokens_per_step(config)
    assert source <= 200 and target <= 200
    assert source * found.steps_per_epoch == pytest.approx(lengths[0].sum())


@pytest.mark.parametrize("most", [30, 1000])
def test_pairs_are_counted_by_the_weight_of_their_text(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(workload, "_MAX_SAMPLE", most)
    text = "data.train={source: train.en, target: train.de, weight: 3}"
    config = recipe(text, "training.batch_tokens=20")
    made = prepare(config, lambda message: None)
    source, target = made.train.source.lengths, made.train.target.lengths
    steps = BatchPlan(
        source, target, 20, config.seed, made.stages[0].corpus_weights
    ).steps_per_epoch
    found, _ = find_workload(config)
    assert found.pairs == 180
    assert found.steps_per_epoch == pytest.approx(steps, rel=0.15)
    assert found.tokens_per_step(config)[1] == pytest.approx(3 * target.sum() / steps, rel=0.15)


@pytest.mark.parametrize("most", [30, 1000])
def test_an_epoch_is_the_average_of_all_stages(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """120 pairs an epoch for 30 steps, then 60 for 10 steps; of these there are twice as many."""
    monkeypatch.setattr(workload, "_MAX_SAMPLE", most)
    text = "{source: train.en, target: train.de"
    settings = [f"data.train=[{text}}}, {text}, until_step: 30}}]", "training.max_steps=40"]
    config = recipe(*settings, "training.batch_tokens=20")
    made = prepare(config, lambda message: None)
    lengths = made.train.source.lengths, made.train.target.lengths
    plan = StagedPlan(*lengths, 20, config.seed, made.stages)
    found, _ = find_workload(config)
    assert found.stages == 2 and found.pairs is not None and found.steps_per_epoch is not None
    assert 40 / found.steps_per_epoch == pytest.approx(plan.epochs(40), rel=0.15)
    per_step = [120 / plan.steps_per_epoch[0], 60 / plan.steps_per_epoch[1]]
    expected = (30 * per_step[0] + 10 * per_step[1]) / 40
    assert found.pairs / found.steps_per_epoch == pytest.approx(expected, rel=0.15)


def test_a_text_that_is_not_prepared_is_sampled_and_nothing_is_written(
    recipe: Recipe, tmp_path: Path
) -> None:
    """A text that is smaller than the sample gives what preparing it gives."""
    before = set(tmp_path.rglob("*"))
    config = recipe("data.cleaning.max_length_ratio=2", "training.batch_tokens=40")
    found, sample = find_workload(config)
    assert set(tmp_path.rglob("*")) == before
    prepare(config, lambda message: None)
    expected, prepared = find_workload(config)
    assert found.preparation and expected.preparation == 0
    assert replace(found, origin="", preparation=0) == replace(expected, origin="")
    assert "estimated from 60 pairs" in found.origin and sample and prepared
    assert np.array_equal(sample.train.source.ids, prepared.train.source.ids)


def test_a_sample_estimates_the_epoch_of_a_larger_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second line is long, and the pairs of the second text occur three times an epoch."""
    monkeypatch.setattr(rehearsal, "_SAMPLED_PAIRS", 1500)
    random = Random(1)
    words = ["".join(random.choices("abcdefgh", k=3)) for _ in range(99)]
    for name, lines in (("long", 3000), ("short", 1000)):
        text = [" ".join(random.choices(words, k=4 + 16 * (i % 2))) for i in range(lines)]
        (tmp_path / f"{name}.en").write_text("".join(f"{line}\n" for line in text), "utf-8")
    long, short = tmp_path / "long.en", tmp_path / "short.en"
    config = parse_config(
        f"data: {{directory: {tmp_path}, train: [{{source: {long}, target: {long}}}, "
        f"{{source: {short}, target: {short}, weight: 3, until_step: 300}}], "
        f"validation: {{source: {short}, target: {short}}}}}\n"
        "tokenizer: {vocabulary_size: 900}\ntraining: {batch_tokens: 1000, max_steps: 600}\n"
    )
    with pytest.raises(DataError, match="vocabulary_size is 900"):  # nor has the whole text as many
        prepare(config, lambda message: None)
    found, _ = find_workload(config)
    assert (found.source_vocabulary, found.stages) == (900, 2)
    size = {"tokenizer": config.tokenizer.model_copy(update={"vocabulary_size": 200})}
    config = config.model_copy(update=size)
    found, _ = find_workload(config)
    prepare(config, lambda message: None)
    expected, _ = find_workload(config)
    assert found.pairs == pytest.approx(expected.pairs, rel=0.1)
    assert found.steps_per_epoch == pytest.approx(expected.steps_per_epoch, rel=0.1)
    assert found.source_length == pytest.approx(expected.source_length, rel=0.1)


def test_sources_are_as_long_as_with_what_is_put_into_them(tmp_path: Path) -> None:
    """Matches and context are estimated from a sample, and terms are counted by their number."""
    random = Random(1)
    words = ["".join(random.choices("abcdefgh", k=3)) for _ in range(9)]
    lines = [" ".join(random.choices(words, k=8)) for _ in range(900)]
    text = tmp_path / "text.en"
    text.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def config_of(**data: object) -> Config:
        pair = {"source": str(text), "target": str(text)}
        given = {"directory": str(tmp_path), "train": pair, "validation": pair}
        return Config.model_validate(
            {
                "data": {**given, **data},
                "tokenizer": {"vocabulary_size": 36},
                "training": {"batch_tokens": 200, "max_steps": 300},
            }
        )

    plain, _ = find_workload(config_of())
    config = config_of(memory={"share": 0.6, "minimum": 0.6}, context={"sentences": 1})
    found, sample = find_workload(config)
    assert sample is not None and found.preparation is not None
    prepare(config, lambda message: None)
    expected, _ = find_workload(config)
    assert found.source_length == pytest.approx(expected.source_length, rel=0.05)
    assert found.steps_per_epoch == pytest.approx(expected.steps_per_epoch, rel=0.05)
    assert found.source_length > 2 * plain.source_length
    with_terms, sample = find_workload(config_of(terms={"share": 0.5}))
    assert sample is not None
    without_terms = sample.train.source.lengths.mean()
    assert with_terms.source_length == pytest.approx(without_terms + 4, rel=0.05)
    drawn = sample_sentences(config_of(terms={"share": 0.5}), with_terms, sample).source.lengths
    assert drawn.mean() == pytest.approx(with_terms.source_length)


def test_a_text_that_cannot_be_used_is_named(recipe: Recipe, tmp_path: Path) -> None:
    with (tmp_path / "train.en").open("a", encoding="utf-8") as file:
        file.write("one line more\n")
    found, prepared = find_workload(recipe())
    assert prepared is None and found.pairs is None and found.steps_per_epoch is None
    assert "train.en has 61 lines" in found.origin and found.preparation is None
    (tmp_path / "train.en").unlink()
    found, prepared = find_workload(recipe())
    assert prepared is None and found.pairs is None and "no such file" in found.origin


def test_a_sentence_has_more_characters_than_subwords(tmp_path: Path) -> None:
    """Two epochs of tatoeba_characters.yaml, as its comment says, are 1,536 steps."""
    config = load_config("tatoeba_characters.yaml", [f"data.directory={tmp_path}"])
    found, prepared = find_workload(config)
    assert prepared is None and found.steps_per_epoch is not None
    assert config.training.max_steps / found.steps_per_epoch == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("name", ["base", "big_en_fr", "multi30k", "multi30k_tokenized", "demo"])
@pytest.mark.usefixtures("empty_folder")
def test_corpora_of_bundled_recipes_are_known_before_their_download(name: str) -> None:
    config = load_config(f"{name}.yaml")
    found, prepared = find_workload(config)
    assert prepared is None and found.pairs and found.steps_per_epoch
    assert config.data.corpus and config.data.corpus in found.origin


def test_a_compressed_validation_set_is_counted_by_lines(recipe: Recipe, tmp_path: Path) -> None:
    for language in ("en", "de"):
        text = (tmp_path / f"validation.{language}").read_bytes()
        (tmp_path / f"held.{language}.gz").write_bytes(gzip.compress(text))
    held = "{source: held.en.gz, target: held.de.gz"
    assert find_workload(recipe(f"data.validation={held}}}"))[0].validation_pairs == 8
    several = recipe(f"data.validation=[{held}}}, {held}, name: again}}]")
    assert find_workload(several)[0].validation_pairs == 16


def test_random_sentences_have_the_expected_lengths_and_ids(recipe: Recipe) -> None:
    config = recipe("training.batch_tokens=4000")
    found, _ = find_workload(config)
    store = sample_sentences(config, found, None)
    for side in (store.source, store.target):
        assert side.lengths.mean() == pytest.approx(found.source_length, rel=0.1)
        assert side.lengths.min() >= 2
        assert side.ids.min() >= 3 and side.ids.max() < 60
    steps = BatchPlan(store.source.lengths, store.target.lengths, 4000, 1).steps_per_epoch
    assert 115 < steps < 150
