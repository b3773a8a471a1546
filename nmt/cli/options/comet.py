"""The options that ask for COMET, and its score beside the others."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.model import Device
from nmt.errors import ConfigError, NmtError

if TYPE_CHECKING:
    from nmt.evaluation.evaluate import Evaluation
    from nmt.evaluation.test_sets import EvaluationSet

CometOption = Annotated[
    bool, typer.Option("--comet", help="COMET as well, by an installed comet-score.")
]
CometModelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of --comet: which model, if not its default.")
]


def refuse_without_comet(
    comet: bool, model: str | None, source: Path | None, reference: Path | None
) -> None:
    """Ask before the long wait for translations whether there is what --comet needs.

    Raises:
        ConfigError: a model without --comet, or no source of a finished translation.
        NmtError: comet-score is not installed.
    """
    if model and not comet:
        raise ConfigError(f"--comet-model {model} goes with --comet; add it")
    if reference and comet and not source:
        raise ConfigError("--comet looks at the source as well; add --source FILE")
    if comet:
        from nmt.evaluation.comet import find_comet

        find_comet()


def with_comet(
    result: "Evaluation", against: "EvaluationSet", model: str | None, device: Device
) -> "tuple[Evaluation, NmtError | None]":
    """The result with one more score; or as it is, and why comet-score failed."""
    from nmt.device import pick_device
    from nmt.evaluation.comet import comet

    gpus = int(pick_device(device.value).type == "cuda")
    try:
        score = comet(against.sources or [], result.translations, against.references, model, gpus)
    except NmtError as error:
        return result, error
    remark = "COMET compares with figures of the same COMET model, on the same test set."
    return replace(result, sheet=result.sheet.plus(score, remark)), None
