"""SIGINT and SIGTERM while training: obeyed at once where nothing is lost by it, else very soon.

A gradient that is being computed or a validation is abandoned and done again by the resumed run; an
update of the weights or a checkpoint that is being written is finished first.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

from nmt.errors import StoppedBySignal


class Interrupted(BaseException):
    """What was going on has been given up for a stop; it left no trace."""


class StopSignals:
    """Notices the two signals for as long as it is entered."""

    def __init__(self, *, insistent: bool = True) -> None:
        """`insistent`: whether a second signal stops whatever is going on."""
        self._insistent = insistent
        self.number = 0
        """of the first signal that came; 0: none has"""
        self._may_abandon = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def interruptible(self, allowed: bool = True) -> Iterator[None]:
        """Do what can be given up at any point, if `allowed`.

        Raises:
            Interrupted: a signal has come.
        """
        self._may_abandon = allowed
        try:
            if allowed and self.number:
                raise Interrupted
            yield
        finally:
            self._may_abandon = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal asks for a stop; the second one is obeyed whatever it costs."""
        if self.number:
            if not self._insistent:
                return
            raise StoppedBySignal(
                f"stopped at once by a second {signal.Signals(number).name}", number
            )
        self.number = number
        # Straight to stderr: the handler may have interrupted a write to Python's own buffer.
        with contextlib.suppress(OSError):  # what it is piped into may have got the signal too
            os.write(2, b"stopping and saving; a second signal stops at once\n")
        if self._may_abandon:
            raise Interrupted
