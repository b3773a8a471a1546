"""Dynamic batching: segments of many clients wait a little and are translated together.

A segment waits only while something else is translated: one that comes alone begins at once. Of
the segments that wait, each client in turn gives one, until the batch is full. So a short request
is in the next batch, however long the book before it is, and a batch takes only about
`batch_seconds`. One that takes longer gives its slot to other clients, and goes on beside them. It
ends when all clients that wait for it have left, and at the latest after `search_seconds`.
"""

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.errors import NmtError
from nmt.search.windows import MIN_COUNTED_LENGTH
from nmt.serving.answers import RequestError, busy
from nmt.serving.compute import Compute
from nmt.serving.engine import ModelVersion, SearchKind
from nmt.serving.operations import Operations
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Line, Translation

FIRST_RATE = 2000.0
"""source tokens a second of one slot, before a batch has been measured"""
MIN_BATCH_TOKENS = 512
"""a batch may have so many even if the rate is lower, which it is if the first batch was slow"""
DECAY = 0.8
"""weight of an earlier batch in the rate, for each batch after it"""
LONG_SEGMENT = 200
"""tokens of a segment; one that has more is translated beside others that have more"""
SORTED_TOGETHER = 256
"""segments of one request that are sorted by length, so that those of a batch are alike"""


class Lane(NamedTuple):
    """Segments that may be translated in one batch."""

    model: str
    """the name of the model, for the metrics"""
    version: ModelVersion
    kind: SearchKind
    is_long: bool = False
    """whether its segments have more than `LONG_SEGMENT` tokens, and so take long"""

    @property
    def rate_key(self) -> "RateKey":
        """The key for the rate at which it is translated; a reloaded model keeps it."""
        return self.model, self.kind, self.is_long


RateKey = tuple[str, SearchKind, bool]


@dataclass(eq=False, slots=True)
class QueuedSegment:
    """A sentence that waits or is translated; its future gets the translations, best first."""

    line: Line
    client: str
    future: "asyncio.Future[list[Translation]]"
    tokens: int
    is_waiting: bool = True
    batch: "_Batch | None" = None
    """the batch that translates it; None: it waits, or is done"""


@dataclass(eq=False)
class _Batch:
    """Segments that are being translated."""

    segments: list[QueuedSegment]
    task: "asyncio.Task[None] | None" = None
    gave_slot: bool = False
    """whether it takes long, so that another batch has its slot"""

    def __post_init__(self) -> None:
        self.clients = {segment.client for segment in self.segments}
        for segment in self.segments:
            segment.batch = self


Queue = OrderedDict[str, deque[QueuedSegment]]
"""the waiting segments of a lane, by client: the first client gives the next one"""


