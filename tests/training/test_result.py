"""A finished run says what it scores, once and exactly, however its end was interrupted."""

import functools
import shlex
import shutil
from pathlib import Path

import pytest
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import Batch
from nmt.errors import DataError, StoppedBySignal
from nmt.evaluation.metrics import bleu
from nmt.files import read_json, write_json
from nmt.model.transformer import Transformer
from nmt.run.directory import RunDirectory
from nmt.run.model import load_model
from nmt.training import result as result_module
from nmt.training.callbacks import Callbacks
from nmt.training.loss import Loss
from nmt.training.result import configuration_digest, portable_command, text_fingerprint
from nmt.training.train import train
from nmt.training.validation import Validation, Validator
from nmt.translation.translator import Translator
from tests.training.runs import Recipe, Trained, copied, files_of, quiet


@pytest.fixture
def test_set(corpus: Path) -> str:
    """The setting of a test set: the first lines of the training text."""
    for language in ("en", "de"):
        lines = (corpus / f"train.{language}").read_text("utf-8").splitlines(keepends=True)
        (corpus / f"test.{language}").write_text("".join(lines[:5]), "utf-8")
    return f"data.test={{source: {corpus}/test.en, target: {corpus}/test.de}}"


@pytest.fixture
def tested(recipe: Recipe, test_set: str) -> Recipe:
    """The tiny recipe with a test set."""
    return lambda *settings: recipe(test_set, *settings)


@pytest.fixture
def finished(trained: Trained, test_set: str) -> RunDirectory:
    """A run that is trained and scored; tests only read or copy it."""
    return trained(test_set)


def test_the_row_says_what_the_chosen_weights_score_and_how_that_arose(
    finished: RunDirectory,
) -> None:
    row, best, environment = map(read_json, (finished.result, finished.best, finished.environment))
    loaded = load_model(finished.path, torch.device("cpu"))
    pairs = result_module.read_test_set(loaded.config)
    translations = [t.text for t in Translator(loaded).translations(p.source for p in pairs)]
    expected = bleu(translations, [p.target for p in pairs]).as_json()
    assert row["scores"][0] == expected
    assert [score["name"] for score in row["scores"]] == ["BLEU", "chrF++", "paper BLEU"]
    assert all(score["signature"] for score in row["scores"]) and expected["confidence_95"]
    kept = ("weights", "trained_steps", "target_tokens", "training_seconds")
    assert {name: row[name] for name in kept} == {name: best[name] for name in kept}
    assert row["decoding"]["beam_size"] == 2 and row["decoding"]["precision"] == "fp32"
    same = ("data_fingerprint", "git", "libraries", "processor", "cores", "device", "precision")
    assert {name: row[name] for name in same} == {name: environment[name] for name in same}
    assert row["test_set"]["name"] == "test.en test.de"
    assert row["test_set"]["sentences"] == 5 and row["test_set"]["languages"] == "en-de"
    assert len(row["configuration"]) == len(row["test_set"]["sha256"]) == 64
    assert (row["sessions"], row["processes"], row["threads"]) == (1, 1, 1)
    assert row["command"].split()[0] in ("nmt", "python")  # what runs the tests
    assert "objective" not in row
    assert "scored_without" not in row


def test_the_row_names_an_objective_of_ones_own(tested: Recipe, tmp_path: Path) -> None:
    log: list[str] = []
    objective = functools.partial(weighted, weight=0.5)
    run = train(tested(), tmp_path / "run", log.append, Callbacks(objective=objective))
    assert read_json(run.result)["objective"] == "weighted(weight=0.5)"
    (line,) = (line for line in log if line.startswith("objective: weighted(weight=0.5), which "))
    assert "What it takes in memory is not known: " in line
    assert any(line.endswith("loss: your objective") for line in log)
    assert not any(line.endswith(("loss: C", "loss: PyTorch")) for line in log)


def weighted(model: Transformer, batch: Batch, weight: float) -> Loss:
    loss = Loss.of_logits(model(batch.source, batch.target_input), batch.target_output)
    return loss.plus("again", loss.total, weight)


def test_the_row_says_that_the_test_set_has_no_matches(
    recipe: Recipe, test_set: str, tmp_path: Path
) -> None:
    log: list[str] = []
    asked = recipe(test_set, "data.memory={}", "tokenizer.shared=true")
    row = read_json(train(asked, tmp_path / "run", log.append).result)
    assert row["scored_without"] == ["data.memory"]
    expected = "the test set is scored without matches of a translation memory (data.memory): valid"
    assert [line for line in log if line.startswith(expected)]


