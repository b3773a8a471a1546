"""`nmt report`: everything known about a run, as one HTML page that needs no other file."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import torch

import nmt
from nmt.config import Config
from nmt.config_file import load_config
from nmt.data.corpora.folders import Log
from nmt.data.corpora.registry import find_splits
from nmt.data.prepared import read_counts
from nmt.data.text.quality import describe_side
from nmt.data.tokens.token_store import TokenStore
from nmt.errors import DataError, NmtError, print_warning
from nmt.evaluation.breakdown import Row, bleu_by_length, training_words, word_f1_by_rarity
from nmt.evaluation.metrics import Score, chrf_metric
from nmt.evaluation.score_sheet import score_sheet
from nmt.evaluation.test_sets import EvaluationSet, find_split, set_of_pairs, translate_test_set
from nmt.files import read_json_or_empty
from nmt.report.attention_maps import MAX_PIECES, SentenceAttention, record_attention
from nmt.report.curves import Record, read_metrics
from nmt.report.page import render_page
from nmt.run_directory import LoadedModel, RunDirectory, find_run, load_run
from nmt.training.step_memory import parameter_count
from nmt.training.validation import ExampleTranslation, read_examples
from nmt.translation.translator import Translator

SENTENCES = 4
"""number of sentences whose attention is shown by default"""
MAX_DEFAULT_PIECES = 40
"""largest number of pieces of a sentence that the user has not chosen"""
Found = TypeVar("Found")
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


@dataclass(frozen=True)
class ScoredTestSet:
    """A test set of a run with the translations of its first sentences, and their scores."""

    test_set: EvaluationSet
    """the sentences that are translated"""
    sentences_in_all: int
    """number of sentences of the whole set"""
    translations: Sequence[str]
    scores: Sequence[Score]
    sentence_scores: Sequence[float]
    """chrF of each sentence, 0 to 100"""
    by_length: Sequence[Row]
    by_rarity: Sequence[Row]
    rarity_words: str
    """what rarity means here, or why it is unknown"""


def write_report(
    model: Path, options: ReportOptions, device: torch.device, log: Log, progress: Progress
) -> str:
    """Return the page about the run directory or checkpoint `model`; it says what is missing.

    Raises:
        CheckpointError: `model` is not a run.
        ConfigError: the configuration of the run cannot be read.
    """
    directory = find_run(model)
    config = load_config(str(directory.config))
    environment = read_json_or_empty(directory.environment)
    examples = read_examples(directory.translations)
    records, problem = _read_records(directory)
    run = _or_reason(
        "There are no weights to look into", lambda: load_run(model, device, options.checkpoint)
    )
    values = {
        "name": directory.path.resolve().name,
        "config": config,
        "environment": environment,
        "records": records,
        "problem": problem,
        "best": read_json_or_empty(directory.best),
        "examples": examples,
        "prepared": _prepared_data(config, environment.get("data_fingerprint")),
        "version": nmt.__version__,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
    }
    if isinstance(run, str):
        about_model: dict[str, Any] = {"parameters": None, "weights": ""}
        about_model |= {"scored": run, "attention": run}
    else:
        about_model = {
            "parameters": parameter_count(run.model),
            "weights": _weights_folder(run, directory),
            "scored": _or_reason(
                "No test set can be scored",
                lambda: score_test_set(Translator(run), options, log, progress),
            ),
            "attention": _attention(run, options.sentences, examples, log),
        }
    return render_page(values | about_model)


def _or_reason(problem: str, find: Callable[[], Found]) -> Found | str:
    """Return what `find` returns, or a sentence that says why there is none."""
    try:
        return find()
    except NmtError as error:
        return f"{problem}: {error}"


def _weights_folder(run: LoadedModel, directory: RunDirectory) -> str:
    """Return the folder of the weights, relative to the run directory if it is inside."""
    weights, root = run.path.resolve(), directory.path.resolve()
    return str(weights.relative_to(root) if weights.is_relative_to(root) else run.path)


def score_test_set(
    translator: Translator, options: ReportOptions, log: Log, progress: Progress
) -> ScoredTestSet | str:
    """Translate the first sentences of a set of the run and score them.

    Return a sentence that says why nothing is translated if the user wants none.

    Raises:
        DataError: the corpus is not on this machine; a report downloads nothing.
        NmtError: the text cannot be read.
    """
    if options.most == 0:
        return "Nothing was translated for this report, as --sentences 0 asked for."
    config = translator.run.config.data
    splits = find_splits(config)
    if splits is None:
        raise DataError(
            f"{config.corpus} is not in {config.directory}; go where the run was trained, or fetch "
            f"it: nmt data download {config.corpus} --directory {config.directory}"
        )
    name = options.test_set or ("test" if splits.test else "validation")
    pairs = list(find_split(config, name, log))
    test_set = set_of_pairs(name, pairs[: options.most], config.languages, config.tokenized)
    count = len(test_set.references)
    log(f"translating {count:,} sentences of the {name} set")
    translations = translate_test_set(
        translator, test_set, print_warning, lambda done: progress(done, count)
    )
    systems = {"model": translations}
    by_rarity: Sequence[Row] = []
    try:
        training = training_words(config)
        by_rarity = word_f1_by_rarity(systems, test_set, training.counts)
        rarity_words = f"by how often the word stands in {training.origin}"
    except NmtError as error:
        rarity_words = f"Rarity is unknown, for the training text cannot be read: {error}"
    return ScoredTestSet(
        test_set,
        len(pairs),
        translations,
        scores=score_sheet(translations, test_set).scores,
        sentence_scores=chrf_metric().score_sentences(translations, test_set.references),
        by_length=bleu_by_length(systems, test_set),
        by_rarity=by_rarity,
        rarity_words=rarity_words,
    )


def _attention(
    run: LoadedModel,
    asked: Sequence[str],
    examples: Mapping[int, Sequence[ExampleTranslation]],
    log: Log,
) -> list[SentenceAttention] | str:
    """Record the attention over the sentences that the user chose, or over the first of the run.

    Return a sentence that says why there is nothing to show if none of them is suitable.
    """
    last = examples[max(examples)] if examples else []
    sentences = dict.fromkeys(asked or [example.source for example in last])
    if not sentences:
        return "The run has kept no sentence to look into; name some with --sentence."
    longest = MAX_PIECES if asked else MAX_DEFAULT_PIECES
    attended: list[SentenceAttention] = []
    for sentence in sentences:
        if not asked and len(attended) == SENTENCES:
            break
        with suppress(DataError):  # it is empty, not valid text or too long, or its translation is
            attended.append(record_attention(run, sentence, longest))
    unsuitable = (
        f"empty or not UTF-8, has more than {longest} pieces, or a translation of more than "
        f"{MAX_PIECES}"
    )
    if not attended:
        return (
            f"None of the {'sentences asked for' if asked else 'sentences that the run kept'} can "
            f"be drawn: each is {unsuitable}; name others with --sentence."
        )
    if asked and len(attended) < len(sentences):
        log(
            f"attention is shown of {len(attended)} of the {len(sentences)} sentences; each of "
            f"the others is {unsuitable}"
        )
    return attended


def _prepared_data(config: Config, fingerprint: object) -> dict[str, Any] | str:
    """Return counts and lengths of the prepared data, or a sentence that says why there are none.

    The lengths are those of both languages, in tokens without EOS.
    """
    if not isinstance(fingerprint, str):
        return "environment.json does not say what the run was trained on."
    folder = Path(config.data.directory, "prepared", fingerprint)
    try:
        counts, store = read_counts(folder), TokenStore.open(folder)
    except DataError:
        return f"The prepared data are not at {folder}; `nmt prepare` makes them again."
    stored = (store.source, store.target)
    sides = zip(config.data.languages, stored, strict=True)
    return {
        "counts": counts,
        "sides": [describe_side(language, side.lengths) for language, side in sides],
    }


def _read_records(directory: RunDirectory) -> tuple[list[Record], str]:
    """Return the records of metrics.jsonl, and what is wrong with them (empty if nothing is)."""
    records = _or_reason(
        "There are no figures of the training", lambda: read_metrics(directory.metrics)
    )
    if isinstance(records, str):
        return [], records
    placed = [record for record in records if isinstance(record.get("step"), int)]
    if len(placed) < len(records):
        wrong = len(records) - len(placed)
        return placed, f"{directory.metrics}: records without a step are left out: {wrong:,}."
    return placed, ""
