"""SIGINT and SIGTERM during training: stop at once if nothing is lost by it, else very soon.

The computation of a gradient or a validation is interrupted; the resumed run repeats it. An update
of the weights or a checkpoint that is being written is finished first.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from nmt.errors import StoppedBySignal


class Interrupted(BaseException):
    """A stop signal has interrupted a computation, which has changed nothing."""


class StopSignals:
    """A context in which SIGINT and SIGTERM are recorded and do not end the process."""

    def __init__(self, *, second_stops_at_once: bool = True) -> None:
        """Without `second_stops_at_once` all signals after the first are ignored."""
        self._second_stops_at_once = second_stops_at_once
        self.number = 0
        """number of the first signal that came; 0 if none has come"""
        self._may_interrupt = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def interruptible(self, allowed: bool = True) -> Iterator[None]:
        """Let a signal interrupt the block at any point, if `allowed`.

        Raises:
            Interrupted: a signal has come.
        """
        self._may_interrupt = allowed
        try:
            if allowed and self.number:
                raise Interrupted
            yield
        finally:
            self._may_interrupt = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Ask for a stop at the first signal; stop at once at the second one."""
        if self.number:
            if not self._second_stops_at_once:
                return
            raise StoppedBySignal(
                f"stopped at once by a second {signal.Signals(number).name}", number
            )
        self.number = number
        # Straight to stderr: the handler may have interrupted a write to Python's own buffer.
        with contextlib.suppress(OSError):  # the program at the other end may have stopped too
            os.write(2, b"stopping and saving; a second signal stops at once\n")
        if self._may_interrupt:
            raise Interrupted
