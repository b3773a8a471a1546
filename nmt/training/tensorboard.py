"""The records of metrics.jsonl for TensorBoard, which draws them while training goes on.

TensorBoard is optional (`nmt[tensorboard]`) and imported only where a recipe asks for it.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt.errors import MissingExtraError


class TensorBoard:
    """Writes event files into a folder that `tensorboard --logdir` shows."""

    def __init__(self, folder: Path) -> None:
        """Create nothing yet.

        Raises:
            MissingExtraError: the package tensorboard is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("training.tensorboard", "tensorboard") from error
        self._folder, self._make_writer = folder, SummaryWriter
        self._writer: Any = None

    def open(self, step: int) -> None:
        """Begin a file after `step`; what earlier files say of later steps is no longer shown."""
        with contextlib.suppress(OSError):
            self._writer = self._make_writer(str(self._folder), purge_step=step + 1)

    def add(self, record: Mapping[str, Any]) -> None:
        """One curve for each figure of a record; its event gives the group."""
        if self._writer is None:
            return
        for name, value in record.items():
            if name not in ("event", "step"):
                self._writer.add_scalar(f"{record['event']}/{name}", value, record["step"])

    def close(self) -> None:
        """Write what is unwritten."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
