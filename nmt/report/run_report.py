"""`nmt report`: everything known about a run, as one HTML page that needs no other file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import nmt
from nmt.config_file import load_config
from nmt.errors import DataError, NmtError
from nmt.files import read_json
from nmt.report.attention_maps import MAX_PIECES
from nmt.report.metrics_log import Record, last_step, read_metrics
from nmt.report.page.attention import MAX_DEFAULT_PIECES, attention_chapter, record_sentences
from nmt.report.page.configuration import configuration_chapter
from nmt.report.page.corpus import data_chapter
from nmt.report.page.quality import quality_chapter
from nmt.report.page.summary import compared_weights, facts, tiles
from nmt.report.page.template import render
from nmt.report.page.training import training_chapter
from nmt.report.page.translations import translations_chapter
from nmt.report.scored_test_set import Log, ScoredTestSet, score_test_set
from nmt.run_directory import LoadedModel, RunDirectory, find_run, load_run
from nmt.training.step_memory import parameter_count
from nmt.training.validation import ExampleTranslation, read_examples
from nmt.translation.translator import Translator

SENTENCES = 4
"""number of sentences whose attention is shown by default"""
Progress = Callable[[int, int], object]
"""called with the number of sentences translated since the last call, and their total"""


@dataclass(frozen=True)
class ReportOptions:
    """What the user wants to see in the report."""

    checkpoint: str = "best"
    test_set: str | None = None
    """test or validation; None: test, or validation if the run has no test set"""
    most: int | None = None
    """number of sentences of the test set to translate; None: all, 0: none"""
    sentences: Sequence[str] = ()
    """sentences whose attention is shown; by default the first ones that the run translated"""


def write_report(
    model: Path,
    options: ReportOptions,
    device: torch.device,
    log: Log,
    progress: Progress = lambda more, total: None,
) -> str:
    """Return the page about the run directory or checkpoint `model`; it says what is missing.

    Raises:
        CheckpointError: `model` is not a run.
        ConfigError: the configuration of the run cannot be read.
    """
    directory = find_run(model)
    config = load_config(str(directory.config))
    environment = _read_json(directory.environment)
    examples = read_examples(directory.translations)
    records, problem = _read_records(directory)
    run = _load(model, device, options.checkpoint)
    scored = _score(run, options, log, progress)
    parameters = weights = score = None
    if isinstance(run, LoadedModel):
        parameters, weights = parameter_count(run.model), _weights_folder(run, directory)
    if isinstance(scored, ScoredTestSet):
        score = scored.title, scored.scores[0]
    fingerprint = environment.get("data_fingerprint")
    chapters = {
        "summary": {
            "tiles": tiles(records, score, parameters),
            "problem": problem,
            "facts": facts(config, environment, last_step(records), weights),
            "candidates": compared_weights(_read_json(directory.best)),
        },
        "training": training_chapter(records),
        "quality": quality_chapter(scored),
        "translations": translations_chapter(examples),
        "attention": _attention(run, options.sentences, examples, log),
        "data": data_chapter(config, fingerprint if isinstance(fingerprint, str) else None),
        "configuration": configuration_chapter(config.model_dump(mode="json"), environment),
    }
    page = {
        "name": directory.path.resolve().name,
        "languages": f"{config.data.source_language} → {config.data.target_language}",
        "chapters": list(chapters),
        "version": nmt.__version__,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
    }
    return render("page.html", page | chapters)


def _load(model: Path, device: torch.device, checkpoint: str) -> LoadedModel | str:
    """Load the model, or return a sentence that says why there is none."""
    try:
        return load_run(model, device, checkpoint)
    except NmtError as error:
        return f"There are no weights to look into: {error}"


def _weights_folder(run: LoadedModel, directory: RunDirectory) -> str:
    """Return the folder of the weights, relative to the run directory if it is inside."""
    try:
        return str(run.path.resolve().relative_to(directory.path.resolve()))
    except ValueError:
        return str(run.path)


def _score(
    run: LoadedModel | str, options: ReportOptions, log: Log, progress: Progress
) -> ScoredTestSet | str:
    """Score the test set, or return a sentence that says why it is not scored."""
    if isinstance(run, str):
        return run
    if options.most == 0:
        return "Nothing was translated for this report, as --sentences 0 asked for."
    try:
        return score_test_set(Translator(run), options.test_set, options.most, log, progress)
    except NmtError as error:
        return f"No test set can be scored: {error}"


def _attention(
    run: LoadedModel | str,
    asked: Sequence[str],
    examples: dict[int, list[ExampleTranslation]],
    log: Log,
) -> dict[str, Any] | str:
    """Show attention for the sentences that the user chose, or for the first ones of the run."""
    if isinstance(run, str):
        return run
    last = examples[max(examples)] if examples else []
    sentences = list(asked) or [example.source for example in last]
    if not sentences:
        return "The run has kept no sentence to look into; name some with --sentence."
    longest = MAX_PIECES if asked else MAX_DEFAULT_PIECES
    attended = record_sentences(run, sentences, max(SENTENCES, len(asked)), longest)
    unsuitable = (
        f"empty or not UTF-8, has more than {longest} pieces, or a translation of more than "
        f"{MAX_PIECES}"
    )
    if asked and 0 < len(attended) < len(set(asked)):
        log(
            f"attention is shown of {len(attended)} of the {len(set(asked))} sentences; each of "
            f"the others is {unsuitable}"
        )
    if not attended:
        return (
            f"None of the {'sentences asked for' if asked else 'sentences that the run kept'} can "
            f"be drawn: each is {unsuitable}; name others with --sentence."
        )
    return attention_chapter(attended)


def _read_records(directory: RunDirectory) -> tuple[list[Record], str]:
    """Return the records of metrics.jsonl, and what is wrong with them (empty if nothing is)."""
    try:
        records = read_metrics(directory.metrics)
    except DataError as error:
        return [], f"There are no figures of the training: {error}"
    placed = [record for record in records if isinstance(record.get("step"), int)]
    if len(placed) < len(records):
        wrong = len(records) - len(placed)
        return placed, f"{directory.metrics}: records without a step are left out: {wrong:,}."
    return placed, ""


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of the run; return {} if it is missing or not an object."""
    try:
        return read_json(path)
    except (OSError, ValueError):
        return {}
