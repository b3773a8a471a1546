"""Exit codes and messages of the error family."""

import signal

import pytest

from nmt.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    MissingExtraError,
    NmtError,
    RunDirectoryBusyError,
    StoppedBySignal,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NmtError("x"), 1),
        (DataError("x"), 1),
        (CheckpointError("x"), 1),
        (MissingExtraError("plotting", "plot"), 1),
        (ConfigError("x"), 2),
        (RunDirectoryBusyError("x"), 75),
        (StoppedBySignal("x"), 143),
        (StoppedBySignal("x", signal.SIGINT), 130),
    ],
)
def test_each_kind_of_failure_ends_with_its_exit_code(error: NmtError, code: int) -> None:
    assert isinstance(error, NmtError)
    assert error.exit_code == code


def test_a_missing_extra_says_how_to_install_it() -> None:
    message = "plotting needs the extra 'plot': pip install 'nmt[plot]'"
    assert str(MissingExtraError("plotting", "plot")) == message
