"""`nmt compare`: which of several systems is better, by how much, where, and whether by chance."""

import glob
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.groups import JsonObjectOption, with_option_groups
from nmt.cli.options.model import (
    EXACT,
    BeamOptions,
    ComputeOptions,
    check_translates_nothing,
    make_translator,
    target_tag,
)
from nmt.cli.options.test_set import (
    TextOptions,
    into_language,
    load_test_set,
    provenance,
    read_translations,
    translate_with_progress,
)
from nmt.errors import ConfigError, DataError, print_warning

if TYPE_CHECKING:
    from nmt.evaluation.test_sets import EvaluationSet
    from nmt.recipe.config import DataConfig


SystemsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="A B…", help="Run directories, checkpoints or files of translations."),
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PATTERN",
        help="Runs that differ in the seed, such as base='runs/base-*'; give two groups or more.",
    ),
]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Compare each group with this one only: fewer pairs, so smaller differences are "
        "significant.",
    ),
]
ExamplesOption = Annotated[
    int, typer.Option(min=0, help="Sentences to show for each, where it stands out most.")
]


@with_option_groups
def compare(
    *,
    text: TextOptions,
    systems: SystemsArgument = None,
    group: GroupOption = None,
    baseline: BaselineOption = None,
    examples: ExamplesOption = 3,
    as_json: JsonObjectOption = False,
    search: BeamOptions,
    compute: ComputeOptions = EXACT,
) -> None:
    """Compare systems, or groups of runs, on one test set.

    By default it is the first run's own. Differences of two systems are tested by paired bootstrap
    and approximate randomisation; those of groups by a test for which seeds and sentences are
    random. A run keeps its translations of the test set.
    """
    groups = _read_groups(group, systems)
    _check_baseline(baseline, groups if group else [])
    paths = [path for members in groups.values() for path in members]
    _check_systems(paths)
    if group:
        _check_members(groups)
    runs = list(dict.fromkeys(path for path in paths if path.is_dir()))  # each once, in order
    if not runs:
        check_translates_nothing("all systems are files, which are", compute, search)
    text.check(str(runs[0]) if runs else None)
    data = _common_data(runs, compute.checkpoint) if runs else None
    from nmt.cli.lines.json_lines import format_record
    from nmt.evaluation.breakdown import local_training_words
    from nmt.evaluation.compare import check_system_count
    from nmt.evaluation.compare import compare as compare_translations
    from nmt.report.tables import render_comparison

    check_system_count(len(groups) if group else len(paths))  # before hours of translation
    test_set = load_test_set(text, data)
    if text.to:
        test_set = _into_language(test_set, text.to, runs)
    files = [path for path in paths if path not in runs]
    translations = {path: read_translations(path, test_set, text) for path in files}
    of_runs, models = _translate_runs(runs, test_set, text.from_, search, compute)
    translations |= of_runs
    if group:
        record, table = _compare_groups(groups, translations, test_set, baseline)
    else:
        named = [(str(path), translations[path]) for path in paths]
        training_words = local_training_words(data, test_set.tokenizer) if data else None
        comparison = compare_translations(named, test_set, training_words, examples)
        record, table = comparison.as_json(), render_comparison(comparison)
    print(format_record(record | {"models": models}) if as_json else table)


def _translate_runs(
    runs: Sequence[Path],
    test_set: "EvaluationSet",
    source_language: str | None,
    search: BeamOptions,
    compute: ComputeOptions,
) -> tuple[dict[Path, list[str]], list[dict[str, object]]]:
    """Translate a test set with each run; return also weights and precision of each, for --json.

    `source_language` is that of --from; None: that of the configuration of each run.
    """
    translations: dict[Path, list[str]] = {}
    models = []
    for run in runs:
        translator = make_translator([str(run)], compute, search, source_language=source_language)
        models.append(provenance(translator, [str(run)], compute))
        # under its weights and the sources, which an adapter or --from does not change
        is_kept = not (compute.adapter or source_language)
        translations[run] = translate_with_progress(translator, test_set, str(run), is_kept)
    return translations, models


def _compare_groups(
    groups: Mapping[str, list[Path]],
    translations: Mapping[Path, list[str]],
    test_set: "EvaluationSet",
    baseline: str | None,
) -> tuple[dict[str, object], str]:
    """Compare groups of runs, or each with `baseline`; return the result as JSON and as a table."""
    from nmt.evaluation.seed_test import compare_groups
    from nmt.report.tables import render_groups

    members = {
        name: {str(path): translations[path] for path in paths} for name, paths in groups.items()
    }
    compared = compare_groups(members, test_set, baseline)
    return compared.as_json(), render_groups(compared)


