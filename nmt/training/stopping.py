"""SIGINT and SIGTERM during training: stop at once if nothing is lost by it, else very soon.

The computation of a gradient or a validation is interrupted; the resumed run repeats it. An update
of the weights or a checkpoint that is being written is finished first.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from nmt.errors import StoppedBySignal

_REPEAT_SECONDS = 0.5
"""seconds in which the same signal again counts as one: `timeout` sends it to the process and to
its group, so that it may arrive twice"""


class Interrupted(BaseException):
    """A stop signal has interrupted a computation, whose result is lost; no state has changed."""


class StopSignals:
    """A context in which SIGINT and SIGTERM are recorded and do not end the process."""

    def __init__(self, *, second_stops_at_once: bool = True, silent: bool = False) -> None:
        """A second signal raises `StoppedBySignal` if `second_stops_at_once`, else is ignored.

        Within `_REPEAT_SECONDS` the same signal again counts as the first one. If `silent`, nothing
        is printed when a signal is received.
        """
        self._second_stops_at_once, self._silent = second_stops_at_once, silent
        self.number = 0
        """the first signal that was received, such as 15 for SIGTERM; 0 if there was none"""
        self._received_at = 0.0
        """when the first signal was received, on the clock `time.monotonic`"""
        self._may_interrupt = False
        """whether a signal raises `Interrupted` now, wherever the program is"""
        self._earlier_handlers: dict[int, Any] = {}

    def __enter__(self) -> None:
        """Handle SIGINT and SIGTERM from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._earlier_handlers[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        """Restore the handlers of both signals."""
        for number, handler in self._earlier_handlers.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def interruptible(self, allowed: bool = True) -> Iterator[None]:
        """If `allowed`, a stop signal interrupts the `with` block at any point.

        Raises:
            Interrupted: `allowed` is True, and a signal was received inside the block or earlier.
        """
        self._may_interrupt = allowed
        try:
            if allowed and self.number:
                raise Interrupted
            yield
        finally:
            self._may_interrupt = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: record the first one, and stop at once at the second one."""
        if self.number:
            again = number == self.number and time.monotonic() < self._received_at + _REPEAT_SECONDS
            if again or not self._second_stops_at_once:
                return
            raise StoppedBySignal(
                f"stopped at once by a second {signal.Signals(number).name}", number
            )
        self.number, self._received_at = number, time.monotonic()
        advice = b"; a second signal stops at once" if self._second_stops_at_once else b""
        # Straight to stderr: the handler may have interrupted a write to Python's own buffer.
        if not self._silent:
            with contextlib.suppress(OSError):  # the program at the other end may have stopped too
                os.write(2, b"stopping and saving" + advice + b"\n")
        if self._may_interrupt:
            raise Interrupted
