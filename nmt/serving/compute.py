"""Where batches are translated: in threads of the server, whose search releases Python's lock."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from nmt.machine.processor import available_cores, is_cpu, use_one_thread
from nmt.search.cancellation import Cancellation
from nmt.serving.engine import Engine, ModelVersion, SearchKind
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Line, Translation

SPARE_THREADS = 8
"""threads for batches that take long, while others have their slots"""


class Compute(Protocol):
    """Translates up to `slots` batches at once, and `spare` more beside slow ones."""

    slots: int
    spare: int

    async def start(self) -> None:
        """Start the threads or processes that translate."""

    async def close(self) -> None:
        """End the threads or processes that translate."""

    async def load(self, version: ModelVersion) -> None:
        """Load a model wherever batches are translated."""

    async def unload(self, version: ModelVersion) -> None:
        """Drop a model; nothing happens if it was never loaded."""

    async def translate(
        self, version: ModelVersion, kind: SearchKind, lines: Sequence[Line]
    ) -> list[list[Translation]]:
        """Return the translations of each line, best first."""


class ThreadCompute:
    """Translates in this process: in a thread for each core by default, or in one for a GPU."""

    def __init__(self, settings: ServerSettings) -> None:
        self.slots, self.spare = 1, 0  # of a GPU
        if is_cpu(settings.device):
            self.slots, self.spare = settings.threads or available_cores(), SPARE_THREADS
        self._engine = Engine(settings)
        self._threads = ThreadPoolExecutor(self.slots + self.spare, "translate")
        self._loading = ThreadPoolExecutor(1, "load")

    async def start(self) -> None:
        """Leave the cores to the threads: PyTorch computes each batch with one."""
        if self.slots > 1:
            use_one_thread()

    async def close(self) -> None:
        """End the threads; batches that have not begun are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._loading.shutdown(wait=False, cancel_futures=True)

    async def load(self, version: ModelVersion) -> None:
        """Load a model while the others go on translating.

        Raises:
            NmtError: the weights are damaged or gone.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._loading, self._engine.load, version)
        self._loading.submit(self._engine.load_pytorch, version)  # nobody waits for it

    async def unload(self, version: ModelVersion) -> None:
        """Drop a model; a batch that uses it ends normally."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._loading, self._engine.unload, version)

    async def translate(
        self, version: ModelVersion, kind: SearchKind, lines: Sequence[Line]
    ) -> list[list[Translation]]:
        """Return the translations of each line, best first; if cancelled, its search ends."""
        loop = asyncio.get_running_loop()
        cancellation = Cancellation()

        def translate() -> list[list[Translation]]:
            with cancellation.of_searches():
                return self._engine.translate(version, kind, lines)

        try:
            return await loop.run_in_executor(self._threads, translate)
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
