"""The parts of a server, and its life: start, look for new weights, drain."""

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from starlette.requests import Request

from nmt.data.text.language_identification import check_is_installed, known_languages
from nmt.errors import ConfigError
from nmt.serving.access import Access, bearer_of
from nmt.serving.answers import RequestError
from nmt.serving.batcher import Batcher
from nmt.serving.compute import Compute, ThreadCompute
from nmt.serving.memories import Memories
from nmt.serving.models import Models
from nmt.serving.operations import Operations
from nmt.serving.parsing import HALF_A_PAIR
from nmt.serving.segment_cache import SegmentCache
from nmt.serving.segments import TranslatedText
from nmt.serving.settings import ServerSettings
from nmt.serving.translate_request import TranslatedDocument, TranslationService
from nmt.serving.workers import ProcessCompute

SWITCH_SECONDS = 0.0005
"""how long a thread that reads a large file may keep Python's lock from one that answers others"""
COLLECTION_THRESHOLDS = (700, 10, 1000)
"""few new objects between two collections of garbage, during which Python's lock is kept, and
seldom a collection of all objects, which takes tenths of a second for those of large files"""


@dataclass(eq=False)
class Server:
    """What the routes need."""

    settings: ServerSettings
    operations: Operations
    compute: Compute
    models: Models
    batcher: Batcher
    access: Access
    memories: Memories
    service: TranslationService
    is_ready: bool = False
    background: set[asyncio.Task[None]] = field(default_factory=set)
    """work that goes on after its request was answered; it is cancelled when the server ends"""

    @classmethod
    def build(cls, settings: ServerSettings) -> "Server":
        """Read the configurations of all runs, but load nothing yet.

        Raises:
            NmtError: a run, the file of keys or a setting is not usable.
        """
        check_is_installed("nmt serve", "serve")  # for source: auto
        operations = Operations()
        compute = ProcessCompute(settings) if settings.workers > 1 else ThreadCompute(settings)
        models = Models(settings, compute, operations)
        batcher = Batcher(settings, compute, operations)
        cache = SegmentCache(settings.cache_segments)
        memories = Memories(settings, models)
        service = TranslationService(models, batcher, cache, operations, memories)
        access = Access(settings)
        operations.stale_keys.set_function(lambda: access.stale_seconds)
        return cls(settings, operations, compute, models, batcher, access, memories, service)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Load the models; inside the block, look for new weights and keys, also at SIGHUP.

        Raises:
            NmtError: the processes do not start, or a model cannot be loaded.
            OSError: a file of a model cannot be read.
        """
        loop = asyncio.get_running_loop()
        reload = asyncio.Event()
        watcher = None
        switch_seconds, thresholds = sys.getswitchinterval(), gc.get_threshold()
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.set_threshold(*COLLECTION_THRESHOLDS)
        try:
            await self.compute.start()
            await self.models.load_first()
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not in main
                loop.add_signal_handler(signal.SIGHUP, reload.set)
            watcher = asyncio.create_task(self._watch(reload))
            loop.run_in_executor(None, self._load_detection)  # nobody waits for it
            self.is_ready = True
            self.operations.log("ready", {"models": [model.name for model in self.models.models]})
            yield
        finally:
            self.is_ready = False
            if watcher:
                watcher.cancel()
            for task in self.background:
                task.cancel()
            await asyncio.gather(*self.background, return_exceptions=True)
            await self.batcher.close()
            await self.compute.close()
            self.memories.close()
            sys.setswitchinterval(switch_seconds)
            gc.set_threshold(*thresholds)
            self.operations.log("stopped")

    def _load_detection(self) -> None:
        """Load the model that detects languages, before a request needs it."""
        try:
            known_languages()
        except (ConfigError, MemoryError) as error:
            self.operations.log("languages are not detected", {"error": repr(error)})

    async def _watch(self, reload: asyncio.Event) -> None:
        """Read keys and models again every `reload_seconds`, and whenever `reload` is set."""
        mistake = ""  # in the file of keys, so that it is logged once
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reload.wait(), self.settings.reload_seconds)
            reload.clear()
            try:
                self.access.reload()
                mistake = ""
            except ConfigError as error:
                if str(error) != mistake:
                    self.operations.log("the keys stay as they are", {"error": str(error)})
                mistake = str(error)
            try:
                await self.models.reload()
            except Exception as error:  # a mistake of ours must not end all later reloads
                self.operations.explain(error)

    def admit(self, request: Request, key: str | None, texts: Sequence[str]) -> str:
        """Return the name of the client that sent a request, if it may have these texts now.

        The key is that of the body, or stands in the header `Authorization: Bearer KEY`.

        Raises:
            RequestError: the key is missing or unknown, or a limit is reached.
        """
        key = key or bearer_of(request.headers)
        address = request.client.host if request.client else "unknown"
        client = self.access.admit(address, key, sum(map(len, texts)))
        request.state.log.update(client=client, characters=sum(map(len, texts)))
        if self.settings.log_texts:
            request.state.log["texts"] = list(texts)
        return client

    def name_models(
        self, request: Request, found: Sequence[TranslatedText | TranslatedDocument]
    ) -> None:
        """Write the models of translations into the log and a header: NAME@DIGEST."""
        used = dict.fromkeys(model for text in found for model in text.models)
        if used:
            request.state.log["model"] = ", ".join(f"{quote(name)}@{w}" for name, w in used)

    def check_operator(self, request: Request) -> None:
        """Check that the sender of a request may see what the server does and has.

        Raises:
            RequestError: its key is missing or unknown.
        """
        if not self.settings.public_metrics:
            self.access.check_key(bearer_of(request.headers))

    def check_memories(self, request: Request, names: Sequence[str]) -> None:
        """Check that the sender of a request may use the memories with these names.

        Raises:
            RequestError: it may not, or there is none of a name; which of the two is not told.
        """
        known = self.access.memories_of(bearer_of(request.headers)) if names else []
        for name in names:
            if name not in known:
                raise RequestError(
                    400,
                    f"Invalid request: memory: {name!r} is not one of yours, which are "
                    f"{', '.join(known) or 'none'}; GET /v1/memory lists them",
                )

    def check_texts(self, texts: Sequence[str], name: str) -> None:
        """Check the texts of a request; `name` is what the request calls them.

        Raises:
            RequestError: the texts are too many or too long, or hold characters that no text has.
        """
        settings = self.settings
        characters = sum(map(len, texts))
        for count, most, unit in (
            (len(texts), settings.texts, "texts"),
            (characters, settings.text_characters, "characters"),
        ):
            if count > most:
                raise RequestError(
                    400,
                    f"Invalid request: {name} has {count} {unit} and exceeds text limit ({most})",
                )
        for text in texts:
            check_characters(text, name)

    def check_file(self, texts: Sequence[str]) -> None:
        """Check the texts of a file.

        Raises:
            RequestError: the texts are too long, or hold characters that no text has.
        """
        most, characters = self.settings.file_characters, sum(map(len, texts))
        if characters > most:
            raise RequestError(
                413, f"the file has {characters} characters, and {most} are allowed; divide it"
            )
        for text in texts:
            check_characters(text, "the file")


def check_characters(text: str, name: str) -> None:
    """Check that a text holds no NUL and no half of a surrogate pair.

    Raises:
        RequestError: the text holds one.
    """
    if "\0" in text:
        raise RequestError(400, f"Invalid request: {name} holds the character NUL; leave it out")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RequestError(400, HALF_A_PAIR.format(name)) from error
