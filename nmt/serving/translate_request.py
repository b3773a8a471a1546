"""A request on its way to its answer: texts to segments, models one after the other, and back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from nmt.data.text.protected_text import ProtectedText
from nmt.serving.answers import RequestError
from nmt.serving.batcher import Batcher, Lane, QueuedSegment
from nmt.serving.detection import AUTO, detect
from nmt.serving.engine import SearchKind
from nmt.serving.models import Direction, Models
from nmt.serving.operations import Operations
from nmt.serving.segment_cache import SegmentCache
from nmt.serving.segments import SegmentedText, TranslatedText, split_texts
from nmt.translation.html.languages import PageLanguages
from nmt.translation.line import Alignment, Line, Terminology, Translation
from nmt.translation.markup import page_text, translate_html
from nmt.translation.message_texts import MessageTexts

SLICE = 256
"""segments that are looked up, queued or kept before other requests have a turn"""
PAGES_AT_ONCE = 8
"""pages of HTML that are translated at once; others wait"""


@dataclass(frozen=True)
class Asked:
    """What a request asks of each of its texts."""

    source: str
    """a code of the language, or `AUTO`"""
    target: str
    is_html: bool = False
    n_best: int = 1
    """translations of each text; there are fewer if the beam holds fewer"""
    alignments: bool = False
    terminology: Terminology | None = None
    protected: ProtectedText = field(default_factory=ProtectedText)
    no_repeat_ngram: int | None = None
    """no sequence of so many tokens may come twice in a sentence; None: as the run is configured"""


Finished = Callable[[int, SegmentedText, int, Sequence[Translation]], Awaitable[None]]
"""called with the number of a text, the text, the number of a segment, and its translations"""


class TranslationService:
    """Translates the texts of requests."""

    def __init__(
        self, models: Models, batcher: Batcher, cache: SegmentCache, operations: Operations
    ) -> None:
        self.models = models
        self._batcher, self._cache, self._operations = batcher, cache, operations
        # Its threads wait for segments. In asyncio's own pool they could take all threads, and
        # what cuts texts into these segments would find none.
        self._pages = ThreadPoolExecutor(PAGES_AT_ONCE, "page")

    async def translate(
        self,
        texts: Sequence[str],
        asked: Asked,
        client: str,
        finished: Finished | None = None,
    ) -> list[TranslatedText]:
        """Return the translation of each text; with source auto, of each from its own language.

        `client` is the name of who asks; the segments of different clients take turns. `finished`
        is awaited for each segment of the last model as soon as it is translated, except for HTML.

        Raises:
            RequestError: the pair is not served, or the server is busy.
            DataError: the constraints cannot be met.
        """
        if asked.source != AUTO:
            source = self.models.source_code(asked.source)
            target = self.models.target_code(asked.target, source)
            asked = replace(asked, source=source, target=target)
            return await self._translate(texts, asked, client, finished)
        detected = await self.detect(texts, asked)
        by_source: dict[str, list[int]] = {}  # {language: indices of its texts}
        for i, guess in enumerate(detected):
            by_source.setdefault(str(guess["language"]), []).append(i)
        results: dict[int, TranslatedText] = {}

        async def translate_some(source: str, indices: list[int]) -> None:
            """Translate the texts at `indices`, which are in the language `source`."""

            async def finished_one(i: int, *segment: Any) -> None:
                if finished:  # it numbers all texts, and `i` those of this language
                    await finished(indices[i], *segment)

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

    async def detect(self, texts: Sequence[str], asked: Asked) -> list[dict[str, object]]:
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
            shown = map(page_text, texts) if asked.is_html else texts
            return [detect(text, [*sources, target])[0] for text in shown]

        return await asyncio.to_thread(find)  # a large page, or many texts, would keep others out

    async def _translate(
        self, texts: Sequence[str], asked: Asked, client: str, finished: Finished | None
    ) -> list[TranslatedText]:
        """Translate through one model, or two with a pivot."""
        if asked.source == asked.target and asked.source in self.models.languages:
            return [TranslatedText(text, 0.0) for text in texts]
        route = self.models.route(asked.source, asked.target)
        *pivots, last = route
        if pivots and (asked.alignments or asked.terminology):
            raise RequestError(
                400,
                f"{asked.source} is translated to {asked.target} through {last.source}, which "
                "allows neither alignments nor terms, forbidden words and beginnings; leave them "
                "out",
            )
        before: list[tuple[tuple[str, str], ...]] = [()] * len(texts)  # models before the last one
        for direction in pivots:
            ngram = asked.no_repeat_ngram
            plain = Asked("", "", asked.is_html, protected=asked.protected, no_repeat_ngram=ngram)
            found = await self._through(direction, texts, plain, client, None)
            texts, before = [each.text for each in found], [each.models for each in found]
        found = await self._through(last, texts, asked, client, finished)
        pairs = zip(before, found, strict=True)
        return [replace(text, models=models + text.models) for models, text in pairs]

    async def _through(
        self,
        direction: Direction,
        texts: Sequence[str],
        asked: Asked,
        client: str,
        finished: Finished | None,
    ) -> list[TranslatedText]:
        """Translate texts by one model."""
        if asked.is_html:
            return [await self._html(direction, text, asked, client) for text in texts]
        lines = [Line(0, text, asked.terminology) for text in texts]
        return await self._lines(direction, lines, asked, client, finished)

    async def _html(
        self, direction: Direction, html: str, asked: Asked, client: str
    ) -> TranslatedText:
        """Translate a page; its tags are read and placed in a thread."""
        loop = asyncio.get_running_loop()
        languages = PageLanguages(direction.source, direction.target)
        calls: list[Future[list[TranslatedText]]] = []

        def translate(lines: Sequence[Line], with_links: bool) -> list[Translation]:
            lines = [replace(line, terminology=asked.terminology) for line in lines]
            of_lines = replace(asked, alignments=with_links)
            work = self._lines(direction, lines, of_lines, client, None)
            calls.append(asyncio.run_coroutine_threadsafe(work, loop))
            return [_as_translation(text, 0) for text in calls[-1].result()]

        def alternative(n: int) -> str:
            results = iter([call.result() for call in calls])
            return translate_html(
                html,
                lambda lines, with_links: [_as_translation(t, n) for t in next(results)],
                languages,
            )

        def all_pages() -> list[str]:
            best = translate_html(html, translate, languages)
            others = max((len(t.alternatives) for call in calls for t in call.result()), default=0)
            return list(dict.fromkeys([best, *map(alternative, range(1, others + 1))]))

        try:
            best, *others = await loop.run_in_executor(self._pages, all_pages)
            alternatives = [TranslatedText(other, 0.0) for other in others]
            used = dict.fromkeys(m for call in calls for t in call.result() for m in t.models)
            return TranslatedText(best, 0.0, alternatives, models=tuple(used))
        except asyncio.CancelledError:  # the client has left: its sentences leave the queue
            for call in calls:
                call.cancel()
            raise

    async def _lines(
        self,
        direction: Direction,
        lines: Sequence[Line],
        asked: Asked,
        client: str,
        finished: Finished | None,
    ) -> list[TranslatedText]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        model = direction.model
        async with self.models.use(model) as loaded:
            n_best = min(asked.n_best, loaded.beam_size)
            messages = MessageTexts(lines, asked.protected)
            texts = await split_texts(messages.lines, loaded, direction.tag, asked.protected)
            kind = SearchKind(
                n_best, asked.alignments, bool(asked.terminology), asked.no_repeat_ngram
            )
            lane = Lane(model.name, loaded.version, kind)
            pending = _PendingTexts(lane, texts, client, finished, messages)
            cached = await self._translate_segments(pending)
        seconds = loop.time() - started
        self._operations.count_translation(model.name, len(pending.places), cached, seconds)
        models = ((model.name, loaded.version.weights),)
        return [replace(text, models=models) for text in await pending.translated()]

    async def _translate_segments(self, pending: "_PendingTexts") -> int:
        """Find the translations of all segments, and return how many were in the cache."""
        digest, kind = pending.lane.version.digest, pending.lane.kind
        async for place in _in_slices(pending.places):
            known = self._cache.get(digest, kind, pending.line(place))
            if known is not None:
                await pending.finish(place, known)
        missing = [place for place in pending.places if place not in pending.found]
        if not missing:
            return len(pending.places)
        self._batcher.check_room(len(missing))
        segments: list[QueuedSegment] = []

        async def wait_for(place: Place, segment: QueuedSegment) -> None:
            await pending.finish(place, await segment.future)

        try:
            for start in range(0, len(missing), SLICE):
                lines = [pending.line(place) for place in missing[start : start + SLICE]]
                segments += self._batcher.submit(pending.lane, pending.client, lines)
                if len(lines) == SLICE:
                    await asyncio.sleep(0)
            if pending.finished:
                waiting = zip(missing, segments, strict=True)
                await asyncio.gather(*(wait_for(*each) for each in waiting))
            else:
                rows = await asyncio.gather(*(segment.future for segment in segments))
                pending.found.update(zip(missing, rows, strict=True))
        finally:  # a client that left, or a segment that failed: nobody needs the others
            self._batcher.cancel(segments)
        async for place in _in_slices(missing):
            self._cache.put(digest, kind, pending.line(place), pending.found[place])
        return len(pending.places) - len(missing)


Place = tuple[int, int]
"""number of a text, and of a segment in it"""


async def _in_slices(places: Sequence[Place]) -> AsyncIterator[Place]:
    """Yield places, and let other requests have a turn after each `SLICE` of them."""
    for i, place in enumerate(places, start=1):
        yield place
        if i % SLICE == 0:
            await asyncio.sleep(0)


class _PendingTexts:
    """Texts that are being translated: their segments, and the translations found so far."""

    def __init__(
        self,
        lane: Lane,
        texts: Sequence[SegmentedText],
        client: str,
        finished: Finished | None,
        messages: MessageTexts,
    ) -> None:
        self.lane, self.client = lane, client
        self._texts, self.finished = texts, finished
        self._messages = messages
        """which of the texts are those in ICU messages; they are the last ones"""
        self.places = [(i, j) for i, text in enumerate(texts) for j in range(len(text.segments))]
        self.found: dict[Place, list[Translation]] = {}

    def line(self, place: Place) -> Line:
        return self._texts[place[0]].segments[place[1]].line

    def of_text(self, i: int) -> list[list[Translation]]:
        return [self.found[i, j] for j in range(len(self._texts[i].segments))]

    async def finish(self, place: Place, translations: list[Translation]) -> None:
        self.found[place] = translations
        i, j = place
        if self.finished and i < self._messages.count and not self._messages.has_any(i):
            await self.finished(i, self._texts[i], j, translations)

    async def translated(self) -> list[TranslatedText]:
        """Return the texts with translated ICU messages, once all segments are found.

        Segments of texts with such messages are finished only here.
        """

        def joined() -> list[TranslatedText]:
            return [text.translated(self.of_text(i)) for i, text in enumerate(self._texts)]

        found = joined() if len(self.places) <= SLICE else await asyncio.to_thread(joined)
        if not any(map(self._messages.has_any, range(self._messages.count))):
            return found
        rows: list[list[Translation]] = []  # of each text, and then those of its segments
        for i, text in enumerate(found):
            whole = [_as_translation(text, n) for n in range(1 + len(text.alternatives))]
            rows.append([*whole, *(each for row in self.of_text(i) for each in row)])
        for i, row in enumerate(self._messages.put_back(rows)):
            filled = iter(row)
            best, *others = [
                replace(text, text=new.text, links=new.alignment.links if new.alignment else ())
                for text, new in zip([found[i], *found[i].alternatives], filled, strict=False)
            ]
            found[i] = replace(best, alternatives=others)
            if self.finished and self._messages.has_any(i):
                for j, segment in enumerate(self.of_text(i)):
                    await self.finished(i, self._texts[i], j, list(islice(filled, len(segment))))
        return found[: self._messages.count]


def _as_translation(text: TranslatedText, n: int) -> Translation:
    """Return the n-th best translation of a text, counted from 0, or its last one."""
    chosen = [text, *text.alternatives][: n + 1][-1]
    return Translation(chosen.text, chosen.score, alignment=Alignment(links=chosen.links))
