"""`nmt report`: all that is known of a run on one page that stands alone."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import nmt
from nmt.config_file import load_config
from nmt.errors import DataError, NmtError
from nmt.report.attention_maps import MAX_PIECES
from nmt.report.curves import read_metrics
from nmt.report.page.attention import LEGIBLE, attend_all, attention_section
from nmt.report.page.configuration import configuration_section
from nmt.report.page.corpus import data_section
from nmt.report.page.html import Html
from nmt.report.page.judge import judge
from nmt.report.page.quality import Judged, quality_section
from nmt.report.page.shell import page
from nmt.report.page.summary import Summary, summary_section
from nmt.report.page.training import training_section
from nmt.report.page.translations import translations_section
from nmt.run_directory import LoadedModel, RunDirectory, find_run, load_run
from nmt.training.examples import ExampleTranslation, read_examples
from nmt.training.step_memory import parameter_count
from nmt.translation.translator import Translator

SENTENCES = 4
"""whose attention is shown"""


@dataclass(frozen=True)
class Wishes:
    """What the user wants in the report."""

    checkpoint: str = "best"
    test_set: str | None = None
    """test or validation; None: test, or validation where the run has no other"""
    most: int | None = None
    """sentences translated of the test set; None: all, 0: none"""
    sentences: Sequence[str] = ()
    """whose attention is shown; none: the first ones the run has kept translations of"""


Progress = Callable[[int, int], object]
"""hears how many more sentences are translated, of how many"""


def write_report(
    model: Path,
    wishes: Wishes,
    device: torch.device,
    log: Callable[[str], None],
    progress: Progress = lambda more, total: None,
) -> str:
    """The page of the run directory or checkpoint `model`; what is absent is said in its place.

    Raises:
        CheckpointError: `model` is no run.
        ConfigError: its configuration cannot be read.
    """
    directory = find_run(model)
    config = load_config(str(directory.config))
    environment, best = _json(directory.environment), _json(directory.best)
    examples = read_examples(directory.translations)
    run = _load(model, device, wishes.checkpoint)
    judged = _judge(run, wishes, log, progress)
    records, problem = _records(directory)
    summary = Summary(
        name=directory.path.resolve().name,
        config=config,
        environment=environment,
        best=best,
        records=records,
        problem=problem,
    )
    if isinstance(run, LoadedModel):
        parameters = parameter_count(run.model)
        summary = replace(summary, parameters=parameters, weights=_place(run, directory))
    if isinstance(judged, Judged):
        summary = replace(summary, scores=[(judged.title, score) for score in judged.scores[:1]])
    fingerprint = environment.get("data_fingerprint")
    fingerprint = fingerprint if isinstance(fingerprint, str) else None
    chapters: list[tuple[str, str, Html]] = [
        ("summary", "Summary", summary_section(summary)),
        ("training", "Training", training_section(summary.records)),
        ("quality", "Quality", quality_section(judged)),
        ("translations", "Translations", translations_section(examples)),
        ("attention", "Attention", _attention(run, wishes.sentences, examples, log)),
        ("data", "Data", data_section(config, fingerprint)),
        (
            "configuration",
            "Configuration",
            configuration_section(config.model_dump(mode="json"), environment),
        ),
    ]
    languages = f"{config.data.source_language} → {config.data.target_language}"
    made = f"Made by nmt {nmt.__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    return page(summary.name, f"A translation model, {languages}", chapters, made)


def _load(model: Path, device: torch.device, checkpoint: str) -> LoadedModel | str:
    """The model, or why there is none."""
    try:
        return load_run(model, device, checkpoint)
    except NmtError as error:
        return f"There are no weights to look into: {error}"


def _place(run: LoadedModel, directory: RunDirectory) -> str:
    """Where the weights lie, seen from the run directory."""
    try:
        return str(run.path.resolve().relative_to(directory.path.resolve()))
    except ValueError:
        return str(run.path)


def _judge(
    run: LoadedModel | str, wishes: Wishes, log: Callable[[str], None], progress: Progress
) -> Judged | str:
    if isinstance(run, str):
        return run
    if wishes.most == 0:
        return "Nothing was translated for this report, as --sentences 0 asked for."
    try:
        return judge(Translator(run), wishes.test_set, wishes.most, log, progress)
    except NmtError as error:
        return f"No test set can be scored: {error}"


def _attention(
    run: LoadedModel | str,
    asked: Sequence[str],
    examples: dict[int, list[ExampleTranslation]],
    log: Callable[[str], None],
) -> Html:
    """The maps of the sentences asked for, or else of the first that the run kept."""
    if isinstance(run, str):
        return attention_section(run)
    last = examples[max(examples)] if examples else []
    sentences = list(asked) or [example.source for example in last]
    if not sentences:
        return attention_section(
            "The run has kept no sentence to look into; name some with --sentence."
        )
    longest = MAX_PIECES if asked else LEGIBLE
    attended = attend_all(run, sentences, max(SENTENCES, len(asked)), longest)
    refused = (
        f"empty or not UTF-8, has more than {longest} pieces, or a translation of more than "
        f"{MAX_PIECES}"
    )
    if asked and 0 < len(attended) < len(set(asked)):
        log(
            f"attention is shown of {len(attended)} of the {len(set(asked))} sentences; each of "
            f"the others is {refused}"
        )
    if not attended:
        return attention_section(
            f"None of the {'sentences asked for' if asked else 'sentences that the run kept'} can "
            f"be drawn: each is {refused}; name others with --sentence."
        )
    return attention_section(attended)


def _records(directory: RunDirectory) -> tuple[list[dict[str, Any]], str]:
    """What metrics.jsonl holds, and what is wrong with it, if anything is."""
    try:
        records = read_metrics(directory.metrics)
    except DataError as error:
        return [], f"There are no figures of the training: {error}"
    placed = [record for record in records if isinstance(record.get("step"), int)]
    if len(placed) < len(records):
        wrong = len(records) - len(placed)
        return placed, f"{directory.metrics}: records without a step are left out: {wrong:,}."
    return placed, ""


def _json(path: Path) -> dict[str, Any]:
    """A small JSON file of the run; {} where it is absent or no object."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
