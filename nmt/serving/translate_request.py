"""A request on its way to its answer: texts to segments, models one after the other, and back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nmt.data.text.protected_text import ProtectedText
from nmt.serving.answers import RequestError
from nmt.serving.batcher import Batcher, Lane, QueuedSegment
from nmt.serving.detection import AUTO, detect
from nmt.serving.engine import SearchKind
from nmt.serving.long_work import UNKNOWN, LongWork
from nmt.serving.memories import Memories
from nmt.serving.models import Direction, Models
from nmt.serving.operations import Operations
from nmt.serving.pending_texts import Finished, PendingTexts, Place, Progress
from nmt.serving.segment_cache import SegmentCache
from nmt.serving.segments import SegmentedText, TranslatedText, split_texts
from nmt.translation.documents.document import Document, LanguagePair
from nmt.translation.documents.html import html_document
from nmt.translation.line import Context, Line, Terminology, Translation
from nmt.translation.message_texts import MessageTexts
from nmt.translation.spans import compose_links

SLICE = 256
"""segments that are looked up, queued or kept before other requests have a turn"""


@dataclass(frozen=True)
class Asked:
    """What a request asks of each of its texts."""

    source: str
    """a code of the language, or `AUTO`"""
    target: str
    is_html: bool = False
    """whether each text is a page, or a part of one"""
    n_best: int = 1
    """translations of each text; there are fewer if the beam holds fewer"""
    alignments: bool = False
    terminology: Terminology | None = None
    protected: ProtectedText = field(default_factory=ProtectedText)
    no_repeat_ngram: int | None = None
    """no sequence of so many tokens may come twice in a sentence; None: as the run is configured"""
    progress: Progress | None = None
    context: Context = ()
    """the sentences before each text"""
    memories: tuple[str, ...] = ()
    """names of the translation memories to search"""
    adapt: bool = False
    """whether the model learns from the nearest pairs of each segment before it translates it"""


@dataclass(frozen=True)
class DocumentSource:
    """A document to translate."""

    content: bytes
    read: Callable[[LanguagePair], Document]
    """reads it, for a pair of languages; each call returns another object"""


@dataclass(frozen=True)
class TranslatedDocument:
    """The translation of a document."""

    content: bytes
    alternatives: Sequence[bytes] = ()
    """other translations, best first"""
    models: tuple[tuple[str, str], ...] = ()
    """(name, digest of the weights) of each model that has translated a part of it"""


class TranslationService:
    """Translates the texts of requests."""

    def __init__(
        self,
        models: Models,
        batcher: Batcher,
        cache: SegmentCache,
        operations: Operations,
        memories: Memories,
    ) -> None:
        self.models, self._memories = models, memories
        self._batcher, self._cache, self._operations = batcher, cache, operations
        self.long_work = LongWork()
        """for all that Python computes besides the translation: detecting languages, cutting texts
        into segments, reading and writing pages and files"""

    async def translate(
        self,
        texts: Sequence[str],
        asked: Asked,
        client: str,
        finished: Finished | None = None,
    ) -> list[TranslatedText]:
        """Return the translation of each text; with source auto, of each from its own language.

        `client` is the name of who asks; the segments of different clients take turns. `finished`
        is called for each segment of the last model as soon as it is translated, except for HTML.

        Raises:
            RequestError: the pair is not served, or the server is busy.
            DataError: the constraints cannot be met.
        """
        if asked.source != AUTO:
            return await self._translate(texts, self.resolved(asked), client, finished)
        detected = await self.detect(texts, asked, client)
        by_source: dict[str, list[int]] = {}  # {language: indices of its texts}
        for i, guess in enumerate(detected):
            by_source.setdefault(str(guess["language"]), []).append(i)
        results: dict[int, TranslatedText] = {}

        async def translate_some(source: str, indices: list[int]) -> None:
            """Translate the texts at `indices`, which are in the language `source`."""

            def finished_one(i: int, *segment: Any) -> None:
                if finished:  # it numbers all texts, and `i` those of this language
                    finished(indices[i], *segment)

            target = self.models.target_code(asked.target, source)
            of_source = replace(asked, source=source, target=target)
            chosen = [texts[i] for i in indices]
            translated = await self._translate(chosen, of_source, client, finished_one)
            results.update(zip(indices, translated, strict=True))

        work = [
            asyncio.create_task(translate_some(language, indices))
            for language, indices in by_source.items()
        ]
        try:
            await asyncio.gather(*work)
        finally:  # a language that cannot be translated: nobody needs the others
            for task in work:
                task.cancel()
        return [replace(results[i], detected=guess) for i, guess in enumerate(detected)]

    async def detect(
        self, texts: Sequence[str], asked: Asked, client: str
    ) -> list[dict[str, object]]:
        """Return the language of each text or page: one that has the target, or the target itself.

        Raises:
            RequestError: nothing is translated into the target.
        """
        models = self.models
        targets = {s: models.target_code(asked.target, s) for s in models.sources}
        sources = [s for s in models.sources if targets[s] in models.targets(s)]
        if not sources:
            models.route(models.sources[0], asked.target)  # raises an error that lists the targets
        target = targets[sources[0]]

        def find() -> list[dict[str, object]]:
            shown = texts
            if asked.is_html:
                shown = [" ".join(html_document(text).texts()) for text in texts]
            return [detect(text, [*sources, target])[0] for text in shown]

        return await self.long_work.run(client, sum(map(len, texts)), find)

    async def translate_document(
        self, source: DocumentSource, asked: Asked, client: str
    ) -> TranslatedDocument:
        """Return the translation of a document; the language of its text is known.

        Raises:
            RequestError: the pair is not served, or the server is busy.
            DataError: the constraints cannot be met, or the document is damaged.
        """
        return await self._document(source, self.resolved(asked), client)

    def resolved(self, asked: Asked) -> Asked:
        """Return what is asked with the codes of languages that are served, as en for en-US."""
        source = self.models.source_code(asked.source)
        return replace(asked, source=source, target=self.models.target_code(asked.target, source))

    async def _translate(
        self, texts: Sequence[str], asked: Asked, client: str, finished: Finished | None
    ) -> list[TranslatedText]:
        """Translate texts or pages from one language."""
        if asked.is_html:
            return [await self._page(text, asked, client) for text in texts]
        route = self.route(asked)
        if not route:
            return [TranslatedText(text, 0.0) for text in texts]

        def as_lines() -> list[Line]:
            return [Line(0, text, asked.terminology, context=asked.context) for text in texts]

        lines = await self.long_work.run(client, sum(map(len, texts)), as_lines)
        return await self._through(route, lines, asked, client, finished)

    def route(self, asked: Asked) -> Sequence[Direction]:
        """Return the models to translate through: one, two with a pivot, none for a copy.

        Raises:
            RequestError: the pair is not served, or not with what is asked.
        """
        if asked.source == asked.target and asked.source in self.models.languages:
            return []
        route = self.models.route(asked.source, asked.target)
        if asked.context and (len(route) > 1 or not route[0].model.current.config.data.context):
            raise RequestError(
                400,
                f"Invalid request: no model from {asked.source} to {asked.target} has learnt to "
                "use a context; leave it out",
            )
        mode = asked.terminology.glossary_mode if asked.terminology else None
        if mode == "inflect" and not route[0].model.current.config.data.terms:
            raise RequestError(
                400,
                f"Invalid request: no model from {asked.source} to {asked.target} has learnt to "
                "inflect terms; use glossary_mode auto or exact",
            )
        if len(route) > 1 and (asked.alignments or asked.terminology or asked.memories):
            raise RequestError(
                400,
                f"{asked.source} is translated to {asked.target} through {route[-1].source}, which "
                "allows neither alignments nor terms, forbidden words, beginnings and memories; "
                "leave them out",
            )
        self._memories.check_direction(asked.memories, asked.source, asked.target)
        return route

    async def _through(
        self,
        route: Sequence[Direction],
        lines: Sequence[Line],
        asked: Asked,
        client: str,
        finished: Finished | None,
    ) -> list[TranslatedText]:
        """Translate plain texts by each model of a route in turn."""
        *pivots, last = route
        before: list[TranslatedText] = []
        for direction in pivots:
            plain = replace(asked, n_best=1)
            before = await self._lines(direction, lines, plain, client, None)
            lines = [_next_line(*pair) for pair in zip(lines, before, strict=True)]
        found = await self._lines(last, lines, asked, client, finished)
        if not before:
            return found
        return [_after_pivot(*pair) for pair in zip(before, found, strict=True)]

    async def _page(self, html: str, asked: Asked, client: str) -> TranslatedText:
        """Translate a page, or a part of one."""
        source = DocumentSource(html.encode(), partial(html_document, html))
        page = await self._document(source, asked, client)
        others = [TranslatedText(other.decode(), 0.0) for other in page.alternatives]
        return TranslatedText(page.content.decode(), 0.0, others, models=page.models)

    async def _document(
        self, source: DocumentSource, asked: Asked, client: str
    ) -> TranslatedDocument:
        """Translate a document; a thread reads it, and writes it with its translation."""
        route = self.route(asked)
        if not route:
            return TranslatedDocument(source.content)
        languages = LanguagePair(asked.source, asked.target)
        in_turn = partial(self.long_work.run, client, len(source.content))

        def read() -> tuple[Document, list[list[Line]]]:
            document, terms = source.read(languages), asked.terminology
            groups = document.plain, document.with_tags
            return document, [
                [replace(line, terminology=terms) for line in each] for each in groups
            ]

        document, groups = await in_turn(read)
        rows: list[list[TranslatedText]] = []
        for lines, with_links in zip(groups, (False, True), strict=True):
            of_lines = replace(asked, alignments=with_links)
            rows.append(await self._through(route, lines, of_lines, client, None) if lines else [])

        def write() -> list[bytes]:
            others = max((len(text.alternatives) for row in rows for text in row), default=0)
            documents = [document, *(source.read(languages) for _ in range(others))]
            written = (
                each.write(*([text.option(n) for text in row] for row in rows))
                for n, each in enumerate(documents)
            )
            return list(dict.fromkeys(written))

        best, *others = await in_turn(write)
        used = dict.fromkeys(model for row in rows for text in row for model in text.models)
        return TranslatedDocument(best, others, tuple(used))

    async def _lines(
        self,
        direction: Direction,
        lines: Sequence[Line],
        asked: Asked,
        client: str,
        finished: Finished | None,
    ) -> list[TranslatedText]:
        """Translate plain texts by one model; the statistics of the server count them."""
        started = asyncio.get_running_loop().time()
        model = direction.model
        are_whole = await self._memories.have_whole(asked.memories, [line.text for line in lines])
        async with self.models.use(model) as loaded:
            kind = SearchKind(
                min(asked.n_best, loaded.beam_size),
                asked.alignments,
                constrained=bool(asked.terminology),
                no_repeat_ngram=asked.no_repeat_ngram,
                memories=asked.memories,
                adapt=asked.adapt,
            )
            lane = Lane(model.name, loaded.version, kind)

            def cut_texts() -> PendingTexts:
                messages = MessageTexts(lines, asked.protected)
                texts = split_texts(messages.lines, loaded, direction.tag, asked.protected)
                for i, line in enumerate(lines):
                    if are_whole[i] and "\n" not in texts[i].text.strip():
                        texts[i] = SegmentedText.whole(line, loaded, direction.tag)
                return PendingTexts(lane, texts, client, messages, finished, asked.progress)

            characters = sum(len(line.text) for line in lines)
            # a pattern of the client may take any time
            size = UNKNOWN if asked.protected.is_own else characters
            pending = await self.long_work.run(client, size, cut_texts)
            cached = await self._translate_segments(pending)
        seconds = asyncio.get_running_loop().time() - started
        self._operations.count_translation(model.name, len(pending.places), cached, seconds)
        found = await self.long_work.run(client, characters * kind.n_best, pending.translated)
        pending.finish_messages()  # they were translated in parts, which `found` has together
        return found

    async def _translate_segments(self, pending: PendingTexts) -> int:
        """Find the translations of all segments, and return how many were in the cache."""
        digest, kind = pending.lane.version.digest, pending.lane.kind
        async for place in _in_slices(pending.places):
            known = self._cache.get(digest, kind, pending.line(place))
            if known is not None:
                pending.finish(place, known)
        missing = [place for place in pending.places if place not in pending.found]
        if missing:
            await self._search(pending, missing)
        async for place in _in_slices(missing):
            self._cache.put(digest, kind, pending.line(place), pending.found[place])
        return len(pending.places) - len(missing)

    async def _search(self, pending: PendingTexts, missing: Sequence[Place]) -> None:
        """Let the batcher translate the segments at the places `missing`."""
        self._batcher.check_room(len(missing))
        segments: list[QueuedSegment] = []
        all_found: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish(place: Place, future: "asyncio.Future[list[Translation]]") -> None:
            if future.cancelled() or all_found.done():
                return
            if error := future.exception():
                all_found.set_exception(error)
                return
            pending.finish(place, future.result())
            if len(pending.found) == len(pending.places):
                all_found.set_result(None)

        try:
            for start in range(0, len(missing), SLICE):
                places = missing[start : start + SLICE]
                lines = [pending.line(place) for place in places]
                segments += self._batcher.submit(pending.lane, pending.client, lines)
                for place, segment in zip(places, segments[start:], strict=True):
                    segment.future.add_done_callback(partial(finish, place))
                if len(lines) == SLICE:
                    await asyncio.sleep(0)
            await all_found
        except BaseException:  # the client has left, or a segment has failed: nobody needs the rest
            self._batcher.cancel(segments)
            raise


async def _in_slices(places: Sequence[Place]) -> AsyncIterator[Place]:
    """Yield places, and let other requests have a turn after each `SLICE` of them."""
    for i, place in enumerate(places, start=1):
        yield place
        if i % SLICE == 0:
            await asyncio.sleep(0)


def _next_line(line: Line, found: TranslatedText) -> Line:
    """Return the translation of a line for the next model; what was protected still is."""
    places = {link.source: link.target for link in found.links}
    protected = sorted(places[span] for span in line.protected if span in places)
    return Line(line.number, found.text, protected=tuple(protected))


def _after_pivot(before: TranslatedText, found: TranslatedText) -> TranslatedText:
    """Return the translation `found` of the translation `before`, as one of the first text."""

    def joined(text: TranslatedText) -> TranslatedText:
        links = compose_links(before.links, text.links)
        return replace(text, links=links, models=before.models + text.models)

    return replace(joined(found), alternatives=[joined(other) for other in found.alternatives])
