"""The records of metrics.jsonl for TensorBoard, which draws them while training goes on.

TensorBoard is optional (`nmt[tensorboard]`) and imported only where a recipe asks for it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nmt.errors import MissingExtraError


def summary_writer() -> Callable[..., Any]:
    """What writes event files.

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
        """Create nothing yet; `warn` hears where nothing can be written any more."""
        self._folder, self._warn = folder, warn
        self._writer: Any = None
        self._shown = 0
        self._waiting: list[Mapping[str, Any]] = []

    def drop_records_after(self, step: int) -> None:
        """What earlier files say of later steps will no longer be shown."""
        self._shown = step

    def open(self) -> None:
        """Begin a file."""
        self._writer = self._attempt(
            lambda: summary_writer()(str(self._folder), purge_step=self._shown + 1)
        )
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """One curve for each figure of a record; its event gives the group."""
        if self._writer is None:
            self._waiting.append(record)
        else:
            self._attempt(lambda: self._write(record))

    def _write(self, record: Mapping[str, Any]) -> None:
        for name, value in record.items():
            if name not in ("event", "step"):
                self._writer.add_scalar(f"{record['event']}/{name}", value, record["step"])

    def flush(self) -> None:
        """Let all be on disk that was added so far."""
        if self._writer is not None:
            self._attempt(lambda: self._writer.flush())

    def close(self) -> None:
        """Write what is unwritten."""
        if self._writer is not None:
            self._attempt(lambda: self._writer.close())
            self._writer = None

    def _attempt(self, write: Callable[[], Any]) -> Any:
        """Curves are not worth a run: where the disk is full, there are none from here on."""
        try:
            return write()
        except OSError as error:
            self._warn(f"{self._folder}: not written any more: {error.strerror}")
            self._writer = _Nothing()
            return self._writer


class _Nothing:
    """Takes the place of a writer that has failed."""

    def add_scalar(self, *_: Any) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...
