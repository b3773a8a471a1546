"""The options that ask for COMET, and its score beside the other scores."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options.test_set import TextOptions
from nmt.errors import ConfigError, NmtError

if TYPE_CHECKING:
    from nmt.evaluation.score_sheet import ScoreSheet
    from nmt.evaluation.test_sets import EvaluationSet


@dataclass(frozen=True)
class CometOptions:
    """Whether to compute COMET, and how."""

    comet: Annotated[
        bool, typer.Option("--comet", help="Score with COMET as well, by an installed comet-score.")
    ] = False
    comet_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For --comet: a model other than its default."),
    ] = None

    def check(self, text: TextOptions) -> None:
        """Check that COMET can be computed, if it is asked for.

        Raises:
            ConfigError: A model without --comet, or a reference without its source.
            NmtError: The program comet-score is not installed.
        """
        if not self.comet and self.comet_model:
            raise ConfigError(f"--comet-model {self.comet_model} goes with --comet; add it")
        if not self.comet:
            return
        if text.reference and not text.source:
            raise ConfigError("--comet compares with the source as well; add --source FILE")
        from nmt.evaluation.comet import find_comet

        find_comet()

    def add_to(
        self, sheet: "ScoreSheet", translations: list[str], test_set: "EvaluationSet", device: str
    ) -> "tuple[ScoreSheet, NmtError | None]":
        """Return the sheet with the COMET score, or unchanged with the error of comet-score."""
        from nmt.device import pick_device
        from nmt.evaluation.comet import comet

        gpus = int(pick_device(device).type == "cuda")
        try:
            score = comet(translations, test_set, self.comet_model, gpus)
        except NmtError as error:
            return sheet, error
        remark = "COMET compares with figures of the same COMET model, on the same test set."
        return sheet.with_score(score, remark), None
