"""`nmt import`: a model of another program becomes a run directory, which every command can use."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import log
from nmt.errors import ConfigError, ExchangeError
from nmt.files import check_absent

if TYPE_CHECKING:
    from nmt.data.tokens.foreign_vocabulary import AdoptedVocabulary
    from nmt.exchange.imported import ForeignShortlist, ImportedModel

MARIAN_FILES = (".npz", ".bin", ".gz", ".zip", ".yml")
"""the ends of the names of files that are, or name, a model of Marian"""
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder of a model of Hugging Face (Marian, M2M-100, NLLB); the name of one on its "
        "Hub, such as Helsinki-NLP/opus-mt-en-de; a model of Marian, Bergamot or Firefox: its "
        "folder, settings (.yml), weights (.npz, .bin) or zip; a package of Argos (.argosmodel); "
        "or a folder of CTranslate2.",
    ),
]


RunOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="RUN",
        help="The run directory to write, which must not exist yet. An ensemble becomes RUN-1, "
        "RUN-2, …",
    ),
]
RevisionOption = Annotated[
    str | None,
    typer.Option(help="Commit, branch or tag of a model of the Hub.  [default: the newest]"),
]
SourceLanguageOption = Annotated[
    str | None,
    typer.Option(
        help="Code of the language to translate.  [default: what the model says, else und]"
    ),
]
TargetLanguageOption = Annotated[
    str | None,
    typer.Option(
        help="Code of the language of the translations.  [default: what the model says, else und]"
    ),
]
LanguagesOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Keep these languages of a model of many, such as eng_Latn,deu_Latn, and of its "
        "vocabulary what --trim-by needs: a model of a fraction of the size.",
    ),
]
TrimOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Text in the kept languages, such as that of a recipe; may be repeated.",
    ),
]


def import_model(
    source: SourceArgument,
    output: RunOption,
    revision: RevisionOption = None,
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    languages: LanguagesOption = None,
    trim_by: TrimOption = None,
) -> None:
    """Turn a model of another program into a run directory.

    Reads models of Marian, OPUS-MT, Hugging Face, Argos and CTranslate2. Prints the run directory;
    translate, eval-bleu, train, export and the other commands take it as one of nmt's own.
    """
    from nmt.exchange.imported import write_run

    check_absent(output)  # before a download, which may take minutes
    if bool(languages) != bool(trim_by):
        raise ConfigError(
            "--languages says what stays of a model, and --trim-by which text its vocabulary has "
            "to spell; give both, or neither"
        )
    models = [
        _with_languages(model, source_language, target_language)
        for model in _read_models(source, revision)
    ]
    if languages and trim_by:
        models = [_trim(model, languages, trim_by) for model in models]
    is_ensemble = len(models) > 1
    runs = [output]
    if is_ensemble:
        numbers = range(1, len(models) + 1)
        runs = [output.with_name(f"{output.name}-{number}") for number in numbers]
    for run in runs:
        check_absent(run)
    for model, run in zip(models, runs, strict=True):
        vocabularies = write_run(model, run)
        log(_describe(model))
        if lost := _what_was_lost(model):
            log(lost)
        if model.shortlist:
            _write_shortlist(model.shortlist, vocabularies, run)
        typer.echo(str(run))
    if is_ensemble:
        model_options = " ".join(f"--model {shlex.quote(str(run))}" for run in runs)
        log(f"they translate together: nmt translate {model_options}")


def _trim(model: "ImportedModel", languages: str, files: list[Path]) -> "ImportedModel":
    """Return a model of many languages with some of them, and log its size before and after."""
    from nmt.data.text.lines import read_lines
    from nmt.exchange.trimmed import trim

    lines = (line for file in files for line in read_lines(file))
    trimmed = trim(model, [each.strip() for each in languages.split(",")], lines)
    sizes = [f"{each.parameters:,} parameters" for each in (model, trimmed)]
    rows = [f"{len(each.vocabularies[1].kept_rows):,} rows" for each in (model, trimmed)]
    log(f"trimmed to {', '.join(trimmed.language_tags)}: {' -> '.join(rows)}, {' -> '.join(sizes)}")
    return trimmed


def _read_models(source: str, revision: str | None) -> "list[ImportedModel]":
    """Return the models of a path, or the one that `source` names on the Hugging Face Hub.

    A folder of Marian may hold several models, an ensemble.

    Raises:
        ConfigError: There is no such path, and `source` is no name of the Hub; or `revision` is
            given for a path.
        ExchangeError: The model cannot be downloaded, read or used.
    """
    from nmt.exchange import ctranslate2_import, hub, huggingface, m2m100, marian

    path = Path(source)
    if not path.exists():
        if not hub.HUB_NAME.fullmatch(source) or path.suffix in MARIAN_FILES:
            raise ConfigError(
                f"{source}: there is no such file or folder, and it is no name of a model on the "
                "Hugging Face Hub, such as Helsinki-NLP/opus-mt-en-de"
            )
        log(f"downloading {source} from the Hugging Face Hub")
        wanted = (*huggingface.DOWNLOADED, *m2m100.KEPT, *m2m100.WEIGHTS)
        folder, commit = hub.download_model(source, revision, [*dict.fromkeys(wanted)])
        model = _read_huggingface(folder)
        model.provenance.update(source=source, revision=commit)
        return [model]
    if revision:
        raise ConfigError(f"--revision is for a model of the Hub, and {source} is a file or folder")
    if model_of_ctranslate2 := ctranslate2_import.import_if_ctranslate2(path):
        return [model_of_ctranslate2]
    if (path / huggingface.CONFIG).is_file():
        return [_read_huggingface(path)]
    is_other_gzip = path.suffix == ".gz" and Path(path.stem).suffix != ".bin"
    if path.is_file() and (path.suffix not in MARIAN_FILES or is_other_gzip):
        raise ExchangeError(
            f"{source}: is no model, expected the folder of one, a file of Marian (.npz, .bin, "
            ".zip or .yml) or an .argosmodel; give one of these; a tar is to be unpacked first"
        )
    return marian.import_marian(path)


def _read_huggingface(folder: Path) -> "ImportedModel":
    """Read a folder of one of the classes of transformers."""
    from nmt.exchange import huggingface, m2m100

    if m2m100.is_m2m100(folder):
        return m2m100.import_m2m100(folder)
    return huggingface.import_huggingface(folder)


def _with_languages(
    model: "ImportedModel", source: str | None, target: str | None
) -> "ImportedModel":
    """Return the model with its languages: those of the options, of itself, or in its name.

    Raises:
        ConfigError: the model is one of many languages, and has not that of an option.
    """
    from nmt.data.languages import closest_language, language_among
    from nmt.exchange.huggingface_files import languages_in_name

    def choose(option: str | None, own: str, in_name: str) -> str:
        if option:
            return option
        return own if own != "und" else in_name  # und: the model does not say

    source_in_name, target_in_name = languages_in_name(str(model.provenance["source"]))
    own_source, own_target = model.languages
    if model.language_tags:  # a name of two other words, such as nllb-big-run, says nothing
        in_name = (source_in_name, target_in_name)
        source_in_name, target_in_name = (
            code if closest_language(code, model.language_tags) else "und" for code in in_name
        )
        for code in filter(None, (source, target)):
            language_among(code, model.language_tags)  # raises an error if it is none of them
    languages = (
        choose(source, own_source, source_in_name),
        choose(target, own_target, target_in_name),
    )
    return replace(model, languages=languages)


def _write_shortlist(
    shortlist: "ForeignShortlist",
    vocabularies: "tuple[AdoptedVocabulary, AdoptedVocabulary]",
    run: Path,
) -> None:
    """Write the shortlist of an imported model into its run, and say how it is used."""
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.exchange.bergamot_shortlist import in_our_ids
    from nmt.run.directory import RunDirectory
    from nmt.search.shortlist import Shortlist

    directory = RunDirectory(run)
    tokenizer = Tokenizer.load(directory.tokenizer)
    ours = in_our_ids(shortlist, *vocabularies)
    Shortlist(*ours, tokenizer.target.size, tokenizer.shared).save(directory.shortlist, tokenizer)
    log(f"it has a shortlist, which makes translating faster: --shortlist {shortlist.best}")


def _what_was_lost(model: "ImportedModel") -> str:
    """Return a sentence about an import whose weights had been rounded; else an empty one."""
    stored_as = model.provenance.get("stored_as", "float32")
    if stored_as == "float32":
        return ""
    return (
        f"its weights were stored as {stored_as}, and are now the float32 numbers that these stand "
        "for; what rounding took from the original stays lost, and fine-tuning goes on from there"
    )


def _describe(model: "ImportedModel") -> str:
    """Return one line about an imported model: origin, languages, size and licence."""
    origin = model.provenance
    revision = f", revision {origin['revision']}" if "revision" in origin else ""
    languages = "-".join(model.languages)
    if model.language_tags:
        languages = f"{len(model.language_tags)} languages"
    rows = len(model.vocabularies[1].kept_rows)
    return (
        f"imported {origin['source']}{revision}: {languages}, {model.parameters:,} "
        f"parameters, vocabulary {rows:,}, licence {origin['license']}"
    )
