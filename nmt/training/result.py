"""The result of a run: the weights that translate best, and what they score on the test set.

The weights with the best score on the validation set are named in `best.json`. The test set is
translated once with them, as `nmt eval-bleu --model RUN` would. `result.json` holds its scores and
how the run was trained; `scripts/results` makes tables of such files.
"""

import hashlib
import json
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from nmt.data.corpora.registry import obtain_splits
from nmt.data.language_tags import both_tags
from nmt.data.text.parallel_text import ParallelText, SentencePair, check_has_text
from nmt.errors import DataError
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.evaluation.score_sheet import score_sheet, score_text
from nmt.evaluation.test_sets import set_of_pairs, translate_once
from nmt.evaluation.text_checks import warning_about_references
from nmt.files import read_json_or_empty, write_json
from nmt.recipe.config import Config, DataConfig, DecodingConfig
from nmt.run.checkpoint import (
    average_weights,
    intact_checkpoints,
    load_into,
    load_weights,
    save_checkpoint,
)
from nmt.run.directory import RunDirectory
from nmt.run.model import load_model
from nmt.training.environment import OBJECTIVE, describe_software
from nmt.training.retention import checkpoints_to_average
from nmt.training.trainer import Trainer
from nmt.translation.translator import Translator

FORMAT = 1
"""version of result.json; a file without a version has format 1"""
_PRECISION = "fp32"
"""the precision of `nmt eval-bleu`, whatever the precision of training was"""
_HARDWARE = ("system", "processor", "cores", "processes", "threads", "device", "precision")
_VERSIONS = ("nmt", "git", "python", "libraries")
"""names in environment.json that result.json has too"""
_LOCAL_OPTIONS = ("--run-dir", "--set data.directory")
"""options that name folders of this machine and change nothing about the training"""


def choose_best_weights(trainer: Trainer) -> None:
    """Translate the validation set with each candidate and write the best one into best.json.

    The candidates are the average of checkpoints, the best checkpoint and the moving average, if
    there is one. Of equal scores, such as a BLEU of 0, the one with the lower loss is the best.
    Averages are saved in the run. The model keeps the weights of the last candidate.
    """
    directory, state, monitor = trainer.directory, trainer.state, trainer.monitor
    log, metadata = trainer.log, trainer.loaded.metadata
    ranked = state.ranking.steps  # best first; empty if no step was validated
    to_average = checkpoints_to_average(directory, trainer.config.training, ranked)
    averaged = intact_checkpoints(to_average, log)
    save_checkpoint(directory.averaged, average_weights(averaged), metadata=metadata)
    best_checkpoints = [directory.checkpoint(step) for step in ranked[:1]]  # one, or none
    candidates = [directory.averaged, *intact_checkpoints(best_checkpoints, log)]
    if state.moving_average:
        weights = {name: weight.cpu() for name, weight in state.moving_average.weights.items()}
        save_checkpoint(directory.moving_average, weights, metadata=metadata)
        candidates.append(directory.moving_average)
    beam = trainer.config.decoding.beam_size
    results = {}  # by the path of a candidate in the run
    for folder in candidates:
        load_into(trainer.model, load_weights(folder), folder)
        name = str(folder.relative_to(directory.path))
        result = results[name] = trainer.validator.validate(beam_size=beam)
        log(f"{name}: {result}" + (f" (beam {beam})" if result.translations else ""))
    best = max(results, key=lambda name: (results[name].score, -results[name].loss))
    best_is_average = best == directory.averaged.name
    record = {
        "weights": best,
        **results[best].figures(),
        "averaged_from": [path.name for path in averaged] if best_is_average else None,
        "candidates": {name: result.figures() for name, result in results.items()},
        "trained_steps": state.step,
        "training_seconds": round(monitor.seconds, 1),
        "target_tokens": monitor.total_tokens,
    }
    write_json(directory.best, record)
    log(
        f"trained {state.step:,} steps on {monitor.total_tokens:,} target tokens "
        f"in {monitor.seconds / 60:.1f} min; best weights: {directory.path / best}"
    )


