"""`nmt export`: a trained model for another program, verified before the command ends."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.errors import ConfigError, ExchangeError
from nmt.exchange.engine import EngineTranslation, Quantization

if TYPE_CHECKING:
    from nmt.data.tokens.lexicon import Numbers
    from nmt.run.model import LoadedModel

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run directory, checkpoint or exported folder.")
]


Export = Callable[["LoadedModel", Path], None]
"""writes a model into an empty folder"""
Translate = Callable[[Path, Sequence[str]], list[EngineTranslation]]
"""translates texts with a folder, by the program that it was written for"""
Verify = Callable[["LoadedModel", Path], str]
"""verifies the folder and returns a sentence about it, or raises an ExchangeError"""


@dataclass(frozen=True)
class ExportOptions:
    """What is written, where, and how it is verified."""

    to: Literal["ctranslate2", "argos", "huggingface", "marian", "bergamot", "onnx", "safetensors"]
    """The format: for the engine of that name; for Argos Translate and LibreTranslate; for
    transformers and the Hub; for Marian; for Firefox and translateLocally (int8); for
    transformers.js and optimum; or for nmt itself and other programs in Python."""
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")]
    """The folder to write, which must not exist yet; for argos a file such as
    translate-en_de-1_0.argosmodel, whose name says the version."""
    quantization: Quantization | None = None
    """How ctranslate2 and argos store the weights.  [default: float32, of argos int8]"""
    target_language: Annotated[str | None, typer.Option(metavar="CODE")] = None
    """The language of an argos package, if the model has several; its sources get the tag."""
    checkpoint: str = "best"
    """The weights of the run to export: best, last, averaged, moving-average or step-N."""
    adapter: Annotated[Path | None, typer.Option(metavar="RUN")] = None
    """A LoRA adapter of the run, which is merged into the weights."""
    push: Annotated[str | None, typer.Option(metavar="OWNER/NAME")] = None
    """Upload the folder to the Hugging Face Hub under this name."""
    verify: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Sentences, one a line, that the other program translates to verify the export; the first 200
    count.  [default: the validation set]"""
    no_verify: Annotated[bool, typer.Option("--no-verify")] = False
    """Do not verify the export."""

    def __post_init__(self) -> None:
        if self.quantization and self.to not in ("ctranslate2", "argos"):
            raise ConfigError(f"--to {self.to} has no --quantization; leave it out")
        if self.target_language and self.to != "argos":
            raise ConfigError(f"--to {self.to} has no --target-language; leave it out")
        if self.push and self.to == "argos":
            raise ConfigError("--push uploads a folder, and --to argos writes a file")
        if self.verify and self.no_verify:
            raise ConfigError("--verify and --no-verify exclude each other; leave one of them out")

    @property
    def stored_as(self) -> Quantization:
        """How the weights are stored."""
        default: Quantization = "int8" if self.to in ("argos", "bergamot") else "float32"
        return self.quantization or default

    @property
    def is_rounded(self) -> bool:
        """Whether the export has other weights than the run."""
        return self.stored_as != "float32"

    def sentences(self, loaded: "LoadedModel") -> list[str]:
        """Return the sentences to verify with: those of --verify, else of the validation set.

        They are the first 200 that are not too long (`choose_sentences`).

        Raises:
            ConfigError: there is no file, and the validation set is not on this machine.
            DataError: the text cannot be read, or has no sentences.
        """
        from nmt.exchange.verify import choose_sentences

        return choose_sentences(loaded, self._lines(loaded))

    def _lines(self, loaded: "LoadedModel") -> Iterable[str]:
        """Return the lines of the file, or the sources of the run's validation set."""
        from nmt.data.corpora.registry import find_splits
        from nmt.data.text.lines import read_lines
        from nmt.data.text.parallel_text import ParallelText
        from nmt.run.directory import find_run

        if self.verify:
            return read_lines(self.verify)
        try:
            splits = find_splits(find_run(loaded.path).config_with_texts().data)
        except ConfigError:  # no text is named
            splits = None
        texts = splits.validation if splits else []
        paths = [Path(path) for text in texts for path in text.paths]
        if not paths or not all(path.is_file() for path in paths):
            raise ConfigError(
                "the text of the run's validation set is not here to verify the export with; give "
                "sentences in the source language as --verify FILE, or --no-verify"
            )
        languages = loaded.config.data.languages
        return (pair.source for text in texts for pair in ParallelText(text, languages))