def test_of_weights_with_equal_bleu_those_with_the_lower_loss_are_best(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = {"averaged": 2.4, "checkpoints/step-00000012": 2.2}

    def validate(validator: Validator, beam_size: int = 1) -> Validation:
        """Both candidates get the BLEU 0 and their loss above, in the order of translation."""
        loss = next(remaining) if beam_size > 1 else 2.2
        return Validation(loss, {"bleu": 0.0}, [])

    remaining = iter(losses.values())
    monkeypatch.setattr(Validator, "validate", validate)
    settings = ("training.validate_every=12", "training.validation_metric=bleu")
    best = read_json(train(recipe(*settings), tmp_path / "run", quiet).best)
    assert {name: each["loss"] for name, each in best["candidates"].items()} == losses
    assert (best["weights"], best["loss"]) == ("checkpoints/step-00000012", 2.2)


def test_each_text_of_a_test_set_has_its_bleu_and_languages(
    recipe: Recipe, corpus: Path, test_set: str, tmp_path: Path
) -> None:
    german = f"name: german, source: {corpus}/test.en, target: {corpus}/test.de"
    english = f"languages: [de, en], source: {corpus}/valid.de, target: {corpus}/valid.en"
    for language in ("en", "de"):
        (corpus / f"valid.{language}").write_text((corpus / f"test.{language}").read_text("utf-8"))
    log: list[str] = []
    texts = f"data.test=[{{{german}}}, {{{english}}}]"
    row = read_json(train(recipe(texts), tmp_path / "run", log.append).result)
    assert row["test_set"]["languages"] == "mul-mul" and row["test_set"]["sentences"] == 10
    # none by Moses, whose rules are of one target language
    assert [score["name"] for score in row["scores"]] == ["BLEU", "chrF++"]
    alone = read_json(train(recipe(test_set), tmp_path / "alone", quiet).result)
    bleu_of_texts = row["bleu_of_texts"]
    assert list(bleu_of_texts) == ["german", f"{corpus}/valid.de"]
    assert bleu_of_texts["german"] == pytest.approx(alone["scores"][0]["score"], abs=0.005)
    assert "bleu_of_texts" not in alone
    assert any(line.startswith("BLEU of each text: german ") for line in log)


def test_scores_of_tokenised_text_are_named_so_and_references_in_pieces_are_doubted(
    tested: Recipe, corpus: Path, tmp_path: Path
) -> None:
    run = train(tested("data.tokenized=true"), tmp_path / "run", quiet)
    names = [score["name"] for score in read_json(run.result)["scores"]]
    assert names == ["tokenised BLEU", "tokenised chrF++"]
    (corpus / "test.de").write_text("ein Hu@@ nd\n" * 5, "utf-8")
    log: list[str] = []
    run = train(tested(), tmp_path / "other", log.append)
    assert "in pieces of words" in read_json(run.result)["doubt"]
    assert any(line.startswith("warning: the references are in pieces") for line in log)


def test_a_run_stopped_while_it_scores_scores_again_and_trains_no_more(
    tested: Recipe, finished: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*arguments: object) -> None:
        raise StoppedBySignal("stopped by SIGTERM")

    run = RunDirectory(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(result_module, "translate_once", stopped)
        with pytest.raises(StoppedBySignal):
            train(tested(), run.path, quiet)
    assert not run.result.exists()
    rewritten = run.config.name, run.result.name
    before, log = files_of(run, *rewritten), list[str]()
    train(tested(), run.path, log.append)
    shutil.rmtree(run.test_translations)  # those of the test set
    assert files_of(run, *rewritten) == before
    said = "already trained to step 12; its test set is not scored yet"
    assert any(line.endswith(said) for line in log)
    assert log[-2] == f"written to {run.result}"
    assert log[-1] == f"translate with: nmt translate --model {run.path}"
    rows = [read_json(each.result) for each in (finished, run)]
    for row in rows:
        for measured in ("scored", "training_seconds", "command"):
            del row[measured]
    assert rows[0] == rows[1]


def test_a_finished_run_is_scored_again_only_if_training_test_set_weights_or_search_differ(
    tested: Recipe, finished: RunDirectory, corpus: Path, tmp_path: Path
) -> None:
    run, log = copied(finished, tmp_path), list[str]()
    before, files = read_json(run.result), files_of(run)
    train(tested(), run.path, log.append)
    assert log[-1] == f"{run.path}: already trained to step 12; nothing to do"
    assert files_of(run) == files

    run.result.write_text('{"test_set": 3', "utf-8")
    train(tested(), run.path, quiet)
    assert read_json(run.result)["scores"] == before["scores"]

    for language in ("en", "de"):
        (corpus / f"other.{language}").write_text("the dog\n" * 3, "utf-8")
    other = f"data.test={{source: {corpus}/other.en, target: {corpus}/other.de}}"
    train(tested(other), run.path, quiet)
    row = read_json(run.result)
    assert row["test_set"]["sha256"] != before["test_set"]["sha256"]
    assert (row["test_set"]["name"], row["test_set"]["sentences"]) == ("other.en other.de", 3)
    assert row["configuration"] != before["configuration"]

    chosen = {**read_json(run.best), "weights": "checkpoints/step-00000012", "loss": 1.5}
    write_json(run.best, chosen)
    train(tested(other), run.path, quiet)
    scored = read_json(run.result)
    assert (scored["weights"], scored["validation"]["loss"]) != (
        row["weights"],
        row["validation"]["loss"],
    )

    train(tested(other, "decoding.beam_size=1"), run.path, quiet)
    assert read_json(run.result)["decoding"]["beam_size"] == 1
    assert load_model(run.path, torch.device("cpu")).config.decoding.beam_size == 1

    train(tested("training.max_steps=14"), run.path, quiet)
    assert (read_json(run.result)["trained_steps"], read_json(run.result)["sessions"]) == (14, 2)


def test_settings_of_the_average_that_come_too_late_are_told(
    tested: Recipe, finished: RunDirectory, tmp_path: Path
) -> None:
    run, log = copied(finished, tmp_path), list[str]()
    files = files_of(run)
    train(tested("training.average_checkpoints=3", "training.average=best"), run.path, log.append)
    assert log[-2:] == [
        f"{run.averaged}: made before training.average changed from last to best and "
        "training.average_checkpoints changed from 2 to 3; average other checkpoints with: "
        f"nmt average --model {run.path} --last 3",
        f"{run.path}: already trained to step 12; nothing to do",
    ]
    assert files_of(run) == files
    train(tested("training.average_checkpoints=3", "decoding.beam_size=1"), run.path, quiet)
    config = load_model(run.path, torch.device("cpu")).config
    assert (config.training.average_checkpoints, config.decoding.beam_size) == (2, 1)


@pytest.mark.parametrize("off", ["training.score_test_set=false", "data.test=null"])
def test_without_a_test_set_or_where_it_is_off_nothing_is_scored(
    tested: Recipe, tmp_path: Path, off: str
) -> None:
    run = train(tested(off), tmp_path / "run", quiet)
    assert run.best.is_file() and not run.result.exists()
    log: list[str] = []
    train(tested(off, "decoding.beam_size=1"), run.path, log.append)
    assert log[-2:] == [
        f"{run.config}: has the section decoding of the recipe now",
        f"{run.path}: already trained to step 12; nothing to do",
    ]
    assert load_model(run.path, torch.device("cpu")).config.decoding.beam_size == 1


def test_a_test_set_that_cannot_be_read_is_told_before_training(
    tested: Recipe, corpus: Path, tmp_path: Path
) -> None:
    config = tested()
    (corpus / "test.de").write_text("zu wenige\n", "utf-8")
    with pytest.raises(DataError) as raised:
        train(config, tmp_path / "run", print)
    assert str(raised.value) == (
        f"the test set, which is scored when training ends: {corpus}/test.en has 5 lines, "
        f"{corpus}/test.de has 1 line; expected as many, line n of one being the translation of "
        "line n of the other (or leave it out: training.score_test_set: false)"
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("typed", "portable"),
    [
        ("/usr/bin/nmt train --config demo.yaml", "nmt train --config demo.yaml"),
        ("a/nmt/__main__.py train --config=a/my.yaml --run-dir x", "nmt train --config my.yaml"),
        ("mine/r_drop.py demo.yaml /runs/of/me/it", "python r_drop.py demo.yaml it"),
        ("nmt train --run-dir=x --config c --set seed=2", "nmt train --config c --set seed=2"),
        ("nmt train --set data.directory=x --config c", "nmt train --config c"),
        ("nmt train --set 'data.directory=my own/x' --config c", "nmt train --config c"),
        ("nmt train --set 'model={heads: 2}'", "nmt train --set 'model={heads: 2}'"),
        ("nmt train --config", "nmt train --config ''"),
        ("nmt", "nmt"),
    ],
)
def test_a_command_is_kept_without_the_places_of_one_machine(typed: str, portable: str) -> None:
    assert portable_command(shlex.split(typed)) == portable


def test_a_digest_is_of_all_settings_but_defaults_and_the_folder_of_data(recipe: Recipe) -> None:
    digest, default = configuration_digest(recipe()), recipe().training.clip_norm
    given = f"training.clip_norm={'null' if default is None else default}"
    assert configuration_digest(recipe("data.directory=elsewhere", given)) == digest
    assert configuration_digest(recipe("seed=2")) != digest


def test_a_fingerprint_tells_texts_apart_and_not_files() -> None:
    pair = SentencePair("a dog", "ein Hund")
    assert text_fingerprint([pair]) == text_fingerprint([SentencePair(*pair)])
    others = ([pair, pair], [SentencePair("a", "dog ein Hund")], [SentencePair("a dog", "ein")])
    assert len({text_fingerprint([pair]), *map(text_fingerprint, others)}) == 4
