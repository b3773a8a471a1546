"""A request on its way to its answer: texts to segments, models one after the other, and back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from nmt.data.text.protected_text import ProtectedText
from nmt.serving.answers import RequestError
from nmt.serving.batcher import Batcher, Lane, QueuedSegment
from nmt.serving.detection import AUTO, detect
from nmt.serving.engine import SearchKind
from nmt.serving.long_work import UNKNOWN, LongWork
from nmt.serving.models import Direction, Models
from nmt.serving.operations import Operations
from nmt.serving.segment_cache import SegmentCache
from nmt.serving.segments import SegmentedText, TranslatedText, split_texts
from nmt.translation.documents.document import ANY_LANGUAGE, Document, LanguagePair
from nmt.translation.documents.html import html_document
from nmt.translation.line import Alignment, Line, Terminology, Translation
from nmt.translation.message_texts import MessageTexts

SLICE = 256
"""segments that are looked up, queued or kept before other requests have a turn"""


@dataclass(frozen=True)
class Asked:
    """What a request asks of each of its texts."""

    source: str
    """a code of the language, or `AUTO`"""
    target: str
    read: Callable[[str, LanguagePair], Document] | None = None
    """reads each text as a document, such as a page; None: it is plain text"""
    n_best: int = 1
    """translations of each text; there are fewer if the beam holds fewer"""
    alignments: bool = False
    terminology: Terminology | None = None
    protected: ProtectedText = field(default_factory=ProtectedText)
    no_repeat_ngram: int | None = None
    """no sequence of so many tokens may come twice in a sentence; None: as the run is configured"""


Finished = Callable[[int, SegmentedText, int, Sequence[Translation]], None]
"""called with the number of a text, the text, the number of a segment, and its translations"""


class TranslationService:
    """Translates the texts of requests."""

    def __init__(
        self, models: Models, batcher: Batcher, cache: SegmentCache, operations: Operations
    ) -> None:
        self.models = models
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
            source = self.models.source_code(asked.source)
            target = self.models.target_code(asked.target, source)
            asked = replace(asked, source=source, target=target)
            return await self._translate(texts, asked, client, finished)
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
            read = asked.read
            shown = (
                [" ".join(read(each, ANY_LANGUAGE).texts()) for each in texts] if read else texts
            )
            return [detect(text, [*sources, target])[0] for text in shown]

        return await self.long_work.run(client, sum(map(len, texts)), find)

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
            plain = Asked("", "", asked.read, protected=asked.protected, no_repeat_ngram=ngram)
            found = await self._through(direction, texts, plain, client, None)
            texts, before = [each.text for each in found], [each.models for each in found]
        found = await self._through(last, texts, asked, client, finished)
        if not pivots:
            return found
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
        if asked.read:
            return [await self._document(direction, text, asked, client) for text in texts]

        def as_lines() -> list[Line]:
            return [Line(0, text, asked.terminology) for text in texts]

        lines = await self.long_work.run(client, sum(map(len, texts)), as_lines)
        return await self._lines(direction, lines, asked, client, finished)

    async def _document(
        self, direction: Direction, text: str, asked: Asked, client: str
    ) -> TranslatedText:
        """Translate a document; a thread reads it, and writes it with its translation."""
        languages = LanguagePair(direction.source, direction.target)
        read_text = asked.read or html_document
        in_turn = partial(self.long_work.run, client, len(text))

        def read() -> tuple[Document, list[list[Line]]]:
            page, terms = read_text(text, languages), asked.terminology
            groups = page.plain, page.with_tags
            return page, [[replace(line, terminology=terms) for line in each] for each in groups]

        page, groups = await in_turn(read)
        rows: list[list[TranslatedText]] = []
        for lines, with_links in zip(groups, (False, True), strict=True):
            of_lines = replace(asked, alignments=with_links)
            rows.append(
                await self._lines(direction, lines, of_lines, client, None) if lines else []
            )

        def write() -> list[str]:
            others = max((len(text.alternatives) for row in rows for text in row), default=0)
            pages = [page, *(read_text(text, languages) for _ in range(others))]
            return list(
                dict.fromkeys(
                    each.write(
                        *([_as_translation(text, n) for text in row] for row in rows)
                    ).decode()
                    for n, each in enumerate(pages)
                )
            )

        best, *others = [TranslatedText(each, 0.0) for each in await in_turn(write)]
        used = dict.fromkeys(model for row in rows for text in row for model in text.models)
        return replace(best, alternatives=others, models=tuple(used))

    async def _lines(
        self,
        direction: Direction,
        lines: Sequence[Line],
        asked: Asked,
        client: str,
        finished: Finished | None,
    ) -> list[TranslatedText]:
        """Translate plain texts by one model; the statistics of the server count them."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        model = direction.model
        async with self.models.use(model) as loaded:
            n_best = min(asked.n_best, loaded.beam_size)
            kind = SearchKind(
                n_best, asked.alignments, bool(asked.terminology), asked.no_repeat_ngram
            )
            lane = Lane(model.name, loaded.version, kind)

            def cut_texts() -> _PendingTexts:
                messages = MessageTexts(lines, asked.protected)
                texts = split_texts(messages.lines, loaded, direction.tag, asked.protected)
                return _PendingTexts(lane, texts, client, finished, messages)

            characters = sum(len(line.text) for line in lines)
            # a pattern of the client may take any time
            size = UNKNOWN if asked.protected.is_own else characters
            pending = await self.long_work.run(client, size, cut_texts)
            cached = await self._translate_segments(pending)
        seconds = loop.time() - started
        self._operations.count_translation(model.name, len(pending.places), cached, seconds)
        found = await self.long_work.run(client, characters * n_best, pending.translated)
        pending.finish_messages()  # they were translated in parts, which `found` has together
        return found

    async def _translate_segments(self, pending: "_PendingTexts") -> int:
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

    async def _search(self, pending: "_PendingTexts", missing: Sequence["Place"]) -> None:
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


