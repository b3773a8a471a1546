"""Errors and warnings for the user; the command prints the message of an error and exits.

The exit code is 1 unless the class says otherwise. A message says what failed, what was
found, what was expected, and what to do next. It writes a parameter by its name in Python, such as
`beam_size`: the command line puts its option in place of that (`cli/options/groups.py`).
"""

import signal
import sys
from collections.abc import Callable

Log = Callable[[str], None]
"""receives a message for the user on what is being done"""
Progress = Callable[[int], object]
"""is called with the number of lines or pairs that were done since the last call"""


class NmtError(Exception):
    """Base of all errors for the user; `exit_code` is that of the command."""

    exit_code = 1


class DataError(NmtError):
    """Text, corpora, tokenizers or downloads that cannot be used as they are."""


class CheckpointError(NmtError):
    """A checkpoint or model directory that cannot be used."""


class DamagedCheckpointError(CheckpointError):
    """A checkpoint that is missing, incomplete or damaged, so that another one has to be used."""


class NonFiniteScoresError(CheckpointError):
    """A model that computes NaN instead of scores."""

    def __init__(
        self,
        message: str = (
            "the model's scores are not numbers (NaN): its weights are damaged or its training "
            "diverged; choose an earlier `checkpoint`"
        ),
    ) -> None:
        super().__init__(message)


class ExchangeError(NmtError):
    """A model of another program that cannot be read, or ours that cannot be written for it."""


class DivergedError(NmtError):
    """A loss or a gradient that is NaN or infinite, or a sudden rise of the loss."""


class MissingExtraError(NmtError):
    """A feature whose optional dependency, an extra of the package, is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra '{extra}': pip install 'nmt[{extra}]'")


class ConfigError(NmtError):
    """A wrong configuration or command line: exit code 2."""

    exit_code = 2


class RunDirectoryBusyError(NmtError):
    """Another process is training in the same run directory: exit code 75."""

    exit_code = 75


class StoppedBySignal(NmtError):  # noqa: N818 - it is how a requested stop ends, not a failure
    """A command stopped by SIGINT (exit code 130) or SIGTERM (143); training has saved first."""

    def __init__(self, message: str, signal_number: int = signal.SIGTERM) -> None:
        """Set the exit code to 128 + the signal's number, as shells do."""
        super().__init__(message)
        self.exit_code = 128 + signal_number


def print_warning(message: str) -> None:
    """Print a warning to stderr, above a progress bar if there is one."""
    from tqdm import tqdm

    tqdm.write(f"warning: {message}", file=sys.stderr)
