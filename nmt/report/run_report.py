"""`nmt report`: everything known about a run, as one HTML page that needs no other file."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import torch

import nmt
from nmt.data.corpora.registry import find_splits
from nmt.data.prepared import read_counts
from nmt.data.quality import describe_side
from nmt.data.tokens.token_store import TokenStore
from nmt.errors import DataError, Log, NmtError
from nmt.evaluation.breakdown import Row, bleu_by_length, training_words, word_f1_by_rarity
from nmt.evaluation.metrics import Score, chrf_metric
from nmt.evaluation.score_sheet import score_sheet
from nmt.evaluation.test_sets import EvaluationSet, find_split, translate_test_set
from nmt.exchange.imported import origin_of
from nmt.files import read_json_or_empty
from nmt.recipe.config import Config, DataConfig
from nmt.recipe.config_file import load_config
from nmt.report.attention_maps import MAX_PIECES, SentenceAttention, record_attention
from nmt.report.curves import Record, read_metrics
from nmt.report.page import render_page
from nmt.run.directory import RunDirectory, find_run
from nmt.run.model import LoadedModel, load_model
from nmt.training.step_memory import parameter_count
from nmt.training.validation import ExampleTranslation, read_examples
from nmt.translation.translator import Translator

SENTENCES = 4
"""number of sentences whose attention is shown by default"""
MAX_DEFAULT_PIECES = 40
"""largest number of pieces of a sentence that the user has not chosen"""
Result = TypeVar("Result")
ReportProgress = Callable[[int, int], object]
"""called with the number of sentences translated since the last call, and their total"""


@dataclass(frozen=True)
class ReportOptions:
    """What the user wants to see in the report."""

    checkpoint: str = "best"
    """which weights of the run: best, last, averaged, moving-average or step-N"""
    test_set: str | None = None
    """test or validation; None: test, or validation if the run has no test set"""
    max_sentences: int | None = None
    """number of sentences of the test set to translate and score; None: all, 0: none"""
    sentences: Sequence[str] | None = None
    """sentences whose attention is shown; by default the first ones that the run translated"""


@dataclass(frozen=True)
class ScoredTestSet:
    """A test set of a run with the translations of its first sentences, and their scores."""

    test_set: EvaluationSet
    """the sentences that are translated"""
    size: int
    """number of sentences of the whole set"""
    translations: Sequence[str]
    scores: Sequence[Score]
    sentence_scores: Sequence[float]
    """chrF of each sentence, 0 to 100"""
    by_length: Sequence[Row]
    """BLEU by the length of the reference"""
    by_rarity: Sequence[Row]
    """F1 of words by how rare they are in the training text"""
    rarity_remark: str
    """how rarity is counted, or why it is unknown"""


def build_report(
    model: Path, options: ReportOptions, device: torch.device, log: Log, progress: ReportProgress
) -> str:
    """Return the HTML page about the run directory or checkpoint `model`.

    Translates and scores a test set on `device`, and meanwhile calls `progress`; `log` is called
    with messages for the user. Where something is missing, the page says why.

    Raises:
        CheckpointError: `model` is not a run.
        ConfigError: the configuration of the run cannot be read.
    """
    directory = find_run(model)
    config, found = load_config(str(directory.config)), directory.config_with_texts()
    environment = read_json_or_empty(directory.environment)
    examples = read_examples(directory.translations)
    records, problem = _read_records(directory)
    loaded_or_reason = _or_reason(
        "There are no weights to look into", lambda: load_model(model, device, options.checkpoint)
    )
    about_run = {
        "name": directory.path.resolve().name,
        "config": config,
        "environment": environment,
        "origin": _or_reason("unknown", lambda: origin_of(directory)),
        "records": records,
        "problem": problem,
        "best": read_json_or_empty(directory.best),
        "examples": examples,
        "prepared": _prepared_data(found, environment.get("data_fingerprint")),
        "version": nmt.__version__,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
    }
    if isinstance(loaded_or_reason, str):  # the reason why no weights can be loaded
        about_model: dict[str, Any] = {"parameters": None, "weights": ""}
        about_model |= {"scored": loaded_or_reason, "attention": loaded_or_reason}
    else:
        loaded = loaded_or_reason
        path, root = loaded.path.resolve(), directory.path.resolve()
        shown_path = path.relative_to(root) if path.is_relative_to(root) else loaded.path
        about_model = {
            "parameters": parameter_count(loaded.model),
            "weights": str(shown_path),
            "scored": _or_reason(
                "No test set can be scored",
                lambda: score_test_set(Translator(loaded), found.data, options, log, progress),
            ),
            "attention": _attention(loaded, options.sentences, examples, log),
        }
    return render_page(about_run | about_model)


def _or_reason(problem: str, compute: Callable[[], Result]) -> Result | str:
    """Return the result of `compute`; after an error, a sentence for the page: problem, reason."""
    try:
        return compute()
    except NmtError as error:
        return f"{problem}: {error}"


def score_test_set(
    translator: Translator,
    config: DataConfig,
    options: ReportOptions,
    log: Log,
    progress: ReportProgress,
) -> ScoredTestSet | str:
    """Translate and score the first sentences of the test or validation set of `config`.

    Returns a sentence for the page instead if `options` ask for no sentences.

    Raises:
        DataError: the corpus is not on this machine; a report downloads nothing.
        NmtError: the text cannot be read.
    """
    if options.max_sentences == 0:
        return "Nothing was translated for this report, as 0 sentences were asked for."
    splits = find_splits(config)
    if splits is None:
        raise DataError(
            f"{config.corpus} is not in {config.directory}; go where the run was trained, or fetch "
            f"it: nmt data download {config.corpus} --directory "
            f"{shlex.quote(str(config.directory))}"
        )
    name = options.test_set or ("test" if splits.test else "validation")
    whole_set = find_split(config, name, log)
    test_set = whole_set.first(options.max_sentences)
    count = len(test_set.references)
    log(f"translating {count:,} sentences of the {name} set")
    translations = translate_test_set(translator, test_set, lambda done: progress(done, count))
    systems = {"model": translations}  # the breakdowns below can compare several systems
    by_rarity: Sequence[Row] = []
    try:
        frequencies, origin = training_words(config, test_set.tokenizer)
        by_rarity = word_f1_by_rarity(systems, test_set, frequencies)
        rarity_remark = f"by how often the word stands in {origin}"
    except NmtError as error:
        rarity_remark = f"Rarity is unknown, for the training text cannot be read: {error}"
    return ScoredTestSet(
        test_set=test_set,
        size=len(whole_set.references),
        translations=translations,
        scores=score_sheet(translations, test_set).scores,
        sentence_scores=chrf_metric().score_sentences(translations, test_set.references),
        by_length=bleu_by_length(systems, test_set),
        by_rarity=by_rarity,
        rarity_remark=rarity_remark,
    )


def _attention(
    loaded: LoadedModel,
    chosen: Sequence[str] | None,
    examples: Mapping[int, Sequence[ExampleTranslation]],
    log: Log,
) -> list[SentenceAttention] | str:
    """Record the attention over all sentences that the user has `chosen`, else over some examples.

    `examples` are the validation sentences that the run has translated, by step. Returns a sentence
    for the page instead if none is suitable.
    """
    last_examples = examples[max(examples)] if examples else []  # of the last validation
    candidates = chosen or [example.source for example in last_examples]
    sentences = list(dict.fromkeys(candidates))  # without repetitions
    if not sentences:
        return "The run has kept no sentence to look into; name some."
    max_pieces = MAX_PIECES if chosen else MAX_DEFAULT_PIECES
    attended: list[SentenceAttention] = []
    for sentence in sentences:
        if not chosen and len(attended) == SENTENCES:
            break
        with suppress(DataError):  # skips an unsuitable sentence
            attended.append(record_attention(loaded, sentence, max_pieces))
    unsuitable = (
        f"empty or not UTF-8, has more than {max_pieces} pieces, or a translation of more than "
        f"{MAX_PIECES}"
    )
    if not attended:
        origin = "asked for" if chosen else "that the run kept"
        return f"None of the sentences {origin} can be drawn: each is {unsuitable}; name others."
    if chosen and len(attended) < len(sentences):
        log(
            f"attention is shown of {len(attended)} of the {len(sentences)} sentences; each of "
            f"the others is {unsuitable}"
        )
    return attended


def _prepared_data(config: Config, fingerprint: object) -> dict[str, Any] | str:
    """Return counts of the prepared data and statistics of both languages, or why there are none.

    `fingerprint` names the folder of the data. Sentence lengths are in tokens without EOS.
    """
    if not isinstance(fingerprint, str):
        return "environment.json does not say what the run was trained on."
    folder = Path(config.data.directory, "prepared", fingerprint)
    try:
        counts, store = read_counts(folder), TokenStore.open(folder)
    except DataError:
        return f"The prepared data are not at {folder}; `nmt prepare` makes them again."
    source_language, target_language = config.data.languages_of(config.data.train)
    sides = [
        describe_side(source_language, store.source.lengths),
        describe_side(target_language, store.target.lengths),
    ]
    return {"counts": counts, "sides": sides}


def _read_records(directory: RunDirectory) -> tuple[list[Record], str]:
    """Return the records of metrics.jsonl, and what is wrong with them (empty if nothing is)."""
    records = _or_reason(
        "There are no figures of the training", lambda: read_metrics(directory.metrics)
    )
    if isinstance(records, str):
        return [], records
    with_step = [record for record in records if isinstance(record.get("step"), int)]
    left_out = len(records) - len(with_step)
    if left_out:
        return with_step, f"{directory.metrics}: records without a step are left out: {left_out:,}."
    return with_step, ""
