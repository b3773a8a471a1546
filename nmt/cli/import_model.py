"""`nmt import`: a model of another program becomes a run directory, which every command can use."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.exchange.imported import ImportedModel

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
    """Read a model of Marian, OPUS-MT or Hugging Face, and write it as a run directory.

    Prints the run directory; translate, eval-bleu, train, export and the other commands take it as
    one of nmt's own.
    """
    from nmt.exchange.imported import write_run

    models = [_with_languages(model, options) for model in _read(source, options.revision)]
    several = len(models) > 1
    outputs = [
        options.output.with_name(f"{options.output.name}-{i}") if several else options.output
        for i in range(1, len(models) + 1)
    ]
    for output in outputs:
        if output.exists():
            raise ConfigError(
                f"{output}: exists already; choose another folder as --output, or remove it"
            )
    for model, output in zip(models, outputs, strict=True):
        write_run(model, output)
        log(_description(model))
        typer.echo(str(output))
    if several:
        log("they translate together: nmt translate " + " ".join(f"--model {o}" for o in outputs))


def _read(source: str, revision: str | None) -> "list[ImportedModel]":
    """Return the models of a path or of the Hub."""
    from nmt.exchange import hub, huggingface, marian

    path = Path(source)
    if not path.exists():
        if not hub.HUB_NAME.fullmatch(source) or path.suffix in (".npz", ".zip", ".yml"):
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
    return marian.import_marian(path)


def _with_languages(model: "ImportedModel", options: ImportOptions) -> "ImportedModel":
    """Return the model with the languages of the options, of itself or of its name."""
    from nmt.exchange.huggingface_files import languages_in_name

    named = languages_in_name(str(model.provenance["source"]))
    given = (options.source_language, options.target_language)
    found = (
        wanted or (own if own != "und" else guess)
        for wanted, own, guess in zip(given, model.languages, named, strict=True)
    )
    source, target = found
    return replace(model, languages=(source, target))


def _description(model: "ImportedModel") -> str:
    """Return one line about an imported model."""
    origin = model.provenance
    count = sum(weight.numel() for weight in model.weights.values())
    revision = f", revision {origin['revision']}" if "revision" in origin else ""
    return (
        f"imported {origin['source']}{revision}: {'-'.join(model.languages)}, {count:,} "
        f"parameters, vocabulary {model.vocabularies[1].size:,}, licence {origin['license']}"
    )
