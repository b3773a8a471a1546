"""The texts of a request while they are translated, segment by segment."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from nmt.serving.batcher import Lane
from nmt.serving.segments import SegmentedText, TranslatedText
from nmt.translation.line import Line, Translation
from nmt.translation.message_texts import MessageTexts

Finished = Callable[[int, SegmentedText, int, Sequence[Translation]], None]
"""called with the number of a text, the text, the number of a segment, and its translations"""
Progress = Callable[[int], None]
"""called with the characters of each segment that a model has translated"""
Place = tuple[int, int]
"""number of a text, and of a segment in it"""


class PendingTexts:
    """Texts of one request that are being translated, and the translations found so far.

    The texts inside ICU messages (`messages`) stand behind those of the request. All are cut into
    segments, which are sentences; a `Place` names one of them.
    """

    def __init__(
        self,
        lane: Lane,
        texts: Sequence[SegmentedText],
        client: str,
        messages: MessageTexts,
        finished: Finished | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.lane, self.client = lane, client
        """the model and search that translate the segments; who asks, see `Batcher.submit`"""
        self._texts, self._finished, self._progress = texts, finished, progress
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
        if self._progress:
            start, end = self._texts[i].segments[j].span
            self._progress(end - start)
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
            whole = [text.option(n) for n in range(1 + len(text.alternatives))]
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
