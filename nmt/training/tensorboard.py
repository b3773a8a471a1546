"""The records of metrics.jsonl in the format of TensorBoard, which plots them during training.

TensorBoard is optional (`nmt[tensorboard]`) and imported only if a recipe asks for it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nmt.errors import MissingExtraError


def summary_writer() -> Callable[..., Any]:
    """Return the class that writes event files.

    Raises:
        MissingExtraError: the package tensorboard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("training.tensorboard", "tensorboard") from error
    return SummaryWriter


class TensorBoard:
    """Writes event files into a folder that `tensorboard --logdir` shows."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        """Create nothing yet; `warn` is called if nothing can be written any more."""
        self._folder, self._warn = folder, warn
        self._writer: Any = None
        self._shown = 0
        self._waiting: list[Mapping[str, Any]] = []

    def drop_records_after(self, step: int) -> None:
        """Hide the records of later steps that are in earlier files."""
        self._shown = step

    def open(self) -> None:
        """Start a new file."""
        self._writer = self._attempt(
            lambda: summary_writer()(str(self._folder), purge_step=self._shown + 1)
        )
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Add each figure of a record to its curve; the event of the record names the group."""
        if self._writer is None:
            self._waiting.append(record)
        else:
            self._attempt(lambda: self._write(record))

    def _write(self, record: Mapping[str, Any]) -> None:
        for name, value in record.items():
            if name not in ("event", "step"):
                self._writer.add_scalar(f"{record['event']}/{name}", value, record["step"])

    def flush(self) -> None:
        """Write all records that were added so far."""
        if self._writer is not None:
            self._attempt(lambda: self._writer.flush())

    def close(self) -> None:
        """Write what is left and close the file."""
        if self._writer is not None:
            self._attempt(lambda: self._writer.close())
            self._writer = None

    def _attempt(self, write: Callable[[], Any]) -> Any:
        """Call `write`; on a full disk warn once and write no more curves."""
        try:
            return write()
        except OSError as error:
            self._warn(f"{self._folder}: not written any more: {error.strerror}")
            self._writer = _NullWriter()
            return self._writer


class _NullWriter:
    """Replaces a writer that has failed and writes nothing."""

    def add_scalar(self, *_: Any) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...
