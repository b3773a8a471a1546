"""The options that ask for COMET, and its score beside the other scores."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.test_set import TextOptions
from nmt.errors import ConfigError, NmtError

if TYPE_CHECKING:
    from nmt.evaluation.score_sheet import ScoreSheet
    from nmt.evaluation.test_sets import EvaluationSet

CometOption = Annotated[
    bool, typer.Option("--comet", help="Score with COMET as well, by an installed comet-score.")
]
CometModelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="For --comet: a model other than its default.")
]


@dataclass(frozen=True)
class CometOptions:
    """How to compute COMET."""

    model: str | None
    device: str


def comet_options(
    comet: bool, model: str | None, device: str, text: TextOptions
) -> CometOptions | None:
    """Group the options of COMET; None if it is not asked for.

    Raises:
        ConfigError: A model without --comet, or a reference without its source.
        NmtError: The program comet-score is not installed.
    """
    if not comet:
        if model:
            raise ConfigError(f"--comet-model {model} goes with --comet; add it")
        return None
    if text.reference and not text.source:
        raise ConfigError("--comet compares with the source as well; add --source FILE")
    from nmt.evaluation.comet import find_comet

    find_comet()
    return CometOptions(model, device)


def add_comet(
    sheet: "ScoreSheet", translations: list[str], test_set: "EvaluationSet", options: CometOptions
) -> "tuple[ScoreSheet, NmtError | None]":
    """Return the sheet with the COMET score, or unchanged with the error of comet-score."""
    from nmt.device import pick_device
    from nmt.evaluation.comet import comet

    gpus = int(pick_device(options.device).type == "cuda")
    try:
        score = comet(translations, test_set, options.model, gpus)
    except NmtError as error:
        return sheet, error
    remark = "COMET compares with figures of the same COMET model, on the same test set."
    return sheet.with_score(score, remark), None