def read_test_set(config: Config) -> list[SentencePair]:
    """Return the test set on which the finished run is to be scored; empty if it is not to be.

    Raises:
        DataError: the test set cannot be read.
    """
    texts = obtain_splits(config.data).test if config.training.score_test_set else []
    pairs: list[SentencePair] = []
    try:
        for text in texts:
            check_has_text(ParallelText(text, config.data.languages))
            pairs += ParallelText(text, config.data.languages).tagged_pairs(
                both_tags(config.data, text)
            )
        return pairs
    except DataError as error:
        raise DataError(
            f"the test set, which is scored when training ends: {error} "
            "(or leave it out: training.score_test_set: false)"
        ) from error


def has_result(
    directory: RunDirectory, pairs: Sequence[SentencePair], settings: DecodingConfig
) -> bool:
    """Return whether result.json holds the scores of the best weights on the test set `pairs`.

    Another search than that of `settings` gives other scores.
    """
    result = read_json_or_empty(directory.result)
    test_set, search = result.get("test_set"), result.get("decoding")
    if not isinstance(test_set, dict) or not isinstance(search, dict):
        return False
    # the size of a batch changes no score, and the record of an older nmt may lack some settings
    asked = settings.model_dump(exclude={"batch_tokens"})
    return (
        test_set.get("sha256") == text_fingerprint(pairs)
        and all(search.get(name, value) == value for name, value in asked.items())
        and directory.has_scores_of_best()
    )


def missing_part(directory: RunDirectory, config: Config) -> str:
    """Return what is missing of a run, trained by `config`, or damaged; "" if it is done."""
    best = read_json_or_empty(directory.best)
    for file in (directory.best, directory.result):
        if file.is_file() and not read_json_or_empty(file):
            return f"damaged: {file.name} cannot be read"
    trained, saved = best.get("trained_steps"), directory.saved_checkpoints()
    step = RunDirectory.step_of(saved[-1]) if saved else trained or 0
    if trained != step:
        return f"unfinished: step {step:,} of {config.training.max_steps:,}"
    has_test_set = config.training.score_test_set and (config.data.test or config.data.corpus)
    if has_test_set and not directory.has_scores_of_best():
        return "unfinished: its test set is not scored"
    return ""


