"""A request on its way to its answer: texts to segments, models one after the other, and back."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nmt.serving.answers import RequestError
from nmt.serving.batcher import Batcher, Lane, Segment
from nmt.serving.detection import detect
from nmt.serving.engine import SearchKind
from nmt.serving.html import HtmlTranslation, visible_text
from nmt.serving.languages import known_code
from nmt.serving.models import Direction, LoadedVersion, Models
from nmt.serving.operations import Operations
from nmt.serving.segment_cache import SegmentCache
from nmt.serving.segments import AlignedWords, SegmentedText, align_text
from nmt.translation.line import Line, Terminology, Translation
from nmt.translation.markup import tagged_line, without_tag

LONG_TEXT = 20_000
"""characters that are cut into segments in a thread, because that takes milliseconds"""


@dataclass(frozen=True)
class Asked:
    """What a request asks of each of its texts."""

    source: str
    target: str
    n_best: int = 1
    """translations of each text; there are fewer if the beam holds fewer"""
    alignments: bool = False
    terminology: Terminology | None = None
    protects: bool = False
    """whether addresses, placeholders and patterns of the settings stay as they are"""
    is_html: bool = False
    """whether the texts are HTML, which has one translation, without alignments"""


@dataclass(frozen=True)
class TranslatedText:
    """A text with its translation."""

    text: str
    score: float
    """the sum of the scores of its sentences"""
    alternatives: list[tuple[str, float]] = field(default_factory=list)
    """other translations, best first, with their scores"""
    words: AlignedWords | None = None
    """None unless alignments were asked for"""
    model: str = ""
    """the name of the model, or of two as "one+other"; empty if nothing was translated"""
    detected: dict[str, object] | None = None
    """the language that was found, in LibreTranslate's shape; None: it was given"""


Finished = Callable[[int, SegmentedText, int, Sequence[Translation]], Awaitable[None]]
"""called with the number of a text, the text, the number of a segment, and its translations"""


class TranslationService:
    """Translates the texts of requests."""

    def __init__(
        self, models: Models, batcher: Batcher, cache: SegmentCache, operations: Operations
    ) -> None:
        self.models = models
        self._batcher, self._cache, self._operations = batcher, cache, operations
        self._html = HtmlTranslation()

    async def translate(
        self,
        texts: Sequence[str],
        asked: Asked,
        client: str,
        finished: Finished | None = None,
    ) -> list[TranslatedText]:
        """Return the translation of each text; with source auto, of each from its own language.

        `finished` is awaited for each segment of the last model, as soon as it is translated.

        Raises:
            RequestError: the pair is not served, or the server is busy.
            DataError: the constraints cannot be met.
        """
        if asked.source != "auto":
            return await self._translate(texts, asked, client, finished)
        visible = map(visible_text, texts) if asked.is_html else texts
        detected = [self._detect(text, asked.target) for text in visible]
        by_source: dict[str, list[int]] = {}
        for i, guess in enumerate(detected):
            by_source.setdefault(str(guess["language"]), []).append(i)
        results: list[TranslatedText | None] = [None] * len(texts)

        async def translate_some(source: str, indices: list[int]) -> None:
            async def finished_one(i: int, *segment: Any) -> None:
                if finished:
                    await finished(indices[i], *segment)

            of_source = replace(asked, source=source)
            chosen = [texts[i] for i in indices]
            found = await self._translate(chosen, of_source, client, finished_one)
            for i, text in zip(indices, found, strict=True):
                results[i] = replace(text, detected=detected[i])

        await asyncio.gather(*(translate_some(*group) for group in by_source.items()))
        return [result for result in results if result]

    def _detect(self, text: str, target: str) -> dict[str, object]:
        """Return the language of a text: one that is translated into the target, or the target."""
        models = self.models
        sources = [s for s in models.sources if known_code(target) in models.targets(s)]
        if not sources:
            models.route(models.sources[0], target)  # raises an error that lists the targets
        return detect(text, [*sources, known_code(target)])[0]

    async def _translate(
        self, texts: Sequence[str], asked: Asked, client: str, finished: Finished | None
    ) -> list[TranslatedText]:
        """Translate through one model, or two with a pivot."""
        if known_code(asked.source) == known_code(asked.target):
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
        only = Asked("", "", protects=asked.protects, is_html=asked.is_html)
        for direction in pivots:
            found = await self._through(direction, texts, only, client, None)
            texts = [each.text for each in found]
        found = await self._through(last, texts, asked, client, finished)
        name = "+".join(direction.model.name for direction in route)
        return [replace(text, model=name) for text in found]

    async def _through(
        self,
        direction: Direction,
        texts: Sequence[str],
        asked: Asked,
        client: str,
        finished: Finished | None,
    ) -> list[TranslatedText]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        model = direction.model
        async with self.models.use(model) as loaded:
            if asked.is_html:
                return [
                    await self._of_html(text, loaded, direction, asked, client) for text in texts
                ]
            n_best = min(asked.n_best, loaded.beam_size)
            if asked.protects:
                cut = [SegmentedText.paragraphs(t, direction, asked.terminology) for t in texts]
            else:
                cut = [await _split(text, loaded, direction, asked.terminology) for text in texts]
            kind = SearchKind(
                n_best,
                asked.alignments,
                bool(asked.terminology),
                has_paragraphs=asked.protects,
                protects=asked.protects,
            )
            search = _Search(Lane(model.name, loaded.version, kind), cut, client, finished)
            cached = await self._run(search)
        seconds = loop.time() - started
        self._operations.count_translation(model.name, len(search.places), cached, seconds)
        is_tagged = bool(direction.tag)
        return [_join(cut[i], search.of_text(i), asked, is_tagged) for i in range(len(cut))]

    async def _of_html(
        self, html: str, loaded: LoadedVersion, direction: Direction, asked: Asked, client: str
    ) -> TranslatedText:
        """Translate a page; the constraints hold for each of its texts."""
        tag = direction.tag

        async def translate(lines: Sequence[Line], with_links: bool) -> list[Translation]:
            kind = SearchKind(1, with_links, bool(asked.terminology), True, asked.protects)
            tagged = [
                replace(tagged_line(line, tag), terminology=asked.terminology) for line in lines
            ]
            lane = Lane(direction.model.name, loaded.version, kind)
            search = _Search(lane, [SegmentedText.of_line(line) for line in tagged], client, None)
            await self._run(search)
            return [without_tag(search.found[i, 0][0], len(tag)) for i in range(len(tagged))]

        return TranslatedText(await self._html.translate(html, translate), 0.0)

    async def _run(self, search: "_Search") -> int:
        """Find the translations of all segments, and return how many were in the cache."""
        digest, kind = search.lane.version.digest, search.lane.kind
        for place in search.places:
            known = self._cache.get(digest, kind, search.line(place))
            if known is not None:
                await search.finish(place, known)
        missing = [place for place in search.places if place not in search.found]
        if not missing:
            return len(search.places)
        lines = [search.line(place) for place in missing]
        segments = self._batcher.submit(search.lane, search.client, lines)

        async def wait_for(place: Place, segment: Segment) -> None:
            translations = await segment.future
            self._cache.put(digest, kind, search.line(place), translations)
            await search.finish(place, translations)

        waiting = zip(missing, segments, strict=True)
        try:
            if len(missing) == 1:
                await wait_for(*next(waiting))
            else:
                await asyncio.gather(*(wait_for(*each) for each in waiting))
        finally:  # a client that left, or a segment that failed: nobody needs the others
            self._batcher.cancel(segments)
        return len(search.places) - len(missing)


