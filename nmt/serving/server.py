"""The parts of a server, and its life: start, look for new weights, drain."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request

from nmt.data.text.language_identification import known_languages
from nmt.errors import ConfigError
from nmt.serving.access import Access
from nmt.serving.answers import RefusedRequest
from nmt.serving.batcher import Batcher
from nmt.serving.compute import Compute, ThreadCompute
from nmt.serving.models import Models
from nmt.serving.operations import Operations
from nmt.serving.segment_cache import SegmentCache
from nmt.serving.settings import ServerSettings
from nmt.serving.translate_request import TranslationService


@dataclass(eq=False)
class Server:
    """What the routes need."""

    settings: ServerSettings
    operations: Operations
    compute: Compute
    models: Models
    batcher: Batcher
    access: Access
    service: TranslationService
    is_ready: bool = False

    @classmethod
    def build(cls, settings: ServerSettings) -> "Server":
        """Read the configurations of all runs, but load nothing yet.

        Raises:
            NmtError: a run, the file of keys or a setting is not usable.
        """
        known_languages("nmt serve", "serve")  # for source: auto
        operations = Operations()
        compute = ThreadCompute(settings)
        models = Models(settings, compute, operations)
        batcher = Batcher(settings, compute, operations)
        cache = SegmentCache(settings.cache_segments)
        service = TranslationService(models, batcher, cache, operations)
        return cls(settings, operations, compute, models, batcher, Access(settings), service)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Load the models; inside the block, look for new weights and keys, also at SIGHUP.

        Raises:
            NmtError: a model cannot be loaded.
        """
        await self.compute.start()
        await self.models.load_first()
        loop = asyncio.get_running_loop()
        reload = asyncio.Event()
        with contextlib.suppress(NotImplementedError, RuntimeError):  # not in the main thread
            loop.add_signal_handler(signal.SIGHUP, reload.set)
        watcher = asyncio.create_task(self._watch(reload))
        self.is_ready = True
        self.operations.log("ready", models=[model.name for model in self.models.models])
        try:
            yield
        finally:
            self.is_ready = False
            watcher.cancel()
            await self.batcher.close()
            await self.compute.close()
            self.operations.log("stopped")

    async def _watch(self, reload: asyncio.Event) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reload.wait(), self.settings.reload_seconds)
            reload.clear()
            await self.models.reload()
            try:
                self.access.reload()
            except ConfigError as error:
                self.operations.log("the keys stay as they are", error=str(error))

    def admit(self, request: Request, key: str | None, characters: int) -> str:
        """Return the name of the client that sent a request, if it may translate so much now.

        The key is that of the body, or stands in the header `Authorization: Bearer KEY`.

        Raises:
            RefusedRequest: the key is missing or unknown, or a limit is reached.
        """
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if not key and scheme.lower() == "bearer":
            key = bearer.strip()
        address = request.client.host if request.client else "unknown"
        client = self.access.admit(address, key, characters)
        request.state.log.update(client=client, characters=characters)
        return client

    def check_texts(self, texts: Sequence[str], name: str) -> int:
        """Return the number of characters of texts that may be translated.

        Raises:
            RefusedRequest: they are too many or too long, or hold what is no text.
        """
        settings = self.settings
        characters = sum(map(len, texts))
        if len(texts) > settings.texts:
            raise RefusedRequest(
                400,
                f"Invalid request: {len(texts)} texts in {name} exceeds text limit ({settings.texts})",
            )
        if characters > settings.text_characters:
            raise RefusedRequest(
                400,
                f"Invalid request: {characters} characters in {name} exceeds text limit "
                f"({settings.text_characters})",
            )
        for text in texts:
            check_characters(text, name)
        return characters


def check_characters(text: str, name: str) -> None:
    """Check that a text holds no NUL and no half of a surrogate pair.

    Raises:
        RefusedRequest: it does.
    """
    if "\0" in text:
        raise RefusedRequest(400, f"Invalid request: {name} holds the character NUL; leave it out")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RefusedRequest(
            400, f"Invalid request: {name} holds half of a surrogate pair; write whole characters"
        ) from error