def _read_groups(options: list[str] | None, systems: list[Path] | None) -> dict[str, list[Path]]:
    """Return the paths of each group; without groups, all systems under the name "".

    Raises:
        ConfigError: A group is not NAME=PATTERN, is given twice or beside systems, or is the only
            one.
        DataError: A pattern matches nothing.
    """
    if not options:
        return {"": systems or []}
    if systems:
        raise ConfigError(f"{systems[0]} is in no --group; write it as --group NAME=PATTERN")
    groups: dict[str, list[Path]] = {}
    for option in options:
        name, separator, pattern = option.partition("=")
        if not separator or not name or name in groups:
            raise ConfigError(f"--group {option}: expected NAME=PATTERN, with a name of its own")
        found = [Path(path) for path in sorted(glob.glob(pattern))]
        # the messages of `nmt sweep` are files beside the runs
        groups[name] = [path for path in found if path.is_dir() or path.suffix != ".log"]
        if not groups[name]:
            raise DataError(f"--group {option}: nothing matches the pattern")
    if len(groups) < 2:
        raise ConfigError(f"--group {options[0]} alone cannot be compared; give another group")
    return groups


def _check_members(groups: Mapping[str, list[Path]]) -> None:
    """Check that no run is in two groups; warn if those of a group differ in more than the seed.

    Raises:
        ConfigError: one is in two.
    """
    from nmt.report.runs import doubts_about_seeds

    names: dict[Path, str] = {}
    for name, paths in groups.items():
        for path in paths:
            if (first := names.setdefault(path.resolve(), name)) != name:
                raise ConfigError(
                    f"{path} is in --group {first} and in --group {name}; give patterns that tell "
                    "them apart, such as base='runs/base-seed*'"
                )
    for name, paths in groups.items():
        runs = [path for path in paths if (path / "config.yaml").is_file()]
        for doubt in doubts_about_seeds(runs):
            print_warning(f"--group {name}: {doubt}")


def _check_baseline(baseline: str | None, groups: Collection[str]) -> None:
    """Check that a baseline is one of the groups.

    Raises:
        ConfigError: it is not.
    """
    if baseline is not None and baseline not in groups:
        names = ", ".join(groups) or "none"
        raise ConfigError(f"--baseline {baseline}: no such --group; there are {names}")


def _check_systems(systems: list[Path]) -> None:
    """Check that there are two systems at least.

    Raises:
        DataError: One of them does not exist.
        ConfigError: There is only one.
    """
    if missing := [path for path in systems if not path.exists()]:
        raise DataError(f"{missing[0]}: no such run directory, checkpoint or file of translations")
    if len(systems) < 2:
        alone = systems[0] if systems else "nothing"
        raise ConfigError(
            f"{alone} alone cannot be compared; give another run directory, checkpoint or file of "
            "translations"
        )


def _into_language(test_set: "EvaluationSet", language: str, runs: list[Path]) -> "EvaluationSet":
    """Return the sentences of a test set whose target language is --to, each source with its tag.

    Raises:
        ConfigError: A run has no tag of this language.
    """
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.run.directory import find_run

    tokenizers = [Tokenizer.load(find_run(path).tokenizer) for path in runs]
    for tokenizer in tokenizers:
        target_tag(language, tokenizer)  # raises an error if the run has no such tag
    return into_language(test_set, language, tokenizers[0])


def _common_data(runs: list[Path], checkpoint: str) -> "DataConfig":
    """Check that all runs can be compared, and return the data configuration of the first.

    Raises:
        CheckpointError: A run does not have the checkpoint.
        ConfigError: The runs have different languages, or only one has tokenised text.
    """
    from nmt.run.directory import find_run, weights_folder

    first = find_run(runs[0]).config_with_texts().data
    for path in runs:
        data = find_run(path).config_with_texts().data
        if first.languages != data.languages:
            raise ConfigError(
                f"{runs[0]} translates {'-'.join(first.languages)} and {path} "
                f"{'-'.join(data.languages)}; compare runs of one pair of languages"
            )
        if first.tokenized != data.tokenized:
            raise ConfigError(
                f"only one of {runs[0]} and {path} has learnt from tokenised text, so their scores "
                "do not compare; detokenise its translations, and compare files with --reference"
            )
        weights_folder(path, checkpoint)
    return first
