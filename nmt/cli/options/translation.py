"""The options of `nmt translate` alone: what it writes, with which words, by how many processes."""

import re
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.lines.streams import is_typed
from nmt.errors import ConfigError
from nmt.processor import available_cores

if TYPE_CHECKING:
    from nmt.translation.line import Terminology
    from nmt.translation.translator import TranslationRequest, Translator

SAMPLED_CANDIDATES = 32


@dataclass(frozen=True)
class OutputOptions:
    """The form of the input, which translations of each line are written, and how."""

    document: Annotated[bool, typer.Option("--document")] = False
    """Split each line into sentences, and join their translations."""
    json_input: Annotated[bool, typer.Option("--json-input")] = False
    """Each line is an object with a `source`; --json passes on its other keys."""
    n_best: Annotated[int, typer.Option(min=1)] = 1
    """Number of translations of each line, written as `line number ||| text ||| score`."""
    as_json: Annotated[bool, typer.Option("--json")] = False
    """Write lines of JSON with source and translations."""
    mbr: Literal["chrf", "bleu"] | None = None
    """Minimum Bayes risk: choose the candidate of the beam or the sample that agrees best with all
    others. Comparing twice as many candidates takes four times as long."""
    candidates: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Number of candidates that --mbr compares.  "
            f"[default: {SAMPLED_CANDIDATES} samples, or the beam]",
        ),
    ] = None
    alignments: Annotated[bool, typer.Option("--alignments")] = False
    """Add a tab and the words that belong together, as source-target counted from 0; with --json
    also the log-probability of each token. The alignment is read from the attention; it is not a
    trained aligner."""

    def __post_init__(self) -> None:
        if self.candidates is not None and self.mbr is None:
            raise ConfigError(
                "--candidates says how many --mbr compares; add --mbr chrf, or leave it out"
            )
        if self.document and (self.n_best > 1 or self.alignments):
            raise ConfigError(
                "--document puts each line together from the best translations of its sentences, "
                "so it goes neither with --n-best nor with --alignments; leave them out"
            )

    def request(self, translator: "Translator", terminology: "Terminology") -> "TranslationRequest":
        """Return what is asked of all translations, as the pipeline takes it."""
        from nmt.translation.translator import TranslationRequest

        request = TranslationRequest(
            self.n_best, self.document, terminology, alignments=self.alignments
        )
        if not self.mbr:
            return request
        from nmt.evaluation.metrics import bleu_tokenizer, sentence_utilities

        data = translator.run.config.data
        tokenize = bleu_tokenizer(data.target_language, data.tokenized)
        utilities = partial(sentence_utilities, self.mbr, tokenize=tokenize)
        is_drawn = translator.searcher.sampling is not None
        found = SAMPLED_CANDIDATES if is_drawn else translator.settings.beam_size
        return replace(request, utilities=utilities, candidates=self.candidates or found)


@dataclass(frozen=True)
class TerminologyOptions:
    """What words every translation must and must not have."""

    glossary: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Lines of source term, TAB, translation: where the one occurs as whole words, the translation
    has the other. In small letters a term is found in any casing."""
    forbid: Annotated[list[str] | None, typer.Option(metavar="WORD")] = None
    """A word or phrase that no translation has, in any casing if it is in small letters; may be
    given several times."""
    forbid_file: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Such words and phrases, one a line."""

    def terminology(self) -> "Terminology":
        """Read the files and return all constraints.

        Raises:
            DataError: A file cannot be read, or a term is blank or has several lines.
        """
        from nmt.data.text.glossary import read_glossary, read_words
        from nmt.translation.line import Terminology

        terms = read_glossary(self.glossary).terms if self.glossary else {}
        words = [*(self.forbid or ()), *(read_words(self.forbid_file) if self.forbid_file else ())]
        return Terminology.of(terms, forbidden=words)


def _check_workers(text: str) -> str:
    if text != "auto" and not re.fullmatch("[1-9][0-9]{0,2}", text):
        raise typer.BadParameter(f"'{text[:20]}': expected auto or a number from 1 to 999")
    return text


@dataclass(frozen=True)
class JobOptions:
    """The text to translate, where its translation goes, and how many processes share the work."""

    file: Annotated[Path | None, typer.Argument(metavar="FILE")] = None
    """The text to translate; stdin by default."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """The file to write; stdout by default."""
    resume: Annotated[bool, typer.Option("--resume")] = False
    """Continue an output that was interrupted."""
    workers: Annotated[str, typer.Option(callback=_check_workers, metavar="auto|N")] = "auto"
    """Number of processes that translate, with one thread each. auto is one per core, but one in
    all on a GPU, for typed input and for a few lines."""

    def processes(self, device: str) -> int:
        """Return the number of processes that translate on a device of this type.

        Where the user gave a number, this process computes in one thread, like each of several.

        Raises:
            ConfigError: Several processes were asked for on one GPU.
        """
        if self.workers == "auto":
            one = device != "cpu" or is_typed(self.file) or sys.platform != "linux"
            return 1 if one else available_cores()
        processes = int(self.workers)
        if device == "cpu":
            from nmt.device import use_threads

            use_threads(1)
        elif processes > 1:
            raise ConfigError(
                f"--workers {processes} divides the cores of a CPU, and this is a GPU, which one "
                "process fills; leave out --workers, or give a larger --batch-tokens"
            )
        return processes