class Batcher:
    """Gives waiting segments to the slots of `compute`, in batches."""

    def __init__(self, settings: ServerSettings, compute: Compute, operations: Operations) -> None:
        self._settings, self._compute, self._operations = settings, compute, operations
        self._queues: OrderedDict[Lane, Queue] = OrderedDict()
        self._rates: dict[RateKey, tuple[float, float]] = {}
        """tokens and seconds of the batches of a lane; the latest ones count most"""
        self._waiting = self._running = 0  # segments
        operations.queue.set_function(lambda: self._waiting)
        self._free = compute.slots  # slots without a batch
        self._slow = 0
        """batches that have given away their slots"""
        self._batches: set[_Batch] = set()
        """the batches that are being translated"""
        self._batches_of: Counter[str] = Counter()
        """of each client, how many batches are being translated"""
        self._gathering_since = 0.0
        """when the first segment that waits now came, or the latest batch ended"""
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, lane: Lane, client: str, lines: Sequence[Line]) -> list[QueuedSegment]:
        """Let the segments `lines` of a client wait, and return them, each with its future.

        Raises:
            RequestError: the segments are too many, or too many others wait.
        """
        self.check_room(len(lines))
        loop = asyncio.get_running_loop()
        segments = []
        for line in lines:
            # a shorter segment takes as long as one of MIN_COUNTED_LENGTH tokens
            tokens = max(len(line.ids or ()), MIN_COUNTED_LENGTH)
            segments.append(QueuedSegment(line, client, loop.create_future(), tokens))
        for start in range(0, len(segments), SORTED_TOGETHER):
            group = sorted(segments[start : start + SORTED_TOGETHER], key=lambda s: s.tokens)
            for is_long in (False, True):
                if alike := [s for s in group if (s.tokens > LONG_SEGMENT) == is_long]:
                    queue = self._queues.setdefault(lane._replace(is_long=is_long), Queue())
                    queue.setdefault(client, deque()).extend(alike)
        if not self._waiting:
            self._gathering_since = loop.time()
        self._waiting += len(segments)
        if client not in self._batches_of:
            self._ask_for_slot()
        self._schedule()
        return segments

    def check_room(self, count: int) -> None:
        """Check that `count` more segments of a request may wait.

        Raises:
            RequestError: the segments are too many, or too many others wait.
        """
        most = self._settings.queue_segments
        if count > most:
            raise RequestError(
                413, f"the request has {count} sentences, and {most} are allowed; divide it"
            )
        if self._waiting + count > most:
            raise busy()

    def cancel(self, segments: Sequence[QueuedSegment]) -> None:
        """Take segments out of the queue, and end the batches that nobody waits for any more."""
        for segment in segments:
            if segment.is_waiting:
                segment.is_waiting = False
                self._waiting -= 1
            segment.future.cancel()
        for batch in {segment.batch for segment in segments if segment.batch}:
            if batch.task and all(segment.future.done() for segment in batch.segments):
                batch.task.cancel()

    async def close(self) -> None:
        """End the batches that are being translated."""
        tasks = [batch.task for batch in self._batches if batch.task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _schedule(self) -> None:
        """Begin a batch now, or when the waiting time is over."""
        if self._timer or not self._waiting or not self._free:
            return
        loop = asyncio.get_running_loop()
        is_alone = self._free == self._compute.slots
        wait = 0.0 if is_alone else self._settings.wait_milliseconds / 1000
        self._timer = loop.call_at(self._gathering_since + wait, self._begin)

    def _begin(self) -> None:
        """Begin as many batches as slots are free."""
        self._timer = None
        passed = 0  # lanes, one after another, whose clients have enough batches
        while self._free and self._waiting and passed < len(self._queues):
            lane, queue = self._queues.popitem(last=False)
            batches = self._draw(lane, queue)
            for segments in batches:
                self._start(lane, _Batch(segments))
            if queue:
                self._queues[lane] = queue
                passed = 0 if batches else passed + 1
        if not self._waiting:
            self._queues.clear()  # of cancelled segments

    def _draw(self, lane: Lane, queue: Queue) -> list[list[QueuedSegment]]:
        """Take the next segments of a lane, for its share of the free slots, as batches."""
        slots = max(1, self._free // (1 + len(self._queues)))
        # no slot takes so many segments that another one has nothing to do
        most = slots * math.ceil((self._waiting + self._running) / self._compute.slots)
        of_batch = max(MIN_BATCH_TOKENS, self._rate(lane) * self._settings.batch_seconds)
        drawn: list[QueuedSegment] = []
        tokens = 0

        def may_have(client: str) -> bool:  # a client's slow batches keep nobody else out
            return self._batches_of[client] < self._compute.slots

        while (
            len(drawn) < most and tokens < slots * of_batch and (segment := _next(queue, may_have))
        ):
            segment.is_waiting = False
            drawn.append(segment)
            tokens += segment.tokens
        self._waiting -= len(drawn)
        drawn.sort(key=lambda segment: segment.tokens)
        return _cut(drawn, slots, tokens)

    def _start(self, lane: Lane, batch: _Batch) -> None:
        """Begin to translate a batch, which takes a free slot until its end."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        timer = loop.call_later(self._settings.batch_seconds, self._give_slot, batch)
        self._free -= 1
        self._running += len(batch.segments)
        self._batches.add(batch)
        self._batches_of.update(batch.clients)
        batch.task = asyncio.create_task(self._translate(lane, batch.segments))

        def end(_: object) -> None:  # also of a task that was cancelled before it began
            timer.cancel()
            self._end(lane, batch, loop.time() - started)

        batch.task.add_done_callback(end)

    def _end(self, lane: Lane, batch: _Batch, seconds: float) -> None:
        """Free the slot of a batch that took so many seconds; the next batch may begin."""
        tokens, time = self._rates.get(lane.rate_key, (0.0, 0.0))
        total = sum(segment.tokens for segment in batch.segments)
        self._rates[lane.rate_key] = (tokens * DECAY + total, time * DECAY + seconds)
        self._operations.count_batch(lane.model, len(batch.segments), seconds)
        if batch.gave_slot:
            self._slow -= 1
        else:
            self._free += 1
        self._running -= len(batch.segments)
        for segment in batch.segments:  # else only a garbage collection would free both
            segment.batch = None
        self._batches.remove(batch)
        self._batches_of -= Counter(batch.clients)  # drops those that have none
        self._gathering_since = asyncio.get_running_loop().time()
        if self._timer and not self._running:  # what waits has nothing to wait for any more
            self._timer.cancel()
            self._timer = None
        self._schedule()

    def _give_slot(self, batch: _Batch) -> None:
        """Give the slot of a batch that takes long to others, if not too many have done so."""
        if self._slow < self._compute.spare and not batch.gave_slot:
            batch.gave_slot = True
            self._slow += 1
            self._free += 1
            self._schedule()

    def _ask_for_slot(self) -> None:
        """Let a client that has several batches give a slot to one that has none."""
        for batch in self._batches:
            client, *others = batch.clients
            if not self._free and not others and self._batches_of[client] > 1:
                self._give_slot(batch)

    async def _translate(self, lane: Lane, segments: list[QueuedSegment]) -> None:
        """Translate a batch; one that fails is halved, until what fails stands alone."""
        segments = [segment for segment in segments if not segment.future.done()]
        if not segments:  # their clients have left
            return
        lines = [segment.line for segment in segments]
        try:
            async with asyncio.timeout(self._settings.search_seconds):
                rows = await self._compute.translate(lane.version, lane.kind, lines)
        except Exception as error:
            can_differ = isinstance(error, NmtError | TimeoutError)
            is_divisible = can_differ and not isinstance(error, RequestError)
            if is_divisible and len(segments) > 1:
                middle = len(segments) // 2
                await self._translate(lane, segments[:middle])
                await self._translate(lane, segments[middle:])
                return
            if isinstance(error, TimeoutError):
                error = RequestError(413, self._too_slow)
            for segment in segments:
                if not segment.future.done():
                    segment.future.set_exception(error)
            return
        for segment, translations in zip(segments, rows, strict=True):
            if not segment.future.done():  # the client is still there
                segment.future.set_result(translations)

    @property
    def _too_slow(self) -> str:
        """The message about a sentence whose search was ended because it took too long."""
        return (
            f"a sentence takes over {self._settings.search_seconds:g} s; send shorter sentences, "
            "or ask for fewer or shorter terms, forbidden words and beginnings"
        )

    def _rate(self, lane: Lane) -> float:
        """Return about how many source tokens a slot translates in a second."""
        tokens, seconds = self._rates.get(lane.rate_key, (0.0, 0.0))
        return tokens / seconds if seconds else FIRST_RATE


def _next(queue: Queue, may_have: Callable[[str], bool]) -> QueuedSegment | None:
    """Take the next segment of the first client that `may_have` one; it is the last client then.

    None: no client with a segment may have one.
    """
    for client in list(queue):
        if not may_have(client):
            continue
        segments = queue.pop(client)
        while segments:
            segment = segments.popleft()
            if segment.is_waiting:  # it was not cancelled
                if segments:
                    queue[client] = segments
                return segment
    return None


def _cut(segments: list[QueuedSegment], count: int, tokens: int) -> list[list[QueuedSegment]]:
    """Cut segments into up to `count` batches of about equally many tokens; none is empty."""
    batches: list[list[QueuedSegment]] = []
    done = 0
    for segment in segments:
        if not batches or done >= tokens * len(batches) / count:
            batches.append([])
        batches[-1].append(segment)
        done += segment.tokens
    return batches