Place = tuple[int, int]
"""number of a text, and of a segment in it"""


@dataclass
class _Search:
    """The segments of some texts, and the translations found so far."""

    lane: Lane
    texts: Sequence[SegmentedText]
    client: str
    finished: Finished | None
    found: dict[Place, list[Translation]] = field(default_factory=dict)

    @cached_property
    def places(self) -> list[Place]:
        return [(i, j) for i, text in enumerate(self.texts) for j in range(len(text.lines))]

    def line(self, place: Place) -> Line:
        return self.texts[place[0]].lines[place[1]]

    def of_text(self, i: int) -> list[list[Translation]]:
        return [self.found[i, j] for j in range(len(self.texts[i].lines))]

    async def finish(self, place: Place, translations: list[Translation]) -> None:
        self.found[place] = translations
        if self.finished:
            i, j = place
            await self.finished(i, self.texts[i], j, translations)


async def _split(
    text: str, loaded: LoadedVersion, direction: Direction, terminology: Terminology | None
) -> SegmentedText:
    """Cut a text into segments, a long one in a thread, so that other requests go on."""
    if len(text) < LONG_TEXT:
        return SegmentedText.split(text, loaded, direction, terminology)
    return await asyncio.to_thread(SegmentedText.split, text, loaded, direction, terminology)


def _join(
    text: SegmentedText, rows: list[list[Translation]], asked: Asked, is_tagged: bool
) -> TranslatedText:
    """Join the translations of a text's segments; alternative n takes the n-th best of each."""
    count = max(map(len, rows), default=1)
    joined: dict[str, float] = {}  # a text that comes twice keeps its better score
    for n in range(count):
        chosen = [row[min(n, len(row) - 1)] for row in rows]
        whole, _ = text.join([translation.text for translation in chosen])
        joined.setdefault(whole, sum(translation.score for translation in chosen))
    (best, score), *alternatives = joined.items()
    result = TranslatedText(best, score, alternatives)
    if not asked.alignments:
        return result
    return replace(result, words=align_text(text, [row[0] for row in rows], is_tagged))