@with_option_groups
def export(run: RunArgument, options: ExportOptions) -> None:
    """Write a model in the format of another program.

    That program must translate as nmt does: it translates 200 sentences greedily, and each token
    and the log-probabilities are compared. Prints the folder.
    """
    import torch

    from nmt.data.text.lines import check_name
    from nmt.exchange.argos import create_package
    from nmt.exchange.model_card import model_card
    from nmt.files import create_folder_atomically
    from nmt.run.model import load_model

    if options.to != "safetensors":  # the libraries of the others take names of files as UTF-8
        check_name(options.output)
    try:
        create = create_package if options.to == "argos" else create_folder_atomically
        with create(options.output) as folder:
            loaded = load_model(run, torch.device("cpu"), options.checkpoint, options.adapter)
            write, verify, usage = _choose_exporter(loaded, options)
            write(loaded, folder)
            result = "not verified (--no-verify)"
            if not options.no_verify:
                result = f"verified: {verify(loaded, folder)}"
            is_changed = options.adapter is not None or options.is_rounded
            form = f"{options.to} ({options.stored_as})" if options.is_rounded else options.to
            card = model_card(loaded, form, result, usage, is_changed=is_changed)
            (folder / "README.md").write_text(card, "utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise ExchangeError(f"{options.output}: the export is not written: {reason}") from error
    log(f"exported {loaded.path}; {result}")
    if options.push:
        from nmt.exchange.hub import upload_model

        log(f"uploaded to {upload_model(options.output, options.push)}")
    typer.echo(str(options.output))


def _choose_exporter(loaded: "LoadedModel", options: ExportOptions) -> tuple[Export, Verify, str]:
    """Return how to write and to verify a folder of the format --to, and Python that uses it.

    Only the libraries of this format are imported.
    """
    from nmt.data.language_tags import tags_of_pair, with_languages

    export: Export
    translate: Translate
    data = with_languages(loaded.config.data)
    _ = loaded.model  # made once: the copy, which is verified with two languages, shares it
    verified = replace(loaded, config=loaded.config.model_copy(update={"data": data}))
    tags = tags_of_pair(data, data.languages) if data.language_tags else None
    if options.to == "safetensors":  # verified by nmt itself, which loads it again
        from nmt.exchange import safetensors_folder as own

        return own.export_safetensors, own.verify_safetensors, own.usage(loaded)
    if options.to == "ctranslate2":
        from nmt.exchange import ctranslate2

        export = partial(ctranslate2.export_ctranslate2, quantization=options.quantization)
        translate, usage = ctranslate2.translate_with_ctranslate2, ctranslate2.USAGE
        if tags:
            translate = partial(translate, tags=tags)
            usage = ctranslate2.USAGE_WITH_TAGS.format(source=tags[0], target=tags[1])
    elif options.to == "argos":
        return _argos_exporter(loaded, options)
    elif options.to == "huggingface":
        export, translate, usage = _huggingface_exporter(verified)
    elif options.to == "marian":
        from nmt.exchange import marian, marian_engine

        export = marian.export_marian
        translate, usage = marian_engine.translate_with_marian, marian_engine.USAGE
    elif options.to == "bergamot":
        return _bergamot_exporter(loaded, options)
    else:
        from nmt.exchange import onnx

        export, translate, usage = onnx.export_onnx, onnx.translate_with_onnxruntime, onnx.USAGE
    return export, _build_verifier(verified, options, translate), usage


def _bergamot_exporter(loaded: "LoadedModel", options: ExportOptions) -> tuple[Export, Verify, str]:
    """Return how a student's folder for browsers is written, verified and used."""
    from nmt.exchange import bergamot

    texts = [] if options.no_verify else options.sentences(loaded)
    lists = _read_shortlist(loaded, bergamot.CANDIDATES)
    guided = loaded.config.training.guided_alignment
    if not guided or guided.position != "predicts":
        log(
            f"{loaded.path}: no attention head has learnt alignments as Firefox reads them, to "
            "put the tags of a page; train with training.guided_alignment.position=predicts"
        )
    export = partial(bergamot.export_bergamot, texts=texts, lists=lists)
    return export, partial(bergamot.verify_bergamot, texts=texts), bergamot.USAGE


def _huggingface_exporter(loaded: "LoadedModel") -> tuple[Export, Translate, str]:
    """Return how a folder is written in the class that has the architecture, and used."""
    from nmt.exchange import huggingface_export, m2m100_export

    if m2m100_export.is_m2m100_like(loaded.config.model):
        translate = partial(m2m100_export.translate_as_m2m100, loaded=loaded)
        return m2m100_export.export_m2m100, translate, m2m100_export.usage(loaded)
    translate_as_marian = huggingface_export.translate_with_transformers
    return huggingface_export.export_huggingface, translate_as_marian, huggingface_export.USAGE


def _argos_exporter(loaded: "LoadedModel", options: ExportOptions) -> tuple[Export, Verify, str]:
    """Return what `_choose_exporter` returns, for a package of Argos."""
    from nmt.exchange import argos
    from nmt.exchange.verify import EXACT, ROUNDED

    language = options.target_language
    export = partial(
        argos.export_argos,
        quantization=options.stored_as,
        version=argos.version_in(options.output),
        target_language=language,
    )
    texts = [] if options.no_verify else options.sentences(loaded)
    tolerance = ROUNDED if options.is_rounded else EXACT
    verify = partial(argos.verify_argos, texts=texts, tolerance=tolerance, language=language)
    return export, verify, argos.USAGE


def _read_shortlist(loaded: "LoadedModel", count: int) -> "tuple[Numbers, Numbers] | None":
    """Return the best `count` target ids of each source id, and those of all; None: no shortlist.

    Raises:
        CheckpointError: the file is damaged, or of other vocabularies.
    """
    from nmt.run.directory import find_run
    from nmt.search.shortlist import Shortlist

    path = find_run(loaded.path).shortlist
    if not path.is_file():
        log(f"{path}: there is no shortlist, which Firefox needs; `nmt shortlist` learns one")
        return None
    shortlist = Shortlist.load(path, loaded.tokenizer).first(count)
    return shortlist.candidates, shortlist.always


def _build_verifier(
    loaded: "LoadedModel",
    options: ExportOptions,
    translate: Translate,
) -> Verify:
    """Return the function that verifies an exported folder.

    It lets the other program `translate` sentences with the folder, and compares with our model.
    """
    from nmt.exchange.verify import EXACT, ROUNDED, verify_translations

    # Chosen before the export, so that a missing text is an error at once.
    texts = [] if options.no_verify else options.sentences(loaded)
    tolerance = ROUNDED if options.is_rounded else EXACT

    def verify(_exported: "LoadedModel", folder: Path) -> str:
        return verify_translations(loaded, texts, translate(folder, texts), tolerance)

    return verify
