"""`nmt compare`: which of several systems is better, by how much, where, and whether by chance."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import EXACT, ComputeOptions, load_translator
from nmt.cli.options.output import JsonObjectOption
from nmt.cli.options.search import BatchTokensOption, BeamSizeOption, SearchOptions
from nmt.cli.options.test_set import (
    TextOptions,
    load_test_set,
    provenance,
    read_translations,
    translate_with_progress,
)
from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.config import DataConfig
    from nmt.evaluation.test_sets import EvaluationSet

SystemsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="A B…", help="Run directories, checkpoints or files of translations."),
]
ExamplesOption = Annotated[
    int, typer.Option(min=0, help="Sentences to show for each, where it stands out most.")
]


@with_option_groups
def compare(
    systems: SystemsArgument,
    text: TextOptions,
    examples: ExamplesOption = 3,
    as_json: JsonObjectOption = False,
    beam_size: BeamSizeOption = None,
    batch_tokens: BatchTokensOption = None,
    compute: ComputeOptions = EXACT,
) -> None:
    """Compare systems on one test set, by default the first run's own.

    Differences of BLEU are tested by paired bootstrap and approximate randomisation.
    """
    _check_systems(systems)
    runs = list(dict.fromkeys(path for path in systems if path.is_dir()))
    text.check(str(runs[0]) if runs else None)
    data = _common_data(runs, compute.checkpoint) if runs else None
    against = load_test_set(text, data)
    translations = {
        path: read_translations(path, against, text) for path in systems if path not in runs
    }
    models = []
    for run in runs:
        translator = load_translator(
            [str(run)],
            compute,
            SearchOptions(beam_size=beam_size, batch_tokens=batch_tokens),
        )
        models.append(provenance(translator, [str(run)], compute.checkpoint))
        translations[run] = translate_with_progress(translator, against, str(run))
    found = [(str(path), translations[path]) for path in systems]
    _print_comparison(found, against, data, examples, models if as_json else None)


def _check_systems(systems: list[Path]) -> None:
    if missing := [path for path in systems if not path.exists()]:
        raise DataError(f"{missing[0]}: no such run directory, checkpoint or file of translations")
    if len(systems) < 2:
        raise ConfigError(
            f"{systems[0]} alone cannot be compared; give another run directory, checkpoint or "
            "file of translations"
        )


def _common_data(runs: list[Path], checkpoint: str) -> "DataConfig":
    """Return the data configuration of the first run, after checks of all runs.

    Raises:
        CheckpointError: A run does not have the checkpoint.
        ConfigError: The runs have different languages, or only one has tokenised text.
    """
    from nmt.config_file import load_config
    from nmt.run_directory import find_run, weights_folder

    first, *others = (load_config(str(find_run(path).config)).data for path in runs)
    for path, data in zip(runs[1:], others, strict=True):
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
    for path in runs:
        weights_folder(path, checkpoint)
    return first


def _print_comparison(
    translations: list[tuple[str, list[str]]],
    test_set: "EvaluationSet",
    data: "DataConfig | None",
    examples: int,
    models: list[dict[str, object]] | None,
) -> None:
    """Print a comparison; as a JSON object with the `models` if they are given."""
    from nmt.evaluation.breakdown import local_training_words
    from nmt.evaluation.compare import compare
    from nmt.report.tables import render_comparison

    comparison = compare(
        translations, test_set, local_training_words(data) if data else None, examples
    )
    if models is None:
        print(render_comparison(comparison))
    else:
        print(json.dumps(comparison.as_json() | {"models": models}, ensure_ascii=False))
