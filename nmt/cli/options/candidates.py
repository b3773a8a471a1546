"""What `nmt translate` does with the translations it has found: compare them, align them."""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.translation.document import LineTranslator
    from nmt.translation.translator import Translation, Translator

SAMPLED_CANDIDATES = 32


class Utility(StrEnum):
    """What candidates are compared by: sacreBLEU's score of one against the other."""

    chrf = "chrf"
    bleu = "bleu"


MbrOption = Annotated[
    Utility | None,
    typer.Option(
        "--mbr",
        help="Minimum Bayes risk: of the beam's or the sampled candidates the one that agrees best "
        "with the others. Every two are compared: twice as many cost four times as much.",
    ),
]
CandidatesOption = Annotated[
    int | None,
    typer.Option(
        min=2, help=f"Of --mbr: how many.  [default: {SAMPLED_CANDIDATES} samples, or the beam]"
    ),
]
AlignmentsOption = Annotated[
    bool,
    typer.Option(
        "--alignments",
        help="Behind a tab the words that go together, source-target from 0; with --json also each "
        "token's log-probability. It is what the decoder attended to, not a trained aligner.",
    ),
]


def refuse_needless_candidates(mbr: Utility | None, candidates: int | None) -> None:
    """Raise a ConfigError where candidates are counted that nobody compares."""
    if candidates is not None and mbr is None:
        raise ConfigError(
            "--candidates says how many --mbr compares; add --mbr chrf, or leave it out"
        )


def with_choices(
    translator: "Translator",
    mbr: Utility | None,
    candidates: int | None,
    alignments: bool,
) -> "LineTranslator":
    """The translator, made to choose by utility and to align where that was asked for.

    Raises:
        ConfigError: `mbr` with a beam of 1.
    """
    from nmt.translation.aligner import AligningTranslator
    from nmt.translation.minimum_bayes_risk import BayesRiskTranslator

    chooser = None
    if mbr:
        from nmt.evaluation.metrics import bleu_tokenizer, sentence_utilities

        data = translator.run.config.data
        tokenize = bleu_tokenizer(data.target_language, data.tokenized)
        utilities = partial(sentence_utilities, mbr.value, tokenize=tokenize)
        found = SAMPLED_CANDIDATES if translator.sampling else translator.settings.beam_size
        chooser = BayesRiskTranslator(translator, utilities, candidates or found)
    if alignments:
        return AligningTranslator(translator, chooser)
    return chooser or translator


def as_record(translation: "Translation") -> dict[str, object]:
    """A translation as JSON, with what was asked for."""
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
    """The separator and the alignment, or nothing where none was asked for."""
    return separator + translation.alignment.pharaoh() if translation.alignment else ""
