"""The options of what `nmt translate` writes: how many translations, chosen how, aligned or not."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.translation.line import Terminology
    from nmt.translation.translator import TranslationRequest, Translator

SAMPLED_CANDIDATES = 32
JsonObjectOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class Utility(StrEnum):
    """How candidates are compared: sacreBLEU's score of one against the other."""

    chrf = "chrf"
    bleu = "bleu"


@dataclass(frozen=True)
class OutputOptions:
    """The form of the input, which translations of each line are written, and how."""

    document: Annotated[
        bool,
        typer.Option(
            "--document", help="Split each line into sentences, and join their translations."
        ),
    ] = False
    json_input: Annotated[
        bool,
        typer.Option(
            "--json-input",
            help="Each line is an object with a `source`; --json passes on its other keys.",
        ),
    ] = False
    n_best: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of translations of each line, written as "
            "`line number ||| text ||| score`.",
        ),
    ] = 1
    as_json: Annotated[
        bool, typer.Option("--json", help="Write lines of JSON with source and translations.")
    ] = False
    mbr: Annotated[
        Utility | None,
        typer.Option(
            "--mbr",
            help="Minimum Bayes risk: choose the candidate of the beam or the sample that agrees "
            "best with all others. Comparing twice as many candidates takes four times as long.",
        ),
    ] = None
    candidates: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Number of candidates that --mbr compares.  "
            f"[default: {SAMPLED_CANDIDATES} samples, or the beam]",
        ),
    ] = None
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments",
            help="Add a tab and the words that belong together, as source-target counted from 0; "
            "with --json also the log-probability of each token. The alignment is read from the "
            "attention; it is not a trained aligner.",
        ),
    ] = False

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
        utilities = partial(sentence_utilities, str(self.mbr), tokenize=tokenize)
        is_drawn = translator.searcher.sampling is not None
        found = SAMPLED_CANDIDATES if is_drawn else translator.settings.beam_size
        return replace(request, utilities=utilities, candidates=self.candidates or found)
