"""`nmt compare`: which of several systems is better, by how much, where, and whether by chance."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import warn
from nmt.cli.options.model import (
    BatchTokensOption,
    BeamSizeOption,
    CheckpointOption,
    Device,
    DeviceOption,
    Precision,
    PrecisionOption,
    load_translator,
)
from nmt.cli.options.test_set import (
    LanguagesOption,
    NoTextChecksOption,
    ReferenceOption,
    TestSetOption,
    TokenizedOption,
    named_set,
    parse_languages,
    provenance,
    read_translations,
    set_from_files,
    set_of_run,
)
from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.config import DataConfig
    from nmt.evaluation.test_sets import EvaluationSet
    from nmt.translation.translator import Translator

SystemsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="A B…", help="Run directories, checkpoints or files of translations."),
]
SourceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Text to translate, with --reference.")
]
ExamplesOption = Annotated[
    int, typer.Option(min=0, help="Sentences to show for each, where it stands out most.")
]


def compare(
    systems: SystemsArgument,
    test_set: TestSetOption = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    languages: LanguagesOption = None,
    tokenized: TokenizedOption = False,
    examples: ExamplesOption = 3,
    no_text_checks: NoTextChecksOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    checkpoint: CheckpointOption = "best",
    beam_size: BeamSizeOption = None,
    batch_tokens: BatchTokensOption = None,
    device: DeviceOption = Device.auto,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Compare systems on one test set, by default the first run's own.

    Differences of BLEU are tested by paired bootstrap and approximate randomisation.
    """
    from nmt.run_directory import checkpoint_folder, find_run

    pair = parse_languages(languages)
    runs = list(dict.fromkeys(path for path in systems if path.is_dir()))
    _refuse_contradictions(systems, runs, test_set, source, reference)
    _refuse_what_a_run_knows(runs, tokenized, pair)

    def load(path: Path) -> "Translator":
        return load_translator(
            [str(path)],
            checkpoint,
            device,
            precision,
            beam_size=beam_size,
            batch_tokens=batch_tokens,
        )

    def set_for(first: "Translator") -> "EvaluationSet":
        return set_of_run(first, source, reference, test_set or "test")

    translator = None
    if runs:
        data = _common_data(runs)
        translator = load(runs[0])
        task = _Task(set_for(translator), data.tokenized, data)
    elif reference:
        task = _Task(set_from_files(source, reference, pair), tokenized)
    else:
        task = _Task(named_set(test_set or "", pair), tokenized)
    for path in runs:  # before the long wait for translations
        if (run := find_run(path)).path == path:
            checkpoint_folder(run, checkpoint)
    _read_files(systems, task, not no_text_checks)
    for path in runs:
        translator = translator or load(path)
        task.models.append(provenance(translator, [str(path)], checkpoint))
        task.translations[path] = _translate(translator, path, task)
        translator = None
    _print(task, systems, examples, as_json)


@dataclass
class _Task:
    """What is compared on what."""

    against: "EvaluationSet"
    tokenized: bool
    data: "DataConfig | None" = None
    """the first run's"""
    translations: dict[Path, list[str]] = field(default_factory=dict)
    models: list[dict[str, object]] = field(default_factory=list)
    """what those that translate are, for the record"""


def _refuse_contradictions(
    systems: list[Path],
    runs: list[Path],
    test_set: str | None,
    source: Path | None,
    reference: Path | None,
) -> None:
    if missing := [path for path in systems if not path.exists()]:
        raise DataError(f"{missing[0]}: no such run directory, checkpoint or file of translations")
    if len(systems) < 2:
        raise ConfigError(
            f"{systems[0]} alone cannot be compared; give another run directory, checkpoint or "
            "file of translations"
        )
    if test_set and (source or reference):
        other = "--source" if source else "--reference"
        raise ConfigError(f"--test-set {test_set} and {other} name two texts; leave out one")
    if runs and (source is None) != (reference is None):
        raise ConfigError(f"{runs[0]} is a run: --source and --reference go together")
    if not runs and not (reference or test_set):
        raise ConfigError(
            "files of translations need --reference FILE, or --test-set NAME with --languages"
        )


def _refuse_what_a_run_knows(
    runs: list[Path], tokenized: bool, languages: tuple[str, str] | None
) -> None:
    if runs and tokenized:
        raise ConfigError(f"{runs[0]} is a run and knows data.tokenized; leave out --tokenized")
    if runs and languages:
        raise ConfigError(f"{runs[0]} is a run and knows its languages; leave out --languages")


def _common_data(runs: list[Path]) -> "DataConfig":
    """The first run's; runs of other languages or another form of text are refused."""
    from nmt.config_file import load_config
    from nmt.run_directory import find_run

    first, *others = (load_config(str(find_run(path).config)).data for path in runs)
    for path, data in zip(runs[1:], others, strict=True):
        if first.languages != data.languages:
            raise ConfigError(
                f"{runs[0]} translates {'-'.join(first.languages)} and {path} "
                f"{'-'.join(data.languages)}; compare runs of one pair of languages"
            )
        if first.tokenized != data.tokenized:
            raise ConfigError(
                f"of {runs[0]} and {path} only one has learnt from tokenised text, so their scores "
                "do not compare; detokenise its translations, and compare files with --reference"
            )
    return first


def _read_files(systems: list[Path], task: _Task, text_checks: bool) -> None:
    """Put the translations that are there already into the task."""
    from nmt.evaluation.text_checks import doubt_about_references, refuse_unfit

    references = task.against.references
    if task.data and text_checks and (doubt := doubt_about_references(references, task.tokenized)):
        warn(doubt)
    for path in dict.fromkeys(systems):
        if path.is_dir():
            continue
        lines = read_translations(path, task.against)
        if text_checks:
            refuse_unfit(lines, references, (str(path), task.against.name), task.tokenized)
        task.translations[path] = lines


def _translate(translator: "Translator", path: Path, task: _Task) -> list[str]:
    from tqdm import tqdm

    from nmt.evaluation.evaluate import translate_all

    sources = task.against.sources or []
    with tqdm(total=len(sources), unit=" lines", desc=str(path), disable=None) as bar:
        return translate_all(translator, sources, warn, bar.update)


def _print(task: _Task, systems: list[Path], examples: int, as_json: bool) -> None:
    from nmt.evaluation.compare import compare
    from nmt.evaluation.training_text import training_words_at_hand
    from nmt.report.comparison import render

    learnt = training_words_at_hand(task.data) if task.data else None
    found = [(str(path), task.translations[path]) for path in systems]
    tokenize = task.against.tokenizer(task.tokenized)
    comparison = compare(found, task.against, tokenize, learnt, examples)
    if as_json:
        print(json.dumps(comparison.as_json() | {"models": task.models}, ensure_ascii=False))
    else:
        print(render(comparison))
