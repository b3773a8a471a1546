"""`nmt import`: a model of another program becomes a run directory, which every command can use."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.errors import ConfigError, ExchangeError
from nmt.files import check_absent

if TYPE_CHECKING:
    from nmt.exchange.imported import ImportedModel

MARIAN_FILES = (".npz", ".zip", ".yml")
"""the ends of the names of files that are, or name, a model of Marian"""
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder of a Marian model of Hugging Face; the name of one on its Hub, such as "
        "Helsinki-NLP/opus-mt-en-de; or a model of Marian: its folder, decoder.yml, .npz or zip.",
    ),
]


@dataclass(frozen=True)
class ImportOptions:
    """Where the run is written, and what the source may not say."""

    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUN")]
    """The run directory to write, which must not exist yet. An ensemble becomes RUN-1, RUN-2, …"""
    revision: str | None = None
    """Commit, branch or tag of a model of the Hub.  [default: the newest]"""
    source_language: str | None = None
    """Code of the language to translate.  [default: what the model says, else und]"""
    target_language: str | None = None
    """Code of the language of the translations.  [default: what the model says, else und]"""


@with_option_groups
def import_model(source: SourceArgument, options: ImportOptions) -> None:
    """Turn a model of another program into a run directory.

    Reads models of Marian, OPUS-MT and Hugging Face. Prints the run directory; translate,
    eval-bleu, train, export and the other commands take it as one of nmt's own.
    """
    from nmt.exchange.imported import write_run

    check_absent(options.output)  # before a download, which may take minutes
    models = [_with_languages(model, options) for model in _read_models(source, options.revision)]
    is_ensemble = len(models) > 1
    outputs = [options.output]
    if is_ensemble:
        name = options.output.name
        numbers = range(1, len(models) + 1)
        outputs = [options.output.with_name(f"{name}-{number}") for number in numbers]
    for output in outputs:
        check_absent(output)
    for model, output in zip(models, outputs, strict=True):
        write_run(model, output)
        log(_describe(model))
        typer.echo(str(output))
    if is_ensemble:
        model_options = " ".join(f"--model {shlex.quote(str(output))}" for output in outputs)
        log(f"they translate together: nmt translate {model_options}")


def _read_models(source: str, revision: str | None) -> "list[ImportedModel]":
    """Return the models of a path, or the one that `source` names on the Hugging Face Hub.

    A folder of Marian may hold several models, an ensemble.

    Raises:
        ConfigError: There is no such path, and `source` is no name of the Hub; or `revision` is
            given for a path.
        ExchangeError: The model cannot be downloaded, read or used.
    """
    from nmt.exchange import hub, huggingface, marian

    path = Path(source)
    if not path.exists():
        if not hub.HUB_NAME.fullmatch(source) or path.suffix in MARIAN_FILES:
            raise ConfigError(
                f"{source}: there is no such file or folder, and it is no name of a model on the "
                "Hugging Face Hub, such as Helsinki-NLP/opus-mt-en-de"
            )
        log(f"downloading {source} from the Hugging Face Hub")
        folder, commit = hub.download_model(source, revision, huggingface.DOWNLOADED)
        model = huggingface.import_huggingface(folder)
        model.provenance.update(source=source, revision=commit)
        return [model]
    if revision:
        raise ConfigError(f"--revision is for a model of the Hub, and {source} is a file or folder")
    if (path / huggingface.CONFIG).is_file():
        return [huggingface.import_huggingface(path)]
    if path.is_file() and path.suffix not in MARIAN_FILES:
        raise ExchangeError(
            f"{source}: is no model, expected the folder of one or a file of Marian (.npz, .zip or "
            ".yml); give one of these"
        )
    if path.is_dir() and not list(path.glob("*decoder.yml")):
        raise ExchangeError(
            f"{source}: it holds neither config.json (Hugging Face) nor decoder.yml (Marian), so "
            "it is no model that nmt can import"
        )
    return marian.import_marian(path)


def _with_languages(model: "ImportedModel", options: ImportOptions) -> "ImportedModel":
    """Return the model with its languages: those of the options, of itself, or in its name."""
    from nmt.exchange.huggingface_files import languages_in_name

    def choose(option: str | None, own: str, in_name: str) -> str:
        if option:
            return option
        return own if own != "und" else in_name  # und: the model does not say

    source_in_name, target_in_name = languages_in_name(str(model.provenance["source"]))
    own_source, own_target = model.languages
    source = choose(options.source_language, own_source, source_in_name)
    target = choose(options.target_language, own_target, target_in_name)
    return replace(model, languages=(source, target))


def _describe(model: "ImportedModel") -> str:
    """Return one line about an imported model: origin, languages, size and licence."""
    origin = model.provenance
    count = sum(weight.numel() for weight in model.weights.values())
    revision = f", revision {origin['revision']}" if "revision" in origin else ""
    return (
        f"imported {origin['source']}{revision}: {'-'.join(model.languages)}, {count:,} "
        f"parameters, vocabulary {model.vocabularies[1].size:,}, licence {origin['license']}"
    )
