"""The options of what `nmt translate` writes: how many translations, chosen how, aligned or not."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.translation.line import Translation
    from nmt.translation.terminology import Terminology
    from nmt.translation.translator import TranslationRequest, Translator

SAMPLED_CANDIDATES = 32


class Utility(StrEnum):
    """How candidates are compared: sacreBLEU's score of one against the other."""

    chrf = "chrf"
    bleu = "bleu"


MbrOption = Annotated[
    Utility | None,
    typer.Option(
        "--mbr",
        help="Minimum Bayes risk: choose the candidate of the beam or the sample that agrees best "
        "with all others. Comparing twice as many candidates takes four times as long.",
    ),
]
CandidatesOption = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Number of candidates that --mbr compares.  "
        f"[default: {SAMPLED_CANDIDATES} samples, or the beam]",
    ),
]
NBestOption = Annotated[
    int,
    typer.Option(
        min=1,
        help="Number of translations of each line, written as `line number ||| text ||| score`.",
    ),
]
DocumentOption = Annotated[
    bool,
    typer.Option("--document", help="Split each line into sentences, and join their translations."),
]
AlignmentsOption = Annotated[
    bool,
    typer.Option(
        "--alignments",
        help="Add a tab and the words that belong together, as source-target counted from 0; with "
        "--json also the log-probability of each token. The alignment is read from the attention; "
        "it is not a trained aligner.",
    ),
]


@dataclass(frozen=True)
class OutputOptions:
    """Which translations of each line are written, and what is added to them."""

    n_best: int = 1
    document: bool = False
    mbr: Utility | None = None
    candidates: int | None = None
    alignments: bool = False

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


def build_request(
    options: OutputOptions, translator: "Translator", terminology: "Terminology"
) -> "TranslationRequest":
    """What is asked of all translations, as the pipeline takes it."""
    from nmt.translation.translator import TranslationRequest

    request = TranslationRequest(
        options.n_best, options.document, terminology, alignments=options.alignments
    )
    return with_reranking(request, options, translator) if options.mbr else request


def with_reranking(
    request: "TranslationRequest", options: OutputOptions, translator: "Translator"
) -> "TranslationRequest":
    """Let the translations be chosen by minimum Bayes risk."""
    from nmt.evaluation.metrics import bleu_tokenizer, sentence_utilities

    data = translator.run.config.data
    tokenize = bleu_tokenizer(data.target_language, data.tokenized)
    utilities = partial(sentence_utilities, str(options.mbr), tokenize=tokenize)
    is_drawn = translator.searcher.sampling is not None
    found = SAMPLED_CANDIDATES if is_drawn else translator.settings.beam_size
    return replace(request, utilities=utilities, candidates=options.candidates or found)


def as_record(translation: "Translation") -> dict[str, object]:
    """The JSON record of a translation."""
    record: dict[str, object] = {"text": translation.text, "score": round(translation.score, 4)}
    if translation.utility is not None:
        record["utility"] = round(translation.utility, 4)
    if (alignment := translation.alignment) is not None:
        record["alignment"] = alignment.pharaoh()
        record["tokens"] = [
            {"piece": piece, "log_probability": round(value, 4)}
            for piece, value in zip(alignment.pieces, alignment.log_probabilities, strict=True)
        ]
    return record


def alignment_column(translation: "Translation", separator: str) -> str:
    """The separator and the alignment; empty if no alignment was asked for."""
    return separator + translation.alignment.pharaoh() if translation.alignment else ""