def write_result(trainer: Trainer, pairs: Sequence[SentencePair]) -> None:
    """Translate the test set `pairs` with the best weights of the run and write result.json.

    Hardware and versions in it are from the session that finished training; `scored_with` holds
    the versions of the session that translated the test set, which may be a later one.
    """
    directory, log = trainer.directory, trainer.log
    loaded = load_model(directory.path, trainer.device)
    settings, data = loaded.config.decoding, loaded.config.data
    log(f"scoring the test set: {len(pairs):,} sentences, beam {settings.beam_size}")
    read_in_training = _read_in_training(data)
    for name, (what, how) in read_in_training.items():
        log(f"the test set is scored without {what} (data.{name}): {how}")
    languages = data.languages_of(data.test)
    test_set = set_of_pairs("test", pairs, languages, data.tokenized)
    warning = warning_about_references(test_set.references, data.tokenized)
    if warning:
        log(f"warning: {warning}")
    translations = translate_once(Translator(loaded, settings, _PRECISION), test_set)
    scores = score_sheet(translations, test_set).scores
    of_texts = _bleu_of_texts(data, pairs, translations)
    files = [Path(path).name for text in data.test for path in text.paths]
    result = {
        "format": FORMAT,
        "scores": [score.as_json() for score in scores],
        **({"bleu_of_texts": of_texts} if of_texts else {}),
        "doubt": warning,
        "test_set": {
            "name": " ".join(files) or f"{data.corpus} test",
            "languages": "-".join(languages),
            "sentences": len(pairs),
            "sha256": text_fingerprint(pairs),
        },
        "decoding": {**settings.model_dump(), "precision": _PRECISION},
        **(
            {"scored_without": [f"data.{name}" for name in read_in_training]}
            if read_in_training
            else {}
        ),
        **_describe_training(directory),
        "configuration": configuration_digest(loaded.config),
        "scored_with": describe_software(),
        "scored": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(directory.result, result)
    for score in scores:
        log(f"test set: {score}")
    if of_texts:
        log("BLEU of each text: " + ", ".join(f"{name} {bleu}" for name, bleu in of_texts.items()))
    log(f"written to {directory.result}")


def _read_in_training(data: DataConfig) -> dict[str, tuple[str, str]]:
    """Return what sources have in training and the test set does not have.

    That is, by setting of `data`, what it is, and how it is with the validation set or later.
    """
    known = {
        "memory": ("matches of a translation memory", "validation has those of the training text"),
        "terms": (
            "terms",
            "validation is without them, too; nmt translate --glossary asks for some",
        ),
        "context": (
            "the sentences before",
            "so is validation; nmt translate --document reads them",
        ),
    }
    return {name: about for name, about in known.items() if getattr(data, name)}


def _describe_training(directory: RunDirectory) -> dict[str, object]:
    """Return how the best weights of a run arose: steps, validation, command, versions, hardware.

    The last three are those of the last session. An objective of one's own is named, if any.
    """
    best = read_json_or_empty(directory.best)
    environment = read_json_or_empty(directory.environment)
    sessions = [environment, *environment.get("resumed", [])]
    last_session = sessions[-1]
    return {
        "weights": best.get("weights"),
        "validation": {name: best[name] for name in ("loss", *METRIC_NAMES) if name in best},
        **{name: best.get(name) for name in ("trained_steps", "target_tokens", "training_seconds")},
        "command": portable_command(last_session.get("command", [])),
        **{key: value for key, value in last_session.items() if key == OBJECTIVE},
        "sessions": len(sessions),
        "data_fingerprint": last_session.get("data_fingerprint"),
        **{name: last_session.get(name) for name in (*_VERSIONS, *_HARDWARE)},
    }


def _bleu_of_texts(
    data: DataConfig, pairs: Sequence[SentencePair], translations: Sequence[str]
) -> dict[str, float]:
    """Return the BLEU of each text of data.test by its label; empty if there is one text.

    `pairs` are those of all texts, and `translations` theirs.
    """
    result: dict[str, float] = {}
    start = 0
    for text in data.test if len(data.test) > 1 else []:
        languages = text.languages_or(data.languages)
        end = start + sum(1 for _ in ParallelText(text, languages))
        test_set = set_of_pairs(text.label, pairs[start:end], languages, data.tokenized)
        score, *_ = score_text(translations[start:end], test_set, confidence=False)
        result[text.label] = round(score.value, 2)
        start = end
    return result


def text_fingerprint(pairs: Sequence[SentencePair]) -> str:
    """Return the SHA-256 of the text of sentence pairs, whatever the format of their files."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(f"{pair.source}\n{pair.target}\n".encode())
    return digest.hexdigest()


def configuration_digest(config: Config) -> str:
    """Return the SHA-256 of all settings that differ from the defaults, except data.directory.

    A setting that a later version of nmt adds changes the digest only if it is not at its default.
    """
    chosen = config.model_dump(mode="json", exclude_defaults=True)
    chosen["data"].pop("directory", None)
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()


def portable_command(argv: Sequence[str]) -> str:
    """Return the command line `argv` as text, without folders of this machine.

    A program of one's own, which has called `nmt.train`, is named by its file.
    """
    program = Path(*argv[:1])
    is_nmt = program.stem == "nmt" or program.parts[-2:] == ("nmt", "__main__.py")
    portable = ["nmt"] if is_nmt else ["python", shlex.quote(program.name)]
    words = iter(argv[1:])  # the loop takes options from it, and values that follow an option
    for word in words:
        if not is_nmt:
            portable.append(shlex.quote(Path(word).name if word.startswith("/") else word))
            continue
        option, separator, value = word.partition("=")
        if option not in ("--run-dir", "--set", "--config"):
            portable.append(shlex.quote(word))
            continue
        if not separator:  # the value is the next word
            value = next(words, "")
        if option == "--config":
            value = Path(value).name
        if not f"{option} {value}".startswith(_LOCAL_OPTIONS):
            portable.append(f"{option} {shlex.quote(value)}")
    return " ".join(portable)
