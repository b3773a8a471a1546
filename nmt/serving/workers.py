"""Batches are translated by processes: one that dies is replaced, and its batch begins again."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import NmtError
from nmt.files import make_temporary_folder
from nmt.machine.process_pool import check_processes
from nmt.machine.processor import is_cpu
from nmt.serving import frames
from nmt.serving.answers import busy
from nmt.serving.engine import ModelVersion, SearchKind
from nmt.serving.model_host import BatchCommand, HostCommand, Versions
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Line, Translation

ATTEMPTS = 2
"""how often a batch is begun before its requests are refused"""
START_HOST = "from nmt.serving.model_host import main; main()"
MAX_START_SECONDS = 60.0
"""seconds until a process must be there"""
PAUSE = 0.2
"""seconds before a host that has ended is started again"""


class ProcessLost(Exception):  # noqa: N818 - what happened to a process, not to a request
    """A process ended before it answered."""


class _Process:
    """The socket of a process that answers each command with one object."""

    def __init__(self, writer: asyncio.StreamWriter, number: int, generation: int | None) -> None:
        self.generation = generation
        self._number = number  # of the process
        self._writer = writer
        self._answer: asyncio.Future[object] | None = None
        self.is_lost = False

    async def execute(self, command: object) -> object:
        """Send a command and return the answer.

        Raises:
            ProcessLost: the process ended.
        """
        if self.is_lost:
            raise ProcessLost
        self._answer = asyncio.get_running_loop().create_future()
        with contextlib.suppress(ConnectionError):  # then `read` has noticed it too
            await frames.send_async(self._writer, command)
        return await self._answer

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Take the answers of the process until it ends."""
        try:
            while True:
                answer = await frames.receive_async(reader)
                if self._answer and not self._answer.done():
                    self._answer.set_result(answer)
        except EOFError:
            self.is_lost = True
            if self._answer and not self._answer.done():
                self._answer.set_exception(ProcessLost())

    def close(self) -> None:
        """End the process, whatever it does."""
        if not self.is_lost:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._number, signal.SIGKILL)
        self._writer.close()


class ProcessCompute:
    """Translates in `workers` processes of one thread each, which share the models' memory."""

    def __init__(self, settings: ServerSettings) -> None:
        """Start nothing yet.

        Raises:
            ConfigError: the models are on a GPU, which one process fills.
        """
        if not is_cpu(settings.device):
            check_processes(settings.workers)
        self.slots = self.spare = settings.workers
        self._settings = settings
        self._loaded: list[ModelVersion] = []
        self._generation = 0
        self._processes: set[_Process] = set()
        self._idle: asyncio.Queue[_Process] = asyncio.Queue()
        self._host_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder: Path | None = None
        self._sockets: asyncio.Server | None = None
        self._host_process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the host of the models, which forks the workers.

        Raises:
            NmtError: the host does not start.
            OSError: the socket cannot be opened.
        """
        self._folder = make_temporary_folder("nmt-serve-", remedy="leave out workers")
        self._path = str(self._folder / "socket")
        self._sockets = await asyncio.start_unix_server(self._connected, self._path)
        self._host: asyncio.Future[_Process] = asyncio.get_running_loop().create_future()
        """the socket of the host, once it has connected; `_host_process` is its process"""
        self._tasks.add(asyncio.create_task(self._keep_host()))
        await self._wait_for_host()

    async def close(self) -> None:
        """End all processes, also after a start that failed.

        All are killed: a worker may be translating, and the host starting or loading.
        """
        for task in self._tasks:
            task.cancel()
        if self._sockets:
            self._sockets.close()
        for process in list(self._processes):
            process.close()
        if self._host_process:
            self._host_process.kill()
            await asyncio.to_thread(self._host_process.wait)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def load(self, version: ModelVersion) -> None:
        """Load a model, and replace the workers by new ones that have it.

        Raises:
            NmtError: the weights are damaged or gone.
        """
        await self._command_host(load=(version,))
        self._loaded.append(version)

    async def unload(self, version: ModelVersion) -> None:
        """Drop a model, and replace the workers; nothing happens if it was never loaded."""
        if version in self._loaded:
            self._loaded.remove(version)
            await self._command_host(unload=(version,))

    async def translate(
        self, version: ModelVersion, kind: SearchKind, lines: Sequence[Line]
    ) -> list[list[Translation]]:
        """Return the translations of each line, best first.

        Raises:
            NmtError: the memory does not suffice, or no translation meets the constraints.
            RequestError: the processes that began this batch ended.
        """
        command: BatchCommand = version, kind, tuple(lines)
        for _ in range(ATTEMPTS):
            worker = await self._next_worker()
            try:
                answer: Any = await worker.execute(command)
            except ProcessLost:
                continue
            except asyncio.CancelledError:  # the next batch would get the answer to this one
                worker.close()
                raise
            finally:  # also one that is lost: `_next_worker` passes over it
                self._idle.put_nowait(worker)
            if isinstance(answer, Exception):
                raise answer
            return answer
        raise busy("the processes that translated this text ended; try again")

    async def _next_worker(self) -> _Process:
        """Wait for an idle worker that has the present models."""
        try:
            async with asyncio.timeout(MAX_START_SECONDS):
                while True:
                    worker = await self._idle.get()
                    if not worker.is_lost and worker.generation == self._generation:
                        return worker
                    worker.close()
        except TimeoutError as error:
            raise busy() from error

    async def _keep_host(self) -> None:
        """Start the host, and again whenever it has ended."""
        command = [sys.executable, "-c", START_HOST, self._path]
        while True:
            self._host_process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
            )
            await asyncio.to_thread(self._host_process.wait)
            await asyncio.sleep(PAUSE)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the socket of a process, until the process ends."""
        number, generation = await frames.receive_async(reader)
        process = _Process(writer, number, generation)
        self._processes.add(process)
        is_host = generation is None
        if is_host:
            await frames.send_async(writer, self._settings)
            self._host.set_result(process)
            for version in self._loaded:  # if the host takes the place of one that has ended
                self._begin(self._command_host(load=(version,)))
        else:
            self._idle.put_nowait(process)
        await process.read(reader)
        self._processes.discard(process)
        process.close()
        if is_host:
            self._host = asyncio.get_running_loop().create_future()
        elif generation == self._generation and self._sockets and self._sockets.is_serving():
            self._begin(self._command_host(replace=False))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run by itself; an error in it has been seen elsewhere too."""

        async def run() -> None:
            with contextlib.suppress(NmtError, OSError):
                await work

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_for_host(self) -> _Process:
        """Return the socket of the host, once it has connected."""
        try:
            async with asyncio.timeout(MAX_START_SECONDS):
                return await asyncio.shield(self._host)
        except TimeoutError as error:
            raise NmtError("the process that holds the models does not start") from error

    async def _command_host(
        self,
        load: Versions = (),
        unload: Versions = (),
        replace: bool = True,
    ) -> None:
        """Let the host change its models and replace all workers, or (not `replace`) add one."""
        async with self._host_lock:
            generation = self._generation + replace
            count = self.slots + self.spare if replace else 1
            command: HostCommand = load, unload, count, generation
            for _ in range(ATTEMPTS):
                host = await self._wait_for_host()
                try:
                    answer = await host.execute(command)
                except ProcessLost:
                    continue
                if isinstance(answer, Exception):
                    raise answer
                self._generation = generation
                return
        raise NmtError("the process that holds the models ended; is the memory too small?")
