"""The process that holds the models, and forks the workers, which share its memory.

It has a single thread, so that a fork is safe, which one of the server itself would not be. Workers
see the models as they were when they were forked: after a model is loaded or dropped, new ones
take the place of the old ones. All of them end when the server does, which closes their sockets.
"""

import gc
import os
import signal
import socket
import sys
from typing import NoReturn

from nmt.errors import DataError, NmtError
from nmt.machine.processor import use_one_thread
from nmt.serving import frames
from nmt.serving.engine import Engine, ModelVersion, SearchKind
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Line

Versions = tuple[ModelVersion, ...]
HostCommand = tuple[Versions, Versions, int, int]
"""what the host shall do: models to load and to drop, then how many workers to fork, and how many
times workers have been replaced, these included

Before it forks, it answers with an error, or with None if there was none."""
BatchCommand = tuple[ModelVersion, SearchKind, tuple[Line, ...]]
"""a batch for a worker, which answers with translations or an error"""


def main() -> None:
    """Hold the models of the server that listens at the socket named by the only argument."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the server decides when they end
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes workers that have ended
    path = sys.argv[1]
    connection = _connect(path, None)
    settings: ServerSettings = frames.receive(connection)
    engine = Engine(settings)
    try:
        while True:
            command: HostCommand = frames.receive(connection)
            load, unload, workers, generation = command
            error = _carry_out(load, unload, engine)
            frames.send(connection, error)
            if error:
                continue
            for _ in range(workers):
                if os.fork() == 0:  # in the new process, which `_work` ends
                    connection.close()
                    _work(path, engine, generation)
    except (EOFError, ConnectionError):
        return


def _carry_out(load: Versions, unload: Versions, engine: Engine) -> Exception | None:
    """Load and unload models; return the error that occurred, or None."""
    try:
        for version in load:
            engine.load(version)
            engine.load_pytorch(version)  # now, so that the workers share it
        for version in unload:
            engine.unload(version)
    except (NmtError, OSError) as error:
        return _portable(error)
    gc.freeze()  # the collector would write to what the workers share
    return None


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled, as not all are, of the kinds that the server knows."""
    kind = next((k for k in (DataError, NmtError) if isinstance(error, k)), RuntimeError)
    return kind(str(error) if isinstance(error, NmtError) else repr(error))


def _work(path: str, engine: Engine, generation: int) -> NoReturn:
    """Translate batches until the server closes the socket."""
    use_one_thread()  # OpenMP's threads are not forked
    try:
        connection = _connect(path, generation)
        while True:
            command: BatchCommand = frames.receive(connection)
            try:
                answer: object = engine.translate(*command)
            except Exception as error:
                answer = _portable(error)
            frames.send(connection, answer)
    except (EOFError, ConnectionError):
        os._exit(0)
    finally:
        os._exit(1)


def _connect(path: str, generation: int | None) -> socket.socket:
    """Connect to the server, and tell it who this is.

    `generation` is how many times workers had been replaced when this one was forked; None: this is
    the host.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    frames.send(connection, (os.getpid(), generation))
    return connection