Place = tuple[int, int]
"""number of a text, and of a segment in it"""


async def _in_slices(places: Sequence[Place]) -> AsyncIterator[Place]:
    """Yield places, and let other requests have a turn after each `SLICE` of them."""
    for i, place in enumerate(places, start=1):
        yield place
        if i % SLICE == 0:
            await asyncio.sleep(0)


class _PendingTexts:
    """Texts of one request that are being translated, and the translations found so far.

    The texts inside ICU messages (`messages`) stand behind those of the request. All are cut into
    segments, which are sentences; a `Place` names one of them.
    """

    def __init__(
        self,
        lane: Lane,
        texts: Sequence[SegmentedText],
        client: str,
        finished: Finished | None,
        messages: MessageTexts,
    ) -> None:
        self.lane, self.client = lane, client
        """the model and search that translate the segments; who asks, see `Batcher.submit`"""
        self._texts, self._finished = texts, finished
        self._messages = messages
        """knows which texts have ICU messages, and puts the translated texts back into these"""
        self.places = [(i, j) for i, text in enumerate(texts) for j in range(len(text.segments))]
        """all segments"""
        self.found: dict[Place, list[Translation]] = {}
        """the translations of each translated segment, best first"""
        self._filled: dict[Place, list[Translation]] = {}
        """the same for texts with ICU messages, which are translated, too"""

    def line(self, place: Place) -> Line:
        """Return the segment at a place."""
        return self._texts[place[0]].segments[place[1]].line

    def of_text(self, i: int) -> list[list[Translation]]:
        """Return the translations of each segment of text i."""
        return [self.found[i, j] for j in range(len(self._texts[i].segments))]

    def finish(self, place: Place, translations: list[Translation]) -> None:
        """Keep the translations of a segment, and tell them unless it waits for its messages."""
        self.found[place] = translations
        i, j = place
        if self._finished and i < self._messages.count and not self._messages.has_message(i):
            self._finished(i, self._texts[i], j, translations)

    def translated(self) -> list[TranslatedText]:
        """Return the texts with translated ICU messages, once all segments are found."""
        models = ((self.lane.model, self.lane.version.weights),)
        found = [
            replace(text.translated(self.of_text(i)), models=models)
            for i, text in enumerate(self._texts)
        ]
        if self._messages.are_none:
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
            if self._messages.has_message(i):
                for j, segment in enumerate(self.of_text(i)):
                    self._filled[i, j] = list(islice(filled, len(segment)))
        return found[: self._messages.count]

    def finish_messages(self) -> None:
        """Finish the segments of texts with ICU messages, after `translated`."""
        for (i, j), translations in self._filled.items():
            if self._finished:
                self._finished(i, self._texts[i], j, translations)


def _as_translation(text: TranslatedText, n: int) -> Translation:
    """Return the n-th best translation of a text, counted from 0, or its last one."""
    chosen = [text, *text.alternatives][: n + 1][-1]
    return Translation(chosen.text, chosen.score, alignment=Alignment(links=chosen.links))
