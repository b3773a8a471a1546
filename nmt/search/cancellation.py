"""Ends a search that nobody waits for: every search looks at each step whether it may go on."""

import contextlib
import ctypes
from collections.abc import Iterator
from contextvars import ContextVar


class SearchCancelled(Exception):  # noqa: N818 - what happened to a search, not a mistake
    """A search was cancelled; nobody waits for its results."""


class Cancellation:
    """Lets any thread end the search of another one."""

    def __init__(self) -> None:
        self.flag = ctypes.c_int32(0)
        """not 0 once the search shall end; C reads it, too"""

    def cancel(self) -> None:
        """Let the search end at its next step."""
        self.flag.value = 1

    @contextlib.contextmanager
    def of_searches(self) -> Iterator[None]:
        """Let this object cancel the searches inside the block, which this thread computes."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


_CURRENT: ContextVar[Cancellation] = ContextVar("cancellation", default=Cancellation())  # noqa: B039


def current_cancellation() -> Cancellation:
    """Return what may cancel the search of this thread; by default nothing ever does."""
    return _CURRENT.get()


def check_not_cancelled() -> None:
    """Go on unless the search of this thread was cancelled.

    Raises:
        SearchCancelled: it was.
    """
    if _CURRENT.get().flag.value:
        raise SearchCancelled
